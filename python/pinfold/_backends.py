# SPDX-License-Identifier: Apache-2.0
"""Where commands run: the protocols, the backends of the library, and backends of your own."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Union, runtime_checkable

from . import _pinfold
from ._adapter import Adapter
from ._loop import run
from ._results import (ExecuteResult, FileInfo, FileTransferResult, WorkspaceSeedResult,
                       WorkspaceSyncResult, transfer_result)

StrPath = Union[str, os.PathLike[str]]

#: As a limit: none.
UNLIMITED = 2**64 - 1


@runtime_checkable
class ExecutionBackend(Protocol):
    """Files and workspaces. Methods may be coroutines or plain functions; paths are relative to the
    workspace. upload_files and download_files may be missing: files then go one by one."""

    @property
    def id(self) -> str: ...
    def create(self) -> Any: ...
    def close(self) -> Any: ...
    def read_file(self, path: str) -> Any: ...
    def write_file(self, path: str, content: Any) -> Any: ...
    def list_dir(self, path: str) -> Any: ...
    def remove_file(self, path: str) -> Any: ...
    def seed_workspace(self, source: Any, exclude: Any) -> Any: ...
    def sync_artifacts(self, dest: Any, include: Any, exclude: Any) -> Any: ...
    def upload_files(self, files: Any) -> Any: ...
    def download_files(self, paths: Any) -> Any: ...


@runtime_checkable
class SandboxBackend(ExecutionBackend, Protocol):
    """An ExecutionBackend that also runs commands."""

    def execute(self, command: str, timeout: float | None = None, cwd: str | None = None,
                **kwargs: Any) -> Any: ...


def environment(env: Mapping[str, str] | None) -> list[str] | None:
    """Variables as the library wants them."""
    if env is None:
        return None
    for name in env:
        if not name or "=" in name:
            raise ValueError(f"env: {name!r} is no name of a variable")
    return [f"{name}={value}" for name, value in env.items()]


def positive(name: str, value: float) -> float:
    """A number that must not be 0, which in C stands for the default."""
    if not value > 0:
        raise ValueError(f"{name} must be more than 0, not {value!r}")
    return value


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
        patterns = _pinfold.DEFAULT_SEED_EXCLUDES if exclude is None else list(exclude)
        return WorkspaceSeedResult(*await run(
            self._core.seed_workspace(os.path.abspath(source), patterns)))

    async def sync_artifacts(self, dest: StrPath, include: Iterable[str] | None = None,
                             exclude: Iterable[str] | None = None) -> WorkspaceSyncResult:
        """Copy to a host directory. None: the defaults."""
        return WorkspaceSyncResult(*await run(self._core.sync_artifacts(
            os.path.abspath(dest),
            _pinfold.DEFAULT_SYNC_INCLUDES if include is None else list(include),
            _pinfold.DEFAULT_SEED_EXCLUDES if exclude is None else list(exclude))))

    async def upload_files(self,
                           files: Sequence[tuple[str, str | bytes]]) -> list[FileTransferResult]:
        """Write files; one result for each, in the order given."""
        return [await self._transfer(self._core.upload_file(path, content), path)
                for path, content in files]

    async def download_files(self, paths: Sequence[str]) -> list[FileTransferResult]:
        """Fetch files; one result for each, in the order given."""
        return [await self._transfer(self._core.download_file(path), path) for path in paths]

    async def _transfer(self, call: _pinfold.Call, path: str) -> FileTransferResult:
        try:
            done = transfer_result((await run(call))[0])
        except (OSError, ValueError) as error:
            return FileTransferResult(path, error=str(error))
        done.path = path
        return done

    async def execute(self, command: str | Sequence[str], timeout: float | None = None,
                      cwd: str | None = None, *, env: Mapping[str, str] | None = None,
                      **_kwargs: Any) -> ExecuteResult:
        """Run a shell command, or a list of words."""
        return ExecuteResult._of(await run(
            self._core.execute(command, timeout, cwd, environment(env), 0, False, 0, False)))


class LocalSandboxBackend(Backend):
    """The host itself, without isolation, for development. workspace_root is never deleted."""

    def __init__(self, workspace_root: StrPath, timeout: float = 120,
                 max_output_bytes: int = 100_000, inherit_env: bool = True,
                 env: Mapping[str, str] | None = None):
        self._root = os.fspath(workspace_root)
        self._adopt_core(_pinfold.local_backend(
            self._root, positive("timeout", timeout), int(positive("max_output_bytes",
                                                                   max_output_bytes)),
            bool(inherit_env), environment(env)))

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
                positive(name, value)
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
        if seed_mode not in ("copy", "overlay"):
            raise ValueError(f"seed_mode is 'copy' or 'overlay', not {seed_mode!r}")
        self._root = None if workspace_root is None else os.fspath(workspace_root)
        net, allow = _network(network)
        self._adopt_core(_pinfold.isolated_backend(
            self._root, positive("timeout", timeout),
            int(positive("max_output_bytes", max_output_bytes)), environment(env), list(ro),
            list(rw), rootfs, net, allow, read_only, seed_mode == "overlay",
            (limits or Limits())._raw()))

    def __repr__(self) -> str:
        return f"IsolatedSandboxBackend({self._root!r})"


def _network(network: str | Iterable[str]) -> tuple[int, list[str] | None]:
    if not isinstance(network, str):
        return 2, list(network)
    try:
        return {"none": 0, "host": 1}[network], None
    except KeyError:
        raise ValueError(
            f"network is 'none', 'host' or a list of names, not {network!r}") from None


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


def adopt(backend: Any) -> _pinfold.Backend:
    """What the library can use of a backend or a template, whoever wrote it."""
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
            f"a backend or a backend template is required, not {backend!r}; if it came from an "
            f"optional package, install that package")
    own_id = getattr(backend, "id", None)
    return _pinfold.python_backend(
        Adapter(backend), backend, type(backend).__name__, own_id if isinstance(own_id, str) else None,
        template, callable(getattr(backend, "move_file", None)),
        callable(getattr(backend, "execute", None)))


def supports_execution(backend: Any) -> bool:
    """Whether execute tools should be registered."""
    try:
        return adopt(backend).supports_execution
    except TypeError:
        return False
