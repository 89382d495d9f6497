# SPDX-License-Identifier: Apache-2.0
"""The tools of InvokeCodeInterpreter, with results in the shapes of the live service."""

import base64
import mimetypes
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Callable

from .errors import ServiceError, invalid, not_active, too_large
from .sessions import Run, Session, Task

ARGUMENT_LIMIT = 131072  # MAX_ARG_STRLEN of Linux: a longer word cannot be given to a program
TASK_SECONDS = 8 * 3600


class Failure(Exception):
    """What a tool says with HTTP 200 and isError."""


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def beneath(session: Session, tool: str, path: str) -> Path:
    """Relative paths alone; a symbolic link inside is followed, as the live service does."""
    if path.startswith("/") or ".." in path.split("/"):
        raise Failure(f"Error executing tool {tool}: Invalid file path: "
                      "potential path traversal detected")
    if "\0" in path:
        raise Failure(f"Error executing tool {tool}: embedded null byte")
    return session.place / path


def write_files(session: Session, arguments: dict, _: dict) -> dict:
    items = [(beneath(session, "write_files", item["path"]),
              item["text"].encode("utf-8", "replace") if "text" in item
              else base64.b64decode(item["blob"])) for item in arguments["content"]]
    # All or nothing: what can be foreseen is refused before the first file is touched.
    for path, _ in items:
        if path.is_dir():
            raise Failure(f"Error executing tool write_files: Is a directory: {path.name}")
    for path, data in items:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as why:
            raise Failure(f"Error executing tool write_files: {why.strerror}") from None
    return {"content": [text(f"Successfully wrote all {len(items)} files")]}


def resource(name: str, data: bytes) -> dict:
    kind = mimetypes.guess_type(name)[0]
    found = {"uri": f"file:///{name}"}
    try:
        return {**found, "mimeType": kind or "text/plain", "text": data.decode()}
    except UnicodeDecodeError:
        return {**found, "mimeType": kind or "application/octet-stream",
                "blob": base64.b64encode(data).decode()}


def read_files(session: Session, arguments: dict, config: dict) -> dict:
    found, size = [], 0
    for name in arguments["paths"]:
        path = beneath(session, "read_files", name)
        if not path.is_file():
            raise Failure(f"Error executing tool read_files: File {name} not found")
        size += path.stat().st_size
        if size > config["read_limit"]:
            raise too_large()
        try:
            found.append({"type": "resource",
                          "resource": resource(os.path.normpath(name), path.read_bytes())})
        except OSError as why:
            raise Failure(f"Error executing tool read_files: {why.strerror}") from None
    return {"content": found}


def list_files(session: Session, arguments: dict, _: dict) -> dict:
    name = arguments.get("directoryPath", "")
    path = beneath(session, "list_files", name)
    if not path.is_dir():
        raise Failure(f"Error executing tool list_files: Directory {name} not found")
    found = []
    for entry in sorted(path.iterdir()):
        is_directory = entry.is_dir()
        kind = None if is_directory else mimetypes.guess_type(entry.name)[0]
        # A name that is no UTF-8 cannot be put into JSON.
        place = os.fsencode(entry.relative_to(session.place)).decode("utf-8", "replace")
        found.append({"type": "resource_link", **({"mimeType": kind} if kind else {}),
                      "uri": f"file:///{place}", "name": place.rpartition("/")[2],
                      "description": "Directory" if is_directory else "File"})
    return {"content": found}


def remove_files(session: Session, arguments: dict, _: dict) -> dict:
    paths = [beneath(session, "remove_files", name) for name in arguments["paths"]]
    for name, path in zip(arguments["paths"], paths):
        if path.is_dir() and not path.is_symlink():
            raise Failure(f"Error executing tool remove_files: Is a directory: {name}")
        if not os.path.lexists(path):
            raise Failure(f"Error executing tool remove_files: File {name} not found")
    for path in paths:
        path.unlink(missing_ok=True)
    return {"content": [text(f"Successfully removed all {len(paths)} files")]}


def printed(run: Run, config: dict) -> str:
    if len(run.output) > config["payload_limit"]:
        raise too_large()
    output = run.output.decode("utf-8", "replace")
    return output.removesuffix("\r\n") if config["strip_last_newline"] else output


def merged(output: str, code: int | None) -> dict:
    """A terminal has one stream: the exit status decides which of the two it is said to be."""
    return {"stdout": "" if code else output, "stderr": output if code else ""}


def run_shell(session: Session, command: str, config: dict) -> tuple[Run, int]:
    run = session.start(["shell", config["path"]], command)
    if run is None:
        raise not_active(session.id)
    code = run.wait(config["payload_limit"], config["command_seconds"])
    session.runs.discard(run)
    if not session.active:
        raise not_active(session.id)
    return run, code


def execute_command(session: Session, arguments: dict, config: dict) -> dict:
    command = arguments["command"]
    with tempfile.NamedTemporaryFile("w", dir=session.place.parent) as script:
        if is_long(command):
            script.write(command)
            script.flush()
            command = f'. "{script.name}"'
        run, code = run_shell(session, command, config)
    output = printed(run, config)
    return {"content": [text(output)],
            "structuredContent": {**merged(output, code), "exitCode": code,
                                  "executionTime": run.seconds},
            "isError": bool(code) and config["nonzero_is_error"]}


def code_result(stdout: str, stderr: str, code: int, seconds: float) -> dict:
    said = stdout if code == 0 else (stderr.strip().rpartition("\n")[2] or stdout)
    return {"content": [text(said)],
            "structuredContent": {"stdout": stdout, "stderr": stderr, "exitCode": code,
                                  "executionTime": seconds},
            "isError": code != 0}


def execute_code(session: Session, arguments: dict, config: dict) -> dict:
    if arguments["language"] != "python":
        return execute_script(session, arguments, config)
    began = time.monotonic()
    with session.python:
        kernel = session.python_kernel()
        if kernel is None:
            raise not_active(session.id)
        done = kernel.execute(arguments["code"], arguments.get("clearContext", False),
                              config["command_seconds"])
        if done is None:
            session.drop_kernel()
    if not session.active:
        raise not_active(session.id)
    if done is None:
        done = {"stdout": "", "stderr": "The interpreter ended", "exitCode": 1}
    if len(done["stdout"]) + len(done["stderr"]) > config["payload_limit"]:
        raise too_large()
    return code_result(done["stdout"], done["stderr"], done["exitCode"], time.monotonic() - began)


def execute_script(session: Session, arguments: dict, config: dict) -> dict:
    """JavaScript and TypeScript, with what there is on this machine."""
    runtime = arguments.get("runtime", "deno")
    program = shutil.which({"nodejs": "node"}.get(runtime, runtime))
    if runtime == "python" or program is None:
        raise Failure(f"Error executing tool execute_code: runtime {runtime} is not available")
    suffix = {"javascript": ".js", "typescript": ".ts"}[arguments["language"]]
    path = session.place / "run" / f"{time.monotonic_ns()}{suffix}"
    path.write_text(arguments["code"])
    words = [program] + (["run"] if runtime == "deno" else [])
    run, code = run_shell(session, f"exec {' '.join(words)} '{path}'", config)
    path.unlink(missing_ok=True)
    split = merged(printed(run, config).replace("\r\n", "\n"), code)
    return code_result(split["stdout"], split["stderr"], code, run.seconds)


def start_command(session: Session, arguments: dict, config: dict) -> dict:
    run = session.start(["shell", config["path"]], arguments["command"])
    if run is None:
        raise not_active(session.id)
    task = Task(run, config["payload_limit"], TASK_SECONDS)
    session.tasks[task.id] = task
    return {"content": [text("started")],
            "structuredContent": {"taskId": task.id, "taskStatus": "submitted"}}


def find_task(session: Session, arguments: dict) -> Task:
    task = session.tasks.get(arguments["taskId"])
    if task is None:
        raise Failure(f"Task {arguments['taskId']} not found")
    return task


def task_result(task: Task, config: dict) -> dict:
    code = task.code
    output = printed(task.run, config)
    status = "working" if task.status == "submitted" else task.status
    told = {"taskId": task.id, "taskStatus": status, **merged(output, code)}
    if code is not None:
        told.update(exitCode=code, executionTime=task.run.seconds)
    return {"content": [text(output)], "structuredContent": told,
            "isError": bool(code) and status == "failed" and config["nonzero_is_error"]}


def get_task(session: Session, arguments: dict, config: dict) -> dict:
    return task_result(find_task(session, arguments), config)


def stop_task(session: Session, arguments: dict, config: dict) -> dict:
    task = find_task(session, arguments)
    task.stop()
    return task_result(task, config)


TOOLS: dict[str, Callable[[Session, dict, dict], dict]] = {
    "executeCode": execute_code, "executeCommand": execute_command, "readFiles": read_files,
    "listFiles": list_files, "removeFiles": remove_files, "writeFiles": write_files,
    "startCommandExecution": start_command, "getTask": get_task, "stopTask": stop_task,
}


def is_long(command: str) -> bool:
    return len(command.encode("utf-8", "replace")) >= ARGUMENT_LIMIT


def hangs(arguments: dict, tool: str, config: dict) -> bool:
    """The command line that the live service never answers."""
    if tool not in ("executeCommand", "startCommandExecution"):
        return False
    if not is_long(arguments["command"]):
        return False
    if config["long_command"] == "hang":
        return True
    if config["long_command"] == "refuse" or tool == "startCommandExecution":
        raise invalid("arguments.command", "is too long")
    return False


def run_tool(session: Session, tool: str, arguments: dict, config: dict) -> dict:
    try:
        result = TOOLS[tool](session, arguments, config)
        return {**result, "isError": result.get("isError", False)}
    except Failure as why:
        return {"content": [text(str(why))], "isError": True}
    except ServiceError:
        raise
    except OSError as why:
        return {"content": [text(f"Error executing tool {tool}: {why.strerror}")], "isError": True}
