# SPDX-License-Identifier: Apache-2.0
"""More calls at once than the pool has threads: none waits for what waits for it, and whatever ends
something does so at once."""

import asyncio
from pathlib import Path
from typing import Any, Callable

import pytest
from pinfold import ExecuteResult, Sandbox, SandboxManager

from support import local, run

MANY = 600  # the pool has 512


class Least:
    """What a backend has at the least, and commands."""

    def read_file(self, path: str) -> str:
        raise FileNotFoundError(path)

    def write_file(self, path: str, content: Any) -> None:
        raise PermissionError(path)

    def list_dir(self, path: str) -> list[Any]:
        return []

    def remove_file(self, path: str) -> None:
        raise FileNotFoundError(path)

    def execute(self, command: str, timeout: Any = None, cwd: Any = None) -> ExecuteResult:
        return ExecuteResult(command, 0)


class Coroutine(Least):
    """It has its work done by another sandbox, on the loop."""

    def __init__(self, inner: Sandbox):
        self.inner = inner

    async def execute(self, command: str, timeout: Any = None,  # type: ignore[override]
                      cwd: Any = None) -> ExecuteResult:
        return await self.inner.execute(command)


class Plain(Least):
    """The same, on the thread of the call."""

    def __init__(self, inner: Sandbox):
        self.inner, self.loop = inner, asyncio.get_running_loop()

    def execute(self, command: str, timeout: Any = None, cwd: Any = None) -> ExecuteResult:
        return asyncio.run_coroutine_threadsafe(self.inner.execute(command), self.loop).result()


@pytest.mark.parametrize("kind", [Coroutine, Plain])
def test_backends_that_wait_for_other_sandboxes_do_not_hold_their_threads(kind: Any) -> None:
    async def main() -> None:
        async with Sandbox("inner", Least(), 60) as inner, \
                Sandbox("outer", kind(inner), 60) as outer:
            done = await asyncio.gather(*(outer.execute(f"{i}") for i in range(MANY)))
            assert [one.output for one in done] == [f"{i}" for i in range(MANY)]
    run(main())


def test_factories_that_wait_for_other_sandboxes_do_not_hold_their_threads() -> None:
    async def main() -> None:
        manager = SandboxManager()
        async with Sandbox("inner", Least(), 60) as inner:
            async def make() -> Any:
                await inner.list_dir()
                return Least()
            names = [f"made-{i}" for i in range(MANY)]
            made = await asyncio.gather(*(manager.get_or_create(name, make) for name in names))
            assert [one.session_id for one in made] == names
            await asyncio.gather(*(manager.close_session(name, False) for name in names))
    run(main())


async def ended(task: Any) -> bool:
    done, _ = await asyncio.wait([task], timeout=60)
    return bool(done)


def test_what_waits_for_a_thread_is_cancelled_without_one_and_ends_need_none(
        root: Path, tmp_path: Path) -> None:
    """All threads are held by waits for what does not end by itself."""
    async def main() -> None:
        async with local(root) as busy, local(tmp_path / "other", "other") as other:
            terminal = await busy.open_terminal("exec cat")
            waits = [asyncio.ensure_future(terminal.wait()) for _ in range(MANY)]
            try:
                await asyncio.sleep(0)
                calls: list[Callable[[], Any]] = [
                    other.list_dir, lambda: other.execute("touch begun"), other.plan_flush,
                    lambda: other.add_files({"begun": ""}), other.open_terminal]
                for call in calls:
                    task = asyncio.ensure_future(call())
                    await asyncio.sleep(0.01)
                    task.cancel()
                    assert await ended(task) and task.cancelled()
                waits[-1].cancel()
                assert await ended(waits[-1])
                assert not any(one.done() for one in waits[:-1])
                assert await ended(asyncio.ensure_future(other.stop()))
                assert not other.is_started
                assert not (tmp_path / "other" / "begun").exists()
            finally:
                await terminal.close()
                await asyncio.gather(*waits, return_exceptions=True)
            assert (await busy.execute("echo here")).output == "here\n"
    run(main())
