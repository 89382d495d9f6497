# SPDX-License-Identifier: Apache-2.0
"""Many commands at once in one sandbox, beside what else starts processes: see bench.py."""
import collections
import json
import os
import pathlib
import statistics
import subprocess
from typing import Callable, Iterator

import drivers
from report import Grid, Table, duration

AT_ONCE = (1, 8, 64)
COMMANDS, ROUNDS = 640, 3  # 640: each of 64 runs ten of them
# What asyncio does, and what our Python does on the same loop.
PROGRAM = r"""
import asyncio, json, logging, sys, tempfile, time
import pinfold

logging.disable(logging.WARNING)
PIPE = asyncio.subprocess.PIPE

async def theirs():
    child = await asyncio.create_subprocess_exec("true", stdout=PIPE, stderr=PIPE)
    await child.communicate()

async def main(who, at_once, commands, root):
    times = []

    async def worker(work):
        for _ in range(commands // at_once):
            start = time.perf_counter()
            await work()
            times.append(time.perf_counter() - start)

    async def measure(work):
        for _ in range(20):
            await work()
        start = time.perf_counter()
        await asyncio.gather(*(worker(work) for _ in range(at_once)))
        return [times, time.perf_counter() - start]

    if who == "asyncio":
        return await measure(theirs)
    async with pinfold.Sandbox("bench", pinfold.LocalSandboxBackend(root), 600) as sandbox:
        return await measure(lambda: sandbox.execute(["true"]))

with tempfile.TemporaryDirectory(prefix="pinfold-bench-") as place:
    print(json.dumps(asyncio.run(
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), place + "/root"))))
"""
Found = tuple[list[float], float]  # seconds of each command, and of all


def in_c(build: pathlib.Path, who: str, at_once: int, commands: int = COMMANDS,
         heap_mib: int = 0) -> Found:
    times = drivers.run(build, "concurrent", who, at_once, commands, heap_mib)
    return times["command"], times["all"][0]


def in_python(build: pathlib.Path, who: str, at_once: int) -> Found:
    env = {**os.environ, "PYTHONPATH": str(build / "python")}
    argv = ["/usr/bin/python3", "-c", PROGRAM, who, str(at_once), str(COMMANDS)]
    times, total = json.loads(subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True,
                                             text=True).stdout)
    return times, total


CONTENDERS: dict[str, Callable[[pathlib.Path, int], Found]] = {
    "isolated": lambda build, at_once: in_c(build, "isolated", at_once),
    "local": lambda build, at_once: in_c(build, "local", at_once),
    "posix_spawn and wait": lambda build, at_once: in_c(build, "spawn", at_once),
    "local, from Python": lambda build, at_once: in_python(build, "pinfold", at_once),
    "asyncio.create_subprocess_exec": lambda build, at_once: in_python(build, "asyncio", at_once),
}


def row(name: str, at_once: int, found: list[Found]) -> list[str]:
    times = sorted(seconds for each, _ in found for seconds in each)
    rate = statistics.median(len(each) / total for each, total in found)
    return [name, str(at_once), f"{rate:,.0f}", duration(statistics.median(times)),
            duration(times[len(times) * 99 // 100])]


def section(bench) -> Iterator[Grid | Table]:
    found = collections.defaultdict(list)
    for _ in range(ROUNDS):
        for at_once in AT_ONCE:
            for name, run in CONTENDERS.items():
                found[at_once, name].append(run(bench.build, at_once))
    yield Grid("`true`, several at once", None,
               ["", "at once", "commands each second", "median", "99 of 100 within"],
               [row(name, at_once, found[at_once, name])
                for at_once in AT_ONCE for name in CONTENDERS])
    heaps: dict[int, list[float]] = {1024: [], 0: []}
    for _ in range(ROUNDS):
        for mib, times in heaps.items():
            times += in_c(bench.build, "local", 1, COMMANDS // 2, mib)[0]
    yield Table("`true` on local, from C", "at most 1.1 x: a heap costs nothing",
                {"with 1 GiB of heap": heaps[1024], "without": heaps[0]}, "command-heap")
