# SPDX-License-Identifier: Apache-2.0
"""
HTTP/1.1 on a socket, by hand: a signature covers the bytes as they were sent, and a fault has to
break a reply at a chosen byte. Python's own server allows neither.
"""

import socket
import time
from dataclasses import dataclass, field
from http import HTTPStatus

from faked import BadRequest, Peer, parse_head

HEAD_LIMIT = 64 * 1024


@dataclass
class Request:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for key, value in self.headers if key.lower() == name]
        return ",".join(found) if found else None


@dataclass
class Delivery:
    """How a reply goes out; the defaults are how an honest server sends it."""

    delay: float = 0  # seconds before the first byte
    piece: int = 0  # bytes of the body in one chunk; 0: one message, one chunk
    pause: float = 0  # seconds between pieces
    body_byte: int | None = None  # stop after so many bytes of the body
    wire_byte: int | None = None  # stop after so many bytes of the whole reply
    then: str = "close"  # close, reset, stall, or end: as if the body were complete


@dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes | list[bytes]  # a list goes out chunked, one chunk for each
    delivery: Delivery = field(default_factory=Delivery)


class Connection(Peer):
    def __init__(self, peer: socket.socket, body_limit: int) -> None:
        super().__init__(peer)
        self.body_limit = body_limit
        self.read = b""

    def receive(self) -> Request | None:
        """The next request; None at the end of the connection."""
        while b"\r\n\r\n" not in self.read:
            if len(self.read) > HEAD_LIMIT:
                raise BadRequest("the head is too long")
            more = self.peer.recv(65536)
            if not more:
                return None
            self.read += more
        head, self.read = self.read.split(b"\r\n\r\n", 1)
        method, target, headers = parse_head(head)
        request = Request(method, target, headers, b"")
        if request.header("transfer-encoding"):
            raise BadRequest("transfer-encoding: no client of the service sends its body in chunks")
        length = request.header("content-length") or "0"
        if not length.isdecimal() or int(length) > self.body_limit:
            raise BadRequest(f"content-length: {length}")
        if (request.header("expect") or "").lower() == "100-continue":
            self.peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.body = self._body(int(length))
        return request

    def _body(self, length: int) -> bytes:
        pieces, missing = [self.read[:length]], length - len(self.read[:length])
        self.read = self.read[length:]
        while missing:
            more = self.peer.recv(min(missing, 1 << 20))
            if not more:
                raise BadRequest("the connection ended inside a body")
            pieces.append(more)
            missing -= len(more)
        return b"".join(pieces)

    def send(self, reply: Reply) -> bool:
        """Whether the connection may be used again."""
        how = reply.delivery
        time.sleep(how.delay)
        left = how.wire_byte
        for piece in pieces_of(reply):
            if left is not None and len(piece) >= left:
                self.peer.sendall(piece[:left])
                self.end(how.then)
                return False
            self.peer.sendall(piece)
            left = None if left is None else left - len(piece)
            time.sleep(how.pause)
        if left is None and (how.body_byte is None or ends_well(reply)):
            return True
        self.end(how.then)
        return False


def ends_well(reply: Reply) -> bool:
    """A chunked body may be cut and still end as HTTP wants it."""
    return reply.delivery.then == "end" and isinstance(reply.body, list)


def pieces_of(reply: Reply) -> list[bytes]:
    """The reply as it goes over the wire, in the pieces in which it is sent."""
    how = reply.delivery
    chunked = isinstance(reply.body, list)
    chunks = reply.body if chunked else [reply.body]
    body = b"".join(chunks)
    headers = list(reply.headers)
    headers.append(("transfer-encoding", "chunked") if chunked
                   else ("content-length", str(len(body))))
    if how.piece:
        chunks = [body[at:at + how.piece] for at in range(0, len(body), how.piece)]
    if how.body_byte is not None:
        chunks = cut(chunks, how.body_byte)
    reason = next((known.phrase for known in HTTPStatus if known == reply.status), "Unknown")
    lines = [f"HTTP/1.1 {reply.status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    pieces = ["\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"]
    if not chunked:
        return pieces + chunks
    pieces += [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks if chunk]
    if how.body_byte is None or ends_well(reply):
        pieces.append(b"0\r\n\r\n")
    return pieces


def cut(chunks: list[bytes], left: int) -> list[bytes]:
    kept = []
    for chunk in chunks:
        kept.append(chunk[:left])
        left -= len(kept[-1])
    return kept
