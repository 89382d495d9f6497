# SPDX-License-Identifier: Apache-2.0
"""How many requests the operations of remote backends take. Each is a round trip, and a service may
be far: what grows with the number of files, or grows by an oversight, would be felt by everybody."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from owners import BUILD

PROGRAM = Path(__file__).resolve().parents[1] / "remote_requests.py"


def measure(service: str, place: Path) -> dict[str, dict[str, int]]:
    """The requests of each operation, without the polls that are as many as a command is long."""
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "TMPDIR": str(place)}
    done = subprocess.run([sys.executable, PROGRAM, service, "--files", "1", "10", "1000"], env=env,
                          stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    assert list(place.iterdir()) == []
    return {one["name"]: {name: count for name, count in one["requests"].items()
                          if name not in POLLS}
            for one in json.loads(done.stdout)["operations"]}


POLLS = ("session.command", "sandbox.get")
