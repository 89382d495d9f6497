# SPDX-License-Identifier: Apache-2.0
"""pinfold run on a remote backend, beside the fake of its service."""

import os
import subprocess
from pathlib import Path
from typing import Any

from owners import BUILD

PINFOLD = str(BUILD / "pinfold")


class RemoteRunner:
    """The command with an environment that has nothing of the service's but what is said here."""

    def __init__(self, backend: str, foreign: str, tmp: Path, env: dict[str, str]) -> None:
        """foreign: how variables begin that are not inherited."""
        self.backend = backend
        self.tmp, self.here = tmp / "tmpdir", tmp / "here"
        self.tmp.mkdir()
        self.here.mkdir()
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(foreign) and not name.lower().endswith("_proxy")}
        self.env |= {"TMPDIR": str(self.tmp), **env}

    def start(self, *words: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen([PINFOLD, "run", "--backend", self.backend, *map(str, words)],
                                env=self.env, cwd=self.here, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, *words: Any) -> "subprocess.CompletedProcess[str]":
        child = self.start(*words)
        try:
            out, err = child.communicate(timeout=180)
        finally:
            child.kill()
        assert list(self.tmp.iterdir()) == [], "a temporary directory was left behind"
        return subprocess.CompletedProcess(words, child.returncode, out, err)
