# SPDX-License-Identifier: Apache-2.0
"""Backends of services, against the fakes of them."""

import inspect
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from elsai.execution import SandboxStartError
from elsai_tools.sandbox import AgentCoreSandboxTemplate, DaytonaSandboxTemplate

from owners import BUILD

TESTS = Path(__file__).resolve().parents[1]
AGENTCORE = """if True:
    import asyncio, os
    from elsai.execution import Sandbox
    from elsai_tools.sandbox import AgentCoreSandboxTemplate
    async def main():
        template = AgentCoreSandboxTemplate(
            region="us-west-2", session_timeout_seconds=900, access_key="AKIAFAKEFAKEFAKEFAKE",
            secret_key="fakeSecretKey/Example+0123456789ABCDEFGH",
            endpoint=os.environ["PINFOLD_AGENTCORE_ENDPOINT"])
        async with Sandbox("graph-1", template, ttl_seconds=7200) as sandbox:
            await sandbox.add_files({"a.bin": bytes(range(256))})
            result = await sandbox.execute("wc -c < a.bin; exit 3")
            print(result.exit_code, result.output.split(), sandbox.ref().backend_type)
            assert await sandbox.read_bytes("a.bin") == bytes(range(256))
    asyncio.run(main())"""
DAYTONA = """if True:
    import asyncio, os, pathlib
    import pinfold
    from elsai.execution import Sandbox
    from elsai_tools.sandbox import DaytonaSandboxTemplate
    built = []
    class Template:
        def build_for_session(self, workspace_id):
            built.append(DaytonaSandboxTemplate(
                default_timeout=60, env={"WORD": "there"}, labels={"team": "a"},
                auto_stop_minutes=None, network_allow_list=["10.0.0.0/8"]
            ).build_for_session(workspace_id))
            return built[0]
    async def main():
        pathlib.Path("seed").mkdir()
        pathlib.Path("seed/a.py").write_text("print(1)")
        async with Sandbox("graph-1", Template(), ttl_seconds=7200, seed_from="seed",
                           sync_dest="out") as sandbox:
            (backend,) = built
            assert type(backend) is pinfold.DaytonaSandboxBackend
            assert backend.sandbox_id and backend.sandbox_id == backend.sandbox_id
            await sandbox.add_files({"a.bin": bytes(range(256)), "b.md": "text"})
            result = await sandbox.execute("echo $WORD; echo no >&2; ls; exit 3")
            assert (result.exit_code, result.stderr) == (3, "no\\n"), result
            assert result.stdout.split() == ["there", "a.bin", "a.py", "b.md"], result
            assert await sandbox.read_bytes("a.bin") == bytes(range(256))
            assert [one.path for one in await sandbox.list_dir()] == ["a.bin", "a.py", "b.md"]
            try:
                await sandbox.download_files({"a.bin": "a.bin", "none": "none"})
            except FileNotFoundError as error:
                assert [one.success for one in error.results] == [True, False]
            result = await sandbox.execute("echo begun; sleep 600", timeout=1)
            assert (result.exit_code, result.timed_out) == (124, True), result
            task = asyncio.create_task(sandbox.execute("echo $$ > pid; exec sleep 600"))
            while "pid" not in [one.path for one in await sandbox.list_dir()]:
                await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        try:
            backend.sandbox_id
        except pinfold.SandboxStartError:
            print(sorted(os.listdir("out")))
    asyncio.run(main())"""


def beside(fake: str, text: str, tmp_path: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a program beside a fake service of its own, whose directories have short names: a service
    with very long ones would be refused."""
    with tempfile.TemporaryDirectory(prefix="pf-") as short:
        return subprocess.run(
            [sys.executable, TESTS / fake / "with_fake.py", sys.executable, "-c", text],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "TMPDIR": short, **env},
            text=True, timeout=600, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def test_agentcore_sessions_work_against_the_fake(tmp_path: Path) -> None:
    done = beside("agentcore", AGENTCORE, tmp_path)
    assert done.stdout.startswith("3 ['256']"), done.stderr


def test_daytona_sandboxes_work_against_the_fake(tmp_path: Path) -> None:
    done = beside("daytona", DAYTONA, tmp_path)
    assert (done.returncode, done.stdout) == (0, "['a.py', 'b.md']\n"), done.stderr


def test_daytona_says_that_a_key_is_refused(tmp_path: Path) -> None:
    text = """if True:
        import asyncio, pinfold
        async def main():
            template = pinfold.DaytonaSandboxTemplate(api_key="dtn_other")
            try:
                await pinfold.Sandbox("graph-1", template, 60).start()
            except pinfold.SandboxBackendError as error:
                print(error.http_status, error.retryable)
        asyncio.run(main())"""
    done = beside("daytona", text, tmp_path)
    assert done.stdout == "401 False\n", done.stderr


def test_agentcore_template_checks_its_options() -> None:
    with pytest.raises(ValueError, match="28,?800"):
        AgentCoreSandboxTemplate(region="us-west-2", session_timeout_seconds=28_801)
    AgentCoreSandboxTemplate(region="us-west-2", timeout=5, long_commands=True)
    template = AgentCoreSandboxTemplate(region="us-west-2", session_timeout_seconds=900)
    assert repr(template) == "AgentCoreSandboxTemplate(region='us-west-2')"
    backend = template.build_for_session("w")
    assert type(backend).__name__ == "AgentCoreSandboxBackend"
    with pytest.raises(SandboxStartError):
        backend.session  # pylint: disable=pointless-statement


def test_daytona_template_has_the_documented_parameters() -> None:
    parameters = inspect.signature(DaytonaSandboxTemplate).parameters
    assert [(name, parameters[name].default) for name in list(parameters)[:4]] == [
        ("api_key", None), ("api_url", None), ("target", None), ("default_timeout", 900)]
    template = DaytonaSandboxTemplate(api_key="key", target="eu", default_timeout=0)
    assert repr(template) == "DaytonaSandboxTemplate(target='eu')"
    backend = template.build_for_session("w")
    assert type(backend).__name__ == "DaytonaSandboxBackend"
    with pytest.raises(SandboxStartError):
        backend.sandbox_id  # pylint: disable=pointless-statement


@pytest.mark.parametrize("options, error", [
    ({"default_timeout": -1}, ValueError), ({"default_timeout": math.nan}, ValueError),
    ({"auto_stop_minutes": 0}, ValueError), ({"auto_delete_minutes": -1}, ValueError),
    ({"create_timeout_seconds": 0}, ValueError), ({"max_output_bytes": 0}, ValueError),
    ({"snapshot": "a", "image": "b"}, ValueError), ({"image": "a b"}, ValueError),
    ({"env": {"A=B": "c"}}, ValueError), ({"labels": {"": "c"}}, ValueError),
    ({"network_allow_list": "10.0.0.0/8"}, TypeError), ({"api_key": 1}, TypeError),
    ({"api_key": None, "jwt_token": "a.b.c"}, ValueError),
])
def test_daytona_template_checks_its_options(options: dict[str, Any],
                                             error: type[Exception],
                                             monkeypatch: pytest.MonkeyPatch,
                                             tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("DAYTONA_"):
            monkeypatch.delenv(name)
    with pytest.raises(error):
        DaytonaSandboxTemplate(**{"api_key": "key", **options})
