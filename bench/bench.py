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
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import calls  # noqa: E402
import output  # noqa: E402
import isolated  # noqa: E402
import mcp_calls  # noqa: E402
import overlay  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


class Table:
    """Seconds of several contenders; the first is ours, the second what it is measured against."""

    def __init__(self, title, goal, times):
        self.title, self.goal, self.times = title, goal, times

    def lines(self):
        second = list(self.times.values())[1]
        yield f"### {self.title}"
        yield ""
        if self.goal:
            yield f"Goal: {self.goal}."
            yield ""
        yield "| | median | fastest | slowest | runs | speed against the second | of the fastest |"
        yield "|---|---|---|---|---|---|---|"
        for name, times in self.times.items():
            median = statistics.median(times)
            yield (f"| {name} | {milliseconds(median)} | {milliseconds(min(times))} |"
                   f" {milliseconds(max(times))} | {len(times)} |"
                   f" {statistics.median(second) / median:.2f} x |"
                   f" {min(second) / min(times):.2f} x |")
        yield ""


class Facts:
    """Numbers that are no times."""

    def __init__(self, title, goal, facts):
        self.title, self.goal, self.facts = title, goal, facts

    def lines(self):
        yield from (f"### {self.title}", "", f"Goal: {self.goal}.", "")
        yield from ("| | |", "|---|---|")
        for name, value in self.facts.items():
            yield f"| {name} | {value} |"
        yield ""


def milliseconds(seconds):
    return f"{seconds * 1000:.{0 if seconds >= 0.1 else 2 if seconds >= 0.001 else 4}f} ms"


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
        for path in self.dirs:
            shutil.rmtree(path, ignore_errors=True)

    def compare(self, contenders, prepare=lambda name, turn: None):
        """contenders: name -> function(turn) -> argument vector. Returns name -> seconds."""
        times = {name: [] for name in contenders}
        for turn in range(self.rounds):
            order = list(contenders)
            self.rng.shuffle(order)
            for name in order:
                argv = contenders[name](turn)
                prepare(name, turn)
                start = time.perf_counter()
                subprocess.run([str(word) for word in argv], check=True,
                               stdout=subprocess.DEVNULL)
                times[name].append(time.perf_counter() - start)
        return times


def make_small_files(root, count=10000, size=4096, per_dir=100):
    data = os.urandom(size + count)
    for index in range(count):
        folder = root / f"d{index // (10 * per_dir)}" / f"e{index // per_dir}"
        if index % per_dir == 0:
            folder.mkdir(parents=True)
        (folder / f"file-{index}.txt").write_bytes(data[index:index + size])


def copiers(bench, work, source):
    def target(name, turn):
        return work / f"{name}-{turn}"

    found = {
        "copytree": lambda turn: [bench.build / "bench" / "copytree", source,
                                  target("ours", turn)],
        "cp -a": lambda turn: ["cp", "-a", source, target("cp", turn)],
    }
    if shutil.which("rsync"):
        found["rsync -a"] = lambda turn: ["rsync", "-a", f"{source}/", target("rsync", turn)]
    return found


def settle(_name, _turn):
    """What was written before is not to be written during the next run."""
    os.sync()


def seed_small(bench, base, label, goal):
    work = bench.workdir(base)
    make_small_files(work / "source")
    return Table(f"10,000 files of 4 KiB, {label}", goal,
                 bench.compare(copiers(bench, work, work / "source"), settle))


def seed_large(bench, base, label):
    work = bench.workdir(base)
    (work / "source").mkdir()
    with open(work / "source" / "file", "wb") as file:
        block = os.urandom(1 << 20)
        for _ in range(1024):
            file.write(block)
    contenders = copiers(bench, work, work / "source")

    def reuse_memory(_name, _turn):
        """Pages that a virtual machine has never touched cost many times more than the copy, and
        whoever gets them is a matter of luck: all use those of the copy before."""
        for copy in work.glob("*-*"):
            shutil.rmtree(copy)
        os.sync()

    for contender in contenders.values():
        reuse_memory(None, None)
        subprocess.run(contender(0), check=True, stdout=subprocess.DEVNULL)
    return Table(f"one file of 1 GiB, {label}", "never slower than cp",
                 bench.compare(contenders, reuse_memory))


def seed(bench):
    places = [("/dev/shm", "tmpfs", 2), (os.environ.get("BENCH_DISK", "/var/tmp"), None, 1.5)]
    for base, label, goal in places:
        if not os.access(base, os.W_OK):
            continue
        label = label or f"{file_system(base)} ({base})"
        yield seed_small(bench, base, label, f"at least {goal} x cp -a")
        if bench.large and shutil.disk_usage(base).free > 12 << 30:
            yield seed_large(bench, base, label)


def commands(bench):
    for title, goal, times in output.section(bench.build, bench.rounds):
        yield Table(title, goal, times)


def sandboxes(bench):
    for title, goal, times in isolated.times(bench.build, bench.rounds):
        yield Table(title, goal, times)
    yield Facts(*isolated.density(bench.build))


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


SECTIONS = {"seed": ("Seeding a workspace", seed), "commands": ("Running commands", commands),
            "overlay": ("Seeding by an overlay", overlays), "python": ("Python", python),
            "isolated": ("Isolated sandboxes", sandboxes),
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
