# SPDX-License-Identifier: Apache-2.0
"""Agents with a workspace of their own, host tools, and results that are offloaded."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from elsai.agent import AgentConfig, SandboxMode, SandboxOutputOffloadPolicy, WorkspaceSyncPolicy
from elsai.execution import (AgentSandboxDetachedError, LocalSandboxBackend, Sandbox,
                             SandboxManager, SandboxStartError, WorkspaceOrchestrator,
                             WorkspacePrepareError, WorkspaceSeedResult, close_sandbox_workspace,
                             prepare_workspace, sandbox_is_active, sync_workspace_artifacts,
                             workspace_is_prepared)
from pinfold import (Agent, ContextOffloader, ExecuteResult, FileInfo, FileStorage,
                     InMemoryStorage, S3Storage, SandboxCancelledError, SandboxPlugin, host_tools,
                     run_command, tool)

from support import call, local, results, run, scripted, until


def own(root: Path, **config: Any) -> Agent:
    config = {"sandbox_mode": SandboxMode.SANDBOX, "plugins": [SandboxPlugin()],
              "agent_id": "own", "execution_backend": LocalSandboxBackend(root), **config}
    return Agent(AgentConfig(**config))


# ---- a workspace of its own ----

def test_workspace_is_made_when_it_is_needed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "project/src").mkdir(parents=True)
    (tmp_path / "project/src/a.py").write_text("a")
    (tmp_path / "project/.env").write_text("secret")
    model = scripted({"reply": [call("execute", command="cat src/a.py > src/b.py; ls -A")]},
                     {"reply": "done"})

    async def main() -> None:
        agent = own(root, model=model, workspace_root=tmp_path / "project")
        assert sandbox_is_active(agent) and not workspace_is_prepared(agent)
        with pytest.raises(SandboxStartError, match="not prepared"):
            await run_command(agent, "true")
        await agent.invoke_async("go")
        assert workspace_is_prepared(agent)
        assert results(agent) == ["exit code: 0\nsrc\n"]
        done = await sync_workspace_artifacts(agent)
        assert done and done.success and done.files_synced == 1
        assert (tmp_path / "project/src/b.py").read_text() == "a"
        assert await prepare_workspace(agent) is None  # it was
        await close_sandbox_workspace(agent)
        assert not workspace_is_prepared(agent) and await sync_workspace_artifacts(agent) is None
        seeded = await prepare_workspace(agent)
        assert isinstance(seeded, WorkspaceSeedResult) and seeded.skipped_paths == [".env"]
        await close_sandbox_workspace(agent, sync_artifacts=False)
    run(main())


def test_manager_is_shared_and_knows_the_agent(root: Path, tmp_path: Path) -> None:
    class Session:
        session_id = "talk-1"

    async def main() -> None:
        manager = SandboxManager()
        first = own(root, sandbox_manager=manager, session_manager=Session())
        second = own(root, sandbox_manager=manager, agent_id="other", session_manager=Session(),
                     workspace_root=tmp_path / "home",
                     workspace_sync_policy=WorkspaceSyncPolicy(sync_include_patterns=["*.c"]))
        assert manager.resolve_workspace_id(first) == "talk-1"
        assert manager.resolve_workspace_id(own(root, workspace_id="w")) == "w"
        async with local(tmp_path / "shared", "shared-1") as sandbox:
            attached = Agent(AgentConfig(sandbox=sandbox, agent_id="attached"))
            assert manager.resolve_workspace_id(attached) == "shared-1"
        assert manager.resolve_workspace_id(attached) == "attached"
        await prepare_workspace(first)
        (root / "x.c").write_text("c")
        (root / "x.py").write_text("py")
        await second.call_tool("read_file", path="x.c")
        assert not workspace_is_prepared(second)
        session = manager.get_session("talk-1")
        assert session and session.prepared and session.owner_id is None
        await manager.close_session("talk-1", agent=second)  # to its place, by its policy
        assert [path.name for path in (tmp_path / "home").iterdir()] == ["x.c"]
        assert not workspace_is_prepared(first)
    (tmp_path / "home").mkdir()
    run(main())


def test_failing_seeds_are_told(root: Path, tmp_path: Path) -> None:
    class Bad:
        """A backend of a user's, whose seeding reports errors."""

        def read_file(self, path: str) -> str:
            raise FileNotFoundError(2, "nothing", path)

        def write_file(self, path: str, content: Any) -> None: ...

        def list_dir(self, path: str) -> list[FileInfo]:
            return []

        def remove_file(self, path: str) -> None: ...

        async def seed_workspace(self, source: str, exclude: list[str]) -> WorkspaceSeedResult:
            await asyncio.sleep(0)
            return WorkspaceSeedResult(1, 1, [], ["a.py: on purpose"])

    async def main() -> None:
        agent = own(root, execution_backend=Bad(), workspace_root=tmp_path,
                    model=scripted({"reply": "done"}))
        for work in prepare_workspace(agent), agent.invoke_async("go"):
            with pytest.raises(WorkspacePrepareError, match="on purpose"):
                await work
        with pytest.raises(WorkspacePrepareError) as caught:
            await prepare_workspace(agent)
        assert caught.value.result.errors == ["a.py: on purpose"]
    run(main())


def test_orchestrator_is_a_provider_of_hooks(root: Path) -> None:
    async def main() -> None:
        agent = own(root, hooks=[WorkspaceOrchestrator()], model=scripted({"reply": "done"}))
        await agent.invoke_async("go")
        assert workspace_is_prepared(agent)
        await close_sandbox_workspace(agent)
    run(main())


def test_without_a_mode_nothing_is_active(root: Path) -> None:
    agent = own(root, sandbox_mode=SandboxMode.OFF)
    assert not sandbox_is_active(agent) and agent.sandbox_mode is SandboxMode.OFF

    async def main() -> None:
        assert await prepare_workspace(agent) is None
        await close_sandbox_workspace(agent)
    run(main())


class Slow:
    """Its commands take long; it says what became of them."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def execute(self, command: str, timeout: float | None = None,
                      cwd: str | None = None) -> ExecuteResult:
        self.heard.append("runs")
        try:
            await asyncio.sleep(1000)
        finally:
            self.heard.append("ended")
        return ExecuteResult("", 0)

    def read_file(self, path: str) -> str:
        return ""

    def write_file(self, path: str, content: Any) -> None: ...

    def list_dir(self, path: str) -> list[FileInfo]:
        return []

    def remove_file(self, path: str) -> None: ...


def test_agents_end_commands_of_a_backend_in_python() -> None:
    async def main() -> None:
        backend = Slow()
        agent = own(Path("unused"), execution_backend=backend)
        await prepare_workspace(agent)
        command = asyncio.ensure_future(agent.call_tool("execute", command="x"))
        await until(lambda: backend.heard)
        agent.cancel()
        with pytest.raises(SandboxCancelledError):
            await command
        assert backend.heard == ["runs", "ended"]
        await close_sandbox_workspace(agent)
    run(main())


def test_a_loop_that_detaches_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands still in detach(), and could not end the coroutine that detach() waits for."""
    monkeypatch.setattr("pinfold._bridge._PATIENCE_SECONDS", 0.2)

    async def main() -> None:
        backend = Slow()
        async with Sandbox("blocked", backend, 60) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox))
            command = asyncio.ensure_future(run_command(agent, "x"))
            await until(lambda: backend.heard)
            sandbox.detach(agent)
            with pytest.raises(AgentSandboxDetachedError):
                await command
            await until(lambda: backend.heard == ["runs", "ended"])
    run(main())


# ---- host tools ----

def test_host_tools_ask_for_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "BYPASS_TOOL_CONSENT", "STRANDS_NON_INTERACTIVE":
        monkeypatch.delenv(name, raising=False)
    asked: list[tuple[str, str]] = []

    async def ask(name: str, question: str) -> str | None:
        asked.append((name, question))
        return answers.pop(0)

    async def main() -> None:
        agent = Agent(AgentConfig(tools=host_tools(ask)))
        assert agent.tool_names == ["shell", "python_repl", "file_read", "file_write",
                                    "environment"]
        place = str(tmp_path / "f")
        for status in "success", "error", "error":
            answer = await agent.call_tool("file_write", path=place, content="text")
            assert answer["status"] == status, answer
        assert "not you" in str(answer) and (tmp_path / "f").read_text() == "text"
        assert (await agent.call_tool("file_read", path=place, mode="view"))["status"] == "success"
        assert [name for name, _ in asked] == ["file_write"] * 3 and place in asked[0][1]
        monkeypatch.setenv("BYPASS_TOOL_CONSENT", "true")
        answer = await agent.call_tool("shell", command="echo out")
        assert "out" in str(answer["content"][1:]) and len(asked) == 3
        monkeypatch.delenv("BYPASS_TOOL_CONSENT")
        alone = Agent(AgentConfig(tools=host_tools()))
        assert (await alone.call_tool("shell", command="true"))["status"] == "error"
    answers = ["y", None, "not you"]
    run(main())


def test_host_tools_stay_in_local_dev(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYPASS_TOOL_CONSENT", "true")

    async def main() -> None:
        agent = own(root, sandbox_mode=SandboxMode.LOCAL_DEV, tools=host_tools())
        await prepare_workspace(agent)
        assert {"shell", "execute"} <= set(agent.tool_names)
        assert (await agent.call_tool("shell", command="true"))["status"] == "success"
        blocked = own(root, tools=host_tools(), agent_id="blocked")
        assert "shell" not in blocked.tool_names
        answer = await blocked.call_tool("shell", command="true")
        assert answer["status"] == "error" and "off limits" in answer["content"][0]["text"]
        await close_sandbox_workspace(agent)
    run(main())


# ---- long results ----

class Shelf:
    """A storage of a user's."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[bytes, str]] = {}

    def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        assert threading.current_thread() is not threading.main_thread()
        self.kept[f"shelf-{len(self.kept)}"] = content, content_type
        return f"shelf-{len(self.kept) - 1}"

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        await asyncio.sleep(0)
        return self.kept[reference]


class Bucket(BaseHTTPRequestHandler):
    """As much of S3 as keeps objects; tests/s3 has a real one."""

    kept: dict[str, tuple[bytes, str]] = {}

    def do_PUT(self) -> None:  # pylint: disable=invalid-name
        data = self.rfile.read(int(self.headers["Content-Length"]))
        assert "Signature=" in self.headers["Authorization"]
        self.kept[self.path] = data, self.headers["Content-Type"]
        self.answer(200, b"")

    def do_GET(self) -> None:  # pylint: disable=invalid-name
        data, kind = self.kept.get(self.path, (b"<Error><Code>NoSuchKey</Code></Error>", ""))
        self.answer(200 if kind else 404, data, kind)

    def answer(self, status: int, data: bytes, kind: str = "application/xml") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        pass


def test_results_go_to_s3() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        storage = S3Storage("bucket", "agents/1", region="eu-central-1", access_key="AKIDEXAMPLE",
                            secret_key="secret", attempts=1,
                            endpoint=f"http://127.0.0.1:{server.server_port}")
        agent = Agent(AgentConfig(tools=[long], plugins=[ContextOffloader(storage, 100, 0)]))
        text = agent.tool.long()["content"][0]["text"]
        reference = text[text.index("s3://bucket/agents/1/"):].split()[0]
        assert storage.retrieve(reference) == (b"word " * 1000, "text/plain")
        with pytest.raises(KeyError):
            storage.retrieve(reference + "x")
        server.shutdown()
        thread.join()
    assert repr(storage) == "S3Storage('s3://bucket/agents/1')"
    with pytest.raises(ValueError, match="bucket"):
        S3Storage("No Bucket!", region="us-east-1")


@pytest.mark.parametrize("kind", ["memory", "file", "python"])
def test_long_results_are_offloaded(root: Path, tmp_path: Path, kind: str) -> None:
    storage: Any = {"memory": InMemoryStorage, "python": Shelf,
                    "file": lambda: FileStorage(tmp_path / "artifacts")}[kind]()
    policy = SandboxOutputOffloadPolicy(storage, max_result_tokens=100, preview_tokens=10)

    async def main() -> None:
        async with local(root) as sandbox:
            agent = Agent(AgentConfig(sandbox=sandbox, sandbox_output_offload=policy,
                                      tools=[long]))
            assert agent.has_plugin("context_offloader")
            text = (await agent.call_tool("execute", command="seq 1000"))["content"][0]["text"]
            assert "Offloaded" in text and len(text) < 1000 and "exit code: 0" in text
            reference = {"memory": "mem_1_", "file": str(tmp_path), "python": "shelf-0"}[kind]
            assert reference in text
            found = text[text.index(reference):].split()[0]
            answer = await agent.call_tool("retrieve_offloaded_content", reference=found,
                                           line_range={"start": 1000, "end": 1001})
            assert "999" in answer["content"][0]["text"]
            answer = await agent.call_tool("retrieve_offloaded_content", reference="nowhere")
            assert answer["status"] == "error" and "nowhere" in str(answer)
            assert len(str(await agent.call_tool("long"))) > 1000  # not of the workspace
    run(main())
    with pytest.raises(KeyError):
        InMemoryStorage().retrieve("mem_9_x")


@tool
def long() -> str:
    """Say much."""
    return "word " * 1000


def test_offloaders_are_for_all_tools(root: Path) -> None:
    class Full(Shelf):
        def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            raise OSError(28, "No space left on device")

    agent = Agent(AgentConfig(tools=[long], plugins=[ContextOffloader(
        Shelf(), 100, 0, include_retrieval_tool=False)]))
    assert agent.tool_names == ["long"]
    assert len(agent.tool.long()["content"][0]["text"]) < 1000
    whole = Agent(AgentConfig(tools=[long], plugins=[ContextOffloader(Full(), 100, 0)]))
    assert len(whole.tool.long()["content"][0]["text"]) == 5000


@pytest.mark.parametrize("wrong", [
    {"max_result_tokens": 0}, {"preview_tokens": -1}, {"preview_tokens": 2500},
    {"max_result_tokens": 2**32},
])
def test_policies_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="tokens"):
        SandboxOutputOffloadPolicy(InMemoryStorage(), **wrong)
    with pytest.raises(TypeError, match="storage"):
        SandboxOutputOffloadPolicy("here")  # type: ignore[arg-type]


def test_what_was_got_over_is_not_blamed(root: Path) -> None:
    """A storage fails, and the result stays whole; then the model fails, and says so itself."""
    class Full(Shelf):
        def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
            raise OSError(28, "No space left on device")

    agent = Agent(AgentConfig(
        tools=[long], plugins=[ContextOffloader(Full(), 100, 0)],
        model=scripted({"reply": [call("long")]},
                       {"reply": "", "error": {"message": "the model is ill", "status": 503}})))
    with pytest.raises(Exception, match="the model is ill") as caught:
        agent("go")
    assert caught.value.__cause__ is None
