# SPDX-License-Identifier: Apache-2.0
"""
The official SDK against the fake. PINFOLD_DAYTONA_SDK names a Python that has it; else it is
installed for this test, from wherever pip is told to.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from daytona_client import FAKE

SDK = "daytona==0.226.1"
# A part of what it takes to install one more; the script for a while on a loaded machine.
INSTALL_SECONDS, RUN_SECONDS = 400, 600


@pytest.fixture(scope="module")
def python() -> Iterator[str]:
    if given := os.environ.get("PINFOLD_DAYTONA_SDK"):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="pinfold-sdk-") as path:
        installed = Path(path) / "venv/bin/python"
        try:
            subprocess.run([sys.executable, "-m", "venv", installed.parents[1]], check=True,
                           capture_output=True, timeout=INSTALL_SECONDS)
            subprocess.run([installed, "-m", "pip", "install", "--quiet", "--no-compile",
                            "--retries", "1", SDK], check=True, capture_output=True,
                           timeout=INSTALL_SECONDS, env={**os.environ, "TMPDIR": path})
        except (subprocess.SubprocessError, OSError):
            pytest.skip("Daytona's SDK cannot be installed")
        yield str(installed)


@pytest.mark.parametrize("config", [
    {"create_polls": 3}, {"daemon_version": "0.204.0", "create_waits": 30}])
def test_the_official_sdk_is_content(python: str, tmp_path: Path, config: dict) -> None:
    script = FAKE.with_name("sdk_script.py")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1",
               "PINFOLD_FAKE_DAYTONA_CONFIG": json.dumps({**config, "orphans": False})}
    done = subprocess.run(
        [sys.executable, FAKE.with_name("with_fake.py"), python, "-W", "ignore", script],
        env=environ, capture_output=True, text=True, cwd=tmp_path, timeout=RUN_SECONDS)
    assert (done.returncode, done.stdout) == (0, "everything was done\n"), done.stderr
    assert list(tmp_path.iterdir()) == []
