# SPDX-License-Identifier: Apache-2.0
"""What the black box tests of the command share."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable

import pytest

from agent_run import Agent
from helpers import BUILD
from owners import IS_ROOT, STRANGER, copy_programs, credentials

FIRST_TMPDIR = tempfile.gettempdir()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "plain: only for a build without sanitizers")


@pytest.fixture(autouse=True)
def own_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Temporary workspaces go where the test can see that they are gone."""
    place = tmp_path / "tmpdir"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    assert list(place.iterdir()) == [], "a temporary workspace was left behind"


@pytest.fixture
def kept(own_tmpdir: Path) -> Callable[[str], dict[str, str]]:
    """Take the one workspace that a run has kept, and named in text: its files."""
    def take(text: str) -> dict[str, str]:
        (work,) = own_tmpdir.iterdir()
        assert str(work) in text
        files = {str(path.relative_to(work)): path.read_text()
                 for path in work.rglob("*") if path.is_file()}
        shutil.rmtree(work)
        return files
    return take


@pytest.fixture
def pinfold() -> Callable[..., Any]:
    """Run the command and wait for it."""
    def run(*args: Any, **options: Any) -> Any:
        options.setdefault("timeout", 60)
        options.setdefault("capture_output", True)
        options.setdefault("text", True)
        return subprocess.run([str(BUILD / "pinfold"), *map(os.fsdecode, args)], **options)
    return run


@pytest.fixture(params=["isolated", "local"])
def backend(request: pytest.FixtureRequest) -> list[str]:
    """For what holds on both: the words that choose one. The default is not named."""
    return [] if request.param == "isolated" else ["--backend", "local"]


@pytest.fixture
def run(pinfold: Callable[..., Any], backend: list[str]) -> Callable[..., Any]:
    """Run a command in a workspace, quietly, on each backend."""
    return lambda *args, **options: pinfold("run", "-q", *backend, *args, **options)


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
def common():
    """A directory that every user can reach; pytest's own are closed to others."""
    place = Path(tempfile.mkdtemp(prefix="common-", dir=FIRST_TMPDIR))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def as_stranger(common: Path) -> Callable[..., Any]:
    """Run the command as somebody who is not root."""
    binary = copy_programs(common)
    who = credentials(STRANGER if IS_ROOT else os.getuid())

    def run(*args: Any, **env: Any) -> Any:
        return subprocess.run([binary, *map(str, args)], capture_output=True, text=True,
                              timeout=60, cwd="/", env={**os.environ, **env}, **who)
    return run


@pytest.fixture
def agent(tmp_path: Path, project: Path):
    """How to run pinfold agent on the small project."""
    made = Agent(tmp_path, project)
    yield made
    for term in made.terminals:
        term.close()
