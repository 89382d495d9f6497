# SPDX-License-Identifier: Apache-2.0
"""What clears away has its time, whatever was cancelled, and the cancelling goes on after it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from pinfold import (AfterInvocationEvent, Agent, AgentConfig, FileInfo, HookRegistry, Sandbox,
                     SandboxManager, SandboxMode, WorkspaceSyncResult, close_sandbox_workspace,
                     prepare_workspace)

from pinfold.integrations import _steps

from support import local, run, until


class Backend:
    """Of a service, say: its end takes a while, and is asked for over a network."""

    def __init__(self, creates: float = 0, syncs: float = 0, closes: float = 0.2) -> None:
        self.heard: list[str] = []
        self.creates, self.syncs, self.closes = creates, syncs, closes

    async def _take(self, what: str, seconds: float) -> None:
        self.heard.append(what)
        try:
            await asyncio.sleep(seconds)
            self.heard.append(f"{what} ended")
        except asyncio.CancelledError:
            self.heard.append(f"{what} cancelled")
            raise

    async def create(self) -> None:
        await self._take("create", self.creates)

    async def close(self) -> None:
        await self._take("close", self.closes)

    async def sync_artifacts(self, dest: str, include: Any, exclude: Any) -> WorkspaceSyncResult:
        await self._take("sync", self.syncs)
        return WorkspaceSyncResult(1, 1)

    def read_file(self, path: str) -> str:
        return ""

    def write_file(self, path: str, content: Any) -> None: ...

    def list_dir(self, path: str) -> list[FileInfo]:
        return []

    def remove_file(self, path: str) -> None: ...


async def cancelled(work: Any, backend: Backend, when: str, times: int = 1) -> None:
    """Cancel it when the backend has heard of something; the cancelling is what comes of it."""
    task = asyncio.ensure_future(work)
    await until(lambda: when in backend.heard)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("times", [1, 3])
def test_a_close_is_finished_when_stop_is_cancelled_in_it(times: int) -> None:
    async def main() -> None:
        backend = Backend()
        sandbox = Sandbox("cleanup", backend, 60)
        await sandbox.start()
        await cancelled(sandbox.stop(), backend, "close", times)
        assert backend.heard[2:] == ["close", "close ended"] and not sandbox.is_started
    run(main())


def test_a_close_is_begun_when_stop_was_cancelled_before_it(tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend(syncs=1000)
        sandbox = Sandbox("cleanup", backend, 60, sync_dest=tmp_path)
        await sandbox.start()
        await cancelled(sandbox.stop(), backend, "sync")
        assert backend.heard[2:] == ["sync", "sync cancelled", "close", "close ended"]
    run(main())


def test_a_close_is_finished_when_the_block_is_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        backend = Backend()

        async def block(again: bool) -> None:
            async with Sandbox("cleanup", backend, 60):
                backend.heard.append("in it")
                if again:
                    return
                await asyncio.sleep(1000)

        for when, again in ("in it", False), ("close", True):
            backend.heard.clear()
            await cancelled(block(again), backend, when)
            assert backend.heard[-2:] == ["close", "close ended"]
    run(main())


def test_a_close_is_finished_when_a_start_is_cancelled() -> None:
    async def main() -> None:
        backend = Backend(creates=1000)
        await cancelled(Sandbox("cleanup", backend, 60).start(), backend, "create")
        assert backend.heard[:2] == ["create", "create cancelled"]
        assert backend.heard[2:] in ([], ["close", "close ended"])
    run(main())


def test_a_close_is_finished_wherever_sessions_are_closed() -> None:
    async def main() -> None:
        backend, manager = Backend(), SandboxManager()
        await manager.get_or_create("cleanup", lambda: backend)
        await cancelled(manager.close_session("cleanup"), backend, "close")
        assert backend.heard[-2:] == ["close", "close ended"]
        backend.heard.clear()
        agent = Agent(AgentConfig(execution_backend=backend, sandbox_mode=SandboxMode.SANDBOX))
        await prepare_workspace(agent)
        await cancelled(close_sandbox_workspace(agent), backend, "close")
        assert backend.heard[-2:] == ["close", "close ended"]
    run(main())


def test_a_close_does_not_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinfold._bridge._CLEANUP_SECONDS", 0.2)

    async def main() -> None:
        backend = Backend(closes=1000)
        sandbox = Sandbox("cleanup", backend, 60)
        await sandbox.start()
        begun = time.monotonic()
        await cancelled(sandbox.stop(), backend, "close")
        assert time.monotonic() - begun > 0.2
        assert backend.heard[-2:] == ["close", "close cancelled"] and not sandbox.is_started
    run(main())


def test_a_close_that_nobody_cancels_takes_as_long_as_it_takes(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinfold._bridge._CLEANUP_SECONDS", 0.01)

    async def main() -> None:
        backend = Backend(closes=0.5)
        async with Sandbox("cleanup", backend, 60):
            pass
        assert backend.heard[-1] == "close ended"
    run(main())


def test_the_loop_goes_on_while_a_close_is_finished() -> None:
    async def main() -> None:
        backend = Backend(closes=0.3)
        sandbox = Sandbox("cleanup", backend, 60)
        await sandbox.start()
        task = asyncio.ensure_future(cancelled(sandbox.stop(), backend, "close"))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        await task
        assert turns > 20
    run(main())


def test_hooks_after_a_cancelled_invocation_are_finished() -> None:
    heard: list[str] = []

    class Model:
        async def converse(self, _request: Any) -> str:
            heard.append("asked")
            await asyncio.sleep(1000)
            return ""

    class Provider:
        def register_hooks(self, registry: HookRegistry, **_kwargs: Any) -> None:
            registry.add_callback(AfterInvocationEvent, self.after)

        async def after(self, event: AfterInvocationEvent) -> None:
            await asyncio.sleep(0.1)
            heard.append(f"after {event.success}")

    async def main() -> None:
        agent = Agent(AgentConfig(model=Model(), hooks=[Provider()]))
        task = asyncio.ensure_future(agent.invoke_async("go"))
        await until(lambda: heard)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard == ["asked", "after False"]
    run(main())


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("operation", ["fetch", "store"])
def test_nothing_is_left_in_a_workspace_of_what_an_adapter_took_through_it(
        root: Path, tmp_path: Path, operation: str, at: int) -> None:
    """Ctrl-C may come when a call is done, and before that is known. at: of which call."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"data")
    sandbox = local(root)
    run(sandbox.start())
    steps = _steps.fetch(sandbox._core, str(outside)) if operation == "fetch" \
        else _steps.store(sandbox._core, str(outside), b"new")
    number, answer = 0, None
    try:
        call = next(steps)
        while True:
            failure: BaseException | None = None
            try:
                answer = _steps.blocking(call)
            except Exception as error:  # pylint: disable=broad-except
                failure = error
            if number == at:
                failure = KeyboardInterrupt()
            number += 1
            call = steps.send(answer) if failure is None else steps.throw(failure)
    except (StopIteration, KeyboardInterrupt) as end:
        assert isinstance(end, KeyboardInterrupt) == (number > at)
    run(sandbox.stop())
    assert list(root.iterdir()) == []
