# SPDX-License-Identifier: Apache-2.0
"""What the black box tests of the command share."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

from helpers import BUILD


@pytest.fixture(autouse=True)
def own_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Temporary workspaces go where the test can see that they are gone."""
    place = tmp_path / "tmpdir"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    assert list(place.iterdir()) == [], "a temporary workspace was left behind"


@pytest.fixture
def pinfold() -> Callable[..., Any]:
    """Run the command and wait for it."""
    def run(*args: Any, **options: Any) -> Any:
        options.setdefault("timeout", 60)
        options.setdefault("capture_output", True)
        options.setdefault("text", True)
        return subprocess.run([str(BUILD / "pinfold"), *map(os.fsdecode, args)], **options)
    return run


@pytest.fixture
def start() -> Any:
    """Start the command in the background; it is killed at the end of the test."""
    started: list[subprocess.Popen] = []

    def run(*args: Any, **options: Any) -> Any:
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("text", True)
        child = subprocess.Popen([str(BUILD / "pinfold"), *map(os.fsdecode, args)], **options)
        started.append(child)
        return child
    yield run
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small directory to seed from."""
    seed = tmp_path / "project"
    (seed / "src").mkdir(parents=True)
    (seed / "src/main.c").write_text("int main(void) { return 0; }\n")
    (seed / "README.md").write_text("# A project\n")
    (seed / ".git").mkdir()
    (seed / ".git/config").write_text("[core]\n")
    (seed / "tool.sh").write_text("#!/bin/sh\necho tool\n")
    (seed / "tool.sh").chmod(0o755)
    return seed


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """A copy of the command where any user may run it."""
    tmp_path.chmod(0o711)
    copy = tmp_path / "pinfold-copy"
    shutil.copy(BUILD / "pinfold", copy)
    copy.chmod(0o755)
    return copy
