# SPDX-License-Identifier: Apache-2.0
"""docs/quick-start.md as it is written: its commands, one after the other, and what they answer."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from owners import BUILD

from manual import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the commands find in a checkout."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "tmp").mkdir()
    return tmp_path


def run(kind: str, text: str, checkout: Path) -> str:
    """Do what a block says; what it printed, errors among it."""
    # Nothing but our own file is there: whoever has the library needs none of what it was made of.
    pkg_config = BUILD / "meson-private"
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}", "TMPDIR": str(checkout / "tmp"),
           "PYTHONPATH": str(BUILD / "python"), "PKG_CONFIG_LIBDIR": str(pkg_config),
           "LD_LIBRARY_PATH": str(BUILD), "LIBRARY_PATH": str(BUILD),
           "CPATH": str(ROOT / "include")}
    words = ["sh", "-euc", text] if kind == "sh" else [sys.executable, "-B", "-c", text]
    done = subprocess.run(words, cwd=checkout, env=env, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, f"{text}\n-- printed:\n{done.stdout}"
    return done.stdout


def test_every_block_does_what_it_says(checkout):
    output = ""
    kinds = []
    for kind, text in BLOCK.findall((ROOT / "docs/quick-start.md").read_text()):
        kinds.append(kind)
        if kind == "text":
            for line in text.splitlines():
                pattern = re.escape(line).replace(r"\.\.\.", ".*")
                found = re.search(rf"^{pattern}$", output, re.MULTILINE)
                assert found, f"{line}\n-- not in:\n{output}"
        else:
            output = run(kind, text, checkout)
    assert kinds.count("sh") >= 8 and kinds.count("text") >= 6 and "python" in kinds
    # Each of these is what a block says without showing it.
    assert (checkout / "sorted/sorted.md").read_text() == "a\nb\n"
    assert not (checkout / "project/wordcount").exists()
    assert "only_lines" in (checkout / "copy/src/wordcount.c").read_text()
    assert list((checkout / "tmp").iterdir()) == []
