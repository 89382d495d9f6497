# SPDX-License-Identifier: Apache-2.0
"""Sandbox: one workspace, shared by the agents of this process."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Union

from . import _check as check
from . import _pinfold
from ._backends import OutputConsumer, adopt
from ._check import StrPath, environment
from ._errors import WorkspacePrepareError, as_raised
from ._loop import at_once, live_sandboxes, run
from ._manager import SandboxManager
from ._policy import SandboxAttachMode, WorkspaceSyncPolicy
from ._results import (ExecuteResult, FileInfo, PlanEntry, SandboxRef, WorkspaceSeedResult,
                       WorkspaceSyncResult, seed_result, sync_result, transfer_result)
from ._terminal import MOST_CELLS, Terminal

Content = Union[str, bytes, os.PathLike[str]]


class SandboxView:
    """What may be done without changing the workspace. Sandbox.view() makes one: its commands run
    in a jail of their own, where the workspace is read-only and there is no network."""

    def __init__(self, core: _pinfold.Sandbox):
        self._core = core

    def __repr__(self) -> str:
        state = "started" if self.is_started else "not started"
        return f"<{type(self).__name__} {self.ref().workspace_id!r} {state}>"

    @property
    def is_started(self) -> bool:
        """True after a successful start()."""
        return self._core.is_started

    @property
    def owner_id(self) -> str | None:
        """The token of the current start cycle."""
        return self._core.owner_id

    def ref(self) -> SandboxRef:
        """A handle stub; allowed before start."""
        return SandboxRef(*self._core.ref())

    def view(self, name: str | None = None) -> SandboxView:
        """A read-only view, for whoever may look at everything and change nothing."""
        return SandboxView(self._core.view(name))

    async def execute(self, command: str | Sequence[str], timeout: float | None = None,
                      cwd: str | None = None, *, env: Mapping[str, str] | None = None,
                      max_output_bytes: int | None = None, keep_tail: bool = False,
                      spool_bytes: int = 0,
                      on_output: OutputConsumer | None = None) -> ExecuteResult:
        """Run a shell command, or a list of words. Its failure is a result, not an exception;
        cancelling the task kills it and all that it started.

        timeout: seconds; None: the backend's. keep_tail: of output that is cut, keep both ends.
        spool_bytes: keep up to this many bytes whole, in the result's spool. on_output: a plain
        function, called on the event loop with ("stdout" or "stderr", bytes) as it comes; what it
        raises stops the command and is raised."""
        call = self._core.execute(command, timeout, cwd, environment(env), max_output_bytes,
                                  keep_tail, spool_bytes, on_output is not None)
        if on_output is not None:
            check.plain("on_output", on_output)
            call.stream_to(on_output)
        return ExecuteResult._of(await run(call))

    async def read_file(self, path: StrPath) -> str:
        """A text file, exactly as it is stored."""
        if at_once() and (found := self._core.try_read_file(path)) is not None:
            return found
        text: str = await run(self._core.read_file(path))
        return text

    async def read_lines(self, path: StrPath, offset: int = 0,
                         limit: int | None = None) -> tuple[str, int]:
        """Some lines of a text file, and how many it has. Lines end at "\\n" and keep it."""
        lines: tuple[str, int] = await run(self._core.read_lines(path, offset, limit))
        return lines

    async def list_dir(self, path: StrPath = ".") -> list[FileInfo]:
        """One directory, hidden names included, sorted."""
        return [FileInfo(*entry) for entry in await run(self._core.list_dir(path))]

    async def download_files(self, files: Mapping[str, StrPath],
                             overwrite: bool = True) -> list[str]:
        """Copy files to host paths; returns the sandbox paths that were. All are tried. The error
        has one FileTransferResult for each as its results."""
        check.expect("files", files, Mapping)
        if not all(isinstance(dest, (str, bytes, os.PathLike)) for dest in files.values()):
            raise TypeError("files must lead to host paths")
        try:
            done = await run(self._core.download_files(list(files.items()), overwrite))
        except (OSError, ValueError) as error:
            error.results = [transfer_result(raw)  # type: ignore[union-attr]
                             for raw in getattr(error, "partial", None) or ()]
            raise
        return [path for path, _, _, skipped in done if not skipped]

    async def read_bytes(self, path: str) -> bytes:
        """A file of any kind."""
        done = await run(self._core.download_files([(path, None)], True))
        content: bytes = done[0][1]
        return content


class Sandbox(SandboxView):
    """A workspace that the application makes, starts and stops; agents attach in between.

    async with Sandbox(workspace_id="job", backend=backend, ttl_seconds=3600) as sandbox: ..."""

    def __init__(self, workspace_id: str, backend: Any, ttl_seconds: float,
                 manager: SandboxManager | None = None, seed_from: StrPath | None = None,
                 seed_exclude: Iterable[str] | None = None,
                 sync_policy: WorkspaceSyncPolicy | None = None,
                 sync_dest: StrPath | None = None):
        if manager is not None:
            check.expect("manager", manager, SandboxManager)
        if sync_policy is not None:
            check.expect("sync_policy", sync_policy, WorkspaceSyncPolicy)
        super().__init__(_pinfold.Sandbox(
            workspace_id, adopt(backend), check.positive("ttl_seconds", ttl_seconds),
            None if manager is None else manager._core,
            seed_from, seed_exclude, None if sync_policy is None else sync_policy._raw(),
            sync_dest))
        self.workspace_id = workspace_id
        self.backend = backend
        self.manager = manager
        self._has_seed = seed_from is not None
        self._starting = 0
        self._told: str | None = None  # the owner_id of a start that somebody was told of
        live_sandboxes.add(self)

    # ---- life ----

    async def start(self) -> WorkspaceSeedResult | None:
        """Create the backend, claim the workspace, seed it. Idempotent."""
        self._starting += 1
        try:
            raw = await run(self._core.start())
        except WorkspacePrepareError as error:
            error.result = seed_result(getattr(error, "partial", None))
            raise
        except asyncio.CancelledError:
            # It may have been done just then, and nobody else knows that it is to be stopped.
            if self._starting == 1 and self.owner_id not in (None, self._told):
                await run(self._core.stop(False))
            raise
        finally:
            self._starting -= 1
        self._told = self.owner_id
        return seed_result(raw) if self._has_seed else None

    async def stop(self, sync: bool = True) -> None:
        """Detach all agents, kill what runs, flush if sync, close the backend. Everything is torn
        down, whatever fails; before start, nothing is done."""
        try:
            await run(self._core.stop(sync))
        except WorkspacePrepareError as error:
            error.result = sync_result(getattr(error, "partial", None))
            raise

    async def __aenter__(self) -> Sandbox:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        try:
            await self.stop(sync=True)
        except Exception as failure:
            if error is None:
                raise
            # What the block raised says more, and is what its author waits for.
            logging.getLogger("elsai.sandbox").error("stop of %s: %s", self.workspace_id,
                                                     str(failure))

    # ---- files ----

    async def add_files(self, files: Mapping[str, Content], overwrite: bool = True) -> list[str]:
        """Write files: str is text, a Path a host file. Returns the paths written. All are tried;
        written has those paths when some failed."""
        check.expect("files", files, Mapping)
        try:
            done: list[str] = await run(self._core.add_files(list(files.items()), overwrite))
        except (OSError, ValueError) as error:
            error.written = getattr(error, "partial", None) or []  # type: ignore[union-attr]
            raise
        return done

    async def write_file(self, path: StrPath, content: str | bytes) -> None:
        """Write one file, and the directories that lead to it."""
        await run(self._core.write_file(path, content))

    async def delete_files(self, paths: Iterable[StrPath]) -> None:
        """Delete files; links themselves. All are tried."""
        await run(self._core.delete_files(paths))

    async def move_file(self, src: StrPath, dest: StrPath) -> None:
        """Move one file; one at dest is replaced."""
        await run(self._core.move_file(src, dest))

    # ---- bringing home ----

    async def flush(self, dest: StrPath | None = None) -> WorkspaceSyncResult | None:
        """Copy artifacts to the host, as the policy says; never deletes. None: no destination."""
        return sync_result(await run(self._core.flush(dest)))

    async def plan_seed(self) -> list[PlanEntry] | None:
        """What start() would copy or skip, and why. None: nothing to seed from."""
        return _plan(await run(self._core.plan_seed()))

    async def plan_flush(self, dest: StrPath | None = None) -> list[PlanEntry] | None:
        """What flush() would write, leave alone or skip, and why."""
        return _plan(await run(self._core.plan_flush(dest)))

    # ---- terminals ----

    async def open_terminal(self, command: str | Sequence[str] | None = None,
                            cwd: str | None = None, *, env: Mapping[str, str] | None = None,
                            term: str | None = None, rows: int = 24, cols: int = 80,
                            timeout: float | None = None) -> Terminal:
        """Run a command on a terminal of its own; without one, an interactive shell."""
        limit = 0.0 if timeout is None else check.positive("timeout", timeout)
        check.texts(term=term)
        size = (check.whole("rows", rows, 1, MOST_CELLS), check.whole("cols", cols, 1, MOST_CELLS))
        return Terminal(await run(self._core.open_terminal(command, cwd, environment(env), term,
                                                           *size, limit)))

    # ---- agents ----

    def attach(self, agent: Any,
               mode: SandboxAttachMode = SandboxAttachMode.READ_WRITE) -> None:
        """Bind an agent; the agent does so itself, by AgentConfig(sandbox=...). One of another
        framework that has _on_sandbox_attach(sandbox, mode) and _on_sandbox_detach(sandbox) is
        told."""
        mode = check.choice("mode", SandboxAttachMode, mode)
        if agent is None or isinstance(agent, (str, bytes, int, float, type)):
            raise TypeError(f"agent: an agent is required, not {agent!r}")
        if isinstance(getattr(agent, "_core", None), _pinfold.Agent):
            with as_raised(wrapped=True):
                agent._core.attach(self._core, mode is SandboxAttachMode.READ_ONLY)
            agent._sandbox = self
            return
        wire = unwire = None
        for name in ("_on_sandbox_attach", "_on_sandbox_detach"):
            if hasattr(agent, name):
                check.plain(f"agent.{name}", getattr(agent, name))
        if hasattr(agent, "_on_sandbox_attach"):
            wire = lambda _: agent._on_sandbox_attach(self, mode)  # noqa: E731
        if hasattr(agent, "_on_sandbox_detach"):
            unwire = lambda _: agent._on_sandbox_detach(self)  # noqa: E731
        own_id = check.text("agent.agent_id", str(getattr(agent, "agent_id", "default")))
        with as_raised(wrapped=True):
            self._core.attach(agent, own_id, mode is SandboxAttachMode.READ_ONLY, wire, unwire)

    def detach(self, agent: Any) -> None:
        """Undo an attach; nothing happens when there was none."""
        core = getattr(agent, "_core", None)
        with as_raised(wrapped=True):
            if isinstance(core, _pinfold.Agent):
                core.detach(self._core)
            else:
                self._core.detach(agent)


def _plan(raw: list[tuple[str, str, int, str]] | None) -> list[PlanEntry] | None:
    return None if raw is None else [PlanEntry(*entry) for entry in raw]


async def sync_workspace_for_sandbox(sandbox: Sandbox,
                                     dest: StrPath | None = None) -> WorkspaceSyncResult | None:
    """Another name of Sandbox.flush()."""
    check.expect("sandbox", sandbox, Sandbox)
    return await sandbox.flush(dest)
