# SPDX-License-Identifier: Apache-2.0
"""What the gates share: say what is wrong, or prove that a gate can say so (--self-check)."""

import re
import sys
import tempfile
from pathlib import Path
from typing import Callable, Optional

Check = Callable[[Path], list[str]]
# Makes a tree that is bad. What it returns, if anything, is which files: the gate must find something
# in each of them, and nothing in the others.
Spoil = Callable[[Path], Optional[set[str]]]


def files(root: Path, *patterns: str) -> list[Path]:
    """The files below root that match, sorted."""
    return sorted(path for pattern in patterns for path in root.glob(pattern))


def without_comments(text: str) -> str:
    """C source with comments and string literals blanked; line numbers stay right."""
    token = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return token.sub(lambda m: "\n" * m.group().count("\n") or '""', text)


def main(check: Check, spoil: Spoil) -> int:
    """Run check on this tree; with --self-check on a tree that spoil() has made bad."""
    root = Path(__file__).resolve().parent.parent
    if sys.argv[1:] == ["--self-check"]:
        return self_check(check, spoil)
    found = check(root)
    for fault in found:
        print(fault)
    return 1 if found else 0


def self_check(check: Check, spoil: Spoil) -> int:
    """Whether check finds what spoil() has made bad."""
    with tempfile.TemporaryDirectory() as name:
        bad = spoil(Path(name))
        found = check(Path(name))
    print("\n".join(found) if found else "the gate found nothing wrong with a bad tree")
    if bad is None:
        return 0 if found else 1
    named = {line.partition(":")[0] for line in found}
    for path in sorted(bad - named):
        print(f"the gate found nothing wrong with {path}")
    for path in sorted(named - bad):
        print(f"the gate found something wrong with {path}, which is good")
    return 1 if named != bad else 0


def write(path: Path, text: str) -> None:
    """Write a file and the directories that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
