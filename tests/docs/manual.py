# SPDX-License-Identifier: Apache-2.0
"""Reading the manual: what its pages say, in mdoc."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAN = ROOT / "man"


class Item(NamedTuple):
    """One entry of a list; several that share a text have it each."""

    head: str
    text: str


def read(name: str) -> str:
    return (MAN / name).read_text()


def sections(page: str) -> dict[str, str]:
    """The text below each .Sh."""
    parts = re.split(r"^\.Sh (.*)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def items(text: str) -> list[Item]:
    """The entries of the lists in a section."""
    made: list[Item] = []
    waiting: list[str] = []
    for part in re.split(r"^\.It ", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        waiting.append(head)
        if body.strip() and not body.startswith(".El"):
            made += [Item(one, body.split("\n.El")[0]) for one in waiting]
            waiting = []
    return made + [Item(one, "") for one in waiting]


def options(page: str) -> dict[str, Item]:
    """The long options that a page describes."""
    return {found[1]: item for item in items(sections(page).get("OPTIONS", ""))
            if (found := re.match(r"Fl -([a-z-]+)", item.head))}


needs_mandoc = pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")


def lint(page: Path) -> str:
    """What mandoc has to say against a page."""
    done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 or done.stdout + done.stderr
    return done.stdout + done.stderr


def shown(page: Path) -> list[str]:
    """The lines that a reader sees, on a terminal that is wide enough for all of them."""
    done = subprocess.run(["mandoc", "-Tutf8", "-Owidth=400", page], capture_output=True, text=True,
                          timeout=60, check=True)
    return [line.strip() for line in re.sub(".\b", "", done.stdout).split("\n")]


def typed(page: str) -> list[str]:
    """The lines of examples, as they are to be typed: those of .Dl, and in literal blocks."""
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", page, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^\.Dl (.*)$", page, re.MULTILINE) + "".join(blocks).split("\n")
    named = {"\\(dq": '"', "\\&": "", "\\e": "\\"}
    return [re.sub(r"\\\(dq|\\&|\\e", lambda found: named[found[0]], line).strip()
            for line in lines]
