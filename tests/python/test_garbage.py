# SPDX-License-Identifier: Apache-2.0
"""Cycles through what the library holds are found by the garbage collector, and nothing else is."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path
from typing import Any, Callable

import pytest
from owners import BUILD
from pinfold import (Agent, AgentConfig, BeforeToolCallEvent, FileInfo, LocalSandboxBackend,
                     Plugin, Sandbox, SandboxManager, SandboxMode, _pinfold, host_tools, hook,
                     prepare_workspace, tool)

from support import local, run, scripted, until


class Holder:
    """Something of a user's; there must be none left."""

    def __init__(self) -> None:
        self.held: Any = None


class Backend(Holder):
    """It tells a list, which is no part of the cycle, how it fared."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self.heard = heard

    def close(self) -> None:
        self.heard.append(f"close {self.held is not None}")  # all of it is there still

    async def execute(self, command: str, timeout: Any = None, cwd: Any = None) -> Any:
        self.heard.append("runs")
        await asyncio.sleep(1000)

    def read_file(self, path: str) -> str:
        return "text"

    def write_file(self, path: str, content: Any) -> None: ...

    def list_dir(self, path: str) -> list[FileInfo]:
        return []

    def remove_file(self, path: str) -> None: ...


class Template(Holder):
    def __init__(self, heard: list[str]) -> None:
        super().__init__()
        self.heard = heard

    def build_for_session(self, _workspace_id: str) -> Backend:
        built = Backend(self.heard)
        built.held = self.held
        return built


def left() -> int:
    """How many there are. Weak references say nothing of what a collection brings back to life."""
    return sum(isinstance(one, Holder) for one in gc.get_objects())


def collected() -> bool:
    """What is started is stopped first, on a thread; what leads to threads goes after them."""
    for _ in range(3):
        gc.collect()
        assert _pinfold.wait_idle(60)
    return left() == 0


# ---- sandboxes ----

@pytest.mark.parametrize("kind", [Backend, Template])
@pytest.mark.parametrize("life", ["made", "started", "stopped"])
@pytest.mark.parametrize("managed", [False, True])
def test_of_a_backend_and_its_sandbox(kind: Any, life: str, managed: bool) -> None:
    heard: list[str] = []
    manager = SandboxManager() if managed else None

    def make() -> None:
        backend = kind(heard)
        backend.held = sandbox = Sandbox("garbage", backend, 60, manager=manager)

        async def live() -> None:
            if life != "made":
                await sandbox.start()
                await sandbox.read_file("a")
            if life == "stopped":
                await sandbox.stop()
        run(live())

    make()
    assert left() > 0
    assert collected()
    assert heard == ([] if life == "made" else ["close True"])


def test_of_an_agent_of_others_that_is_attached(root: Path) -> None:
    class Foreign(Holder):
        def _on_sandbox_attach(self, *_some: Any) -> None: ...

        def _on_sandbox_detach(self, *_some: Any) -> None:
            heard.append(f"detached {self.held is not None}")

    heard: list[str] = []

    def make() -> None:
        foreign = Foreign()
        foreign.held = sandbox = local(root)
        run(sandbox.start())
        sandbox.attach(foreign)

    make()
    assert collected() and heard == ["detached True"]


def test_of_a_terminal(root: Path) -> None:
    def make() -> None:
        holder = Holder()

        async def live() -> None:
            sandbox = Sandbox("garbage", LocalSandboxBackend(root), 60)
            await sandbox.start()
            holder.held = [await sandbox.open_terminal("cat"), holder]
        run(live())

    make()
    assert collected()


# ---- agents ----

@pytest.mark.parametrize("kind", [Backend, Template])
@pytest.mark.parametrize("prepared", [False, True])
def test_of_a_backend_and_its_agent(kind: Any, prepared: bool) -> None:
    heard: list[str] = []

    def make() -> None:
        backend = kind(heard)
        backend.held = agent = Agent(AgentConfig(execution_backend=backend,
                                                 sandbox_mode=SandboxMode.SANDBOX))
        if prepared:
            run(prepare_workspace(agent))

    make()
    assert collected() and heard == (["close True"] if prepared else [])


def test_of_an_agent_in_a_sandbox_in_a_backend() -> None:
    heard: list[str] = []

    def make() -> None:
        backend = Backend(heard)

        async def live() -> None:
            sandbox = Sandbox("garbage", backend, 60)
            await sandbox.start()
            backend.held = Agent(AgentConfig(sandbox=sandbox, agent_id="a"))
        run(live())

    make()
    assert collected() and heard == ["close True"]


class Own(Plugin, Holder):
    name = "own"

    @tool
    def look(self) -> str:
        """Look."""
        return str(self.held)

    @hook
    def heard(self, event: BeforeToolCallEvent) -> None: ...


class Model(Holder):
    def converse(self, _request: Any) -> str:
        return "done"


class Store(Holder):
    def store(self, key: str, content: bytes, content_type: str = "") -> str:
        return key

    def retrieve(self, reference: str) -> Any:
        raise KeyError(reference)


class Consent(Holder):
    def __call__(self, _name: str, _question: str) -> str:
        return "n"


def with_consent() -> tuple[Any, Agent]:
    consent = Consent()
    return consent, Agent(AgentConfig(tools=host_tools(consent), model=scripted({"reply": "d"})))


def with_plugin() -> tuple[Any, Agent]:
    plugin = Own()
    return plugin, Agent(AgentConfig(plugins=[plugin], model=scripted({"reply": "done"})))


def with_model() -> tuple[Any, Agent]:
    model = Model()
    return model, Agent(AgentConfig(model=model))


@pytest.mark.parametrize("make", [with_consent, with_plugin, with_model])
def test_of_what_an_agent_is_given(make: Callable[[], tuple[Any, Agent]]) -> None:
    def live() -> Any:
        holder, agent = make()
        holder.held = agent, [agent.get_tool(name) for name in agent.tool_names]
        agent("go")
        return weakref.ref(agent)

    gone = live()
    assert collected() and gone() is None


def test_tools_that_ask_for_consent_outlive_their_agent(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "BYPASS_TOOL_CONSENT", "STRANDS_NON_INTERACTIVE":
        monkeypatch.delenv(name, raising=False)
    asked: list[str] = []

    def make() -> Any:
        def ask(name: str, _question: str) -> str:
            asked.append(name)
            return "y"
        return Agent(AgentConfig(tools=host_tools(ask))).get_tool("file_write")

    found = make()
    assert collected()
    answer = Agent(AgentConfig(tools=[found])).tool.file_write(path=str(tmp_path / "f"),
                                                               content="x")
    assert answer["status"] == "success" and asked == ["file_write"]


# ---- what is no garbage ----

def test_what_is_under_way_is_no_garbage() -> None:
    """Nothing leads to the cycle but the call itself, on its thread."""
    heard: list[str] = []

    async def main() -> None:
        def begin() -> Any:
            backend = Backend(heard)
            backend.held = Sandbox("garbage", backend, 60)
            return backend.held

        sandbox = begin()
        await sandbox.start()
        task = asyncio.ensure_future(sandbox.execute("x"))
        del sandbox
        await until(lambda: heard == ["runs"])
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0.05)
        assert left() == 1 and heard == ["runs"] and not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    run(main())
    assert collected() and heard == ["runs", "close True"]


def test_what_fails_for_nobody_is_not_kept() -> None:
    """What was raised leads to its call, and the call has it, when no await is left."""
    class Late(Backend):
        async def read_file(self, path: str) -> str:  # type: ignore[override]
            self.heard.append("reads")
            await asyncio.sleep(1000)
            return ""

    heard: list[str] = []

    async def begin() -> None:
        sandbox = Sandbox("garbage", Late(heard), 60)
        await sandbox.start()
        task = asyncio.ensure_future(sandbox.read_file("a"))
        await until(lambda: heard)
        task.get_coro().close()  # type: ignore[union-attr]
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        await asyncio.get_running_loop().run_in_executor(None, _pinfold.wait_idle, 60)
        await asyncio.sleep(0.05)

    run(begin())
    assert collected()


def test_a_session_of_a_manager_is_no_garbage() -> None:
    """Whoever has the manager may ask for its backend."""
    heard: list[str] = []
    manager = SandboxManager()

    def make() -> None:
        def factory() -> Backend:
            backend = Backend(heard)
            backend.held = backend
            return backend
        run(manager.get_or_create("garbage", factory))

    make()
    assert not collected() and left() == 1
    session = manager.get_session("garbage")
    assert session and session.backend.read_file("a") == "text"
    del session
    run(manager.close_session("garbage"))
    assert collected() and heard == ["close True"]


def test_terminals_keep_their_sandbox(root: Path) -> None:
    async def main() -> None:
        async def begin() -> Any:
            sandbox = local(root)
            sandbox.held = sandbox  # type: ignore[attr-defined]
            await sandbox.start()
            return await sandbox.open_terminal("cat")

        terminal = await begin()
        for _ in range(3):
            gc.collect()
        await terminal.write("still\r")
        assert b"still" in await terminal.read(timeout=60)
        await terminal.close()
    run(main())


def test_collecting_while_everything_happens() -> None:
    """A collection at any moment clears nothing that is used, on whatever thread it comes."""
    heard: list[str] = []

    async def live(number: int) -> None:
        backend = Backend(heard)
        backend.held = sandbox = Sandbox(f"garbage-{number}", backend, 60)
        await sandbox.start()
        for _ in range(5):
            assert await sandbox.read_file("a") == "text"
            await sandbox.list_dir()
        if number % 2:
            await sandbox.stop()

    async def main() -> None:
        for begin in range(0, 40, 8):
            await asyncio.gather(*(live(number) for number in range(begin, begin + 8)))

    before = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    try:
        run(main())
    finally:
        gc.set_threshold(*before)
    assert collected() and heard == ["close True"] * 40


def test_at_the_end_of_the_program(tmp_path: Path) -> None:
    """Cycles of all kinds, started or not, in modules and in nobody's hands."""
    program = textwrap.dedent("""
        import asyncio, gc, sys
        from pinfold import *
        def say(line):  # in one piece: threads of the library speak, too
            print(line + "\\n", end="", flush=True)
        class Backend:
            def __init__(self, name): self.name = name
            def close(self): say(f"close {self.name}")
            def read_file(self, path): return ""
            def write_file(self, path, content): pass
            def list_dir(self, path): return []
        async def main():
            for name in "kept", "dropped":
                backend = Backend(name)
                backend.held = Sandbox(name, backend, 60)
                await backend.held.start()
                backend.agent = Agent(AgentConfig(sandbox=backend.held, agent_id=name))
                if name == "kept":
                    globals()["backend"] = backend
            made = Backend("made")
            made.held = Sandbox("made", made, 60)
            own = Backend("own")
            own.held = Agent(AgentConfig(execution_backend=own, agent_id="own",
                                         sandbox_mode=SandboxMode.SANDBOX))
            await prepare_workspace(own.held)
        gc.disable()
        asyncio.run(main())
        if sys.argv[1] == "collect":
            gc.collect()
        say("end")
        """)
    for how in "collect", "leave":
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program, how],
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300, check=False, cwd=tmp_path)
        assert (done.returncode, sorted(done.stdout.split("\n"))) \
            == (0, ["", "close dropped", "close kept", "close own", "end"]), done.stderr
        assert "Error" not in done.stderr, done.stderr
