# SPDX-License-Identifier: Apache-2.0
"""From the counters that the programs of a coverage build share (counters.c) to lines of source."""

import json
import os
import re
import shutil
import subprocess
from collections import deque
from pathlib import Path
from typing import Any, Iterator

# The lines of a source file that are compiled, and whether each was run.
Lines = dict[int, bool]
MANY = 200  # objects that one gcov is asked about


def build_id(path: Path) -> str:
    """What the linker has called a program or a library; nothing when it is neither."""
    with path.open("rb") as file:
        if file.read(4) != b"\x7fELF":
            return ""
    notes = subprocess.run(["readelf", "--notes", "--wide", path], check=True, capture_output=True,
                           text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    return found[1] if found else ""


def programs(build: Path) -> dict[str, Path]:
    """Whatever was linked, by its identifier; copies have the same."""
    found = {}
    for path in build.rglob("*"):
        if path.is_file() and not path.is_symlink() and os.access(path, os.X_OK):
            found[build_id(path)] = path
    found.pop("", None)
    return found


def dump(program: Path, place: Path, build: Path) -> None:
    """Have a program write what was counted, and give the files the names of its objects."""
    place.mkdir(parents=True)
    env = {"PINFOLD_COVERAGE_DUMP": str(place)}
    # One of the libraries is an extension of Python.
    load = ["/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])"]
    command = [*(load if ".so" in program.suffixes else []), str(program)]
    subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL)
    written = list(place.iterdir())
    if not written:
        raise RuntimeError(f"{program} does not say what it counted")
    for path in written:
        name, _, data = path.read_bytes().partition(b"\0")
        path.unlink()
        path = place / Path(os.fsdecode(name)).relative_to(build)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def collect(build: Path, scratch: Path) -> None:
    """Add up what all programs counted, and put it beside their objects."""
    linked = programs(build)
    waiting = deque(scratch / path.name for path in (build / "counters").iterdir()
                    if path.name in linked)  # others are of an earlier build
    for place in waiting:
        dump(linked[place.name], place, build)
    if not waiting:
        raise RuntimeError("nothing was counted: were there no tests?")
    while len(waiting) > 1:  # the small ones first
        one, other = waiting.popleft(), waiting.popleft()
        both = scratch / f"sum-{len(waiting)}"
        subprocess.run(["gcov-tool", "merge", one, other, "-o", both], check=True,
                       capture_output=True)
        shutil.rmtree(one)
        shutil.rmtree(other)
        waiting.append(both)
    shutil.copytree(waiting[0], build, dirs_exist_ok=True)


def ask_gcov(build: Path) -> Iterator[dict[str, Any]]:
    """What gcov says of each source file of each object, run or not."""
    notes = sorted(path.relative_to(build) for path in build.rglob("*.gcno"))
    for at in range(0, len(notes), MANY):
        answer = subprocess.run(["gcov", "--json-format", "--stdout", *notes[at:at + MANY]],
                                cwd=build, check=True, capture_output=True, text=True)
        for line in answer.stdout.splitlines():
            yield from json.loads(line)["files"]


def lines_below(build: Path, root: Path) -> dict[str, Lines]:
    """The lines of the files below root. A line is run when it is in any of the objects that it
    was compiled into: there is one for each C library, and inline functions are in many."""
    found: dict[str, Lines] = {}
    for file in ask_gcov(build):
        path = Path(os.path.normpath(build / file["file"]))
        if not path.is_relative_to(root):
            continue
        lines = found.setdefault(str(path.relative_to(root)), {})
        for line in file["lines"]:
            number = line["line_number"]
            lines[number] = lines.get(number, False) or line["count"] > 0
    return found


def ranges(lines: Lines) -> str:
    """The lines that were not run, those together as one where only lines without code part them."""
    parts: list[list[int]] = []
    before = True
    for number, run in sorted(lines.items()):
        if not run and before:
            parts.append([number, number])
        elif not run:
            parts[-1][1] = number
        before = run
    return " ".join(f"{a}-{b}" if b > a else str(a) for a, b in parts)
