# SPDX-License-Identifier: Apache-2.0
"""Whatever public function is given something wrong says so, and which parameter it was, before it
does anything. One table has all of them; a parameter that is in no row fails the last test."""

import asyncio
import dataclasses
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pinfold
import pytest
from pinfold import (Agent, AgentConfig, AgentTool, HookRegistry, Limits, Plugin, Sandbox,
                     SandboxManager, Spool, Terminal, WorkspaceSyncPolicy)

from support import run

HUGE = 10**5000  # more digits than Python prints
BAD_TEXT = ["a\0b", "\ud800"]

# What is wrong for each kind of parameter; a "?" after it says that None is not.
KINDS: dict[str, list[Any]] = {
    "text": [3, True, b"a", [], object(), *BAD_TEXT],
    "path": [3, True, 1.5, [], object(), *BAD_TEXT],
    "content": [3, True, None, [1], {"a": 1}, "\ud800"],
    "command": [3, None, [], (), [3], ["a", None], ["a\0b"], *BAD_TEXT],
    "int": ["1", 1.0, True, b"1", [], -1, HUGE, -HUGE, float("nan")],
    "count": ["1", 1.0, True, [], 0, -1, HUGE, 2**64],
    "offset": ["1", 1.0, True, [], None, -1, HUGE, 2**63],
    "seconds": ["1", True, [], 0, -1, float("nan"), HUGE, -HUGE],
    "wait": ["1", True, [], -1, float("nan"), HUGE],
    "number": ["1", True, [], float("nan"), HUGE],
    "cells": ["1", 1.0, True, None, -1, 2**16, HUGE],
    "flag": [0, 1, "no", None, [], 1.0],
    "function": [3, "f", [], object()],
    "env": ["A=b", [("A", "b")], 3, {3: "a"}, {"A": 3}, {"A": True}, {"A": None}, {"": "a"},
            {"A=B": "c"}, {"A": "b\0c"}, {"A": "\ud800"}, {"A\0": "b"}],
    "paths": ["a", b"a", 3, True, None, object(), [3], [None], ["a\0b"], ["\ud800"]],
    "strings": ["a", b"a", 3, True, object(), [3], [None], ["a\0b"], ["\ud800"]],
    "list": ["a", b"a", 3, True, object()],
    "mapping": ["a", 3, [("a", "b")]],
    "agent": [3, "agent", None],
    "of a type": [3, "text", [], object()],
    "stream": ["stdin", 3, True, None, [], b"stdout"],
    "choice": ["nothing", 3, None, [], True],
    "files in": ["a", [("a", "b")], 3, None, {3: "b"}, {"a": 3}, {"a": None}, {"a\0b": "c"},
                 {"\ud800": "c"}, {"a": [1]}, {"a": "\ud800"}],
    "files out": ["a", [("a", "b")], 3, None, {3: "b"}, {"a": 3}, {"a": None}, {"a\0b": "c"},
                  {"\ud800": "c"}],
    "pairs": ["ab", 3, None, {"a": "b"}, ["ab"], [3], [("a",)], [(3, "b")], [("a", 3)],
              [("a\0b", "c")]],
    "network": ["any", 3, True, None, [3], ["a\0b"]],
}
SECRET = dict.fromkeys(("access_key", "secret_key", "session_token"), "text?")
MODEL = {"model_id": "text", "base_url": "text?", "api_key": "text?", "max_tokens": "count?",
         "temperature": "number?", "extra": "mapping?", "timeout": "seconds?",
         "idle_timeout": "seconds?", "attempts": "count?", "allow_plain_http": "flag"}
COMMAND = {"command": "command", "timeout": "seconds?", "cwd": "path?", "env": "env?"}
EXECUTE = {**COMMAND, "max_output_bytes": "count?", "keep_tail": "flag", "spool_bytes": "int",
           "on_output": "function?"}
OFFLOAD = {"storage": "of a type", "max_result_tokens": "count", "preview_tokens": "int",
           "include_retrieval_tool": "flag"}

# Each function, and of what kind its parameters are; None: it takes whatever there is.
TABLE: dict[str, dict[str, str | None]] = {
    "Agent": {"config": "of a type?"},
    "Agent.__call__": {"prompt": "text?"},
    "Agent.invoke_async": {"prompt": "text?"},
    "Agent.stream_async": {"prompt": "text?"},
    "Agent.get_tool": {"name": "text"},
    "Agent.add_tool": {"given": "of a type"},
    "Agent.remove_tool": {"name": "text"},
    "Agent.call_tool": {"name": "text", "given": "mapping?", "more": None},
    "Agent.add_hook": {"callback": "function", "event_type": "of a type"},
    "Agent.add_plugin": {"plugin": "of a type"},
    "Agent.has_plugin": {"name": "text"},
    "AgentConfig": {
        "model": "of a type", "system_prompt": "text?", "tools": "list", "hooks": "list",
        "plugins": "list", "messages": "list", "agent_id": "text?", "name": "text?",
        "session_manager": None, "max_tokens": "count?", "max_turns": "count",
        "max_parallel_tools": "count", "sandbox": "of a type?", "sandbox_attach_mode": "choice",
        "sandbox_mode": "choice", "sandbox_output_offload": "of a type?",
        "execution_backend": "of a type", "workspace_root": "path?",
        "workspace_sync_policy": "of a type", "sandbox_manager": "of a type?",
        "workspace_id": "text?"},
    "AgentCoreSandboxTemplate": {
        "region": "text?", "session_timeout_seconds": "count", "profile": "text?", **SECRET,
        "identifier": "text?", "name": "text?", "endpoint": "text?", "max_output_bytes": "count",
        "env": "env?", "long_commands": "flag", "timeout": "seconds?"},
    "AgentCoreSandboxTemplate.build_for_session": {"workspace_id": "text"},
    "AnthropicModel": MODEL,
    "BedrockModel": {**MODEL, "region": "text?", "profile": "text?", **SECRET},
    "OpenAIModel": {**MODEL, "send_reasoning": "flag"},
    "ScriptedModel": {"script": "path"},
    "ContextOffloader": OFFLOAD,
    "SandboxOutputOffloadPolicy": {**OFFLOAD, "tool_names": "strings"},
    "DaytonaSandboxTemplate": {
        **dict.fromkeys(("api_key", "api_url", "target", "jwt_token", "organization_id",
                         "snapshot", "image"), "text?"),
        "default_timeout": "wait", "env": "env?", "labels": "env?",
        "auto_stop_minutes": "count?", "auto_delete_minutes": "count?",
        "create_timeout_seconds": "count?", "network_block_all": "flag",
        "network_allow_list": "strings?", "domain_allow_list": "strings?",
        "max_output_bytes": "count"},
    "DaytonaSandboxTemplate.build_for_session": {"workspace_id": "text"},
    "FileStorage": {"artifact_dir": "path"},
    "S3Storage": {"bucket": "text", "prefix": "text", "region": "text?", "endpoint": "text?",
                  "profile": "text?", **SECRET, "allow_plain_http": "flag", "attempts": "count?",
                  "timeout": "seconds?"},
    **{f"{name}.store": {"key": "text", "content": "of a type", "content_type": "text"}
       for name in ("InMemoryStorage", "FileStorage", "S3Storage")},
    **{f"{name}.retrieve": {"reference": "path"}
       for name in ("InMemoryStorage", "FileStorage", "S3Storage")},
    "HookRegistry.add_callback": {"event_type": "of a type", "callback": "function"},
    "HookRegistry.add_hook": {"provider": "of a type"},
    "IsolatedSandboxBackend": {
        "workspace_root": "path?", "timeout": "seconds", "max_output_bytes": "count",
        "env": "env?", "ro": "paths", "rw": "paths", "rootfs": "path?", "network": "network",
        "limits": "of a type?", "read_only": "flag", "seed_mode": "text"},
    "Limits": {**dict.fromkeys(("memory_bytes", "processes", "cpu_seconds", "open_files",
                                "file_bytes", "tmp_bytes", "workspace_bytes"), "count?"),
               "cpus": "seconds?"},
    "LocalSandboxBackend": {"workspace_root": "path", "timeout": "seconds",
                            "max_output_bytes": "count", "inherit_env": "flag", "env": "env?"},
    "LocalSandboxBackend.read_file": {"path": "path"},
    "LocalSandboxBackend.write_file": {"path": "path", "content": "content"},
    "LocalSandboxBackend.list_dir": {"path": "path"},
    "LocalSandboxBackend.remove_file": {"path": "path"},
    "LocalSandboxBackend.seed_workspace": {"source": "path", "exclude": "strings?"},
    "LocalSandboxBackend.sync_artifacts": {"dest": "path", "include": "strings?",
                                           "exclude": "strings?"},
    "LocalSandboxBackend.upload_files": {"files": "pairs"},
    "LocalSandboxBackend.download_files": {"paths": "paths"},
    "LocalSandboxBackend.execute": {**EXECUTE, "_kwargs": None},
    "Plugin.init_agent": {"agent": None},
    "Plugin.register_hooks": {"registry": None, "kwargs": None},
    "Sandbox": {"workspace_id": "text", "backend": "of a type", "ttl_seconds": "seconds",
                "manager": "of a type?", "seed_from": "path?", "seed_exclude": "strings?",
                "sync_policy": "of a type?", "sync_dest": "path?"},
    "Sandbox.stop": {"sync": "flag"},
    "Sandbox.add_files": {"files": "files in", "overwrite": "flag"},
    "Sandbox.write_file": {"path": "path", "content": "content"},
    "Sandbox.delete_files": {"paths": "paths"},
    "Sandbox.move_file": {"src": "path", "dest": "path"},
    "Sandbox.flush": {"dest": "path?"},
    "Sandbox.plan_flush": {"dest": "path?"},
    "Sandbox.open_terminal": {**COMMAND, "command": "command?", "term": "text?", "rows": "cells",
                              "cols": "cells"},
    "Sandbox.attach": {"agent": "agent", "mode": "choice"},
    "Sandbox.detach": {"agent": None},
    "Sandbox.view": {"name": "text?"},
    "Sandbox.execute": EXECUTE,
    "Sandbox.read_file": {"path": "path"},
    "Sandbox.read_lines": {"path": "path", "offset": "offset", "limit": "int?"},
    "Sandbox.list_dir": {"path": "path"},
    "Sandbox.download_files": {"files": "files out", "overwrite": "flag"},
    "Sandbox.read_bytes": {"path": "path"},
    "SandboxManager": {"ttl_seconds": "seconds?"},
    "SandboxManager.resolve_workspace_id": {"agent": None},
    "SandboxManager.resolve_session_id": {"agent": None},
    "SandboxManager.get_session": {"session_id": "text"},
    "SandboxManager.get_or_create": {"session_id": "text", "factory": "function"},
    "SandboxManager.claim_session": {"session_id": "text", "factory": "function",
                                     "owner_id": "text", "ttl_seconds": "seconds?"},
    "SandboxManager.mark_prepared": {"session_id": "text", "seed_result": "of a type?"},
    "SandboxManager.close_session": {"session_id": "text", "sync_artifacts": "flag",
                                     "agent": None},
    "SandboxManager.backend_factory_for_session": {"template": "of a type",
                                                   "session_id": "text"},
    "Spool.size": {"stream": "stream"},
    "Spool.read": {"stream": "stream", "offset": "offset", "size": "int"},
    "Terminal.read": {"size": "count", "timeout": "wait?"},
    "Terminal.write": {"data": "content", "timeout": "wait?"},
    "Terminal.wait": {"timeout": "wait?"},
    "Terminal.resize": {"rows": "cells", "cols": "cells"},
    "Terminal.send_signal": {"signal": "count"},
    "WorkspaceSyncPolicy": {"exclude_patterns": "strings", "sync_include_patterns": "strings?"},
    "close_sandbox_workspace": {"agent": "agent", "sync_artifacts": "flag"},
    "ensure_sandbox_mutation_allowed": {"agent": "agent"},
    "format_execute_result": {"result": "of a type"},
    "hook": {"callback": "function"},
    "host_tools": {"ask": "function?"},
    "list_workspace_dir": {"agent": "agent", "path": "path"},
    "prepare_workspace": {"agent": "agent"},
    "read_workspace_file": {"agent": "agent", "path": "path", "offset": "offset", "limit": "int?"},
    "run_command": {"agent": "agent", "command": "command", "cwd": "path?"},
    "sandbox_is_active": {"agent": "agent"},
    "supports_execution": {"backend": None},
    "sync_workspace_artifacts": {"agent": "agent"},
    "sync_workspace_for_sandbox": {"sandbox": "of a type", "dest": "path?"},
    "tool": {"function": "function?", "name": "text?", "description": "text?",
             "input_schema": "mapping?", "context": "of a type"},
    "workspace_id_for_context": {"context_id": "text", "shared": "flag"},
    "workspace_id_for_run": {"run_id": "text"},
    "workspace_is_prepared": {"agent": "agent"},
    "write_workspace_file": {"agent": "agent", "path": "path", "content": "content"},
}
# Of these more is a right answer than of their kind, or less a wrong one.
RIGHT: dict[tuple[str, str], Callable[[Any], bool]] = {
    ("AgentConfig", "model"): lambda value: value == "text",  # PROVIDER:NAME, or no such provider
    ("Agent.add_hook", "event_type"): lambda value: value == [],
    ("HookRegistry.add_callback", "event_type"): lambda value: value == [],
    ("SandboxOutputOffloadPolicy", "tool_names"): lambda value: False,
    ("Sandbox.stop", "sync"): lambda value: False,
    ("tool", "context"): lambda value: value == "text",
    ("Terminal.read", "size"): lambda value: False,
}
# Made from a script by a function of ours, not by their users; or not to be called by them.
NOT_MADE = {"Agent.hooks", "HookRegistry", "SandboxView", "Spool", "Terminal", "ToolContext",
            "AgentCoreSandboxBackend", "DaytonaSandboxBackend"}
# Results and events carry what the library says, and protocols and bases are for others to write.
FREE = {name for name in pinfold.__all__ if inspect.isclass(getattr(pinfold, name)) and (
    issubclass(getattr(pinfold, name), (pinfold.HookEvent, BaseException))
    or (dataclasses.is_dataclass(getattr(pinfold, name)) and name not in TABLE)
    or getattr(getattr(pinfold, name), "_is_protocol", False))} | {
        "AgentTool", "SandboxAttachMode", "SandboxMode", "WorkspaceOrchestrator"}


@pytest.fixture(name="place")
def one_place(tmp_path: Path) -> dict[str, Any]:
    """What the functions are called on, and what is right for each kind."""
    (tmp_path / "script.json").write_text('{"turns": []}')
    (tmp_path / "home").mkdir()
    return {"root": tmp_path}


def good(name: str, parameter: str, kind: str, place: dict[str, Any]) -> Any:
    """Something that would do."""
    own = {("Sandbox", "backend"): place["backend"], ("hook", "callback"): lambda: None,
           ("ScriptedModel", "script"): place["root"] / "script.json",
           ("IsolatedSandboxBackend", "seed_mode"): "copy",
           ("LocalSandboxBackend", "workspace_root"): place["root"] / "w",
           ("format_execute_result", "result"): pinfold.ExecuteResult("", 0),
           ("AnthropicModel", "api_key"): "k" * 20, ("OpenAIModel", "api_key"): "k" * 20,
           ("DaytonaSandboxTemplate", "api_key"): "key",
           ("AgentCoreSandboxTemplate", "region"): "us-west-2",
           ("Agent.add_plugin", "plugin"): Plugin(), ("Agent.add_tool", "given"): max,
           ("SandboxManager.backend_factory_for_session", "template"): place["backend"]}
    if (name, parameter) in own:
        return own[name, parameter]
    if parameter == "event_type":
        return pinfold.BeforeInvocationEvent
    if parameter == "storage":
        return pinfold.InMemoryStorage()
    if name.endswith(".store") and parameter == "content":
        return b"x"
    if parameter == "sandbox":
        return place["sandbox"]
    if kind == "of a type":
        return None  # it is the only one
    return {"text": "x", "path": str(place["root"] / "home"), "content": "x", "command": "true",
            "int": 1, "count": 10, "offset": 0, "seconds": 5, "wait": 5, "number": 1, "cells": 5,
            "flag": False, "function": lambda *_: None, "agent": place["agent"], "paths": [],
            "strings": [], "list": [], "files in": {}, "files out": {}, "pairs": [],
            "stream": "stdout", "choice": "read_write", "network": "none"}[kind.rstrip("?")]


async def objects(place: dict[str, Any]) -> dict[str, Any]:
    """The handles that methods are called on, in a sandbox that runs."""
    place["backend"] = pinfold.LocalSandboxBackend(place["root"] / "w")
    place["sandbox"] = Sandbox("arguments", place["backend"], 60)
    await place["sandbox"].start()
    place["agent"] = Agent(AgentConfig(sandbox=place["sandbox"], agent_id="arguments"))
    place["terminal"] = await place["sandbox"].open_terminal("cat")
    spooled = await place["sandbox"].execute("echo x", spool_bytes=100)
    return {"Sandbox": place["sandbox"], "Agent": place["agent"], "Spool": spooled.spool,
            "Terminal": place["terminal"],
            "HookRegistry": place["agent"].hooks, "SandboxManager": SandboxManager(),
            "LocalSandboxBackend": place["backend"], "Plugin": Plugin(),
            "InMemoryStorage": pinfold.InMemoryStorage(),
            "FileStorage": pinfold.FileStorage(place["root"] / "artifacts"),
            "S3Storage": pinfold.S3Storage("bucket", region="us-west-2"),
            "AgentCoreSandboxTemplate": pinfold.AgentCoreSandboxTemplate("us-west-2"),
            "DaytonaSandboxTemplate": pinfold.DaytonaSandboxTemplate("key")}


async def ended(place: dict[str, Any]) -> None:
    if "terminal" in place:
        await place["terminal"].close()
    await place["sandbox"].stop()


def function_of(name: str, handles: dict[str, Any]) -> Any:
    kind, _, method = name.partition(".")
    return getattr(handles[kind], method) if method else getattr(pinfold, name)


async def complaint(function: Any, given: dict[str, Any], positional: tuple[str, ...]) -> Any:
    """What calling it raises."""
    try:
        given = dict(given)
        value = function(*[given.pop(name) for name in positional if name in given], **given)
        if isinstance(value, Limits):
            value = pinfold.IsolatedSandboxBackend(limits=value)
        if isinstance(value, AgentConfig):
            value = Agent(value)
        if inspect.isasyncgen(value):
            value = value.__anext__()
        if inspect.isawaitable(value):
            value = await asyncio.wait_for(value, 60)
        return f"it returned {value!r:.80}"
    except Exception as error:  # pylint: disable=broad-except
        return error


def wrong_for(name: str, parameter: str, kind: str) -> list[Any]:
    found = [*KINDS[kind.rstrip("?")]]
    if kind.endswith("?"):
        found = [one for one in found if one is not None]
    right = RIGHT.get((name, parameter), lambda value: False)
    return [one for one in found if not right(one)]


@pytest.mark.parametrize("name", TABLE)
def test_what_is_wrong_is_said_and_named(name: str, place: dict[str, Any],
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    faults: list[str] = []

    async def main() -> None:
        handles = await objects(place)
        before = sorted(os.walk(place["root"]))
        function = function_of(name, handles)
        parameters = inspect.signature(function).parameters
        positional = tuple(one for one, what in parameters.items()
                           if what.kind is what.POSITIONAL_ONLY)
        base = {one: good(name, one, kind, place) for one, kind in TABLE[name].items()
                if kind and one in parameters
                and (parameters[one].default is inspect.Parameter.empty
                     or (one in ("api_key", "region") and "Template" in name)
                     or (one == "api_key" and name.endswith("Model")))}
        for parameter, kind in TABLE[name].items():
            for value in wrong_for(name, parameter, kind) if kind else ():
                said = await complaint(function, {**base, parameter: value}, positional)
                if not isinstance(said, (TypeError, ValueError)) \
                        or not re.search(rf"\b{parameter}\b", str(said)):
                    shown = "a huge number" if value in (HUGE, -HUGE) else repr(value)
                    faults.append(f"{parameter}={shown}: {type(said).__name__} {said}")
        if name != "Sandbox.stop":
            assert sorted(os.walk(place["root"])) == before, "something was done"

    try:
        run(main())
    finally:
        run(ended(place))
    assert faults == []


def test_the_table_has_everything() -> None:
    missing: list[str] = []

    def look(name: str, function: Any) -> None:
        given = {one for one in inspect.signature(function).parameters if one != "self"}
        if given and given != set(TABLE.get(name, ())):
            missing.append(f"{name}{tuple(sorted(given ^ set(TABLE.get(name, ()))))}")

    for name in pinfold.__all__:
        found = getattr(pinfold, name)
        if not callable(found) or name in FREE:
            continue
        if name not in NOT_MADE:
            look(name, found)
        if not inspect.isclass(found):
            continue
        # Those of a base are looked at once, at the class that the table has.
        for method in dir(found):
            function = inspect.getattr_static(found, method)
            shown = name.replace("SandboxView", "Sandbox").replace(
                "IsolatedSandboxBackend", "LocalSandboxBackend").replace(
                "AgentCoreSandboxBackend", "LocalSandboxBackend").replace(
                "DaytonaSandboxBackend", "LocalSandboxBackend")
            base = "Plugin" if issubclass(found, Plugin) else shown
            if not method.startswith("_") or method == "__call__":
                if isinstance(function, staticmethod) or inspect.isfunction(function):
                    look(f"{base}.{method}", getattr(found, method))
    assert missing == []


# ---- what has no table ----

def test_tools_say_what_they_lack() -> None:
    class Nameless(AgentTool):
        description = "Whatever"
        input_schema = {"type": "object"}

        def run(self, context: Any) -> str:
            return ""

    assert repr(Nameless()) == "<Nameless None>"
    for name, value, words in (("tool_name", 3, "tool_name must be a str"),
                               ("tool_name", "a\0b", "tool_name"), ("run", 3, "run is no method"),
                               ("description", None, "description must be a str"),
                               ("input_schema", "{}", "input_schema must be of type Mapping")):
        wrong = type("Wrong", (Nameless,), {"tool_name": "fine", name: value})()
        with pytest.raises((TypeError, ValueError), match=f"Wrong.{words}"):
            Agent(AgentConfig(tools=[wrong]))
    agent = Agent()
    brings = type("Brings", (Plugin,), {"name": "brings", "tools": [Nameless()]})()
    for register in (lambda: Agent(AgentConfig(tools=[Nameless()])),
                     lambda: agent.add_tool(Nameless()), lambda: agent.add_plugin(brings),
                     lambda: Agent(AgentConfig(plugins=[brings]))):
        with pytest.raises(TypeError, match="Nameless has no tool_name"):
            register()
    assert agent.tool_names == []


def test_what_is_right_goes_through(tmp_path: Path) -> None:
    """Numbers of others' types, and what stands at the bounds."""
    class Number:
        def __index__(self) -> int:
            return 7

    async def main() -> None:
        backend = pinfold.LocalSandboxBackend(tmp_path / "w", max_output_bytes=2**63 - 1)
        async with Sandbox("arguments", backend, 60) as sandbox:
            done = await sandbox.execute("printf 0123456789", max_output_bytes=Number(),  # type: ignore
                                         timeout=float("inf"), spool_bytes=2**64 - 1)
            assert done.truncated and done.spool and done.spool.size() == 10
            await sandbox.write_file("a", "1\n2\n")
            assert await sandbox.read_lines("a", Number(), 0) == ("", 2)  # type: ignore
            assert (await sandbox.execute([b"echo", Path("x")])).output == "x\n"  # type: ignore
            assert (await sandbox.execute("echo '\udcff'")).stdout_bytes == 2
            async with await sandbox.open_terminal("cat", rows=1, cols=2**16 - 1) as terminal:
                terminal.resize(0, 0)
                await terminal.write(b"x\r")
                assert await terminal.read(2**64 - 1, timeout=60)
    run(main())
    assert WorkspaceSyncPolicy(sync_include_patterns=()).sync_include_patterns == ()
    assert isinstance(Agent().hooks, HookRegistry)
    assert {Spool, Terminal} <= set(map(pinfold.__dict__.get, NOT_MADE - {"Agent.hooks"}))
