# SPDX-License-Identifier: Apache-2.0
"""What looks for files and in them."""

import fnmatch
import os
from pathlib import Path
from typing import Iterator

from .errors import go_reply
from .files import named, refuse, writable
from .sandboxes import Sandbox
from .web import Reply, Request


def walk(top: Path, shown_as: str) -> Iterator[tuple[Path, str]]:
    if not top.is_dir():
        return
    for entry in sorted(top.iterdir(), key=os.fsencode):
        name = f"{shown_as.rstrip('/')}/{entry.name}"
        yield entry, name
        if entry.is_dir() and not entry.is_symlink():
            yield from walk(entry, name)


def search(sandbox: Sandbox, request: Request) -> Reply:
    top, pattern = named(sandbox, request), request.first("pattern") or ""
    found = [name for entry, name in walk(top, request.first("path"))
             if fnmatch.fnmatchcase(entry.name, pattern) and "/" not in pattern]
    return go_reply({"files": found})


def matches(path: Path, name: str, pattern: bytes) -> Iterator[dict]:
    try:
        data = path.read_bytes()
    except OSError:
        return
    if b"\0" in data[:512]:
        return
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        if len(line) > 65536:
            return
        if pattern in line:
            yield {"file": name, "line": number,
                   "content": line.decode("utf-8", "surrogateescape")}


def find(sandbox: Sandbox, request: Request) -> Reply:
    top = named(sandbox, request)
    pattern = (request.first("pattern") or "").encode("utf-8", "surrogateescape")
    if not top.exists():
        raise refuse(sandbox, 404, str(top))
    if top.is_file():
        return go_reply(list(matches(top, request.first("path"), pattern)))
    return go_reply([one for entry, name in walk(top, request.first("path"))
                     if entry.is_file() and not entry.is_symlink()
                     for one in matches(entry, name, pattern)])


def replace(sandbox: Sandbox, request: Request) -> Reply:
    try:
        body = request.json()
        old, new = (body[name].encode("utf-8", "surrogateescape")
                    for name in ("pattern", "newValue"))
        names = list(body["files"])
    except (ValueError, TypeError, KeyError, AttributeError):
        raise refuse(sandbox, 400) from None
    told = []
    for name in names:
        try:
            path = writable(sandbox, sandbox.home / name)
            path.write_bytes(path.read_bytes().replace(old, new))
            told.append({"file": name, "success": True})
        except OSError as why:
            told.append({"file": name, "success": False,
                         "error": f"open {name}: {os.strerror(why.errno).lower()}"})
    return go_reply(told)


ROUTES = {"files.search": search, "files.find": find, "files.replace": replace}
