# SPDX-License-Identifier: Apache-2.0
"""Who runs sandboxes in tests: whoever runs the tests, and an ordinary user when that is root."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(os.environ.get("PINFOLD_BUILD", Path(__file__).resolve().parents[1] / "build")).resolve()

# One of each process: whoever runs beside it as the same user takes from its limit of processes,
# and is seen by tests that ask what a user has left. 32-bit process numbers end at 4,194,304, and
# users of a machine have lower numbers than this. Nobody has this one: it owns nothing.
STRANGER = 1_000_000_000 + os.getpid()
IS_ROOT = os.getuid() == 0

# Tests of the isolated backend run for whoever runs the tests, and for an ordinary user.
OWNERS = [pytest.param(os.getuid(), id="root" if IS_ROOT else "user")]
if IS_ROOT:
    OWNERS.append(pytest.param(STRANGER, id="stranger"))


def credentials(uid: int) -> dict[str, object]:
    """What subprocess needs to run something as another user; nothing for our own."""
    if uid == os.getuid():
        return {}
    return {"user": uid, "group": uid, "extra_groups": []}


def copy_programs(place: Path, build: Path = BUILD) -> Path:
    """The command and what it executes, where other users can reach them. Returns the command."""
    for program in build.glob("pinfold*"):
        if program.is_file():
            shutil.copy(program, place)
    return place / "pinfold"


class Owner:
    """A user, with a directory and the programs."""

    def __init__(self, place: Path, uid: int):
        self.place, self.uid = place, uid
        self.bin, self.tmp = place / "bin", place / "tmp"
        for directory in self.bin, self.tmp:
            directory.mkdir()
        self.pinfold = copy_programs(self.bin)
        shutil.copy(BUILD / "libpinfold.so.0", self.bin)

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
