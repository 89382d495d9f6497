# SPDX-License-Identifier: Apache-2.0
"""Many files in one request, of which some may fail."""

import errno
import mimetypes
import os
import re
from pathlib import Path
from typing import Iterator

from . import multipart
from .errors import go_json, go_reply, go_time
from .files import CODES, STATUS, disposition, pieces, store, writable
from .sandboxes import Sandbox
from .web import Reply, Request

BOUNDARY = b"DAYTONA-FILE-BOUNDARY"


def content_type(name: str) -> str:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return kind + "; charset=utf-8" if kind.startswith("text/") else kind


def download_error(path: str, status: int, method: str) -> bytes:
    words, code = CODES[status]
    if status == 400:
        words += ": path points to a directory"
    return go_json({"statusCode": status, "message": f"{words}: {path}", "code": code,
                    "timestamp": go_time(), "path": path, "method": method})


def bulk_parts(sandbox: Sandbox, paths: list[str], method: str) -> Iterator[bytes]:
    crlf = b""
    for name in paths:
        path = sandbox.home / name
        problem, size = 0, 0
        try:
            with path.open("rb") as opened:
                size = os.fstat(opened.fileno()).st_size
        except (OSError, ValueError) as why:
            number = getattr(why, "errno", None)
            problem = 400 if number == errno.EISDIR else STATUS.get(number, 404)
        kind = "error" if problem else "file"
        head = f'Content-Disposition: form-data; name="{kind}"; {disposition(name)}\r\n'
        if problem:
            head += "Content-Type: application/json; charset=utf-8\r\n"
        else:
            head += f"Content-Length: {size}\r\nContent-Type: {content_type(name)}\r\n"
        yield crlf + b"--" + BOUNDARY + b"\r\n" + head.encode("latin-1") + b"\r\n"
        if problem:
            yield download_error(name, problem, method)
        else:
            yield from pieces(path, 0, size)
        crlf = b"\r\n"
    yield b"\r\n--" + BOUNDARY + b"--\r\n"


def bulk_download(sandbox: Sandbox, request: Request) -> Reply:
    try:
        paths = request.json()["paths"]
        if not paths or not all(isinstance(path, str) for path in paths):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        return go_reply({"error": 'request body must be {"paths": [ ... ]} and non-empty'}, 400)
    headers = [("Content-Type", "multipart/form-data; boundary=" + BOUNDARY.decode())]
    return Reply(200, headers, bulk_parts(sandbox, paths, request.method))


def make_parents(sandbox: Sandbox, path: Path) -> None:
    """mkdir -p of the directory; what fails is named as the daemon names it."""
    parent = path.parent
    first = parent
    while not first.parent.exists():
        first = first.parent
    try:
        writable(sandbox, path)
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        where = first if not first.exists() else parent
        number = errno.ENOTDIR if why.errno == errno.EEXIST else why.errno
        words = os.strerror(errno.ENOENT if str(where).startswith("/proc/") else number).lower()
        raise OSError(number, f"mkdir {parent}: mkdir {where}: {words}") from why


def bulk_file(sandbox: Sandbox, name: str, part: multipart.Part) -> dict:
    path = sandbox.home / name
    try:
        make_parents(sandbox, path)
    except OSError as why:
        raise ValueError(f"{name}: {why.strerror}") from None
    try:
        return {"path": name, "bytes": store(sandbox, path, part.pieces())}
    except OSError as why:
        words = os.strerror(why.errno).lower()
        raise ValueError(f"{name}: create: open {path}: {words}") from None


def bulk_upload(sandbox: Sandbox, request: Request) -> Reply:
    done: list[dict] = []
    errors: list[str] = []
    paths: dict[str, str] = {}
    try:
        boundary = multipart.boundary_of(request.header("content-type"))
    except multipart.Broken as why:
        return go_reply({"errors": [str(why)]}, 400)
    try:
        for part in multipart.Reader(request.body.read, boundary).parts():
            found = re.fullmatch(r"files\[(.*)\]\.(path|file)", part.name)
            if not found:
                sandbox.complaints.append(f"files.bulk-upload has no part {part.name}")
                continue
            index, what = found[1], found[2]
            try:
                if what == "file" and index in paths:
                    done.append(bulk_file(sandbox, paths[index], part))
                elif what == "file":
                    errors.append(f"file[{index}]: missing .path metadata")
                elif path := part.whole().decode("utf-8", "surrogateescape").strip():
                    paths[index] = path
                else:
                    errors.append(f"path[{index}]: empty path")
            except ValueError as why:
                errors.append(str(why))
    except multipart.Broken as why:
        errors.append(str(why))
    if errors:
        return go_reply({"errors": errors, "files": done or None}, 400)
    return go_reply({"files": done or None})


ROUTES = {"files.bulk-download": bulk_download, "files.bulk-upload": bulk_upload}
