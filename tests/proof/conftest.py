# SPDX-License-Identifier: Apache-2.0
"""The programs, a place of their own, and both kinds of owner."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from stranger import IS_ROOT, OWNERS, credentials

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("PINFOLD_BUILD", HERE.parents[1] / "build")).resolve()


class Owner:
    """A user, with a directory and the programs."""

    def __init__(self, place: Path, uid: int):
        self.place, self.uid = place, uid
        self.bin, self.tmp = place / "bin", place / "tmp"
        for directory in self.bin, self.tmp:
            directory.mkdir()
        for name in "pinfold", "pinfold-init", "libpinfold.so.0":
            shutil.copy(BUILD / name, self.bin)
        self.pinfold = self.bin / "pinfold"

    def give(self, path: Path) -> None:
        """Make it, and what is in it, the owner's."""
        for at in [path, *path.rglob("*")]:
            os.chown(at, self.uid, self.uid, follow_symlinks=False)

    def popen(self, *words: Any, **options: Any) -> subprocess.Popen:
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        env = {**os.environ, "TMPDIR": str(self.tmp), **options.pop("env", {})}
        return subprocess.Popen([str(word) for word in words], cwd=self.place, env=env, text=True,
                                stdin=subprocess.DEVNULL, errors="replace",
                                **credentials(self.uid), **options)

    def run(self, *words: Any, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess:
        child = self.popen(*words, **options)
        try:
            out, err = child.communicate(timeout=timeout)
        finally:
            child.kill()
        return subprocess.CompletedProcess(words, child.returncode, out, err)


@pytest.fixture(params=OWNERS)
def owner(request: pytest.FixtureRequest) -> Iterator[Owner]:
    with tempfile.TemporaryDirectory(prefix="pinfold-proof-") as path:
        place = Path(path)
        place.chmod(0o755)
        made = Owner(place, request.param)
        if IS_ROOT:
            made.give(place)
        yield made
        assert list(made.tmp.iterdir()) == [], "something was left behind"
