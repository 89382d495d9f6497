# SPDX-License-Identifier: Apache-2.0
"""Overlay seeding: what its mount costs, and what counting and hiding cost beside it."""

import os
import statistics
import subprocess

from report import Measured

FILES, PER_DIRECTORY = 100_000, 100


class Starts:
    """What the driver printed of some runs, the one with the cheapest mount."""

    goal = "under 5 ms for the mount, whatever is in the files"

    def __init__(self, title, printed, promise, milliseconds):
        self.title, self.printed = title, printed
        self.promise, self.milliseconds = promise, milliseconds

    def measured(self):
        yield self.promise, Measured(self.milliseconds)

    def lines(self):
        yield f"### {self.title}"
        yield ""
        yield f"Goal: {self.goal}."
        yield ""
        yield self.printed
        yield ""

    def data(self):
        return {"title": self.title, "goal": self.goal, "facts": {"printed": self.printed}}


def make_files(root):
    for directory in range(FILES // PER_DIRECTORY):
        folder = root / f"d{directory // 10}" / f"e{directory}"
        folder.mkdir(parents=True)
        for index in range(PER_DIRECTORY):
            (folder / f"file-{index}.txt").write_bytes(b"x" * 16)
        (folder / ".env").write_bytes(b"secret")


def milliseconds(line):
    return float(line.split()[-2])


def measure(bench, base, kind, label):
    work = bench.workdir(base)
    make_files(work / "seed")
    found = []
    for turn in range(bench.rounds):
        layers = work / f"layers-{turn}"
        layers.mkdir()
        run = subprocess.run([str(bench.build / "bench" / "overlay"), str(work / "seed"),
                              str(layers)], check=True, stdout=subprocess.PIPE, text=True)
        found.append(run.stdout.strip())
    best = min(found, key=milliseconds)
    return Starts(f"{FILES:,} files, and {FILES // PER_DIRECTORY:,} that are hidden, {label}",
                  f"Fastest of 30 starts each, best of {bench.rounds} runs: {best}.",
                  f"overlay-{kind}", statistics.median(map(milliseconds, found)))


def section(bench, file_system):
    for base, kind in (("/dev/shm", "tmpfs"), (os.environ.get("BENCH_DISK", "/var/tmp"), "disk")):
        if os.access(base, os.W_OK):
            yield measure(bench, base, kind, f"{file_system(base)} ({base})")
