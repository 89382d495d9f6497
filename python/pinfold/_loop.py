# SPDX-License-Identifier: Apache-2.0
"""Calls of the library and event loops.

A call runs on a thread of the extension, which does not hold the GIL. When it is done it lies in
the mailbox of the event loop, whose descriptor wakes the loop. Cancelling the task fires the call's
token, and the await ends when the call has: whatever a command started is dead by then.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
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
    """The mailbox of one event loop, and who waits there. The loop alone keeps it, as a reader:
    when it is closed this is gone, nobody will ever wait again, and what runs is cancelled."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self.mailbox = _pinfold.Mailbox()
        self.waiting: dict[_pinfold.Call, asyncio.Future[None]] = {}
        self.at_once = 0
        loop.add_reader(self.mailbox.fileno(), self.deliver)

    def __del__(self) -> None:
        for call in list(self.waiting):
            _cancel(call)

    def deliver(self) -> None:
        for call in self.mailbox.take():
            done = call.done  # asked first: what comes later tells the mailbox again
            if call.consumer is not None:
                _consume(call)
            waiter = self.waiting.get(call)
            if done and waiter is None:
                call.causes = None  # nobody asks for its result, and they lead back here
            elif done and waiter is not None and not waiter.done():
                waiter.set_result(None)


def _consume(call: _pinfold.Call) -> None:
    """Hand over output. A consumer that raises stops the command."""
    for stream, data in call.take_output():
        try:
            if call.stopped is None:
                _refuse(call.consumer("stdout" if stream == 1 else "stderr", data))
        except BaseException as error:  # pylint: disable=broad-except
            call.stopped = error  # the await raises it; here it would keep others from their mail
            call.cancel()


def _refuse(answer: Any) -> None:
    """A coroutine of a function that does not look like one of coroutines."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise TypeError("on_output returned a coroutine, which nobody awaits: have it start a task")


_posts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_Post]] \
    = weakref.WeakKeyDictionary()
_under_way: set[_pinfold.Call] = set()
live_sandboxes: weakref.WeakSet[Any] = weakref.WeakSet()
live_agents: weakref.WeakSet[Any] = weakref.WeakSet()


def _post_of(loop: asyncio.AbstractEventLoop) -> _Post:
    found = _posts.get(loop)
    post = None if found is None else found()
    if post is None:
        post = _Post(loop)
        _posts[loop] = weakref.ref(post)
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
    done = _begin(loop, call)
    try:
        await done
    except asyncio.CancelledError:
        _cancel(call)
        await _end(loop, call)
        raise
    except BaseException:  # the coroutine is closed: nobody will wait
        _cancel(call)
        raise
    finally:
        _under_way.discard(call)
        _wait(loop, call, None)
    return result(call)


def _begin(loop: asyncio.AbstractEventLoop, call: _pinfold.Call) -> asyncio.Future[None]:
    call.submit(_post_of(loop).mailbox, loop, audit_logger.isEnabledFor(logging.INFO))
    _under_way.add(call)
    done = loop.create_future()
    _wait(loop, call, done)
    return done


def _wait(loop: asyncio.AbstractEventLoop, call: _pinfold.Call,
          done: asyncio.Future[None] | None) -> None:
    """What a call tells of its end; None: nobody. A coroutine must not keep the post."""
    found = _posts.get(loop)
    post = None if found is None else found()
    if post is None:
        return
    if done is None:
        post.waiting.pop(call, None)
    else:
        post.waiting[call] = done


def _cancel(call: _pinfold.Call) -> None:
    """In a fork it is its parent's, and no thread of ours is at it."""
    if call in _under_way:
        call.cancel()


async def _end(loop: asyncio.AbstractEventLoop, call: _pinfold.Call) -> None:
    """Wait for a cancelled call, and let nothing interrupt that."""
    while not call.done and call in _under_way:
        done = loop.create_future()
        _wait(loop, call, done)
        try:
            await done
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
    for post in [found() for found in _posts.values()]:
        if post is not None:
            post.waiting.clear()  # what goes later finds no names of this module


def _after_fork() -> None:
    """What is under way is the parent's, which is not to be disturbed."""
    _under_way.clear()
    _posts.clear()


atexit.register(_exit)
os.register_at_fork(after_in_child=_after_fork)
