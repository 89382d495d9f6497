# SPDX-License-Identifier: Apache-2.0
"""What was promised of Pinfold's speed and size, and what a run of the bench measured of it.

A promise that a whole run does not measure is an error of the bench, and so is a measurement that
nobody promised. What falls short is explained in notes.md, under the key of the promise; so is what
is met in a way that the number does not tell.
"""
import pathlib
import re
from dataclasses import dataclass
from typing import Iterable, Iterator

from report import Measured, row

NOTES = pathlib.Path(__file__).with_name("notes.md")


@dataclass(frozen=True)
class Promise:
    """At most so much; of a speed, at least. A time, a speed or a share is a ratio to a peer's."""

    key: str
    what: str
    goal: float
    unit: str  # "time" or "speed", or what follows the number
    peer: str = ""

    @property
    def is_ratio(self) -> bool:
        return self.unit in ("time", "speed", "share")

    @property
    def limit(self) -> float:
        """For what is measured: a ratio of times, whatever was promised."""
        return 1 / self.goal if self.unit == "speed" else self.goal

    def is_met(self, value: float) -> bool:
        return value <= self.limit

    def shown(self, value: float) -> str:
        if self.is_ratio:
            ratio = 1 / value if self.unit == "speed" else value
            rounded = round(ratio, 2)
            says_so = rounded >= self.goal if self.unit == "speed" else rounded <= self.goal
            return f"{ratio:.{2 if says_so == self.is_met(value) else 4}f} x"
        number = f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
        return f"{number} {self.unit}".rstrip()

    @property
    def goal_shown(self) -> str:
        side = "at least" if self.unit == "speed" else "at most"
        if not self.is_ratio:
            return f"{side} {self.goal:,g} {self.unit}".rstrip()
        of = self.peer if self.unit == "share" else f"the {self.unit} of {self.peer}"
        return f"{side} {self.goal:g} x {of}"


PROMISES = [
    Promise("command", "A command in a live isolated sandbox", 1.15, "time", "posix_spawn"),
    Promise("command-shell", "`sh -c true` in a live isolated sandbox", 1.15, "time",
            "posix_spawn"),
    Promise("command-heap", "A command started by a program with 1 GiB of heap", 1.1, "time",
            "a small program's"),
    Promise("local-process", "`pinfold run --backend local -- true`", 2, "time", "sh -c true"),
    Promise("isolated-start", "An isolated sandbox, from nothing to its first finished command",
            0.4, "time", "bwrap"),
    Promise("isolated-process", "`pinfold run -- true`", 0.5, "time", "bwrap"),
    Promise("isolated-memory", "Memory of an idle isolated sandbox, of 1,000", 1024, "KiB"),
    Promise("isolated-left", "Objects of the kernel left after 1,000 sandboxes", 0, ""),
    Promise("seed-tmpfs", "Seeding 10,000 files of 4 KiB, tmpfs", 2, "speed", "cp -a"),
    Promise("seed-disk", "Seeding 10,000 files of 4 KiB, disk", 1.5, "speed", "cp -a"),
    Promise("large-tmpfs", "Seeding one file of 1 GiB, tmpfs", 1, "speed", "cp -a"),
    Promise("large-disk", "Seeding one file of 1 GiB, disk", 1, "speed", "cp -a"),
    Promise("overlay-tmpfs", "Mounting an overlay on 100,000 files, tmpfs", 5, "ms"),
    Promise("overlay-disk", "Mounting an overlay on 100,000 files, disk", 5, "ms"),
    Promise("flush-overlay", "Flushing 10 changes of an overlay on 10,000 files", 1.5, "time",
            "one on 100 files"),
    Promise("flush-copy", "Flushing 10 changes among 10,000 copied files", 1, "time", "rsync -a"),
    Promise("output-speed", "Output, streamed by the callback", 0.8, "speed", "cat | cat"),
    Promise("output-kept", "1 GiB of output, 100,000 bytes kept", 1.25, "time", "head | cat"),
    Promise("output-memory", "Peak memory with 1 GiB of output", 16, "MiB"),
    Promise("output-growth", "Peak memory with 1 GiB of output", 1.05, "share",
            "that with 16 MiB"),
    Promise("python-read", "`read_file` of 1 KiB, awaited in Python", 3, "time", "the call in C"),
    Promise("python-execute", '`execute("true")` on local, awaited in Python', 1.15, "time",
            "asyncio's subprocess"),
    Promise("python-stall", "Longest turn of an event loop with 200 commands", 50, "ms"),
    Promise("mcp-read", "What the MCP server adds to `read_file`", 0.3, "ms"),
    Promise("mcp-execute", 'What the MCP server adds to `execute("true")`', 0.3, "ms"),
    Promise("agentcore-seed", "A seed of 1,000 files, AgentCore", 20, "requests"),
    Promise("daytona-seed", "A seed of 1,000 files, Daytona, polls included", 20, "requests"),
    Promise("daytona-memory", "Memory that 256 MiB there and back add, Daytona", 4, "MiB"),
    Promise("growth", "The steepest growth curve of ours (quadratic: 2)", 1.3, ""),
]
BY_KEY = {promise.key: promise for promise in PROMISES}


class Ledger:
    """What a run measured, of each promise the worst."""

    def __init__(self) -> None:
        self.found: dict[str, Measured] = {}

    def note(self, measured: Iterable[tuple[str, Measured]]) -> None:
        for key, one in measured:
            if key not in BY_KEY:
                raise KeyError(f"nobody promised {key!r}: bench/promises.py has the promises")
            if key not in self.found or one.value > self.found[key].value:
                self.found[key] = one

    def outcomes(self) -> Iterator[tuple[Promise, Measured]]:
        for promise in PROMISES:
            if promise.key in self.found:
                yield promise, self.found[promise.key]

    def missing(self) -> list[str]:
        return [promise.key for promise in PROMISES if promise.key not in self.found]

    def lines(self) -> Iterator[str]:
        explained = set(re.findall(r"^## (\S+)$", NOTES.read_text(encoding="utf-8"), re.MULTILINE))
        yield "| promised | goal | measured | at the fastest | met |"
        yield "|---|---|---|---|---|"
        for promise, one in self.outcomes():
            met = "yes" if promise.is_met(one.value) else "**no**"
            if promise.key in explained:
                met += f", [why](notes.md#{promise.key})"
            fastest = "" if one.fastest is None else promise.shown(one.fastest)
            yield row(promise.what, promise.goal_shown, promise.shown(one.value), fastest, met)
        yield ""

    def data(self) -> list[dict]:
        return [{"key": promise.key, "promised": promise.what, "goal": promise.goal_shown,
                 "measured": promise.shown(one.value), "value": one.value, "limit": promise.limit,
                 "met": promise.is_met(one.value)} for promise, one in self.outcomes()]
