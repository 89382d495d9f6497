# SPDX-License-Identifier: Apache-2.0
"""The table of descriptors is large before there are threads: the kernel lets all of a process that
grows it later wait, an event loop that begins 200 calls too."""

import os
import resource
import subprocess
import sys
from pathlib import Path
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


ENDS = """
import asyncio, errno, os, resource, sys
from pinfold import (Agent, AgentConfig, LocalSandboxBackend, Sandbox, SandboxManager, SandboxMode,
                     close_sandbox_workspace, prepare_workspace)

def leave(count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))

async def a_sandbox(backend):
    sandbox = Sandbox("one", backend, 3600)
    await sandbox.start()
    return lambda: sandbox.stop(sync=False), lambda: sandbox.read_file("x")

async def a_terminal(backend):
    sandbox = Sandbox("one", backend, 3600)
    await sandbox.start()
    terminal = await sandbox.open_terminal("sleep 1000")
    async def end():
        await terminal.close()
        await sandbox.stop()
    return end, lambda: sandbox.read_file("x")

async def a_backend(backend):
    await backend.create()
    return backend.close, lambda: backend.read_file("x")

async def a_session(backend):
    manager = SandboxManager(ttl_seconds=None)
    await manager.claim_session("one", lambda: backend, "me")
    return lambda: manager.close_session("one", False), lambda: backend.read_file("x")

async def a_session_that_expires(backend):
    manager = SandboxManager(ttl_seconds=0.01)
    await manager.get_or_create("one", lambda: backend)
    async def end():
        while manager.get_session("one"):
            await manager.cleanup_expired()
    return end, lambda: backend.read_file("x")

async def a_workspace(backend):
    agent = Agent(AgentConfig(execution_backend=backend, sandbox_mode=SandboxMode.SANDBOX))
    await prepare_workspace(agent)
    return lambda: close_sandbox_workspace(agent, False), lambda: backend.read_file("x")

async def main(kind):
    root = sys.argv[1]
    backend = LocalSandboxBackend(root)
    open(root + "/x", "w").close()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    end, other = await globals()[kind](backend)
    leave(3)
    try:
        await other()
        print("there were descriptors")
    except OSError as error:
        assert error.errno == errno.EMFILE, error
    await end()
    leave(before)
    await (await globals()[kind](LocalSandboxBackend(root)))[0]() # it can be had again
    print("ended")

asyncio.run(main(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["a_sandbox", "a_terminal", "a_backend", "a_session",
                                  "a_session_that_expires", "a_workspace"])
def test_who_is_out_of_them_can_end_what_has_some(tmp_path: Path, kind: str) -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", ENDS, tmp_path, kind], env=ENV,
                          capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("ended\n", 0), done.stderr
