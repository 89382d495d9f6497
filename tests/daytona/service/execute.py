# SPDX-License-Identifier: Apache-2.0
"""process/execute, and how the daemon reads its requests."""

import os
import re
import select
import time

from .errors import ProxyError, ToolboxError, daemon_error, go_reply, version
from .sandboxes import Sandbox
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


ROUTES = {"process.execute": execute}
