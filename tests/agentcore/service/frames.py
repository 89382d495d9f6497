# SPDX-License-Identifier: Apache-2.0
"""Messages of application/vnd.amazon.eventstream."""

import json
import struct
import zlib


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def message(headers: list[tuple[str, str]], payload: bytes, spoil: str = "") -> bytes:
    """One message; spoil: prelude or message is given a wrong checksum."""
    packed = b"".join(
        struct.pack(">B", len(name)) + name.encode() + b"\x07" +
        struct.pack(">H", len(value.encode())) + value.encode() for name, value in headers)
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    checksum = zlib.crc32(prelude) ^ (spoil == "prelude")
    frame = prelude + struct.pack(">I", checksum) + packed + payload
    return frame + struct.pack(">I", zlib.crc32(frame) ^ (spoil == "message"))


def event(kind: str, payload: bytes, spoil: str = "", message_type: str | None = "event") -> bytes:
    headers = [(":event-type", kind), (":content-type", "application/json")]
    if message_type:
        headers.append((":message-type", message_type))
    return message(headers, payload, spoil)


def exception(kind: str, payload: bytes) -> bytes:
    return message([(":exception-type", kind), (":content-type", "application/json"),
                    (":message-type", "exception")], payload)
