# SPDX-License-Identifier: Apache-2.0
"""Where no /proc is mounted, or that of others: nothing starts that nobody could end, and the one
cause is named."""

import subprocess
from pathlib import Path

import pytest
from helpers import BUILD
from owners import IS_ROOT

pytestmark = [pytest.mark.skipif(not IS_ROOT, reason="needs the right to mount"),
              pytest.mark.plain]  # sanitizers read /proc themselves

PLACES = {
    "none": ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "-"],
    "that of another process namespace": ["unshare", "-p", "-f"],
}


def run(place: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PLACES[place], str(BUILD / "pinfold"), *words], capture_output=True,
                          text=True, timeout=60)


@pytest.mark.parametrize("place", PLACES)
def test_nothing_starts_whose_children_could_not_be_found(place: str, tmp_path: Path) -> None:
    done = run(place, "run", "-q", "--backend", "local", "--", f"touch {tmp_path}/ran")
    assert done.returncode == 125 and "mount -t proc proc /proc" in done.stderr, done.stderr
    assert "it leaves behind" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("words", [["doctor"], ["run", "--", "true"]], ids=["doctor", "run"])
def test_that_is_the_cause_that_is_named(words: list[str]) -> None:
    done = run("none", *words)
    said = done.stdout + done.stderr
    assert done.returncode in (1, 125) and "mount -t proc proc /proc" in said, said
    assert "neither beside" not in said and "kernel is too old" not in said
    assert "max_user_namespaces" not in said


def test_a_proc_of_its_own_is_enough() -> None:
    own = ["unshare", "-p", "-f", "--mount-proc", str(BUILD / "pinfold"), "run", "-q", "--backend",
           "local", "--", "echo", "done"]
    done = subprocess.run(own, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
