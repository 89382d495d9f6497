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


# As many as an operation is long.
POLLS = ("session.command", "sandbox.get")
SESSION = {"session.create": 1, "session.exec": 1, "session.logs": 1, "session.delete": 1}
SEED = {**SESSION, "files.bulk-upload": 1}
EXPECTED = {
    "agentcore": {
        "start": {"StartCodeInterpreterSession": 1, "InvokeCodeInterpreter": 1},
        'execute("true")': {"InvokeCodeInterpreter": 1},
        "write_file of 1 KiB": {"InvokeCodeInterpreter": 1},
        "read_file of 1 KiB": {"InvokeCodeInterpreter": 1},
        "download of 1 KiB": {"InvokeCodeInterpreter": 1},
        "seed of 1 file": {"InvokeCodeInterpreter": 2},
        "seed of 10 files": {"InvokeCodeInterpreter": 2},
        "seed of 1,000 files": {"InvokeCodeInterpreter": 2},
        "flush of 10 changed of 1,000": {"InvokeCodeInterpreter": 2},
        "stop": {"StopCodeInterpreterSession": 1},
    },
    "daytona": {
        "start": {"sandbox.list": 1, "sandbox.create": 1, "process.execute": 1},
        'execute("true")': SESSION,
        "write_file of 1 KiB": {"files.bulk-upload": 1, "process.execute": 1},
        "read_file of 1 KiB": {"process.execute": 1, "files.download": 1},
        "download of 1 KiB": {"process.execute": 1, "files.bulk-download": 1},
        "seed of 1 file": SEED,
        "seed of 10 files": SEED,
        "seed of 1,000 files": SEED,
        # The list comes with its log, the files are more than that.
        "flush of 10 changed of 1,000": {**{name: 2 for name in SESSION}, "files.download": 1,
                                         "files.delete": 1},
        "stop": {"sandbox.delete": 1},
    },
}


@pytest.mark.parametrize("service", EXPECTED)
def test_an_operation_takes_so_many_requests_whatever_it_moves(service: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run([sys.executable, "-B", PROGRAM, service, "--files", "1", "10", "1000"],
                          env=env, stdout=subprocess.PIPE, text=True, timeout=600, check=True)
    found = {one["name"]: {name: count for name, count in one["requests"].items()
                           if name not in POLLS}
             for one in json.loads(done.stdout)["operations"]}
    assert found == EXPECTED[service]
