# SPDX-License-Identifier: Apache-2.0
"""What goes wrong while the soak works. Each kind of trouble begins before an operation and ends
after it, or after a few of them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import threading
import urllib.request
from pathlib import Path
from typing import Any, Callable, Iterator

from place import COMMANDS, Place

A_WHILE = 10  # seconds
SLACK = 40  # milliseconds within which most operations are over


@contextlib.contextmanager
def killing(rng: random.Random, victim: Callable[[], int | None],
            told: Callable[[str], None], slack: int = SLACK) -> Iterator[None]:
    """Kill a process at a random moment of what is done meanwhile, or at its end."""
    moment, done = rng.uniform(0, slack) / 1000 * rng.choice([0.1, 1, 1, 5]), threading.Event()

    def strike() -> None:
        done.wait(moment)
        pid = victim()
        if pid:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
                os.kill(pid, signal.SIGKILL)
                told(f"killed {pid}, {name}, after {moment * 1000:.1f} ms")

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def someone_inside(rng: random.Random, place: Place, owner: int, local: bool,
                   count: Callable[[str], None]) -> Callable[[], int | None]:
    """A process that the owner has started, and which need not be its child: the first one of a
    sandbox, a supervisor, a command. What is about to be one of the former has the name of who has
    started it, which may be any. local: nobody holds what a supervisor outside of a sandbox has
    started but itself, and so it is commands alone: when one is struck after a long look at all
    processes, it is a command still."""
    def find() -> int | None:
        found = [one for one in place.descendants()
                 if one[0] != owner and (one[1] in COMMANDS or not local)]
        if not found:
            return None
        name = rng.choice(sorted({name for _, name in found}))
        count("command" if name in COMMANDS else name if name.startswith("pinfold-") else "unnamed")
        return rng.choice([pid for pid, its in found if its == name])
    return find


@contextlib.contextmanager
def limited(pid: int, what: int, value: int) -> Iterator[None]:
    """A lower limit of a process, for a while: not for ever, since a server that has no descriptor
    for a connection answers nobody until it has."""
    try:
        _, hard = resource.prlimit(pid, what)
        old = resource.prlimit(pid, what, (value, hard))
    except ProcessLookupError:
        yield
        return

    def restore() -> None:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, what, old)
    timer = threading.Timer(A_WHILE, restore)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        restore()


def few_descriptors(rng: random.Random, pid: int) -> contextlib.AbstractContextManager[None]:
    """A few more than there are."""
    try:
        highest = max(map(int, os.listdir(f"/proc/{pid}/fd")), default=0)
    except OSError:
        highest = 0
    return limited(pid, resource.RLIMIT_NOFILE, highest + 1 + rng.randint(0, 8))


def little_memory(rng: random.Random, pid: int) -> contextlib.AbstractContextManager[None]:
    """The limit of data, and not that of addresses, which a stack that grows is killed by."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            data = next((int(line.split()[1]) for line in status if line.startswith("VmData")), 0)
    except OSError:
        data = 0
    slack = rng.choice([0, 1, 4, 16, 64, 256, 1024, 8192])
    return limited(pid, resource.RLIMIT_DATA, (data + slack) << 10)


def small_files(rng: random.Random, pid: int) -> contextlib.AbstractContextManager[None]:
    return limited(pid, resource.RLIMIT_FSIZE, rng.choice([0, 10, 1000, 50_000]))


@contextlib.contextmanager
def full_disk(rng: random.Random, place: Place) -> Iterator[None]:
    """Next to nothing is left of the place's own disk."""
    filler = place.disk / "filler"
    left = rng.choice([0, 0, 4096, 20_000, 100_000])
    with filler.open("wb") as file:
        st = os.statvfs(place.disk)
        room = max(st.f_bavail * st.f_frsize - left, 0)
        with contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, room or 1)
    try:
        yield
    finally:
        filler.unlink()


# ---- services ----


def control(endpoint: str, name: str, asked: Any = None, method: str | None = None) -> Any:
    """Ask a fake of tests/ for something."""
    data = None if asked is None else json.dumps(asked).encode()
    base = endpoint.removesuffix("/api")
    request = urllib.request.Request(f"{base}/_fake/{name}", data, method=method)
    with urllib.request.urlopen(request, timeout=150) as reply:
        return json.loads(reply.read())


def some_fault(rng: random.Random, backend: str) -> dict[str, Any]:
    """Something that a fake does to one of the requests to come."""
    fault: dict[str, Any] = rng.choice([
        {"kind": "close"}, {"kind": "close", "then": "reset"},
        {"kind": "close", "body_byte": rng.choice([0, 1, 50, 500])},
        {"kind": "close", "when": "after"},
        {"kind": "slow", "delay": 0.05, "piece": 100, "pause": 0.001},
        {"kind": "http", "status": rng.choice([500, 502, 503])},
        {"kind": "http", "status": 500, "when": "after"},
        {"kind": "garbage", "payload": "{not json"},
    ])
    if backend != "daytona" and fault["kind"] == "http":
        fault["error"] = "InternalServerException"
    if backend == "daytona" and rng.random() < 0.15:
        fault = rng.choice([{"kind": "die"}, {"kind": "stop"}, {"kind": "lose_sessions"}])
    if backend != "daytona" and rng.random() < 0.1:
        fault = {"kind": "expire"}
    return {**fault, "skip": rng.choice([0, 0, 1, 3]), "count": rng.choice([1, 1, 2, 4])}


@contextlib.contextmanager
def cut_connections(rng: random.Random, backend: str, endpoint: str) -> Iterator[None]:
    control(endpoint, "faults", some_fault(rng, backend))
    try:
        yield
    finally:
        control(endpoint, "faults", method="DELETE")
