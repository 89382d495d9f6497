# SPDX-License-Identifier: Apache-2.0
"""Hooks and plugins written in Python: their order, what they may change, what they raise."""

import asyncio
import contextvars
from pathlib import Path
from typing import Any

import pytest
from pinfold import (AfterInvocationEvent, AfterModelCallEvent, AfterToolCallEvent, Agent,
                     AgentConfig, AgentInitializedEvent, BeforeInvocationEvent,
                     BeforeModelCallEvent, BeforeToolCallEvent, HookRegistry, MessageAddedEvent,
                     ModelReply, Plugin, hook, host_tools, tool)

from support import call, local, results, run, scripted

ALL = [AgentInitializedEvent, BeforeInvocationEvent, AfterInvocationEvent, BeforeModelCallEvent,
       AfterModelCallEvent, MessageAddedEvent, BeforeToolCallEvent, AfterToolCallEvent]


@tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


class Provider:
    """Hooks of these events."""

    def __init__(self, callback: Any, *events: Any):
        self.callback, self.events = callback, list(events)

    def register_hooks(self, registry: HookRegistry, **_kwargs: Any) -> None:
        registry.add_callback(self.events, self.callback)


def with_hook(callback: Any, *events: Any, turns: Any = None, **config: Any) -> Agent:
    model = scripted(*(turns or [{"reply": [call("double", "call_1", x=4)]}, {"reply": "done"}]))
    return Agent(AgentConfig(model=model, tools=[double], hooks=[Provider(callback, *events)],
                             **config))


def test_events_come_in_order_and_after_in_reverse() -> None:
    seen: list[str] = []
    agent = with_hook(lambda event: seen.append(type(event).__name__.removesuffix("Event")), *ALL)
    agent.add_hook(lambda event: seen.append("second"), [BeforeToolCallEvent, AfterToolCallEvent])
    assert str(agent("go")) == "done"
    turn = ["BeforeModelCall", "AfterModelCall", "MessageAdded"]
    assert seen == ["AgentInitialized", "BeforeInvocation", "MessageAdded", *turn,
                    "BeforeToolCall", "second", "second", "AfterToolCall", "MessageAdded", *turn,
                    "AfterInvocation"]


def test_events_tell_what_happens() -> None:
    seen: dict[str, Any] = {}

    async def see(event: Any) -> None:
        await asyncio.sleep(0)
        seen[type(event).__name__] = event

    agent = with_hook(see, *ALL[1:])
    agent("go")
    assert seen["BeforeToolCallEvent"].tool_use \
        == {"toolUseId": "call_1", "name": "double", "input": {"x": 4}}
    assert seen["BeforeToolCallEvent"].selected_tool is double
    assert seen["AfterToolCallEvent"].result \
        == {"toolUseId": "call_1", "status": "success", "content": [{"text": "8"}]}
    assert seen["AfterModelCallEvent"].message \
        == {"role": "assistant", "content": [{"text": "done"}]}
    assert seen["AfterModelCallEvent"].stop_reason == "end_turn"
    assert seen["AfterInvocationEvent"].success and seen["AfterInvocationEvent"].agent is agent
    assert seen["MessageAddedEvent"].message["role"] == "assistant"
    for name in "agent", "message":
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(seen["MessageAddedEvent"], name, None)


@pytest.mark.parametrize("said, told", [(True, "cancelled by the user"), ("not so", "not so")])
def test_calls_are_cancelled(said: Any, told: str) -> None:
    after: list[Any] = []

    def cancel(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = said

    agent = with_hook(cancel, BeforeToolCallEvent)
    agent.add_hook(after.append, AfterToolCallEvent)
    agent("go")
    assert told in results(agent)[0]
    assert after[0].selected_tool is None and told in after[0].cancel_message
    assert after[0].result["status"] == "error"


def test_input_tool_and_result_are_changed() -> None:
    @tool
    def triple(x: int) -> int:
        """Triple a number."""
        return 3 * x

    def before(event: BeforeToolCallEvent) -> None:
        event.tool_use["input"]["x"] += 1
        event.selected_tool = triple

    async def after(event: AfterToolCallEvent) -> None:
        assert event.selected_tool is triple and event.result["content"] == [{"text": "15"}]
        event.result = {"status": "error", "content": "changed"}

    agent = with_hook(before, BeforeToolCallEvent)
    agent.add_hook(after, AfterToolCallEvent)
    agent("go")
    assert results(agent) == ["changed"]
    assert agent.messages[2]["content"][0]["toolResult"]["status"] == "error"
    assert agent.tool_names == ["double"]


def test_calls_and_answers_are_tried_again() -> None:
    tries: list[str] = []

    @tool
    def flaky() -> str:
        """Works the second time."""
        tries.append("tool")
        return "now" if tries.count("tool") == 2 else "no"

    class Model:
        def converse(self, request: Any) -> Any:
            tries.append("model")
            if "toolResult" not in request.messages[-1]["content"][0]:
                return ModelReply([{"toolUse": {"toolUseId": "a", "name": "flaky", "input": {}}}])
            return "good" if tries.count("model") == 3 else "bad"

    def again(event: Any) -> None:
        if isinstance(event, AfterToolCallEvent):
            event.retry = event.result["content"][0]["text"] == "no"
        else:
            event.retry = event.message["content"][0].get("text") == "bad"

    agent = Agent(AgentConfig(model=Model(), tools=[flaky],
                              hooks=[Provider(again, AfterToolCallEvent, AfterModelCallEvent)]))
    assert str(agent("go")) == "good" and results(agent) == ["now"]
    assert tries == ["model", "tool", "tool", "model", "model"]


def test_an_invocation_is_resumed() -> None:
    def once_more(event: AfterInvocationEvent) -> None:
        if len(event.agent.messages) == 4:
            event.resume = "and again"

    agent = with_hook(once_more, AfterInvocationEvent, turns=[
        {"reply": [call("double", x=1)]}, {"reply": "one"},
        {"expect": {"last": "and again"}, "reply": "two"}])
    assert str(agent("go")) == "two" and len(agent.messages) == 6


@pytest.mark.parametrize("event", ALL[1:])
@pytest.mark.parametrize("waits", [False, True])
def test_what_hooks_raise_ends_the_invocation(event: Any, waits: bool) -> None:
    class Own(Exception):
        pass

    def fail(_event: Any) -> None:
        raise Own("on purpose")

    async def fail_later(_event: Any) -> None:
        await asyncio.sleep(0)
        raise Own("on purpose")

    agent = with_hook(fail_later if waits else fail, event,
                      turns=[{"reply": [call("double", x=1), call("double", x=2)]},
                             {"reply": "done"}])
    with pytest.raises(Own, match="on purpose"):
        agent("go")
    kinds = [[next(iter(block)) for block in one["content"]] for one in agent.messages]
    for at, kind in enumerate(kinds):  # it can be gone on with: each call has a result
        assert "toolUse" not in kind or kinds[at + 1] == ["toolResult"] * len(kind)


def test_what_fails_the_making_is_raised() -> None:
    def fail(_event: Any) -> None:
        raise RuntimeError("not this one")

    with pytest.raises(RuntimeError, match="not this one"):
        with_hook(fail, AgentInitializedEvent)

    async def coroutine(_event: Any) -> None:
        pass

    with pytest.raises(ValueError, match="must not be a coroutine"):
        with_hook(coroutine, AgentInitializedEvent)
    with pytest.raises(ValueError, match="no annotation"):
        Agent().add_hook(lambda event: None)
    with pytest.raises(ValueError, match="no type of event"):
        Agent().add_hook(lambda event: None, int)


def test_the_callers_context_is_seen() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: list[str] = []

    @tool
    def plain() -> None:
        """Plain."""
        seen.append(variable.get())

    @tool
    async def coroutine() -> None:
        """A coroutine."""
        seen.append(variable.get())

    async def main() -> None:
        variable.set("caller's")
        agent = Agent(AgentConfig(
            tools=[plain, coroutine],
            model=scripted({"reply": [call("plain"), call("coroutine")]}, {"reply": "done"}),
            hooks=[Provider(lambda event: seen.append(variable.get()), BeforeInvocationEvent)]))
        await agent.invoke_async("go")
        await agent.call_tool("coroutine")
    run(main())
    assert seen == ["caller's"] * 4


def test_host_tools_are_blocked_whatever_hooks_say(root: Path) -> None:
    shell = host_tools()[0]

    def before(event: BeforeToolCallEvent) -> None:
        event.selected_tool = shell

    async def main() -> None:
        async with local(root) as sandbox:
            agent = with_hook(before, BeforeToolCallEvent, sandbox=sandbox)
            answer = await agent.call_tool("double", x=1)
            assert answer["status"] == "error" and "off limits" in answer["content"][0]["text"]
    run(main())


# ---- plugins ----

class Counting(Plugin):
    """A tool and a hook."""

    name = "counting"

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def init_agent(self, agent: Agent) -> None:
        await asyncio.sleep(0)
        self.calls.append(f"init {agent.agent_id}")

    @tool
    def count(self, more: int = 0) -> int:
        """How many calls there were."""
        return len(self.calls) + more

    @hook
    def heard(self, event: BeforeToolCallEvent | AfterToolCallEvent) -> None:
        self.calls.append(type(event).__name__)


def test_plugins_bring_tools_and_hooks() -> None:
    plugin = Counting()
    first = Agent(AgentConfig(plugins=[plugin], agent_id="first"))
    second = Agent(AgentConfig(agent_id="second"))
    second.add_plugin(plugin)
    assert first.tool_names == ["count"] and second.has_plugin("counting")
    assert list(first.get_tool("count").input_schema["properties"]) == ["more"]  # type: ignore
    assert second.tool.count(more=10)["content"] == [{"text": "13"}]
    assert plugin.calls == ["init first", "init second", "BeforeToolCallEvent",
                            "AfterToolCallEvent"]
    with pytest.raises(ValueError, match="has a plugin"):
        first.add_plugin(Counting())


def test_plugins_that_fail_leave_no_tools() -> None:
    class Failing(Counting):
        name = "failing"

        async def init_agent(self, agent: Agent) -> None:
            raise KeyError("init")

    with pytest.raises(KeyError, match="init"):
        Agent(AgentConfig(plugins=[Failing()]))
    agent = Agent(AgentConfig())
    with pytest.raises(KeyError, match="init"):
        agent.add_plugin(Failing())
    assert agent.tool_names == [] and not agent.has_plugin("failing")
    with pytest.raises(ValueError, match="name is required"):
        agent.add_plugin(Plugin())


class Own(Exception):
    """It says nothing."""


@pytest.mark.parametrize("error", [KeyError("key"), KeyError(), Own(), ValueError(), OSError(2, "x"),
                                   AttributeError("gone"), ValueError("v" * 1000),
                                   UnicodeDecodeError("utf-8", b"x", 0, 1, "bad")],
                         ids=lambda error: f"{type(error).__name__}-{len(str(error))}")
@pytest.mark.parametrize("where", ["init_agent", "register_hooks", "tools", "another agent"])
def test_what_making_an_agent_raises_is_raised_as_it_was(where: str, error: Exception) -> None:
    """With the traceback that leads to it; an exception that was got over is not taken for it."""
    def fail(*_some: Any, **_named: Any) -> Any:
        try:
            raise RuntimeError
        except RuntimeError:
            pass
        raise error

    class Failing(Plugin):
        name = "failing"

    if where in ("init_agent", "register_hooks"):
        setattr(Failing, where, fail)
    elif where == "tools":
        Failing.tools = property(fail)  # type: ignore[assignment,method-assign]
    else:
        Failing.init_agent = lambda self, agent: with_hook(  # type: ignore[method-assign]
            fail, AgentInitializedEvent)
    for make in (lambda: Agent(AgentConfig(plugins=[Failing()])),
                 lambda: Agent().add_plugin(Failing())):
        with pytest.raises(type(error)) as caught:
            make()
        assert caught.value is error
        assert caught.traceback[-1].name == "fail"
        error.__traceback__ = error.__context__ = None
