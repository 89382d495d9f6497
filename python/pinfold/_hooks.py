# SPDX-License-Identifier: Apache-2.0
"""Hooks: functions that an agent calls at set points of its life.

Those of "before" run in the order they were added, those of "after" in the reverse order. One that
raises ends the invocation, or the direct call, with its exception. The library calls them; what is
here makes events of its arguments, and tells it what they changed.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Union, runtime_checkable

from . import _check as check
from ._messages import Message, ToolResult, ToolUse, dump, message, parse_input, raw_result, result
from ._messages import STOP_REASONS, blocks

if TYPE_CHECKING:
    from ._agent import Agent
    from ._tools import AgentTool


class HookEvent:
    """What a hook is told. What is not to be changed refuses to be."""

    _writable: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, agent: Agent):
        self.agent = agent

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and name not in self._writable:
            raise AttributeError(f"{name} of {type(self).__name__} cannot be changed")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


class AgentInitializedEvent(HookEvent):
    """The agent is made, with its tools and plugins, and attached. Callbacks are no coroutines."""


class BeforeInvocationEvent(HookEvent):
    """An invocation begins. When a callback raises, no AfterInvocationEvent follows."""


class AfterInvocationEvent(HookEvent):
    """An invocation has ended."""

    _writable = frozenset({"resume"})

    def __init__(self, agent: Agent, success: bool):
        super().__init__(agent)
        self.success = success
        #: Set to another prompt to have it go on; not when it has failed.
        self.resume: str | None = None


class MessageAddedEvent(HookEvent):
    """A message is part of the conversation now."""

    def __init__(self, agent: Agent, added: Message):
        super().__init__(agent)
        self.message = added


class BeforeModelCallEvent(HookEvent):
    """The model is about to be asked."""


class AfterModelCallEvent(HookEvent):
    """The model has answered, or has failed."""

    _writable = frozenset({"retry"})

    def __init__(self, agent: Agent, answer: Message | None, stop_reason: str | None,
                 exception: Exception | None):
        super().__init__(agent)
        #: None: it failed.
        self.message = answer
        self.stop_reason = stop_reason
        self.exception = exception
        #: Set to True: forget the answer and ask once more; at most 10 times.
        self.retry = False


class BeforeToolCallEvent(HookEvent):
    """A tool is about to be called. What is in tool_use["input"] may be changed, too."""

    _writable = frozenset({"tool_use", "selected_tool", "cancel_tool"})

    def __init__(self, agent: Agent, tool_use: ToolUse, selected_tool: AgentTool | None,
                 cancel_tool: bool | str):
        super().__init__(agent)
        self.tool_use = tool_use
        #: None: there is no such tool. Set to another one to have that called.
        self.selected_tool = selected_tool
        #: True, or what the model is told instead of a result.
        self.cancel_tool = cancel_tool


class AfterToolCallEvent(HookEvent):
    """A tool was called, or was not."""

    _writable = frozenset({"result", "retry"})

    def __init__(self, agent: Agent, tool_use: ToolUse, selected_tool: AgentTool | None,
                 given: ToolResult, cancel_message: str | None):
        super().__init__(agent)
        self.tool_use = tool_use
        #: None: none was called.
        self.selected_tool = selected_tool
        self.result = given
        self.cancel_message = cancel_message
        #: Set to True: call it once more; at most 10 times, and not when it was cancelled.
        self.retry = False


# How hook.c numbers them.
_KINDS: dict[type[HookEvent], int] = {
    AgentInitializedEvent: 0, BeforeInvocationEvent: 1, AfterInvocationEvent: 2,
    BeforeModelCallEvent: 3, AfterModelCallEvent: 4, MessageAddedEvent: 5, BeforeToolCallEvent: 6,
    AfterToolCallEvent: 7,
}

HookCallback = Callable[[Any], Any]
EventTypes = Union[type[HookEvent], Sequence[type[HookEvent]], None]


@runtime_checkable
class HookProvider(Protocol):
    """Whoever brings several hooks."""

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Call registry.add_callback() for each."""


class HookRegistry:
    """The hooks of an agent. There is no way to remove them."""

    def __init__(self, add: Callable[[tuple[int, Callable[..., Any]]], None],
                 call: Callable[[HookCallback, HookEvent], Any], agent: Agent):
        self._add, self._call, self._agent = add, call, agent

    def add_callback(self, event_type: EventTypes, callback: HookCallback) -> None:
        """Have a function called with events of a type, or of several; None: those that its
        annotation names."""
        check.function("callback", callback)
        for kind in event_types(event_type, callback):
            if kind is AgentInitializedEvent and inspect.iscoroutinefunction(callback):
                raise ValueError("a callback of AgentInitializedEvent must not be a coroutine")
            self._add((_KINDS[kind], self._wrap(kind, callback)))

    def add_hook(self, provider: HookProvider) -> None:
        """Add what a provider brings."""
        if not isinstance(provider, HookProvider) or isinstance(provider, type):
            raise TypeError(f"provider: an object with register_hooks() is required, not "
                            f"{provider!r}")
        provider.register_hooks(self)

    def _wrap(self, kind: type[HookEvent], callback: HookCallback) -> Callable[..., Any]:
        agent, call = self._agent, self._call
        if kind is BeforeToolCallEvent:
            return lambda *raw: _before_tool(agent, lambda event: call(callback, event), *raw)
        if kind is AfterToolCallEvent:
            return lambda *raw: _after_tool(agent, lambda event: call(callback, event), *raw)
        if kind is AfterModelCallEvent:
            return lambda *raw: _after_model(agent, lambda event: call(callback, event), *raw)
        if kind is AfterInvocationEvent:
            return lambda code: _after_invocation(agent, lambda event: call(callback, event), code)
        if kind is MessageAddedEvent:
            return lambda raw: call(callback, MessageAddedEvent(agent, message(raw)))
        return lambda: call(callback, kind(agent))


def event_types(given: EventTypes, callback: HookCallback) -> list[type[HookEvent]]:
    """Which events a callback is for."""
    if given is None:
        hints = [hint for name, hint in typing.get_type_hints(callback).items() if name != "return"]
        if not hints:
            raise ValueError(f"{callback!r} has no annotation that says which events it is for")
        given = list(typing.get_args(hints[0])) or [hints[0]]
    found = [given] if isinstance(given, type) else list(
        check.iterable("event_type", given, "a type of event, or several"))
    for kind in found:
        if not isinstance(kind, type) or kind not in _KINDS:
            raise ValueError(f"event_type: {kind!r} is no type of event")
    return found


def hook(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a plugin a hook; its annotation says of which events."""
    check.function("callback", callback)
    callback.__dict__["_pinfold_hook"] = True
    return callback


# ---- what the library calls ----

def _before_tool(agent: Agent, call: Callable[[HookEvent], Any], own_id: str, name: str,
                 text: str, tool: str | None, cancel: str | None) -> Any:
    found = agent._tool_called(tool)
    event = BeforeToolCallEvent(
        agent, {"toolUseId": own_id, "name": name, "input": parse_input(text)}, found,
        cancel if cancel is not None else False)
    call(event)
    given, changed, selected = event.tool_use.get("input"), None, None
    if given != parse_input(text):
        changed = given if isinstance(given, str) else dump(given)
    if event.selected_tool is not found and event.selected_tool is not None:
        selected = agent._describe(event.selected_tool)
    said = event.cancel_tool
    if said is True:
        said = "This tool call was cancelled by the user."
    return (said if said and said != cancel else None, changed, selected)


def _after_tool(agent: Agent, call: Callable[[HookEvent], Any], own_id: str, name: str, text: str,
                tool: str | None, cancel: str | None, raw: Any) -> Any:
    event = AfterToolCallEvent(
        agent, {"toolUseId": own_id, "name": name, "input": parse_input(text)},
        agent._tool_called(tool), result(raw, own_id), cancel)
    call(event)
    changed = raw_result(event.result)
    return (None if changed == raw or changed == raw_result(result(raw, own_id)) else changed,
            bool(event.retry))


def _after_invocation(agent: Agent, call: Callable[[HookEvent], Any], code: int) -> str | None:
    event = AfterInvocationEvent(agent, code >= 0)
    call(event)
    return event.resume


def _after_model(agent: Agent, call: Callable[[HookEvent], Any], reply: Any,
                 exception: Exception | None) -> bool:
    answer = None if reply is None else {"role": "assistant", "content": blocks(reply[0])}
    stop = None if reply is None else STOP_REASONS.get(reply[1])
    event = AfterModelCallEvent(agent, answer, stop, exception)
    call(event)
    return bool(event.retry)
