# SPDX-License-Identifier: Apache-2.0
"""A sandbox client for the OpenAI Agents SDK (openai-agents).

    client = PinfoldSandboxClient()
    session = await client.create(manifest=Manifest(...), options=PinfoldSandboxClientOptions())
    async with session:
        await Runner.run(agent, "...", run_config=RunConfig(sandbox=SandboxRunConfig(
            session=session)))
    await client.delete(session)

Without arguments each session is an isolated sandbox of this machine. Other users than the
sandbox's own, mounts, exposed ports and terminals are not there.
"""

from __future__ import annotations

import io
import math
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from agents.sandbox.errors import (ExecTimeoutError, ExecTransportError, InvalidManifestPathError,
                                   WorkspaceArchiveReadError, WorkspaceArchiveWriteError,
                                   WorkspaceReadNotFoundError, WorkspaceWriteTypeError)
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import SandboxSession, SandboxSessionState
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.session.manager import Instrumentation
from agents.sandbox.session.runtime_helpers import (RESOLVE_WORKSPACE_PATH_HELPER,
                                                    RuntimeHelperScript)
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
from agents.sandbox.types import ExecResult, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tar_bytes

from .._backends import IsolatedSandboxBackend
from .._errors import SandboxPathError
from .._sandbox import Sandbox
from . import _steps

_OUTPUT_BYTES = 16 << 20


class PinfoldSandboxSessionState(SandboxSessionState):
    """What is kept of a session."""

    type: Literal["pinfold"] = "pinfold"
    workspace_id: str


class PinfoldSandboxClientOptions(BaseSandboxClientOptions):
    """workspace_id: of the sandbox; None: one that nobody else has."""

    type: Literal["pinfold"] = "pinfold"
    workspace_id: str | None = None


class PinfoldSandboxSession(BaseSandboxSession):
    """One sandbox; PinfoldSandboxClient makes it."""

    state: PinfoldSandboxSessionState

    def __init__(self, state: PinfoldSandboxSessionState, sandbox: Sandbox):
        self.state = state
        self.sandbox = sandbox

    # ---- life ----

    async def _ensure_backend_started(self) -> None:
        self._set_start_state_preserved(self.sandbox.is_started)
        await self.sandbox.start()
        root = (await self.sandbox.execute(["pwd", "-P"])).stdout.rstrip("\n")
        if self.state.manifest.root != root:  # where this backend has the workspace
            self.state.manifest = self.state.manifest.model_copy(update={"root": root})

    async def _after_start_failed(self) -> None:
        await self.sandbox.stop(sync=False)

    async def _shutdown_backend(self) -> None:
        await self.sandbox.stop()

    async def running(self) -> bool:
        """Whether it is started, and not yet shut down."""
        return self.sandbox.is_started

    # ---- commands ----

    async def _exec_internal(self, *command: str | Path,
                             timeout: float | None = None) -> ExecResult:
        words = [str(word) for word in command]
        found = {"stdout": bytearray(), "stderr": bytearray()}

        def keep(stream: str, data: bytes) -> None:  # the bytes, as they are
            found[stream] += data[:_OUTPUT_BYTES - len(found[stream])]

        try:
            done = await self.sandbox.execute(
                words, math.inf if timeout is None else timeout, max_output_bytes=1,
                env=await self.state.manifest.environment.resolve(), on_output=keep)
        except Exception as error:
            raise ExecTransportError(command=words, cause=error,
                                     retryable=getattr(error, "retryable", None)) from error
        if done.timed_out:
            raise ExecTimeoutError(command=words, timeout_s=timeout)
        return ExecResult(stdout=bytes(found["stdout"]), stderr=bytes(found["stderr"]),
                          exit_code=done.exit_code)

    # ---- files ----

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    async def read(self, path: Path | str, *, user: str | User | None = None) -> io.IOBase:
        """A file of any kind."""
        if user is not None:
            await self._check_read_with_exec(path, user=user)
        where = await self._validate_path_access(path)
        try:
            return io.BytesIO(await _steps.awaited(
                _steps.fetch(self.sandbox._core, where.as_posix())))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=where, cause=error) from error
        except SandboxPathError as error:
            raise InvalidManifestPathError(rel=str(path), reason="escape_root") from error
        except Exception as error:
            raise WorkspaceArchiveReadError(path=where, cause=error) from error

    async def write(self, path: Path | str, data: io.IOBase, *,
                    user: str | User | None = None) -> None:
        """Write a file, and the directories that lead to it."""
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        where = await self._validate_path_access(path, for_write=True)
        content = _bytes_of(where, data.read())
        try:
            await _steps.awaited(_steps.store(self.sandbox._core, where.as_posix(), content))
        except SandboxPathError as error:
            raise InvalidManifestPathError(rel=str(path), reason="escape_root") from error
        except Exception as error:
            raise WorkspaceArchiveWriteError(path=where, cause=error) from error

    # ---- the whole workspace ----

    async def persist_workspace(self) -> io.IOBase:
        """An archive of the workspace, but for what need not be kept."""
        root = self._workspace_root_path()
        scratch = _steps.scratch()
        skipped = [f"--exclude=./{path}" for path in
                   (scratch, *self._persist_workspace_skip_relpaths())]
        try:
            done = await self.exec("tar", "-C", str(root), *map(str, skipped), "-cf",
                                   str(root / scratch), ".", shell=False)
            if not done.ok():
                raise WorkspaceArchiveReadError(
                    path=root, context={"stderr": done.stderr.decode("utf-8", "replace")})
            with tempfile.NamedTemporaryFile(prefix="pinfold-") as file:
                await self.sandbox.download_files({scratch: file.name})
                return open(file.name, "rb")
        finally:
            await self.sandbox.execute(["rm", "-f", scratch])

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Unpack such an archive into the workspace."""
        root = self._workspace_root_path()
        content = _bytes_of(root, data.read())
        _check_archive(root, content)
        scratch = _steps.scratch()
        try:
            await self.sandbox.write_file(scratch, content)
            done = await self.exec("tar", "-C", str(root), "--no-same-owner", "-xf",
                                   str(root / scratch), shell=False)
        finally:
            await self.sandbox.execute(["rm", "-f", scratch])
        if not done.ok():
            raise WorkspaceArchiveWriteError(
                path=root, context={"stderr": done.stderr.decode("utf-8", "replace")})


def _bytes_of(path: Path, content: Any) -> bytes:
    if isinstance(content, str):
        return content.encode("utf-8")
    if not isinstance(content, (bytes, bytearray)):
        raise WorkspaceWriteTypeError(path=path, actual_type=type(content).__name__)
    return bytes(content)


def _check_archive(root: Path, content: bytes) -> None:
    try:
        validate_tar_bytes(content, allow_external_symlink_targets=False)
    except UnsafeTarMemberError as error:
        raise WorkspaceArchiveWriteError(path=root, cause=error,
                                         context={"member": error.member}) from error


class PinfoldSandboxClient(BaseSandboxClient[PinfoldSandboxClientOptions | None]):
    """Makes sessions, and finds those again that it has made and that still run."""

    backend_id = "pinfold"
    supports_default_options = True

    def __init__(self, make_sandbox: Callable[[str], Sandbox] | None = None, *,
                 instrumentation: Instrumentation | None = None,
                 dependencies: Dependencies | None = None):
        """make_sandbox: makes a sandbox, not started, of a workspace id."""
        self._make = make_sandbox or (lambda workspace_id: Sandbox(
            workspace_id, IsolatedSandboxBackend(), ttl_seconds=3600))
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies
        self._sandboxes: dict[str, Sandbox] = {}

    async def create(self, *, snapshot: SnapshotSpec | SnapshotBase | None = None,
                     manifest: Manifest | None = None,
                     options: PinfoldSandboxClientOptions | None = None) -> SandboxSession:
        """A session, which starts its sandbox when it is entered."""
        session_id = uuid.uuid4()
        workspace_id = (options.workspace_id if options else None) or f"openai-{session_id}"
        return self._session(PinfoldSandboxSessionState(
            session_id=session_id, workspace_id=workspace_id,
            manifest=self._validate_manifest_for_create(manifest or Manifest()),
            snapshot=resolve_snapshot(snapshot, str(session_id))))

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """The session of that state: in its own sandbox if that still runs, else in a new one,
        which is filled from the snapshot."""
        if not isinstance(state, PinfoldSandboxSessionState):
            raise TypeError(f"not a session of Pinfold: {type(state).__name__}")
        state.assert_path_grants_rebound()
        return self._session(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Stop its sandbox, if it still runs."""
        inner = session._inner
        if not isinstance(inner, PinfoldSandboxSession):
            raise TypeError(f"not a session of Pinfold: {type(inner).__name__}")
        self._sandboxes.pop(inner.state.workspace_id, None)
        await inner.sandbox.stop()
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        """A state that serialize_session_state() has made."""
        return self._deserialize_session_state_payload(payload, PinfoldSandboxSessionState)

    def _session(self, state: PinfoldSandboxSessionState) -> SandboxSession:
        sandbox = self._sandboxes.get(state.workspace_id)
        if sandbox is None:
            sandbox = self._sandboxes[state.workspace_id] = self._make(state.workspace_id)
        return self._wrap_session(PinfoldSandboxSession(state, sandbox),
                                  instrumentation=self._instrumentation)
