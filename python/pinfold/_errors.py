# SPDX-License-Identifier: Apache-2.0
"""Exceptions, and how they stand for the library's errors."""

from __future__ import annotations

import asyncio
import errno
import os
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


# From the special to the general: the first class that fits.
_CODES: list[tuple[type[BaseException], int]] = [
    *((own, code) for code, own in _CLASSES.items() if issubclass(own, SandboxError)),
    (asyncio.CancelledError, CANCELLED), (MemoryError, NO_MEMORY), (OSError, OS),
    (NotImplementedError, NOT_SUPPORTED), (UnicodeDecodeError, ENCODING), (ValueError, VALUE),
    (TypeError, TYPE),
]

_MESSAGE_BYTES = 239  # what struct pinfold_error has room for


def explain(error: BaseException) -> tuple[int, int, int, str]:
    """What the library is told of an exception that made a call fail."""
    call = _pinfold.current_call()
    if call is not None:
        call.cause = error
    return describe(error)


def is_made_of(error: BaseException, cause: BaseException) -> bool:
    """Whether an error of the library is what it made of this exception."""
    return describe(cause)[3][:80] in str(error)


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
    data = message.replace("\0", " ").encode("utf-8", "replace")[:_MESSAGE_BYTES]
    return (code, number, int(getattr(error, "retryable", False)),
            data.decode("utf-8", "ignore"))
