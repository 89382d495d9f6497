# SPDX-License-Identifier: Apache-2.0
"""Terminals in several hands: loops, threads, closers and forks."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any, Callable

import pinfold
import pytest
from pinfold import Sandbox, SandboxCancelledError, Terminal

from support import alive, local, run, until


async def a_terminal(sandbox: Sandbox, root: Path) -> tuple[Terminal, int]:
    """One that would stay, and its process."""
    (root / "pid").unlink(missing_ok=True)
    terminal = await sandbox.open_terminal("echo $$ >pid; trap '' TERM HUP; while :; do sleep 1; done")
    await until(lambda: (root / "pid").exists() and (root / "pid").read_text())
    return terminal, int((root / "pid").read_text())


def in_loop(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """work on a loop of its own, in a thread of its own; and what it gave or raised."""
    told: list[Any] = []

    def alone() -> None:
        async def main() -> None:
            told.append((await asyncio.gather(work(), return_exceptions=True))[0])
        asyncio.run(main(), debug=True)  # it sees what is called from a wrong thread
    thread = threading.Thread(target=alone)
    thread.start()
    return thread, told


async def ends(threads: list[tuple[threading.Thread, list[Any]]]) -> list[Any]:
    for thread, _ in threads:
        await asyncio.wait_for(asyncio.to_thread(thread.join), 60)
    return [told[0] for _, told in threads]


def test_a_close_ends_what_other_loops_wait_for(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            for _ in range(5):
                terminal, pid = await a_terminal(sandbox, root)
                begun = threading.Semaphore(0)

                async def use(how: Callable[[], Any]) -> None:
                    begun.release()
                    while True:
                        await how()
                others = [in_loop(lambda how=how: use(how)) for how in
                          (terminal.read, terminal.wait, lambda: terminal.write("x" * 65536)) * 2]
                for _ in others:
                    await asyncio.to_thread(begun.acquire)
                await asyncio.wait_for(terminal.close(), 60)
                assert not alive(pid)
                # What came when it was closed already is told so.
                for error in await ends(others):
                    assert isinstance(error, (SandboxCancelledError, ValueError)), error
    run(main())


def test_whoever_closes_returns_when_it_is_gone(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            terminal, pid = await a_terminal(sandbox, root)

            async def close() -> bool:
                await terminal.close()
                return not alive(pid)
            reader = asyncio.ensure_future(terminal.read())
            others = [in_loop(close) for _ in range(3)]
            assert all(await asyncio.wait_for(asyncio.gather(*(close() for _ in range(3))), 60))
            assert all(one is True for one in await ends(others))
            await asyncio.gather(reader, return_exceptions=True)
            await terminal.close()
            for use in (terminal.read, terminal.wait, lambda: terminal.write("x")):
                with pytest.raises(ValueError, match="closed"):
                    await use()
            for use in (lambda: terminal.resize(1, 1), lambda: terminal.send_signal(signal.SIGINT),
                        terminal.kill):
                with pytest.raises(ValueError, match="closed"):
                    use()
    run(main())


def test_a_close_needs_no_thread_that_readers_hold(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            terminal, pid = await a_terminal(sandbox, root)
            readers = [asyncio.ensure_future(terminal.wait()) for _ in range(600)]
            await asyncio.sleep(0.2)
            await asyncio.wait_for(terminal.close(), 120)
            assert not alive(pid)
            for error in await asyncio.gather(*readers, return_exceptions=True):
                assert isinstance(error, (SandboxCancelledError, ValueError)), error
    run(main())


def test_a_fork_can_neither_use_nor_end_a_terminal_of_its_parent(root: Path) -> None:
    code = """
        import asyncio, os, signal, sys, warnings
        from pinfold import LocalSandboxBackend, Sandbox
        warnings.simplefilter("ignore")
        root = sys.argv[1]
        async def child(terminal):
            for use in (terminal.read, terminal.wait, lambda: terminal.write("child\\n"),
                        lambda: terminal.resize(1, 1), terminal.kill,
                        lambda: terminal.send_signal(signal.SIGINT), terminal.close):
                try:
                    done = use()
                    print(await done if asyncio.iscoroutine(done) else done)
                except Exception as error:
                    print(type(error).__name__)
            sys.stdout.flush()
        async def main():
            async with Sandbox("job", LocalSandboxBackend(root), 60) as sandbox:
                terminal = await sandbox.open_terminal("stty -echo; : >up; read x; echo $x; read x")
                while not os.path.exists(root + "/up"):
                    await asyncio.sleep(0.01)
                reader = asyncio.ensure_future(terminal.read())
                await asyncio.sleep(0.1)
                pid = os.fork()
                if pid == 0:
                    asyncio._set_running_loop(None)
                    asyncio.run(child(terminal))
                    os._exit(0)
                print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), reader.done())
                await terminal.write("parent\\n")
                print((await reader).decode().strip())
                await terminal.close()
        asyncio.run(main())
        """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(code), root], text=True,
                           capture_output=True, check=False, timeout=300,
                           env={**os.environ, "PYTHONPATH": str(Path(pinfold.__file__).parents[1])})
    assert child.stdout.split() == (["SandboxStartError"] * 6 + ["None", "child", "0", "False",
                                                                "parent"]), child
