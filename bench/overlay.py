# SPDX-License-Identifier: Apache-2.0
"""Overlay seeding: what its mount costs, and what counting and hiding cost beside it."""

import os
import subprocess

FILES, PER_DIRECTORY = 100_000, 100


class Measured:
    """What the driver printed of some runs, the one with the cheapest mount."""

    def __init__(self, title, printed):
        self.title, self.printed = title, printed

    def lines(self):
        yield f"### {self.title}"
        yield ""
        yield "Goal: under 5 ms for the mount, whatever is in the files."
        yield ""
        yield self.printed
        yield ""


def make_files(root):
    for directory in range(FILES // PER_DIRECTORY):
        folder = root / f"d{directory // 10}" / f"e{directory}"
        folder.mkdir(parents=True)
        for index in range(PER_DIRECTORY):
            (folder / f"file-{index}.txt").write_bytes(b"x" * 16)
        (folder / ".env").write_bytes(b"secret")


def measure(bench, base, label):
    work = bench.workdir(base)
    make_files(work / "seed")
    found = []
    for turn in range(bench.rounds):
        layers = work / f"layers-{turn}"
        layers.mkdir()
        run = subprocess.run([str(bench.build / "bench" / "overlay"), str(work / "seed"),
                              str(layers)], check=True, stdout=subprocess.PIPE, text=True)
        found.append(run.stdout.strip())
    best = min(found, key=lambda line: float(line.split()[-2]))
    return Measured(f"{FILES:,} files, and {FILES // PER_DIRECTORY:,} that are hidden, {label}",
                    f"Fastest of 30 starts each, best of {bench.rounds} runs: {best}.")


def section(bench, file_system):
    for base in "/dev/shm", os.environ.get("BENCH_DISK", "/var/tmp"):
        if os.access(base, os.W_OK):
            yield measure(bench, base, f"{file_system(base)} ({base})")
