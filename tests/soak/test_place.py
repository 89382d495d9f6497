# SPDX-License-Identifier: Apache-2.0
"""What the soak takes for rest, or for left behind, is so."""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest

from place import PR_SET_CHILD_SUBREAPER, SOON, Place, waits

LOOKS = 100
SCRIPT = "while ! [ -e end ]; do mkdir -p x/y; cp /etc/passwd x/y; mv x/y/passwd z; rm -rf x; done"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "disk").mkdir()
    yield Place(tmp_path, tmp_path, tmp_path, own_disk=False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_script_of_short_programs_is_never_calm(place: Place, shell: str) -> None:
    with subprocess.Popen([shell, "-c", SCRIPT], cwd=place.top) as script:
        try:
            looks = [place.calm(None) for _ in range(LOOKS)]
        finally:
            (place.top / "end").touch()
    assert all(one is None or one != other for one, other in zip(looks, looks[1:]))


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_shell_that_waits_for_its_next_line_is_calm(place: Place, shell: str) -> None:
    with subprocess.Popen([shell], stdin=subprocess.PIPE) as script:
        deadline, before, calm = time.monotonic() + SOON, None, place.calm(None)
        while (calm is None or calm != before) and time.monotonic() < deadline:
            before, calm = calm, place.calm(None)
        assert calm and calm == before


def test_groups_are_left_of_who_is_gone(place: Place) -> None:
    """And of nobody whose number is in use again, or was in use before."""
    with subprocess.Popen(["true"]) as gone:
        pass
    place.groups = str(place.top / "groups")
    older = Path(place.groups, "memory", f"pinfold-{gone.pid}-4026531836-76543210")
    older.mkdir(parents=True)
    place.clear()
    ours = older.with_name(f"pinfold-{gone.pid}-4026531836-01234567")
    for path in ours, ours.with_name(f"pinfold-{os.getpid()}-4026531836-01234567"):
        path.mkdir()
    assert place.left_groups([os.getpid(), gone.pid]) == [str(ours)]


def test_who_ends_meanwhile_waits_for_nothing() -> None:
    for _ in range(LOOKS):
        with subprocess.Popen(["true"]) as ending:
            reaper = threading.Thread(target=ending.wait)
            reaper.start()
            while ending.returncode is None:
                waits(ending.pid)
            reaper.join()
    assert waits(ending.pid) == []
