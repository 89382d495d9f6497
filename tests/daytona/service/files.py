# SPDX-License-Identifier: Apache-2.0
"""
The toolbox's files. Paths are the machine's own: a sandbox's home is where work-dir says. Anything
may be read, as its commands may; only what is beneath the sandbox's directory is written.
"""

import errno
import os
import pwd
import re
import shutil
import stat
from email.utils import formatdate
from pathlib import Path
from typing import Iterator
from urllib.parse import quote

from . import multipart
from .errors import ToolboxError, empty, go_reply, go_time, not_found_page, version
from .sandboxes import Sandbox
from .web import PIECE, Reply, Request

STATUS = {errno.ENOENT: 404, errno.EACCES: 403, errno.EPERM: 403}
CODES = {404: ("file not found", "FILE_NOT_FOUND"), 403: ("file access denied",
         "FILE_ACCESS_DENIED"), 400: ("invalid file path", "INVALID_FILE_PATH"),
         409: ("file already exists", "CONFLICT"), 500: ("file read failed", "FILE_READ_FAILED")}


def refuse(sandbox: Sandbox, status: int, path: str = "") -> ToolboxError:
    """The old daemons say nothing but the status."""
    if version(sandbox.config["daemon_version"]) < (0, 201):
        return ToolboxError(status)
    words, code = CODES[status]
    return ToolboxError(status, f"{words}: {path}", code)


def failed(sandbox: Sandbox, why: OSError, path: str) -> ToolboxError:
    return refuse(sandbox, STATUS.get(why.errno, 400), path)


def named(sandbox: Sandbox, request: Request, name: str = "path") -> Path:
    """A path of the query; relative ones begin at the home, and a tilde is a name like any."""
    value = request.first(name)
    if not value or "\0" in value:
        raise refuse(sandbox, 400, value or "")
    return sandbox.home / value


def writable(sandbox: Sandbox, path: Path, follow: bool = True) -> Path:
    """The path, if it is the sandbox's own: a command could write elsewhere, this must not."""
    place = sandbox.place.resolve()
    real = path.resolve() if follow else path.parent.resolve() / path.name
    if real != place and place not in real.parents:
        if not str(path).startswith("/proc/"):  # the way to ask for a failure
            sandbox.complaints.append(f"{path} is outside of the sandbox")
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return path


def mode_string(mode: int) -> str:
    kinds = {stat.S_IFDIR: "d", stat.S_IFLNK: "L", stat.S_IFIFO: "p", stat.S_IFSOCK: "S",
             stat.S_IFCHR: "Dc", stat.S_IFBLK: "D"}
    bits = (("u", stat.S_ISUID), ("g", stat.S_ISGID), ("t", stat.S_ISVTX))
    front = kinds.get(stat.S_IFMT(mode), "") + "".join(one for one, bit in bits if mode & bit)
    return (front or "-") + stat.filemode(stat.S_IFREG | mode & 0o777)[1:]


def info(path: Path) -> dict:
    """What a link points to is told under the link's name."""
    found = path.stat()
    moment = go_time(found.st_mtime_ns)
    return {"name": path.name, "size": found.st_size, "mode": mode_string(found.st_mode),
            "modTime": moment.replace("T", " ").replace("Z", " +0000 UTC"), "modifiedAt": moment,
            "isDir": stat.S_ISDIR(found.st_mode), "owner": str(found.st_uid),
            "group": str(found.st_gid), "permissions": f"{found.st_mode & 0o777:04o}"}


def shown(sandbox: Sandbox, path: Path) -> dict:
    told = info(path)
    daemon = version(sandbox.config["daemon_version"])
    if daemon < (0, 150):
        del told["modifiedAt"]
    return {**told, "path": str(path)} if daemon >= (0, 201) else told


def list_files(sandbox: Sandbox, request: Request) -> Reply:
    path = sandbox.home / (request.first("path") or "")
    if not path.exists():
        raise refuse(sandbox, 404, str(path))
    if not path.is_dir():
        raise refuse(sandbox, 400, str(path))
    depth = int(request.first("depth") or 1)
    if version(sandbox.config["daemon_version"]) < (0, 194):
        depth = 1
    return go_reply(list(listed(sandbox, path, depth)))


def listed(sandbox: Sandbox, path: Path, depth: int) -> Iterator[dict]:
    for entry in sorted(path.iterdir(), key=os.fsencode):
        try:
            told = shown(sandbox, entry)
        except OSError:
            continue  # a link to nowhere
        yield told
        if depth > 1 and told["isDir"] and not entry.is_symlink():
            yield from listed(sandbox, entry, depth - 1)


def file_info(sandbox: Sandbox, request: Request) -> Reply:
    return go_reply(shown(sandbox, named(sandbox, request)))


def pieces(path: Path, first: int, length: int) -> Iterator[bytes]:
    with path.open("rb") as opened:
        opened.seek(first)
        while length and (piece := opened.read(min(PIECE, length))):
            length -= len(piece)
            yield piece


def disposition(path: str) -> str:
    plain = path.replace("\\", "\\\\").replace('"', '\\"')
    plain = plain.encode("latin-1", "replace").decode("latin-1")
    encoded = quote(path.encode("utf-8", "surrogateescape"), safe="$&+=:@")
    return f'filename="{plain}"; filename*=utf-8\'\'{encoded}'


def download(sandbox: Sandbox, request: Request) -> Reply:
    path = named(sandbox, request)
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise refuse(sandbox, 400, str(path))
    first, size, more, status = 0, found.st_size, [], 200
    if span := re.fullmatch(r"bytes=(\d+)-(\d*)", request.header("range") or ""):
        first = int(span[1])
        last = min(int(span[2] or size - 1), size - 1)
        if first > last:
            return Reply(416, [("Content-Range", f"bytes */{size}")])
        more, status = [("Content-Range", f"bytes {first}-{last}/{size}")], 206
        size = last + 1 - first
    open(path, "rb").close()  # who may not read it is told before the head is sent
    headers = [("Accept-Ranges", "bytes"), ("Cache-Control", "must-revalidate"),
               ("Content-Description", "File Transfer"),
               ("Content-Disposition", "attachment; " + disposition(path.name)), *more,
               ("Content-Transfer-Encoding", "binary"),
               ("Content-Type", "application/octet-stream"), ("Expires", "0"),
               ("Last-Modified", formatdate(found.st_mtime, usegmt=True)), ("Pragma", "public")]
    return Reply(status, headers, pieces(path, first, size), size)


def store(sandbox: Sandbox, path: Path, source: Iterator[bytes]) -> int:
    """Truncated first and written as it comes: an upload that breaks leaves a part of it."""
    size = 0
    with open(writable(sandbox, path), "wb") as opened:
        for piece in source:
            size += opened.write(piece)
    return size


def upload(sandbox: Sandbox, request: Request) -> Reply:
    """One file of a form; its directory must be there."""
    path = named(sandbox, request)
    try:
        boundary = multipart.boundary_of(request.header("content-type"))
        for part in multipart.Reader(request.body.read, boundary).parts():
            if part.name == "file":
                store(sandbox, path, part.pieces())
                return empty(200)
    except multipart.Broken:
        pass
    except OSError:
        raise refuse(sandbox, 400, str(path)) from None
    raise refuse(sandbox, 400, str(path))


def upload_v2(sandbox: Sandbox, request: Request) -> Reply:
    if version(sandbox.config["daemon_version"]) < (0, 201):
        return not_found_page()
    path = named(sandbox, request)
    path.parent.mkdir(parents=True, exist_ok=True)
    if (request.header("content-type") or "").startswith("multipart/"):
        return upload(sandbox, request)
    store(sandbox, path, iter(request.body.read, b""))
    return empty(200)


def folder(sandbox: Sandbox, request: Request) -> Reply:
    path = named(sandbox, request)
    mode = request.first("mode") or "755"
    if not re.fullmatch("[0-7]{1,4}", mode):
        raise refuse(sandbox, 400, str(path))
    try:
        writable(sandbox, path).mkdir(int(mode, 8), parents=True, exist_ok=True)
    except FileExistsError:
        raise refuse(sandbox, 400, str(path)) from None
    return empty(201)


def remove(sandbox: Sandbox, request: Request) -> Reply:
    path = named(sandbox, request)
    if not os.path.lexists(path):
        raise refuse(sandbox, 404, str(path))
    writable(sandbox, path, follow=False)
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    elif request.first("recursive") != "true":
        raise refuse(sandbox, 400, str(path))
    else:
        shutil.rmtree(path)
    return empty(204)


def move(sandbox: Sandbox, request: Request) -> Reply:
    source = named(sandbox, request, "source")
    target = named(sandbox, request, "destination")
    if not os.path.lexists(source) or not target.parent.is_dir():
        raise refuse(sandbox, 404, str(source))
    if os.path.lexists(target):
        raise refuse(sandbox, 409, str(target))
    for path in (source, target):
        writable(sandbox, path, follow=False)
    source.rename(target)
    return empty(200)


def permissions(sandbox: Sandbox, request: Request) -> Reply:
    path = named(sandbox, request)
    path.stat()
    writable(sandbox, path)
    ids = []
    for name in ("owner", "group"):
        value = request.first(name)
        try:
            ids.append(-1 if not value else int(value) if value.isdecimal()
                       else pwd.getpwnam(value)[2 if name == "owner" else 3])
        except KeyError:
            raise refuse(sandbox, 400, value) from None
    mode = request.first("mode")
    if mode and not re.fullmatch("[0-7]{1,4}", mode):
        raise refuse(sandbox, 400, str(path))
    os.chown(path, *ids)
    if mode:
        path.chmod(int(mode, 8))
    return empty(200)


ROUTES = {
    "files.list": list_files, "files.info": file_info, "files.download": download,
    "files.upload": upload, "files.upload-v2": upload_v2, "files.folder": folder,
    "files.delete": remove, "files.move": move, "files.permissions": permissions,
}
