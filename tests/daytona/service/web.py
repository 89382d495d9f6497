# SPDX-License-Identifier: Apache-2.0
"""
HTTP/1.1 on a socket, by hand: bodies stream in both directions, and a fault has to break a request
or a reply at a chosen byte. Python's own server allows neither.
"""

import json
import socket
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

from faked import BadRequest, Peer, parse_head

HEAD_LIMIT = 64 * 1024
PIECE = 1 << 16
JSON_LIMIT = 100_000_000


class Cut(Exception):
    """A fault said that nothing comes or goes past this byte."""


@dataclass
class Delivery:
    """How a request is read and a reply goes out; the defaults are how an honest server does."""

    delay: float = 0  # seconds before the first byte of the reply
    piece: int = 0  # bytes of the body in one piece; 0: as they come
    pause: float = 0  # seconds between pieces
    body_byte: int | None = None  # stop after so many bytes of the reply's body
    wire_byte: int | None = None  # stop after so many bytes of the whole reply
    read_byte: int | None = None  # stop after so many bytes of the request's body
    then: str = "close"  # close, reset, stall, or end: as if the reply's body were complete


@dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes | Iterator[bytes] = b""
    length: int | None = None  # of a body that comes in pieces; None: chunked
    chunked: bool = False


class Body:
    """The body of a request, as it comes."""

    def __init__(self, connection: "Connection", length: int | None) -> None:
        self.connection = connection
        self.length = length  # None: chunked
        self.read_so_far = 0
        self.limit: int | None = None
        self._left = length or 0  # of the body or of a chunk
        self._done = length == 0

    def read(self, size: int = PIECE) -> bytes:
        """Some bytes of it; none at its end."""
        if self.limit is not None:
            size = min(size, self.limit - self.read_so_far)
            if size <= 0 and not self._done:
                raise Cut
        if not self._left and not self._done:
            self._next_chunk()
        if self._done:
            return b""
        data = self.connection.take(min(size, self._left))
        self._left -= len(data)
        self.read_so_far += len(data)
        if not self._left:
            self._done = self.length is not None
            if self.length is None and self.connection.line():
                raise BadRequest("a chunk is longer than it said")
        return data

    def _next_chunk(self) -> None:
        size = self.connection.line().split(b";")[0].strip()
        try:
            self._left = int(size, 16)
        except ValueError:
            raise BadRequest(f"the size of a chunk: {size!r}") from None
        if not self._left:
            while self.connection.line():
                pass
            self._done = True

    def whole(self) -> bytes:
        pieces = []
        while piece := self.read():
            pieces.append(piece)
            if self.read_so_far > JSON_LIMIT:
                raise BadRequest("the body is too long")
        return b"".join(pieces)


@dataclass
class Request:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: Body
    path: str = ""
    query: list[tuple[str, str]] = field(default_factory=list)
    text: bytes = b""  # of the body, once it was read whole
    delivery: Delivery = field(default_factory=Delivery)

    def __post_init__(self) -> None:
        split = urlsplit(self.target)
        self.path = split.path
        # What is no UTF-8 is a name on the disk all the same.
        self.query = parse_qsl(split.query, keep_blank_values=True, errors="surrogateescape")

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return ",".join(found) if found else None

    def first(self, name: str) -> str | None:
        return next((value for key, value in self.query if key == name), None)

    @property
    def words(self) -> list[str]:
        return [unquote(word, errors="surrogateescape") for word in self.path.split("/")[1:]]

    def read_all(self) -> bytes:
        self.text = self.text or self.body.whole()
        return self.text

    def json(self) -> object:
        return json.loads(self.read_all())


class Connection(Peer):
    def __init__(self, peer: socket.socket) -> None:
        super().__init__(peer)
        self.unread = b""

    def take(self, size: int) -> bytes:
        if not self.unread:
            self.unread = self.peer.recv(PIECE)
            if not self.unread:
                raise BadRequest("the connection ended inside a request")
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    def line(self) -> bytes:
        while b"\r\n" not in self.unread:
            if len(self.unread) > HEAD_LIMIT:
                raise BadRequest("a line is too long")
            more = self.peer.recv(PIECE)
            if not more:
                raise BadRequest("the connection ended inside a chunk")
            self.unread += more
        line, self.unread = self.unread.split(b"\r\n", 1)
        return line

    def receive(self) -> Request | None:
        """The next request; None at the end of the connection."""
        while b"\r\n\r\n" not in self.unread:
            if len(self.unread) > HEAD_LIMIT:
                raise BadRequest("the head is too long")
            more = self.peer.recv(PIECE)
            if not more:
                return None
            self.unread += more
        head, self.unread = self.unread.split(b"\r\n\r\n", 1)
        method, target, headers = parse_head(head)
        request = Request(method, target, headers, Body(self, 0))
        coding, length = request.header("transfer-encoding"), request.header("content-length")
        if coding and (coding.lower() != "chunked" or length):
            raise BadRequest(f"transfer-encoding: {coding}, content-length: {length}")
        if not (length or "0").isdecimal():
            raise BadRequest(f"content-length: {length}")
        request.body = Body(self, None if coding else int(length or 0))
        if (request.header("expect") or "").lower() == "100-continue":
            self.peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return request

    def send(self, request: Request, reply: Reply) -> bool:
        """Whether the connection may be used again."""
        how = request.delivery
        if how.delay:
            time.sleep(how.delay)
        try:
            left = how.wire_byte
            for piece in pieces_of(reply, how):
                if left is not None and len(piece) >= left:
                    self.peer.sendall(piece[:left])
                    raise Cut
                self.peer.sendall(piece)
                left = None if left is None else left - len(piece)
                if how.pause:
                    time.sleep(how.pause)
            # What the handler did not want to read is in the way of the next request.
            while request.body.read():
                pass
        except Cut:
            self.end(how.then)
            return False
        return reply.status != 101 and (request.header("connection") or "").lower() != "close"


def head_of(reply: Reply, length: int | None) -> bytes:
    headers = list(reply.headers)
    if length is None:
        headers.append(("Transfer-Encoding", "chunked"))
    elif reply.status not in (101, 204):
        headers.append(("Content-Length", str(length)))
    reason = next((known.phrase for known in HTTPStatus if known == reply.status), "Unknown")
    # Go's server lets no value end a line; parts of a multipart body have no such guard.
    lines = [f"HTTP/1.1 {reply.status} {reason}",
             *(f"{name}: " + value.translate({10: " ", 13: " "}) for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def resized(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        for at in range(0, len(piece), size):
            yield piece[at:at + size]


def pieces_of(reply: Reply, how: Delivery) -> Iterator[bytes]:
    """The reply as it goes over the wire; Cut where it has to end."""
    whole = isinstance(reply.body, bytes)
    chunked = reply.chunked or (not whole and reply.length is None)
    length = None if chunked else len(reply.body) if whole else reply.length
    head = head_of(reply, length)
    if whole and not chunked and how.body_byte is None and not how.piece:
        yield head + reply.body  # one packet
        return
    yield head
    pieces = iter([reply.body]) if whole else reply.body
    left = how.body_byte
    for piece in resized(pieces, how.piece) if how.piece else pieces:
        keep = piece if left is None else piece[:left]
        if keep:
            yield b"%x\r\n%s\r\n" % (len(keep), keep) if chunked else keep
        if left is not None:
            left -= len(keep)
            if not left:
                if how.then == "end" and chunked:
                    break
                raise Cut
    if chunked:
        yield b"0\r\n\r\n"
