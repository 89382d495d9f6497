# SPDX-License-Identifier: Apache-2.0
"""The log of a command as a WebSocket: all of it so far, what comes after, and a close."""

import base64
import hashlib
import struct
import time
from typing import Iterator

from .sessions import Command
from .web import Reply, Request

ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
CHUNK = 1024
LINGER = 1.0  # seconds between the exit code and the close
NORMAL = 1000


def is_asked(request: Request) -> bool:
    return (request.header("upgrade") or "").lower() == "websocket"


def frame(opcode: int, data: bytes) -> bytes:
    head = bytes([0x80 | opcode])
    head += bytes([len(data)]) if len(data) < 126 else struct.pack(">BH", 126, len(data))
    return head + data


def frames(command: Command) -> Iterator[bytes]:
    until = None
    with open(command.place / "output.log", "rb") as log:
        while until is None or time.monotonic() < until:
            if until is None and command.done.wait(0.02):
                until = time.monotonic() + LINGER
            while data := log.read(CHUNK):
                yield frame(2, data)
            if until is not None:
                time.sleep(0.02)
    yield frame(8, struct.pack(">H", NORMAL))


def follow(command: Command, request: Request) -> Reply:
    key = (request.header("sec-websocket-key") or "").encode()
    accept = base64.b64encode(hashlib.sha1(key + ACCEPT).digest()).decode()
    headers = [("Upgrade", "websocket"), ("Connection", "Upgrade"),
               ("Sec-WebSocket-Accept", accept)]
    return Reply(101, headers, frames(command), length=0)
