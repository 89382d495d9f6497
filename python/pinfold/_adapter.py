# SPDX-License-Identifier: Apache-2.0
"""Backends written in Python, as the library wants them: plain arguments, plain tuples.

Methods run on the thread of their call; _bridge.py has coroutines.
"""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
from collections.abc import Iterable
from typing import Any, Union

from ._bridge import finish
from ._errors import describe
from ._results import ExecuteResult, FileInfo

_Error = Union[tuple[int, int, int, str], None]
_Transfer = tuple[Union[bytes, None], _Error, bool]


def _host_file(path: str) -> bytes:
    """The bytes of a regular file: a FIFO would hold us up."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return file.read()


class Adapter:
    """The methods that the table of functions calls."""

    def __init__(self, backend: Any):
        self.backend = backend

    def _has(self, name: str) -> bool:
        return callable(getattr(self.backend, name, None))

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self.backend, name, None)
        if method is None:
            raise NotImplementedError(f"{type(self.backend).__name__} has no {name}")
        return finish(method(*args, **kwargs), cleanup=name == "close")

    def _wrong(self, name: str, value: Any, wanted: str) -> TypeError:
        return TypeError(f"{name} of {type(self.backend).__name__} returned "
                         f"{type(value).__name__}, not {wanted}")

    def _list(self, name: str, value: Any, of: str) -> list[Any]:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise self._wrong(name, value, f"a list of {of}")
        return list(value)

    def _call_for_each(self, name: str, files: list[Any]) -> list[Any]:
        """What is not told of is not done, and must not pass for it."""
        found = self._list(name, self._call(name, files), "FileTransferResult")
        for one in found:
            if not hasattr(one, "error") or not hasattr(one, "path"):
                raise self._wrong(name, one, "FileTransferResult, in its list")
        if len(found) != len(files):
            raise RuntimeError(f"{name} of {type(self.backend).__name__} returned {len(found)} "
                               f"results for {len(files)} files")
        return found

    # ---- life ----

    def create(self) -> None:
        if self._has("create"):
            self._call("create")

    def close(self) -> None:
        if self._has("close"):
            self._call("close")

    def build_for_session(self, workspace_id: str) -> Any:
        return self._call("build_for_session", workspace_id)

    # ---- files ----

    def read_file(self, path: str) -> bytes:
        content = self._call("read_file", path)
        if isinstance(content, str):
            return content.encode("utf-8", "surrogateescape")
        try:
            return bytes(memoryview(content))  # of a number, bytes() would make as many zeros
        except TypeError:
            raise self._wrong("read_file", content, "str or bytes") from None

    def write_file(self, path: str, data: bytes, exclusive: bool) -> None:
        if exclusive and self._exists(path):
            raise FileExistsError(17, "File exists", path)
        try:
            content: str | bytes = data.decode("utf-8")
        except UnicodeDecodeError:
            content = data
        self._call("write_file", path, content)

    def list_dir(self, path: str) -> list[tuple[str, bool, int]]:
        found: list[tuple[str, bool, int]] = []
        for entry in self._list("list_dir", self._call("list_dir", path), "FileInfo"):
            if not isinstance(entry, FileInfo) \
                    and not (isinstance(entry, (tuple, list)) and 2 <= len(entry) <= 3):
                raise self._wrong("list_dir", entry, "FileInfo or (path, is_dir, size), in its list")
            info = entry if isinstance(entry, FileInfo) else FileInfo(*entry)
            size: Any = 0 if info.size is None else info.size
            for what, value, kind in (("path", info.path, str), ("is_dir", info.is_dir, int),
                                      ("size", size, int)):
                if not isinstance(value, kind):
                    raise self._wrong("list_dir", value, f"{kind.__name__}, as {what}")
            has_size = info.size is not None and not info.is_dir
            found.append((info.path, bool(info.is_dir), size if has_size else -1))
        return sorted(found, key=lambda entry: os.fsencode(entry[0]))

    def remove_file(self, path: str) -> None:
        self._call("remove_file", path)

    def move_file(self, src: str, dest: str) -> None:
        self._call("move_file", src, dest)

    def _exists(self, path: str) -> bool:
        try:
            self._call("read_file", path)
        except (FileNotFoundError, KeyError):
            return False
        except IsADirectoryError:
            pass
        return True

    # ---- trees ----

    def seed_workspace(self, source: str, exclude: list[str]) -> tuple[Any, ...]:
        done = self._call("seed_workspace", source, exclude)
        if done is None:
            return 0, 0, [], []
        if not hasattr(done, "files_seeded"):
            raise self._wrong("seed_workspace", done, "WorkspaceSeedResult")
        return (done.files_seeded, done.bytes_seeded, list(done.skipped_paths), list(done.errors))

    def sync_artifacts(self, dest: str, include: list[str], exclude: list[str]) -> tuple[Any, ...]:
        done = self._call("sync_artifacts", dest, include, exclude)
        if done is None:
            return 0, 0, []
        if not hasattr(done, "files_synced"):
            raise self._wrong("sync_artifacts", done, "WorkspaceSyncResult")
        return done.files_synced, done.bytes_synced, list(done.errors)

    # ---- many files ----

    def upload_files(self, files: list[tuple[str, bytes, str | None]],
                     overwrite: bool) -> list[_Transfer]:
        answers: list[_Transfer] = [(None, None, False)] * len(files)
        wanted: list[tuple[int, str, bytes]] = []
        for index, (path, data, host_path) in enumerate(files):
            try:
                if not overwrite and self._exists(path):
                    answers[index] = (None, None, True)
                    continue
                if host_path is not None:
                    data = _host_file(host_path)
                wanted.append((index, path, data))
            except Exception as error:  # pylint: disable=broad-except
                answers[index] = (None, describe(error), False)
        for (index, _, _), failure in zip(wanted, self._upload([(p, d) for _, p, d in wanted])):
            answers[index] = (None, failure, False)
        return answers

    def _upload(self, files: list[tuple[str, bytes]]) -> Iterable[_Error]:
        if files and self._has("upload_files"):
            return [_error_of(one) for one in self._call_for_each("upload_files", files)]
        return [_caught(lambda path=path, data=data: self.write_file(path, data, False))[1]
                for path, data in files]

    def download_files(self, files: list[tuple[str, str | None]],
                       overwrite: bool) -> list[_Transfer]:
        answers: list[_Transfer] = [(None, None, True)] * len(files)
        wanted = [(index, path, dest) for index, (path, dest) in enumerate(files)
                  if overwrite or dest is None or not os.path.lexists(dest)]
        for (index, _, dest), (data, error) in zip(
                wanted, self._download([path for _, path, _ in wanted])):
            if error is None and dest is not None:
                error = _caught(lambda dest=dest, data=data: _replace(dest, data))[1]
            answers[index] = (data if dest is None else None, error, False)
        return answers

    def _download(self, paths: list[str]) -> Iterable[tuple[bytes | None, _Error]]:
        if paths and self._has("download_files"):
            found = self._call_for_each("download_files", paths)
            for one in found:
                if one.error is None and not isinstance(one.content, bytes):
                    raise self._wrong("download_files", one.content, "bytes, as a content")
            return [(one.content, _error_of(one)) for one in found]
        return [_caught(lambda path=path: self.read_file(path)) for path in paths]

    # ---- execute ----

    def execute(self, command: str | list[str], timeout: float, cwd: str | None,
                env: list[str]) -> tuple[str, str, int, bool, bool]:
        line = command if isinstance(command, str) else shlex.join(command)
        more = {"env": dict(entry.split("=", 1) for entry in env)} if env else {}
        done = self._call("execute", line, timeout=timeout or None, cwd=cwd, **more)
        if not isinstance(done, ExecuteResult):
            raise self._wrong("execute", done, "ExecuteResult")
        for what, value, kind in (("output", done.output, str), ("stderr", done.stderr, str),
                                  ("exit_code", done.exit_code, int)):
            if not isinstance(value, kind):
                raise self._wrong("execute", value, f"{kind.__name__}, as {what}")
        return done.output, done.stderr, done.exit_code, done.truncated, done.timed_out


def _caught(work: Any) -> tuple[Any, _Error]:
    try:
        return work(), None
    except Exception as error:  # pylint: disable=broad-except
        return None, describe(error)


def _error_of(result: Any) -> _Error:
    return None if result.error is None else describe(OSError(5, f"{result.path}: {result.error}"))


def _check_place(dest: str) -> None:
    """What is replaced is a file or a link: a device, /dev/null say, is not to become one."""
    try:
        mode = os.lstat(dest).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), dest)
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise OSError(errno.EINVAL, "it is no regular file but a device, FIFO or socket", dest)


def _replace(dest: str, data: bytes) -> None:
    """Write a host file; nobody ever sees half of it."""
    folder = os.path.dirname(os.path.abspath(dest))
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
    _check_place(dest)
    name = os.path.join(folder, f".pinfold-{secrets.token_hex(8)}.tmp")
    # The kernel applies the umask: it cannot be asked for without changing it, for all threads.
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, dest)
    except BaseException:
        os.unlink(name)
        raise
