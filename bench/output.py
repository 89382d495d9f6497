#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure what it costs to run a command and to capture its output.

    output.py BUILD_DIR [--rounds N]

section() returns rows (title, goal, {contender: [seconds, ...]}); the first contender is ours, the
second what it is measured against. Contenders run in turns, so that a machine that slows down slows
all of them.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import time

from drivers import processes

GIB = 1 << 30
FLOOD = f"head -c {GIB} /dev/zero"
KEPT = ["run", "-q", "--backend", "local", "--json", "--max-output", "100000", "--"]
TRICKLE = f"head -c {GIB >> 6} /dev/zero"


def spawn(argv, stdout=os.devnull):
    """Run a program; return its seconds."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, stdout, os.O_WRONLY, 0)]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"{argv} ended with status {status}")
    return seconds


def shell(command):
    return lambda: spawn(["/bin/sh", "-c", command])


def in_turns(contenders, rounds):
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            times[name].append(run())
    return times


def peak_memory(pinfold, command):
    """MiB of pinfold while a command's output goes through it. Not ru_maxrss: that counts what the
    process was before it executed the program, which here is a whole Python."""
    child = subprocess.Popen([pinfold, *KEPT, command], stdout=subprocess.DEVNULL)
    kib = 0
    while child.poll() is None:
        with open(f"/proc/{child.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    kib = max(kib, int(line.split()[1]))
        time.sleep(0.001)
    return kib / 1024


def memory(build):
    """What bench.py makes Facts of."""
    pinfold = str(pathlib.Path(build).resolve() / "pinfold")
    much, little = (max(peak_memory(pinfold, command) for _ in range(3))
                    for command in (FLOOD, TRICKLE))
    return ("Peak memory of pinfold run --json --max-output 100000",
            "under 16 MiB, and the same for any output",
            {"1 GiB of output": f"{much:.2f} MiB", "16 MiB of output": f"{little:.2f} MiB"},
            {"output-memory": much, "output-growth": much / little})


def section(build, rounds=7):
    pinfold = str(pathlib.Path(build).resolve() / "pinfold")
    quoted = f"'{pinfold}'"
    start = processes(pathlib.Path(build), {
        "pinfold run --backend local -- true": [pinfold, "run", "--backend", "local", "--", "true"],
        "sh -c true": ["/bin/sh", "-c", "true"],
    }, rounds * 100)
    kept = in_turns({
        "pinfold run --json --max-output 100000":
            lambda: spawn([pinfold, *KEPT, FLOOD]),
        "head | cat": shell(f"{FLOOD} | cat >/dev/null"),
    }, rounds)
    streamed = in_turns({
        "pinfold run | cat":
            shell(f"{quoted} run -q --backend local -- '{FLOOD}' | cat >/dev/null"),
        "head | cat | cat": shell(f"{FLOOD} | cat | cat >/dev/null"),
    }, rounds)
    return [
        ("A command, whole process", "at most 2 x the time of sh -c true", start),
        ("1 GiB of output, 100,000 bytes kept", "at most 1.25 x the time of head | cat", kept),
        ("1 GiB of output, streamed by the callback", "at least 0.8 x the speed of cat | cat",
         streamed),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    for title, goal, times in section(args.build, args.rounds):
        ours, base = (statistics.median(t) for t in list(times.values())[:2])
        print(f"{title}\n  goal: {goal}")
        for name, seconds in times.items():
            print(f"  {statistics.median(seconds) * 1000:9.2f} ms  {name}")
        print(f"  {ours / base:9.2f} x\n")


if __name__ == "__main__":
    main()
