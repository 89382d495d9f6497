# SPDX-License-Identifier: Apache-2.0
"""multipart/form-data, read as it comes: a file of any size in constant memory."""

import re
from typing import Callable, Iterator

HEAD_LIMIT = 64 * 1024


class Broken(Exception):
    """What is no multipart body, or ends too early."""


def boundary_of(content_type: str | None) -> bytes:
    found = re.match(r'multipart/form-data\s*;.*?boundary=("?)([^";]{1,200})\1',
                     content_type or "", re.I)
    if not found:
        raise Broken("invalid multipart form")
    return found[2].encode("latin-1")


class Part:
    def __init__(self, reader: "Reader", headers: dict[str, str]) -> None:
        self.reader = reader
        self.headers = headers
        named = re.search(r'[; ]name="((?:[^"\\]|\\.)*)"',
                          headers.get("content-disposition", ""))
        self.name = re.sub(r"\\(.)", r"\1", named[1]) if named else ""

    def pieces(self) -> Iterator[bytes]:
        return self.reader.until_boundary()

    def whole(self) -> bytes:
        return b"".join(self.pieces())


class Reader:
    def __init__(self, read: Callable[[], bytes], boundary: bytes) -> None:
        self.read = read
        self.mark = b"\r\n--" + boundary
        # As if the first boundary had a line in front of it, as all others do.
        self.held = b"\r\n"
        self.in_part = False

    def _more(self) -> None:
        data = self.read()
        if not data:
            raise Broken("multipart: NextPart: EOF")
        self.held += data

    def until_boundary(self) -> Iterator[bytes]:
        while self.in_part:
            at = self.held.find(self.mark)
            # What may be the beginning of a boundary stays.
            end = at if at >= 0 else max(len(self.held) - len(self.mark) + 1, 0)
            piece, self.held = self.held[:end], self.held[end:]
            if piece:
                yield piece
            if at >= 0:
                self.held = self.held[len(self.mark):]
                self.in_part = False
            else:
                self._more()

    def parts(self) -> Iterator[Part]:
        self.in_part = True
        while True:
            for _ in self.until_boundary():
                pass  # what nobody read of the part before, or is in front of the first
            while len(self.held) < 2:
                self._more()
            if self.held.startswith(b"--"):
                return
            if not self.held.startswith(b"\r\n"):
                raise Broken("multipart: a line of the content begins like a boundary")
            while b"\r\n\r\n" not in self.held:
                if len(self.held) > HEAD_LIMIT:
                    raise Broken("multipart: the head of a part is too long")
                self._more()
            head, self.held = self.held.split(b"\r\n\r\n", 1)
            self.in_part = True
            yield Part(self, headers_of(head))


def headers_of(head: bytes) -> dict[str, str]:
    headers = {}
    for line in head.decode("utf-8", "surrogateescape").split("\r\n"):
        if line:
            name, colon, value = line.partition(":")
            if not colon:
                raise Broken("multipart: malformed header")
            headers[name.lower()] = value.strip()
    return headers
