# SPDX-License-Identifier: Apache-2.0
"""What the adapters share: files anywhere in a sandbox, for callers with and without an event loop.

Operations on files know the workspace alone; other agents also want /tmp and the like, which only
commands of the sandbox reach. Such an operation is a generator of calls, and is driven by blocking
or by awaiting.
"""

from __future__ import annotations

import contextvars
import errno
import os
import secrets
import threading
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from .. import _pinfold
from .._bridge import in_thread
from .._errors import SandboxPathError
from .._loop import run, run_here

T = TypeVar("T")
Steps = Generator[_pinfold.Call, Any, T]

# They tell by their exit code what went wrong, as the numbers of errno do. $1 is read, $2 written.
_FETCH = """[ -e "$1" ] || exit 2
[ ! -d "$1" ] || exit 21
[ -f "$1" ] || exit 22
[ -r "$1" ] || exit 13
cat < "$1" > "$2" || exit 5"""
_STORE = """[ ! -d "$2" ] || exit 21
mkdir -p -- "${2%/*}/" || exit 13
[ ! -e "$2" ] || [ -w "$2" ] || exit 13
cat < "$1" > "$2" || exit 13"""
_REMOVE = """[ -e "$1" ] || [ -L "$1" ] || exit 2
[ -L "$1" ] || [ ! -d "$1" ] || exit 21
rm -f -- "$1" || exit 13"""
_LIST = """[ -e "$1" ] || exit 2
[ -d "$1" ] || exit 20
cd -- "$1" || exit 13
for name in * .[!.]* ..?*; do
    if [ -d "$name" ]; then printf 'd%s\\0' "$name"
    elif [ -e "$name" ] || [ -L "$name" ]; then printf 'f%s\\0' "$name"
    fi
done"""
_LIST_BYTES = 1 << 20
_NUMBERS = (errno.ENOENT, errno.EIO, errno.EACCES, errno.EISDIR, errno.EINVAL,
            errno.ENOTDIR)


def blocking(call: _pinfold.Call) -> Any:
    """Do a call, and wait for it. Python looks for signals when it runs in the main thread, so there
    another thread does the call, and Ctrl-C ends it."""
    if threading.current_thread() is not threading.main_thread():
        return run_here(call)
    context = contextvars.copy_context()
    return in_thread(lambda: context.run(run_here, call), call.cancel)


def here(steps: Steps[T]) -> T:
    """Do the steps, and wait for them."""
    try:
        call = next(steps)
        while True:
            try:
                answer = blocking(call)
            except BaseException as error:  # pylint: disable=broad-except
                call = steps.throw(error)  # which may still have something to clear away
            else:
                call = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def awaited(steps: Steps[T]) -> T:
    """Do the steps on the event loop."""
    try:
        call = next(steps)
        while True:
            try:
                answer = await run(call)
            except BaseException as error:  # pylint: disable=broad-except
                call = steps.throw(error)
            else:
                call = steps.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


def _shell(core: _pinfold.Sandbox, script: str, *words: str,
           room: int | None = None) -> _pinfold.Call:
    return core.execute(["sh", "-c", script, "sh", *words], None, None, None, room, False, 0,
                        False)


def _check(raw: tuple[Any, ...], path: str) -> None:
    """Raise what the exit code of a script stands for."""
    code, stderr = raw[1], raw[3]
    if code:
        number = code if code in _NUMBERS else errno.EIO
        raise OSError(number, stderr.strip() or os.strerror(number), path)


def scratch() -> str:
    """The name of a file that nobody has yet."""
    return f".pinfold-{secrets.token_hex(8)}"


def _fetched(raw: list[tuple[Any, ...]]) -> bytes:
    content: bytes = raw[0][1]
    return content


def fetch(core: _pinfold.Sandbox, path: str) -> Steps[bytes]:
    """The bytes of one file."""
    try:
        return _fetched((yield core.download_files([(path, None)], True)))
    except SandboxPathError:
        if not path.startswith("/"):
            raise
    name = scratch()
    try:
        _check((yield _shell(core, _FETCH, path, name)), path)
        return _fetched((yield core.download_files([(name, None)], True)))
    finally:
        yield _shell(core, 'rm -f -- "$1"', name)


def store(core: _pinfold.Sandbox, path: str, data: bytes) -> Steps[None]:
    """Write one file, and the directories that lead to it."""
    try:
        yield core.add_files([(path, data)], True)
        return
    except SandboxPathError:
        if not path.startswith("/"):
            raise
    name = scratch()
    try:
        yield core.add_files([(name, data)], True)
        _check((yield _shell(core, _STORE, name, path)), path)
    finally:
        yield _shell(core, 'rm -f -- "$1"', name)


def remove(core: _pinfold.Sandbox, path: str) -> Steps[None]:
    """Remove one file, or a link itself."""
    try:
        yield core.delete_files([path])
    except SandboxPathError:
        if not path.startswith("/"):
            raise
        _check((yield _shell(core, _REMOVE, path)), path)


def entries(core: _pinfold.Sandbox, path: str) -> Steps[list[tuple[str, bool, int | None]]]:
    """The name, whether it is a directory, and the size if known, of what is in a directory."""
    try:
        found: list[tuple[str, bool, int | None]] = yield core.list_dir(path)
        return [(name.rpartition("/")[2], is_dir, size) for name, is_dir, size in found]
    except SandboxPathError:
        if not path.startswith("/"):
            raise
    raw = yield _shell(core, _LIST, path, room=_LIST_BYTES)
    _check(raw, path)
    if raw[2]:
        raise OSError(errno.E2BIG, "too many entries", path)
    output: str = raw[0]
    return sorted((name[1:], name[0] == "d", None) for name in output.split("\0") if name)


def each(steps: Sequence[Steps[T]]) -> Steps[list[T | Exception]]:
    """Do all of them, one after another; what one of them raised is its answer."""
    answers: list[T | Exception] = []
    for one in steps:
        try:
            answers.append((yield from one))
        except Exception as error:  # pylint: disable=broad-except
            answers.append(error)
    return answers
