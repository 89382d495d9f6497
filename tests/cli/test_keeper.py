# SPDX-License-Identifier: Apache-2.0
"""The program that removes what killed owners had (src/jail/init_keep.c), with lists that no keeper
writes, or of what has become something else meanwhile: it deletes nothing but what is pinfold's."""

import os
import subprocess
from pathlib import Path

import pytest
from helpers import BUILD

OURS = "pinfold-run-0123456789abcdef"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def keep(place: Path, entries: bytes) -> subprocess.CompletedProcess:
    (place.parent / "list").write_bytes(entries)
    with open(place.parent / "list", "rb") as listed:
        done = subprocess.run(["pinfold-keeper"], executable=BUILD / "pinfold-init", stdin=listed,
                              env={}, capture_output=True, timeout=60, check=False)
    (place.parent / "list").unlink()
    return done


def tree(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def entry(kind: str, path: Path) -> bytes:
    return kind.encode() + os.fsencode(path) + b"\0"


def test_it_deletes_what_is_listed_and_tells_nobody(place: Path) -> None:
    (place / OURS / "a/b").mkdir(parents=True)
    (place / OURS / "a/file").touch()
    (place / "group").mkdir()
    done = keep(place, entry("w", place / OURS) + entry("g", place / "group") +
                entry("w", place / "pinfold-run-fedcba9876543210"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert tree(place) == []


@pytest.mark.parametrize("name", ["pinfold-run-0123456789abcde", "pinfold-kept-0123456789abcdef",
                                  "pinfold-run-0123456789abcdeF", "work", f"{OURS}/inside"])
def test_it_deletes_no_directory_of_another_name(place: Path, name: str) -> None:
    (place / name / "inside").mkdir(parents=True)
    before = tree(place)
    assert keep(place, entry("w", place / name)).returncode == 0
    assert keep(place, entry("g", place / name)).returncode == 0
    assert tree(place) == before


def test_it_follows_no_link_and_deletes_no_file(place: Path) -> None:
    (place / "work/inside").mkdir(parents=True)
    (place / OURS).symlink_to("work")
    (place / OURS.replace("0", "f")).touch()
    before = tree(place)
    done = keep(place, entry("w", place / OURS) +
                entry("w", place / OURS.replace("0", "f")))
    assert done.returncode == 0 and tree(place) == before


@pytest.mark.parametrize("entries", [b"\0", b"w\0g\0", b"\0\0\0", b"w/", b"w" + b"/" * 9000 + b"\0",
                                     b"x/tmp\0", b"wrelative\0"], ids=range(7))
def test_a_list_that_is_none_does_no_harm(place: Path, entries: bytes) -> None:
    (place / "work").mkdir()
    done = keep(place, entries)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert tree(place) == ["work"]


def test_the_end_of_a_list_that_was_cut_is_not_taken(place: Path) -> None:
    (place / OURS).mkdir()
    assert keep(place, entry("w", place / OURS)[:-1]).returncode == 0
    assert tree(place) == [OURS]


def test_it_takes_its_list_from_a_file_alone(place: Path) -> None:
    assert keep(place, b"").returncode == 2
    done = subprocess.run(["pinfold-keeper"], executable=BUILD / "pinfold-init",
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")
