# SPDX-License-Identifier: Apache-2.0
"""Calls of the library and event loops.

A call runs on a thread of the extension, which does not hold the GIL. When it is done it lies in
the mailbox of the event loop, whose descriptor wakes the loop. Cancelling the task fires the call's
token, and the await ends when the call has: whatever a command started is dead by then.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import weakref
from collections.abc import Callable
from typing import Any

from . import _pinfold
from ._errors import cause_of, is_fatal, of_a_call

_pinfold.check_interpreter()  # before there is anything that its end would end

audit_logger = logging.getLogger("elsai.sandbox.audit")

_AT_ONCE = 32  # some tenths of a millisecond of such work
_EXIT_SECONDS = 10  # a command that is told to end has half a second; remote services have more


class _Post:
    """The mailbox of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.mailbox = _pinfold.Mailbox()
        self.at_once = 0
        loop.add_reader(self.mailbox.fileno(), self.deliver)

    def deliver(self) -> None:
        for call in self.mailbox.take():
            done = call.done  # asked first: what comes later tells the mailbox again
            if call.consumer is not None:
                _consume(call)
            waiter = call.waiter
            if done and waiter is None:
                call.causes = None  # nobody asks for its result, and they lead back here
            elif done and not waiter.done():
                waiter.set_result(None)


def _consume(call: _pinfold.Call) -> None:
    """Hand over output. A consumer that raises stops the command."""
    for stream, data in call.take_output():
        try:
            if call.stopped is None:
                call.consumer("stdout" if stream == 1 else "stderr", data)
        except BaseException as error:  # pylint: disable=broad-except
            call.stopped = error  # the await raises it; here it would keep others from their mail
            call.cancel()


_posts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Post] = weakref.WeakKeyDictionary()
_under_way: set[_pinfold.Call] = set()
live_sandboxes: weakref.WeakSet[Any] = weakref.WeakSet()
live_agents: weakref.WeakSet[Any] = weakref.WeakSet()


def _post_of(loop: asyncio.AbstractEventLoop) -> _Post:
    post = _posts.get(loop)
    if post is None:
        post = _posts[loop] = _Post(loop)
    return post


def at_once() -> bool:
    """Whether what waits for nobody may be done on the loop itself. Now and then it may not, so
    that a task which does nothing else lets others have their turn."""
    post = _post_of(asyncio.get_running_loop())
    post.at_once = (post.at_once + 1) % _AT_ONCE
    return post.at_once != 0


async def run(call: _pinfold.Call) -> Any:
    """Have a call done, off the event loop, and return its value."""
    loop = asyncio.get_running_loop()
    post = _post_of(loop)
    done = loop.create_future()
    call.submit(post.mailbox, done, audit_logger.isEnabledFor(logging.INFO))
    _under_way.add(call)
    try:
        await done
    except asyncio.CancelledError:
        call.cancel()
        await _end(loop, call)
        raise
    except BaseException:  # the coroutine is closed: nobody will wait
        call.cancel()
        raise
    finally:
        _under_way.discard(call)
        call.waiter = None  # it leads back here
    return result(call)


async def _end(loop: asyncio.AbstractEventLoop, call: _pinfold.Call) -> None:
    """Wait for a cancelled call, and let nothing interrupt that."""
    while not call.done:
        call.waiter = loop.create_future()
        try:
            await call.waiter
        except asyncio.CancelledError:
            pass  # once more: the answer stays the same
    try:
        result(call)
    except Exception:  # pylint: disable=broad-except
        pass  # it was cancelled; audit events have been delivered


def result(call: _pinfold.Call) -> Any:
    """The value of a call that is done."""
    return _told(call, call.result)


def run_here(call: _pinfold.Call) -> Any:
    """Do a call in this thread."""
    with of_a_call():
        return _told(call, lambda: call.run(audit_logger.isEnabledFor(logging.INFO)))


def _told(call: _pinfold.Call, outcome: Callable[[], Any]) -> Any:
    """The outcome of a call, or what Python code raised that it called."""
    failure: Exception | None = None
    value = None
    try:
        value = outcome()
    except Exception as error:  # pylint: disable=broad-except
        failure = error
    causes, stopped = call.causes or (), call.stopped
    call.causes = call.stopped = None  # their tracebacks lead back here
    if stopped is not None:
        raise stopped
    cause = cause_of(failure, causes)
    if cause is not None and (is_fatal(cause) or isinstance(cause, type(failure))):
        raise cause
    if failure is not None:
        raise failure from cause
    return value


def _exit() -> None:
    """Before the interpreter ends: end what runs, and stop every sandbox without a sync."""
    for call in list(_under_way):
        call.cancel()
    ends: list[tuple[Any, Any, Any]] = []
    ends += [(one._core, lambda core: core.is_prepared, lambda core: core.close(False))
             for one in list(live_agents) if one._process == os.getpid()]
    ends += [(one._core, lambda core: core.is_started, lambda core: core.stop(False))
             for one in list(live_sandboxes)]
    for core, is_live, end in ends:
        try:
            if is_live(core):
                run_here(end(core))
        except BaseException:  # pylint: disable=broad-except
            logging.getLogger("elsai.sandbox").warning("stop at exit", exc_info=True)
    _pinfold.wait_idle(_EXIT_SECONDS)
    _pinfold.set_closing()


atexit.register(_exit)
