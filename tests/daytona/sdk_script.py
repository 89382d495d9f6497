# SPDX-License-Identifier: Apache-2.0
"""
What the official SDK makes of the fake: every call that has to do with sandboxes, sessions and
files. It runs in a Python of its own that has the SDK; a failed assertion is its exit status.
"""

import time

from daytona import (CreateSandboxFromImageParams, CreateSandboxFromSnapshotParams, Daytona,
                     DaytonaError, FileDownloadRequest, FileUpload, SessionExecuteRequest)


def until(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def processes(process) -> None:
    done = process.exec("echo hi; echo $X; exit 3", timeout=60)
    assert (done.exit_code, done.result) == (3, "hi\n1\n")
    process.create_session("s")
    done = process.execute_session_command(
        "s", SessionExecuteRequest(command="echo o; echo e >&2; (exit 4)"))
    assert (done.exit_code, done.stdout, done.stderr) == (4, "o\n", "e\n")
    started = process.execute_session_command(
        "s", SessionExecuteRequest(command="echo late", run_async=True))
    assert started.exit_code is None
    until(lambda: process.get_session_command("s", started.cmd_id).exit_code == 0)
    logs = process.get_session_command_logs("s", started.cmd_id)
    assert (logs.stdout, logs.stderr) == ("late\n", "")
    assert len(process.get_session("s").commands) == 2
    assert [one.session_id for one in process.list_sessions()] == ["s"]
    process.delete_session("s")


def files(fs) -> None:
    data = bytes(range(256)) * 4000
    fs.create_folder("d", "755")
    fs.upload_file(data, "d/f")
    fs.upload_files([FileUpload(source=b"1", destination="d/a"),
                     FileUpload(source=b"2", destination="d/new/b")])
    assert fs.download_file("d/f") == data
    good, bad = fs.download_files([FileDownloadRequest(source="d/a"),
                                   FileDownloadRequest(source="d/none")])
    assert good.result == b"1" and bad.error == "file not found: d/none"
    assert [one.name for one in fs.list_files("d")] == ["a", "f", "new"]
    assert fs.get_file_info("d/f").size == len(data)
    fs.move_files("d/a", "d/c")
    fs.set_file_permissions("d/c", mode="600")
    assert fs.get_file_info("d/c").permissions == "0600"
    fs.delete_file("d/c")
    assert fs.search_files("d", "b").files == ["d/new/b"]
    assert [one.file for one in fs.find_files("d", "2")] == ["d/new/b"]
    assert fs.replace_in_files(["d/new/b"], "2", "3")[0].success
    fs.delete_file("d", recursive=True)
    try:
        fs.get_file_info("d")
    except DaytonaError as why:
        assert getattr(why, "status_code", 404) == 404
    else:
        raise AssertionError("it is still there")


def main() -> None:
    daytona = Daytona()
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(
        labels={"a": "b"}, env_vars={"X": "1"}, auto_stop_interval=5))
    assert sandbox.get_work_dir() == sandbox.get_user_home_dir()
    processes(sandbox.process)
    files(sandbox.fs)
    sandbox.set_labels({"q": "z"})
    sandbox.set_autostop_interval(0)
    sandbox.refresh_activity()
    listed = daytona.list()
    assert [one.id for one in getattr(listed, "items", listed)] == [sandbox.id]
    sandbox.stop()
    assert sandbox.state == "stopped"
    try:
        sandbox.process.exec("true")
    except DaytonaError as why:
        assert "Is the Sandbox started?" in str(why)
    else:
        raise AssertionError("it ran in a sandbox that was stopped")
    sandbox.start()
    assert sandbox.process.exec("echo again").result == "again\n"
    daytona.delete(sandbox)
    built = daytona.create(CreateSandboxFromImageParams(image="debian:12", ephemeral=True))
    built.stop()
    try:
        daytona.get(sandbox.id)
    except DaytonaError as why:
        assert "not found" in str(why)
    else:
        raise AssertionError("it is still there")
    print("everything was done")


if __name__ == "__main__":
    main()
