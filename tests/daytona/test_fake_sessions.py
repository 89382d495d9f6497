# SPDX-License-Identifier: Apache-2.0
"""Sessions, with every trap that the service has in them."""

import os
import socket
import time
from pathlib import Path
from shlex import quote

import pytest

from daytona_client import Fake, is_alive, wait_until
from service.sessions import Command, Session


def sync(fake: Fake, session: str, command: str) -> dict:
    answer = fake.tool("POST", f"process/session/{session}/exec", {"command": command})
    assert answer.status == 200, answer.body
    return answer.json


def wrapped(command: str) -> str:
    """The wrapper that gets past the traps."""
    return f"sh -c {quote(command)} </dev/null"


def dies(fake: Fake, session: str, command: str, said: str = "") -> None:
    """The command ends its session's shell: no exit code, ever, and nothing after it."""
    started = fake.run(session, command)

    def refused() -> bool:
        answer = fake.tool("POST", f"process/session/{session}/exec",
                           {"command": "true", "runAsync": True})
        return answer.status == 500
    wait_until(refused)
    wait_until(lambda: fake.logs(session, started)["stdout"] == said)
    assert fake.code(session, started) is None


def test_a_command_runs_with_both_streams_and_its_code(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "echo o; echo e >&2; (exit 7)")
    assert sandbox.wait(session, command) == (7, "o\n", "e\n")
    assert sandbox.logs(session, command)["output"] in ("\1\1\1o\n\2\2\2e\n", "\2\2\2e\n\1\1\1o\n")
    told = sync(sandbox, session, "echo o; false")
    assert told == {"cmdId": told["cmdId"], "output": "\1\1\1o\n", "stdout": "o\n", "stderr": "",
                    "exitCode": 1}


def test_the_shell_keeps_its_state_and_has_no_terminal(sandbox: Fake) -> None:
    session = sandbox.session()
    sync(sandbox, session, "cd /; export Q=1; f() { echo f; }")
    assert sync(sandbox, session, "pwd; echo $Q; f; tty")["stdout"] == "/\n1\nf\nnot a tty\n"
    other = sandbox.session()
    assert sync(sandbox, other, "pwd; echo :$Q")["stdout"] == f"{sandbox.home}\n:\n"


@pytest.mark.parametrize("command", ["echo x; exit 3", "set -e; echo x; false", "exec echo x",
                                     "echo x; kill -9 $$"])
def test_what_ends_the_shell_leaves_no_code(sandbox: Fake, command: str) -> None:
    dies(sandbox, sandbox.session(), command, "x\n")


def test_a_dead_shell_is_a_broken_pipe(sandbox: Fake) -> None:
    session = sandbox.session()
    dies(sandbox, session, "exit")
    answer = sandbox.tool("POST", f"process/session/{session}/exec", {"command": "ls"})
    assert (answer.status, answer.json) == (500, {
        "statusCode": 500, "timestamp": "0001-01-01T00:00:00Z", "path": "",
        "message": "failed to execute command: bad request: failed to write command: write |1: "
                   "broken pipe"})
    assert sandbox.tool("DELETE", f"process/session/{session}").status == 204


def test_set_e_stays_in_the_shell(sandbox: Fake) -> None:
    session = sandbox.session()
    assert sync(sandbox, session, "cd /tmp; set -e")["exitCode"] == 0
    dies(sandbox, session, "pwd; false", "/tmp\n")


def test_a_syntax_error_ends_dash_and_not_bash(sandbox: Fake) -> None:
    session = sandbox.session()
    told = sync(sandbox, session, "syntax error (((")
    assert told["exitCode"] == 2 and "cmd.sh: line 1: syntax error" in told["stderr"]
    assert sync(sandbox, session, "echo still")["stdout"] == "still\n"
    sandbox.control("config", {"shell": "/bin/dash"})
    dies(sandbox, sandbox.session(), "syntax error (((")


@pytest.mark.parametrize("command, code, out, err", [
    ("echo hi; exit 3", 3, "hi\n", ""), ("set -e\nfalse\necho no", 1, "", ""),
    ("cat", 0, "", ""), ("cat <<'EOF'\nit's $X \"q\"\nEOF\nexit 4", 4, "it's $X \"q\"\n", ""),
    ("echo 'a' # c", 0, "a\n", ""), ("trap 'echo bye' EXIT; exit 7", 7, "bye\n", ""),
    ("echo ((", 2, "", "Syntax error"), ("kill -9 $$", 137, "", "Killed")])
def test_the_wrapper_survives_them(sandbox: Fake, command: str, code: int, out: str,
                                   err: str) -> None:
    session = sandbox.session()
    for _ in range(2):
        got = sandbox.wait(session, sandbox.run(session, wrapped(command)))
        assert got[:2] == (code, out) and err in got[2]


def test_standard_input_never_ends_unless_sync(sandbox: Fake) -> None:
    session = sandbox.session()
    assert sync(sandbox, session, "cat")["exitCode"] == 0
    reads = sandbox.run(session, "read x; echo got=$x; cat")
    pipe = f"process/session/{session}/command/{reads}/input"
    wait_until(lambda: sandbox.tool("POST", pipe, {"data": "hello"}).status == 204)
    wait_until(lambda: sandbox.logs(session, reads)["stdout"] == "got=hello\n")
    waits = sandbox.run(session, "echo queued")
    assert sandbox.code(session, reads) is None and sandbox.code(session, waits) is None
    early = sandbox.tool("POST", f"process/session/{session}/command/{waits}/input", {"data": "x"})
    assert early.status == 500 and early.message.startswith(
        "internal server error: failed to open input pipe: open ")


def test_input_to_what_is_over_is_gone(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "true")
    sandbox.wait(session, command)
    answer = sandbox.tool("POST", f"process/session/{session}/command/{command}/input",
                          {"data": "x"})
    assert (answer.status, answer.json["code"], answer.message) == (
        410, "GONE", "gone: command has already completed with exit code 0")


def test_one_command_waits_for_the_one_before(sandbox: Fake) -> None:
    session = sandbox.session()
    first = sandbox.run(session, "until test -e go; do sleep 0.05; done; echo 1 >> order")
    second = sandbox.run(session, "echo 2 >> order; cat order")
    assert sandbox.code(session, second) is None
    sandbox.upload(("go", b""))
    assert sandbox.wait(session, second) == (0, "1\n2\n", "")
    assert sandbox.code(session, first) == 0


def test_a_child_that_holds_the_streams_holds_the_code(sandbox: Fake) -> None:
    session = sandbox.session()
    held = sandbox.run(session, "sh -c 'until test -e go; do sleep 0.05; done' & echo bg")
    wait_until(lambda: sandbox.logs(session, held)["stdout"] == "bg\n")
    assert sandbox.code(session, held) is None
    sandbox.upload(("go", b""))
    assert sandbox.wait(session, held) == (0, "bg\n", "")
    free = sandbox.run(session, "sleep 1000 >/dev/null 2>&1 & echo $!")
    code, pid, _ = sandbox.wait(session, free)
    assert code == 0 and is_alive(pid)


def test_deleting_a_session_kills_all_that_it_ever_started(sandbox: Fake) -> None:
    session = sandbox.session()
    _, pids, _ = sandbox.wait(session, sandbox.run(
        session, "setsid nohup sleep 1000 >/dev/null 2>&1 & echo $!; "
                 "(trap '' TERM HUP; sleep 1000 >/dev/null 2>&1 & echo $!)"))
    running = sandbox.run(session, "echo $$; sleep 1000")
    wait_until(lambda: sandbox.logs(session, running)["stdout"])
    pids += sandbox.logs(session, running)["stdout"]
    assert all(map(is_alive, pids.split())) and len(pids.split()) == 3
    assert sandbox.tool("DELETE", f"process/session/{session}").status == 204
    wait_until(lambda: not any(map(is_alive, pids.split())))
    for path in ("", f"/command/{running}", f"/command/{running}/logs"):
        gone = sandbox.tool("GET", f"process/session/{session}{path}")
        assert (gone.status, gone.message) == (404, "not found: session not found")
    assert sandbox.tool("DELETE", f"process/session/{session}").status == 404


def test_what_execute_left_running_survives(sandbox: Fake) -> None:
    told = sandbox.execute("setsid nohup sleep 1000 >/dev/null 2>&1 & echo $!")
    session = sandbox.session()
    assert sandbox.tool("DELETE", f"process/session/{session}").status == 204
    assert is_alive(told["result"])
    sandbox.api("DELETE", f"sandbox/{sandbox.sandbox}")
    wait_until(lambda: not is_alive(told["result"]))


def test_unfinished_lines_are_invisible_until_they_end(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "printf abc; echo here >&2; read x; printf def")
    wait_until(lambda: sandbox.logs(session, command)["stderr"] == "here\n")
    assert sandbox.logs(session, command)["stdout"] == ""
    sandbox.tool("POST", f"process/session/{session}/command/{command}/input", {"data": ""})
    assert sandbox.wait(session, command) == (0, "abcdef\n", "here\n")


def test_some_bytes_do_not_come_through(sandbox: Fake) -> None:
    told = sync(sandbox, sandbox.session(), 'printf "a\\001\\001\\001b\\000c\\377d"')
    assert told["output"] == "\1\1\1a\1\1\1bc\ufffdd\n"
    assert (told["stdout"], told["stderr"]) == ("abc\ufffdd\n", "")


def test_the_form_of_logs_depends_on_the_client(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "echo e >&2; read x; echo o")
    wait_until(lambda: sandbox.logs(session, command)["stderr"] == "e\n")
    sandbox.tool("POST", f"process/session/{session}/command/{command}/input", {"data": ""})
    sandbox.wait(session, command)
    marked, merged = b"\2\2\2e\n\1\1\1o\n", b"e\no\n"
    told = {"output": marked.decode(), "stdout": "o\n", "stderr": "e\n"}
    path = f"/toolbox/{sandbox.sandbox}/process/session/{session}/command/{command}/logs"
    for said, want in ((None, merged), ("0.100.0", marked), ("0.167.0", told), ("9.9.9", told),
                       ("0.0.0-dev", told), ("abc", marked), ("0.26.0", merged)):
        headers = {**sandbox.headers, "X-Daytona-SDK-Version": said}
        if said is None:
            del headers["X-Daytona-SDK-Version"]
        answer = sandbox.send("GET", path, headers=headers)
        kind = "application/json" if want is told else "text/plain"
        assert answer.headers["content-type"] == kind + "; charset=utf-8", said
        assert (answer.json if want is told else answer.body) == want, said
    del sandbox.headers["X-Daytona-SDK-Version"]
    split = sandbox.send("GET", path, headers={**sandbox.headers,
                                               "X-Daytona-Split-Output": "true"})
    assert split.body == marked
    assert len(sandbox.complaints()) == 5


def test_a_web_socket_follows_the_log(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "echo s1; echo t1 >&2; read x; seq 1000")
    pipe = f"process/session/{session}/command/{command}"
    head = {**sandbox.headers, "Host": "x", "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    wait_until(lambda: sandbox.tool("POST", pipe + "/input", {"data": ""}).status != 500)
    with socket.create_connection(sandbox.address, timeout=60) as peer:
        peer.sendall(f"GET /toolbox/{sandbox.sandbox}/{pipe}/logs?follow=true HTTP/1.1\r\n{lines}"
                     "\r\n".encode())
        got = b"".join(iter(lambda: peer.recv(65536), b""))
    answer, got = got.split(b"\r\n\r\n", 1)
    # The key and its answer are the example of RFC 6455.
    assert answer.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer
    log, ended = b"", False
    while got:
        kind, size = got[0], got[1]
        got = got[2:]
        if size == 126:
            size, got = int.from_bytes(got[:2], "big"), got[2:]
        data, got = got[:size], got[size:]
        assert size <= 1024 and not ended
        ended = kind == 0x88 and data == b"\x03\xe8"
        log += data if kind == 0x82 else b""
    assert ended and log.count(b"\n") == 1002
    assert log.decode() == sandbox.logs(session, command)["output"]


def test_long_lines_and_much_output_come_whole(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "head -c 3000000 /dev/zero | tr '\\0' x; seq 200000 >&2")
    code, out, err = sandbox.wait(session, command)
    assert code == 0 and out == "x" * 3000000 + "\n"
    assert err == "".join(f"{number}\n" for number in range(1, 200001))


@pytest.mark.parametrize("body, status, message", [
    ({}, 400, "invalid body request: Key: 'CreateSessionRequest.SessionId' Error:Field validation "
              "for 'SessionId' failed on the 'required' tag"),
    ({"sessionId": "entrypoint"}, 400, None)])
def test_a_session_needs_a_name(sandbox: Fake, body: dict, status: int,
                                message: str | None) -> None:
    answer = sandbox.tool("POST", "process/session", body)
    assert answer.status == status and message in (None, answer.message)
    assert len(sandbox.complaints()) == (not body)


def test_sessions_are_listed_and_unique(sandbox: Fake) -> None:
    session = sandbox.session()
    again = sandbox.tool("POST", "process/session", {"sessionId": session})
    assert (again.status, again.message) == (409, "conflict: session already exists")
    command = sandbox.run(session, "echo 1 <&0 >/dev/null && sleep 1000")
    told = {"sessionId": session, "commands": [
        {"id": command, "command": "echo 1 <&0 >/dev/null && sleep 1000"}]}
    one = sandbox.tool("GET", f"process/session/{session}")
    assert one.json == told and rb"\u003c\u00260 \u003e" in one.body
    assert sandbox.tool("GET", "process/session").json == [told]
    odd = sandbox.tool("POST", "process/session", {"sessionId": "a/b"})
    assert odd.status == 201
    assert sandbox.tool("GET", "process/session/a%2Fb").json["sessionId"] == "a/b"


def test_a_session_that_is_not_there_is_a_500_for_exec(sandbox: Fake) -> None:
    answer = sandbox.tool("POST", "process/session/nope/exec", {"command": "ls"})
    assert answer.status == 500 and answer.message == (
        "failed to execute command: not found: session not found")
    empty = sandbox.tool("POST", f"process/session/{sandbox.session()}/exec", {"command": ""})
    assert (empty.status, empty.body) == (400, b"")
    none = sandbox.tool("GET", f"process/session/{sandbox.session()}/command/nope")
    assert (none.status, none.message) == (404, "not found: command not found")


def test_a_client_that_hangs_up_stops_nothing(sandbox: Fake) -> None:
    session = sandbox.session()
    connection = sandbox.connect()
    connection.request("POST", f"/toolbox/{sandbox.sandbox}/process/session/{session}/exec",
                       body=b'{"command":"until test -e go; do sleep 0.05; done; echo late > l"}',
                       headers={**sandbox.headers, "Content-Type": "application/json"})
    home: Path = sandbox.home
    wait_until(lambda: sandbox.tool("GET", f"process/session/{session}").json["commands"])
    connection.close()
    sandbox.upload(("go", b""))
    wait_until(lambda: (home / "l").exists() and (home / "l").read_text() == "late\n")


def test_the_log_may_be_behind_the_code(sandbox: Fake) -> None:
    sandbox.control("config", {"log_lag": 3})
    session = sandbox.session()
    command = sandbox.run(session, "seq 10")
    wait_until(lambda: sandbox.code(session, command) == 0)
    whole = "".join(f"{number}\n" for number in range(1, 11))
    began = time.monotonic()
    first = sandbox.logs(session, command)["stdout"]
    assert whole.startswith(first) and (first != whole or time.monotonic() - began > 1)
    wait_until(lambda: sandbox.logs(session, command)["stdout"] == whole)


def test_environment_of_the_sandbox_is_that_of_its_shells(fake: Fake) -> None:
    fake.create(env={"A": "b c", "HOME": "/nowhere"})
    told = sync(fake, fake.session(), "echo $A:$HOME")
    assert told["stdout"] == "b c:/nowhere\n"
    assert fake.execute("echo $A:$HOME")["result"] == "b c:/nowhere\n"


def test_a_pipe_that_is_just_opened_has_not_ended(tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """As poll(2) may say it has; a look at what is there knows better."""
    session, looks = object.__new__(Session), set[int]()
    session.ended = os.eventfd(0)
    command = Command(tmp_path, "x", False)
    really = os.read

    def read(fd: int, size: int) -> bytes:
        if fd not in looks:
            looks.add(fd)
            raise BlockingIOError
        return really(fd, size)

    for name, said in ("stdout", b"o\n"), ("stderr", b"e\n"), ("exit", b"3\n"):
        fd = os.open(command.place / f"{name}.pipe", os.O_WRONLY)
        os.write(fd, said)
        os.close(fd)
    monkeypatch.setattr(os, "read", read)
    assert session._follow(command)
    assert looks == set(command.pipes) and command.code == 3
    assert sorted(command.log().splitlines()) == [b"\1\1\1o", b"\2\2\2e"]
    command.close()
    os.close(session.ended)
