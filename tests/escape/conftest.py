# SPDX-License-Identifier: Apache-2.0
"""A place outside, a workspace inside, and the command for two owners: us, and a stranger."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from owners import BUILD, IS_ROOT, OWNERS, copy_programs, credentials

HERE = Path(__file__).resolve().parent
PINFOLD = BUILD / "pinfold"
PYTHON = "/usr/bin/python3"


def compile_c(target: Path, *sources: Path) -> None:
    subprocess.run([*os.environ.get("CC", "cc").split(), "-D_GNU_SOURCE", "-static", "-O1", "-o",
                    target, *sources], check=True, timeout=120)


@pytest.fixture(scope="session")
def tools() -> Iterator[Path]:
    """A readable copy of the programs, beside the compiled attacks."""
    with tempfile.TemporaryDirectory(prefix="pinfold-escape-") as path:
        place = Path(path)
        place.chmod(0o755)
        copy_programs(place, PINFOLD.parent)
        shutil.copy(BUILD / "tests/escape/view_pair", place)
        compile_c(place / "calls", *sorted(HERE.glob("calls*.c")))
        yield place


class Range:
    """Where an attack is tried: outside there is a secret, inside a script."""

    def __init__(self, place: Path, tools: Path, uid: int):
        self.place, self.tools, self.uid = place, tools, uid
        self.outside = place / "outside"
        self.workspace = place / "workspace"
        self.tmp = place / "tmp"
        self.token = secrets.token_hex(16)
        self.secret = self.outside / "secret"
        for directory in self.outside, self.workspace, self.tmp:
            directory.mkdir()
        self.secret.write_text(self.token + "\n")
        self.secret.chmod(0o600)
        self.give(place)
        self.started: list[subprocess.Popen] = []

    def give(self, path: Path) -> None:
        """To the owner of the sandbox, all of it."""
        if self.uid == os.getuid():
            return
        for at in [path, *path.rglob("*")]:
            os.chown(at, self.uid, self.uid, follow_symlinks=False)

    def who(self) -> dict[str, Any]:
        return credentials(self.uid)

    def arguments(self, command: str, *options: Any, backend: str = "isolated",
                  workspace: bool = True) -> list[str]:
        place = ["--workspace", self.workspace] if workspace else []
        return [str(word) for word in
                [self.tools / "pinfold", "run", "--quiet", "--backend", backend, *place, *options,
                 "--", command]]

    def popen(self, words: list[str], env: dict[str, str] | None = None,
              **options: Any) -> subprocess.Popen:
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen(
                words, cwd="/", text=True, errors="replace",
                env={**os.environ, "TMPDIR": str(self.tmp), **(env or {})}, **self.who(),
                **options)
        self.started.append(child)
        return child

    def run(self, command: str, *options: Any, backend: str = "isolated", workspace: bool = True,
            timeout: float = 60, env: dict[str, str] | None = None,
            **more: Any) -> subprocess.CompletedProcess:
        child = self.popen(self.arguments(command, *options, backend=backend,
                                          workspace=workspace), env, **more)
        out, err = child.communicate(timeout=timeout)
        # An attack that was never made has not been contained. A flush may fail for its own reasons.
        if not any(str(option).startswith("--sync") for option in options):
            assert child.returncode != 125, f"nothing was run: {err}"
        return subprocess.CompletedProcess(command, child.returncode, out, err)

    def python(self, script: str, *options: Any, **more: Any) -> subprocess.CompletedProcess:
        """Run a script that is a file of the workspace."""
        (self.workspace / "attack.py").write_text(script)
        return self.run(f"{PYTHON} attack.py", *options, **more)

    def control(self, command: str, **more: Any) -> subprocess.CompletedProcess:
        """The same without a sandbox."""
        return self.run(command, backend="local", **more)

    def control_python(self, script: str, **more: Any) -> subprocess.CompletedProcess:
        return self.python(script, backend="local", **more)

    def victim(self, *, group: int | None = None) -> subprocess.Popen:
        """A process outside, of the same user, that has the secret in all ways it can."""
        script = ("import sys, time; secret = sys.stdin.readline(); held = open(sys.argv[1]); "
                  "print('ready', flush=True); time.sleep(60)")
        child = subprocess.Popen([PYTHON, "-c", script, self.secret], cwd=self.outside, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env={"TOKEN": self.token}, process_group=group, **self.who())
        self.started.append(child)
        child.stdin.write(self.token + "\n")
        child.stdin.flush()
        assert child.stdout.readline() == "ready\n"
        return child

    def stop(self) -> None:
        for child in self.started:
            if child.poll() is None:
                child.kill()
            child.wait()
            for stream in child.stdin, child.stdout, child.stderr:
                if stream:
                    stream.close()


@pytest.fixture(params=OWNERS)
def field(request: pytest.FixtureRequest, tools: Path) -> Iterator[Range]:
    """Every attack is tried in the sandbox of each owner."""
    with tempfile.TemporaryDirectory(prefix="pinfold-escape-") as path:
        place = Path(path)
        place.chmod(0o755)
        made = Range(place, tools, request.param)
        yield made
        made.stop()
        assert list(made.tmp.iterdir()) == [], "a temporary workspace was left behind"


def pytest_report_header() -> str:
    return f"pinfold: {PINFOLD}, python {sys.version.split()[0]}"
