# SPDX-License-Identifier: Apache-2.0
"""What the fakes of services (agentcore/, daytona/) have in common: connections, requests that are
being answered, faults that wait for theirs, and their own life."""

import json
import os
import signal
import socket
import struct
import threading
from typing import Any, Callable

SIGNALS = {signal.SIGTERM, signal.SIGINT}


class BadRequest(Exception):
    """What cannot be read as a request of HTTP; the connection is of no further use."""


def parse_head(head: bytes) -> tuple[str, str, list[tuple[str, str]]]:
    """The method, the target and the headers of a request."""
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] != "HTTP/1.1" or not words[1].startswith("/"):
        raise BadRequest(f"bad request line: {lines[0]!r}")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or "\n" in line or "\r" in line:
            raise BadRequest(f"bad header: {line!r}")
        headers.append((name, value.strip(" \t")))
    return words[0], words[1], headers


class Peer:
    """A client's connection."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer

    def end(self, then: str) -> None:
        """After a reply that was cut: it is closed, unless it is to stall, or to be reset."""
        if then == "stall":
            # Nothing more comes until the client has had enough of it.
            while self.peer.recv(65536):
                pass
        if then == "reset":
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def hung_up(self) -> bool:
        """Whether the client closed its end while it was waiting for a reply."""
        try:
            return self.peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class Answering:
    """How many requests are being answered."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()

    def __enter__(self) -> None:
        with self.lock:
            self.count += 1

    def __exit__(self, *_why: Any) -> None:
        with self.lock:
            self.count -= 1


class Waiting:
    """Faults, each of which waits for a request that it fits."""

    def __init__(self, check: Callable[[dict], dict]) -> None:
        """check: returns a copy of a fault, or raises ValueError with what is wrong with it."""
        self.check = check
        self.waiting: list[dict] = []
        self.lock = threading.Lock()

    def add(self, faults: list[dict]) -> None:
        checked = [self.check(fault) for fault in faults]
        with self.lock:
            self.waiting += checked

    def clear(self) -> None:
        with self.lock:
            self.waiting.clear()

    def first(self, fits: Callable[[dict], bool]) -> dict | None:
        """The first one that fits a request, and has let as many pass as it was to."""
        with self.lock:
            for fault in filter(fits, self.waiting):
                if fault.get("skip", 0) > 0:
                    fault["skip"] -= 1
                    continue
                count = fault.get("count", 1)
                if count is not None:
                    fault["count"] = count - 1
                    if count <= 1:
                        self.waiting.remove(fault)
                return fault
        return None


def check_fault(fault: dict, members: dict[str, set[str]], common: set[str]) -> dict:
    """A copy of a fault. members: of each kind, besides those that are common to all."""
    kind = fault.get("kind")
    if kind not in members:
        raise ValueError(f"no such kind of fault: {kind}")
    unknown = set(fault) - common - members[kind]
    if unknown:
        raise ValueError(f"{kind} has no {', '.join(sorted(unknown))}")
    if fault.get("when", "before") not in ("before", "after"):
        raise ValueError("when is before or after")
    return dict(fault)


def listen(port: int) -> tuple[socket.socket, str]:
    """The socket of a fake, and its address. Before any thread: all inherit that the signals are
    blocked, and the main thread alone waits for them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    listener = socket.create_server(("127.0.0.1", port), backlog=512)
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


def serve(listener: socket.socket, answer: Callable[[socket.socket], None], leash: bool,
          told: dict) -> None:
    """Have each connection answered by a thread of its own, tell whoever started this that it
    begins, and return when it is to end. leash: with standard input, too."""
    threading.Thread(target=_accept, args=(listener, answer), daemon=True).start()
    if leash:
        threading.Thread(target=_follow_leash, daemon=True).start()
    print(json.dumps(told), flush=True)
    signal.sigwait(SIGNALS)
    listener.close()


def _accept(listener: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return  # closed: the end
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(peer,), daemon=True).start()


def _follow_leash() -> None:
    # Not sys.stdin: its lock would be held when the interpreter ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
