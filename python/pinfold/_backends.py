# SPDX-License-Identifier: Apache-2.0
"""Where commands run: the protocols, the backends of the library, and backends of your own."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from . import _check as check
from . import _pinfold
from ._adapter import Adapter
from ._check import StrPath, environment
from ._loop import run
from ._results import (ExecuteResult, FileInfo, FileTransferResult, WorkspaceSeedResult,
                       WorkspaceSyncResult, transfer_result)

#: As a limit: none.
UNLIMITED = check.UINT64_MAX
OutputConsumer = Callable[[str, bytes], Any]


@runtime_checkable
class ExecutionBackend(Protocol):
    """Files and workspaces. Methods may be coroutines or plain functions; paths are relative to the
    workspace. upload_files and download_files may be missing: files then go one by one."""

    @property
    def id(self) -> str:
        """What tells it from others."""

    def create(self) -> Any:
        """Make what there has to be before the first operation."""

    def close(self) -> Any:
        """Kill what runs, and give everything back."""

    def read_file(self, path: str) -> Any:
        """A str, or bytes; FileNotFoundError for what is not there."""

    def write_file(self, path: str, content: Any) -> Any:
        """Write a file, and the directories that lead to it. content is a str where it is UTF-8, and
        bytes where it is not."""

    def list_dir(self, path: str) -> Any:
        """The entries of one directory, in any order: FileInfo, whose path begins at the workspace,
        or (path, is_dir, size)."""

    def remove_file(self, path: str) -> Any:
        """Remove a file, or a link itself."""

    def seed_workspace(self, source: Any, exclude: Any) -> Any:
        """Copy a host directory in, without what the patterns of exclude match: a
        WorkspaceSeedResult, or None."""

    def sync_artifacts(self, dest: Any, include: Any, exclude: Any) -> Any:
        """Copy to a host directory what the patterns of include match and those of exclude do not:
        a WorkspaceSyncResult, or None."""

    def upload_files(self, files: Any) -> Any:
        """Write each of a list of (path, bytes): a FileTransferResult for each, in their order."""

    def download_files(self, paths: Any) -> Any:
        """Read each: a FileTransferResult for each, in their order, with content as bytes."""


@runtime_checkable
class SandboxBackend(ExecutionBackend, Protocol):
    """An ExecutionBackend that also runs commands."""

    def execute(self, command: str, timeout: float | None = None, cwd: str | None = None,
                **kwargs: Any) -> Any:
        """Run a line of shell: an ExecuteResult, also when it fails. timeout: seconds; None: as long
        as it takes. cwd: relative to the workspace; None: its root. Of kwargs there is env, a dict,
        where a call has one."""


class Backend:
    """What the backends of the library have in common. They satisfy SandboxBackend, so they can be
    used without a Sandbox too: create() first, close() last."""

    _core: _pinfold.Backend

    def _adopt_core(self, core: _pinfold.Backend) -> None:
        self._core = core
        _known[core.identity] = self

    @property
    def id(self) -> str:
        """What tells it from others."""
        return self._core.id

    async def create(self) -> None:
        """Make what there has to be before the first operation."""
        await run(self._core.create())

    async def close(self) -> None:
        """Kill what runs, and give everything back."""
        await run(self._core.close())

    async def read_file(self, path: str) -> str:
        """A text file; download_files() has the bytes of others."""
        data: bytes = await run(self._core.read_file(path))
        return data.decode("utf-8")

    async def write_file(self, path: str, content: str | bytes) -> None:
        """Write a file, and the directories that lead to it."""
        await run(self._core.write_file(path, content))

    async def list_dir(self, path: str = ".") -> list[FileInfo]:
        """One directory, sorted."""
        return [FileInfo(*entry) for entry in await run(self._core.list_dir(path))]

    async def remove_file(self, path: str) -> None:
        """Remove a file, or a link itself."""
        await run(self._core.remove_file(path))

    async def seed_workspace(self, source: StrPath,
                             exclude: Iterable[str] | None = None) -> WorkspaceSeedResult:
        """Copy a host directory in. exclude None: the default excludes."""
        source = os.path.abspath(os.fsdecode(check.path("source", source)))
        return WorkspaceSeedResult(*await run(self._core.seed_workspace(
            source, _patterns("exclude", exclude, _pinfold.DEFAULT_SEED_EXCLUDES))))

    async def sync_artifacts(self, dest: StrPath, include: Iterable[str] | None = None,
                             exclude: Iterable[str] | None = None) -> WorkspaceSyncResult:
        """Copy to a host directory. None: the defaults."""
        dest = os.path.abspath(os.fsdecode(check.path("dest", dest)))
        return WorkspaceSyncResult(*await run(self._core.sync_artifacts(
            dest, _patterns("include", include, _pinfold.DEFAULT_SYNC_INCLUDES),
            _patterns("exclude", exclude, _pinfold.DEFAULT_SEED_EXCLUDES))))

    async def upload_files(self,
                           files: Sequence[tuple[str, str | bytes]]) -> list[FileTransferResult]:
        """Write files; one result for each, in the order given."""
        pairs = list(check.iterable("files", files, "a list of (path, content)"))
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"files must be a list of (path, content), not of {pair!r:.80}")
        calls = [(self._core.upload_file(path, content), path) for path, content in pairs]
        return [await self._transfer(call, path) for call, path in calls]

    async def download_files(self, paths: Sequence[str]) -> list[FileTransferResult]:
        """Fetch files; one result for each, in the order given."""
        wanted = list(check.iterable("paths", paths, "a list of paths"))
        calls = [(self._core.download_file(path), path) for path in wanted]
        return [await self._transfer(call, path) for call, path in calls]

    async def _transfer(self, call: _pinfold.Call, path: str) -> FileTransferResult:
        try:
            done = transfer_result((await run(call))[0])
        except (OSError, ValueError) as error:
            return FileTransferResult(path, error=str(error))
        done.path = path
        return done

    async def execute(self, command: str | Sequence[str], timeout: float | None = None,
                      cwd: str | None = None, *, env: Mapping[str, str] | None = None,
                      max_output_bytes: int | None = None, keep_tail: bool = False,
                      spool_bytes: int = 0,
                      on_output: OutputConsumer | None = None,
                      **_kwargs: Any) -> ExecuteResult:
        """Run a shell command, or a list of words; as Sandbox.execute(). Other keywords are for
        other backends than the library's."""
        call = self._core.execute(command, timeout, cwd, environment(env), max_output_bytes,
                                  keep_tail, spool_bytes, on_output is not None)
        if on_output is not None:
            check.plain("on_output", on_output)
            call.stream_to(on_output)
        return ExecuteResult._of(await run(call))


class LocalSandboxBackend(Backend):
    """The host itself, without isolation, for development. workspace_root is never deleted."""

    def __init__(self, workspace_root: StrPath, timeout: float = 120,
                 max_output_bytes: int = 100_000, inherit_env: bool = True,
                 env: Mapping[str, str] | None = None):
        self._root = check.path("workspace_root", workspace_root)
        self._adopt_core(_pinfold.local_backend(
            self._root, check.positive("timeout", timeout),
            check.whole("max_output_bytes", max_output_bytes, 1, check.INT64_MAX),
            check.flag("inherit_env", inherit_env), environment(env)))

    def __repr__(self) -> str:
        return f"LocalSandboxBackend({self._root!r})"


@dataclass(frozen=True)
class Limits:
    """What an isolated sandbox may use. None: the default; UNLIMITED: no limit."""

    memory_bytes: int | None = None
    processes: int | None = None
    cpu_seconds: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None
    tmp_bytes: int | None = None
    workspace_bytes: int | None = None
    #: Processors' worth of time, 1.5 say.
    cpus: float | None = None

    def _raw(self) -> tuple[int, int, int, int, int, int, int, float]:
        for name, value in vars(self).items():
            if value is not None:
                check.positive(name, value) if name == "cpus" else check.whole(name, value)
        return (self.memory_bytes or 0, self.processes or 0, self.cpu_seconds or 0,
                self.open_files or 0, self.file_bytes or 0, self.tmp_bytes or 0,
                self.workspace_bytes or 0, self.cpus or 0.0)


class IsolatedSandboxBackend(Backend):
    """This machine, behind namespaces, seccomp and Landlock; no root needed. Without workspace_root
    the workspace is a temporary directory, which close deletes."""

    def __init__(self, workspace_root: StrPath | None = None, timeout: float = 120,
                 max_output_bytes: int = 100_000, env: Mapping[str, str] | None = None, *,
                 ro: Iterable[StrPath] = (), rw: Iterable[StrPath] = (),
                 rootfs: StrPath | None = None, network: str | Iterable[str] = "none",
                 limits: Limits | None = None, read_only: bool = False, seed_mode: str = "copy"):
        """network: "none", "host", or the names that may be reached, ["example.org"] say."""
        check.text("seed_mode", seed_mode)
        if seed_mode not in ("copy", "overlay"):
            raise ValueError(f"seed_mode is 'copy' or 'overlay', not {seed_mode!r}")
        self._root = None if workspace_root is None else check.path("workspace_root",
                                                                    workspace_root)
        net, allow = _network(network)
        limits = Limits() if limits is None else limits
        check.expect("limits", limits, Limits)
        self._adopt_core(_pinfold.isolated_backend(
            self._root, check.positive("timeout", timeout),
            check.whole("max_output_bytes", max_output_bytes, 1, check.INT64_MAX),
            environment(env), list(check.iterable("ro", ro)), list(check.iterable("rw", rw)),
            rootfs, net, allow, check.flag("read_only", read_only), seed_mode == "overlay",
            limits._raw()))

    def __repr__(self) -> str:
        return f"IsolatedSandboxBackend({self._root!r})"


def _network(network: str | Iterable[str]) -> tuple[int, list[str] | None]:
    if not isinstance(network, str):
        return 2, check.strings("network", network)
    try:
        return {"none": 0, "host": 1}[network], None
    except KeyError:
        raise ValueError(
            f"network is 'none', 'host' or a list of names, not {network!r}") from None


def _patterns(name: str, given: Iterable[str] | None, default: list[str]) -> list[str]:
    return default if given is None else check.strings(name, given)


_known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
#: By the name that the library has for it; those of services are added by their module.
CLASSES: dict[str, type[Backend]] = {
    "LocalSandboxBackend": LocalSandboxBackend,
    "IsolatedSandboxBackend": IsolatedSandboxBackend,
}


def expose(core: _pinfold.Backend) -> Any:
    """The Python object of a backend: the caller's own, where there is one."""
    if core.python is not None:
        return core.python.backend
    known = _known.get(core.identity)
    if known is not None:
        return known
    kind = CLASSES[core.type_name]
    made = kind.__new__(kind)
    made.__dict__["_root"] = None
    made._adopt_core(core)
    return made


def adopt(backend: Any, name: str = "backend") -> _pinfold.Backend:
    """What the library can use of a backend or a template, whoever wrote it. name: of the
    parameter."""
    if isinstance(backend, _pinfold.Backend):
        return backend
    core = getattr(backend, "_core", None)
    if isinstance(core, _pinfold.Backend):
        return core
    template = callable(getattr(backend, "build_for_session", None))
    if backend is None or isinstance(backend, type) or not (
            template or all(callable(getattr(backend, name, None))
                            for name in ("read_file", "write_file"))):
        raise TypeError(
            f"{name}: a backend or a template of one is required, not {backend!r}; if it came "
            f"from an optional package, install that package")
    own_id = getattr(backend, "id", None)
    return _pinfold.python_backend(
        Adapter(backend), backend, type(backend).__name__,
        check.text(f"{name}.id", own_id) if isinstance(own_id, str) else None, template,
        callable(getattr(backend, "move_file", None)), callable(getattr(backend, "execute", None)))


def supports_execution(backend: Any) -> bool:
    """Whether execute tools should be registered."""
    try:
        return adopt(backend).supports_execution
    except TypeError:
        return False
