# SPDX-License-Identifier: Apache-2.0
"""The sandbox client for openai-agents; test_integrations.py runs them."""

import asyncio
import io
import json
import tarfile
from pathlib import Path
from typing import Any, AsyncIterator
from unittest.mock import Mock

import pytest
from agents import RunConfig, Runner, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.entries import File
from agents.sandbox.errors import (ExecTimeoutError, ExecTransportError, InvalidManifestPathError,
                                   WorkspaceArchiveReadError, WorkspaceArchiveWriteError,
                                   WorkspaceReadNotFoundError, WorkspaceWriteTypeError)
from agents.sandbox.manifest import Environment, Manifest
from agents.sandbox.session import SandboxSession
from agents.sandbox.snapshot import LocalSnapshotSpec
from agents.usage import Usage
from openai.types.responses import (ResponseFunctionToolCall, ResponseOutputMessage,
                                    ResponseOutputText)
from pinfold import LocalSandboxBackend, Sandbox
from pinfold.integrations.openai_agents import (PinfoldSandboxClient, PinfoldSandboxClientOptions,
                                                PinfoldSandboxSession)

set_tracing_disabled(True)


@pytest.fixture
async def session() -> AsyncIterator[SandboxSession]:
    client = PinfoldSandboxClient()
    made = await client.create(manifest=Manifest(
        entries={"docs/a.txt": File(content=b"text")},
        environment=Environment(value={"WORD": "there"})))
    async with made:
        yield made
    await client.delete(made)
    assert not await made.running()


async def test_commands_have_their_bytes(session: SandboxSession) -> None:
    done = await session.exec("printf '\\377\\0'; echo $WORD >&2; cat docs/a.txt; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"\xff\0text", b"there\n")
    done = await session.exec("printf", "%s", "a  b", shell=False)
    assert done.ok() and done.stdout == b"a  b"
    done = await session.exec("head -c 3000000 /dev/zero")
    assert len(done.stdout) == 3_000_000


async def test_time_runs_out_and_tasks_are_cancelled(session: SandboxSession) -> None:
    with pytest.raises(ExecTimeoutError):
        await session.exec("sleep 1000", timeout=1)
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(session.exec("sleep 1000"), 1)
    assert (await session.exec("ps ax -o args | grep -c '[s]leep 1000'")).stdout == b"0\n"


async def test_files_of_any_kind(session: SandboxSession) -> None:
    data = bytes(range(256)) * 1000
    await session.write(Path("a/b c.bin"), io.BytesIO(data))
    assert (await session.read(Path("a/b c.bin"))).read() == data
    assert (await session.read(Path("/workspace/a/b c.bin"))).read() == data
    assert await session.read_bounded(Path("a/b c.bin"), max_bytes=10) == data[:10]
    await session.mkdir("a/d", parents=True)
    names = sorted(Path(one.path).name for one in await session.ls("a"))
    assert [name for name in names if name not in (".", "..")] == ["b c.bin", "d"]
    await session.mv("a/b c.bin", "a/e")
    await session.rm("a/d", recursive=True)
    with pytest.raises(WorkspaceReadNotFoundError):
        await session.read(Path("a/b c.bin"))
    with pytest.raises(WorkspaceArchiveReadError):
        await session.read(Path("a"))
    with pytest.raises(WorkspaceArchiveWriteError):
        await session.write(Path("a"), io.BytesIO(b""))
    with pytest.raises(WorkspaceWriteTypeError):
        await session.write(Path("x"), Mock(read=lambda: [1]))


async def test_nothing_leads_out(session: SandboxSession) -> None:
    await session.exec("ln -s /etc/passwd out; ln -s /tmp tmp")
    for path in "../x", "/etc/passwd", "out", "tmp/x":
        with pytest.raises(InvalidManifestPathError):
            await session.read(Path(path))
        with pytest.raises(InvalidManifestPathError):
            await session.write(Path(path), io.BytesIO(b""))


async def test_archives_are_unpacked(session: SandboxSession) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("in/side")
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"data"))
    await session.extract("up.tar", io.BytesIO(made.getvalue()))
    assert (await session.read(Path("in/side"))).read() == b"data"


async def test_workspaces_come_back_from_snapshots(tmp_path: Path) -> None:
    client = PinfoldSandboxClient()
    made = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path),
                               options=PinfoldSandboxClientOptions(workspace_id="kept"))
    async with made:
        await made.write(Path("a/kept"), io.BytesIO(b"\xff"))
        await made.exec("ln -s kept a/link; chmod 750 a/kept")
    kept = json.loads(json.dumps(client.serialize_session_state(made.state)))
    await client.delete(made)
    other = PinfoldSandboxClient()
    again = await other.resume(other.deserialize_session_state(kept))
    async with again:
        assert (await again.read(Path("a/kept"))).read() == b"\xff"
        done = await again.exec("stat -c %a a/kept; readlink a/link; ls -A")
        assert done.stdout == b"750\nkept\na\n"
        inner = again._inner
        assert isinstance(inner, PinfoldSandboxSession)
        assert inner.sandbox.workspace_id == "kept"
    await other.delete(again)


async def test_what_still_runs_is_found_again() -> None:
    client = PinfoldSandboxClient()
    async with await client.create() as made:
        await made.write(Path("new"), io.BytesIO(b""))
        again = await client.resume(made.state)
        await again.start()
        assert (await again.exec("ls -A")).stdout == b"new\n"
    with pytest.raises(TypeError):
        await client.resume(Mock())


async def test_unsafe_archives_are_refused(session: SandboxSession) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../out"))
    with pytest.raises(WorkspaceArchiveWriteError):
        await session.hydrate_workspace(io.BytesIO(made.getvalue()))
    assert (await session.exec("ls -A")).stdout == b"docs\n"


async def test_other_backends_have_their_own_root(tmp_path: Path) -> None:
    client = PinfoldSandboxClient(
        lambda name: Sandbox(name, LocalSandboxBackend(tmp_path / "root"), 60))
    async with await client.create() as made:
        assert made.state.manifest.root == str(tmp_path / "root")
        await made.write(Path("a"), io.BytesIO(b"x"))
        assert (tmp_path / "root/a").read_bytes() == b"x"
    with pytest.raises(ExecTransportError):
        await made.exec("true")


class Scripted(Model):
    """A model that calls the tools that it was told to call, and then says done."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]):
        self.calls, self.seen = list(calls), []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any,
                           **kwargs: Any) -> ModelResponse:
        self.seen = input
        if self.calls:
            name, given = self.calls.pop(0)
            item: Any = ResponseFunctionToolCall(
                call_id=str(len(self.calls)), name=name, arguments=json.dumps(given),
                type="function_call")
        else:
            item = ResponseOutputMessage(
                id="1", role="assistant", status="completed", type="message",
                content=[ResponseOutputText(annotations=[], text="done", type="output_text")])
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def test_an_agent_works_in_it(session: SandboxSession) -> None:
    model = Scripted(("exec_command", {"cmd": "echo $((6 * 7)) | tee out"}),
                     ("exec_command", {"cmd": "cat none"}))
    agent = SandboxAgent(name="a", model=model)
    done = await Runner.run(agent, "go", run_config=RunConfig(
        sandbox=SandboxRunConfig(session=session)))
    assert done.final_output == "done"
    told = [one["output"] for one in model.seen if one.get("type") == "function_call_output"]
    assert len(told) == 2 and "42" in told[0] and "No such file" in told[1], told
    assert (await session.read(Path("out"))).read() == b"42\n"


async def test_a_run_makes_its_own_session() -> None:
    model = Scripted(("exec_command", {"cmd": "pwd; id -un"}))
    done = await Runner.run(SandboxAgent(name="a", model=model), "go", run_config=RunConfig(
        sandbox=SandboxRunConfig(client=PinfoldSandboxClient())))
    assert done.final_output == "done"
    told = [one["output"] for one in model.seen if one.get("type") == "function_call_output"]
    assert "/workspace\nagent\n" in told[0]
