#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
A fake AWS Bedrock AgentCore code interpreter, for tests: a process of its own that speaks HTTP/1.1
and real event streams on a loopback port chosen by the kernel, verifies the signature of every
request with AWS's own signer (Debian: python3-botocore), refuses what the service refuses, and
really runs the commands, each session in a directory of its own. It is no sandbox: the commands run
as whoever started it.

By hand:

    python3 tests/agentcore/fake.py [--port N] [--directory DIR] [--log FILE] [--leash]

It prints one line of JSON, {"endpoint", "directory"}, and serves until SIGTERM or SIGINT; then no
process and no file of it is left. --leash: it also ends with its standard input, so that it cannot
outlive a test that was killed. --log: every request, as lines of JSON. A client needs

    AWS_ENDPOINT_URL_BEDROCK_AGENTCORE=http://127.0.0.1:PORT  AWS_REGION=us-west-2
    AWS_ACCESS_KEY_ID=AKIAFAKEFAKEFAKEFAKE
    AWS_SECRET_ACCESS_KEY=fakeSecretKey/Example+0123456789ABCDEFGH

Control, unsigned, JSON both ways:

    GET  /_fake/requests[?since=N]  lines of JSON, one for each request that was answered: n,
         operation, tool, session, method, target, headers, body (null when over 64 KiB), length,
         sha256, signature (ok, or the name of the error), status, error, fault, ran: whether a tool
         was run for it. A reply is sent after its line is there.
    GET  /_fake/counts    {"requests": {operation: n}, "tools": {tool: n}, "ran": {tool: n}}
    GET  /_fake/sessions  [{"sessionId", "status", "directory", "calls"}]
    GET  /_fake/working   how many requests are being answered and tasks are not ended
    POST /_fake/config    set some of CONFIG below; GET shows all
    POST /_fake/faults    one fault or a list; GET shows those that wait, DELETE drops them
    POST /_fake/expire    {"sessionId"?}: end this session or all, as their lifetime would
    POST /_fake/reset     sessions, requests, faults and config as at the start

A fault is {"kind", "operation"?, "tool"?, "skip"?: requests to let pass first, "count"?: how many
to spoil (1; null: all from now on), "when"?: "before" or "after" the tool ran}, and by kind:

    http           error, status, message, retry_after (seconds), x_amz_retry_after (ms), html, body
                   (raw). Throttle: {"kind":"http","error":"ThrottlingException"}. Before by default
    exception      in the stream: exception (throttlingException), message, empty; after_result: the
                   result comes first
    error_message  in the stream: code, message
    close          the connection ends without a reply, or after body_byte bytes of the body, or
                   wire_byte of the whole reply; then: "close", "reset", or "end": chunks that end
                   properly around a body that does not
    stall          the same, but the connection stays open, and silent
    slow           delay: seconds before the reply; piece: bytes in one chunk; pause: seconds
                   between them
    crc            of: "message" or "prelude"
    garbage        payload: instead of the JSON
    missing        members: left out, such as ["structuredContent.exitCode"]
    rewrite        pattern, by: a regular expression is replaced all over the compact JSON
    unknown_event  event (progress), message_type (event): a message before the result
    no_message_type, split_result (over two events), empty (no event at all)
    oversize       the error "Response payload too large"; or bytes: so long a stdout; or announce:
                   a frame that says so long a length of itself
    drop_header    header: not in the reply
    expire         the session ends before the request is looked at

Where the published facts are silent the fake does what it says here: unknown members of a body are
refused; a session that never was is a ResourceNotFoundException (404), one that ended the
ValidationException (400) "is not active"; stopping twice is that too, unless the token is the same;
a tool that fails says so with HTTP 200 and isError; getTask tells what was printed so far, merged
like the output of executeCommand; the calls of a client that hung up run on until the session ends.
/tmp is the machine's own; what pinfold's wrappers left there goes when the session ends.
"""

import argparse
import hashlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.append(str(Path(__file__).resolve().parents[1]))

from faked import Answering, BadRequest, listen, serve  # noqa: E402
from service import faults  # noqa: E402
from service.errors import ServiceError  # noqa: E402
from service.operations import SESSION_HEADER, Call, Service, parse, route  # noqa: E402
from service.web import Connection, Reply, Request  # noqa: E402

try:
    from service.signature import verify
except ModuleNotFoundError as missing:
    sys.exit(f"fake.py: {missing}; its signer is Debian's python3-botocore: tools/deps test, and "
             "/usr/bin/python3")

SECRET = "fakeSecretKey/Example+0123456789ABCDEFGH"
CONFIG = {
    "latency": 0,  # seconds that a round trip takes; a connection begins with one more
    "clock_offset": 0,  # seconds that the service's clock is ahead
    "skew_error": "InvalidSignatureException",  # what more than five minutes of difference give
    # Who may sign; a key with a token is a temporary one, "expires" (epoch) ends it.
    "credentials": [
        {"key": "AKIAFAKEFAKEFAKEFAKE", "secret": SECRET},
        {"key": "ASIAFAKEFAKEFAKEFAKE", "secret": SECRET,
         "token": "FakeSessionToken//////////wEaCXVzLWVhc3QtMSJHMEUCIQD+fake=="},
        {"key": "ASIAFAKEFAKEFAKEFAKE", "secret": SECRET,
         "token": "FakeSessionToken//////////wEaCXVz+fake=="},
    ],
    "long_command": "hang",  # of 128 KiB and more: hang, run (executeCommand alone), or refuse
    "nonzero_is_error": True,  # isError of a command that did not exit with 0
    "path": "/usr/local/bin:/usr/bin:/bin",  # where commands look for programs
    "strip_last_newline": False,  # of what a command printed
    "command_seconds": 900,  # of executeCode and executeCommand; the rest is killed
    "calls_per_session": 10,  # at once
    "session_limit": 1000,
    "requests_per_second": 0,  # of one operation; the service: 30; 0: as many as come
    "request_limit": 100_000_000,  # bytes of a body
    "payload_limit": 100_000_000,  # bytes that a command may print
    "read_limit": 36 << 20,  # bytes of all files of one readFiles
}
SHOWN_BODY = 64 * 1024


class Fake:
    def __init__(self, root: Path, log: Path | None) -> None:
        self.config = json.loads(json.dumps(CONFIG))
        self.service = Service(root, self.config)
        self.faults = faults.Faults()
        self.records: list[dict] = []
        self.log = log
        self.lock = threading.Lock()
        self.answering = Answering()

    def serve(self, peer: socket.socket) -> None:
        """One connection, to its end."""
        with peer:
            connection = Connection(peer, 2 * self.config["request_limit"])
            trips = 2  # the first request comes after a handshake
            try:
                while request := connection.receive():
                    if request.target.startswith("/_fake/"):
                        reply = self.control(request)
                    else:
                        time.sleep(trips * self.config["latency"])
                        trips = 1
                        with self.answering:
                            reply = self.answer(request, connection)
                    if not connection.send(reply):
                        return
            except BadRequest as why:
                error = ServiceError("SerializationException", str(why), 400)
                headers = [*self.headers(None), ("connection", "close")]
                connection.send(faults.error_reply(error, headers))
            except OSError:
                pass  # the client went away

    def headers(self, session: str | None) -> list[tuple[str, str]]:
        found = [("date", format_datetime(self.service.now(), usegmt=True)),
                 ("x-amzn-requestid", str(uuid.uuid4()))]
        return found + ([(SESSION_HEADER, session)] if session else [])

    def answer(self, request: Request, connection: Connection) -> Reply:
        record = {
            "operation": None, "tool": None, "session": None, "method": request.method,
            "target": request.target, "headers": request.headers,
            "body": request.body.decode("utf-8", "replace")
            if len(request.body) <= SHOWN_BODY else None,
            "length": len(request.body), "sha256": hashlib.sha256(request.body).hexdigest(),
            "signature": None, "status": None, "error": None, "fault": None, "ran": False}
        try:
            reply = self.handle(request, connection, record)
        except ServiceError as error:
            record["error"] = error.name
            reply = faults.error_reply(error, self.headers(None))
        except Exception:
            # A fault of the fake itself: no test may take it for one that it asked for.
            traceback.print_exc()
            error = ServiceError("FakeIsBroken", traceback.format_exc(), 599)
            record["error"] = error.name
            reply = faults.error_reply(error, self.headers(None))
        record["status"] = reply.status
        self.keep(record)
        return reply

    def keep(self, record: dict) -> None:
        with self.lock:
            self.records.append({"n": len(self.records), **record})
            if self.log:
                with self.log.open("a") as lines:
                    print(json.dumps(self.records[-1]), file=lines)

    def handle(self, request: Request, connection: Connection, record: dict) -> Reply:
        try:
            verify(request, self.config["credentials"], self.service.now(),
                   self.config["skew_error"])
            record["signature"] = "ok"
        except ServiceError as error:
            record["signature"] = error.name
            raise
        record["operation"] = route(request)[0]
        if len(request.body) > self.config["request_limit"]:
            raise ServiceError("ValidationException", "Request payload too large.")
        call = parse(request)
        record.update(tool=call.tool, session=call.session)
        self.service.throttle(call.operation)
        fault = self.faults.take(call.operation, call.tool)
        record["fault"] = fault["kind"] if fault else None
        if fault and fault["kind"] == "expire":
            self.service.expire(call.session)
        if not faults.is_before(fault):
            value = self.perform(call, connection, record)
        else:
            value = {"content": []}
        reply = faults.shape(fault, value, self.headers(call.session if call.tool else None),
                             call.tool is not None)
        if fault and fault["kind"] == "http":
            record["error"] = fault.get("error", "InternalServerException")
        return reply

    def perform(self, call: Call, connection: Connection, record: dict) -> dict:
        if call.tool:
            return self.service.invoke(call, lambda: record.update(ran=True), connection.hung_up)
        return {"StartCodeInterpreterSession": self.service.start,
                "StopCodeInterpreterSession": self.service.stop,
                "GetCodeInterpreterSession": self.service.get,
                "ListCodeInterpreterSessions": self.service.list}[call.operation](call)

    def control(self, request: Request) -> Reply:
        try:
            split = urlsplit(request.target)
            asked = json.loads(request.body) if request.body else None
            words = (request.method, split.path.removeprefix("/_fake/"))
            value = self.command(words, asked, parse_qs(split.query))
        except (ValueError, TypeError, AttributeError) as why:
            return Reply(400, [("content-type", "application/json")],
                         json.dumps({"message": str(why)}).encode())
        if isinstance(value, bytes):
            return Reply(200, [("content-type", "application/jsonl")], value)
        return Reply(200, [("content-type", "application/json")], json.dumps(value).encode())

    def command(self, words: tuple[str, str], asked: object, query: dict) -> object:
        if words == ("GET", "requests"):
            since = int(query.get("since", ["0"])[0])
            return "".join(json.dumps(one) + "\n" for one in self.records[since:]).encode()
        if words == ("GET", "counts"):
            return self.counts()
        if words == ("GET", "sessions"):
            return [{"sessionId": one.id, "directory": str(one.place), "calls": one.in_flight,
                     "status": "READY" if one.active else "TERMINATED"}
                    for one in list(self.service.sessions.values())]
        if words == ("GET", "working"):
            answering = self.answering.count  # before the tasks that these requests have started
            return answering + sum(one.tasks_at_work() for one in
                                   list(self.service.sessions.values()))
        if words[1] == "faults":
            if words[0] == "POST":
                self.faults.add(asked if isinstance(asked, list) else [asked])
            elif words[0] == "DELETE":
                self.faults.clear()
            return self.faults.waiting
        if words[1] == "config":
            return self.configure(asked or {})
        if words == ("POST", "expire"):
            return {"ended": self.service.expire((asked or {}).get("sessionId"))}
        if words == ("POST", "reset"):
            self.service.end_all()
            self.faults.clear()
            self.configure(CONFIG)
            with self.lock:
                self.records.clear()
            return {}
        raise ValueError(f"no such control: {words[0]} /_fake/{words[1]}")

    def configure(self, wanted: dict) -> dict:
        unknown = set(wanted) - set(CONFIG)
        if unknown:
            raise ValueError(f"no such setting: {', '.join(sorted(unknown))}")
        self.config.update(json.loads(json.dumps(wanted)))
        return self.config

    def counts(self) -> dict:
        with self.lock:
            records = list(self.records)
        return {"requests": Counter(one["operation"] for one in records if one["operation"]),
                "tools": Counter(one["tool"] for one in records if one["tool"]),
                "ran": Counter(one["tool"] for one in records if one["ran"])}


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake AgentCore code interpreter for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--directory", type=Path, help="where the sessions' directories are made")
    parser.add_argument("--log", type=Path, help="a file for every request, as lines of JSON")
    parser.add_argument("--leash", action="store_true", help="end with standard input")
    options = parser.parse_args()
    listener, address = listen(options.port)
    root = Path(tempfile.mkdtemp(prefix="pinfold-agentcore-", dir=options.directory)).resolve()
    fake = Fake(root, options.log)
    serve(listener, fake.serve, options.leash, {"endpoint": address, "directory": str(root)})
    fake.service.close()


if __name__ == "__main__":
    main()
