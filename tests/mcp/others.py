# SPDX-License-Identifier: Apache-2.0
"""
Clients that others wrote, installed once for a build, from wherever npm and pip are told to.
PINFOLD_MCP_NPM and PINFOLD_MCP_PYTHON name a directory with node_modules, and a Python, that have
them already.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable

import pytest

from owners import BUILD

HERE = Path(__file__).parent
INSTALL_SECONDS = 400


def installed(name: str, what: Path, install: Callable[[Path], None]) -> Path:
    """The place where what a file lists is installed. Of several that come at once one does it."""
    digest = hashlib.sha256(what.read_bytes()).hexdigest()[:12]
    place = BUILD / "mcp-clients" / f"{name}-{digest}"
    place.parent.mkdir(exist_ok=True)
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.exists():
            return place
        with tempfile.TemporaryDirectory(dir=place.parent) as path:
            half = Path(path) / name
            half.mkdir()
            try:
                install(half)
            except (subprocess.SubprocessError, OSError):
                pytest.skip("the clients of others cannot be installed")
            half.rename(place)
    return place


def run(*command: object, **options: object) -> None:
    environ = {**os.environ, "TMPDIR": str(options["cwd"])}
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True, timeout=INSTALL_SECONDS, env=environ, **options)


def npm_packages() -> Path:
    """A directory with a package.json and node_modules."""
    if given := os.environ.get("PINFOLD_MCP_NPM"):
        return Path(given)
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("npm is not installed")

    def install(place: Path) -> None:
        shutil.copy(HERE / "npm/package.json", place)
        run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error",
            f"--cache={place / 'cache'}", "--fetch-retries=1", cwd=place)
        shutil.rmtree(place / "cache")
    return installed("npm", HERE / "npm/package.json", install)


def python_with_mcp() -> Path:
    """A Python that has the official package."""
    if given := os.environ.get("PINFOLD_MCP_PYTHON"):
        return Path(given)

    def install(place: Path) -> None:
        # An environment would not survive being moved; its pip is what Debian does not have.
        run(sys.executable, "-m", "venv", place / "venv", cwd=place)
        run(place / "venv/bin/python", "-m", "pip", "install", "--quiet", "--no-compile",
            "--retries", "1", "--no-cache-dir", "--target", place / "lib",
            "-r", HERE / "pypi/requirements.txt", cwd=place)
        shutil.rmtree(place / "venv")
    return installed("pypi", HERE / "pypi/requirements.txt", install)
