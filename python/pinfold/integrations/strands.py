# SPDX-License-Identifier: Apache-2.0
"""A sandbox as the sandbox of an agent of strands-agents, and tools for agents without one.

    async with Sandbox("job", IsolatedSandboxBackend(), ttl_seconds=3600) as sandbox:
        agent = Agent(model=..., sandbox=PinfoldSandbox(sandbox))
        other = Agent(model=..., tools=sandbox_tools(sandbox.view("reviewer")))
"""

from __future__ import annotations

import asyncio
import codecs
import math
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import strands
from strands.sandbox import Sandbox as StrandsSandbox
from strands.sandbox.constants import LANGUAGE_PATTERN
from strands.sandbox.errors import SandboxPathNotFoundError, SandboxTimeoutError
from strands.sandbox.types import ExecutionResult, FileInfo, StreamChunk
from strands.vended_tools.file_editor import make_file_editor
from strands.vended_tools.shell import make_shell

from .._results import ExecuteResult
from .._sandbox import Sandbox, SandboxView
from . import _steps

Chunks = AsyncGenerator[Any, None]

_OUTPUT_BYTES = 1 << 20


class PinfoldSandbox(StrandsSandbox):
    """A started sandbox, or a read-only view of one. Relative paths begin at the workspace."""

    def __init__(self, sandbox: SandboxView, *, max_output_bytes: int = _OUTPUT_BYTES):
        """max_output_bytes: kept of each command's output; stderr says when there was more."""
        self._sandbox = sandbox
        self._max_output_bytes = max_output_bytes

    # ---- commands ----

    async def execute(self, command: str, *, timeout: float | None = None, cwd: str | None = None,
                      env: dict[str, str] | None = None, **kwargs: Any) -> ExecutionResult:
        """Run a shell command. SandboxTimeoutError has what it wrote until then."""
        return await self._run(command, timeout, cwd, env)

    async def execute_streaming(self, command: str, *, timeout: float | None = None,
                                cwd: str | None = None, env: dict[str, str] | None = None,
                                **kwargs: Any) -> Chunks:
        """The same, with chunks as they come and the result last. Closing the generator kills the
        command and all that it started."""
        async for chunk in self._stream(command, timeout, cwd, env):
            yield chunk

    async def execute_code_streaming(self, code: str, language: str, *,
                                     timeout: float | None = None, cwd: str | None = None,
                                     env: dict[str, str] | None = None, **kwargs: Any) -> Chunks:
        """Have the interpreter called language read code from its stdin: up to 128 KiB."""
        if not LANGUAGE_PATTERN.fullmatch(language):
            raise ValueError(f"language: {language!r} is no name of an interpreter")
        words = ["sh", "-c", 'printf %s "$2" | "$1"', "sh", language, code]
        async for chunk in self._stream(words, timeout, cwd, env):
            yield chunk

    async def _run(self, command: str | Sequence[str], timeout: float | None, cwd: str | None,
                   env: dict[str, str] | None, on_output: Any = None) -> ExecutionResult:
        done = await self._sandbox.execute(
            command, math.inf if timeout is None else timeout, cwd, env=env,
            max_output_bytes=self._max_output_bytes, on_output=on_output)
        if done.timed_out:
            raise SandboxTimeoutError(timeout, done.stdout, _stderr(done))
        return ExecutionResult(done.exit_code, done.stdout, _stderr(done))

    async def _stream(self, command: str | Sequence[str], timeout: float | None, cwd: str | None,
                      env: dict[str, str] | None) -> Chunks:
        chunks: asyncio.Queue[StreamChunk | None] = asyncio.Queue()
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace")
                    for name in ("stdout", "stderr")}
        room = dict.fromkeys(decoders, self._max_output_bytes)  # as the result has it

        def put(stream: str, data: bytes, final: bool = False) -> None:
            text = decoders[stream].decode(data[:room[stream]], final)
            room[stream] -= min(len(data), room[stream])
            if text:
                chunks.put_nowait(StreamChunk(text, stream))

        task = asyncio.ensure_future(self._run(command, timeout, cwd, env, put))
        task.add_done_callback(lambda _: chunks.put_nowait(None))
        try:
            while (chunk := await chunks.get()) is not None:
                yield chunk
            for name in decoders:
                put(name, b"", True)
            while not chunks.empty():
                yield chunks.get_nowait()
            yield await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])

    # ---- files ----

    async def read_file(self, path: str, **kwargs: Any) -> bytes:
        """A file of any kind."""
        return await _steps.awaited(_steps.fetch(self._sandbox._core, path))

    async def write_file(self, path: str, content: bytes, **kwargs: Any) -> None:
        """Write a file, and the directories that lead to it."""
        await _steps.awaited(_steps.store(self._sandbox._core, path, content))

    async def remove_file(self, path: str, **kwargs: Any) -> None:
        """Remove a file, or a link itself."""
        await _steps.awaited(_steps.remove(self._sandbox._core, path))

    async def list_files(self, path: str, **kwargs: Any) -> list[FileInfo]:
        """One directory, hidden names included, sorted."""
        try:
            found = await _steps.awaited(_steps.entries(self._sandbox._core, path))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SandboxPathNotFoundError(path) from error
        return [FileInfo(*entry) for entry in found]

    # ---- tools ----

    def get_tools(self) -> list[Any]:
        """A shell and a file editor, under the names that strands' other sandboxes use."""
        return [make_file_editor(sandbox=self, name="sandbox_file_editor"),
                make_shell(sandbox=self, name="sandbox_shell")]


def _stderr(done: ExecuteResult) -> str:
    if not done.truncated:
        return done.stderr
    return f"{done.stderr}[output was cut: {done.stdout_bytes + done.stderr_bytes} bytes in all]\n"


def sandbox_tools(sandbox: SandboxView) -> list[Any]:
    """execute, read_file and list_dir, and write_file unless it is a view: tools for an agent whose
    sandbox this is not."""

    @strands.tool
    async def execute(command: str, cwd: str | None = None) -> str:
        """Run a shell command in the workspace.

        Args:
            command: Shell command to run.
            cwd: Working directory inside the workspace.
        """
        done = await sandbox.execute(command, cwd=cwd)
        return f"exit code {done.exit_code}\n{done.output}"

    @strands.tool
    async def read_file(path: str, offset: int = 0, limit: int | None = None) -> str:
        """Read a text file of the workspace.

        Args:
            path: Workspace-relative path.
            offset: Line to begin at; the first is 0.
            limit: How many lines at most.
        """
        text, _ = await sandbox.read_lines(path, offset, limit)
        return text

    @strands.tool
    async def list_dir(path: str = ".") -> str:
        """List a directory of the workspace.

        Args:
            path: Workspace-relative path.
        """
        found = await sandbox.list_dir(path)
        return "\n".join(entry.path + "/" * entry.is_dir for entry in found)

    @strands.tool
    async def write_file(path: str, content: str) -> str:
        """Write a text file into the workspace, replacing one that is there.

        Args:
            path: Workspace-relative path.
            content: Its new text.
        """
        assert isinstance(sandbox, Sandbox)
        await sandbox.write_file(path, content)
        return f"wrote {path}"

    return [execute, read_file, list_dir, *([write_file] if isinstance(sandbox, Sandbox) else [])]
