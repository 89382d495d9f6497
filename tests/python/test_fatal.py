# SPDX-License-Identifier: Apache-2.0
"""What is to end the program comes through as what it is, whoever raises it, and whoever called."""

import asyncio
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from pinfold import (AfterInvocationEvent, AfterModelCallEvent, AfterToolCallEvent, Agent,
                     AgentConfig, AgentInitializedEvent, BeforeInvocationEvent,
                     BeforeModelCallEvent, BeforeToolCallEvent, FileInfo, HookRegistry,
                     MessageAddedEvent, Plugin, Sandbox, SandboxManager,
                     SandboxMode, host_tools, prepare_workspace, run_command, tool)

from support import call, local, run, scripted


class Own(BaseException):
    """As pytest's and others' are."""


FATAL = [SystemExit(3), KeyboardInterrupt(), GeneratorExit("closed"), Own("own")]


@pytest.fixture(autouse=True)
def forgotten(nothing_left: None) -> Iterator[None]:
    """Their tracebacks lead to calls, which must be gone at the end."""
    yield
    for error in FATAL:
        error.__traceback__ = error.__context__ = None


fatal = pytest.mark.parametrize("error", FATAL, ids=lambda error: type(error).__name__)


def raises(error: BaseException, work: Callable[[], Any]) -> None:
    with pytest.raises(type(error)) as caught:
        work()
    assert caught.value is error


class Backend:
    """Everything that raises is a plain function."""

    def __init__(self, error: BaseException, *where: str) -> None:
        self.error, self.where = error, where

    def _may(self, where: str) -> None:
        if where in self.where:
            raise self.error

    def create(self) -> None:
        self._may("create")

    def close(self) -> None:
        self._may("close")

    def read_file(self, path: str) -> str:
        self._may("read_file")
        return "text"

    def write_file(self, path: str, content: Any) -> None:
        self._may("write_file")

    def list_dir(self, path: str) -> list[FileInfo]:
        self._may("list_dir")
        return []

    def remove_file(self, path: str) -> None:
        self._may("remove_file")

    def execute(self, command: str, timeout: Any = None, cwd: Any = None) -> Any:
        self._may("execute")


@fatal
@pytest.mark.parametrize("where", ["create", "close", "read_file", "write_file", "list_dir",
                                   "remove_file", "execute"])
def test_from_backends(error: BaseException, where: str) -> None:
    async def main() -> None:
        async with Sandbox("fatal", Backend(error, where), 60) as sandbox:
            work = {"read_file": lambda: sandbox.read_file("a"),
                    "write_file": lambda: sandbox.add_files({"a": "b"}),
                    "list_dir": sandbox.list_dir,
                    "remove_file": lambda: sandbox.delete_files(["a"]),
                    "execute": lambda: sandbox.execute("true")}.get(where)
            if work is not None:
                await work()
    raises(error, lambda: drive(main()))


def drive(work: Any) -> None:
    """Of a task SystemExit goes through its loop; here it goes through one coroutine."""
    async def main() -> BaseException | None:
        task = asyncio.ensure_future(held())
        return await task

    async def held() -> BaseException | None:
        try:
            await work
        except BaseException as error:  # pylint: disable=broad-except
            return error
        return None

    found = run(main())
    if found is not None:
        raise found


@fatal
def test_what_fails_after_it_does_not_hide_it(error: BaseException) -> None:
    class Broken(Backend):
        def close(self) -> None:
            raise KeyError("and then this")

    raises(error, lambda: drive(Sandbox("fatal", Broken(error, "create"), 60).start()))


def test_from_the_loop_of_a_task() -> None:
    """As asyncio has it: such an exception of a task ends its loop."""
    async def main() -> None:
        await Sandbox("fatal", Backend(FATAL[0], "create"), 60).start()
    raises(FATAL[0], lambda: asyncio.run(main()))


@fatal
def test_from_factories_templates_and_attached_agents(error: BaseException, root: Path) -> None:
    def fail(*_some: Any) -> Any:
        raise error

    class Template:
        build_for_session = fail

    class Foreign:
        _on_sandbox_attach = fail

    class Leaving:
        _on_sandbox_detach = fail

    async def main() -> None:
        async with local(root) as sandbox:
            raises(error, lambda: sandbox.attach(Foreign()))
            leaving = Leaving()
            sandbox.attach(leaving)
            raises(error, lambda: sandbox.detach(leaving))
            sandbox.attach(leaving)
    raises(error, lambda: drive(main()))
    raises(error, lambda: drive(SandboxManager().get_or_create("fatal", fail)))
    raises(error, lambda: drive(Sandbox("fatal", Template(), 60).start()))


@fatal
def test_from_models(error: BaseException) -> None:
    class Model:
        def converse(self, _request: Any) -> str:
            raise error

    agent = Agent(AgentConfig(model=Model()))
    raises(error, lambda: drive(agent.invoke_async("go")))


class Provider:
    def __init__(self, error: BaseException, event: Any) -> None:
        self.error, self.event = error, event

    def register_hooks(self, registry: HookRegistry, **_kwargs: Any) -> None:
        registry.add_callback(self.event, self.fail)

    def fail(self, _event: Any) -> None:
        raise self.error


@tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@fatal
@pytest.mark.parametrize("event", [BeforeInvocationEvent, AfterInvocationEvent,
                                   BeforeModelCallEvent, AfterModelCallEvent, MessageAddedEvent,
                                   BeforeToolCallEvent, AfterToolCallEvent])
def test_from_hooks(error: BaseException, event: Any) -> None:
    model = scripted({"reply": [call("double", x=1), call("double", x=2)]}, {"reply": "done"})
    agent = Agent(AgentConfig(model=model, tools=[double], hooks=[Provider(error, event)]))
    raises(error, lambda: drive(agent.invoke_async("go")))


@fatal
def test_while_agents_are_made(error: BaseException) -> None:
    class Bad(Plugin):
        name = "bad"

        def init_agent(self, agent: Agent) -> None:
            raise error

    hooks = [Provider(error, AgentInitializedEvent)]
    raises(error, lambda: Agent(AgentConfig(hooks=hooks)))
    raises(error, lambda: Agent(AgentConfig(plugins=[Bad()])))
    raises(error, lambda: Agent().add_plugin(Bad()))


@fatal
@pytest.mark.parametrize("count", [1, 3])
def test_from_tools(error: BaseException, count: int) -> None:
    """One runs on the thread of the invocation, several on threads of their own."""
    @tool
    def stop(x: int) -> None:
        """Stop."""
        raise error

    model = scripted({"reply": [call("stop", x=i) for i in range(count)]}, {"reply": "done"})
    agent = Agent(AgentConfig(model=model, tools=[stop]))
    raises(error, lambda: drive(agent.invoke_async("go")))
    raises(error, lambda: drive(agent.call_tool("stop", x=1)))
    raises(error, lambda: agent.tool.stop(x=1))


@fatal
@pytest.mark.parametrize("count", [1, 3])
def test_from_a_backend_under_tools(error: BaseException, count: int) -> None:
    async def main() -> None:
        model = scripted({"reply": [call("read_file", path="a")] * count}, {"reply": "done"})
        async with Sandbox("fatal", Backend(error, "read_file"), 60) as sandbox:
            await Agent(AgentConfig(sandbox=sandbox, model=model)).invoke_async("go")
    raises(error, lambda: drive(main()))


@fatal
def test_from_who_is_asked_for_consent(error: BaseException, tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "BYPASS_TOOL_CONSENT", "STRANDS_NON_INTERACTIVE":
        monkeypatch.delenv(name, raising=False)

    def ask(_name: str, _question: str) -> str:
        raise error

    agent = Agent(AgentConfig(tools=host_tools(ask)))
    path = str(tmp_path / "f")
    raises(error, lambda: drive(agent.call_tool("file_write", path=path, content="x")))
    assert not (tmp_path / "f").exists()


@fatal
def test_from_consumers_of_output(error: BaseException, root: Path) -> None:
    def consume(_stream: str, _data: bytes) -> None:
        raise error

    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.execute("echo x; sleep 1000", on_output=consume)
    raises(error, lambda: drive(main()))


@fatal
def test_in_a_workspace_of_an_agents_own(error: BaseException) -> None:
    async def main() -> None:
        agent = Agent(AgentConfig(execution_backend=Backend(error, "execute"),
                                  sandbox_mode=SandboxMode.SANDBOX))
        await prepare_workspace(agent)
        await run_command(agent, "true")
    raises(error, lambda: drive(main()))
