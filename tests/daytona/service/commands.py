# SPDX-License-Identifier: Apache-2.0
"""The routes of process/session."""

import json
import re
import time

from . import stream
from .errors import ProxyError, ToolboxError, daemon_error, empty, go_reply, version
from .execute import parse, required
from .sandboxes import Sandbox
from .sessions import MARKS, Command, Session
from .web import Reply, Request


def find_session(sandbox: Sandbox, name: str) -> Session:
    session = sandbox.sessions.get(name)
    if session is None:
        raise daemon_error(404, "session not found")
    return session


def find_command(sandbox: Sandbox, request: Request) -> Command:
    words = request.words
    at = words.index("command", words.index("session") + 2)
    command = find_session(sandbox, words[at - 1]).commands.get(words[at + 1])
    if command is None:
        raise daemon_error(404, "command not found")
    return command


def session_name(request: Request) -> str:
    words = request.words
    return words[words.index("session") + 1]


def create_session(sandbox: Sandbox, request: Request) -> Reply:
    try:
        body = parse(request, "CreateSessionRequest", {"sessionId": str})
        if not body.get("sessionId"):
            raise ValueError(required("CreateSessionRequest", "SessionId"))
    except ValueError as why:
        raise ToolboxError(400, f"invalid body request: {why}", "INVALID_REQUEST_BODY") from None
    name = body["sessionId"]
    if name == "entrypoint":
        raise daemon_error(400, "session id 'entrypoint' is reserved")
    with sandbox.lock:
        if name in sandbox.sessions:
            raise daemon_error(409, "session already exists")
        sandbox.sessions[name] = Session(sandbox, name, sandbox.home)
    return empty(201)


def shown_session(session: Session) -> dict:
    return {"sessionId": session.id,
            "commands": [command.shown() for command in list(session.commands.values())]}


def list_sessions(sandbox: Sandbox, _: Request) -> Reply:
    return go_reply([shown_session(one) for one in list(sandbox.sessions.values())])


def get_session(sandbox: Sandbox, request: Request) -> Reply:
    return go_reply(shown_session(find_session(sandbox, session_name(request))))


def delete_session(sandbox: Sandbox, request: Request) -> Reply:
    with sandbox.lock:
        session = find_session(sandbox, session_name(request))
        del sandbox.sessions[session.id]
    if sandbox.config["session_delete_seconds"]:
        time.sleep(sandbox.config["session_delete_seconds"])
    session.end()
    return empty(204)


def execution_failed(error: ToolboxError) -> Reply:
    """These alone come without a path and at the beginning of time."""
    body = {"statusCode": 500, "message": f"failed to execute command: {error.message}",
            "timestamp": "0001-01-01T00:00:00Z", "path": ""}
    return Reply(500, [("Content-Type", "application/json")], json.dumps(
        body, separators=(",", ":")).encode())


def session_execute(sandbox: Sandbox, request: Request) -> Reply:
    try:
        body = parse(request, "SessionExecuteRequest",
                     {"command": str, "runAsync": bool, "async": bool, "suppressInputEcho": bool})
    except ValueError:
        raise ToolboxError(400) from None
    if not body.get("command"):
        raise ToolboxError(400)
    asynchronous = bool(body.get("runAsync") or body.get("async"))
    try:
        session = find_session(sandbox, session_name(request))
        command = session.execute(body["command"], asynchronous)
    except ToolboxError as why:
        return execution_failed(why)
    if asynchronous:
        return go_reply({"cmdId": command.id, "output": None, "stdout": None, "stderr": None,
                         "exitCode": None}, 202)
    command.done.wait()
    if command.code is None:
        if sandbox.daemon_died or sandbox.state != "started":
            raise ProxyError(502, None)
        return execution_failed(daemon_error(404, "session not found"))
    told = {"cmdId": command.id, "output": text_of(command.log()), "stdout": None, "stderr": None}
    if log_form(sandbox, request) == "json":
        told.update(split_log(command.log()))
    elif log_form(sandbox, request) == "merged":
        told["output"] = text_of(strip_marks(command.log()))
    return go_reply({**told, "exitCode": command.code})


def get_command(sandbox: Sandbox, request: Request) -> Reply:
    return go_reply(find_command(sandbox, request).shown())


def log_form(sandbox: Sandbox, request: Request) -> str:
    """json, marked or merged, by what the client says of itself and the daemon knows."""
    said = request.header("x-daytona-sdk-version")
    if said is None:
        split = (request.header("x-daytona-split-output") or "").lower() == "true"
        return "marked" if split else "merged"
    if "dev" in said:
        number: tuple[int, ...] = (9999,)
    elif re.fullmatch(r"v?\d+(\.\d+){0,2}([-+].*)?", said):
        number = version(said)
    else:
        return "marked"
    if number < (0, 27):
        return "merged"
    daemon = version(sandbox.config["daemon_version"])
    return "json" if number >= (0, 167) and daemon >= (0, 167) else "marked"


def strip_marks(log: bytes) -> bytes:
    return re.sub(b"\1\1\1|\2\2\2", b"", log)


def split_log(log: bytes) -> dict[str, str]:
    parts = re.split(b"(\1\1\1|\2\2\2)", log)
    found: dict[bytes, list[bytes]] = {mark: [] for mark in MARKS}
    for mark, part in zip(parts[1::2], parts[2::2]):
        found[mark].append(part)
    out, err = (text_of(b"".join(found[mark])) for mark in MARKS)
    return {"stdout": out, "stderr": err}


def text_of(log: bytes) -> str:
    return log.decode("utf-8", "surrogateescape")


def command_logs(sandbox: Sandbox, request: Request) -> Reply:
    command = find_command(sandbox, request)
    if stream.is_asked(request):
        return stream.follow(command, request)
    log = command.log()
    if command.finished and time.monotonic() - command.finished < sandbox.config["log_lag"]:
        log = log[:log.rfind(b"\n", 0, len(log) // 2) + 1]
    form = log_form(sandbox, request)
    if form == "json":
        return go_reply({"output": text_of(log), **split_log(log)})
    text = strip_marks(log) if form == "merged" else log
    text = text.decode("utf-8", "replace").encode()
    return Reply(200, [("Content-Type", "text/plain; charset=utf-8")], text)


def command_input(sandbox: Sandbox, request: Request) -> Reply:
    command = find_command(sandbox, request)
    try:
        body = parse(request, "SendInputRequest", {"data": str})
    except ValueError as why:
        raise daemon_error(400, f"invalid request body: {why}") from None
    command.input(body.get("data") or "")
    return empty(204)


ROUTES = {
    "session.create": create_session, "session.list": list_sessions,
    "session.get": get_session, "session.delete": delete_session,
    "session.exec": session_execute, "session.command": get_command,
    "session.logs": command_logs, "session.input": command_input,
}
