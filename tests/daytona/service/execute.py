# SPDX-License-Identifier: Apache-2.0
"""process/execute and the routes of process/session."""

import json
import os
import re
import select
import time

from .errors import ProxyError, ToolboxError, daemon_error, empty, go_reply, version
from .sandboxes import Sandbox
from .sessions import MARKS, Command, Session
from .web import Reply, Request

UINT32 = (1 << 32) - 1


def unparsed(body: bytes, type_name: str, problem: ValueError) -> str:
    word = body.strip()[:1].decode("latin-1")
    found = {"n": "null", "t": "true", "f": "false"}.get(word)
    if found and len(body) > 1:
        second = body.strip()[1:2].decode("latin-1")
        return (f"invalid character '{second}' in literal {found} (expecting '{found[1]}')")
    return f"{type_name}: {problem}"


def parse(request: Request, type_name: str, fields: dict[str, type]) -> dict:
    """The members of a body, with the complaints of the daemon's own reader."""
    try:
        body = request.json()
    except ValueError as why:
        raise ValueError(unparsed(request.text, type_name, why)) from None
    if not isinstance(body, dict):
        raise ValueError(f"json: cannot unmarshal {type(body).__name__} into Go value of type "
                         f"{type_name}")
    for name, kind in fields.items():
        value = body.get(name)
        good = value is None or (type(value) is kind
                                 and (kind is not int or 0 <= value <= UINT32))
        if not good:
            told = f"number {value}" if type(value) in (int, float) else type(value).__name__
            go = {int: "uint32", str: "string", bool: "bool", dict: "map[string]string"}[kind]
            raise ValueError(f"json: cannot unmarshal {told} into Go struct field "
                             f"{type_name}.{name} of type {go}")
    return body


def required(type_name: str, member: str) -> str:
    return (f"Key: '{type_name}.{member}' Error:Field validation for '{member}' failed on the "
            "'required' tag")


def execute_body(request: Request, sandbox: Sandbox) -> dict:
    daemon = version(sandbox.config["daemon_version"])
    fields = {"command": str, "cwd": str, "timeout": int, "envs": dict}
    try:
        body = parse(request, "ExecuteRequest", fields)
        if not body.get("command"):
            raise ValueError(required("ExecuteRequest", "Command"))
    except ValueError as why:
        raise daemon_error(400, f"invalid request body: {why}") from None
    if daemon < (0, 167):
        body.pop("envs", None)
    for name in body.get("envs") or {}:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise daemon_error(400, f"invalid environment variable name: '{name}'")
    if not body["command"].strip():
        raise daemon_error(400, "command cannot be empty or whitespace-only")
    return body


def collect(fd: int, shell_stdin: int, script: bytes, until: float | None) -> bytes | None:
    """Feed the shell and read all that comes; None when the time is over."""
    output, view = bytearray(), memoryview(script)
    os.set_blocking(shell_stdin, False)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(shell_stdin, select.POLLOUT)
    feeding = True
    while True:
        left = None if until is None else max(until - time.monotonic(), 0) * 1000
        ready = dict(poll.poll(left))
        if not ready:
            return None
        if shell_stdin in ready and feeding:
            try:
                view = view[os.write(shell_stdin, view):]
            except BrokenPipeError:
                view = view[len(view):]
            if not view:
                poll.unregister(shell_stdin)
                feeding = False
                os.close(shell_stdin)
        if fd in ready:
            data = os.read(fd, 1 << 16)
            if not data:
                if feeding:
                    os.close(shell_stdin)
                return bytes(output)
            output += data


def execute(sandbox: Sandbox, request: Request) -> Reply:
    old = version(sandbox.config["daemon_version"])
    try:
        body = execute_body(request, sandbox)
    except ToolboxError:
        if old < (0, 177):
            raise ToolboxError(400) from None
        raise
    timeout = body.get("timeout") or None
    stdin, feed = os.pipe()
    output, told = os.pipe()
    cwd = str(sandbox.home / (body.get("cwd") or ""))
    program = sandbox.start_program([sandbox.config["shell"]], cwd,
                                    sandbox.environment(body.get("envs")), (stdin, told, told))
    os.close(stdin)
    os.close(told)
    if program is None:
        os.close(feed)
        os.close(output)
        raise ProxyError(502, None)
    try:
        if program.error:
            os.close(feed)
            reason = os.strerror(program.error).lower()
            return go_reply({"exitCode": -1,
                             "result": f"fork/exec {sandbox.config['shell']}: {reason}"})
        until = time.monotonic() + timeout if timeout and old >= (0, 155) else None
        script = body["command"].encode("utf-8", "surrogateescape")
        began = time.monotonic()
        printed = collect(output, feed, script, until)
        if printed is None or (timeout and time.monotonic() - began > timeout):
            program.kill_group()
            code = "PROCESS_EXECUTION_TIMEOUT" if old >= (0, 201) else None
            raise daemon_error(408, "command execution timeout", code)
        program.ended.wait()
    finally:
        os.close(output)
    if sandbox.daemon_died or sandbox.state != "started":
        raise ProxyError(502, None)
    name = "exitCode" if old >= (0, 100) else "code"
    return go_reply({name: program.status if program.status >= 0 else -1,
                     "result": printed.decode("utf-8", "surrogateescape")})


# Sessions.


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
    "process.execute": execute, "session.create": create_session, "session.list": list_sessions,
    "session.get": get_session, "session.delete": delete_session, "session.exec": session_execute,
    "session.command": get_command, "session.logs": command_logs, "session.input": command_input,
}
