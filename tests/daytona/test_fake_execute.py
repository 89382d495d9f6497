# SPDX-License-Identifier: Apache-2.0
"""process/execute: a fresh shell for each command, which it reads from its standard input."""

import time
from pathlib import Path

import pytest

from daytona_client import Fake, is_alive, wait_until


@pytest.mark.parametrize("command, code, result", [
    ("exit 3", 3, ""), ("kill -9 $$", -1, ""), ("cat\necho hi", 0, "echo hi"),
    ("cat </dev/null\necho hi", 0, "hi\n"), ('printf "a\\377b\\000c"', 0, "a\ufffdb\0c"),
    ("cd /tmp", 0, ""), ("echo a; echo b >&2; echo c", 0, "a\nb\nc\n"),
    ("echo $-", 0, "hBs\n"), ("(exit 5)", 5, "")])
def test_a_command_gives_a_code_and_one_text(sandbox: Fake, command: str, code: int,
                                             result: str) -> None:
    assert sandbox.execute(command) == {"exitCode": code, "result": result}


def test_nothing_persists_but_files(sandbox: Fake) -> None:
    sandbox.execute("echo 1 > file; cd /; export Q=1")
    assert sandbox.execute("pwd; echo :$Q; cat file")["result"] == f"{sandbox.home}\n:\n1\n"


def test_directory_environment_and_nulls(sandbox: Fake) -> None:
    told = sandbox.execute('echo "$X"; pwd', cwd="/tmp", envs={"X": "y z"}, timeout=60)
    assert told["result"] == "y z\n/tmp\n"
    assert sandbox.execute("echo hi", timeout=None, cwd=None, envs=None)["result"] == "hi\n"
    sandbox.execute("mkdir d")
    assert sandbox.execute("pwd", cwd="d")["result"] == f"{sandbox.home}/d\n"
    for nowhere in ("/does/not/exist", "relative"):
        told = sandbox.execute("pwd", cwd=nowhere)
        assert told["exitCode"] == -1
        assert told["result"].startswith("fork/exec /") \
            and told["result"].endswith("sh: no such file or directory")


def test_a_timeout_kills_the_group_and_loses_the_output(sandbox: Fake) -> None:
    answer = sandbox.tool("POST", "process/execute", {
        "command": "echo $$ > pid; echo part; sleep 1000", "timeout": 1})
    assert answer.status == 408 and b"part" not in answer.body
    told = answer.json
    assert set(told) == {"statusCode", "message", "code", "timestamp", "path", "method"}
    assert (told["code"], told["message"], told["path"]) == (
        "REQUEST_TIMEOUT", "request timeout: command execution timeout", "/process/execute")
    pid = (sandbox.home / "pid").read_text()
    wait_until(lambda: not is_alive(pid))
    sandbox.control("config", {"daemon_version": "0.204.0"})
    again = sandbox.tool("POST", "process/execute", {"command": "sleep 1000", "timeout": 1})
    assert again.json["code"] == "PROCESS_EXECUTION_TIMEOUT"


def test_a_child_that_holds_the_output_holds_the_reply(sandbox: Fake) -> None:
    began = time.monotonic()
    assert sandbox.execute("sleep 1 & echo started")["result"] == "started\n"
    assert time.monotonic() - began >= 1
    held = sandbox.tool("POST", "process/execute",
                        {"command": "sleep 1000 & echo $!", "timeout": 1})
    assert held.status == 408
    free = sandbox.execute("sleep 1000 >/dev/null 2>&1 & echo $!")
    assert is_alive(free["result"])


@pytest.mark.parametrize("body, message", [
    ({"command": "echo hi", "timeout": -1},
     "invalid request body: json: cannot unmarshal number -1 into Go struct field "
     "ExecuteRequest.timeout of type uint32"),
    ({"command": "echo hi", "timeout": 1.5},
     "invalid request body: json: cannot unmarshal number 1.5 into Go struct field "
     "ExecuteRequest.timeout of type uint32"),
    ({"command": "echo hi", "envs": {"A-B": "x"}}, "invalid environment variable name: 'A-B'"),
    ({"cmd": "x"}, "invalid request body: Key: 'ExecuteRequest.Command' Error:Field validation "
                   "for 'Command' failed on the 'required' tag"),
    ({"command": "   "}, "command cannot be empty or whitespace-only")])
def test_what_it_refuses(sandbox: Fake, body: dict, message: str) -> None:
    answer = sandbox.tool("POST", "process/execute", body)
    assert (answer.status, answer.json["code"]) == (400, "BAD_REQUEST")
    assert answer.message == "bad request: " + message
    sandbox.control("config", {"daemon_version": "0.176.0"})
    old = sandbox.tool("POST", "process/execute", body)
    assert (old.status, old.body) == (400, b"")
    sandbox.complaints()


def test_what_is_no_json_is_refused(sandbox: Fake) -> None:
    answer = sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/process/execute", b"not json",
                          {**sandbox.headers, "Content-Type": "application/json"})
    assert answer.status == 400 and answer.message == (
        "bad request: invalid request body: invalid character 'o' in literal null (expecting 'u')")
    [complaint] = sandbox.complaints()
    assert complaint.startswith("the body is not JSON")


def test_much_output_comes_in_one_string(sandbox: Fake) -> None:
    told = sandbox.execute("head -c 20000000 /dev/zero | tr '\\0' x")
    assert told == {"exitCode": 0, "result": "x" * 20000000}
    long = "# " + "y" * 3000000 + "\necho end"
    assert sandbox.execute(long)["result"] == "end\n"


def test_old_daemons_ignore_the_environment(sandbox: Fake) -> None:
    sandbox.control("config", {"daemon_version": "0.166.0"})
    assert sandbox.execute("echo :$X", envs={"X": "1"})["result"] == ":\n"


def test_very_old_daemons_say_code_and_time_out_late(sandbox: Fake) -> None:
    sandbox.control("config", {"daemon_version": "0.90.0"})
    assert sandbox.execute("exit 4") == {"code": 4, "result": ""}
    began = time.monotonic()
    late = sandbox.tool("POST", "process/execute", {"command": "sleep 2", "timeout": 1})
    assert late.status == 408 and time.monotonic() - began >= 2


def test_many_commands_leave_no_descriptors_open(sandbox: Fake) -> None:
    opened = Path(f"/proc/{sandbox.process.pid}/fd")
    before = len(list(opened.iterdir()))
    for _ in range(30):
        sandbox.execute("true")
        session = sandbox.session()
        sandbox.wait(session, sandbox.run(session, "true"))
        sandbox.tool("DELETE", f"process/session/{session}")
    wait_until(lambda: len(list(opened.iterdir())) <= before + 2)
