# SPDX-License-Identifier: Apache-2.0
"""The tools of the fake do what those of the service do, and answer in the same shapes."""

import base64
import json
import os
import secrets
import signal
import socket
from pathlib import Path

import pytest

from client import (NEEDS_WIRE, SESSION_HEADER, WIRE, Fake, decode, end_fake, is_alive, start_fake,
                    wait_until)


def test_a_command_runs_on_a_terminal_and_its_streams_are_merged(fake: Fake) -> None:
    session = fake.start()
    command = "test -t 0 && test -t 1 && test -t 2 && echo out && echo err >&2; pwd; echo ~"
    good = fake.invoke(session, "executeCommand", command=command)
    assert good.headers[SESSION_HEADER] == session
    told = good.result["structuredContent"]
    [place] = [one["directory"] for one in fake.control("sessions", method="GET")]
    assert told["stdout"] == f"out\r\nerr\r\n{place}\r\n{place}\r\n"
    assert (told["stderr"], told["exitCode"], good.result["isError"]) == ("", 0, False)
    bad = fake.invoke(session, "executeCommand", command=command + "; exit 7").result
    assert bad["structuredContent"]["stderr"] == told["stdout"]
    assert (bad["structuredContent"]["stdout"], bad["structuredContent"]["exitCode"]) == ("", 7)
    assert bad["isError"] is True


def test_a_command_starts_with_the_signals_of_a_new_program(fake: Fake) -> None:
    session = fake.start()
    # Of itself: a shell blocks signals while it starts a program.
    told = fake.invoke(session, "executeCommand",
                       command="exec grep -E '^Sig(Blk|Ign)' /proc/self/status").result
    _, blocked, _, ignored = told["structuredContent"]["stdout"].split()
    # Numbers 32 and 33 are the C library's own, which no program can change by way of it.
    kept = 3 << 31
    assert (int(blocked, 16) & ~kept, int(ignored, 16) & ~kept) == (0, 0)
    ended = fake.invoke(session, "executeCommand", command="kill -TERM $$").result
    assert ended["structuredContent"]["exitCode"] == 128 + signal.SIGTERM


def test_what_its_starter_ignores_a_command_does_not(tmp_path: Path) -> None:
    # As a shell without job control has it for what it starts in the background.
    numbers = [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP]
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        fake = start_fake(tmp_path)
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
    try:
        told = fake.invoke(fake.start(), "executeCommand",
                           command="exec grep -E '^SigIgn' /proc/self/status").result
        ignored = int(told["structuredContent"]["stdout"].split()[1], 16) & ~(3 << 31)
        assert ignored == 0
    finally:
        assert end_fake(fake) == 0


def test_nothing_of_a_command_outlives_it(fake: Fake) -> None:
    session = fake.start()
    told = fake.invoke(session, "executeCommand", command=(
        "setsid env -i /bin/sh -c 'echo $$ > daemon; exec sleep 1000' & sleep 1000 &"
        "echo $! > plain; while [ ! -s daemon ]; do sleep 0.01; done; cat daemon plain")).result
    pids = told["structuredContent"]["stdout"].split()
    assert len(pids) == 2 and not any(map(is_alive, pids))


@pytest.mark.parametrize("what", ["mkdir $T $T/o && chmod 0 $T", "ln -s . $T", "mkfifo $T", ":"])
def test_what_a_wrapper_leaves_in_tmp_ends_with_its_session(fake: Fake, what: str) -> None:
    session, mark = fake.start(), secrets.token_hex(8)
    before = Path("/tmp").stat().st_mode
    told = fake.invoke(session, "executeCommand", command=f"m={mark}; T=/tmp/pinfold-$m; {what}")
    assert told.result["structuredContent"]["exitCode"] == 0
    assert fake.stop(session).status == 200
    assert not os.path.lexists(f"/tmp/pinfold-{mark}")
    assert Path("/tmp").stat().st_mode == before


def test_a_command_that_is_too_long_in_time_is_killed(fake: Fake) -> None:
    session = fake.start()
    fake.control("config", {"command_seconds": 1})
    told = fake.invoke(session, "executeCommand", command="echo a; sleep 1000").result
    assert told["structuredContent"]["exitCode"] == 137
    assert told["structuredContent"]["stderr"] == "a\r\n"


def test_a_command_line_of_128_kib_hangs_until_told_otherwise(fake: Fake) -> None:
    session = fake.start()
    command = "printf %.3s " + "x" * 131072
    body = json.dumps({"name": "executeCommand", "arguments": {"command": command}}).encode()
    path = "/code-interpreters/aws.codeinterpreter.v1/tools/invoke"
    signed = fake.signed("POST", path, body, {"content-type": "application/json",
                                              SESSION_HEADER: session})
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    with socket.create_connection(fake.address) as peer:
        peer.sendall(f"POST {path} HTTP/1.1\r\nHost: {'%s:%d' % fake.address}\r\n{head}"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: fake.control("sessions", method="GET")[0]["calls"] == 1)
        peer.settimeout(0.3)
        with pytest.raises(TimeoutError):
            peer.recv(1)
    wait_until(lambda: fake.control("sessions", method="GET")[0]["calls"] == 0)
    assert fake.control("counts", method="GET")["ran"] == {}
    fake.control("config", {"long_command": "run"})
    done = fake.invoke(session, "executeCommand", command=command).result
    assert done["structuredContent"]["stdout"] == "xxx"
    fake.control("config", {"long_command": "refuse"})
    assert fake.invoke(session, "executeCommand", command=command).status == 400


def test_python_remembers_until_told_to_forget(fake: Fake) -> None:
    session = fake.start()

    def run(code: str, **more: bool) -> dict:
        return fake.invoke(session, "executeCode", code=code, language="python", **more).result

    assert run("x = 41")["structuredContent"]["exitCode"] == 0
    told = run("import os, sys\nprint(x + 1)\nos.system('echo child; echo err >&2')")
    assert (told["structuredContent"]["stdout"], told["structuredContent"]["stderr"]) == (
        "child\n42\n", "err\n")
    wrong = run("1/0")
    assert wrong["content"] == [{"type": "text", "text": "ZeroDivisionError: division by zero"}]
    assert (wrong["structuredContent"]["exitCode"], wrong["isError"]) == (1, True)
    assert "NameError" in run("print(x)", clearContext=True)["structuredContent"]["stderr"]
    assert run("import os; os._exit(3)")["isError"] is True
    assert run("print('new')")["structuredContent"]["stdout"] == "new\n"


def test_a_task_runs_on_until_it_ends_or_is_stopped(fake: Fake) -> None:
    session = fake.start()

    def task(tool: str, **arguments: str) -> dict:
        return fake.invoke(session, tool, **arguments).result["structuredContent"]

    begun = task("startCommandExecution", command="echo a; while [ ! -e go ]; do sleep 0.01; done")
    assert begun["taskStatus"] == "submitted"
    wait_until(lambda: task("getTask", taskId=begun["taskId"])["stdout"] == "a\r\n")
    assert task("getTask", taskId=begun["taskId"])["taskStatus"] == "working"
    fake.invoke(session, "executeCommand", command="touch go")
    wait_until(lambda: task("getTask", taskId=begun["taskId"])["taskStatus"] == "completed")
    assert task("getTask", taskId=begun["taskId"])["exitCode"] == 0
    other = task("startCommandExecution", command="echo $$ > pid; exec sleep 1000")
    pid = Path(fake.control("sessions", method="GET")[0]["directory"], "pid")
    wait_until(lambda: pid.exists() and pid.read_text().strip())
    number = pid.read_text()
    assert task("stopTask", taskId=other["taskId"])["taskStatus"] == "canceled"
    assert not is_alive(number)
    assert fake.invoke(session, "getTask", taskId="none").result["isError"] is True


def test_files_go_in_and_out_as_they_are(fake: Fake) -> None:
    session, data = fake.start(), bytes(range(256))
    written = fake.invoke(session, "writeFiles", content=[
        {"path": "deep/er/b.bin", "blob": base64.b64encode(data).decode()},
        {"path": "t.txt", "text": "h\u00e9\n"}, {"path": "empty", "text": ""}]).result
    assert written == {"content": [{"type": "text", "text": "Successfully wrote all 3 files"}],
                       "isError": False}
    read = fake.invoke(session, "readFiles", paths=["deep/er/b.bin", "t.txt", "empty"]).result
    blob, text, empty = (one["resource"] for one in read["content"])
    assert base64.b64decode(blob["blob"]) == data and blob["uri"] == "file:///deep/er/b.bin"
    assert (text["text"], empty["text"]) == ("h\u00e9\n", "") and "type" not in text
    links = fake.invoke(session, "listFiles", directoryPath="deep").result["content"]
    assert links == [{"type": "resource_link", "uri": "file:///deep/er", "name": "er",
                      "description": "Directory"}]
    assert fake.invoke(session, "removeFiles", paths=["t.txt"]).result["isError"] is False
    missing = fake.invoke(session, "readFiles", paths=["t.txt"]).result
    assert missing["isError"] is True and "t.txt not found" in missing["content"][0]["text"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a/.."])
def test_a_path_that_is_not_beneath_is_traversal(fake: Fake, path: str) -> None:
    session = fake.start()
    calls = {"write_files": ("writeFiles", {"content": [{"path": "before", "text": ""},
                                                        {"path": path, "text": ""}]}),
             "read_files": ("readFiles", {"paths": [path]}),
             "list_files": ("listFiles", {"directoryPath": path}),
             "remove_files": ("removeFiles", {"paths": [path]})}
    for name, (tool, arguments) in calls.items():
        assert fake.invoke(session, tool, **arguments).result == {
            "content": [{"type": "text", "text": f"Error executing tool {name}: Invalid file path: "
                                                 "potential path traversal detected"}],
            "isError": True}
    names = [one["name"] for one in fake.invoke(session, "listFiles").result["content"]]
    assert "before" not in names and "package.json" in names


def test_replies_that_are_too_large_are_refused(fake: Fake) -> None:
    session = fake.start()
    fake.control("config", {"read_limit": 1000, "payload_limit": 1000, "request_limit": 3000})
    fake.invoke(session, "writeFiles", content=[{"path": "a", "text": "x" * 600},
                                                {"path": "b", "text": "x" * 600}])
    assert fake.invoke(session, "readFiles", paths=["a"]).status == 200
    refused = fake.invoke(session, "readFiles", paths=["a", "b"])
    assert (refused.status, refused.json) == (400, {
        "message": "Response payload too large. Reduce the number or size of files in a single "
                   "call.", "reason": None, "fieldList": None})
    assert fake.invoke(session, "executeCommand", command="yes").json == refused.json
    large = fake.invoke(session, "writeFiles", content=[{"path": "c", "text": "x" * 4000}])
    assert large.error == "ValidationException"


def keys(value: object) -> object:
    """The shape of a value: members and types."""
    if isinstance(value, dict):
        return {name: keys(member) for name, member in value.items()}
    return [keys(one) for one in value] if isinstance(value, list) else type(value).__name__


@NEEDS_WIRE
def test_results_have_the_shapes_of_the_live_service(fake: Fake) -> None:
    session = fake.start()

    def recorded(number: int) -> dict:
        [path] = WIRE.glob(f"vectors/v{number}-*.json")
        [(_, payload)] = decode(bytes.fromhex(json.loads(path.read_text())["bodyHex"]))
        return json.loads(payload)

    def said(tool: str, **arguments: object) -> dict:
        return fake.invoke(session, tool, **arguments).result

    assert said("writeFiles", content=[{"path": "rel.txt", "text": "rel"}]) == recorded(50)
    assert said("readFiles", paths=["rel.txt"]) == recorded(51)
    said("writeFiles", content=[{"path": "ws/in.bin", "blob": "AAEC/f7/"}])
    assert said("readFiles", paths=["ws/in.bin"]) == recorded(52)
    links = said("listFiles", directoryPath="")["content"]
    assert recorded(53)["content"][0] in links and recorded(53)["content"][1] in links
    assert said("writeFiles", content=[{"path": "/x", "text": ""}]) == recorded(54)
    missing = said("executeCommand", command="no-such-program-at-all")
    assert keys(missing) == keys(recorded(55))
    assert missing["structuredContent"]["exitCode"] == 127
    assert keys(said("executeCommand", command="id; pwd")) == keys(recorded(56))


def test_the_path_of_commands_can_be_changed(fake: Fake, tmp_path: Path) -> None:
    session = fake.start()
    fake.control("config", {"path": str(tmp_path)})
    told = fake.invoke(session, "executeCommand", command="echo $PATH; cat /dev/null").result
    assert told["structuredContent"]["exitCode"] == 127
    assert told["structuredContent"]["stderr"].startswith(f"{tmp_path}\r\n")
