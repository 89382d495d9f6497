# SPDX-License-Identifier: Apache-2.0
"""A sandbox does what the specification says of it."""

import asyncio
import functools
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from elsai.execution import (LocalSandboxBackend, Sandbox, SandboxAttachError, SandboxAttachMode,
                             SandboxStartError, WorkspacePrepareError, WorkspaceSyncPolicy,
                             sync_workspace_for_sandbox)
from pinfold import IsolatedSandboxBackend, Limits, SandboxMutationDeniedError, SandboxPathError

from support import local, run


def test_lives_from_start_to_stop(root: Path) -> None:
    async def main() -> None:
        sandbox = local(root)
        assert not sandbox.is_started and sandbox.owner_id is None
        assert sandbox.ref().backend_type == "LocalSandboxBackend"
        assert await sandbox.start() is None
        owner = sandbox.owner_id
        assert sandbox.is_started and owner
        assert await sandbox.start() is None and sandbox.owner_id == owner
        await sandbox.stop()
        await sandbox.stop()
        assert not sandbox.is_started and sandbox.owner_id is None
        await sandbox.start()
        assert sandbox.owner_id not in (None, owner)
        await sandbox.stop()
    run(main())


def test_seeds_and_brings_home(root: Path, tmp_path: Path) -> None:
    project, results = tmp_path / "project", tmp_path / "results"
    (project / "src").mkdir(parents=True)
    (project / "src/a.py").write_text("a")
    (project / "secrets").mkdir()
    (project / "secrets/key").write_text("k")

    async def main() -> None:
        sandbox = local(root, seed_from=project, sync_dest=results, seed_exclude=["*.log"])
        plan = await sandbox.plan_seed()
        assert [(entry.path, entry.action) for entry in plan or []
                if not entry.path.endswith("/")] == [("src/a.py", "copy")]
        seeded = await sandbox.start()
        assert seeded and seeded.success and seeded.files_seeded == 1
        assert seeded.skipped_paths == ["secrets/"]
        assert await sandbox.start() == seeded
        await sandbox.execute("echo b > src/b.py")
        done = await sync_workspace_for_sandbox(sandbox)
        assert done and done.success and done.files_synced == 2
        await sandbox.execute("echo c > src/c.py")
        await sandbox.stop()
    run(main())
    assert sorted(os.listdir(results / "src")) == ["a.py", "b.py", "c.py"]


def test_flushes_nowhere_without_a_destination(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            assert await sandbox.flush() is None
            assert await sandbox.plan_flush() is None
    run(main())


def test_says_which_seed_is_missing(root: Path, tmp_path: Path) -> None:
    async def main() -> None:
        sandbox = local(root, seed_from=tmp_path / "nowhere")
        with pytest.raises(WorkspacePrepareError, match="nowhere") as caught:
            await sandbox.start()
        assert caught.value.result is not None and not sandbox.is_started
    run(main())


def test_moves_files_in_and_out(root: Path, tmp_path: Path) -> None:
    (tmp_path / "host.bin").write_bytes(b"\0\xff")

    async def main() -> None:
        async with local(root) as sandbox:
            written = await sandbox.add_files(
                {"a.txt": "ä\r\n", "b": b"\xff\0", "c/d": tmp_path / "host.bin"})
            assert written == ["a.txt", "b", "c/d"]
            assert await sandbox.add_files({"a.txt": "new", "e": ""}, overwrite=False) == ["e"]
            assert await sandbox.read_file("a.txt") == "ä\r\n"
            assert await sandbox.read_bytes("b") == b"\xff\0"
            assert await sandbox.read_lines("a.txt", 0, 1) == ("ä\r\n", 1)
            await sandbox.move_file("b", "f/g")
            assert [(entry.path, entry.is_dir, entry.size) for entry in await sandbox.list_dir()] \
                == [("a.txt", False, 4), ("c", True, None), ("e", False, 0), ("f", True, None)]
            got = await sandbox.download_files({"c/d": tmp_path / "x/out", "a.txt": tmp_path / "y"})
            assert got == ["c/d", "a.txt"] and (tmp_path / "x/out").read_bytes() == b"\0\xff"
            assert await sandbox.download_files({"e": tmp_path / "y"}, overwrite=False) == []
            await sandbox.delete_files(["a.txt", "e"])
            assert [entry.path for entry in await sandbox.list_dir(".")] == ["c", "f"]
    run(main())


def test_reads_that_wait_for_nobody_let_others_have_their_turn(root: Path) -> None:
    async def main() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with local(root) as sandbox:
            await sandbox.add_files({"a": "text", "large": "x" * (1 << 17), "empty": ""})
            other = asyncio.ensure_future(count())
            for _ in range(320):
                assert await sandbox.read_file("a") == "text"
            assert turns >= 9, "one task had the loop for itself"
            other.cancel()
            assert len(await sandbox.read_file("large")) == 1 << 17
            assert await sandbox.read_file("empty") == ""
            assert await sandbox.read_file(Path("a")) == "text"
            for wrong in "a\0b", "../a":
                with pytest.raises(SandboxPathError):
                    await sandbox.read_file(wrong)
    run(main())


def test_keeps_names_that_are_not_utf8(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.execute("printf x > \"$(printf 'a\\377')\"")
            name, = [entry.path for entry in await sandbox.list_dir()]
            assert os.fsencode(name) == b"a\xff" and await sandbox.read_file(name) == "x"
    run(main())


def test_runs_commands(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            result = await sandbox.execute("echo out; echo err >&2; exit 3")
            assert (result.exit_code, result.success, result.truncated) == (3, False, False)
            assert result.output == "out\n[stderr] err\n"
            assert (result.stdout, result.stderr) == ("out\n", "err\n")
            result = await sandbox.execute(["printf", "%s", "a b"], env={"X": "1"})
            assert result.output == "a b" and result.success
            result = await sandbox.execute("echo $X; pwd", cwd=".", env={"X": "y"})
            assert result.output == f"y\n{root}\n"
            result = await sandbox.execute("yes | head -c 5000", max_output_bytes=100)
            assert result.truncated and result.stdout_bytes == 5000
            for timeout in 0.5, 5, 50:  # a busy machine may not get as far as the echo
                result = await sandbox.execute("echo early; sleep 1000", timeout=timeout)
                assert result.exit_code == 124 and result.timed_out
                if "early" in result.output:
                    break
            assert "early" in result.output and "timed out" in result.output
            assert (await sandbox.execute("kill -9 $$")).exit_code == 137
            assert (await sandbox.execute("cat")).output == ""
    run(main())


def test_pages_through_the_whole_output(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            result = await sandbox.execute("seq 100000", max_output_bytes=1000,
                                           spool_bytes=1 << 20)
            assert result.truncated and result.spool is not None
            assert result.spool.size() == result.stdout_bytes
            assert result.spool.read(offset=result.stdout_bytes - 7) == b"100000\n"
            assert result.spool.read(offset=result.stdout_bytes) == b""
            with pytest.raises(ValueError, match="stdin"):
                result.spool.read("stdin")
    run(main())


def test_streams_output_as_it_comes(root: Path) -> None:
    """The command goes on only when its first line has been seen."""
    seen: list[tuple[str, bytes]] = []

    async def main() -> None:
        async with local(root) as sandbox:
            os.mkfifo(root / "go")
            handle = os.open(root / "go", os.O_RDWR)

            def consume(stream: str, data: bytes) -> None:
                seen.append((stream, data))
                if data == b"first\n":
                    os.write(handle, b"\n")

            result = await sandbox.execute("echo first; read x < go; echo second >&2",
                                           on_output=consume)
            os.close(handle)
            assert result.success
    run(main())
    assert seen == [("stdout", b"first\n"), ("stderr", b"second\n")]


def test_stops_a_command_whose_consumer_raises(root: Path) -> None:
    def consume(_stream: str, _data: bytes) -> None:
        raise KeyError("enough")

    async def main() -> None:
        async with local(root) as sandbox:
            with pytest.raises(KeyError, match="enough"):
                await sandbox.execute("echo x; sleep 1000", on_output=consume)
    run(main())


def test_a_consumer_that_nobody_would_await_is_refused(root: Path) -> None:
    """Its output would be lost, and the command none the worse."""
    heard: list[bytes] = []

    async def consume(_stream: str, data: bytes) -> None:
        heard.append(data)

    class Consumer:
        async def __call__(self, _stream: str, data: bytes) -> None:
            heard.append(data)

    async def main() -> None:
        async with local(root) as sandbox:
            assert isinstance(sandbox.backend, LocalSandboxBackend)
            for execute in sandbox.execute, sandbox.backend.execute:
                for consumer in consume, Consumer(), functools.partial(consume):
                    with pytest.raises(TypeError, match="on_output"):
                        await execute("echo x >ran", on_output=consumer)
                assert not (root / "ran").exists()
                with pytest.raises(TypeError, match="on_output"):  # it does not look like one
                    await execute("echo x; sleep 1000", on_output=lambda *said: consume(*said))
                tasks: list[Any] = []
                await execute("echo x", on_output=lambda *said: tasks.append(
                    asyncio.ensure_future(consume(*said))))
                await asyncio.gather(*tasks)
                assert heard == [b"x\n"]
                heard.clear()
    run(main())


class Odd(BaseException):
    """What "except Exception" does not catch."""


def test_a_consumer_that_raises_anything_stops_its_command_and_no_other(root: Path) -> None:
    def consume(_stream: str, _data: bytes) -> None:
        raise Odd("enough")

    async def main() -> None:
        async with local(root) as sandbox:
            works = [sandbox.execute("echo x; sleep 1000", on_output=consume) for _ in range(4)]
            works += [sandbox.execute("echo y", on_output=lambda *_: None) for _ in range(4)]
            found = await asyncio.gather(*works, return_exceptions=True)
            assert all(isinstance(one, Odd) for one in found[:4]), found
            assert all(one.output == "y\n" for one in found[4:]), found
    run(main())


def test_streams_more_than_fits_into_memory_at_once(root: Path) -> None:
    count = 0

    def consume(_stream: str, data: bytes) -> None:
        nonlocal count
        count += len(data)

    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.execute("head -c 20000000 /dev/zero", on_output=consume)
    run(main())
    assert count == 20_000_000


def test_owns_a_workspace_alone(root: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with local(root):
            with pytest.raises(SandboxStartError, match="job"):
                await local(tmp_path / "other").start()
            with pytest.raises(SandboxStartError, match="storage"):
                await local(root, "another").start()
    run(main())


def test_is_refused_before_start(root: Path) -> None:
    async def main() -> None:
        sandbox = local(root)
        for work in (sandbox.execute("true"), sandbox.read_file("x"), sandbox.flush(root),
                     sandbox.add_files({"a": "b"})):
            with pytest.raises(SandboxStartError, match="not started"):
                await work
        with pytest.raises(SandboxAttachError, match="not started"):
            sandbox.attach(object())
    run(main())


def test_attaches_agents(root: Path, tmp_path: Path) -> None:
    class Agent:
        agent_id = "coder"

        def __init__(self) -> None:
            self.heard: list[object] = []

        def _on_sandbox_attach(self, sandbox: Sandbox, mode: SandboxAttachMode) -> None:
            self.heard.append(mode)

        def _on_sandbox_detach(self, sandbox: Sandbox) -> None:
            self.heard.append("detached")

    class Refuses:
        def _on_sandbox_attach(self, *_: object) -> None:
            raise ValueError("a tool of this name is there")

    async def main() -> None:
        agent = Agent()
        async with local(root) as sandbox, local(tmp_path / "b", "other") as other:
            sandbox.attach(agent)
            sandbox.attach(agent)
            with pytest.raises(SandboxAttachError, match="read_write"):
                sandbox.attach(agent, mode=SandboxAttachMode.READ_ONLY)
            with pytest.raises(SandboxAttachError, match="attached to sandbox"):
                other.attach(agent)
            sandbox.detach(agent)
            sandbox.detach(agent)
            other.attach(agent, SandboxAttachMode.READ_ONLY)
            with pytest.raises(SandboxAttachError, match="a tool of this name"):
                sandbox.attach(Refuses())
        assert agent.heard == [SandboxAttachMode.READ_WRITE, "detached",
                               SandboxAttachMode.READ_ONLY, "detached"]
    run(main())


def test_does_not_hide_what_the_block_raised(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with local(root, sync_dest=tmp_path / "file"):
                raise KeyError("mine")
        with pytest.raises(WorkspacePrepareError):
            async with local(root, sync_dest=tmp_path / "file"):
                pass
    run(main())


def test_audits_what_happens(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "elsai.sandbox.audit")

    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.add_files({"a": "secret words"})
            await sandbox.execute("rm a # secret words")
            sandbox.attach(run)
    run(main())
    records = [record for record in caplog.records if record.name == "elsai.sandbox.audit"]
    assert [record.event for record in records] == [  # type: ignore[attr-defined]
        "sandbox.start", "sandbox.add_files", "sandbox.execute", "attach", "detach",
        "sandbox.stop"]
    execute = records[2].audit  # type: ignore[attr-defined]
    assert execute["inferred_op"] == "shell_delete" and execute["exit_code"] == 0
    assert execute["command_length"] == 19 and len(execute["command_sha256"]) == 16
    assert {record.levelno for record in records} == {logging.INFO}
    name, text = records[2].getMessage().split(" ", 1)
    assert name == "sandbox.execute" and json.loads(text) == execute
    assert "secret words" not in caplog.text


def test_warns_that_the_local_backend_does_not_isolate(
        root: Path, caplog: pytest.LogCaptureFixture) -> None:
    LocalSandboxBackend(root)
    assert "does not isolate" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING


def test_checks_arguments(root: Path) -> None:
    backend = LocalSandboxBackend(root)
    for wrong in ({"workspace_id": ""}, {"workspace_id": "a/b"}, {"ttl_seconds": 0},
                  {"ttl_seconds": -1}, {"ttl_seconds": float("nan")}, {"seed_exclude": ["!a"]}):
        with pytest.raises(ValueError):
            Sandbox(**{"workspace_id": "x", "backend": backend, "ttl_seconds": 1.0, **wrong})
    for wrong in ({"backend": None}, {"backend": object()}, {"workspace_id": 7},
                  {"ttl_seconds": None}, {"manager": object()}, {"seed_exclude": "*.py"}):
        with pytest.raises(TypeError):
            Sandbox(**{"workspace_id": "x", "backend": backend, "ttl_seconds": 1.0, **wrong})
    for wrong in ({"timeout": 0}, {"timeout": -1}, {"max_output_bytes": 0}, {"env": {"": "x"}}):
        with pytest.raises(ValueError):
            LocalSandboxBackend(root, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        WorkspaceSyncPolicy(["../x"])

    async def main() -> None:
        async with local(root) as sandbox:
            for timeout in (0, -1, float("nan")):
                with pytest.raises(ValueError):
                    await sandbox.execute("true", timeout=timeout)
            with pytest.raises(ValueError):
                await sandbox.execute("true", env={"A=B": "c"})
            with pytest.raises(TypeError):
                await sandbox.execute(7)  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                await sandbox.add_files({"a": 7})  # type: ignore[dict-item]
    run(main())


def test_isolates(tmp_path: Path) -> None:
    async def main() -> None:
        backend = IsolatedSandboxBackend(limits=Limits(processes=100, memory_bytes=1 << 30),
                                         env={"A": "b"})
        async with Sandbox("walls", backend, 60) as sandbox:
            result = await sandbox.execute("id -un; pwd; echo $A; ls /root /home/agent 2>&1")
            assert result.output.startswith("agent\n/workspace\nb\n")
            await sandbox.add_files({"/workspace/a": "b"})
            view = sandbox.view("reviewer")
            assert await view.read_file("a") == "b"
            assert (await view.execute("cat a; touch c")).exit_code == 1
            with pytest.raises(SandboxMutationDeniedError):
                from pinfold._loop import run as call  # its Python object has no such method
                await call(view._core.write_file("a", "c"))
            await sandbox.stop()
            with pytest.raises(SandboxStartError):
                await view.read_file("a")
    run(main())


def test_works_on_a_terminal(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            async with await sandbox.open_terminal("stty size; read x; echo got $x; exit 4",
                                                   rows=30, cols=90) as terminal:
                seen = b""
                while b"30 90" not in seen:
                    seen += await terminal.read()
                assert await terminal.write("word\r") == 5
                while b"got word" not in seen:
                    seen += await terminal.read()
                end = await terminal.wait()
                assert (end.exit_code, end.timed_out, end.killed, end.limit) == (4, False, False,
                                                                                None)
            async with await sandbox.open_terminal("sleep 1000", timeout=0.2) as terminal:
                end = await terminal.wait()
                assert (end.exit_code, end.timed_out, end.limit) == (124, True, "time")
            with pytest.raises(ValueError, match="closed"):
                await terminal.read()
            terminal = await sandbox.open_terminal("sleep 1000")
            with pytest.raises(TimeoutError):
                await terminal.read(timeout=0)
            reading = asyncio.ensure_future(terminal.read())
            await asyncio.sleep(0)
            await terminal.close()
            with pytest.raises((asyncio.CancelledError, Exception)):
                await reading
    run(main())


def test_says_that_a_command_killed_what_watches_it(tmp_path: Path) -> None:
    """An end like any other, which the exit status alone does not tell from a signal's."""
    async def main() -> None:
        async with Sandbox("unwatched", IsolatedSandboxBackend(tmp_path / "w"), 60) as sandbox:
            killed = await sandbox.execute("kill -9 $$")
            assert (killed.exit_code, killed.supervisor_lost) == (137, False)
            lost = await sandbox.execute("echo made; kill -9 $PPID; sleep 1000")
            assert (lost.exit_code, lost.stdout, lost.supervisor_lost) == (137, "made\n", True)
            assert "supervisor_lost" in repr(lost)
            for victim, expected in ("$$", False), ("$PPID", True):
                async with await sandbox.open_terminal(f"kill -9 {victim}; sleep 1000") as terminal:
                    end = await terminal.wait()
                    assert (end.exit_code, end.supervisor_lost) == (137, expected)
    run(main())
