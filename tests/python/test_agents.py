# SPDX-License-Identifier: Apache-2.0
"""Agents: the loop, attaching, tools of Python, streams, cancelling."""

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from elsai import Agent
from elsai.agent import AgentConfig, SandboxAttachMode, SandboxMode
from elsai.plugins.sandbox import (SandboxPlugin, ensure_sandbox_mutation_allowed,
                                   format_execute_result, list_workspace_dir, read_workspace_file,
                                   run_command, write_workspace_file)
from pinfold import (AfterToolCallEvent, AgentSandboxDetachedError, BeforeToolCallEvent,
                     ConcurrencyException, ExecuteResult, HookRegistry, LocalSandboxBackend,
                     Sandbox, SandboxAttachError, SandboxCancelledError, SandboxManager,
                     SandboxMutationDeniedError, ScriptedModel, ToolContext, host_tools, tool)

from owners import BUILD
from support import alive, call, local, resident, results, run, scripted, started, until

WORKSPACE_TOOLS = ["execute", "read_file", "write_file", "list_dir"]


# ---- the loop and the workspace ----

def test_works_in_a_shared_workspace(root: Path) -> None:
    model = scripted(
        {"expect": {"system": "careful", "last": "make it", "tools": WORKSPACE_TOOLS},
         "reply": ["First the file.", call("write_file", path="a/b.py", content="print(6 * 7)\n")],
         "usage": {"input": 10, "output": 5}},
        {"reply": [call("execute", command="python3 a/b.py"), call("read_file", path="a/b.py")],
         "usage": {"input": 20, "output": 5}},
        {"expect": {"results": [{"contains": "exit code: 0\n42"}, {"contains": "print"}]},
         "reply": "It says 42.", "usage": {"input": 30, "output": 7}})

    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox, model=model, plugins=[SandboxPlugin()],
                                      system_prompt="Be careful."))
            assert agent.tool_names == WORKSPACE_TOOLS and agent.sandbox is sandbox
            assert agent.sandbox_mode is SandboxMode.SANDBOX
            result = await agent.invoke_async("make it")
            assert (str(result), result.stop_reason, result.turns, result.tool_calls) \
                == ("It says 42.", "end_turn", 3, 3)
            assert result.usage and (result.usage.input_tokens, result.usage.output_tokens) \
                == (60, 17)
            assert (root / "a/b.py").read_text() == "print(6 * 7)\n"
            assert [message["role"] for message in agent.messages] \
                == ["user", "assistant"] * 3
            assert agent.messages[1]["content"][1]["toolUse"]["input"]["path"] == "a/b.py"
        assert agent.sandbox is None and agent.tool_names == []
    run(main())


def test_plugin_is_added_where_it_is_missing(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox))
            assert agent.tool_names == WORKSPACE_TOOLS and agent.has_plugin("sandbox")
    run(main())


def test_read_only_agents_look(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.write_file("a", "text")
            agent = Agent(AgentConfig(sandbox=sandbox,
                                      sandbox_attach_mode=SandboxAttachMode.READ_ONLY))
            assert agent.tool_names == ["read_file", "list_dir"]
            assert await read_workspace_file(agent, "a") == "text"
            for denied in (run_command(agent, "ls"), write_workspace_file(agent, "b", "")):
                with pytest.raises(SandboxMutationDeniedError):
                    await denied
            with pytest.raises(SandboxMutationDeniedError):
                ensure_sandbox_mutation_allowed(agent)
            answer = await agent.call_tool("execute", command="ls")
            assert answer["status"] == "error" and "read-only" in answer["content"][0]["text"]
    run(main())


def test_helpers_work_in_the_workspace(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox))
            await write_workspace_file(agent, "d/x", "1\n2\n3\n")
            assert await read_workspace_file(agent, "d/x", offset=1, limit=1) == "2\n"
            assert [entry.path for entry in await list_workspace_dir(agent, "d")] == ["d/x"]
            text = await run_command(agent, "pwd; echo oops >&2; exit 3", cwd="d")
            assert text == f"exit code: 3\n{root.resolve()}/d\n[stderr] oops\n"
            assert format_execute_result(ExecuteResult("x\n", 4)) == "exit code: 4\nx\n"
            ensure_sandbox_mutation_allowed(agent)
            with pytest.raises(TypeError, match="Agent is required"):
                await run_command(sandbox, "true")  # type: ignore[arg-type]
    run(main())


def test_detached_agents_are_refused(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox, tools=[double]))
            sandbox.detach(agent)
            sandbox.detach(agent)  # once more does nothing
            assert agent.tool_names == ["double"] and agent.sandbox is None
            for refused in run_command(agent, "true"), read_workspace_file(agent, "a"):
                with pytest.raises(AgentSandboxDetachedError):
                    await refused
            with pytest.raises(Exception, match="blocked"):
                agent.add_tool(host_tools()[0])  # for ever
            sandbox.attach(agent, SandboxAttachMode.READ_ONLY)
            assert agent.sandbox is sandbox and "list_dir" in agent.tool_names
            with pytest.raises(SandboxAttachError, match="read_only"):
                sandbox.attach(agent)
    run(main())


def test_detaching_kills_what_runs(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox))
            command = asyncio.ensure_future(
                run_command(agent, "echo $$ > pid; sleep 1000 & echo $! > child; wait"))
            await until(lambda: started(root))
            sandbox.detach(agent)
            with pytest.raises(AgentSandboxDetachedError):
                await command
            assert not any(alive(pid) for pid in started(root))
    run(main())


def test_attach_needs_a_started_sandbox(root: Path) -> None:
    with pytest.raises(SandboxAttachError, match="not started"):
        Agent(AgentConfig(sandbox=local(root)))


def test_attach_fails_whole(root: Path) -> None:
    @tool
    def execute(command: str) -> str:
        """One's own."""
        return command

    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(tools=[execute]))
            with pytest.raises(SandboxAttachError, match="execute"):
                sandbox.attach(agent)
            assert agent.tool_names == ["execute"] and not agent.has_plugin("sandbox")
            assert agent.sandbox_mode is SandboxMode.OFF
    run(main())


@pytest.mark.parametrize("wrong, words", [
    ({"execution_backend": True}, "execution_backend"),
    ({"workspace_root": "/tmp"}, "seed_from"),
    ({"sandbox_manager": True}, "manager"),
])
def test_two_ways_are_not_combined(root: Path, wrong: dict[str, Any], words: str) -> None:
    made = {"execution_backend": LocalSandboxBackend(root), "sandbox_manager": SandboxManager()}
    given = {name: made.get(name, value) for name, value in wrong.items()}

    async def main() -> None:
        async with local(root) as sandbox:
            config = AgentConfig(sandbox=sandbox, **given)  # the agent refuses, not the config
            with pytest.raises(ValueError, match=words):
                Agent(config)
    run(main())


def test_configuration_is_checked(root: Path) -> None:
    with pytest.raises(ValueError, match="local_dev"):
        AgentConfig(sandbox=local(root), sandbox_mode=SandboxMode.LOCAL_DEV)
    with pytest.raises(ValueError, match="execution_backend"):
        Agent(AgentConfig(sandbox_mode=SandboxMode.SANDBOX))
    with pytest.raises(ValueError, match="agent_id"):
        AgentConfig(agent_id="a/b")
    with pytest.raises(ValueError, match="max_turns"):
        AgentConfig(max_turns=0)
    with pytest.raises(TypeError, match="Sandbox is required"):
        AgentConfig(sandbox="job")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Plugin is required"):
        Agent(AgentConfig(plugins=["sandbox"]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="model"):
        Agent(AgentConfig(model=7))


# ---- tools ----

@tool
def double(x: int) -> int:
    """Double a number.

    Args:
        x: The number.
    """
    return 2 * x


def test_tools_are_functions_still() -> None:
    assert double(4) == 8 and double.__name__ == "double"
    assert double.tool_spec == {
        "name": "double", "description": "Double a number.",
        "inputSchema": {"type": "object", "required": ["x"],
                        "properties": {"x": {"type": "integer", "description": "The number."}}}}


def test_plain_tools_run_off_the_loop_and_coroutines_on_it() -> None:
    entered = threading.Event()

    @tool
    def plain(word: str) -> str:
        """A plain one."""
        assert threading.current_thread() is not threading.main_thread()
        assert entered.wait(60)  # the loop and the other tool go on meanwhile
        return word

    @tool
    async def coroutine(word: str) -> dict[str, str]:
        """A coroutine."""
        assert asyncio.get_running_loop() is loops[0]
        await asyncio.sleep(0)
        entered.set()
        return {"word": word}

    loops: list[Any] = []
    model = scripted({"reply": [call("plain", word="a"), call("coroutine", word="b")]},
                     {"reply": "done"})

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        agent = Agent(AgentConfig(model=model, tools=[plain, coroutine]))
        await agent.invoke_async("go")
        assert results(agent) == ["a", '{"word": "b"}']
    run(main())


def test_tools_see_their_agent_and_their_call(root: Path) -> None:
    @tool
    async def count(pattern: str, agent: Agent) -> str:
        """Count lines."""
        return await run_command(agent, f"grep -c {pattern} f")

    @tool(name="who", context=True)
    def anybody(tool_context: ToolContext, more: int = 3) -> str:
        """Who."""
        assert not tool_context.cancelled
        return f"{tool_context.agent.agent_id} {tool_context.tool_use['toolUseId']} {more}"

    assert list(count.input_schema["properties"]) == ["pattern"]
    assert list(anybody.input_schema["properties"]) == ["more"]
    model = scripted({"reply": [call("count", pattern="x"), call("who", "call_7")]},
                     {"reply": "done"})

    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.write_file("f", "x\ny\nxx\n")
            agent = Agent(AgentConfig(sandbox=sandbox, model=model, agent_id="counter",
                                      tools=[count, anybody]))
            await agent.invoke_async("go")
            assert results(agent) == ["exit code: 0\n2\n", "counter call_7 3"]
    run(main())


def test_what_tools_raise_is_told_to_the_model() -> None:
    @tool
    def fails(how: str) -> None:
        """Fail."""
        raise {"value": ValueError("a bad value"), "key": KeyError("gone")}[how]

    model = scripted({"reply": [call("fails", how="value"), call("fails", how="key"),
                                call("fails", how=7), call("unknown")]}, {"reply": "I see."})

    async def main() -> None:
        agent = Agent(AgentConfig(model=model, tools=[fails]))
        await agent.invoke_async("go")
        value, key, wrong, unknown = results(agent)
        assert value == "a bad value" and key == "KeyError: 'gone'"
        assert "how" in wrong and "Unknown tool: unknown" in unknown
    run(main())


def test_tools_are_called_directly() -> None:
    @tool
    async def slow(word: str) -> str:
        """Slow."""
        await asyncio.sleep(0.01)
        return word

    async def main() -> None:
        agent = Agent(AgentConfig(tools=[double, slow]))
        answer = await agent.call_tool("double", {"x": 21})
        assert answer == {"toolUseId": "direct", "status": "success", "content": [{"text": "42"}]}
        # Blocking, and so on a loop of its own: the one here stands still.
        assert agent.tool.slow(word="w")["content"] == [{"text": "w"}]
        with pytest.raises(AttributeError, match="no tool nothing"):
            agent.tool.nothing()
    run(main())
    assert Agent(AgentConfig(tools=[slow])).tool.slow(word="w")["status"] == "success"


def test_tools_come_and_go() -> None:
    agent = Agent(AgentConfig(tools=[double]))
    with pytest.raises(ValueError, match="already"):
        agent.add_tool(double)
    assert agent.get_tool("double") is double
    assert agent.remove_tool("double") and not agent.remove_tool("double")
    assert agent.get_tool("double") is None and agent.tool_names == []
    agent.add_tool(double)
    with pytest.raises(TypeError, match="function or an AgentTool"):
        agent.add_tool("double")  # type: ignore[arg-type]


# ---- invocations ----

def test_events_are_streamed() -> None:
    model = scripted({"reply": [{"reasoning": "Hm."}, "I ask.", call("double", "call_1", x=4)],
                      "chunk": 3},
                     {"reply": "Eight."})

    async def main() -> None:
        agent = Agent(AgentConfig(model=model, tools=[double]))
        events = [event async for event in agent.stream_async("go")]
        assert [event["data"] for event in events if "data" in event] == ["I a", "sk.", "Eight."]
        assert [event["reasoningText"] for event in events if "reasoningText" in event] == ["Hm."]
        uses = [event["current_tool_use"] for event in events if "current_tool_use" in event]
        assert uses[0] == {"toolUseId": "call_1", "name": "double", "input": ""}
        assert uses[-1] == {"toolUseId": "call_1", "name": "double", "input": {"x": 4}}
        assert [event["message"]["role"] for event in events if "message" in event] \
            == ["user", "assistant", "user", "assistant"]
        assert str(events[-1]["result"]) == "Eight."
    run(main())


def test_abandoned_streams_end_their_invocation() -> None:
    ended = []

    @tool
    async def wait() -> None:
        """Wait."""
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(True)

    async def main() -> None:
        agent = Agent(AgentConfig(model=scripted({"reply": ["So.", call("wait")]}), tools=[wait]))
        stream = agent.stream_async("go")
        async for event in stream:
            if "message" in event and event["message"]["role"] == "assistant":
                break
        await asyncio.sleep(0.01)
        await stream.aclose()  # type: ignore[attr-defined]
        agent.messages = []  # nothing is under way
        assert ended in ([True], [])  # it may not have begun
    run(main())


def test_a_stream_that_is_closed_leaves_its_agent_free() -> None:
    async def main() -> None:
        agent = Agent(AgentConfig(model=scripted(*({"reply": "many words"} for _ in range(9)))))
        for _ in range(3):
            async with contextlib.aclosing(agent.stream_async("go")) as events:
                async for _event in events:
                    break
            assert (await agent.invoke_async("go")).stop_reason == "end_turn"
    run(main())


def test_a_stream_that_is_cancelled_twice_ends_its_tools_all_the_same() -> None:
    heard: list[str] = []

    @tool
    async def wait() -> None:
        """Wait."""
        heard.append("waits")
        try:
            await asyncio.sleep(1000)
        finally:
            heard.append("ends")
            await asyncio.sleep(0.2)
            heard.append("ended")

    async def main() -> None:
        agent = Agent(AgentConfig(model=scripted({"reply": [call("wait")]}), tools=[wait]))

        async def consume() -> None:
            async for _ in agent.stream_async("go"):
                pass

        task = asyncio.ensure_future(consume())
        await until(lambda: heard)
        task.cancel()
        await until(lambda: len(heard) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard == ["waits", "ends", "ended"]
    run(main())


def test_cancelling_ends_commands_and_coroutines(root: Path) -> None:
    heard: list[str] = []

    @tool
    async def wait() -> None:
        """Wait."""
        heard.append("waits")
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0.05)
            heard.append("ended")

    command = "echo $$ > pid; sleep 1000 & echo $! > child; wait"
    model = ScriptedModel({"turns": [{"times": 0, "reply": [call("execute", command=command),
                                                            call("wait")]}]})

    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox, model=model, tools=[wait]))
            task = asyncio.ensure_future(agent.invoke_async("go"))
            await until(lambda: started(root) and heard)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert heard == ["waits", "ended"]
            assert not any(alive(pid) for pid in started(root))
            # The conversation can be gone on with, and agent.cancel() does the same.
            heard.clear()
            (root / "pid").unlink()
            task = asyncio.ensure_future(agent.invoke_async("again"))
            await until(lambda: started(root) and heard)
            agent.cancel()
            with pytest.raises(SandboxCancelledError):
                await task
            assert heard == ["waits", "ended"]
            assert not any(alive(pid) for pid in started(root))
    run(main())


def test_what_has_hardly_begun_is_cancelled_too() -> None:
    @tool
    async def wait() -> None:
        """Wait."""
        await asyncio.sleep(1000)

    async def stream(agent: Agent) -> None:
        async for _ in agent.stream_async("go"):
            pass

    model = ScriptedModel({"turns": [{"times": 0, "reply": [call("wait")]}]})
    ways = [lambda agent: agent.invoke_async("go"), stream, lambda agent: agent.call_tool("wait")]

    async def main() -> None:
        for turns in list(range(1, 5)) * 5:
            for way in ways:
                agent = Agent(AgentConfig(model=model, tools=[wait]))
                task = asyncio.ensure_future(way(agent))
                for _ in range(turns + (way is stream)):  # it has a task of its own
                    await asyncio.sleep(0)
                agent.cancel()
                with pytest.raises(SandboxCancelledError):
                    await asyncio.wait_for(task, 60)
    run(main())


def test_one_invocation_at_a_time() -> None:
    go_on = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        await go_on.wait()

    async def main() -> None:
        agent = Agent(AgentConfig(model=scripted({"reply": [call("wait")]}, {"reply": "done"}),
                                  tools=[wait]))
        first = asyncio.ensure_future(agent.invoke_async("go"))
        await until(lambda: len(agent.messages) == 2)
        with pytest.raises(ConcurrencyException):
            await agent.invoke_async("me too")
        with pytest.raises(ConcurrencyException):
            agent.messages = []
        go_on.set()
        assert str(await first) == "done"
    run(main())


def test_agents_may_ask_agents() -> None:
    @tool
    async def ask(question: str) -> str:
        """Ask somebody."""
        return str(await helper.invoke_async(question))

    @tool
    def ask_plainly(question: str) -> str:
        """Ask somebody, and block."""
        return str(second(question))

    helper = Agent(AgentConfig(model=scripted({"expect": {"last": "q1"}, "reply": "a1"})))
    second = Agent(AgentConfig(model=scripted({"expect": {"last": "q2"}, "reply": "a2"})))
    model = scripted({"reply": [call("ask", question="q1"), call("ask_plainly", question="q2")]},
                     {"expect": {"results": [{"contains": "a1"}, {"contains": "a2"}]},
                      "reply": "done"})
    agent = Agent(AgentConfig(model=model, tools=[ask, ask_plainly]))
    assert str(agent("go")) == "done"

    async def main() -> None:
        with pytest.raises(RuntimeError, match="invoke_async"):
            agent("go")
    run(main())


def test_many_agents_at_once() -> None:
    """More of them than the pool has threads, and each needs one more to get on."""
    async def main() -> None:
        sandbox = Sandbox("many", LocalSandboxBackend(Path("/proc/self/cwd")), 60)

        @tool
        async def look() -> str:
            """Look."""
            started_count.append(1)
            await until(lambda: len(started_count) == count)
            try:
                await sandbox.read_file("nothing")  # on a thread of the pool
            except Exception as error:  # pylint: disable=broad-except
                return type(error).__name__
            return "read"

        agents = [Agent(AgentConfig(model=scripted({"reply": [call("look")]}, {"reply": "done"}),
                                    tools=[look])) for _ in range(count)]
        done = await asyncio.gather(*(agent.invoke_async("go") for agent in agents))
        assert [str(one) for one in done] == ["done"] * count
        assert {results(agent)[0] for agent in agents} == {"SandboxStartError"}

    count = 520
    started_count: list[int] = []
    run(main())


def test_without_a_model_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINFOLD_MODEL", raising=False)

    async def main() -> None:
        with pytest.raises(TypeError, match="no model: give AgentConfig one, or set PINFOLD_MODEL"):
            await Agent().invoke_async("go")
        with pytest.raises(TypeError, match="prompt must be a str"):
            await Agent().invoke_async(["go"])  # type: ignore[arg-type]
    run(main())


def test_model_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script.json").write_text('{"turns": [{"reply": "from there"}]}')
    monkeypatch.setenv("PINFOLD_MODEL", f"scripted:{tmp_path}/script.json")
    assert str(Agent()("go")) == "from there"


# ---- life ----

def test_cycles_through_an_agent_are_collected(root: Path) -> None:
    """The agent has the tool, the hook and the plugin, which have the agent."""
    async def main() -> Any:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox, model=scripted({"reply": "done"})))

            @tool
            def know() -> str:
                """Know."""
                return agent.agent_id

            agent.add_tool(know)
            agent.add_hook(lambda event: agent.agent_id, BeforeToolCallEvent)
            await agent.invoke_async("go")
            try:
                await agent.call_tool("know", {"no": "such"})
                await agent.invoke_async("go")  # the script has ended
            except Exception as error:  # pylint: disable=broad-except
                agent.failed = error  # type: ignore[attr-defined]
            assert hasattr(agent, "failed")
            return weakref.ref(agent)

    gone = run(main())
    gc.collect()
    assert gone() is None


def test_agents_leak_nothing() -> None:
    @tool
    async def much(agent: Agent) -> str:
        """Say much."""
        return "x" * 100_000

    class Provider:
        def register_hooks(self, registry: HookRegistry, **_kwargs: Any) -> None:
            registry.add_callback([BeforeToolCallEvent, AfterToolCallEvent], lambda event: None)

    async def work(count: int) -> None:
        for _ in range(count):
            agent = Agent(AgentConfig(model=scripted({"reply": [call("much"), call("none")]},
                                                     {"reply": "done"}),
                                      tools=[much], hooks=[Provider()]))
            async for _event in agent.stream_async("go"):
                pass
            agent.messages = agent.messages
            with pytest.raises(ValueError):
                Agent(AgentConfig(tools=[much, much]))

    async def main() -> None:
        await work(100)
        gc.collect()
        before = resident()
        await work(300)
        gc.collect()
        assert resident() - before < 16 << 20  # one result of each would be 30 MB

    run(main())


def test_one_agent_serves_several_loops() -> None:
    @tool
    async def where(name: str) -> str:
        """Where it runs."""
        await asyncio.sleep(0.001)
        return f"{name} {threading.current_thread().name}"

    agent = Agent(AgentConfig(tools=[where]))
    said: list[str] = []

    def work(name: str) -> None:
        async def main() -> None:
            for _ in range(20):
                answers = await asyncio.gather(*(agent.call_tool("where", name=name)
                                                 for _ in range(3)))
                said.extend(answer["content"][0]["text"] for answer in answers)
        run(main())

    threads = [threading.Thread(target=work, args=[f"t{i}"], name=f"t{i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == sorted(f"t{i} t{i}" for i in range(4) for _ in range(60))


def test_a_fork_leaves_the_agents_of_its_parent_alone() -> None:
    program = textwrap.dedent("""
        import asyncio, os, sys
        from pinfold import *
        agent = Agent(AgentConfig(execution_backend=IsolatedSandboxBackend(), agent_id="parent",
                                  sandbox_mode=SandboxMode.SANDBOX, plugins=[SandboxPlugin()]))
        asyncio.run(prepare_workspace(agent))
        agent.tool.write_file(path="a", content="text")
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(agent.tool.read_file(path="a")["content"][0]["text"])
        """)
    done = subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")}, text=True,
                          capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "text\n"), done.stderr


def test_exit_with_live_agents_is_clean(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys
        from pinfold import *
        @tool
        async def wait() -> None:
            "Wait."
            print("waits", flush=True)
            await asyncio.sleep(1000)
        script = {"turns": [{"reply": [{"tool": "wait", "input": {}},
                                       {"tool": "execute", "input": {"command": "sleep 1000"}}]}]}
        agents = []
        async def main():
            sandbox = Sandbox("exit", LocalSandboxBackend(sys.argv[1]), 60)
            await sandbox.start()
            agents.append(Agent(AgentConfig(sandbox=sandbox, model=ScriptedModel(script),
                                            tools=[wait])))
            own = Agent(AgentConfig(execution_backend=IsolatedSandboxBackend(),
                                    sandbox_mode=SandboxMode.SANDBOX, agent_id="own"))
            await prepare_workspace(own)
            agents.append(own)
            task = asyncio.ensure_future(agents[0].invoke_async("go"))
            await asyncio.sleep(0.3)
            agents.append(task)
        asyncio.run(main())
        print("end", flush=True)
        """)
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-W", "error", "-c", program, tmp_path / "w"],
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          check=False)
    assert (done.returncode, done.stdout.split()[-1]) == (0, "end"), done.stderr
    assert "Error" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert time.monotonic() - begun < 120  # it was not waited for
