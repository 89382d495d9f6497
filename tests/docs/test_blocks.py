# SPDX-License-Identifier: Apache-2.0
"""What the documents show of C is what the headers have."""

import re
import subprocess
from pathlib import Path

import pytest

from manual import ROOT

HEADERS = sorted(path.name for path in (ROOT / "include/pinfold").glob("*.h"))
BLOCK = re.compile(r"^```c\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FUNCTION = re.compile(r"^static .*?^\}\n", re.DOTALL | re.MULTILINE)
# What a reader has when a block begins; README.md's own function says what went wrong.
HAS = """
struct pinfold_agent *agent;
struct pinfold_backend *backend;
struct pinfold_execute_result result;
struct pinfold_model *model;
struct pinfold_sandbox *sandbox;
struct pinfold_sandbox_options options;
struct pinfold_error err;
int r;
int fail(const struct pinfold_error *why);
"""
BLOCKS = [pytest.param(text, id=f"{path.relative_to(ROOT)}-{number}")
          for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
          for number, text in enumerate(BLOCK.findall(path.read_text()))]


def compile_block(text: str, place: Path) -> str:
    """What the compiler has to say against a block: functions, and what stands in one."""
    functions, rest = "".join(FUNCTION.findall(text)), FUNCTION.sub("", text)
    includes = "".join(f"#include <pinfold/{name}>\n" for name in HEADERS)
    source = place / "block.c"
    source.write_text(f"#include <stdio.h>\n#include <string.h>\n{includes}{HAS}{functions}"
                      f"int block(void);\nint block(void)\n{{\n{rest}return 0;\n}}\n")
    done = subprocess.run(["gcc", "-std=gnu17", "-Wall", "-Werror", "-fsyntax-only", "-I",
                           ROOT / "include", source], capture_output=True, text=True, timeout=60)
    return done.stderr


@pytest.mark.parametrize("text", BLOCKS)
def test_a_block_of_c_is_understood(text: str, tmp_path: Path) -> None:
    assert compile_block(text, tmp_path) == ""


def test_a_wrong_block_is_noticed(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 5
    assert "pinfold_sandbox_begin" in compile_block("pinfold_sandbox_begin(sandbox);\n", tmp_path)
    assert "no member" in compile_block("options.ttl = 1;\n", tmp_path)
