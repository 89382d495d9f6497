# SPDX-License-Identifier: Apache-2.0
"""Python code that the library calls back, and coroutines among it.

It is called on threads that no event loop knows. What it returns is awaited on the event loop that
waits for the call which led there, so that it may use what belongs to that loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from . import _pinfold

_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 5  # with an event loop that does not come to cancel a task
_CLEANUP_SECONDS = 10  # for what clears away after a call that was cancelled

_lock = threading.RLock()  # a collection, anywhere, may find a loop that is gone, and cancel


class _Cancels:
    """What is to be cancelled with a call: several coroutines may belong to one."""

    def __init__(self) -> None:
        self.all: set[Callable[[], None]] = set()

    def __call__(self) -> None:
        with _lock:
            found = list(self.all)
        for cancel in found:
            cancel()


def _add_cancel(call: _pinfold.Call, cancel: Callable[[], None]) -> _Cancels:
    with _lock:
        cancels: _Cancels = call.on_cancel or _Cancels()
        cancels.all.add(cancel)
        call.on_cancel = cancels
        return cancels


def _remove_cancel(call: _pinfold.Call, cancels: _Cancels, cancel: Callable[[], None]) -> None:
    with _lock:
        cancels.all.discard(cancel)
        if not cancels.all and call.on_cancel is cancels:
            call.on_cancel = None


class _Waited:
    """A coroutine that the loop of another thread runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any]):
        self.loop, self.awaitable = loop, awaitable
        self.ended = threading.Event()
        self.task: asyncio.Future[Any] | None = None
        self.wanted = True
        self.heard = False  # the loop has come to cancelling it

    def start(self) -> None:
        if not self.wanted:
            self.heard = True
            if inspect.iscoroutine(self.awaitable):
                self.awaitable.close()
            self.ended.set()
            return
        self.task = asyncio.ensure_future(self.awaitable)
        self.task.add_done_callback(lambda _: self.ended.set())

    def cancel(self) -> None:
        """From any thread."""
        self.wanted = False
        try:
            self.loop.call_soon_threadsafe(self._cancel_task)
        except RuntimeError:  # it is closed
            pass

    def _cancel_task(self) -> None:
        if self.task is not None and not self.heard:
            self.task.cancel()  # once: what it does about the first must not be cut short
        self.heard = True

    def _forget(self) -> None:
        """Its loop will not begin it."""
        self.wanted = False
        if self.task is None and inspect.iscoroutine(self.awaitable):
            self.awaitable.close()

    def wait(self, call: _pinfold.Call, cleanup: bool) -> Any:
        """Until it has ended. Whatever ends the call cancels it, and waits for it; what clears away
        has some time more."""
        since: float | None = None
        until: float | None = None
        while not self.ended.wait(_POLL_SECONDS):
            if self.loop.is_closed() or (call.cancelled and not self.loop.is_running()):
                self._forget()
                raise asyncio.CancelledError("the event loop has stopped")
            if cleanup and until is None and call.cancelled:
                until = time.monotonic() + _CLEANUP_SECONDS
            if since is None and (time.monotonic() > until if until is not None
                                  else not cleanup and _pinfold.cancelled()):
                since = time.monotonic()
                self.cancel()
            if since is not None and not self.heard \
                    and time.monotonic() - since > _PATIENCE_SECONDS:
                raise asyncio.CancelledError("the event loop is blocked")
        if self.task is None:
            raise asyncio.CancelledError("cancelled before it began")
        return self.task.result()


def _wait_on(loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any], call: _pinfold.Call,
             context: contextvars.Context | None, cleanup: bool) -> Any:
    waited = _Waited(loop, awaitable)
    # Tasks inherit the context that they are made in.
    try:
        loop.call_soon_threadsafe(waited.start, context=context)
    except RuntimeError:  # it is closed: nobody waits for anything but what clears away
        if cleanup:
            return run_alone(awaitable)
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        raise asyncio.CancelledError("the event loop is closed") from None
    if cleanup:
        return waited.wait(call, True)
    cancels = _add_cancel(call, waited.cancel)
    try:
        if call.cancelled:  # before it could be told
            waited.cancel()
        return waited.wait(call, False)
    finally:
        _remove_cancel(call, cancels, waited.cancel)


def finish(value: Any, call: _pinfold.Call | None = None,
           context: contextvars.Context | None = None, *, cleanup: bool = False) -> Any:
    """The value of a function of a user's, which may be a coroutine. call: on whose behalf, where
    the thread does not tell. cleanup: a coroutine that must have its time to end, also when the
    call was cancelled."""
    if not inspect.isawaitable(value):
        return value
    call = _pinfold.current_call() or call
    loop = None if call is None else call.loop
    # One that has stopped may go on; what clears away does not wait for that.
    if call is not None and loop is not None and (loop.is_running() or not cleanup):
        return _wait_on(loop, value, call, context, cleanup)
    return run_alone(value)


def run_alone(awaitable: Awaitable[Any]) -> Any:
    """Run a coroutine on a loop of its own, whatever runs in this thread."""
    async def alone() -> Any:
        return await awaitable

    if a_loop_runs():
        return in_thread(lambda: asyncio.run(alone()))
    return asyncio.run(alone())


def a_loop_runs() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def in_thread(work: Callable[[], Any], cancel: Callable[[], None] | None = None) -> Any:
    """What work returns, or raises, in a thread of its own. cancel: what ends it when a signal,
    Ctrl-C say, ends the wait for it."""
    outcome: list[Any] = []
    ended = threading.Event()  # Thread.join() forgets the thread when a signal interrupts it

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:  # pylint: disable=broad-except
            outcome.append((None, error))
        ended.set()

    thread = threading.Thread(target=run, name="pinfold")
    begun = False
    try:
        thread.start()
        begun = True  # before that there may be a thread or not, and nothing says which
        ended.wait()
    except BaseException:
        if cancel is not None:
            cancel()
            if begun:
                ended.wait()
        raise
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value
