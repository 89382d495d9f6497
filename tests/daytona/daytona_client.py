# SPDX-License-Identifier: Apache-2.0
"""
What a test needs to talk to the fake: start it, ask it, take its replies apart. The reader of
multipart and the splitter of logs are written from the format, apart from the fake's own.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Iterator
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

import pytest

FAKE = Path(__file__).parent / "fake.py"
KEY = "dtn_fake_key"
HEADERS = {"Authorization": "Bearer " + KEY, "X-Daytona-Source": "test",
           "X-Daytona-SDK-Version": "0.218.0", "User-Agent": "test/1", "Accept": "*/*"}
DISPOSITION = r'form-data; name="(\w+)"; filename=".*"; filename\*=utf-8\'\'(.*)'

# What was recorded of the service's own clients and handlers; not part of a checkout.
WIRE = Path(os.environ.get("PINFOLD_WIRE", FAKE.parents[3] / "shared/wire")) / "daytona/recorded"
NEEDS_WIRE = pytest.mark.skipif(not WIRE.is_dir(), reason="the recordings are not here")


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.02)


def is_alive(pid: str | int) -> bool:
    """A zombie is dead."""
    try:
        return ") Z" not in Path("/proc", str(pid).strip(), "stat").read_text()
    except OSError:
        return False


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return self.json["message"]


@dataclass
class Part:
    """One file or error of a bulk download."""

    name: str
    path: str
    headers: dict
    data: bytes


def parts(body: bytes) -> list[Part]:
    """The parts of a bulk download, by their own lengths: contents may look like a boundary."""
    found, mark = [], b"--DAYTONA-FILE-BOUNDARY"
    assert body.startswith(mark)
    while not body.startswith(mark + b"--\r\n"):
        head, body = body.removeprefix(mark + b"\r\n").split(b"\r\n\r\n", 1)
        headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
        size = int(headers.get("Content-Length", body.find(b"\r\n" + mark)))
        named = re.fullmatch(DISPOSITION, headers["Content-Disposition"])
        found.append(Part(named[1], unquote(named[2]), headers, body[:size]))
        body = body[size:].removeprefix(b"\r\n")
    return found


def form(files: list[tuple[str, bytes]], boundary: str = "b0unD") -> tuple[str, bytes]:
    """The content type and body of a bulk upload."""
    body = b""
    for at, (path, data) in enumerate(files):
        for what, more, value in (("path", "", path.encode()),
                                  ("file", '; filename="f"', data)):
            body += (f'--{boundary}\r\nContent-Disposition: form-data; name="files[{at}].{what}"'
                     f"{more}\r\n\r\n").encode() + value + b"\r\n"
    return f"multipart/form-data; boundary={boundary}", body + f"--{boundary}--\r\n".encode()


@dataclass
class Fake:
    """A running fake, and a client of it."""

    process: subprocess.Popen
    endpoint: str
    directory: Path
    headers: dict = field(default_factory=lambda: dict(HEADERS))
    sandbox: str = ""
    connection: http.client.HTTPConnection | None = None

    @property
    def address(self) -> tuple[str, int]:
        split = urlsplit(self.endpoint)
        return split.hostname, split.port

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.address, timeout=120)

    def send(self, method: str, target: str, body: bytes | Iterator[bytes] | None = None,
             headers: dict | None = None) -> Answer:
        connection = self.connection or self.connect()
        self.connection = None
        named = self.headers if headers is None else headers
        chunked = body is not None and not isinstance(body, bytes)
        connection.request(method, target, body=body, headers=named, encode_chunked=chunked)
        reply = connection.getresponse()
        answer = Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()},
                        reply.read())
        self.connection = connection
        return answer

    def control(self, name: str, value: object = None, method: str = "POST"):
        body = None if value is None else json.dumps(value).encode()
        answer = self.send(method, f"/_fake/{name}", body, {})
        assert answer.status == 200, answer.body
        if answer.headers["content-type"] == "application/jsonl":
            return [json.loads(line) for line in answer.body.splitlines()]
        return answer.json

    def fault(self, kind: str, operation: str, **more: object) -> None:
        self.control("faults", {"kind": kind, "operation": operation, **more})

    def complaints(self) -> list[str]:
        """What the fake complains of; from now on it does not."""
        found = self.control("complaints", method="GET")
        self.control("complaints", method="DELETE")
        return [one["complaint"] for one in found]

    def ask(self, method: str, target: str, value: object = None, /,
            **query: str) -> Answer:
        """One request with JSON."""
        body = None if value is None else json.dumps(value).encode()
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        more = "?" + urlencode(query, quote_via=quote_plus) if query else ""
        return self.send(method, target + more, body, headers)

    def api(self, method: str, path: str, value: object = None, /,
            **query: str) -> Answer:
        return self.ask(method, "/api/" + path, value, **query)

    def tool(self, method: str, path: str, value: object = None, /,
            **query: str) -> Answer:
        return self.ask(method, f"/toolbox/{self.sandbox}/{path}", value, **query)

    def create(self, **body: object) -> str:
        """A sandbox that is started; the one that tool() speaks to from now on."""
        answer = self.api("POST", "sandbox", {"labels": {}, "env": {}, **body})
        assert answer.status == 200, answer.body
        self.sandbox = answer.json["id"]
        wait_until(lambda: self.api("GET", f"sandbox/{self.sandbox}").json["state"] == "started")
        return self.sandbox

    @property
    def home(self) -> Path:
        return Path(self.tool("GET", "work-dir").json["dir"])

    def execute(self, command: str, **more: object) -> dict:
        answer = self.tool("POST", "process/execute", {"command": command, **more})
        assert answer.status == 200, answer.body
        return answer.json

    def session(self) -> str:
        name = str(uuid.uuid4())
        assert self.tool("POST", "process/session", {"sessionId": name}).status == 201
        return name

    def run(self, session: str, command: str) -> str:
        """Start a command of a session; its id."""
        answer = self.tool("POST", f"process/session/{session}/exec",
                           {"command": command, "runAsync": True})
        assert answer.status == 202, answer.body
        return answer.json["cmdId"]

    def code(self, session: str, command: str) -> int | None:
        answer = self.tool("GET", f"process/session/{session}/command/{command}")
        assert answer.status == 200, answer.body
        return answer.json.get("exitCode")

    def logs(self, session: str, command: str) -> dict:
        return self.tool("GET", f"process/session/{session}/command/{command}/logs").json

    def wait(self, session: str, command: str) -> tuple[int, str, str]:
        """The exit code, and what came on both streams."""
        wait_until(lambda: self.code(session, command) is not None)
        told = self.logs(session, command)
        return self.code(session, command), told["stdout"], told["stderr"]

    def upload(self, *files: tuple[str, bytes]) -> Answer:
        kind, body = form(list(files))
        return self.send("POST", f"/toolbox/{self.sandbox}/files/bulk-upload", body,
                         {**self.headers, "Content-Type": kind})

    def download(self, *paths: str) -> list[Part]:
        answer = self.tool("POST", "files/bulk-download", {"paths": list(paths)})
        assert answer.status == 200, answer.body
        return parts(answer.body)


def start_fake(directory: Path, *options: str, before: tuple[str, ...] = ()) -> Fake:
    """before: words of the command line that starts it."""
    process = subprocess.Popen(
        [*before, sys.executable, "-B", str(FAKE), "--leash", "--directory", str(directory),
         *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = json.loads(process.stdout.readline())
    return Fake(process, told["endpoint"], Path(told["directory"]))


def end_fake(fake: Fake) -> tuple[int, str]:
    """Let go of its leash; the exit status, and what it complained of."""
    fake.process.stdin.close()
    try:
        said = fake.process.stderr.read()
        return fake.process.wait(timeout=60), said
    finally:
        fake.process.kill()
        fake.process.wait()
        fake.process.stdout.close()
        fake.process.stderr.close()
