# SPDX-License-Identifier: Apache-2.0
"""What is of a wrong type or size is said so, and objects that live here do not travel."""

import copy
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Callable

import pytest
from owners import BUILD
from pinfold import (Agent, AgentConfig, ConcurrencyException, ExecuteResult, FileTransferResult,
                     IsolatedSandboxBackend, Limits, LocalSandboxBackend, Sandbox,
                     SandboxDecodeError, SandboxManager, format_execute_result)

from support import local, run


class Answers:
    """A backend that returns what it was told to."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        if name in self._answers:
            return lambda *_args, **_options: self._answers[name]
        if name in ("read_file", "write_file", "list_dir", "remove_file"):
            return lambda *_args: ""
        raise AttributeError(name)


WRONG: Any = "text"  # where something else is wanted


@pytest.mark.parametrize("name, use", [
    ("sync_policy", lambda: Sandbox("misused", IsolatedSandboxBackend(), 60, sync_policy=WRONG)),
    ("manager", lambda: Sandbox("misused", IsolatedSandboxBackend(), 60, manager=WRONG)),
    ("limits", lambda: IsolatedSandboxBackend(limits=WRONG)),
    ("env", lambda: IsolatedSandboxBackend(env=WRONG)),
    ("sandbox_output_offload", lambda: AgentConfig(sandbox_output_offload=WRONG)),
    ("workspace_sync_policy", lambda: AgentConfig(workspace_sync_policy=WRONG)),
    ("sandbox_manager", lambda: AgentConfig(sandbox_manager=WRONG)),
    ("register_hooks", lambda: Agent(AgentConfig(hooks=[WRONG]))),
    ("message", lambda: Agent(AgentConfig(messages=[WRONG]))),
    ("result", lambda: format_execute_result(WRONG)),
    ("seed_result", lambda: SandboxManager().mark_prepared("misused", WRONG)),
])
def test_an_argument_of_a_wrong_type_is_named(name: str, use: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=name):
        use()


def test_files_are_a_mapping_and_their_content_is_text_or_bytes(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            for work in sandbox.add_files, sandbox.download_files:
                with pytest.raises(TypeError, match="files"):
                    await work([("a", "b")])  # type: ignore[arg-type]
            for wrong in [1, 2], 3, {4: 5}, None:
                with pytest.raises(TypeError):
                    await sandbox.write_file("a", wrong)  # type: ignore[arg-type]
            assert await sandbox.list_dir() == []
            for content in b"as it is", bytearray(b"as it is"), memoryview(b"as it is"):
                await sandbox.write_file("a", content)  # type: ignore[arg-type]
                assert await sandbox.read_bytes("a") == b"as it is"
    run(main())


def test_a_number_that_has_no_room_is_no_default(root: Path) -> None:
    for wrong in 0, -1, 2**64:
        with pytest.raises(ValueError, match="memory_bytes"):
            IsolatedSandboxBackend(limits=Limits(memory_bytes=wrong))
        with pytest.raises(ValueError, match="max_output_bytes"):
            LocalSandboxBackend(root, max_output_bytes=wrong)
    for fraction in 0.5, float("inf"), float("nan"):
        with pytest.raises(TypeError):
            LocalSandboxBackend(root, max_output_bytes=fraction)  # type: ignore[arg-type]


def test_what_is_wrong_with_an_argument_is_what_is_said(root: Path) -> None:
    class Awaited:
        async def _on_sandbox_attach(self, _sandbox: Sandbox, _mode: Any) -> None: ...

    class Detached:
        async def _on_sandbox_detach(self, _sandbox: Sandbox) -> None: ...

    async def main() -> None:
        async with local(root) as sandbox:
            with pytest.raises(ValueError, match="^timeout is too large$"):
                await sandbox.execute("true", timeout=10**400)
            for wrong in (0, -1, float("nan")):
                with pytest.raises(ValueError, match="^timeout must be more than 0 seconds$"):
                    await sandbox.execute("true", timeout=wrong)
            with pytest.raises(TypeError, match="^paths must be a list of strings, not one string$"):
                await sandbox.delete_files("text")
            with pytest.raises(TypeError, match="^paths must be a list of strings, not int$"):
                await sandbox.delete_files(1)  # type: ignore[arg-type]
            for agent, name in (Awaited(), "_on_sandbox_attach"), (Detached(), "_on_sandbox_detach"):
                with pytest.raises(TypeError, match=f"agent.{name} must be a plain function"):
                    sandbox.attach(agent)
    run(main())


def test_errors_travel_to_other_processes() -> None:
    decode = SandboxDecodeError("read f: not UTF-8 text")
    decode.retryable = True
    for error in decode, ConcurrencyException("busy"):
        for other in pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error):
            assert type(other) is type(error) and str(other) == str(error)
            assert other.retryable == error.retryable


def test_what_lives_here_is_not_copied(root: Path) -> None:
    for thing in local(root), Agent(), SandboxManager(), IsolatedSandboxBackend():
        for work in copy.deepcopy, pickle.dumps:
            with pytest.raises(TypeError, match="cannot pickle"):
                work(thing)


@pytest.mark.parametrize("first", ["import pinfold", ""])
def test_a_subinterpreter_is_refused_and_the_main_one_goes_on(root: Path, first: str) -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    pytest.importorskip(name)
    root.mkdir(exist_ok=True)
    answer = subprocess.run([sys.executable, "-c", first + textwrap.dedent(f"""
        import asyncio, {name} as interpreters
        code = '''if True:
            try:
                import pinfold
            except ImportError as error:
                assert "main interpreter" in str(error), error
            else:
                raise AssertionError("it was let in")
            open({str(root / "told")!r}, "w").close()'''
        other = interpreters.create()
        interpreters.run_string(other, code)
        interpreters.destroy(other)
        import pinfold

        async def main():
            backend = pinfold.LocalSandboxBackend({str(root)!r})
            async with pinfold.Sandbox("main", backend, 60) as sandbox:
                try:
                    await sandbox.read_file("none")
                except FileNotFoundError:
                    print((await sandbox.execute("echo goes on")).output, end="")
        asyncio.run(main())
    """)], env={"PYTHONPATH": str(BUILD / "python")}, capture_output=True, text=True, timeout=300,
        check=False)
    assert (answer.returncode, answer.stdout) == (0, "goes on\n"), answer.stderr
    assert (root / "told").exists()


@pytest.mark.parametrize("name, answer, use", [
    ("read_file", None, lambda sandbox: sandbox.read_file("a")),
    ("read_file", 5, lambda sandbox: sandbox.read_file("a")),
    ("list_dir", None, lambda sandbox: sandbox.list_dir()),
    ("list_dir", "ab", lambda sandbox: sandbox.list_dir()),
    ("list_dir", ["abc"], lambda sandbox: sandbox.list_dir()),  # not a path, a flag and a size
    ("list_dir", [{"path": "a"}], lambda sandbox: sandbox.list_dir()),
    ("list_dir", [(5, False)], lambda sandbox: sandbox.list_dir()),
    ("list_dir", [("a", "no")], lambda sandbox: sandbox.list_dir()),
    ("list_dir", [("a", False, "big")], lambda sandbox: sandbox.list_dir()),
    ("execute", None, lambda sandbox: sandbox.execute("a")),
    ("execute", ExecuteResult(WRONG.encode(), 0), lambda sandbox: sandbox.execute("a")),
    ("execute", ExecuteResult("", WRONG), lambda sandbox: sandbox.execute("a")),
    ("sync_artifacts", 5, lambda sandbox: sandbox.flush("somewhere")),
    ("upload_files", 5, lambda sandbox: sandbox.add_files({"a": "b"})),
    ("upload_files", [5], lambda sandbox: sandbox.add_files({"a": "b"})),
    ("download_files", [FileTransferResult("a", WRONG)], lambda sandbox: sandbox.read_bytes("a")),
])
def test_an_answer_of_a_wrong_type_is_told_with_who_gave_it(name: str, answer: Any,
                                                            use: Any) -> None:
    async def main() -> None:
        async with Sandbox("misused", Answers(**{name: answer}), 60) as sandbox:
            with pytest.raises(TypeError, match=f"{name} of Answers returned "):
                await use(sandbox)
    run(main())


@pytest.mark.parametrize("limit, use, said", [
    ("AS", "sandbox.start()", "start a thread for a call"),
    ("AS", "agent.invoke_async('go')", "start a thread for a call"),
    ("NOFILE", "sandbox.start()", "make the mailbox of an event loop")])
def test_what_the_system_refuses_is_said_with_what_to_do(root: Path, limit: str, use: str,
                                                         said: str) -> None:
    """And nothing is under way; once there is room again it works."""
    text = f"""if True:
        import asyncio, resource, sys
        from pinfold import *
        from pinfold import _pinfold
        kind = getattr(resource, "RLIMIT_" + sys.argv[2])
        async def main():
            sandbox = Sandbox("refused", LocalSandboxBackend(sys.argv[1]), 60)
            agent = Agent(AgentConfig(model=ScriptedModel(dict(turns=[dict(reply="works")]))))
            before = resource.getrlimit(kind)
            resource.setrlimit(kind, (0, before[1]))
            try:
                await {use}
            except OSError as error:
                print(error)
            print(_pinfold.wait_idle(60))
            resource.setrlimit(kind, before)
            async with sandbox:
                print((await sandbox.execute("echo works")).output, end="")
            print(str(await agent.invoke_async("go")).strip())
        asyncio.run(main())"""
    done = subprocess.run([sys.executable, "-c", text, root, limit], capture_output=True, text=True,
                          env={"PYTHONPATH": str(BUILD / "python")}, check=False, timeout=300)
    refusal, *after = done.stdout.splitlines()
    assert said in refusal and "; allow more " in refusal, done.stderr
    assert after == ["True", "works", "works"] and done.returncode == 0, done.stderr
