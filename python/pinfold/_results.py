# SPDX-License-Identifier: Apache-2.0
"""What calls return: the result types of the specification, and ours beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import _check as check
from . import _pinfold

_SHOWN = 200  # characters of output in a repr
_MAX_PAGE = 64 << 20


def _short(text: str) -> str:
    if len(text) <= _SHOWN:
        return repr(text)
    return f"{text[:_SHOWN]!r}... ({len(text)} characters)"


@dataclass
class ExecuteResult:
    """A command that has ended, whatever its exit code."""

    #: stdout, then each line of stderr with "[stderr] " before it, then notes in brackets.
    output: str
    #: 0 to 255; 124 after a timeout, 128 + n after signal n.
    exit_code: int
    #: Something was cut off by the limit of output.
    truncated: bool = False
    #: stderr alone.
    stderr: str = ""
    timed_out: bool = False
    #: Bytes that the command wrote, kept or not.
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    duration_seconds: float = 0.0
    #: Processes of this command that still run.
    background: int = 0
    cpu_seconds: float = 0.0
    #: The most memory that one process of the command had.
    peak_bytes: int = 0
    #: The most that the whole sandbox had at one time; 0: nobody counted.
    sandbox_peak_bytes: int = 0
    #: The limit that ended the command, "memory" say.
    limit: str | None = None
    #: Every limit that stopped something since the command before.
    limits_hit: list[str] = field(default_factory=list)
    #: All of the output, when spool_bytes was given.
    spool: Spool | None = None
    #: The process that watched the command was killed, by the command perhaps, and so was it:
    #: exit_code is 137, and what it used is not known.
    supervisor_lost: bool = False
    _stdout_length: int | None = field(default=None, repr=False, compare=False)

    @property
    def success(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == 0

    @property
    def stdout(self) -> str:
        """stdout alone."""
        return self.output if self._stdout_length is None else self.output[:self._stdout_length]

    def __repr__(self) -> str:
        parts = [f"exit_code={self.exit_code}", f"output={_short(self.output)}"]
        if self.stderr:
            parts.append(f"stderr={_short(self.stderr)}")
        parts += [name for name in ("truncated", "timed_out", "supervisor_lost")
                  if getattr(self, name)]
        if self.limit:
            parts.append(f"limit={self.limit!r}")
        return f"ExecuteResult({', '.join(parts)})"

    @classmethod
    def _of(cls, raw: tuple[Any, ...]) -> ExecuteResult:
        (output, exit_code, truncated, stderr, timed_out, stdout_length, stdout_bytes, stderr_bytes,
         duration, background, cpu, peak, sandbox_peak, limit, limits_hit, spool,
         supervisor_lost) = raw
        return cls(output, exit_code, truncated, stderr, timed_out, stdout_bytes, stderr_bytes,
                   duration, background, cpu, peak, sandbox_peak, limit, limits_hit,
                   None if spool is None else Spool(spool), supervisor_lost, stdout_length)


class Spool:
    """The whole output of a command, to be paged through."""

    def __init__(self, core: _pinfold.Spool):
        self._core = core

    def size(self, stream: str = "stdout") -> int:
        """How many bytes of the stream can be read."""
        return self._core.size(_stream_number(stream))

    def read(self, stream: str = "stdout", offset: int = 0, size: int = 65536) -> bytes:
        """Bytes from offset on; fewer than size at the end, and then none."""
        return self._core.read(_stream_number(stream),
                               check.whole("offset", offset, 0, check.INT64_MAX),
                               check.whole("size", size, 0, _MAX_PAGE))

    def __repr__(self) -> str:
        return f"Spool(stdout={self.size()}, stderr={self.size('stderr')})"


def _stream_number(stream: str) -> int:
    found = {"stdout": 1, "stderr": 2}.get(check.text("stream", stream))
    if found is None:
        raise ValueError(f"stream must be 'stdout' or 'stderr', not {stream!r}")
    return found


@dataclass
class FileInfo:
    """An entry of a directory."""

    path: str
    is_dir: bool
    size: int | None = None


@dataclass
class FileTransferResult:
    """One file of several that were moved in or out."""

    path: str
    content: bytes | None = None
    error: str | None = None

    @property
    def success(self) -> bool:
        """Whether there was no error."""
        return self.error is None

    def __repr__(self) -> str:
        content = "None" if self.content is None else f"<{len(self.content)} bytes>"
        return f"FileTransferResult(path={self.path!r}, content={content}, error={self.error!r})"


@dataclass
class WorkspaceSeedResult:
    """What was copied into a workspace."""

    files_seeded: int = 0
    bytes_seeded: int = 0
    skipped_paths: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: "copy", or "overlay" when the seed is shown and not copied.
    mode: str = "copy"
    #: Why it was copied when an overlay was asked for.
    fallback: str | None = None

    @property
    def success(self) -> bool:
        """Whether there were no errors."""
        return not self.errors


@dataclass
class WorkspaceSyncResult:
    """What was copied out of a workspace."""

    files_synced: int = 0
    bytes_synced: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def success(self) -> bool:
        """Whether there were no errors."""
        return not self.errors


@dataclass
class SandboxRef:
    """A handle stub, for this process only."""

    workspace_id: str
    backend_type: str
    manager_id: str | None = None


@dataclass
class ManagedSandboxSession:
    """A session of a manager, as it was at one moment."""

    session_id: str
    backend: Any
    prepared: bool = False
    seed_result: WorkspaceSeedResult | None = None
    owner_id: str | None = None
    created_at: float = 0.0
    last_used_at: float = 0.0


@dataclass
class PlanEntry:
    """What a dry run says of one path."""

    path: str
    #: "copy", "overwrite", "identical", "skip" or "error".
    action: str
    size: int
    reason: str


@dataclass
class TerminalExit:
    """How a command on a terminal ended."""

    exit_code: int
    timed_out: bool
    killed: bool
    output_bytes: int
    duration_seconds: float
    cpu_seconds: float
    peak_bytes: int
    #: The limit that ended it, "time" say.
    limit: str | None = None
    #: As ExecuteResult has it.
    supervisor_lost: bool = False


def seed_result(raw: tuple[Any, ...] | None) -> WorkspaceSeedResult | None:
    """WorkspaceSeedResult of the extension's tuple."""
    return None if raw is None else WorkspaceSeedResult(*raw)


def sync_result(raw: tuple[Any, ...] | None) -> WorkspaceSyncResult | None:
    """WorkspaceSyncResult of the extension's tuple."""
    return None if raw is None else WorkspaceSyncResult(*raw)


def transfer_result(raw: tuple[str, bytes | None, Exception | None, bool]) -> FileTransferResult:
    """FileTransferResult of the extension's tuple."""
    path, content, error, _skipped = raw
    return FileTransferResult(path, content, None if error is None else str(error))
