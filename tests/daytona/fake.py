#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
A fake Daytona, for tests: control plane, proxy and toolbox in a process of its own that speaks
HTTP/1.1 on a loopback port chosen by the kernel, answers as recorded, traps included, and really
runs the commands: each sandbox has a directory of its own, each session a shell. It is no sandbox:
the commands run as whoever started it, and see the machine's files. work-dir tells the real path.

By hand:

    python3 tests/daytona/fake.py [--port N] [--directory DIR] [--log FILE] [--leash]
                                  [--config JSON] [--faults JSON]

It prints one line of JSON, {"endpoint", "api", "key", "directory"}, and serves until SIGTERM or
SIGINT; then no process and no file of it is left. --leash: it also ends with its standard input, so
that it cannot outlive a test that was killed. --log: every request, as lines of JSON. --config and
--faults (or PINFOLD_FAKE_DAYTONA_CONFIG and _FAULTS of the environment): as below, from the start.
A client needs DAYTONA_API_URL={api} and DAYTONA_API_KEY=dtn_fake_key.

It also checks what it gets, apart from how it answers: endpoints, headers, queries and bodies that
are not as documented are complaints. When some are left at the end it prints them and exits with 3.

Control, without credentials, JSON both ways:

    GET  /_fake/requests[?since=N]  lines of JSON, one for each request that was answered: n,
         operation, sandbox, method, target, headers, body (null when it was no JSON or over 64
         KiB), length, status, fault, complaints. A reply is sent after its line is there.
    GET  /_fake/counts      {operation: n}
    GET  /_fake/complaints  [{"n", "operation", "target", "complaint"}]; DELETE drops them
    GET  /_fake/sandboxes   [{"id", "name", "state", "directory", "sessions", "labels"}]
    GET  /_fake/working     how many requests are being answered and commands of sessions not ended
    POST /_fake/config      set some of CONFIG below; GET shows all
    POST /_fake/faults      one fault or a list; GET shows those that wait, DELETE drops them
    POST /_fake/state       {"state", "sandbox"?, "reason"?}: of this sandbox or of all
    POST /_fake/die         {"sandbox"?}: as the fault does
    POST /_fake/lose_sessions  {"sandbox"?}
    POST /_fake/playback    {"files": [..], "exact"?, "rewrite"?: [old, new]}: replies of these
         recordings, byte for byte, as long as there are any; GET shows what waits, DELETE drops it
    POST /_fake/reset       everything as at the start

A fault is {"kind", "operation"? ("files.list", "session.*"), "sandbox"?, "skip"?: requests to let
pass first, "count"?: how many to spoil (1; null: all from now on), "when"?: "before" or "after" it
was done}, and by kind:

    http           status, message, code; or empty, html, body (raw); headers; throttler: the
                   headers of a 429 of that name, and seconds
    close          the connection ends without a reply, or after body_byte bytes of the reply's
                   body, wire_byte of the whole reply, or read_byte of the request's body; then:
                   "close", "reset", or "end": chunks that end properly around a body that does not
    stall          the same, but the connection stays open, and silent
    slow           delay: seconds before the reply; piece: bytes of one; pause: seconds between
    stop           the sandbox is stopped before the request is looked at; or has another state
    lose_sessions  the sandbox's sessions are gone before the request is looked at
    die            the daemon is killed with all that it runs, before, or after so many seconds;
                   until the sandbox is started again the proxy says 502, its state is as before
    garbage        payload: instead of the body
    missing, null  members of the JSON: left out, or null, such as ["items.toolboxProxyUrl"]

Where the published facts are silent the fake does what it says here: an unknown sandbox is a 400
for the proxy; a file operation that is to write outside of the sandbox's directory is a 403 and a
complaint; the number of sandboxes is the quota that CONFIG limits. The first of the two forms of
every alternative is what the default of CONFIG gives.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from faked import Answering, BadRequest, listen, serve  # noqa: E402
from service import check, control, faults  # noqa: E402
from service.errors import go_json  # noqa: E402
from service.front import Front  # noqa: E402
from service.plane import Plane  # noqa: E402
from service.playback import Playback  # noqa: E402
from service.web import Connection, Cut, Reply, Request  # noqa: E402

SHELL = next((path for path in ("/usr/bin/bash", "/bin/bash", "/bin/sh") if os.path.exists(path)))
CONFIG = {
    # Who may ask. A JWT needs its organization in a header; "forbidden": Access denied.
    "credentials": [{"key": "dtn_fake_key"},
                    {"jwt": "eyJfake.jwt.token", "organization": "org-fake"}],
    "organization": "org-fake",
    "latency": 0,  # seconds that a round trip takes; a connection begins with one more
    "shell": SHELL,  # of sandboxes; dash: a syntax error kills a session
    "create_polls": 1,  # looks at a new sandbox that see it creating; null: for ever
    "create_state": None,  # what it becomes instead of started: error, build_failed
    "create_reason": "the reason that was asked for",
    "create_waits": 0,  # seconds that the POST itself waits for started; the service: 30
    "start_polls": 1, "stop_polls": 1,
    "delete_polls": 0,  # looks at a deleted sandbox that still see it destroying
    "delete_empty": False,  # the reply to a DELETE has no body
    "delete_conflicts": False,  # a DELETE while another change is pending gives 409
    "minute": 60,  # seconds in one minute of the auto-stop interval
    "list_lag": 0,  # seconds by which lists are behind
    "sandbox_limit": 1000,
    "missing_snapshots": ["missing"],
    "api_version": "0.190.0",  # before 0.180: bare lists; before 0.160: DELETE conflicts are 400
    "bare_list": False,
    # Where the toolbox is told: object, endpoint (.../toolbox-proxy-url), config, or api (nowhere:
    # it is at {api}/toolbox/{id}/toolbox, as it always is, too).
    "toolbox_url": "object",
    "leave_out": [],  # members of the sandbox object
    # Before 0.155, 0.167, 0.177, 0.178, 0.189 the daemon is as documented; from 0.201 on file
    # errors have a body.
    "daemon_version": "0.190.0",
    "redirect_slash": True,  # what is missing without a slash at the end is redirected, not 404
    "log_lag": 0,  # seconds by which the log is behind the exit code
    "session_delete_seconds": 0,  # that it takes; the service: 0.12 to 5
    # What is complained of.
    "oldest_client": "0.167.0",
    "sized_bodies": False,  # a body in chunks
    "organization_beside_key": False,  # an organization beside a key is no complaint
    "nulls": True,  # null for a member that is left out otherwise is no complaint
    "orphans": True,  # a sandbox that nobody deleted is no complaint, at the end
}
SHOWN_BODY = 64 * 1024


class Fake:
    def __init__(self, root: Path, log: Path | None, config: dict) -> None:
        self.first_config = config
        self.config = json.loads(json.dumps(config))
        self.plane = Plane(root, self.config)
        self.front = Front(self.plane, self.config)
        self.faults = faults.Faults()
        self.playback = Playback()
        self.records: list[dict] = []
        self.complaints: list[dict] = []
        self.log = log
        self.lock = threading.Lock()
        self.answering = Answering()
        self.base = ""

    def serve(self, peer: socket.socket) -> None:
        """One connection, to its end."""
        with peer:
            connection = Connection(peer)
            trips = 2  # the first request comes after a handshake
            try:
                while request := connection.receive():
                    if request.target.startswith("/_fake/"):
                        reply = control.answer(self, request)
                    else:
                        time.sleep(trips * self.config["latency"])
                        trips = 1
                        with self.answering:
                            reply = self.answer(request, connection)
                    if reply is None or not connection.send(request, reply):
                        return
            except BadRequest as why:
                self.complain(len(self.records), None, "", f"no HTTP: {why}")
            except OSError:
                pass  # the client went away

    def answer(self, request: Request, connection: Connection) -> Reply | None:
        found = check.route(request)
        record = {"operation": found.route.name if found else None,
                  "sandbox": found.sandbox if found else "", "method": request.method,
                  "target": request.target, "headers": request.headers, "body": None, "length": 0,
                  "status": None, "fault": None, "complaints": []}
        try:
            reply = self.handle(request, found, record)
        except Cut:
            connection.end(request.delivery.then)
            reply = None
        except BadRequest as why:
            self.complain(len(self.records), None, "", f"no HTTP: {why}")  # while it is answered
            reply = None
        except Exception:
            # A fault of the fake itself: no test may take it for one that it asked for.
            traceback.print_exc()
            record["complaints"].append("the fake is broken: " + traceback.format_exc())
            reply = Reply(599, [], traceback.format_exc().encode())
        finally:
            self.keep(request, record)
        record["status"] = reply.status if reply else None
        return reply

    def keep(self, request: Request, record: dict) -> None:
        record["length"] = request.body.read_so_far
        if request.text and len(request.text) <= SHOWN_BODY:
            record["body"] = request.text.decode("utf-8", "replace")
        with self.lock:
            number = len(self.records)
            self.records.append(record)
            record["n"] = number
        for complaint in record["complaints"]:
            self.complain(number, record["operation"], request.target, complaint)

    def complain(self, number: int, operation: str | None, target: str, complaint: str) -> None:
        self.complaints.append({"n": number, "operation": operation, "target": target,
                                "complaint": complaint})

    def handle(self, request: Request, found: check.Found | None, record: dict) -> Reply:
        fault = self.faults.take(found.route.name, found.sandbox) if found else None
        record["fault"] = fault["kind"] if fault else None
        request.delivery = faults.delivery(fault)
        request.body.limit = request.delivery.read_byte
        record["complaints"] += check.complaints(request, found, self.config)
        if self.playback.active and (reply := self.playback.take(request)):
            return reply
        if faults.is_before(fault):
            if fault["kind"] == "http":
                return faults.http_reply(fault, found.path, request.method, found.toolbox)
            raise Cut
        reply = self.front.answer(request, found, self.base, fault, bool(record["complaints"]))
        sandbox = self.plane.sandboxes.get(record["sandbox"])
        while sandbox and sandbox.complaints:
            record["complaints"].append(sandbox.complaints.pop())
        return self.spoil(fault, reply, request, found)

    def spoil(self, fault: dict | None, reply: Reply, request: Request,
              found: check.Found | None) -> Reply:
        """What comes after the operation was done."""
        kind = fault["kind"] if fault else None
        if kind == "http":
            return faults.http_reply(fault, found.path, request.method, found.toolbox)
        if kind == "garbage":
            return Reply(reply.status, reply.headers, fault.get("payload", "{not json").encode())
        if kind in ("missing", "null") and isinstance(reply.body, bytes):
            value = json.loads(reply.body)
            for member in fault["members"]:
                faults.without(value, member, fault)
            reply.body = go_json(value)
        return reply

    def configure(self, wanted: dict) -> dict:
        unknown = set(wanted) - set(CONFIG)
        if unknown:
            raise ValueError(f"no such setting: {', '.join(sorted(unknown))}")
        self.config.update(json.loads(json.dumps(wanted)))
        return self.config

    def reset(self) -> dict:
        self.plane.end_all()
        self.faults.clear()
        self.playback.clear()
        self.configure(self.first_config)
        with self.lock:
            self.records.clear()
            self.complaints.clear()
        return {}

    def close(self) -> int:
        """The exit status."""
        if not self.config["orphans"]:
            for sandbox in self.plane.all():
                self.complain(len(self.records), None, "", f"sandbox {sandbox.id} was not deleted")
        self.plane.close()
        if self.log:
            with self.log.open("w") as lines:
                lines.writelines(json.dumps(one) + "\n" for one in self.records)
        for complaint in self.complaints:
            print(json.dumps(complaint), file=sys.stderr)
        return 3 if self.complaints else 0


def main() -> int:
    environ = os.environ
    parser = argparse.ArgumentParser(description="A fake Daytona for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--directory", type=Path, help="where the sandboxes' directories are made")
    parser.add_argument("--log", type=Path, help="a file for every request, as lines of JSON")
    parser.add_argument("--leash", action="store_true", help="end with standard input")
    parser.add_argument("--config", type=json.loads, metavar="JSON",
                        default=environ.get("PINFOLD_FAKE_DAYTONA_CONFIG", "{}"))
    parser.add_argument("--faults", type=json.loads, metavar="JSON",
                        default=environ.get("PINFOLD_FAKE_DAYTONA_FAULTS", "[]"))
    options = parser.parse_args()
    if unknown := set(options.config) - set(CONFIG):
        parser.error(f"no such setting: {', '.join(sorted(unknown))}")
    listener, address = listen(options.port)
    root = Path(tempfile.mkdtemp(prefix="pinfold-daytona-", dir=options.directory)).resolve()
    fake = Fake(root, options.log, CONFIG | options.config)
    fake.faults.add(options.faults)
    fake.base = address
    serve(listener, fake.serve, options.leash,
          {"endpoint": fake.base, "api": fake.base + "/api",
           "key": fake.config["credentials"][0].get("key"), "directory": str(root)})
    return fake.close()


if __name__ == "__main__":
    sys.exit(main())
