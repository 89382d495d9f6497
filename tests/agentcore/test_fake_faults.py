# SPDX-License-Identifier: Apache-2.0
"""Each fault does what it says, to the request it was meant for, as often as it says."""

import http.client
import json
import socket
import time

import pytest

from client import SESSION_HEADER, Answer, Broken, Fake, decode

INVOKE = "/code-interpreters/aws.codeinterpreter.v1/tools/invoke"
COUNT = "echo run >> runs; cat runs"


@pytest.fixture
def session(fake: Fake) -> str:
    return fake.start()


def invoke(fake: Fake, session: str, **fault: object) -> Answer:
    """A command that counts its runs, with one fault in its way."""
    fake.control("faults", {"tool": "executeCommand", **fault})
    return fake.invoke(session, "executeCommand", command=COUNT)


def runs(fake: Fake) -> int:
    return fake.control("counts", method="GET")["ran"].get("executeCommand", 0)


def raw(fake: Fake, session: str, timeout: float = 60) -> bytes:
    """All bytes of a reply as they come, to the end of the connection or of our patience."""
    body = json.dumps({"name": "executeCommand", "arguments": {"command": COUNT}}).encode()
    signed = fake.signed("POST", INVOKE, body, {"content-type": "application/json",
                                                SESSION_HEADER: session})
    head = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    got = b""
    with socket.create_connection(fake.address, timeout=timeout) as peer:
        peer.sendall(f"POST {INVOKE} HTTP/1.1\r\nHost: {'%s:%d' % fake.address}\r\n{head}"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while more := peer.recv(65536):
            got += more
    return got


def test_a_throttle_comes_before_the_tool_with_its_hints(fake: Fake, session: str) -> None:
    answer = invoke(fake, session, kind="http", error="ThrottlingException", retry_after=2,
                    x_amz_retry_after=1500, message="Rate exceeded")
    assert (answer.status, answer.error, answer.json) == (429, "ThrottlingException",
                                                          {"message": "Rate exceeded"})
    assert (answer.headers["retry-after"], answer.headers["x-amz-retry-after"]) == ("2", "1500")
    assert runs(fake) == 0
    again = fake.invoke(session, "executeCommand", command=COUNT).result
    assert again["structuredContent"]["stdout"] == "run\r\n"
    assert [one["fault"] for one in fake.control("requests", method="GET")[1:]] == ["http", None]


@pytest.mark.parametrize("when, ran", [("before", 0), ("after", 1)])
def test_a_500_comes_before_or_after_the_command_ran(fake: Fake, session: str, when: str,
                                                     ran: int) -> None:
    for status in (500, 502, 503):
        before = runs(fake)
        assert invoke(fake, session, kind="http", status=status, when=when).status == status
        assert runs(fake) == before + ran


def test_an_error_can_be_html_or_anything(fake: Fake, session: str) -> None:
    page = invoke(fake, session, kind="http", status=503, html=True)
    assert page.headers["content-type"] == "text/html" and page.body.startswith(b"<html>")
    assert page.error is None
    assert invoke(fake, session, kind="http", error="AccessDeniedException",
                  body="{").body == b"{"


@pytest.mark.parametrize("fault, kinds, ran", [
    ({}, ["throttlingException"], 0),
    ({"when": "after"}, ["throttlingException"], 1),
    ({"exception": "someNewException", "empty": True}, ["someNewException"], 0),
    ({"exception": "internalServerException", "after_result": True},
     ["result", "internalServerException"], 1)])
def test_an_exception_comes_in_the_stream(fake: Fake, session: str, fault: dict, kinds: list,
                                          ran: int) -> None:
    messages = decode(invoke(fake, session, kind="exception", **fault).body)
    assert [headers.get(":exception-type", headers.get(":event-type"))
            for headers, _ in messages] == kinds
    payload = messages[-1][1]
    assert payload == b"" if fault.get("empty") else "message" in json.loads(payload)
    assert runs(fake) == ran


def test_a_connection_is_closed_before_or_after_the_command_ran(fake: Fake, session: str) -> None:
    for when, ran in (("before", 0), ("after", 1)):
        fake.control("faults", {"kind": "close", "when": when})
        assert raw(fake, session) == b""
        assert runs(fake) == ran


def test_a_reply_is_cut_at_any_byte(fake: Fake, session: str) -> None:
    whole = invoke(fake, session, kind="slow", piece=0).body
    for at in (0, 1, 11, 12, 100, len(whole) - 1):
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            invoke(fake, session, kind="close", body_byte=at)
    for at in (1, 20, 200):
        fake.control("faults", {"kind": "close", "wire_byte": at})
        assert len(raw(fake, session)) == at
    fake.control("faults", {"kind": "close", "wire_byte": 1 << 30})
    assert raw(fake, session).endswith(b"0\r\n\r\n")
    with pytest.raises(Broken, match="cut in a message"):
        decode(invoke(fake, session, kind="close", body_byte=50, then="end").body)
    fake.control("faults", {"kind": "close", "body_byte": 50, "then": "reset"})
    with pytest.raises(ConnectionResetError):
        raw(fake, session)


@pytest.mark.parametrize("of", ["prelude", "message"])
def test_a_checksum_is_wrong(fake: Fake, session: str, of: str) -> None:
    with pytest.raises(Broken, match=f"checksum of a {of}"):
        decode(invoke(fake, session, kind="crc", of=of).body)


def test_a_reply_is_slow(fake: Fake, session: str) -> None:
    began = time.monotonic()
    answer = invoke(fake, session, kind="slow", delay=0.3, piece=100, pause=0.05)
    assert time.monotonic() - began >= 0.3 + 0.05 * (len(answer.body) // 100)
    assert answer.result["structuredContent"]["exitCode"] == 0
    assert invoke(fake, session, kind="slow", piece=1).result["isError"] is False


def test_a_far_service_takes_a_round_trip_each_time_and_one_more_at_first(fake: Fake,
                                                                          session: str) -> None:
    target = f"/code-interpreters/aws.codeinterpreter.v1/sessions/get?sessionId={session}"
    fake.control("config", {"latency": 0.2})
    connection = http.client.HTTPConnection(*fake.address, timeout=60)
    try:
        for least in (0.4, 0.2):
            began = time.monotonic()
            connection.request("GET", target, headers=fake.signed("GET", target, None, {}))
            reply = connection.getresponse()
            assert (reply.status, bool(reply.read())) == (200, True)
            assert time.monotonic() - began >= least
    finally:
        connection.close()


def test_a_reply_stalls_until_the_client_leaves(fake: Fake, session: str) -> None:
    for fault in ({"body_byte": 20}, {"wire_byte": 100}, {}):
        fake.control("faults", {"kind": "stall", **fault})
        with pytest.raises(TimeoutError):
            raw(fake, session, timeout=0.5)
    assert runs(fake) == 3


def test_a_session_expires_under_a_request(fake: Fake, session: str) -> None:
    answer = invoke(fake, session, kind="expire")
    assert (answer.status, answer.json["message"]) == (
        400, f"Code interpreter session {session} is not active")
    assert fake.get(session).json["status"] == "TERMINATED"
    assert runs(fake) == 0


def test_a_reply_is_too_large(fake: Fake, session: str) -> None:
    refused = invoke(fake, session, kind="oversize")
    assert (refused.status, runs(fake)) == (400, 0)
    assert refused.json["message"].startswith("Response payload too large")
    large = invoke(fake, session, kind="oversize", bytes=30_000_000)
    assert len(large.result["structuredContent"]["stdout"]) == 30_000_000
    lie = invoke(fake, session, kind="oversize", announce=0xFFFFFFFF).body
    assert lie[:4] == b"\xff" * 4
    with pytest.raises(Broken, match="cut in a message"):
        decode(lie)


def test_members_and_headers_are_missing(fake: Fake, session: str) -> None:
    members = ["structuredContent.exitCode", "isError", "no.such"]
    result = invoke(fake, session, kind="missing", members=members).result
    assert "exitCode" not in result["structuredContent"] and "isError" not in result
    assert result["structuredContent"]["stdout"]
    fake.control("faults", {"kind": "missing", "operation": "StartCodeInterpreterSession",
                            "members": ["sessionId"]})
    assert set(fake.call("PUT", "/sessions/start", {}).json) == {"codeInterpreterIdentifier",
                                                                "createdAt"}
    assert SESSION_HEADER not in invoke(fake, session, kind="drop_header",
                                        header=SESSION_HEADER).headers


def test_a_result_is_rewritten(fake: Fake, session: str) -> None:
    told = invoke(fake, session, kind="rewrite", pattern='"exitCode":[0-9]+',
                  by='"exitCode":77').result
    assert told["structuredContent"]["exitCode"] == 77
    assert fake.invoke(session, "executeCommand", command="true").result["structuredContent"][
        "exitCode"] == 0


def test_messages_are_garbage_or_unknown(fake: Fake, session: str) -> None:
    [(_, payload)] = decode(invoke(fake, session, kind="garbage", payload="{no").body)
    assert payload == b"{no"
    types = [headers[":event-type"] for headers, _ in
             decode(invoke(fake, session, kind="unknown_event").body)]
    assert types == ["progress", "result"]
    [strange, _] = decode(invoke(fake, session, kind="unknown_event", message_type="gossip").body)
    assert strange[0][":message-type"] == "gossip"
    [(headers, _)] = decode(invoke(fake, session, kind="no_message_type").body)
    assert ":message-type" not in headers
    [(headers, payload)] = decode(invoke(fake, session, kind="error_message", code="Odd").body)
    assert (headers[":message-type"], headers[":error-code"], payload) == ("error", "Odd", b"")
    empty = invoke(fake, session, kind="empty")
    assert (empty.status, empty.body) == (200, b"")


def test_a_result_comes_in_two_events(fake: Fake, session: str) -> None:
    messages = decode(invoke(fake, session, kind="split_result").body)
    first, second = (json.loads(payload)["structuredContent"] for _, payload in messages)
    assert first["stdout"] + second["stdout"] == "run\r\n" and first["stdout"] != ""
    assert "exitCode" not in first and second["exitCode"] == 0


def test_a_fault_waits_for_its_request_and_is_used_up(fake: Fake, session: str) -> None:
    fake.control("faults", [{"kind": "http", "status": 500, "tool": "listFiles", "skip": 1,
                             "count": 2},
                            {"kind": "http", "status": 503, "count": None,
                             "operation": "GetCodeInterpreterSession"}])
    assert fake.invoke(session, "executeCommand", command="true").status == 200
    assert [fake.invoke(session, "listFiles").status for _ in range(4)] == [200, 500, 500, 200]
    assert [fake.get(session).status for _ in range(3)] == [503] * 3
    assert len(fake.control("faults", method="GET")) == 1
    assert fake.control("faults", method="DELETE") == []
    assert fake.get(session).status == 200


@pytest.mark.parametrize("name, value", [
    ("faults", {"kind": "nothing"}), ("faults", {"kind": "crc", "off": 1}),
    ("faults", {"kind": "http", "when": "never"}), ("config", {"colour": 1}), ("nowhere", {})])
def test_a_wrong_switch_is_refused(fake: Fake, name: str, value: dict) -> None:
    answer = fake.send("POST", f"/_fake/{name}", {}, json.dumps(value).encode())
    assert answer.status == 400 and answer.json["message"]
    assert fake.control("faults", method="GET") == []
