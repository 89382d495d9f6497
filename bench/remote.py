# SPDX-License-Identifier: Apache-2.0
"""Backends of services against the fakes of them, near and far: what their operations take, and how
many requests that is. See bench.py, and ../tests/remote_requests.py, which does it."""
import json
import os
import pathlib
import statistics
import subprocess
from typing import Iterator

from report import Curve, Facts, Grid, duration

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "tests" / "remote_requests.py"
SERVICES = {"agentcore": "AgentCore", "daytona": "Daytona"}
LATENCIES = (0, 0.02, 0.1)
MANY = 1000  # files, of which it is promised
FILES, MORE = (1, 10, MANY), 10_000
TURNS, LARGE_MIB = 2, 256


def measure(build: pathlib.Path, service: str, latency: float, *more: str) -> dict:
    env = {**os.environ, "PYTHONPATH": str(build / "python")}
    if os.access("/dev/shm", os.W_OK):
        env["TMPDIR"] = "/dev/shm"  # what is measured is not the disk, of the fake least of all
    argv = ["/usr/bin/python3", str(PROGRAM), service, "--latency", str(latency), *more]
    return json.loads(subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True,
                                     text=True).stdout)


def requests(operation: dict) -> int:
    return sum(operation["requests"].values())


def seeds(operations: list[dict]) -> dict[int, dict]:
    return {one["files"]: one for one in operations if "files" in one}


def table(service: str, found: dict[float, list[dict]]) -> Grid:
    rows = []
    for near, *farther in zip(*found.values(), strict=True):
        detail = ", ".join(f"{count} {name}" if count > 1 else name
                           for name, count in near["requests"].items())
        rows.append([near["name"], requests(near), detail,
                     *(duration(statistics.median(one["seconds"])) for one in (near, *farther))])
    seed = seeds(found[LATENCIES[0]])[MANY]
    return Grid(f"{SERVICES[service]}, with so much added to each round trip",
                "a seed of 1,000 files does not cost 1,000 round trips, but 20 at most",
                ["", "requests", "which", *(f"{1000 * latency:g} ms" for latency in LATENCIES)],
                rows, {f"{service}-seed": requests(seed)})


def curve(service: str, found: dict[float, list[dict]]) -> Curve:
    series = {f"{1000 * latency:g} ms": [
        (count, statistics.median(seed["seconds"])) for count, seed in seeds(operations).items()]
        for latency, operations in found.items()}
    return Curve(f"Seeding {SERVICES[service]}, by latency", "files", "seconds", series, series)


def section(bench) -> Iterator[Grid | Curve | Facts]:
    for service in SERVICES:
        found = {latency: measure(bench.build, service, latency, "--turns", str(TURNS), "--files",
                                  *map(str, FILES), "--more", str(MORE))["operations"]
                 for latency in LATENCIES}
        yield table(service, found)
        yield curve(service, found)
    added = measure(bench.build, "daytona", 0, "--files", "1", "--large",
                    str(LARGE_MIB))["added_mib"]
    yield Facts("Daytona, a large file there and back", "memory does not grow with its size",
                {f"added to the peak by {LARGE_MIB} MiB instead of 1": f"{added:.2f} MiB"},
                {"daytona-memory": max(added, 0)})
