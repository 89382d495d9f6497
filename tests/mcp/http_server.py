# SPDX-License-Identifier: Apache-2.0
"""A server over HTTP, and a client of our own that can say everything, wrong things too."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Iterator

from client import PATIENCE
from owners import BUILD

NEWEST = "2025-11-25"


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll for something that happens soon; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Answer:
    """A response, whose body is read when it is asked for."""

    def __init__(self, connection: "Connection"):
        self.connection = connection
        line = connection.line()
        assert line.startswith("HTTP/1.1 "), line
        self.status = int(line.split()[1])
        self.headers: dict[str, str] = {}
        while line := connection.line():
            name, value = line.split(":", 1)
            self.headers[name.lower()] = value.strip()

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.connection.line(), 16):
            yield self.connection.exactly(size)
            assert self.connection.line() == ""
        assert self.connection.line() == ""

    @property
    def body(self) -> bytes:
        if "transfer-encoding" in self.headers:
            return b"".join(self._chunks())
        return self.connection.exactly(int(self.headers.get("content-length", 0)))

    def events(self) -> Iterator[tuple[str, Any]]:
        """The id and the message of each event, as they come; None for one without a message."""
        assert self.headers["content-type"] == "text/event-stream"
        text = b""
        for chunk in self._chunks():
            text += chunk
            while b"\n\n" in text:
                event, text = text.split(b"\n\n", 1)
                fields = dict(line.split(": ", 1) if ": " in line else (line.rstrip(": "), "")
                              for line in event.decode().split("\n") if not line.startswith(":"))
                if fields:
                    yield fields["id"], json.loads(fields["data"]) if fields["data"] else None

    def message(self) -> Any:
        """The one message of a response, of whatever kind it is."""
        if self.headers["content-type"] == "application/json":
            return json.loads(self.body)
        return [message for _, message in self.events() if message and "method" not in message][-1]


class Connection:
    """One connection, byte by byte."""

    def __init__(self, server: "Server"):
        self.socket = socket.create_connection(server.address, timeout=PATIENCE)
        self.server, self.text = server, b""

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: Any) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def more(self) -> bool:
        data = self.socket.recv(65536)
        self.text += data
        return bool(data)

    def line(self) -> str:
        while b"\r\n" not in self.text:
            assert self.more(), f"the connection ended after {self.text!r}"
        line, self.text = self.text.split(b"\r\n", 1)
        return line.decode()

    def exactly(self, size: int) -> bytes:
        while len(self.text) < size:
            assert self.more(), "the connection ended in a body"
        data, self.text = self.text[:size], self.text[size:]
        return data

    def ended(self) -> bool:
        """Whether the server has closed it, whatever it has said before."""
        try:
            while self.more():
                pass
        except ConnectionResetError:
            pass
        return True

    def ask(self, method: str = "POST", body: bytes | None = None, path: str = "/mcp",
            **headers: str | None) -> Answer:
        """Send a request with the usual headers, except those that are given; None leaves one out.
        """
        usual = {"host": "127.0.0.1", "authorization": f"Bearer {self.server.token}",
                 "accept": "application/json, text/event-stream"}
        if body is not None:
            usual |= {"content-type": "application/json", "content-length": str(len(body))}
        for name, value in headers.items():
            usual[name.replace("_", "-")] = value
        lines = [f"{method} {path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in usual.items() if value is not None]
        self.send("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        return Answer(self)


class Client:
    """A client with a session. Each request has a connection of its own."""

    def __init__(self, server: "Server", token: str | None = None, version: str = NEWEST):
        self.server, self.token, self.ids = server, token or server.token, 0
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}, session=None)
        assert answer.status == 200, answer.body
        self.session = answer.headers["mcp-session-id"]
        assert answer.message()["result"]["protocolVersion"] == version
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    def ask(self, method: str, connection: Connection | None = None, body: bytes | None = None,
            **headers: str | None) -> Answer:
        headers.setdefault("mcp_session_id", getattr(self, "session", None))
        return (connection or Connection(self.server)).ask(
            method, body, authorization=f"Bearer {self.token}", **headers)

    def post(self, message: Any, connection: Connection | None = None,
             session: str | None = "own", **headers: str | None) -> Answer:
        if session != "own":
            headers["mcp_session_id"] = session
        return self.ask("POST", connection, json.dumps(message).encode(), **headers)

    def request(self, method: str, connection: Connection | None = None,
                **params: Any) -> Answer:
        self.ids += 1
        return self.post({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params},
                         connection)

    def call(self, tool: str, connection: Connection | None = None, **arguments: Any) -> Answer:
        return self.request("tools/call", connection, name=tool, arguments=arguments)

    def run(self, command: str) -> dict[str, Any]:
        """What a command printed, and how it ended."""
        return self.call("execute", command=command).message()["result"]["structuredContent"]


class Server:
    """pinfold mcp --http; its programs and files end with it."""

    def __init__(self, place: Path, *args: Any, env: dict[str, str] | None = None):
        self.place = place
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PINFOLD_", "XDG_"))}
        self.process = subprocess.Popen(
            [str(BUILD / "pinfold"), "mcp", "--http", "127.0.0.1:0", *map(str, args)], cwd=place,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", env={**clean, "HOME": str(place), **(env or {})})
        self.tokens: dict[str, str] = {}
        self.said = ""

    def __enter__(self) -> "Server":
        assert self.process.stdout
        listening = self.process.stdout.readline()
        assert listening.startswith("listening http://127.0.0.1:"), self.process.communicate()
        self.url = listening.split()[1]
        self.address = ("127.0.0.1", int(self.url.split(":")[2].split("/")[0]))
        return self

    def learn(self, count: int = 1) -> "Server":
        """Read so many tokens that were made."""
        assert self.process.stdout
        for _ in range(count):
            _, name, _, token = self.process.stdout.readline().split()
            self.tokens[name] = token
        return self

    @property
    def token(self) -> str:
        return next(iter(self.tokens.values()), "none-is-known-here")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it; returns its exit status, and keeps what it said."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        self.said += said
        return self.process.returncode

    def __exit__(self, *_: Any) -> None:
        try:
            status = self.stop()
        except BaseException:
            self.process.kill()
            self.process.communicate()
            raise
        assert status in (0, -signal.SIGKILL), self.said
