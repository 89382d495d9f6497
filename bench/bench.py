#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure Pinfold beside the tools people use now, in one run, and write bench/results.md.

    bench.py BUILD_DIR [--rounds N] [--only SECTION] [--no-large]

A section is a function that takes a Bench and returns tables; add it to SECTIONS. Contenders are
run in turns, in another order each round, so that a machine that slows down slows all of them.
Of many small files nothing is deleted before everything has been measured: on ext4 that makes what
follows many times slower.
"""
import argparse
import datetime
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import calls  # noqa: E402
import density  # noqa: E402
import drivers  # noqa: E402
import growth  # noqa: E402
import isolated  # noqa: E402
import mcp_calls  # noqa: E402
import output  # noqa: E402
import overlay  # noqa: E402
import rate  # noqa: E402
import smallfiles  # noqa: E402
import transfer  # noqa: E402
from report import Facts, Table  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


class Bench:
    def __init__(self, build, rounds, large):
        self.build, self.rounds, self.large = pathlib.Path(build).resolve(), rounds, large
        self.rng = random.Random(1)
        self.dirs = []

    def workdir(self, base):
        path = pathlib.Path(tempfile.mkdtemp(prefix="pinfold-bench-", dir=base))
        self.dirs.append(path)
        return path

    def clean(self):
        drivers.remove(*self.dirs)


def commands(bench):
    for title, goal, times in output.section(bench.build, bench.rounds):
        yield Table(title, goal, times)


def python(bench):
    *tables, facts = calls.section(bench.build, bench.rounds)
    for title, goal, times in tables:
        yield Table(title, goal, times)
    yield Facts(*facts)


def mcp(bench):
    *tables, facts = mcp_calls.section(bench.build)
    for title, goal, times in tables:
        yield Table(title, goal, times)
    yield Facts(*facts)


def overlays(bench):
    yield from overlay.section(bench, file_system)


SECTIONS = {"seed": ("Seeding a workspace, and flushing it", transfer.section),
            "commands": ("Running commands", commands),
            "overlay": ("Seeding by an overlay", overlays), "python": ("Python", python),
            "isolated": ("Isolated sandboxes", isolated.section),
            "rate": ("Sandboxes each second", rate.section),
            "density": ("Idle sandboxes", density.section),
            "files": ("Small files", smallfiles.section),
            "growth": ("Growth", growth.section),
            "mcp": ("The MCP server", mcp)}


def file_system(path):
    run = subprocess.run(["df", "--output=fstype", path], stdout=subprocess.PIPE, check=True,
                         text=True)
    return run.stdout.split()[-1]


def first_line(*argv):
    if not shutil.which(argv[0]):
        return None
    run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False)
    return run.stdout.splitlines()[0] if run.stdout else None


def machine():
    cpu = "unknown processor"
    for line in open("/proc/cpuinfo", encoding="ascii", errors="replace"):
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    yield f"- Date: {datetime.date.today().isoformat()}"
    yield f"- Machine: {cpu}, {os.cpu_count()} processors, {memory} GiB"
    yield f"- Kernel: {platform.system()} {platform.release()}"
    yield f"- Load before the run: {os.getloadavg()[0]:.2f}"
    for argv in (["cp", "--version"], ["rsync", "--version"], ["bwrap", "--version"],
                 ["crun", "--version"]):
        version = first_line(*argv)
        if version:
            yield f"- {version}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="a build directory configured with -Dbench=true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=sorted(SECTIONS))
    parser.add_argument("--no-large", action="store_true", help="leave out the files of 1 GiB")
    parser.add_argument("--output", default=str(HERE / "results.md"))
    options = parser.parse_args()

    bench = Bench(options.build, options.rounds, not options.no_large)
    if not (bench.build / "bench" / "copytree").exists():
        sys.exit(f"bench.py: {bench.build} has no drivers: run\n"
                 f"  meson configure -Dbench=true {options.build} && ninja -C {options.build}")
    lines = ["# Measurements", "", "Written by bench/bench.py. Times are of whole processes.", ""]
    lines += [*machine(), ""]
    try:
        for name, (title, section) in SECTIONS.items():
            if options.only and options.only != name:
                continue
            lines += [f"## {title}", ""]
            os.sync()  # what a section wrote must not go to the disk while the next is timed
            for table in section(bench):
                rows = list(table.lines())
                print("\n".join(rows), flush=True)
                lines += rows
    finally:
        bench.clean()
    pathlib.Path(options.output).write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    print(f"written to {options.output}")


if __name__ == "__main__":
    main()
