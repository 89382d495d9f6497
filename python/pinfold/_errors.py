# SPDX-License-Identifier: Apache-2.0
"""Exceptions, and how they stand for the library's errors."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _pinfold


class SandboxError(Exception):
    """Base of the exceptions that are Pinfold's own."""

    #: The same call may succeed later, unchanged.
    retryable: bool = False
    #: The answer of a remote service that is behind it.
    http_status: int | None = None


class SandboxPathError(SandboxError, ValueError):
    """A workspace path is malformed, or leaves the workspace."""


class SandboxStartError(SandboxError, RuntimeError):
    """The sandbox is not started, or another one owns its workspace or its storage."""


class SandboxAttachError(SandboxError, RuntimeError):
    """The agent cannot be attached."""


class AgentSandboxDetachedError(SandboxError, RuntimeError):
    """The agent is no longer attached to a sandbox."""


class SandboxMutationDeniedError(SandboxError, PermissionError):
    """A read-only agent or view tried to change something."""


class WorkspacePrepareError(SandboxError, RuntimeError):
    """Seeding or sync reported errors; result has them."""

    #: WorkspaceSeedResult or WorkspaceSyncResult, as far as there is one.
    result: Any = None


class SandboxBackendError(SandboxError, RuntimeError):
    """A backend broke its contract, or its helper process died."""


class SandboxCancelledError(SandboxError):
    """The call was cancelled by something else than the task that waits for it."""


class ConcurrencyException(SandboxError, RuntimeError):
    """The agent has an invocation under way."""


class SandboxDecodeError(SandboxError, UnicodeDecodeError):
    """Text was asked for, and the file is not UTF-8."""

    def __init__(self, message: str):
        UnicodeDecodeError.__init__(self, "utf-8", b"\xff", 0, 1, message)

    def __str__(self) -> str:
        return self.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason,), self.__dict__


# enum pinfold_code; the numbers are ABI.
(VALUE, PATH, OS, NO_MEMORY, START, ATTACH, DETACHED, DENIED, PREPARE, CANCELLED, TIMEOUT,
 ENCODING, TYPE, NOT_SUPPORTED, BACKEND, BUSY) = range(1, 17)

_CLASSES: dict[int, type[Exception]] = {
    VALUE: ValueError, PATH: SandboxPathError, NO_MEMORY: MemoryError, START: SandboxStartError,
    ATTACH: SandboxAttachError, DETACHED: AgentSandboxDetachedError,
    DENIED: SandboxMutationDeniedError, PREPARE: WorkspacePrepareError,
    CANCELLED: SandboxCancelledError, TIMEOUT: TimeoutError, ENCODING: SandboxDecodeError,
    TYPE: TypeError, NOT_SUPPORTED: NotImplementedError, BACKEND: SandboxBackendError,
    BUSY: ConcurrencyException,
}


def make_error(code: int, number: int, http_status: int, retryable: bool, message: str,
               partial: Any) -> Exception:
    """The exception of an error of the library; partial is what the call gave all the same."""
    error: Exception
    if code == OS and number:
        error = OSError(number, message)  # FileNotFoundError and so on, by the number
    else:
        error = _CLASSES.get(code, OSError if code == OS else SandboxBackendError)(message)
    error.__dict__.update(retryable=retryable, http_status=http_status or None, partial=partial)
    return error


def is_fatal(error: BaseException) -> bool:
    """Whether it is no failure of what raised it, but is to end the program: SystemExit,
    KeyboardInterrupt. These come through whatever called the code that raised them."""
    return not isinstance(error, (Exception, asyncio.CancelledError))


# From the special to the general: the first class that fits.
_CODES: list[tuple[type[BaseException], int]] = [
    *((own, code) for code, own in _CLASSES.items() if issubclass(own, SandboxError)),
    (asyncio.CancelledError, CANCELLED), (MemoryError, NO_MEMORY), (OSError, OS),
    (NotImplementedError, NOT_SUPPORTED), (UnicodeDecodeError, ENCODING), (ValueError, VALUE),
    (TypeError, TYPE),
]

_MESSAGE_BYTES = 239  # what struct pinfold_error has room for


_here = threading.local()  # causes: what Python code raised that this thread called by the library
#: Who is told of what is to end the program, where no call is known that it could come through.
on_fatal: list[Callable[[BaseException], None]] = []


def explain(error: BaseException) -> tuple[int, int, int, str]:
    """What the library is told of an exception that made a call fail."""
    causes, call = getattr(_here, "causes", None), _pinfold.current_call()
    if causes is not None:
        causes.append(error)
    elif call is not None:
        call.causes = [*(call.causes or ()), error]
    elif is_fatal(error):
        for tell in on_fatal:
            tell(error)
    return describe(error)


def is_made_of(error: BaseException, cause: BaseException) -> bool:
    """Whether an error of the library is what it made of this exception."""
    code, _, _, message = describe(cause)
    if message:
        return message[:80] in str(error)
    return isinstance(error, _CLASSES.get(code, OSError))


def cause_of(error: BaseException | None, causes: Iterable[BaseException]) -> BaseException | None:
    """Which of the exceptions of Python code is to be heard of: one that is to end the program,
    else what the error of the library was made of."""
    for cause in causes:
        if is_fatal(cause):
            return cause
    if error is None:
        return None
    return next((cause for cause in causes if is_made_of(error, cause)), None)


@contextlib.contextmanager
def as_raised(wrapped: bool = False) -> Iterator[None]:
    """For a function of the library that calls Python code before it returns: what that raises is
    raised as it was. wrapped: as the cause of the library's error, unless it is to end the
    program."""
    outer, _here.causes = getattr(_here, "causes", None), []
    failure: Exception | None = None
    try:
        yield
    except Exception as error:  # pylint: disable=broad-except
        failure = error
    finally:
        causes, _here.causes = _here.causes, outer
    cause = cause_of(failure, causes)
    if cause is not None and (is_fatal(cause) or
                              not (wrapped or isinstance(cause, asyncio.CancelledError))):
        raise cause
    if failure is not None:
        raise failure from (cause or failure.__cause__)


@contextlib.contextmanager
def of_a_call() -> Iterator[None]:
    """While a call is done in this thread: what Python code raises belongs to it."""
    outer, _here.causes = getattr(_here, "causes", None), None
    try:
        yield
    finally:
        _here.causes = outer


def describe(error: BaseException) -> tuple[int, int, int, str]:
    """An exception as (code, errno, retryable, message)."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), BACKEND)
    number = 0
    message = str(error)
    if isinstance(error, OSError) and code == OS:
        # A timeout of asyncio has no number.
        number = error.errno or (errno.ETIMEDOUT if isinstance(error, TimeoutError) else errno.EIO)
        text = error.strerror or str(error) or os.strerror(number)
        message = f"{error.filename}: {text}" if error.filename else text
    elif code == BACKEND and not isinstance(error, SandboxError):
        message = f"{type(error).__name__}: {error}"
    elif code == CANCELLED:
        message = message or "cancelled"  # a task's has no words
    data = message.replace("\0", " ").encode("utf-8", "replace")[:_MESSAGE_BYTES]
    return (code, number, int(getattr(error, "retryable", False)),
            data.decode("utf-8", "ignore"))
