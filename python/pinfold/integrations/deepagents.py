# SPDX-License-Identifier: Apache-2.0
"""A sandbox as a backend of the deepagents package.

    async with Sandbox("job", IsolatedSandboxBackend(), ttl_seconds=3600) as sandbox:
        agent = create_deep_agent(model=..., backend=PinfoldSandbox(sandbox))

Without an event loop it starts and stops the sandbox itself:

    with PinfoldSandbox(Sandbox("job", IsolatedSandboxBackend(), ttl_seconds=3600)) as backend:
        create_deep_agent(model=..., backend=backend).invoke(...)

Paths are absolute; /workspace is the workspace of an isolated sandbox. What only deepagents' own
scripts do (ls, read, edit, glob, grep) takes python3 in the sandbox.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType

from deepagents.backends.protocol import (ExecuteResponse, FileDownloadResponse,
                                          FileUploadResponse)
from deepagents.backends.sandbox import BaseSandbox

from .. import _pinfold
from .._errors import SandboxPathError
from .._loop import run
from .._results import ExecuteResult
from .._sandbox import Sandbox, SandboxView
from . import _steps

#: deepagents reads files of half a MiB through the output of a command, in base64.
_OUTPUT_BYTES = 1 << 20


class PinfoldSandbox(BaseSandbox):
    """A started sandbox, or a read-only view of one."""

    def __init__(self, sandbox: SandboxView, *, timeout: float | None = None,
                 max_output_bytes: int = _OUTPUT_BYTES):
        """timeout: of commands that are given none; None: the backend's. max_output_bytes: kept of
        a command's output; the response says when there was more."""
        self._sandbox = sandbox
        self._timeout = timeout
        self._max_output_bytes = max_output_bytes

    @property
    def id(self) -> str:
        """The workspace's id."""
        return self._sandbox.ref().workspace_id

    def __enter__(self) -> PinfoldSandbox:
        if not isinstance(self._sandbox, Sandbox):
            raise TypeError("a view is neither started nor stopped")
        asyncio.run(self._sandbox.start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        assert isinstance(self._sandbox, Sandbox)
        asyncio.run(self._sandbox.__aexit__(kind, error, trace))

    # ---- commands ----

    def _call(self, command: str, timeout: float | None) -> _pinfold.Call:
        seconds = self._timeout if timeout is None else timeout or math.inf
        return self._sandbox._core.execute(command, seconds, None, None, self._max_output_bytes,
                                           False, 0, False)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command; 124 is the exit code after a timeout. timeout 0: none. Ctrl-C kills
        it and all that it started."""
        return _response(ExecuteResult._of(_steps.blocking(self._call(command, timeout))))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """The same; cancelling the task kills the command and all that it started."""
        return _response(ExecuteResult._of(await run(self._call(command, timeout))))

    # ---- files ----

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files, and the directories that lead to them; all are tried."""
        return _uploaded(files, _steps.here(self._store(files)))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """The same, off the event loop."""
        return _uploaded(files, await _steps.awaited(self._store(files)))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Fetch files; all are tried."""
        return _downloaded(paths, _steps.here(self._fetch(paths)))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """The same, off the event loop."""
        return _downloaded(paths, await _steps.awaited(self._fetch(paths)))

    def _store(self, files: list[tuple[str, bytes]]) -> _steps.Steps[list[None | Exception]]:
        core = self._sandbox._core
        return _steps.each([_absolute(path, _steps.store(core, path, data))
                            for path, data in files])

    def _fetch(self, paths: list[str]) -> _steps.Steps[list[bytes | Exception]]:
        core = self._sandbox._core
        return _steps.each([_absolute(path, _steps.fetch(core, path)) for path in paths])


def _response(result: ExecuteResult) -> ExecuteResponse:
    return ExecuteResponse(result.output, result.exit_code, result.truncated)


def _absolute(path: str, steps: _steps.Steps[_steps.T]) -> _steps.Steps[_steps.T]:
    if not path.startswith("/"):
        raise SandboxPathError(f"{path}: not an absolute path")
    return (yield from steps)


def _code(error: Exception) -> str:
    """deepagents' word for it, where there is one."""
    known: list[tuple[type[Exception], str]] = [
        (SandboxPathError, "invalid_path"), (FileNotFoundError, "file_not_found"),
        (IsADirectoryError, "is_directory"), (NotADirectoryError, "invalid_path"),
        (PermissionError, "permission_denied")]
    return next((word for kind, word in known if isinstance(error, kind)), str(error))


def _uploaded(files: list[tuple[str, bytes]],
              answers: list[None | Exception]) -> list[FileUploadResponse]:
    return [FileUploadResponse(path, None if answer is None else _code(answer))
            for (path, _), answer in zip(files, answers)]


def _downloaded(paths: list[str],
                answers: list[bytes | Exception]) -> list[FileDownloadResponse]:
    return [FileDownloadResponse(path, None, _code(answer)) if isinstance(answer, Exception)
            else FileDownloadResponse(path, answer) for path, answer in zip(paths, answers)]
