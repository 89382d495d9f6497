# SPDX-License-Identifier: Apache-2.0
"""A small client of the Model Context Protocol over stdio, which can also misbehave."""

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from owners import BUILD

LATEST = "2025-11-25"
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST]
PATIENCE = 150  # seconds, for a machine that is busy, and for a service that takes two minutes


class Failure(Exception):
    """An error of JSON-RPC."""

    def __init__(self, error: dict[str, Any]):
        super().__init__(error["message"])
        self.code = error["code"]


class Client:
    """One server, and the only client that it has."""

    def __init__(self, *options: Any, version: str = LATEST, capabilities: dict | None = None,
                 handshake: bool = True, roots: list[str] | None = None, **popen: Any):
        self.process = subprocess.Popen(
            [BUILD / "pinfold", "mcp", *map(str, options)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)
        self.last_id = 0
        self.roots = roots
        self.inbox: queue.Queue[Any] = queue.Queue()
        self.notifications: list[dict[str, Any]] = []
        self.errors = b""
        self.threads = [threading.Thread(target=self._read, daemon=True),
                        threading.Thread(target=self._read_errors, daemon=True)]
        for thread in self.threads:
            thread.start()
        if handshake:
            if roots is not None:
                capabilities = {"roots": {}, **(capabilities or {})}
            self.hello = self.request("initialize", protocolVersion=version,
                                      capabilities=capabilities or {},
                                      clientInfo={"name": "test", "version": "1"})
            self.notify("notifications/initialized")

    def _read(self) -> None:
        try:
            self._take_messages()
        finally:  # whoever waits for an answer waits no longer, whatever came
            self.inbox.put(None)

    def _take_messages(self) -> None:
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                return  # it was killed in the middle of one
            message = json.loads(line)  # stdout has messages and nothing else
            if isinstance(message, dict) and message.get("method") == "roots/list":
                if self.roots is None:  # it has some, and does not tell
                    continue
                self.send({"jsonrpc": "2.0", "id": message["id"],
                           "result": {"roots": [{"uri": uri} for uri in self.roots]}})
            else:
                self.inbox.put(message)

    def _read_errors(self) -> None:
        self.errors = self.process.stderr.read()

    def send_bytes(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def receive(self) -> Any:
        """The next message; None when there are no more."""
        return self.inbox.get(timeout=PATIENCE)

    def begin(self, method: str, **params: Any) -> int:
        self.last_id += 1
        self.send({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
        return self.last_id

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply_to(self, wanted: Any) -> dict[str, Any]:
        """The reply to one request; what comes before it is kept, or must be a notification."""
        while True:
            message = self.receive()
            assert message is not None, "the server has ended"
            if "method" in message:
                self.notifications.append(message)
                continue
            assert message["id"] == wanted, message
            return message

    def request(self, method: str, **params: Any) -> Any:
        reply = self.reply_to(self.begin(method, **params))
        if "error" in reply:
            raise Failure(reply["error"])
        return reply["result"]

    def call(self, name: str, **arguments: Any) -> "Result":
        return Result(self.request("tools/call", name=name, arguments=arguments))

    def begin_call(self, tool: str, meta: dict | None = None, **arguments: Any) -> int:
        params = {"name": tool, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        return self.begin("tools/call", **params)

    def finish(self) -> int:
        """Close stdin, and wait for the end. Returns the exit status."""
        self.process.stdin.close()
        status = self.process.wait(timeout=PATIENCE)
        for thread in self.threads:
            thread.join(timeout=PATIENCE)
        return status

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind or self.process.stdin.closed:
            self.process.kill()
            self.process.wait()
        else:
            assert self.finish() == 0, self.errors
        for stream in self.process.stdin, self.process.stdout, self.process.stderr:
            try:
                stream.close()
            except OSError:  # what could not be written any more
                pass


class Result:
    """What a tool gave."""

    def __init__(self, result: dict[str, Any]):
        self.raw = result
        self.is_error = result["isError"]
        self.content = result["content"]
        self.text = "\n".join(block.get("text", "") for block in self.content)
        self.data = result.get("structuredContent", {})


def processes_with(mark: str) -> list[str]:
    """The processes whose command line has a text in it, in whatever namespace they are."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it is gone
            continue
        if mark in command:
            found.append(f"{process.name}: {command}")
    return found
