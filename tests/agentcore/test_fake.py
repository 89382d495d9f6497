# SPDX-License-Identifier: Apache-2.0
"""The fake does what the service does: signatures, sessions, tools, limits."""

import base64
import json
import os
import signal
import socket
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import botocore.session
import pytest
from botocore.config import Config

from client import KEY, SECRET, SESSION_HEADER, Fake, decode, end_fake, start_fake
from fake import CONFIG
from service.errors import ServiceError
from service.signature import verify
from service.web import BadRequest, Request, parse_head

HERE = Path(__file__).parent
WIRE = Path(os.environ.get("PINFOLD_WIRE", HERE.parents[1] / ".." / "shared" / "wire")) / "agentcore"
NEEDS_WIRE = pytest.mark.skipif(not WIRE.is_dir(), reason="the recordings are not here")
# Covered by no signature: what a proxy on the way may change.
UNSIGNED = {"user-agent", "connection", "accept-encoding", "amz-sdk-invocation-id",
            "amz-sdk-request", "content-length", "x-amzn-trace-id"}


def wait_until(condition) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


def is_alive(pid: str) -> bool:
    return Path("/proc", pid.strip()).exists()


# Signatures.


def recordings() -> list[tuple[str, dict]]:
    found = []
    for path in sorted(WIRE.glob("recorded/*.json")):
        requests = json.loads(path.read_text()).get("requests", [])
        found += [(f"{path.stem}-{at}", one) for at, one in enumerate(requests)
                  if one.get("sigv4", {}).get("service") == "bedrock-agentcore"]
    return found


RECORDED = recordings() or [("none", {})]
EACH = pytest.mark.parametrize("recorded", [one for _, one in RECORDED],
                               ids=[name for name, _ in RECORDED])


def body_of(recorded: dict) -> bytes:
    if recorded.get("bodyHex"):
        return bytes.fromhex(recorded["bodyHex"])
    return (recorded.get("bodyUtf8") or "").encode()


def head_of(recorded: dict) -> bytes:
    lines = [recorded["requestLine"], *(f"{name}: {value}" for name, value in recorded["headers"])]
    return "\r\n".join(lines).encode("latin-1")


def signed_at(recorded: dict) -> datetime:
    [stamp] = [value for name, value in recorded["headers"] if name.lower() == "x-amz-date"]
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)


@NEEDS_WIRE
def test_all_kinds_of_requests_were_recorded() -> None:
    assert len(RECORDED) >= 40
    assert {recorded["requestLine"].split("/")[-1] for _, recorded in RECORDED}


@NEEDS_WIRE
@EACH
def test_a_recorded_request_verifies_byte_for_byte(fake: Fake, recorded: dict) -> None:
    offset = (signed_at(recorded) - datetime.now(timezone.utc)).total_seconds()
    fake.control("config", {"clock_offset": offset})
    with socket.create_connection(fake.address, timeout=60) as peer:
        peer.sendall(head_of(recorded) + b"\r\n\r\n" + body_of(recorded))
        assert peer.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 400", b"HTTP/1.1 404")
    [record] = fake.control("requests", method="GET")
    assert record["signature"] == "ok", record
    assert record["headers"] == recorded["headers"]


def accepted(head: bytes, body: bytes, now: datetime) -> bool:
    try:
        method, target, headers = parse_head(head)
        verify(Request(method, target, headers, body), CONFIG["credentials"], now)
    except (BadRequest, ServiceError):
        return False
    return True


def covered(recorded: dict) -> list[int]:
    """The bytes of the head that a signature covers: all but unsigned headers and the version."""
    line = recorded["requestLine"]
    places = list(range(len(line) - len(" HTTP/1.1")))
    at = len(line) + 2
    signed = recorded["sigv4"]["signedHeaders"]
    for name, value in recorded["headers"]:
        if name.lower() in signed or name.lower() == "authorization":
            places += range(at, at + len(name))
            places += range(at + len(name) + 2, at + len(name) + 2 + len(value))
        else:
            assert name.lower() in UNSIGNED
        at += len(name) + 2 + len(value) + 2
    return places


@NEEDS_WIRE
@EACH
def test_a_changed_byte_anywhere_does_not_verify(recorded: dict) -> None:
    head, body, now = head_of(recorded), body_of(recorded), signed_at(recorded)
    assert accepted(head, body, now)
    for at in covered(recorded):
        changed = head[:at] + bytes([head[at] ^ 1]) + head[at + 1:]
        assert not accepted(changed, body, now), changed
    for at in range(len(body)):
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
        assert not accepted(head, changed, now), changed


@pytest.mark.parametrize("minutes, error", [(-6, "is now earlier"), (6, "is still later"),
                                            (-4, None), (4, None)])
def test_a_clock_may_be_five_minutes_off(fake: Fake, minutes: int, error: str | None) -> None:
    fake.skew = timedelta(minutes=minutes)
    answer = fake.call("POST", "/sessions/list", {})
    assert (answer.status, answer.error) == (
        (403, "InvalidSignatureException") if error else (200, None))
    assert (error or "items") in answer.body.decode()


def test_the_clock_of_the_service_can_be_wrong_and_is_told(fake: Fake) -> None:
    fake.control("config", {"clock_offset": -3600, "skew_error": "RequestTimeTooSkewed"})
    refused = fake.call("POST", "/sessions/list", {})
    assert (refused.status, refused.error) == (403, "RequestTimeTooSkewed")
    told = datetime.strptime(refused.headers["date"], "%a, %d %b %Y %H:%M:%S GMT")
    fake.skew = told.replace(tzinfo=timezone.utc) - datetime.now(timezone.utc)
    assert fake.call("POST", "/sessions/list", {}).status == 200


def test_credentials_are_checked(fake: Fake) -> None:
    def error() -> str | None:
        return fake.call("POST", "/sessions/list", {}).error

    fake.key = "AKIANOBODYSKEYATALL0"
    assert error() == "UnrecognizedClientException"
    fake.key, fake.token = KEY, "a token with a key that has none"
    assert error() == "UnrecognizedClientException"
    fake.key, fake.token = "ASIAFAKEFAKEFAKEFAKE", None
    assert error() == "UnrecognizedClientException"
    fake.token = "FakeSessionToken//////////wEaCXVz+fake=="
    assert error() is None
    one = {"key": fake.key, "secret": SECRET, "token": fake.token}
    fake.control("config", {"credentials": [{**one, "expires": time.time() - 1}]})
    assert error() == "ExpiredTokenException"
    fake.control("config", {"credentials": [{**one, "secret": SECRET + "x"}]})
    assert error() == "InvalidSignatureException"
    answer = fake.send("POST", "/code-interpreters/aws.codeinterpreter.v1/sessions/list",
                       {"content-type": "application/json"}, b"{}")
    assert (answer.status, answer.error) == (403, "MissingAuthenticationTokenException")
    assert fake.control("counts", method="GET")["requests"] == {"ListCodeInterpreterSessions": 1}


def test_a_header_that_matters_must_be_signed(fake: Fake) -> None:
    session = fake.start()
    body = b'{"name":"listFiles"}'
    path = "/code-interpreters/aws.codeinterpreter.v1/tools/invoke"
    signed = fake.signed("POST", path, body, {"content-type": "application/json"})
    answer = fake.send("POST", path, {**signed, SESSION_HEADER: session}, body)
    assert answer.error == "InvalidSignatureException"
    assert SESSION_HEADER in answer.json["message"]


# Sessions.


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


# Tools.


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
    assert told["structuredContent"]["stdout"].split() == [
        "SigBlk:", "0" * 16, "SigIgn:", "0" * 16]
    ended = fake.invoke(session, "executeCommand", command="kill -TERM $$").result
    assert ended["structuredContent"]["exitCode"] == 128 + signal.SIGTERM


def test_nothing_of_a_command_outlives_it(fake: Fake) -> None:
    session = fake.start()
    told = fake.invoke(session, "executeCommand", command=(
        "setsid env -i /bin/sh -c 'echo $$ > daemon; exec sleep 1000' & sleep 1000 &"
        "echo $! > plain; while [ ! -s daemon ]; do sleep 0.01; done; cat daemon plain")).result
    pids = told["structuredContent"]["stdout"].split()
    assert len(pids) == 2 and not any(map(is_alive, pids))


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


# Around it.


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


def test_botocore_talks_to_it(fake: Fake) -> None:
    session = botocore.session.Session()
    if "bedrock-agentcore" not in session.get_available_services():
        pytest.skip("this botocore is older than the service")
    client = session.create_client(
        "bedrock-agentcore", region_name="us-west-2", endpoint_url=fake.endpoint,
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
        config=Config(retries={"total_max_attempts": 1}))
    named = {"codeInterpreterIdentifier": "aws.codeinterpreter.v1"}
    named["sessionId"] = client.start_code_interpreter_session(name="n", **named)["sessionId"]
    assert client.get_code_interpreter_session(**named)["status"] == "READY"
    reply = client.invoke_code_interpreter(name="executeCommand", arguments={"command": "echo a"},
                                           **named)
    assert reply["sessionId"] == named["sessionId"]
    [event] = reply["stream"]
    assert event["result"]["structuredContent"]["stdout"] == "a\r\n"
    client.stop_code_interpreter_session(**named)
    with pytest.raises(client.exceptions.ValidationException, match="is not active"):
        client.invoke_code_interpreter(name="listFiles", **named)
    client.close()
