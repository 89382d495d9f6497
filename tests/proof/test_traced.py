# SPDX-License-Identifier: Apache-2.0
"""Who watches a command is not held by it, where nothing isolates the two: by tracing it."""

import json

import pytest

from owners import OWNERS, Owner

PYTHON = "/usr/bin/python3"

# Each process above that is the user's own program, up to the owner: to seize it, and to stop it
# for as long as this one lives. The command itself is shown to be one that can be traced.
TRACER = """
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, INTERRUPT = 0x4206, 0x4207
def hold(pid):
    return libc.ptrace(SEIZE, pid, None, None) == 0 and libc.ptrace(INTERRUPT, pid, None, None) == 0
def field(pid, name):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(name + ":"):
            return line.split()[1]
own = subprocess.Popen(["sleep", "50"])
print(hold(own.pid))
pid = os.getppid()
while field(pid, "Name") != "pinfold-super":
    pid = int(field(pid, "PPid"))
print(hold(pid), flush=True)
time.sleep(40)
print("outlived")
"""


# By the ordinary user: root may trace whatever runs.
@pytest.mark.parametrize("owner", OWNERS[-1:], indirect=True)
def test_who_traces_his_supervisor_ends_at_the_deadline(owner: Owner) -> None:
    script = owner.place / "tracer.py"
    script.write_text(TRACER)
    script.chmod(0o644)
    done = owner.run(owner.pinfold, "run", "--backend", "local", "--json", "--timeout", "1",
                     f"{PYTHON} {script}", timeout=35)
    result = json.loads(done.stdout)["execute"]
    assert done.returncode == 124 and result["timed_out"], done.stdout + done.stderr
    assert result["output"].startswith("True\nFalse\n[timed out")
