# SPDX-License-Identifier: Apache-2.0
"""The five operations on sessions, from a request whose signature was verified to what they say."""

import base64
import json
import re
import shutil
import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from . import fields
from .errors import ServiceError, invalid, not_active
from .sessions import Session, open_up
from .tools import hangs, run_tool
from .web import Request

ROUTES = {
    ("PUT", "sessions/start"): ("StartCodeInterpreterSession", fields.START),
    ("PUT", "sessions/stop"): ("StopCodeInterpreterSession", fields.STOP),
    ("GET", "sessions/get"): ("GetCodeInterpreterSession", None),
    ("POST", "sessions/list"): ("ListCodeInterpreterSessions", fields.LIST),
    ("POST", "tools/invoke"): ("InvokeCodeInterpreter", fields.INVOKE),
}
SESSION_HEADER = "x-amzn-code-interpreter-session-id"


@dataclass
class Call:
    operation: str
    identifier: str
    session: str | None
    body: dict
    tool: str | None = None


def iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def route(request: Request) -> tuple[str, str, fields.Rule | None]:
    """Operation, identifier, rule of the body."""
    path = urlsplit(request.target).path
    match = re.fullmatch(r"/code-interpreters/([^/]*)/(\w+/\w+)", path)
    found = ROUTES.get((request.method, match[2])) if match else None
    if not found:
        raise ServiceError("UnknownOperationException", f"no operation is {request.method} {path}",
                           404)
    return found[0], unquote(match[1]), found[1]


def parse_body(request: Request, rule: fields.Rule | None) -> dict:
    if rule is None:
        if request.body:
            raise invalid("body", "a GET has none")
        return {}
    if request.header("content-type") != "application/json":
        raise ServiceError("UnsupportedMediaTypeException",
                           f"content-type: {request.header('content-type')}", 415)
    try:
        body = json.loads(request.body.decode())
    except ValueError as why:
        raise ServiceError("ValidationException", f"the body is not JSON: {why}",
                           reason="CannotParse") from None
    rule("", body)
    return body


def session_of(request: Request, operation: str) -> str | None:
    pairs = parse_qsl(urlsplit(request.target).query, keep_blank_values=True)
    wanted = operation in ("GetCodeInterpreterSession", "StopCodeInterpreterSession")
    if [name for name, _ in pairs] != (["sessionId"] if wanted else []):
        raise invalid("sessionId", "must be the query of Get and of Stop, alone, and of no other")
    if operation == "InvokeCodeInterpreter":
        pairs = [(SESSION_HEADER, request.header(SESSION_HEADER) or "")]
    for _, value in pairs:
        fields.SESSION("sessionId", value)
    return pairs[0][1] if pairs else None


def parse(request: Request) -> Call:
    operation, identifier, rule = route(request)
    fields.check_identifier(identifier)
    for name in ("x-amzn-trace-id", "traceparent"):
        fields.TRACE(name, request.header(name) or "")
    call = Call(operation, identifier, session_of(request, operation), parse_body(request, rule))
    if operation == "InvokeCodeInterpreter":
        call.tool = call.body["name"]
        for name in fields.NEEDED[call.tool]:
            if name not in call.body.get("arguments", {}):
                raise invalid(f"arguments.{name}", "must not be null")
    return call


class Service:
    def __init__(self, root: Path, config: dict) -> None:
        self.root = root
        self.config = config
        self.lock = threading.Lock()
        self.sessions: dict[str, Session] = {}
        self.tokens: dict[tuple, tuple[dict, dict]] = {}
        self.recent: dict[str, deque] = {}
        self.closing = threading.Event()
        self.reaper = threading.Thread(target=self._reap, daemon=True)
        self.reaper.start()

    def now(self) -> datetime:
        return datetime.now(timezone.utc) + timedelta(seconds=self.config["clock_offset"])

    def _reap(self) -> None:
        while not self.closing.wait(0.2):
            for session in list(self.sessions.values()):
                if session.active and time.monotonic() >= session.deadline:
                    session.end(self.now())

    def end_all(self) -> None:
        for session in list(self.sessions.values()):
            session.end(self.now())
        with self.lock:
            self.sessions.clear()
            self.tokens.clear()
            self.recent.clear()

    def close(self) -> None:
        self.closing.set()
        self.reaper.join()
        self.end_all()
        shutil.rmtree(self.root, onerror=open_up)

    def expire(self, session: str | None) -> int:
        ended = [one for one in list(self.sessions.values())
                 if one.active and session in (None, one.id)]
        for one in ended:
            one.end(self.now())
        return len(ended)

    def throttle(self, operation: str) -> None:
        """So many requests of one kind in a second, over all sessions."""
        if not self.config["requests_per_second"]:
            return
        with self.lock:
            recent, now = self.recent.setdefault(operation, deque()), time.monotonic()
            while recent and recent[0] <= now - 1:
                recent.popleft()
            if len(recent) >= self.config["requests_per_second"]:
                raise ServiceError("ThrottlingException", "Rate exceeded")
            recent.append(now)

    def find(self, call: Call) -> Session:
        session = self.sessions.get(call.session)
        if session is None or session.identifier != call.identifier:
            raise ServiceError("ResourceNotFoundException",
                               f"Code interpreter session {call.session} not found")
        if session.active and time.monotonic() >= session.deadline:
            session.end(self.now())
        return session

    def _remembered(self, call: Call) -> dict | None:
        """What the same token was answered before."""
        known = self.tokens.get((call.operation, call.identifier, call.session,
                                 call.body.get("clientToken")))
        if known is None:
            return None
        if known[0] != call.body:
            raise ServiceError("ValidationException", "The token was used with other parameters",
                               reason="IdempotentParameterMismatchException")
        return known[1]

    def _remember(self, call: Call, answer: dict) -> dict:
        if "clientToken" in call.body:
            key = (call.operation, call.identifier, call.session, call.body["clientToken"])
            self.tokens[key] = (call.body, answer)
        return answer

    def start(self, call: Call) -> dict:
        with self.lock:
            if known := self._remembered(call):
                return known
            active = sum(session.active for session in self.sessions.values())
            if active >= self.config["session_limit"]:
                raise ServiceError("ServiceQuotaExceededException",
                                   "The number of active sessions exceeds the quota")
            session = Session(self.root, call.identifier, call.body, self.now())
            self.sessions[session.id] = session
            return self._remember(call, {
                "codeInterpreterIdentifier": call.identifier, "sessionId": session.id,
                "createdAt": iso(session.created)})

    def stop(self, call: Call) -> dict:
        session = self.find(call)
        with self.lock:
            if known := self._remembered(call):
                return known
            if not session.active:
                raise not_active(session.id)
            session.end(self.now())
            return self._remember(call, {
                "codeInterpreterIdentifier": call.identifier, "sessionId": session.id,
                "lastUpdatedAt": iso(session.updated)})

    def get(self, call: Call) -> dict:
        session = self.find(call)
        told = {name: session.body[name] for name in
                ("name", "certificates", "filesystemConfigurations") if name in session.body}
        return {"codeInterpreterIdentifier": call.identifier, "sessionId": session.id,
                "createdAt": iso(session.created), **told,
                "sessionTimeoutSeconds": session.seconds, "status": status(session)}

    def list(self, call: Call) -> dict:
        found = [session for session in list(self.sessions.values())
                 if session.identifier == call.identifier
                 and call.body.get("status", status(session)) == status(session)]
        first = 0
        if "nextToken" in call.body:
            try:
                first = int(base64.b64decode(call.body["nextToken"], validate=True))
            except ValueError:
                raise invalid("nextToken", "is none of the service's") from None
        last = first + call.body.get("maxResults", 10)
        items = [{"codeInterpreterIdentifier": session.identifier, "sessionId": session.id,
                  **({"name": session.body["name"]} if "name" in session.body else {}),
                  "status": status(session), "createdAt": iso(session.created),
                  "lastUpdatedAt": iso(session.updated)} for session in found[first:last]]
        more = {"nextToken": base64.b64encode(b"%d" % last).decode()} if len(found) > last else {}
        return {"items": items, **more}

    def invoke(self, call: Call, ran, hung_up) -> dict:
        """ran() is called when the tool begins; hung_up() says whether the client is gone."""
        session = self.find(call)
        arguments = call.body.get("arguments", {})
        with session.call(self.config["calls_per_session"]):
            if hangs(arguments, call.tool, self.config):
                while not hung_up() and session.active:
                    time.sleep(0.05)
                raise not_active(session.id)
            ran()
            return run_tool(session, call.tool, arguments, self.config)


def status(session: Session) -> str:
    return "READY" if session.active else "TERMINATED"
