# SPDX-License-Identifier: Apache-2.0
"""The fake verifies signatures: all that were recorded from AWS's own clients, and no other."""

import json
import socket
import time
from datetime import datetime, timedelta, timezone

import botocore.session
import pytest
from botocore.config import Config

from client import KEY, NEEDS_WIRE, SECRET, SESSION_HEADER, WIRE, Fake
from fake import CONFIG
from service.errors import ServiceError
from service.signature import verify
from service.web import BadRequest, Request, parse_head

# Covered by no signature: what a proxy on the way may change.
UNSIGNED = {"user-agent", "connection", "accept-encoding", "amz-sdk-invocation-id",
            "amz-sdk-request", "content-length", "x-amzn-trace-id"}


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
    paths = [recorded["requestLine"].split(" ")[1].split("?")[0] for _, recorded in RECORDED]
    assert {path.rpartition("/")[2] for path in paths} == {"start", "stop", "get", "list", "invoke"}


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


def test_another_request_than_was_signed_is_refused(fake: Fake) -> None:
    base = "/code-interpreters/aws.codeinterpreter.v1/sessions"
    signed = fake.signed("POST", f"{base}/list", b"{}", {"content-type": "application/json"})
    for method, path, body in (("POST", f"{base}/list", b"{ }"), ("POST", f"{base}/list?a=b", b"{}"),
                               ("PUT", f"{base}/start", b"{}")):
        answer = fake.send(method, path, signed, body)
        assert (answer.status, answer.error) == (403, "InvalidSignatureException")
    assert fake.send("POST", f"{base}/list", signed, b"{}").status == 200
    assert fake.control("sessions", method="GET") == []


def test_a_header_that_matters_must_be_signed(fake: Fake) -> None:
    session = fake.start()
    body = b'{"name":"listFiles"}'
    path = "/code-interpreters/aws.codeinterpreter.v1/tools/invoke"
    signed = fake.signed("POST", path, body, {"content-type": "application/json"})
    answer = fake.send("POST", path, {**signed, SESSION_HEADER: session}, body)
    assert answer.error == "InvalidSignatureException"
    assert SESSION_HEADER in answer.json["message"]


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
