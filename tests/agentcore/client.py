# SPDX-License-Identifier: Apache-2.0
"""
What a test needs to talk to the fake: start it, sign a request, read the messages of a reply.
The reader of event streams is written from the format, apart from the fake's writer.
"""

import http.client
import json
import os
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Callable
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

FAKE = Path(__file__).parent / "fake.py"
KEY = "AKIAFAKEFAKEFAKEFAKE"
SECRET = "fakeSecretKey/Example+0123456789ABCDEFGH"
SESSION_HEADER = "x-amzn-code-interpreter-session-id"
BASE = "/code-interpreters/aws.codeinterpreter.v1"


# What was recorded of the service's own clients and replies; not part of a checkout.
WIRE = Path(os.environ.get("PINFOLD_WIRE", FAKE.parents[3] / "shared/wire")) / "agentcore"
NEEDS_WIRE = pytest.mark.skipif(not WIRE.is_dir(), reason="the recordings are not here")


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


def is_alive(pid: str) -> bool:
    return Path("/proc", pid.strip()).exists()


class Broken(Exception):
    """A reply that is no whole event stream."""


def decode(body: bytes) -> list[tuple[dict, bytes]]:
    """The messages: headers and payload of each."""
    messages = []
    while body:
        if len(body) < 16:
            raise Broken("cut in a prelude")
        total, head = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
        if zlib.crc32(body[:8]) != int.from_bytes(body[8:12], "big"):
            raise Broken("checksum of a prelude")
        if len(body) < total:
            raise Broken("cut in a message")
        if zlib.crc32(body[:total - 4]) != int.from_bytes(body[total - 4:total], "big"):
            raise Broken("checksum of a message")
        messages.append((decode_headers(body[12:12 + head]), body[12 + head:total - 4]))
        body = body[total:]
    return messages


def decode_headers(packed: bytes) -> dict:
    headers = {}
    while packed:
        name_end = 1 + packed[0]
        assert packed[name_end] == 7, "the service sends strings"
        size = int.from_bytes(packed[name_end + 1:name_end + 3], "big")
        headers[packed[1:name_end].decode()] = packed[name_end + 3:name_end + 3 + size].decode()
        packed = packed[name_end + 3 + size:]
    return headers


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def error(self) -> str | None:
        return self.headers.get("x-amzn-errortype")

    @property
    def result(self) -> dict:
        """The one result of an honest reply."""
        assert self.status == 200, (self.status, self.body)
        [(headers, payload)] = decode(self.body)
        assert headers == {":event-type": "result", ":content-type": "application/json",
                           ":message-type": "event"}
        return json.loads(payload)


@dataclass
class Fake:
    """A running fake, and a client of it."""

    process: subprocess.Popen
    endpoint: str
    directory: Path
    key: str = KEY
    token: str | None = None
    skew: timedelta = field(default_factory=timedelta)

    @property
    def address(self) -> tuple[str, int]:
        split = urlsplit(self.endpoint)
        return split.hostname, split.port

    def send(self, method: str, target: str, headers: dict, body: bytes | None) -> Answer:
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request(method, target, body=body, headers=headers)
            reply = connection.getresponse()
            return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()},
                          reply.read())
        finally:
            connection.close()

    def control(self, name: str, value: object = None, method: str = "POST") -> object:
        body = None if value is None else json.dumps(value).encode()
        answer = self.send(method, f"/_fake/{name}", {}, body)
        assert answer.status == 200, answer.body
        if answer.headers["content-type"] == "application/jsonl":
            return [json.loads(line) for line in answer.body.splitlines()]
        return answer.json

    def signed(self, method: str, target: str, body: bytes | None, headers: dict) -> dict:
        """The headers with those of the signature, at our clock."""
        request = AWSRequest(method=method, url=self.endpoint + target, data=body, headers=headers)
        signer = SigV4Auth(Credentials(self.key, SECRET, self.token), "bedrock-agentcore",
                           "us-west-2")
        now = datetime.now(timezone.utc) + self.skew
        request.context["timestamp"] = now.strftime("%Y%m%dT%H%M%SZ")
        request.headers["X-Amz-Date"] = request.context["timestamp"]
        if self.token:
            request.headers["X-Amz-Security-Token"] = self.token
        text = signer.string_to_sign(request, signer.canonical_request(request))
        names = signer.signed_headers(signer.headers_to_sign(request))
        request.headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={names}, "
            f"Signature={signer.signature(text, request)}")
        return dict(request.headers.items())

    def call(self, method: str, path: str, body: dict | None = None, base: str = BASE,
             **headers: str) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            named = {"content-type": "application/json", **named}
        signed = self.signed(method, base + path, data, named)
        return self.send(method, base + path, signed, data)

    def start(self, **body: object) -> str:
        answer = self.call("PUT", "/sessions/start", body)
        assert answer.status == 200, answer.body
        return answer.json["sessionId"]

    def stop(self, session: str, **body: object) -> Answer:
        return self.call("PUT", f"/sessions/stop?sessionId={session}", body)

    def get(self, session: str) -> Answer:
        return self.call("GET", f"/sessions/get?sessionId={session}")

    def invoke(self, session: str, tool: str, **arguments: object) -> Answer:
        return self.call("POST", "/tools/invoke", {"name": tool, "arguments": arguments},
                         **{SESSION_HEADER: session})


def start_fake(directory: Path, *options: str, before: tuple[str, ...] = ()) -> Fake:
    """before: words of the command line that starts it."""
    process = subprocess.Popen(
        [*before, sys.executable, "-B", str(FAKE), "--leash", "--directory", str(directory),
         *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    told = json.loads(process.stdout.readline())
    return Fake(process, told["endpoint"], Path(told["directory"]))


def end_fake(fake: Fake) -> int:
    """Let go of its leash; the exit status."""
    fake.process.stdin.close()
    try:
        return fake.process.wait(timeout=60)
    finally:
        fake.process.kill()
        fake.process.stdout.close()
