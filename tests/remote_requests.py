#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What each operation of a remote backend asks of its service, and how long it takes:

    remote_requests.py agentcore|daytona [--latency SECONDS] [--turns N] [--files N...]
                       [--more N...] [--large MIB]

with the Python package in PYTHONPATH. Starts the fake of the service, with so much added to every
round trip, and prints JSON: operations, a list of name, requests (of the first turn, by the fake's
names), seconds (of each turn) and, of seeds, files: of --files before a flush of the last of them,
of --more after it; and with --large, added_mib: what a file of so many MiB, sent and
fetched, adds to the peak of this process's memory.
"""

import argparse
import asyncio
import http.client
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Awaitable, Callable
from urllib.parse import urlsplit

for name in list(os.environ):
    if name.startswith(("AWS_", "DAYTONA_")) or name.lower().endswith("_proxy"):
        del os.environ[name]

import pinfold  # noqa: E402

FAKES = Path(__file__).resolve().parent
CHANGED = 10
Work = Callable[[], Awaitable[Any]]


class Fake:
    """The service, in a process of its own that ends with this one."""

    def __init__(self, service: str, place: Path) -> None:
        self.service = service
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(FAKES / service / "fake.py"), "--leash", "--directory",
             str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.told = json.loads(self.process.stdout.readline())

    def control(self, method: str, what: str, value: object = None) -> Any:
        split = urlsplit(self.told["endpoint"])
        connection = http.client.HTTPConnection(str(split.hostname), split.port, timeout=60)
        try:
            connection.request(method, f"/_fake/{what}", json.dumps(value) if value else None)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def counts(self) -> Counter:
        found = self.control("GET", "counts")
        return Counter(found["requests"] if self.service == "agentcore" else found)

    def backend(self) -> Any:
        if self.service == "agentcore":
            return pinfold.AgentCoreSandboxTemplate(
                "us-west-2", access_key="AKIAFAKEFAKEFAKEFAKE",
                secret_key="fakeSecretKey/Example+0123456789ABCDEFGH",
                endpoint=self.told["endpoint"]).build_for_session("requests")
        return pinfold.DaytonaSandboxTemplate(
            self.told["key"], self.told["api"], "us").build_for_session("requests")

    def end(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.wait(60):
            sys.exit(f"remote_requests.py: the fake {self.service} complains")


class Meter:
    def __init__(self, fake: Fake, turns: int) -> None:
        self.fake, self.turns = fake, turns
        self.operations: list[dict] = []

    async def take(self, title: str, work: Work, turns: int | None = None, **more: int) -> None:
        before, seconds = self.fake.counts(), []
        for turn in range(turns or self.turns):
            start = time.perf_counter()
            await work()
            seconds.append(time.perf_counter() - start)
            if turn == 0:
                requests = self.fake.counts() - before
        self.operations.append({"name": title, "requests": requests, "seconds": seconds, **more})


def make_files(root: Path, count: int) -> Path:
    for number in range(count):
        folder = root / f"d{number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}.md").write_text(f"{number}\n" * 100)
    return root


async def measure(fake: Fake, place: Path, meter: Meter, options: argparse.Namespace) -> None:
    backend, files = fake.backend(), options.files

    async def seed(count: int) -> Path:
        source = make_files(place / f"seed-{count}", count)
        await meter.take(f"seed of {count:,} file{'s' if count > 1 else ''}",
                         lambda: backend.seed_workspace(source), files=count)
        return source

    await meter.take("start", backend.create, 1)
    await meter.take('execute("true")', lambda: backend.execute("true"))
    await meter.take("write_file of 1 KiB", lambda: backend.write_file("one.md", "x" * 1024))
    await meter.take("read_file of 1 KiB", lambda: backend.read_file("one.md"))
    await meter.take("download of 1 KiB", lambda: backend.download_files(["one.md"]))
    for count in files:
        source = await seed(count)
    await backend.execute(
        f"for i in $(seq 0 {CHANGED - 1}); do echo changed > d$((i % 10))/f$i.md; done")

    async def flush() -> None:
        found = await backend.sync_artifacts(source, ["**"])
        assert not found.errors, found

    await meter.take(f"flush of {CHANGED} changed of {files[-1]:,}", flush, 1)
    for count in options.more:
        await seed(count)
    await meter.take("stop", backend.close, 1)


def peak_kib(reset: bool = False) -> int:
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


async def large_file(fake: Fake, place: Path, mib: int) -> float:
    """MiB that it adds to the peak; a small one has gone the same way before."""
    source, back = place / "large", place / "back"
    async with pinfold.Sandbox("large", fake.backend(), 3600) as sandbox:
        peaks = []
        for size in (1 << 20, mib << 20):
            with open(source, "wb") as file:
                for _ in range(size >> 20):
                    file.write(os.urandom(1 << 20))
            peak_kib(reset=True)
            await sandbox.add_files({"large": source})
            await sandbox.download_files({"large": back})
            peaks.append(peak_kib())
            assert back.stat().st_size == size
        return (peaks[1] - peaks[0]) / 1024


async def main(options: argparse.Namespace, place: Path) -> dict:
    fake = Fake(options.service, place)
    answer: dict = {}
    try:
        fake.control("POST", "config", {"latency": options.latency})
        meter = Meter(fake, options.turns)
        await measure(fake, place, meter, options)
        answer["operations"] = meter.operations
        if options.large:
            answer["added_mib"] = await large_file(fake, place, options.large)
    finally:
        fake.end()
    return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What operations of a remote backend cost.")
    parser.add_argument("service", choices=("agentcore", "daytona"))
    parser.add_argument("--latency", type=float, default=0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--files", type=int, nargs="+", default=[1, 10, 1000])
    parser.add_argument("--more", type=int, nargs="+", default=[])
    parser.add_argument("--large", type=int, default=0)
    logging.disable(logging.WARNING)
    # A short name: the backend puts the session's home into scripts, and wants that to be short.
    with tempfile.TemporaryDirectory(prefix="pf-") as directory:
        print(json.dumps(asyncio.run(main(parser.parse_args(), Path(directory)))))
