# SPDX-License-Identifier: Apache-2.0
"""Exceptions are what Python programmers catch, and results print well."""

import errno
from pathlib import Path

import pytest
import pinfold
from elsai import execution
from elsai.execution import (ExecuteResult, FileInfo, FileTransferResult, SandboxRef,
                             WorkspaceSeedResult, WorkspaceSyncResult, workspace_id_for_context,
                             workspace_id_for_run)

from support import local, run


@pytest.mark.parametrize("name, base", [
    ("SandboxPathError", ValueError), ("SandboxStartError", RuntimeError),
    ("SandboxAttachError", RuntimeError), ("AgentSandboxDetachedError", RuntimeError),
    ("SandboxMutationDeniedError", PermissionError), ("WorkspacePrepareError", RuntimeError),
])
def test_exceptions_have_the_bases_that_users_catch(name: str, base: type) -> None:
    kind = getattr(execution, name)
    assert issubclass(kind, pinfold.SandboxError) and issubclass(kind, base)
    assert str(kind("what, and why")) == "what, and why"


def test_paths_and_files_fail_as_python_says(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.execute("mkdir d; ln -s / out; echo > f; chmod 700 d")
            for path in ("../x", "/etc/passwd", "", "a\0b"):
                with pytest.raises(execution.SandboxPathError):
                    await sandbox.read_file(path)
            for path, kind in (("none", FileNotFoundError), ("d", IsADirectoryError),
                               ("f/x", NotADirectoryError)):
                with pytest.raises(kind, match=path) as caught:
                    await sandbox.read_file(path)
                assert caught.value.errno in (errno.ENOENT, errno.EISDIR, errno.ENOTDIR)
            with pytest.raises(execution.SandboxPathError, match="leads out"):
                await sandbox.read_file("out/etc/passwd")
            with pytest.raises(NotADirectoryError):
                await sandbox.list_dir("f")
            with pytest.raises(IsADirectoryError):
                await sandbox.delete_files(["d"])
            with pytest.raises(FileNotFoundError, match="2 of the files"):
                await sandbox.delete_files(["n1", "f", "n2"])
            with pytest.raises(FileNotFoundError):
                await sandbox.read_file("f")  # that one was deleted all the same
            with pytest.raises(FileNotFoundError):
                await sandbox.execute("true", cwd="none")
            with pytest.raises(FileNotFoundError):
                await sandbox.move_file("none", "there")
    run(main())


def test_text_that_is_none_says_where(root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.add_files({"b": b"ab\xff"})
            with pytest.raises(UnicodeDecodeError, match="byte 2 of 3.*download_files"):
                await sandbox.read_file("b")
    run(main())


def test_failed_downloads_tell_of_each_file(root: Path, tmp_path: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            await sandbox.add_files({"a": "x"})
            with pytest.raises(OSError) as caught:
                await sandbox.download_files({"a": tmp_path / "a", "b": tmp_path / "b"})
            results = caught.value.results  # type: ignore[attr-defined]
            assert [(one.path, one.success) for one in results] == [("a", True), ("b", False)]
            assert (tmp_path / "a").read_text() == "x"
            with pytest.raises((OSError, ValueError)) as failed:
                await sandbox.add_files({"ok": "x", "../no": "y"})
            assert failed.value.written == ["ok"]  # type: ignore[attr-defined]
    run(main())


def test_results_print_well() -> None:
    assert repr(ExecuteResult("hi\n", 0)) == "ExecuteResult(exit_code=0, output='hi\\n')"
    assert repr(ExecuteResult("x", 1, True, "e", limit="memory")) == \
        "ExecuteResult(exit_code=1, output='x', stderr='e', truncated, limit='memory')"
    long = repr(ExecuteResult("x" * 5000, 0))
    assert len(long) < 300 and "5000 characters" in long
    assert repr(FileInfo("a", False, 3)) == "FileInfo(path='a', is_dir=False, size=3)"
    assert repr(FileTransferResult("a", b"xyz")) == \
        "FileTransferResult(path='a', content=<3 bytes>, error=None)"
    assert "files_seeded=1" in repr(WorkspaceSeedResult(1))
    assert "files_synced=1" in repr(WorkspaceSyncResult(1))
    assert repr(SandboxRef("w", "B")) == \
        "SandboxRef(workspace_id='w', backend_type='B', manager_id=None)"


def test_results_say_whether_they_succeeded() -> None:
    assert ExecuteResult("", 0).success and not ExecuteResult("", 1).success
    assert FileTransferResult("a").success and not FileTransferResult("a", error="e").success
    assert WorkspaceSeedResult().success and not WorkspaceSeedResult(errors=["e"]).success
    assert WorkspaceSyncResult().success and not WorkspaceSyncResult(errors=["e"]).success
    assert ExecuteResult("a", 0) == ExecuteResult("a", 0) != ExecuteResult("b", 0)


def test_workspaces_are_named() -> None:
    assert workspace_id_for_run("r") == "graph-r"
    assert workspace_id_for_context("c") == "c"
    assert workspace_id_for_context("c", shared=True) == "c:shared-ws"
    for wrong in ("", "a/b", "x" * 300):
        with pytest.raises(ValueError):
            workspace_id_for_run(wrong)
