# SPDX-License-Identifier: Apache-2.0
"""Whatever ends an await ends the command first; loops and threads do not disturb each other."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Callable

import pytest
from pinfold import (Agent, AgentConfig, ExecuteResult, IsolatedSandboxBackend,
                     LocalSandboxBackend, Sandbox, SandboxCancelledError, SandboxManager,
                     SandboxMode, _pinfold, close_sandbox_workspace, prepare_workspace,
                     workspace_is_prepared)

from support import LONG, alive, local, resident, run, started, until


async def by_timeout(work: Any, ready: Callable[[], Any]) -> None:
    """asyncio.wait_for is asyncio.timeout before Python 3.11."""
    task = asyncio.ensure_future(work)
    await until(ready)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(task, 0.01)


async def by_cancel(work: Any, ready: Callable[[], Any]) -> None:
    task = asyncio.ensure_future(work)
    await until(ready)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_two_cancels(work: Any, ready: Callable[[], Any]) -> None:
    task = asyncio.ensure_future(work)
    await until(ready)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("how", [by_timeout, by_cancel, by_two_cancels])
def test_kills_before_the_await_returns(root: Path, how: Any) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await how(sandbox.execute(LONG), lambda: started(root))
            assert not any(alive(pid) for pid in started(root))
            assert (await sandbox.execute("echo still here")).output == "still here\n"
    run(main())


def test_kills_what_ignores_polite_signals(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await by_cancel(sandbox.execute("trap '' TERM INT HUP; " + LONG + "; wait"),
                            lambda: started(root))
            assert not any(alive(pid) for pid in started(root))
    run(main())


def test_kills_in_an_isolated_sandbox(tmp_path: Path) -> None:
    async def main() -> None:
        async with Sandbox("walls-cancel", IsolatedSandboxBackend(tmp_path / "w"), 60) as sandbox:
            await by_cancel(sandbox.execute("echo > up; exec sleep 1000"),
                            (tmp_path / "w/up").exists)
            listed = await sandbox.execute("cat /proc/[0-9]*/comm")
            assert "sleep" not in listed.output.split()
    run(main())


def test_cancels_what_waits_for_a_thread(root: Path) -> None:
    """More calls than there are threads: the rest waits, and can be cancelled too."""
    async def main() -> None:
        async with local(root) as sandbox:
            tasks = [asyncio.ensure_future(sandbox.read_file("nothing")) for _ in range(1500)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(one) for one in done} <= {asyncio.CancelledError, FileNotFoundError}
    run(main())


async def a_sandbox(root: Path) -> Any:
    sandbox = local(root)
    await sandbox.start()
    return sandbox.stop, lambda: not sandbox.is_started


async def a_session(root: Path) -> Any:
    manager = SandboxManager(ttl_seconds=None)
    await manager.claim_session("one", lambda: LocalSandboxBackend(root), "me")
    return lambda: manager.close_session("one", False), lambda: manager.get_session("one") is None


async def a_workspace(root: Path) -> Any:
    agent = Agent(AgentConfig(execution_backend=LocalSandboxBackend(root),
                              sandbox_mode=SandboxMode.SANDBOX))
    await prepare_workspace(agent)
    return lambda: close_sandbox_workspace(agent, False), lambda: not workspace_is_prepared(agent)


async def a_terminal(root: Path, waits: bool = False) -> Any:
    sandbox = local(root)
    await sandbox.start()
    (root / "pid").unlink(missing_ok=True)
    terminal = await sandbox.open_terminal("echo $$ >pid; exec sleep 1000")
    await until(lambda: (root / "pid").exists() and (root / "pid").read_text())
    pid = int((root / "pid").read_text())
    reader = asyncio.ensure_future(terminal.wait()) if waits else None
    await asyncio.sleep(0)  # it has begun

    async def close() -> None:
        try:
            await terminal.close()
        finally:
            gone = not alive(pid)
            try:  # a close that was quick is over when the cancelling comes: it comes here
                if reader is not None:
                    await asyncio.gather(reader, return_exceptions=True)
            finally:
                await sandbox.stop()
            assert gone

    return close, lambda: not alive(pid)


async def a_terminal_that_is_waited_for(root: Path) -> Any:
    return await a_terminal(root, True)


@pytest.mark.parametrize("kind", [a_sandbox, a_session, a_workspace, a_terminal,
                                  a_terminal_that_is_waited_for])
def test_what_ends_something_does_so_when_it_is_cancelled_as_well(root: Path, kind: Any) -> None:
    async def main() -> None:
        for turns in list(range(5)) * 8:  # each time somewhere else
            end, has_ended = await kind(root)
            task = asyncio.ensure_future(end())
            await asyncio.sleep(0)  # it has begun
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            done = await asyncio.gather(task, return_exceptions=True)
            assert done[0] is None or isinstance(done[0], asyncio.CancelledError), done
            assert has_ended(), turns
    run(main())


def test_who_reads_again_does_not_keep_a_terminal_open(root: Path) -> None:
    """A reader that goes on after any failure: what it asks for while the terminal is closed, and
    later, is refused."""
    async def main() -> None:
        sandbox = local(root)
        await sandbox.start()
        terminal = await sandbox.open_terminal("exec sleep 1000")
        told: list[Exception] = []

        async def goes_on(ask: Callable[[], Any]) -> None:
            for _ in range(3):
                try:
                    await ask()
                except Exception as error:  # pylint: disable=broad-except
                    told.append(error)

        asks = [asyncio.ensure_future(goes_on(one)) for one in (terminal.read, terminal.wait)]
        await asyncio.sleep(0.2)
        await asyncio.wait_for(terminal.close(), 60)
        await asyncio.wait_for(asyncio.gather(*asks), 60)
        assert {type(one) for one in told} == {SandboxCancelledError, ValueError}
        assert len(told) == 6
        await sandbox.stop()
    run(main())


def test_undoes_a_start_that_is_cancelled(root: Path, tmp_path: Path) -> None:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed/big").write_bytes(b"x" * 1000)

    async def main() -> None:
        for _ in range(50):  # each time somewhere else in the start
            sandbox = local(root, seed_from=tmp_path / "seed")
            task = asyncio.ensure_future(sandbox.start())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not sandbox.is_started
    run(main())


def test_starts_for_one_when_another_is_cancelled(root: Path) -> None:
    async def main() -> None:
        for _ in range(20):
            sandbox = local(root)
            first, second = (asyncio.ensure_future(sandbox.start()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            await second
            assert sandbox.is_started
            await asyncio.wait([first])
            assert sandbox.is_started
            await sandbox.stop()
    run(main())


def test_ends_when_the_loop_is_closed_under_it(root: Path) -> None:
    """Nobody waits any more: the call is cancelled when its coroutine is thrown away."""
    async def begin() -> None:
        await sandbox.start()
        tasks.append(asyncio.ensure_future(sandbox.execute(LONG)))
        await until(lambda: started(root))

    sandbox = local(root)
    tasks: list[Any] = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    pids = started(root)
    tasks[0].get_coro().close()
    tasks[0]._log_destroy_pending = False
    tasks.clear()
    loop.close()
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    run(sandbox.stop())


class Waits:
    """A backend whose commands are coroutines."""

    began = False

    def read_file(self, _path: str) -> str:
        return ""

    def write_file(self, _path: str, _content: Any) -> None: ...

    async def execute(self, _command: str, timeout: Any = None, cwd: Any = None) -> Any:
        self.began = True
        await asyncio.sleep(1000)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_loop_that_is_closed_keeps_nothing(root: Path, written: bool, kept: bool) -> None:
    """Its commands are ended there and then, and tasks that nobody else has are gone."""
    tasks: list[Any] = []

    async def begin() -> weakref.ref[Sandbox]:
        waits = Waits()
        sandbox = Sandbox("job", waits if written else LocalSandboxBackend(root), 60)
        await sandbox.start()
        task = asyncio.ensure_future(sandbox.execute(LONG))
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        await until(lambda: waits.began if written else started(root))
        if kept:
            tasks.append(task)
        return weakref.ref(sandbox)

    loop = asyncio.new_event_loop()
    sandbox = loop.run_until_complete(begin())
    pids = [] if written else started(root)
    loop.close()
    del loop
    assert _pinfold.wait_idle(60)
    assert not any(alive(pid) for pid in pids)
    tasks.clear()
    gc.collect()
    assert sandbox() is None


@pytest.mark.parametrize("closed", [False, True])
def test_a_coroutine_runs_on_the_loop_that_waits_or_nowhere(closed: bool) -> None:
    """Also when that has stopped, or is closed, before it is made."""
    asked, go = threading.Event(), threading.Event()
    ran: list[Any] = []

    class Late(Waits):
        def execute(self, *_args: Any, **_options: Any) -> Any:  # type: ignore[override]
            async def work() -> ExecuteResult:
                ran.append(asyncio.get_running_loop())
                return ExecuteResult("done", 0)
            asked.set()
            assert go.wait(60)
            return work()

    async def begin() -> Any:
        await sandbox.start()
        task = asyncio.ensure_future(sandbox.execute("late"))
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        await until(asked.is_set)
        return task

    sandbox, loop = Sandbox("job", Late(), 60), asyncio.new_event_loop()
    task = loop.run_until_complete(begin())
    if closed:
        loop.close()
    go.set()
    if closed:
        assert _pinfold.wait_idle(60) and ran == []
    else:
        assert loop.run_until_complete(task).output == "done" and ran == [loop]
        loop.close()
    run(sandbox.stop())


def test_stays_responsive_while_200_commands_run(root: Path) -> None:
    """Each of them waits for the loop: if one held it up, none would ever end."""
    async def main() -> None:
        async with local(root) as sandbox:
            os.mkfifo(root / "go")
            handle = os.open(root / "go", os.O_RDWR)
            tasks = [asyncio.ensure_future(sandbox.execute(f": > s{i}; read x < go"))
                     for i in range(200)]
            await until(lambda: len(list(root.glob("s*"))) == 200)
            for _ in range(200):
                await asyncio.sleep(0)
                os.write(handle, b"\n")
            assert {result.exit_code for result in await asyncio.gather(*tasks)} == {0}
            os.close(handle)
    run(main())


def test_serves_several_loops_and_threads(root: Path) -> None:
    failures: list[BaseException] = []
    sandbox = local(root)

    def work(number: int) -> None:
        async def main() -> None:
            for i in range(5):
                name = f"f{number}-{i}"
                await sandbox.add_files({name: name})
                assert (await sandbox.execute(f"cat {name}")).output == name
        try:
            asyncio.run(main())
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    run(sandbox.start())
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run(sandbox.stop())
    assert failures == []


PRELUDE = """
import asyncio, os, signal, sys, time
from pinfold import LocalSandboxBackend, Sandbox
root = sys.argv[1]
LONG = "echo $$ > pid; sleep 1000 & echo $! > child; wait"
"""


def script(text: str, root: Path) -> subprocess.Popen:
    """A Python program of its own."""
    import pinfold
    path = str(Path(pinfold.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", PRELUDE + textwrap.dedent(text), str(root)],
        env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_ends_on_ctrl_c(root: Path) -> None:
    child = script("""
        async def main():
            async with Sandbox("job", LocalSandboxBackend(root), 60) as sandbox:
                try:
                    await sandbox.execute(LONG)
                finally:
                    pids = [open(f"{root}/{name}").read().strip() for name in ("pid", "child")]
                    alive = [pid for pid in pids if os.path.exists(f"/proc/{pid}")
                             and open(f"/proc/{pid}/stat").read().split()[2] != "Z"]
                    print("alive", alive)
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
        """, root)

    async def main() -> None:
        await until(lambda: started(root))
        child.send_signal(2)
    run(main())
    out, err = child.communicate(timeout=300)
    assert out == "alive []\ninterrupted\n", err
    assert child.returncode == 0


def test_ctrl_c_ends_a_tool_that_is_called_directly(root: Path) -> None:
    child = script("""
        from pinfold import Agent, AgentConfig
        async def main():
            sandbox = Sandbox("job", LocalSandboxBackend(root), 60)
            await sandbox.start()
            return sandbox
        sandbox = asyncio.run(main())
        agent = Agent(AgentConfig(sandbox=sandbox))
        try:
            agent.tool.execute(command=LONG)
        except KeyboardInterrupt:
            pids = [open(f"{root}/{name}").read().strip() for name in ("pid", "child")]
            alive = [pid for pid in pids if os.path.exists(f"/proc/{pid}")
                     and open(f"/proc/{pid}/stat").read().split()[2] != "Z"]
            print("alive", alive)
        """, root)

    async def main() -> None:
        await until(lambda: started(root))
        child.send_signal(2)
    run(main())
    out, err = child.communicate(timeout=300)
    assert out == "alive []\n", err
    assert child.returncode == 0


@pytest.mark.parametrize("how", ["execute(LONG)", "_steps.here(steps())"])
def test_ctrl_c_ends_what_an_adapter_waits_for_without_a_loop(root: Path, how: str) -> None:
    """And what waits in other threads than the main one goes on."""
    child = script(f"""
        import threading
        from pathlib import Path
        from pinfold.integrations import _steps
        def execute(command):
            return _steps.blocking(sandbox._core.execute(command, None, None, None, None, False, 0,
                                                         False))
        def steps():
            yield sandbox._core.execute(LONG, None, None, None, None, False, 0, False)
        sandbox = Sandbox("job", LocalSandboxBackend(root), 60)
        asyncio.run(sandbox.start())
        os.mkfifo(root + "/go")
        other = threading.Thread(target=lambda: print(execute("read x < go; echo $x")[0], end=""))
        other.start()
        try:
            {how}
        except KeyboardInterrupt:
            pids = [Path(root, name).read_text().strip() for name in ("pid", "child")]
            print("alive", [pid for pid in pids if os.path.exists(f"/proc/{{pid}}")
                            and Path(f"/proc/{{pid}}/stat").read_text().split()[2] != "Z"])
        with open(root + "/go", "w") as go:
            go.write("went on")
        other.join()
        asyncio.run(sandbox.stop())
        """, root)

    async def main() -> None:
        await until(lambda: started(root))
        child.send_signal(2)
    run(main())
    out, err = child.communicate(timeout=300)
    assert out == "alive []\nwent on\n", err
    assert child.returncode == 0


def test_exits_cleanly_with_a_live_sandbox(root: Path) -> None:
    child = script("""
        async def main():
            global sandbox
            sandbox = Sandbox("job", LocalSandboxBackend(root), 60)
            await sandbox.start()
            global task
            task = asyncio.ensure_future(sandbox.execute(LONG))
            while not os.path.exists(f"{root}/child"):
                await asyncio.sleep(0.01)
            os.environ.get("never")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        task._log_destroy_pending = False
        print("end")
        """, root)
    out, err = child.communicate(timeout=300)
    assert (out, child.returncode) == ("end\n", 0), err
    assert "Fatal" not in err and "Segmentation" not in err

    async def main() -> None:
        await until(lambda: not any(alive(pid) for pid in started(root)))
    run(main())


def test_exits_cleanly_when_a_loop_stopped_under_a_backend(root: Path) -> None:
    """The coroutine of a backend in Python will never go on; its close is still called."""
    child = script("""
        class Backend:
            def read_file(self, path): return ""
            def write_file(self, path, content): pass
            async def close(self): print("closed")
            async def execute(self, command, timeout=None, cwd=None, **kwargs):
                began.set()
                await asyncio.sleep(1000)
        async def main():
            global sandbox, task, began
            began = asyncio.Event()
            sandbox = Sandbox("job", Backend(), 60)
            await sandbox.start()
            task = asyncio.ensure_future(sandbox.execute("wait"))
            await began.wait()
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        task._log_destroy_pending = False
        """, root)
    out, err = child.communicate(timeout=300)
    assert (out, child.returncode) == ("closed\n", 0), err


def test_exits_cleanly_from_an_isolated_sandbox(tmp_path: Path) -> None:
    """Its temporary workspace is gone too."""
    place = tmp_path / "tmp"
    place.mkdir()
    child = script("""
        from pinfold import IsolatedSandboxBackend
        os.environ["TMPDIR"] = root
        async def main():
            global sandbox
            sandbox = Sandbox("job", IsolatedSandboxBackend(), 60)
            await sandbox.start()
            print((await sandbox.execute("echo x > y; cat y")).output)
        asyncio.run(main())
        """, place)
    out, err = child.communicate(timeout=300)
    assert (out, child.returncode) == ("x\n\n", 0), err
    assert os.listdir(place) == []


def test_leaves_the_parent_its_sandbox_after_a_fork(root: Path) -> None:
    child = script("""
        import warnings
        warnings.simplefilter("ignore")
        async def main():
            sandbox = Sandbox("job", LocalSandboxBackend(root), 60)
            await sandbox.start()
            await sandbox.execute("true")
            return sandbox
        sandbox = asyncio.run(main())
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            async def inside():
                try:
                    await sandbox.execute("true")
                    print("it ran")
                except RuntimeError as error:
                    print(type(error).__name__)
                mine = Sandbox("mine", LocalSandboxBackend(root + "2"), 60)
                async with mine:
                    print((await mine.execute("echo mine")).output, end="")
            asyncio.run(inside())
            del sandbox
            sys.exit(0)
        print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        print(asyncio.run(sandbox.execute("echo parent")).output, end="")
        asyncio.run(sandbox.stop())
        """, root)
    out, err = child.communicate(timeout=300)
    assert out == "SandboxStartError\nmine\nchild 0\nparent\n", err


@pytest.mark.parametrize("how", ["pass", "task.cancel()", "task.get_coro().close()"])
def test_leaves_the_parent_its_command_in_a_fork(root: Path, how: str) -> None:
    """The child neither ends it, by whatever means, nor waits for it."""
    child = script(f"""
        import warnings
        warnings.simplefilter("ignore")
        async def main():
            async with Sandbox("job", LocalSandboxBackend(root), 60) as sandbox:
                os.mkfifo(root + "/go")
                task = asyncio.ensure_future(sandbox.execute(": > up; read x < go; echo $x"))
                while not os.path.exists(root + "/up"):
                    await asyncio.sleep(0.01)
                pid = os.fork()
                if pid == 0:
                    {how}
                    sys.exit(0)
                print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                print(task.done())
                with open(root + "/go", "w") as go:
                    go.write("parent")
                print((await task).output, end="")
        asyncio.run(main())
        """, root)
    out, err = child.communicate(timeout=300)
    assert out == "child 0\nFalse\nparent\n", err


def test_leaks_nothing(root: Path) -> None:
    """Neither memory nor threads grow with the number of calls."""
    async def work(sandbox: Sandbox, count: int) -> None:
        for i in range(count):
            await sandbox.add_files({"f": "x" * 100_000})
            await sandbox.read_file("f")
            await sandbox.list_dir()
            with pytest.raises(FileNotFoundError):
                await sandbox.read_file("none")
            if i % 50 == 0:
                await sandbox.execute("head -c 90000 f", on_output=lambda *_: None)
                await by_cancel(sandbox.execute("sleep 100"), lambda: True)

    async def main() -> None:
        async with local(root) as sandbox:
            await work(sandbox, 100)
            before = resident()
            await work(sandbox, 400)
            # One leaked text of each turn would be 40 MB.
            assert resident() - before < 16 << 20
    run(main())
