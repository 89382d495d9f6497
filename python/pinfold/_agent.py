# SPDX-License-Identifier: Apache-2.0
"""Agents: a model, tools, hooks and plugins, and a workspace that the tools work in.

The library has the loop, the rules and the workspace; what is here tells it what to call.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import _pinfold
from ._agent_config import AgentConfig, SandboxMode
from ._backends import adopt
from ._bridge import a_loop_runs, finish, in_thread
from ._check import expect, text
from ._errors import ConcurrencyException, as_raised, cause_of, is_fatal, on_fatal
from ._hooks import AfterInvocationEvent, BeforeInvocationEvent, HookRegistry, MessageAddedEvent
from ._loop import live_agents, run, run_here
from ._messages import (STOP_REASONS, Message, RawResult, ToolResult, dump, message, parse_input,
                        raw_failure, raw_messages, raw_value, result)
from ._models import ModelUsage, RawReply, choose_model, raw_reply, request_of
from ._plugins import Plugin
from ._policy import WorkspaceSyncPolicy
from ._sandbox import Sandbox
from ._tools import AgentTool, AnyTool, LibraryTool, ToolContext, as_tool, describe_tool

_logger = logging.getLogger("elsai.agent")

StreamEvent = dict[str, Any]


@dataclass
class AgentResult:
    """What came of an invocation."""

    #: Of the last reply.
    text: str
    #: "end_turn", "max_tokens", "refusal", "stop_sequence", "tool_use" or "pause_turn".
    stop_reason: str
    #: max_turns were used up: another invocation goes on.
    out_of_turns: bool
    #: Replies, and the calls of tools in them.
    turns: int
    tool_calls: int
    #: Of all replies; None: somebody did not count.
    usage: ModelUsage | None

    def __str__(self) -> str:
        return self.text


class _Record:
    """A call under way: who waits for it, and what went wrong in Python code that it called."""

    def __init__(self, call: _pinfold.Call, listener: Callable[[StreamEvent], None] | None = None):
        self.call = call
        self.context = contextvars.copy_context()
        self.listener = listener
        self.causes: list[BaseException] = []
        self.inputs: dict[str, str] = {}  # of tools, while they arrive

    def failed(self, error: BaseException) -> None:
        """Remember what Python code raised. If it is to end the program, the call ends now."""
        if not isinstance(error, asyncio.CancelledError):
            self.causes.append(error)
        if is_fatal(error):
            self.call.cancel()


def _end_all(error: BaseException) -> None:
    """What is to end the program, and was raised where nobody waits for it: on a thread that the
    library has for several tools, by a backend say."""
    for agent in list(live_agents):
        for record in list(agent._records.values()):
            record.failed(error)


on_fatal.append(_end_all)


class ToolCaller:
    """agent.tool: its tools as functions. They return results, and block; in a coroutine,
    "await agent.call_tool()" does not."""

    def __init__(self, agent: Agent):
        self._agent = agent

    def __getattr__(self, name: str) -> Callable[..., ToolResult]:
        if name == "_agent":  # of a copy that is being made
            raise AttributeError(name)
        names = self._agent.tool_names
        found = next((one for one in names if one.replace("-", "_") == name), None)
        if found is None:
            raise AttributeError(f"agent {self._agent.agent_id} has no tool {name}; its tools are: "
                                 f"{', '.join(names)}")
        return functools.partial(self._call, found)

    def _call(self, found: str, /, **given: Any) -> ToolResult:
        return self._agent._call_tool_here(found, given)


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task, and let nothing interrupt the wait for its end."""
    interrupted = False
    if not task.done():
        task.cancel()
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            interrupted = True
    if interrupted:
        raise asyncio.CancelledError


class Agent:
    """An agent. "await agent.invoke_async(prompt)" gives it something to do."""

    def __init__(self, config: AgentConfig | None = None):
        config = AgentConfig() if config is None else config
        expect("config", config, AgentConfig)
        self.config = config
        self.model = choose_model(config.model)
        self.tool = ToolCaller(self)
        self._core = _pinfold.Agent()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._invocation: _Record | None = None
        self._records: dict[_pinfold.Call, _Record] = {}
        self._python_tools: dict[str, AgentTool] = {}
        self._sandbox: Sandbox | None = config.sandbox
        self._early: list[Any] | None = []
        self._tells_messages = False
        self.hooks = HookRegistry(self._add_hook, self._call_back, self)
        for provider in config.hooks:
            self.hooks.add_hook(provider)
        self._open(config)
        if config.messages:
            self.messages = list(config.messages)
        live_agents.add(self)

    def _open(self, config: AgentConfig) -> None:
        offload, manager = config.sandbox_output_offload, config.sandbox_manager
        tools = [self._describe(as_tool(one)) for one in config.tools]
        plugins = [self._describe_plugin(one) for one in config.plugins]
        hooks, self._early = self._early, None
        own = config.execution_backend
        with as_raised():
            self._core.open(
                agent_id=config.agent_id, name=config.name,
                session_id=getattr(config.session_manager, "session_id", None),
                workspace_id=config.workspace_id, system_prompt=config.system_prompt,
                model=self._describe_model(), max_tokens=config.max_tokens or 0,
                max_turns=config.max_turns, max_parallel_tools=config.max_parallel_tools,
                on_event=self._on_event, tools=tools, hooks=hooks or [], plugins=plugins,
                sandbox=None if config.sandbox is None else config.sandbox._core,
                read_only=config.sandbox_attach_mode.value == "read_only",
                mode=config.sandbox_mode._number,
                offload=None if offload is None else offload._raw(),
                backend=None if own is None else adopt(own, "execution_backend"),
                workspace_root=config.workspace_root, policy=config.workspace_sync_policy._raw(),
                manager=None if manager is None else manager._core)

    def __repr__(self) -> str:
        return f"<Agent {self.agent_id!r} {self.sandbox_mode.value}>"

    # ---- properties ----

    @property
    def agent_id(self) -> str:
        """What tells it from others: in audits, and for its workspace."""
        return self.config.agent_id or "default"

    @property
    def name(self) -> str:
        """For people."""
        return self._core.name

    @property
    def session_manager(self) -> Any:
        """What its configuration has."""
        return self.config.session_manager

    @property
    def sandbox_mode(self) -> SandboxMode:
        """The mode that is in force: of an agent with a sandbox SANDBOX, and for ever after."""
        return list(SandboxMode)[self._core.mode]

    @property
    def sandbox(self) -> Sandbox | None:
        """The shared workspace that it is attached to."""
        return self._sandbox if self._core.is_attached else None

    @property
    def _sandbox_workspace_id(self) -> str | None:
        """What SandboxManager.resolve_workspace_id() looks at first."""
        return self.config.workspace_id if self.sandbox is None else self.sandbox.workspace_id

    @property
    def workspace_root(self) -> Any:
        """Where its own workspace is synced to."""
        return self.config.workspace_root

    @property
    def workspace_sync_policy(self) -> WorkspaceSyncPolicy:
        """What of its own workspace travels."""
        return self.config.workspace_sync_policy

    @property
    def messages(self) -> list[Message]:
        """A copy of the conversation so far. May be set, but not during an invocation."""
        return [message(raw) for raw in self._core.messages()]

    @messages.setter
    def messages(self, messages: list[Message]) -> None:
        self._core.set_messages(raw_messages(messages))

    # ---- invocations ----

    async def invoke_async(self, prompt: str | None = None) -> AgentResult:
        """Give it something to do, and wait until that is done. None: go on with the conversation.
        Cancelling ends whatever it does, before the await returns."""
        return await self._invoke(prompt, None)

    def __call__(self, prompt: str | None = None) -> AgentResult:
        """The same, where there is no event loop."""
        if prompt is not None:
            text("prompt", prompt)
        if a_loop_runs():
            raise RuntimeError("an event loop runs here: await agent.invoke_async(prompt)")
        return asyncio.run(self.invoke_async(prompt))

    async def stream_async(self, prompt: str | None = None) -> AsyncIterator[StreamEvent]:
        """The same, telling of it while it happens. Events are dicts with one of these keys:
        data (a piece of text), reasoningText, current_tool_use (toolUseId, name, and the input as
        far as it is there: text, and when it is complete a dict), retry (attempt, delay_seconds,
        error), message (one that is part of the conversation now), and last result."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[StreamEvent | None] = asyncio.Queue()

        def listen(event: StreamEvent) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, event)

        if not self._tells_messages:  # nobody pays for it who does not stream
            self._tells_messages = True
            self.hooks.add_callback(MessageAddedEvent, self._on_message)
        task = asyncio.ensure_future(self._invoke(prompt, listen))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (event := await queue.get()) is not None:
                yield event
            yield {"result": task.result()}
        finally:
            await _end(task)
            if task.done() and not task.cancelled():
                task.exception()  # it was heard of

    async def _invoke(self, prompt: str | None,
                      listener: Callable[[StreamEvent], None] | None) -> AgentResult:
        record = _Record(self._core.invoke(prompt), listener)
        if self.model is None:
            raise TypeError(f"agent {self.agent_id} has no model: give AgentConfig one, or set "
                            "PINFOLD_MODEL, to anthropic:NAME say")
        with self._lock:
            if self._invocation is not None:
                raise ConcurrencyException(f"agent {self.agent_id} has an invocation under way")
            self._invocation = record
        try:
            self._core.listen(listener is not None)
            raw = await self._run(record)
        finally:
            self._invocation = None
        text, stop, out_of_turns, turns, tool_calls, usage = raw
        return AgentResult(text, STOP_REASONS.get(stop, "end_turn"), out_of_turns, turns,
                           tool_calls, None if usage is None else ModelUsage(*usage))

    async def _run(self, record: _Record) -> Any:
        """Have a call done."""
        with self._recorded(record):
            return await run(record.call)

    @contextlib.contextmanager
    def _recorded(self, record: _Record) -> Iterator[None]:
        """While a call is under way. What Python code raised is raised as it was."""
        failure: BaseException | None = None
        self._records[record.call] = record
        try:
            yield
        except Exception as error:  # pylint: disable=broad-except
            failure = error
        finally:
            del self._records[record.call]
        failure = cause_of(failure, record.causes) or failure
        if failure is not None:
            raise failure

    def cancel(self) -> None:
        """Stop whatever it is doing: that ends with SandboxCancelledError."""
        for call in list(self._records):
            call.cancel()  # no thread may have begun it yet
        self._core.cancel()

    # ---- tools ----

    @property
    def tool_names(self) -> list[str]:
        """The names of its tools, in the order they were added."""
        return self._core.tool_names()

    def get_tool(self, name: str) -> AgentTool | None:
        """One of its tools; None: it has none of this name."""
        core = self._core.get_tool(name)
        if core is None:
            return None
        found = self._python_tools.get(name)
        return LibraryTool(core) if found is None else found

    def add_tool(self, given: AnyTool) -> None:
        """Give it another tool."""
        self._core.add_tool(self._describe(as_tool(given)))

    def remove_tool(self, name: str) -> bool:
        """Take a tool away; returns whether it was there."""
        return self._core.remove_tool(name)

    async def call_tool(self, name: str, given: Mapping[str, Any] | None = None, /,
                        **more: Any) -> ToolResult:
        """Call a tool as a model would, hooks included. Whatever goes wrong with it is a result of
        status "error"."""
        if given is not None:
            expect("given", given, Mapping)
        record = _Record(self._core.call_tool(name, dump({**(given or {}), **more})))
        return result(await self._run(record), "direct")

    def _call_tool_here(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        record = _Record(self._core.call_tool(name, dump(dict(given))))

        def work() -> Any:
            with self._recorded(record):
                return run_here(record.call)

        return result(in_thread(work, record.call.cancel), "direct")

    # ---- hooks and plugins ----

    def add_hook(self, callback: Callable[[Any], Any], event_type: Any = None) -> None:
        """Add a hook; None: for the events that its annotation names."""
        self.hooks.add_callback(event_type, callback)

    def add_plugin(self, plugin: Plugin) -> None:
        """Add a plugin: its hooks and its tools."""
        described = self._describe_plugin(plugin)
        with as_raised():
            self._core.add_plugin(described)

    def has_plugin(self, name: str) -> bool:
        """Whether it has a plugin of this name."""
        return self._core.has_plugin(name)

    # ---- what the library is given ----

    def _add_hook(self, raw: Any) -> None:
        if self._early is not None:
            self._early.append(raw)
        else:
            self._core.add_hook(raw)

    def _describe(self, given: AgentTool) -> Any:
        described = describe_tool(given, functools.partial(self._run_tool, given))
        if not isinstance(given, LibraryTool):
            self._python_tools[given.tool_name] = given
        return described

    def _describe_plugin(self, plugin: Plugin) -> Any:
        if not isinstance(plugin, Plugin):
            raise TypeError(f"plugin: a Plugin is required, not {plugin!r}")
        described = getattr(plugin, "_describe", None)
        if described is not None:
            if plugin.tools:
                raise ValueError(f"plugin {plugin.name} has its own tools, and {plugin!r} cannot "
                                 "bring more: use a Plugin beside it")
            return described()

        def init() -> None:
            self._call_back(plugin.init_agent, self)
            plugin.register_hooks(self.hooks)

        return plugin.name, [self._describe(one) for one in plugin.tools], init

    def _describe_model(self) -> Any:
        core = getattr(self.model, "_core", None)
        if self.model is None or core is not None:
            return core
        return type(self.model).__name__, self._converse

    # ---- what the library calls ----

    def _record(self) -> _Record | None:
        """The call on whose behalf this thread is here: threads for the tools of one reply are the
        library's own, and belong to the invocation."""
        call = _pinfold.current_call()
        return self._invocation if call is None else self._records.get(call)

    def _call_back(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the user's, in the context of who made the call."""
        record = self._record()
        try:
            if record is None:
                return finish(function(*args))
            value = record.context.copy().run(function, *args)
            # What comes after an invocation belongs to it also when that was cancelled.
            return finish(value, record.call, record.context.copy(),
                          cleanup=bool(args) and isinstance(args[0], AfterInvocationEvent))
        except BaseException as error:
            if record is not None:
                record.failed(error)
            raise

    def _run_tool(self, given: AgentTool, own_id: str, text: str) -> RawResult:
        record = self._record()
        context = ToolContext(self, {"toolUseId": own_id, "name": given.tool_name,
                                     "input": parse_input(text)})
        try:
            if record is None:
                return raw_value(finish(given.run(context)))
            value = record.context.copy().run(given.run, context)
            return raw_value(finish(value, record.call, record.context.copy()))
        except Exception as error:  # pylint: disable=broad-except
            _logger.debug("tool %s raised", given.tool_name, exc_info=True)
            return raw_failure(error)
        except BaseException as error:
            if record is not None:
                record.failed(error)
            raise

    def _tool_called(self, name: str | None) -> AgentTool | None:
        return None if name is None else self._python_tools.get(name) or self.get_tool(name)

    def _converse(self, *raw: Any) -> RawReply:
        request = request_of(raw, lambda text: self._tell({"data": text}))
        return raw_reply(self._call_back(self.model.converse, request))

    def _tell(self, event: StreamEvent) -> None:
        record = self._invocation
        if record is not None and record.listener is not None:
            record.listener(event)

    def _on_message(self, event: MessageAddedEvent) -> None:
        self._tell({"message": event.message})

    def _on_event(self, kind: int, text: str, own_id: str | None, name: str | None,
                  error: Exception | None, attempt: int, delay: float) -> None:
        record = self._invocation
        if record is None or record.listener is None:
            return
        if kind in (1, 2):
            record.listener({"data" if kind == 1 else "reasoningText": text})
        elif kind == 6:
            record.listener({"retry": {"attempt": attempt, "delay_seconds": delay,
                                       "error": error}})
        elif own_id is not None:
            so_far = record.inputs[own_id] = record.inputs.get(own_id, "") + text
            shown = parse_input(so_far) if kind == 5 else so_far
            record.listener({"current_tool_use": {"toolUseId": own_id, "name": name,
                                                  "input": shown}})


class WorkspaceOrchestrator:
    """Hooks that prepare an agent's own workspace before each invocation. An agent with
    execution_backend has them without being told."""

    def register_hooks(self, registry: HookRegistry, **_kwargs: Any) -> None:
        """Add the hook."""
        registry.add_callback(BeforeInvocationEvent, self._prepare)

    async def _prepare(self, event: BeforeInvocationEvent) -> None:
        await run(event.agent._core.prepare())
