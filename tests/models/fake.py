#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three fake services of models, for tests: Anthropic, OpenAI-compatible, Bedrock.

The name of the model says which reply of shapes.py is given; the API follows from the path. Before
the path may stand switches, /s/NAME=VALUE,NAME=VALUE:

    id=TOKEN         requests are kept under it, for GET /kept/TOKEN, a list of JSON
    fail=STATUS      answer so, in the API's own form of errors; times=N: only the first N requests
                     with this id; after=SECONDS, after_ms=MS, after_date=SECONDS: retry-after;
                     type=NAME of the error; should=true|false: x-should-retry; echo=1: the message
                     repeats the key
    drop=N           the first N requests with this id: close without a word
    framing=chunked|length|close    how the end of a body is told; chunked
    cut=N            close after N bytes of the body; cut=count: as many as requests with this id
                     came before
    stall=N          after N bytes of the body, wait until the client goes
    piece=N          send N bytes at a time
    error_at=N       an error instead of event N, of this type=
    hang=1           the connection stays open after the body, without an end
    key=none         no key is wanted, and none may come
    token=none       no session token is wanted
    html=1           a web page; endless=1: a stream of comments without an end
    redirect=URL     a redirect
    unknown=MEMBER   refuse requests with this member by its name
    json=1           do not stream
    lines=, comments=, index=, ids=, args=, whole=, thoughts=, finish=, usage=, done=: see shapes.py

It prints one line of JSON, {"endpoint"}, and ends with its standard input.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterable
from urllib.parse import unquote

sys.dont_write_bytecode = True
import checks  # noqa: E402
import shapes  # noqa: E402

lock = threading.Lock()
kept: dict[str, list[dict[str, Any]]] = {}
counts: dict[str, int] = {}


def error_body(api: str, status: int, kind: str, message: str) -> bytes:
    """An error in an API's own form."""
    if api == "anthropic":
        body: Any = {"type": "error", "error": {"type": kind, "message": message},
                     "request_id": "req_1"}
    elif api == "openai":
        body = {"error": {"message": message, "type": "some_error", "param": None, "code": kind}}
    else:
        body = {"message": message}
    return json.dumps(body).encode()


KINDS = {400: ("invalid_request_error", "ValidationException"),
         401: ("authentication_error", "UnrecognizedClientException"),
         403: ("permission_error", "AccessDeniedException"),
         404: ("not_found_error", "ResourceNotFoundException"),
         429: ("rate_limit_error", "ThrottlingException"),
         529: ("overloaded_error", "ServiceUnavailableException")}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # The status line, the headers and the body are writes of their own.
    disable_nagle_algorithm = True
    switches: shapes.Switches = {}
    api = ""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        token = self.path.removeprefix("/kept/")
        with lock:
            body = json.dumps(kept.get(token, [])).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        path, self.switches = self.path, {}
        if path.startswith("/s/"):
            _, _, switches, rest = path.split("/", 3)
            path = "/" + rest
            self.switches = dict(part.split("=", 1) for part in unquote(switches).split(","))
        headers = {name.lower(): value for name, value in self.headers.items()}
        with lock:
            token = self.switches.get("id", "")
            counts[token] = counts.get(token, 0) + 1
            number = counts[token]
            if token:
                kept.setdefault(token, []).append(
                    {"path": path, "headers": headers, "body": json.loads(body)})
        if self.switches.get("cut") == "count":
            self.switches["cut"] = str(number - 1)
        self.answer(path, headers, body, number)

    def answer(self, path: str, headers: dict[str, str], body: bytes, number: int) -> None:
        """Choose the API, check the request, and reply."""
        if path == "/v1/messages":
            self.api = "anthropic"
        elif path.endswith("/chat/completions"):
            self.api = "openai"
        elif path.startswith("/model/") and path.endswith("/converse-stream"):
            self.api = "bedrock"
        else:
            self.plain(404, b"no such path")
            return
        if number <= int(self.switches.get("drop", "0")):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if "fail" in self.switches and number <= int(self.switches.get("times", "1000000")):
            self.fail(int(self.switches["fail"]))
            return
        try:
            model = self.check(path, headers, body)
        except (checks.Wrong, KeyError, TypeError, ValueError) as wrong:
            status = 401 if str(wrong) == "KEY" else 400
            self.refuse(status, KINDS[status][self.api == "bedrock"], f"{wrong}")
            return
        self.reply(model)

    def check(self, path: str, headers: dict[str, str], body: bytes) -> str:
        """The name of the model, if the request is right."""
        request = json.loads(body)
        unknown = self.switches.get("unknown")
        instead = {"max_tokens": " Use 'max_completion_tokens' instead."}.get(unknown or "", "")
        checks.demand(unknown not in request, f"Unsupported parameter: '{unknown}'.{instead}")
        if self.api == "anthropic":
            checks.anthropic(request, headers)
            return str(request["model"])
        if self.api == "openai":
            checks.openai(request, headers, self.switches.get("key") != "none")
            return str(request["model"])
        checks.bedrock(request)
        if not headers.get("authorization", "").startswith("AWS4-"):
            checks.demand(headers.get("authorization") == f"Bearer {checks.KEY}", "KEY")
        else:
            token = None if self.switches.get("token") == "none" else checks.AWS_TOKEN
            checks.aws_signature(self.path, headers, body, token)
        name = path.removeprefix("/model/").removesuffix("/converse-stream")
        checks.demand("/" not in name and ":" not in name, "the name is not encoded")
        return unquote(name).rsplit("/", 1)[-1].rsplit(":", 1)[-1]

    # ---- replies that are no stream ----

    def plain(self, status: int, body: bytes, **headers: str) -> None:
        """A whole reply."""
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, kind: str, message: str, **headers: str) -> None:
        """An error in the API's form."""
        if self.api == "bedrock":
            headers["x_amzn_errortype"] = kind + ":http://internal.amazon.com/coral/"
            headers["x_amzn_requestid"] = "aws-req-1"
        headers["request_id"] = "req_1"
        self.plain(status, error_body(self.api, status, kind, message), **headers)

    def fail(self, status: int) -> None:
        """The failure that was asked for."""
        kinds = KINDS.get(status, ("api_error", "InternalServerException"))
        headers = {}
        if "after" in self.switches:
            headers["retry_after"] = self.switches["after"]
        if "after_ms" in self.switches:
            headers["retry_after_ms"] = self.switches["after_ms"]
        if "after_date" in self.switches:
            headers["retry_after"] = formatdate(time.time() + float(self.switches["after_date"]),
                                                usegmt=True)
        if "should" in self.switches:
            headers["x_should_retry"] = self.switches["should"]
        message = "It was asked for"
        if self.switches.get("echo"):
            sent = [self.headers.get(name) for name in ("x-amz-security-token", "authorization")]
            message = f"Wrong key {' '.join(filter(None, sent))}!"
        self.refuse(status, self.switches.get("type", kinds[self.api == "bedrock"]), message,
                    **headers)

    # ---- streams ----

    def reply(self, model: str) -> None:
        """What the model says."""
        if "redirect" in self.switches:
            self.plain(307, b"", location=unquote(self.switches["redirect"]))
        elif self.switches.get("html"):
            self.plain(200, b"<!DOCTYPE html><p>Welcome", content_type="text/html; charset=utf-8")
        elif self.switches.get("json"):
            self.plain(200, shapes.openai_whole(model), x_request_id="req_1")
        elif self.switches.get("endless"):
            self.stream(iter(lambda: b": nothing\n" * 1000, b""))
        else:
            make = {"anthropic": shapes.anthropic, "openai": shapes.openai,
                    "bedrock": shapes.bedrock}[self.api]
            self.stream(make(model, self.switches))

    def stream(self, events: Iterable[bytes]) -> None:
        """Send events as the switches say."""
        framing = self.switches.get("framing", "chunked")
        kind = "application/vnd.amazon.eventstream" if self.api == "bedrock" else "text/event-stream"
        if framing == "length" or "piece" in self.switches or "cut" in self.switches:
            whole = b"".join(events)
            size = int(self.switches.get("piece", str(max(len(whole), 1))))
            events = [whole[at:at + size] for at in range(0, len(whole), size)]
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("request-id" if self.api == "anthropic" else "x-request-id"
                         if self.api == "openai" else "x-amzn-requestid", "req_1")
        if framing == "chunked":
            self.send_header("transfer-encoding", "chunked")
        elif framing == "length":
            self.send_header("content-length", str(len(whole)))
        else:
            self.close_connection = True
            self.send_header("connection", "close")
        self.end_headers()
        self.send_events(events, framing == "chunked")

    def send_events(self, events: Iterable[bytes], chunked: bool) -> None:
        left = int(self.switches.get("cut", self.switches.get("stall", str(1 << 60))))
        try:
            for event in events:
                part = event[:left]
                left -= len(part)
                if part:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
                if left == 0:
                    break
            if left == 0 and "stall" in self.switches or self.switches.get("hang"):
                self.connection.recv(1)
            if left == 0 or self.switches.get("hang"):
                self.close_connection = True
            elif chunked:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:  # the client has gone
            self.close_connection = True


class Server(ThreadingHTTPServer):
    """Many connections at once, none of which it waits for in the end."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go at any moment; that is what tests are for."""


def main() -> None:
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"endpoint": f"http://127.0.0.1:{server.server_address[1]}"}), flush=True)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
