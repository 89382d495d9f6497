# SPDX-License-Identifier: Apache-2.0
"""The adapter for strands-agents; test_integrations.py runs them."""

import asyncio
import json
from typing import Any, AsyncIterator

import pytest
from pinfold import IsolatedSandboxBackend, Sandbox, SandboxPathError
from pinfold.integrations.strands import PinfoldSandbox, sandbox_tools
from strands import Agent
from strands.models import Model
from strands.sandbox.errors import SandboxPathNotFoundError, SandboxTimeoutError
from strands.sandbox.types import ExecutionResult, FileInfo, StreamChunk


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox("ours", IsolatedSandboxBackend(), 3600) as started:
        yield started


async def test_commands_have_their_streams_apart(sandbox: Sandbox) -> None:
    adapter = PinfoldSandbox(sandbox)
    await adapter.write_file("sub/a", b"")
    done = await adapter.execute("echo $WORD; pwd; echo no >&2; exit 3", cwd="sub",
                                 env={"WORD": "there"})
    assert done == ExecutionResult(3, "there\n/workspace/sub\n", "no\n")
    with pytest.raises(ValueError):
        await adapter.execute("true", env={"A=B": ""})


async def test_chunks_come_while_the_command_runs(sandbox: Sandbox) -> None:
    # The letter comes in two halves, and the second waits until the first has been seen.
    command = "printf 'a\\303'; until [ -e go ]; do sleep 0.05; done; printf '\\244'; echo e >&2"
    seen: list[Any] = []
    async for chunk in PinfoldSandbox(sandbox).execute_streaming(command):
        seen.append(chunk)
        if chunk == StreamChunk("a"):
            await sandbox.add_files({"go": ""})
    assert seen[0] == StreamChunk("a") and seen[-1] == ExecutionResult(0, "aä", "e\n")
    assert sorted((one.stream_type, one.data) for one in seen[1:-1]) == [
        ("stderr", "e\n"), ("stdout", "ä")]


async def test_output_that_is_cut_says_so(sandbox: Sandbox) -> None:
    adapter = PinfoldSandbox(sandbox, max_output_bytes=1000)
    seen = [one async for one in adapter.execute_streaming("head -c 50000 /dev/zero | tr '\\0' x")]
    assert sum(len(one.data) for one in seen[:-1]) == 1000
    assert len(seen[-1].stdout) <= 1000 and "50000 bytes in all" in seen[-1].stderr


async def test_timeouts_are_errors_with_what_came(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxTimeoutError) as caught:
        await PinfoldSandbox(sandbox).execute("echo begun; echo e >&2; sleep 1000", timeout=5)
    assert (caught.value.stdout, caught.value.stderr) == ("begun\n", "e\n")


@pytest.mark.parametrize("how", ["cancelled", "closed"])
async def test_who_stops_listening_kills_the_command(sandbox: Sandbox, how: str) -> None:
    stream = PinfoldSandbox(sandbox).execute_streaming("echo $$; sleep 1000")

    async def listen() -> None:
        async for _ in stream:
            if how == "closed":
                break
            await sandbox.add_files({"heard": ""})

    task = asyncio.ensure_future(listen())
    if how == "closed":
        await task
        await stream.aclose()
    else:
        while "heard" not in [one.path for one in await sandbox.list_dir()]:
            assert not task.done(), task.exception()
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    assert (await sandbox.execute("ps ax -o args | grep -c '[s]leep 1000'")).stdout == "0\n"


async def test_code_is_read_by_its_interpreter(sandbox: Sandbox) -> None:
    adapter = PinfoldSandbox(sandbox)
    done = await adapter.execute_code("import os\nprint('\"$HOME\"', os.environ['A'])\nexit(4)",
                                      "python3", env={"A": "b"})
    assert (done.exit_code, done.stdout) == (4, "\"$HOME\" b\n")
    assert (await adapter.execute_code("echo x", "nothing")).exit_code == 127
    with pytest.raises(ValueError, match="no name of an interpreter"):
        await adapter.execute_code("x", "sh; true")


@pytest.mark.parametrize("place", ["", "/workspace/", "/tmp/"])
async def test_files_of_any_kind(sandbox: Sandbox, place: str) -> None:
    adapter = PinfoldSandbox(sandbox)
    data = bytes(range(256)) * 1000
    await adapter.write_file(f"{place}d/a b.bin", data)
    await adapter.write_text(f"{place}d/.hidden", "ä")
    await adapter.execute(f"mkdir '{place}d/sub'")
    assert await adapter.read_file(f"{place}d/a b.bin") == data
    assert await adapter.read_text(f"{place}d/.hidden") == "ä"
    known = place != "/tmp/"
    assert sorted(await adapter.list_files(f"{place}d"), key=lambda one: one.name) == [
        FileInfo(".hidden", False, 2 if known else None),
        FileInfo("a b.bin", False, len(data) if known else None), FileInfo("sub", True)]
    await adapter.remove_file(f"{place}d/a b.bin")
    with pytest.raises(FileNotFoundError):
        await adapter.read_file(f"{place}d/a b.bin")
    with pytest.raises(FileNotFoundError):
        await adapter.remove_file(f"{place}d/a b.bin")
    with pytest.raises(IsADirectoryError):
        await adapter.read_file(f"{place}d")
    for missing in "none", "d/.hidden":
        with pytest.raises(SandboxPathNotFoundError):
            await adapter.list_files(place + missing)
    assert [one.path for one in await sandbox.list_dir()] == ([] if place == "/tmp/" else ["d"])


async def test_cancelled_writes_leave_nothing(sandbox: Sandbox) -> None:
    await sandbox.execute("mkfifo /tmp/fifo")
    write = asyncio.ensure_future(PinfoldSandbox(sandbox).write_file("/tmp/fifo", b"data"))
    while not await sandbox.list_dir():
        assert not write.done(), write.exception()
        await asyncio.sleep(0.05)
    write.cancel()
    await asyncio.wait([write])
    assert write.cancelled() and await sandbox.list_dir() == []


async def test_what_is_refused(sandbox: Sandbox) -> None:
    adapter = PinfoldSandbox(sandbox)
    with pytest.raises(SandboxPathError):
        await adapter.read_file("../x")
    with pytest.raises(PermissionError):
        await adapter.write_file("/usr/bin/x", b"")
    view = PinfoldSandbox(sandbox.view("reviewer"))
    with pytest.raises(PermissionError):
        await view.write_file("x", b"")
    assert (await view.execute("touch x")).exit_code == 1
    assert [one.tool_name for one in sandbox_tools(sandbox.view("reviewer"))] == [
        "execute", "read_file", "list_dir"]


class Scripted(Model):
    """A model that calls the tools that it was told to call, and then says done."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]):
        self.calls = list(calls)

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError
        yield

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        reason = "tool_use" if self.calls else "end_turn"
        yield {"messageStart": {"role": "assistant"}}
        if self.calls:
            name, given = self.calls.pop(0)
            yield {"contentBlockStart": {"start": {"toolUse": {
                "name": name, "toolUseId": str(len(self.calls))}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
        else:
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": reason}}


def results(agent: Agent) -> list[Any]:
    """What the tools answered."""
    return [block["toolResult"] for message in agent.messages for block in message["content"]
            if "toolResult" in block]


async def test_an_agent_works_in_it(sandbox: Sandbox) -> None:
    model = Scripted(
        ("sandbox_file_editor", {"command": "create", "path": "/workspace/a.py",
                                 "file_text": "print(6 * 7)\n"}),
        ("sandbox_shell", {"command": "python3 a.py | tee out; exit 5"}),
        ("sandbox_file_editor", {"command": "view", "path": "/workspace/out"}))
    agent = Agent(model=model, sandbox=PinfoldSandbox(sandbox), callback_handler=None)
    await agent.invoke_async("go")
    made, ran, viewed = results(agent)
    assert [made["status"], ran["status"], viewed["status"]] == ["success"] * 3
    assert '"exit_code": 5' in str(ran) and "42" in str(ran) and "42" in str(viewed)
    assert await sandbox.read_file("out") == "42\n"


async def test_an_agent_has_the_tools(sandbox: Sandbox) -> None:
    model = Scripted(("write_file", {"path": "a", "content": "1\n2\n3\n"}),
                     ("execute", {"command": "wc -l a; exit 2"}),
                     ("read_file", {"path": "a", "offset": 1, "limit": 1}),
                     ("list_dir", {"path": "."}), ("read_file", {"path": "none"}))
    agent = Agent(model=model, tools=sandbox_tools(sandbox), callback_handler=None)
    await agent.invoke_async("go")
    told = [(one["status"], one["content"][0]["text"]) for one in results(agent)]
    assert told[:4] == [("success", "wrote a"), ("success", "exit code 2\n3 a\n"),
                        ("success", "2\n"), ("success", "a")]
    assert told[4][0] == "error" and "none" in told[4][1]
