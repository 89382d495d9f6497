# SPDX-License-Identifier: Apache-2.0
"""The fake's sessions, what it refuses, and what it tells a test."""

import json
import signal
import socket
from datetime import datetime
from pathlib import Path

import pytest

from client import SESSION_HEADER, Fake, end_fake, is_alive, start_fake, wait_until


def test_a_session_is_started_found_listed_and_stopped(fake: Fake) -> None:
    session = fake.start(name="one", sessionTimeoutSeconds=60)
    assert len(session) == 26 and session.isalnum()
    got = fake.get(session).json
    assert (got["name"], got["sessionTimeoutSeconds"], got["status"]) == ("one", 60, "READY")
    assert datetime.strptime(got["createdAt"], "%Y-%m-%dT%H:%M:%S.%fZ")
    assert set(fake.stop(session).json) == {"codeInterpreterIdentifier", "sessionId",
                                            "lastUpdatedAt"}
    assert fake.get(session).json["status"] == "TERMINATED"
    again = fake.invoke(session, "listFiles")
    assert (again.status, again.error) == (400, "ValidationException")
    assert again.json == {"message": f"Code interpreter session {session} is not active"}


def test_lists_come_in_pages_by_status_and_interpreter(fake: Fake) -> None:
    sessions = [fake.start() for _ in range(5)]
    fake.stop(sessions[0])
    found, more = [], {}
    while True:
        page = fake.call("POST", "/sessions/list", {"maxResults": 2, "status": "READY", **more})
        found += [item["sessionId"] for item in page.json["items"]]
        if "nextToken" not in page.json:
            break
        more = {"nextToken": page.json["nextToken"]}
    assert found == sessions[1:]
    other = "/code-interpreters/mine-0123456789"
    assert fake.call("POST", "/sessions/list", {}, base=other).json == {"items": []}
    assert fake.call("GET", f"/sessions/get?sessionId={found[0]}", base=other).status == 404


def test_the_same_token_gives_the_same_session(fake: Fake) -> None:
    token = "0123456789-0123456789-0123456789-x"
    session = fake.start(clientToken=token)
    assert fake.start(clientToken=token) == session
    assert fake.start() != session
    other = fake.call("PUT", "/sessions/start", {"clientToken": token, "name": "n"})
    assert other.json["reason"] == "IdempotentParameterMismatchException"
    first, second = fake.stop(session, clientToken=token), fake.stop(session, clientToken=token)
    assert first.status == 200 and first.json == second.json
    assert fake.stop(session).error == "ValidationException"


def test_a_lifetime_is_absolute_and_takes_everything_along(fake: Fake) -> None:
    session = fake.start(sessionTimeoutSeconds=1)
    [told] = fake.control("sessions", method="GET")
    fake.invoke(session, "startCommandExecution", command="echo $$ > pid; exec sleep 1000")
    pid = Path(told["directory"], "pid")
    # Activity does not make it longer.
    wait_until(lambda: fake.invoke(session, "listFiles").status == 400)
    assert fake.invoke(session, "listFiles").json["message"].endswith("is not active")
    assert not pid.parent.exists()
    assert fake.get(session).json["status"] == "TERMINATED"


def test_a_session_that_ends_ends_its_commands(fake: Fake) -> None:
    session = fake.start()
    place = Path(fake.control("sessions", method="GET")[0]["directory"])
    fake.invoke(session, "startCommandExecution", command="echo $$ > pid; exec sleep 1000")
    wait_until(lambda: (place / "pid").exists() and (place / "pid").read_text().strip())
    pid = (place / "pid").read_text()
    assert is_alive(pid)
    assert fake.control("expire", {"sessionId": session}) == {"ended": 1}
    assert not is_alive(pid) and not place.exists()


def test_quotas_are_refused(fake: Fake) -> None:
    fake.control("config", {"session_limit": 1, "calls_per_session": 0})
    session = fake.start()
    refused = fake.call("PUT", "/sessions/start", {})
    assert (refused.status, refused.error) == (402, "ServiceQuotaExceededException")
    assert fake.invoke(session, "listFiles").status == 402
    fake.control("config", {"requests_per_second": 1})
    statuses = [fake.get(session).status for _ in range(4)]
    assert 429 in statuses and statuses[0] == 200


# What is not as documented is refused.

WRONG = [
    ("/sessions/start", {"name": ""}, "name"),
    ("/sessions/start", {"name": "n" * 101}, "name"),
    ("/sessions/start", {"sessionTimeoutSeconds": 0}, "sessionTimeoutSeconds"),
    ("/sessions/start", {"sessionTimeoutSeconds": 28801}, "sessionTimeoutSeconds"),
    ("/sessions/start", {"sessionTimeoutSeconds": True}, "sessionTimeoutSeconds"),
    ("/sessions/start", {"sessionTimeoutSeconds": "60"}, "sessionTimeoutSeconds"),
    ("/sessions/start", {"clientToken": "short"}, "clientToken"),
    ("/sessions/start", {"clientToken": "_" * 40}, "clientToken"),
    ("/sessions/start", {"certificates": []}, "certificates"),
    ("/sessions/start", {"filesystemConfigurations": [{}]}, "filesystemConfigurations.0"),
    ("/sessions/start", {"colour": "red"}, "colour"),
    ("/sessions/list", {"maxResults": 101}, "maxResults"),
    ("/sessions/list", {"status": "ready"}, "status"),
    ("/sessions/list", {"nextToken": "tok1"}, "nextToken"),
    ("/tools/invoke", {}, "name"),
    ("/tools/invoke", {"name": "execute"}, "name"),
    ("/tools/invoke", {"name": "executeCommand"}, "arguments.command"),
    ("/tools/invoke", {"name": "executeCommand", "arguments": {"command": 1}},
     "arguments.command"),
    ("/tools/invoke", {"name": "executeCommand", "arguments": {"command": "a", "cwd": "/"}},
     "arguments.cwd"),
    ("/tools/invoke", {"name": "executeCode", "arguments": {"code": "1", "language": "perl"}},
     "arguments.language"),
    ("/tools/invoke", {"name": "writeFiles", "arguments": {"content": [{"path": "a"}]}},
     "arguments.content.0"),
    ("/tools/invoke", {"name": "writeFiles", "arguments": {"content": [
        {"path": "a", "text": "", "blob": ""}]}}, "arguments.content.0"),
    ("/tools/invoke", {"name": "writeFiles", "arguments": {"content": [
        {"path": "a", "blob": "no base64!"}]}}, "arguments.content.0.blob"),
]


@pytest.mark.parametrize("path, body, field", WRONG)
def test_a_wrong_member_is_refused_by_name(fake: Fake, path: str, body: dict, field: str) -> None:
    session = fake.start()
    named = {SESSION_HEADER: session} if "invoke" in path else {}
    answer = fake.call("PUT" if "start" in path else "POST", path, body, **named)
    assert (answer.status, answer.error) == (400, "ValidationException")
    assert answer.json["reason"] == "FieldValidationFailed"
    assert [one["name"] for one in answer.json["fieldList"]] == [field]
    assert fake.control("counts", method="GET")["ran"] == {}


def test_what_is_around_the_body_is_checked_too(fake: Fake) -> None:
    def statuses(*calls) -> list[int]:
        return [fake.call(*arguments, **named).status for arguments, named in calls]

    session, invoke = fake.start(), {"name": "listFiles"}
    assert statuses(
        (("POST", "/tools/invoke", invoke), {}),
        (("POST", "/tools/invoke", invoke), {SESSION_HEADER: "no_such"}),
        (("POST", "/tools/invoke", invoke), {SESSION_HEADER: "01NONE"}),
        (("POST", f"/tools/invoke?sessionId={session}", invoke), {SESSION_HEADER: session}),
        (("POST", "/tools/invoke", invoke), {SESSION_HEADER: session, "content_type": "text/x"}),
        (("GET", "/sessions/get"), {}),
        (("GET", f"/sessions/stop?sessionId={session}"), {}),
        (("POST", "/sessions/list", {}, "/code-interpreters/short-id"), {}),
        (("POST", "/sessions/list", []), {}),
        (("POST", "/sessions/list", {}), {"traceparent": "t" * 1025}),
    ) == [400, 400, 404, 400, 415, 400, 404, 400, 400, 400]


def test_requests_are_recorded(fake: Fake, tmp_path: Path) -> None:
    session = fake.start()
    fake.invoke(session, "executeCommand", command="true")
    fake.invoke(session, "removeFiles")
    first, second, third = fake.control("requests", method="GET")
    assert (first["operation"], first["n"], first["tool"]) == ("StartCodeInterpreterSession", 0,
                                                               None)
    assert (second["session"], second["ran"], second["status"]) == (session, True, 200)
    assert json.loads(second["body"])["arguments"] == {"command": "true"}
    assert (third["ran"], third["error"]) == (False, "ValidationException")
    assert fake.control("requests?since=2", method="GET") == [third]
    log = tmp_path / "log"
    other = start_fake(tmp_path, "--log", str(log))
    try:
        other.start()
        assert json.loads(log.read_text())["operation"] == "StartCodeInterpreterSession"
    finally:
        assert end_fake(other) == 0


def test_one_connection_carries_many_requests(fake: Fake) -> None:
    path = "/code-interpreters/aws.codeinterpreter.v1/sessions/list"
    signed = fake.signed("POST", path, b"{}", {"content-type": "application/json"})
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    one = (f"POST {path} HTTP/1.1\r\nHost: {'%s:%d' % fake.address}\r\n{head}"
           "Content-Length: 2\r\n\r\n{}").encode()
    with socket.create_connection(fake.address, timeout=60) as peer:
        peer.sendall(one * 3)
        peer.shutdown(socket.SHUT_WR)
        replies = b"".join(iter(lambda: peer.recv(65536), b""))
    assert replies.count(b"HTTP/1.1 200 OK\r\n") == 3 and replies.count(b'{"items":[]}') == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    fake = start_fake(tmp_path)
    try:
        session = fake.start()
        fake.invoke(session, "startCommandExecution",
                    command="mkdir -p a/b; touch a/b/c; echo $$ > pid; chmod 0 a; exec sleep 1000")
        pid = fake.directory / session / "pid"
        wait_until(lambda: pid.exists() and pid.read_text().strip())
        command = pid.read_text()
        fake.process.send_signal(number)
        assert fake.process.wait(timeout=60) == 0
    finally:
        end_fake(fake)
    assert not is_alive(command) and list(tmp_path.iterdir()) == []


def test_killing_the_fake_kills_what_it_runs(tmp_path: Path) -> None:
    fake = start_fake(tmp_path)
    try:
        session = fake.start()
        told = fake.invoke(session, "executeCode", language="python",
                           code="import os; print(os.getpid())").result
        python = told["structuredContent"]["stdout"]
        fake.invoke(session, "startCommandExecution", command="echo $$ > pid; exec sleep 1000")
        pid = fake.directory / session / "pid"
        wait_until(lambda: pid.exists() and pid.read_text().strip())
    finally:
        fake.process.kill()
        fake.process.wait()
        fake.process.stdin.close()
        fake.process.stdout.close()
    wait_until(lambda: not is_alive(pid.read_text()) and not is_alive(python))
