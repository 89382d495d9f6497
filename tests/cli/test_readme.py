# SPDX-License-Identifier: Apache-2.0
"""What README.md tells to type works, typed as it is there, one line after the other."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from helpers import BUILD, ROOT

# What takes more than this machine may have: a network, a control group, a terminal, somebody's home.
ELSEWHERE = ("--net", "--cpus", "--tty", "pinfold shell", "pinfold agent", "~/")


def examples() -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(r"^    (pinfold (?:run|agent|plan|doctor|version).*?)(?:  +#.*)?$", text, re.MULTILINE)


def test_every_example_works_in_a_project(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "Makefile").write_text("test fmt:\n\t@echo done >> f.md\n")
    (project / "f.md").write_text("a\n")
    (project / "step.sh").write_text("#!/bin/sh\ntrue\n")
    (project / "step.sh").chmod(0o755)
    tried = [line for line in examples() if not any(word in line for word in ELSEWHERE)]
    assert len(tried) >= 6
    for line in tried:
        done = subprocess.run(line, shell=True, cwd=project, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_the_offline_example_of_an_agent_plays_and_writes_nothing() -> None:
    (line,) = [line for line in examples() if "scripted:" in line]
    source = (ROOT / "examples/wordcount/src/wordcount.c").read_text()
    done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
    assert done.returncode == 1 and "no terminal to ask at" in done.stderr
    assert "+    if (only_lines)" in done.stdout
    assert (ROOT / "examples/wordcount/src/wordcount.c").read_text() == source


@pytest.mark.parametrize("line", examples())
def test_every_option_in_an_example_exists(line: str, pinfold) -> None:
    words = shlex.split(line)
    told = pinfold("help", words[1]).stdout
    for word in words[2:]:
        if word == "--" or not word.startswith("-"):
            continue
        assert re.search(rf"^ +(-\w, )?{re.escape(word.split('=')[0])}\b", told, re.MULTILINE), word
