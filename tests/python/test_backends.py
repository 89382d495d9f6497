# SPDX-License-Identifier: Apache-2.0
"""Backends written in Python, and those of the library used without a sandbox."""

import asyncio
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from elsai.execution import (ExecuteResult, ExecutionBackend, FileInfo, FileTransferResult,
                             LocalSandboxBackend, Sandbox, SandboxBackend, SandboxManager,
                             SandboxStartError, WorkspacePrepareError, WorkspaceSeedResult,
                             WorkspaceSyncResult, supports_execution)
from elsai_tools.sandbox import AgentCoreSandboxTemplate
from pinfold import SandboxBackendError, SandboxCancelledError

from support import run, until


class Memory:
    """A workspace in a dictionary: the least that a backend may be."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}
        self.heard: list[str] = []

    def read_file(self, path: str) -> Any:
        if path not in self.files:
            raise FileNotFoundError(2, "no such entry", path)
        return self.files[path]

    def write_file(self, path: str, content: Any) -> None:
        self.files[path] = content

    def list_dir(self, path: str) -> list[FileInfo]:
        return [FileInfo(name, False, len(data)) for name, data in self.files.items()]

    def remove_file(self, path: str) -> None:
        del self.files[path]


class Whole(Memory):
    """Everything that the protocols name, as coroutines."""

    id = "whole-1"

    async def create(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.heard.append("create")

    async def close(self) -> None:
        self.heard.append("close")

    async def seed_workspace(self, source: str, exclude: list[str]) -> WorkspaceSeedResult:
        assert "secrets/" in exclude
        return WorkspaceSeedResult(2, 3, ["skipped"], ["failed"] if "bad" in source else [])

    async def sync_artifacts(self, dest: str, include: list[str],
                             exclude: list[str]) -> WorkspaceSyncResult:
        assert "*.py" in include and ".env" in exclude
        return WorkspaceSyncResult(4, 5)

    async def upload_files(self, files: Any) -> list[FileTransferResult]:
        self.files.update(files)
        return [FileTransferResult(path, error="full" if path == "big" else None)
                for path, _ in files]

    async def download_files(self, paths: Any) -> list[FileTransferResult]:
        return [FileTransferResult(path, self.files.get(path),
                                   None if path in self.files else "gone") for path in paths]

    async def execute(self, command: str, timeout: float | None = None, cwd: str | None = None,
                      **kwargs: Any) -> ExecuteResult:
        assert asyncio.get_running_loop() is self.loop
        if command == "wait":
            try:
                self.heard.append("waits")
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(0.05)  # as when something has to be told to end
                self.heard.append("ended")
        if command == "break":
            raise KeyError("broken")
        if command == "nonsense":
            return 7  # type: ignore[return-value]
        return ExecuteResult(f"{command} {timeout} {cwd} {kwargs}", 3, True, "oh")


def test_a_list_is_sorted_by_bytes_whoever_made_it() -> None:
    async def main() -> None:
        names = ["b", "a/c", "\xe9", "a", "\udcff", "B", "a-c"]
        memory = Memory()
        memory.files = dict.fromkeys(names, "12")
        async with Sandbox("memory", memory, 60) as sandbox:
            listed = await sandbox.list_dir()
        assert [entry.path for entry in listed] == sorted(names, key=os.fsencode)
        assert {entry.size for entry in listed} == {2}

    asyncio.run(main())


def test_least_backend_keeps_files(tmp_path: Path) -> None:
    async def main() -> None:
        memory = Memory()
        async with Sandbox("memory", memory, 60) as sandbox:
            await sandbox.write_file("a", "text")
            await sandbox.add_files({"b": b"\xff", "c": tmp_path / "host"})
            assert memory.files == {"a": "text", "b": b"\xff", "c": "from the host"}
            assert await sandbox.add_files({"a": "new", "d": "x"}, overwrite=False) == ["d"]
            assert await sandbox.read_file("a") == "text"
            assert await sandbox.read_bytes("b") == b"\xff"
            assert await sandbox.download_files({"b": tmp_path / "x/y"}) == ["b"]
            assert (tmp_path / "x/y").read_bytes() == b"\xff"
            await sandbox.move_file("a", "e")
            await sandbox.delete_files(["d"])
            assert [entry.path for entry in await sandbox.list_dir()] == ["b", "c", "e"]
            with pytest.raises(FileNotFoundError, match="no such entry"):
                await sandbox.read_file("none")
            with pytest.raises(UnicodeDecodeError):
                await sandbox.read_file("b")
            with pytest.raises(NotImplementedError, match="execute"):
                await sandbox.execute("true")
            with pytest.raises(ValueError):
                await sandbox.read_file("../escape")
        assert sandbox.ref().backend_type == "Memory"
        assert not supports_execution(memory)
    (tmp_path / "host").write_text("from the host")
    run(main())


@pytest.mark.parametrize("kind", [asyncio.CancelledError, SandboxCancelledError])
@pytest.mark.parametrize("count", [1, 3])
def test_a_start_that_its_backend_cancels_is_no_start_of_somebody_else(kind: Any,
                                                                       count: int) -> None:
    """It would be begun again and again, and each time make what costs money at a service."""
    class Cancels(Memory):
        async def create(self) -> None:
            self.heard.append("create")
            await asyncio.sleep(0.05)
            raise kind("by itself")

    async def main() -> None:
        memory = Cancels()
        sandbox = Sandbox("cancels", memory, 60)
        for error in await asyncio.wait_for(asyncio.gather(
                *(sandbox.start() for _ in range(count)), return_exceptions=True), 60):
            assert isinstance(error, SandboxCancelledError)
        assert 1 <= len(memory.heard) <= count and not sandbox.is_started
    run(main())


def test_coroutines_run_on_the_loop_that_waits(tmp_path: Path) -> None:
    async def main() -> None:
        whole = Whole()
        sandbox = Sandbox("whole", whole, 60, seed_from=tmp_path, sync_dest=tmp_path)
        seeded = await sandbox.start()
        assert seeded == WorkspaceSeedResult(2, 3, ["skipped"], [])
        result = await sandbox.execute("cmd", timeout=5, cwd="d", env={"A": "b"})
        assert (result.exit_code, result.truncated, result.stderr) == (3, True, "oh")
        assert result.output == "cmd 5.0 d {'env': {'A': 'b'}}"
        assert (await sandbox.execute(["a", "b c"])).output.startswith("a 'b c' None None")
        with pytest.raises(OSError, match="full") as caught:
            await sandbox.add_files({"small": "x", "big": "y"})
        assert caught.value.written == ["small"]  # type: ignore[attr-defined]
        assert await sandbox.read_bytes("small") == b"x"
        with pytest.raises(OSError, match="gone") as caught:
            await sandbox.download_files({"small": tmp_path / "s", "none": tmp_path / "n"})
        assert [one.success for one in caught.value.results] == [True, False]  # type: ignore
        assert await sandbox.flush() == WorkspaceSyncResult(4, 5)
        seen: list[Any] = []
        await sandbox.execute("cmd", on_output=lambda *some: seen.append(some))
        assert seen == [("stdout", b"cmd None None {}"), ("stderr", b"oh")]
        await sandbox.stop()
        assert whole.heard == ["create", "close"]
    run(main())


def test_exceptions_come_through() -> None:
    async def main() -> None:
        async with Sandbox("whole", Whole(), 60) as sandbox:
            with pytest.raises(SandboxBackendError, match="KeyError.*broken") as caught:
                await sandbox.execute("break")
            assert isinstance(caught.value.__cause__, KeyError)
            with pytest.raises(TypeError, match="ExecuteResult"):
                await sandbox.execute("nonsense")
    run(main())


def test_answers_that_are_none_do_not_pass_for_success() -> None:
    class Silent(Memory):
        def upload_files(self, files: Any) -> list[FileTransferResult]:
            return []

        def download_files(self, paths: Any) -> list[FileTransferResult]:
            return []

        def read_file(self, path: str) -> Any:
            return 3

    async def main() -> None:
        async with Sandbox("silent", Silent(), 60) as sandbox:
            with pytest.raises(SandboxBackendError, match="0 results for 1 files"):
                await sandbox.add_files({"a": "b"})
            with pytest.raises(SandboxBackendError, match="0 results for 1 files"):
                await sandbox.read_bytes("a")
            with pytest.raises(TypeError):
                await sandbox.read_file("a")
    run(main())


def test_a_pipe_of_the_host_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    async def main() -> None:
        async with Sandbox("memory", Memory(), 60) as sandbox:
            with pytest.raises(Exception, match="regular file"):
                await sandbox.add_files({"a": tmp_path / "pipe"})
    run(main())


@pytest.mark.parametrize("kind", [Memory, LocalSandboxBackend])
def test_downloads_replace_files_and_nothing_else(kind: Any, root: Path, tmp_path: Path) -> None:
    (tmp_path / "folder/in").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("old")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))

    async def main() -> None:
        async with Sandbox("downloads", kind() if kind is Memory else kind(root), 60) as sandbox:
            await sandbox.write_file("a", "new")
            before = {path: path.lstat() for path in tmp_path.rglob("*")}
            for name, error in (("folder", IsADirectoryError), ("pipe", OSError),
                                ("socket", OSError), ("file/below", NotADirectoryError)):
                with pytest.raises(error, match=f'/{name.split("/")[0]}\\b|"{name}"'):
                    await sandbox.download_files({"a": tmp_path / name})
            assert before == {path: path.lstat() for path in tmp_path.rglob("*")}
            await sandbox.download_files({"a": tmp_path / "file"})
            assert (tmp_path / "file").read_text() == "new"
    run(main())


def test_downloads_heed_the_umask_and_leave_it_alone(tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of all threads: what they make meanwhile would be open to everybody, and of two
    that change it and change it back one may bring back the other's."""
    def changed(_mask: int) -> int:
        raise AssertionError("the umask was changed")

    async def main() -> None:
        async with Sandbox("umask", Memory(), 60) as sandbox:
            await sandbox.write_file("a", "new")
            await sandbox.download_files({"a": tmp_path / "file"})
    old = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", changed)
            run(main())
    finally:
        assert os.umask(old) == 0o027
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_seeding_errors_undo_the_start(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()

    async def main() -> None:
        whole = Whole()
        with pytest.raises(WorkspacePrepareError, match="failed") as caught:
            await Sandbox("whole", whole, 60, seed_from=tmp_path / "bad").start()
        assert caught.value.result.errors == ["failed"]
        assert whole.heard == ["create", "close"]
    run(main())


def test_cancelling_reaches_the_coroutine_and_waits_for_it() -> None:
    async def main() -> None:
        whole = Whole()
        async with Sandbox("whole", whole, 60) as sandbox:
            task = asyncio.ensure_future(sandbox.execute("wait"))
            while "waits" not in whole.heard:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert whole.heard[-1] == "ended"
    run(main())


def test_plain_functions_run_off_the_loop() -> None:
    class Slow(Memory):
        def read_file(self, path: str) -> str:
            assert threading.current_thread() is not threading.main_thread()
            assert entered.wait(60)  # the loop goes on meanwhile
            return "text"

    entered = threading.Event()

    async def main() -> None:
        async with Sandbox("slow", Slow(), 60) as sandbox:
            reading = asyncio.ensure_future(sandbox.read_file("a"))
            await asyncio.sleep(0.01)
            entered.set()
            assert await reading == "text"
    run(main())


def test_one_object_is_one_workspace() -> None:
    async def main() -> None:
        memory = Memory()
        async with Sandbox("one", memory, 60):
            with pytest.raises(SandboxStartError, match="storage"):
                await Sandbox("two", memory, 60).start()
    run(main())


def test_templates_build_one_backend_each() -> None:
    class Template:
        def __init__(self) -> None:
            self.built: dict[str, Memory] = {}

        def build_for_session(self, workspace_id: str) -> Memory:
            return self.built.setdefault(workspace_id, Memory())

    async def main() -> None:
        template = Template()
        async with Sandbox("a", template, 60) as first, Sandbox("b", template, 60) as second:
            await first.write_file("x", "1")
            await second.write_file("x", "2")
        assert {name: memory.files for name, memory in template.built.items()} \
            == {"a": {"x": "1"}, "b": {"x": "2"}}
    run(main())


def test_protocols_tell_backends_apart(root: Path) -> None:
    backend = LocalSandboxBackend(root)
    assert isinstance(backend, ExecutionBackend) and isinstance(backend, SandboxBackend)
    assert isinstance(Whole(), SandboxBackend) and not isinstance(Memory(), ExecutionBackend)
    assert supports_execution(backend) and supports_execution(Whole())
    assert supports_execution(AgentCoreSandboxTemplate(region="us-west-2"))
    assert not supports_execution(None) and not supports_execution(object())


@pytest.mark.parametrize("alone", [True, False])
def test_a_command_is_run_as_asked_with_a_sandbox_and_without(root: Path, alone: bool) -> None:
    async def check(execute: Any) -> None:
        count = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo $i; done"
        done = await execute(count, max_output_bytes=100)
        assert done.truncated and "1\n2\n3\n" in done.stdout and "2000" not in done.stdout
        done = await execute(count, max_output_bytes=100, keep_tail=True)
        assert done.truncated and "1\n2\n" in done.stdout and "2000\n" in done.stdout
        done = await execute("echo abc; echo d >&2", spool_bytes=1000)
        assert done.spool and done.spool.read("stdout") + done.spool.read("stderr") == b"abc\nd\n"
        seen: list[tuple[str, bytes]] = []
        await execute("echo abc", on_output=lambda *some: seen.append(some))
        assert seen == [("stdout", b"abc\n")]

    async def main() -> None:
        backend = LocalSandboxBackend(root)
        if alone:
            await backend.create()
            await check(backend.execute)
            await backend.close()
        else:
            async with Sandbox("w", backend, ttl_seconds=60) as sandbox:
                await check(sandbox.execute)

    asyncio.run(main())


def test_library_backends_work_alone(root: Path, tmp_path: Path) -> None:
    async def main() -> None:
        backend = LocalSandboxBackend(root, env={"WORD": "x"})
        assert backend.id.startswith("LocalSandboxBackend-")
        await backend.create()
        await backend.write_file("a/b.py", "text")
        assert await backend.read_file("a/b.py") == "text"
        assert [entry.path for entry in await backend.list_dir()] == ["a"]
        assert (await backend.execute("echo $WORD", cwd="a")).output == "x\n"
        assert (await backend.execute("echo x", unknown=1)).output == "x\n"  # as of SandboxBackend
        done = await backend.upload_files([("c", b"\xff"), ("../d", b"")])
        assert [one.success for one in done] == [True, False] and done[0].path == "c"
        done = await backend.download_files(["c", "none"])
        assert done[0].content == b"\xff" and "No such file" in (done[1].error or "")
        assert (await backend.sync_artifacts(tmp_path / "out")).files_synced == 1
        (tmp_path / "in").mkdir()
        (tmp_path / "in/new").write_text("n")
        assert (await backend.seed_workspace(tmp_path / "in")).files_seeded == 1
        await backend.remove_file("new")
        with pytest.raises(FileNotFoundError):
            await backend.read_file("new")
        await backend.close()
    run(main())


def test_missing_backend_says_what_to_install() -> None:
    with pytest.raises(TypeError, match="install that package"):
        Sandbox("x", None, 60)


def test_manager_keeps_sessions(root: Path, tmp_path: Path) -> None:
    async def main() -> None:
        manager = SandboxManager(ttl_seconds=1000)
        made: list[Any] = []

        async def factory() -> Memory:
            made.append(Memory())
            return made[-1]

        session, again = await asyncio.gather(
            *(manager.get_or_create("shared", factory) for _ in range(2)))
        assert len(made) == 1 and session.backend is again.backend is made[0]
        assert not session.prepared and session.owner_id is None
        manager.mark_prepared("shared", WorkspaceSeedResult(1, 2, ["x"], []))
        found = manager.get_session("shared")
        assert found and found.prepared and found.seed_result == WorkspaceSeedResult(1, 2, ["x"])
        assert found.last_used_at >= found.created_at > 0
        assert manager.get_session("none") is None
        with pytest.raises(SandboxStartError):
            await Sandbox("shared", Memory(), 60).start()
        backend = LocalSandboxBackend(root)
        claimed = await manager.claim_session("claimed", lambda: backend, owner_id="me")
        assert claimed.owner_id == "me" and claimed.backend is backend
        with pytest.raises(SandboxStartError):
            await manager.claim_session("claimed", lambda: backend, owner_id="you")
        assert await manager.cleanup_expired() == []
        await manager.close_session("shared", sync_artifacts=False)
        await manager.close_session("claimed")
        await manager.close_session("claimed")
        assert manager.get_session("shared") is None
        with pytest.raises(SandboxBackendError) as caught:
            await manager.get_or_create("bad", lambda: 1 // 0)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        with pytest.raises(TypeError):
            await manager.get_or_create("bad", lambda: None)
    run(main())


def test_manager_expires_what_is_idle(root: Path) -> None:
    async def main() -> None:
        manager = SandboxManager()
        sandbox = Sandbox("idle", LocalSandboxBackend(root), 0.05, manager=manager)
        await sandbox.start()
        os.mkfifo(root / "go")
        handle = os.open(root / "go", os.O_RDWR)
        running = asyncio.ensure_future(sandbox.execute(": > up; read x < go"))
        await until((root / "up").exists)
        await asyncio.sleep(0.1)
        assert await manager.cleanup_expired() == []  # it is in use
        os.write(handle, b"\n")
        os.close(handle)
        assert (await running).success
        await asyncio.sleep(0.1)
        assert await manager.cleanup_expired() == ["idle"] and not sandbox.is_started
        for wrong in (0, -1):
            with pytest.raises(ValueError):
                SandboxManager(ttl_seconds=wrong)
        assert SandboxManager(ttl_seconds=None).ttl_seconds is None
    run(main())


def test_manager_finds_the_workspace_of_an_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Agent:
        agent_id = "default"

    class Sessions:
        session_id = "session-1"

    manager, agent = SandboxManager(), Agent()
    assert manager.resolve_workspace_id(agent) == "default"
    assert "all agents without an id" in caplog.text
    agent.session_manager = Sessions()  # type: ignore[attr-defined]
    assert manager.resolve_session_id(agent) == "session-1"
    agent._sandbox_workspace_id = "own"  # type: ignore[attr-defined]
    assert manager.resolve_workspace_id(agent) == "own"
    with pytest.raises(ValueError):
        manager.resolve_workspace_id(object())


def test_manager_makes_factories(root: Path) -> None:
    backend = LocalSandboxBackend(root)
    manager = SandboxManager()
    assert manager.backend_factory_for_session(backend, "a")() is backend
    template = AgentCoreSandboxTemplate(region="us-west-2")
    first = manager.backend_factory_for_session(template, "a")()
    assert first is not manager.backend_factory_for_session(template, "b")()
    with pytest.raises(TypeError):
        manager.backend_factory_for_session(None, "a")


@pytest.mark.parametrize("how", ["stop", "block", "manager"])
def test_a_sandbox_that_ends_ends_the_commands_of_coroutines_and_no_other_work(how: str) -> None:
    class Slow(Memory):
        """Its commands never end, and its files take their time."""
        going = 0

        async def execute(self, command: str, timeout: Any = None, cwd: Any = None,
                          **_kwargs: Any) -> ExecuteResult:
            self.going += 1
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)  # it may clear away
                self.going -= 1
            return ExecuteResult("", 0)

        async def write_file(self, path: str,  # type: ignore[override]
                             content: Any) -> None:
            self.going += 1
            await asyncio.sleep(0.3)
            self.going -= 1
            self.files[path] = content

    async def main() -> None:
        backend, manager = Slow(), SandboxManager()
        sandbox = Sandbox("slow", backend, 60, manager=manager)
        for _ in range(2):  # started anew it runs commands again
            await sandbox.start()
            runs = [asyncio.ensure_future(sandbox.execute("x")) for _ in range(3)]
            write = asyncio.ensure_future(sandbox.write_file("a", "whole"))
            await until(lambda: backend.going == 4)
            if how == "stop":
                await asyncio.wait_for(sandbox.stop(), 60)
            elif how == "block":
                async with sandbox:
                    pass
            else:
                await asyncio.wait_for(manager.close_session("slow"), 60)
            assert backend.going == 0 and backend.files.pop("a") == "whole"
            for one in await asyncio.gather(*runs, return_exceptions=True):
                assert isinstance(one, SandboxCancelledError) and "cancelled" in str(one), one
            assert await write is None
    run(main())
