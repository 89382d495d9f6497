# SPDX-License-Identifier: Apache-2.0
"""The table of descriptors is large before there are threads: the kernel lets all of a process that
grows it later wait, an event loop that begins 200 calls too."""

import os
import resource
import subprocess
import sys
from typing import Callable

import pytest
from owners import BUILD

ENV = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
SIZES = """
import os
def size():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("FDSize:"))
before = os.listdir("/proc/self/fd")
import pinfold
assert os.listdir("/proc/self/fd") == before, "something stays open"
print(size(), flush=True)
child = os.fork()
if child == 0:
    print(size(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def limited(most: int) -> Callable[[], None]:
    """For another process: so many descriptors."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@pytest.mark.parametrize("most", [1 << 13, 4096, 1024, 100])
def test_there_is_room_from_the_import_on_and_in_a_fork(most: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most > hard != resource.RLIM_INFINITY:
        most = hard
    said = subprocess.run([sys.executable, "-c", SIZES], preexec_fn=limited(most), check=True,
                          env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True).stdout
    assert [int(size) >= min(most, 4096) for size in said.split()] == [True, True], said


def test_it_takes_no_standard_input() -> None:
    said = subprocess.run([sys.executable, "-c", SIZES.replace("assert os.listdir", "# ")],
                          preexec_fn=lambda: os.close(0), check=True, env=ENV,
                          stdout=subprocess.PIPE, text=True).stdout
    assert [int(size) >= 1024 for size in said.split()] == [True, True], said
