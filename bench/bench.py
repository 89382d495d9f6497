#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure Pinfold beside the tools people use now, in one run, and write bench/results.md and .svg.

    bench.py BUILD_DIR [--rounds N] [--only SECTION] [--no-large] [--output FILE]

What is only part of a run goes to BUILD_DIR/bench, as results.json always does. A section is a
function that takes a Bench and yields what report.py has; add it to SECTIONS, and what it promises
to promises.py: a whole run that does not measure a promise fails, after it has written the rest.
Contenders are run in turns, in another order each round, so that a machine that slows down slows
all of them. Of many small files nothing is deleted before everything has been measured: on ext4
that makes what follows many times slower.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import calls  # noqa: E402
import chart  # noqa: E402
import concurrency  # noqa: E402
import flush  # noqa: E402
import isolated  # noqa: E402
import mcp_calls  # noqa: E402
import output  # noqa: E402
import overlay  # noqa: E402
import remote  # noqa: E402
from promises import Ledger  # noqa: E402
from report import Curve, Facts, Table  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# What says the version of each contender that is there.
VERSIONS = (["cp", "--version"], ["rsync", "--version"], ["tar", "--version"],
            ["bwrap", "--version"], ["crun", "--version"], ["ldd", "--version"],
            ["dpkg-query", "-W", "-f=${Package} ${Version}", "dash"],
            ["/usr/bin/python3", "--version"])


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


def seed_small(bench, base, label, goal, promise):
    work = bench.workdir(base)
    make_small_files(work / "source")
    return Table(f"10,000 files of 4 KiB, {label}", goal,
                 bench.compare(copiers(bench, work, work / "source"), settle), promise)


def seed_large(bench, base, label, promise):
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
                 bench.compare(contenders, reuse_memory), promise)


def seed(bench):
    places = [("/dev/shm", "tmpfs", "tmpfs", 2),
              (os.environ.get("BENCH_DISK", "/var/tmp"), "disk", None, 1.5)]
    for base, kind, label, goal in places:
        if not os.access(base, os.W_OK):
            continue
        label = label or f"{file_system(base)} ({base})"
        yield seed_small(bench, base, label, f"at least {goal} x cp -a", f"seed-{kind}")
        if bench.large and shutil.disk_usage(base).free > 12 << 30:
            yield seed_large(bench, base, label, f"large-{kind}")


def commands(bench):
    promises = ("local-process", "output-kept", "output-speed")
    for (title, goal, times), promise in zip(output.section(bench.build, bench.rounds), promises,
                                             strict=True):
        yield Table(title, goal, times, promise)
    yield Facts(*output.memory(bench.build))


def sandboxes(bench):
    promises = ("command", "command-shell", "isolated-start", "isolated-process")
    for (title, goal, times), promise in zip(isolated.times(bench.build, bench.rounds), promises,
                                             strict=True):
        yield Table(title, goal, times, promise)
    yield Facts(*isolated.density(bench.build))


def overlays(bench):
    yield from overlay.section(bench, file_system)


SECTIONS = {"seed": ("Seeding a workspace", seed), "commands": ("Running commands", commands),
            "overlay": ("Seeding by an overlay", overlays),
            "flush": ("Flushing a workspace", flush.section),
            "isolated": ("Isolated sandboxes", sandboxes),
            "concurrency": ("Many commands at once", concurrency.section),
            "python": ("Python", calls.section), "mcp": ("The MCP server", mcp_calls.section),
            "remote": ("Backends of services, against fakes of them", remote.section)}


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
    for argv in VERSIONS:
        version = first_line(*argv)
        if version:
            yield f"- {version}"


def run_sections(bench, only, ledger):
    """Returns the lines of all, and what they are made of."""
    lines, found = [], []
    for name, (title, section) in SECTIONS.items():
        if only and only != name:
            continue
        lines += [f"## {title}", ""]
        os.sync()  # what a section wrote must not go to the disk while the next is timed
        for one in section(bench):
            rows = list(one.lines())
            print("\n".join(rows), flush=True)
            lines += rows
            ledger.note(one.measured())
            found.append(one)
    return lines, found


def write(path, build, lines, found, ledger):
    about = list(machine())
    curves = [one for one in found if isinstance(one, Curve)]
    picture = chart.svg(list(ledger.outcomes()), curves,
                        ", ".join(line.partition(": ")[2] for line in about[:3]))
    head = ["# Measurements", "", "Written by bench/bench.py. Times are of whole processes where"
            " nothing else is said; what is promised is compared by medians.", "", *about, "",
            f"![Promises and growth]({path.stem}.svg)", "", "## Promises", "", *ledger.lines()]
    path.write_text("\n".join(head + lines).rstrip() + "\n", encoding="utf-8")
    path.with_suffix(".svg").write_text(picture, encoding="utf-8")
    data = {"machine": about, "promises": ledger.data(),
            "tables": [one.data() for one in found if not isinstance(one, Curve)],
            "curves": [one.data() for one in curves]}
    (build / "bench" / "results.json").write_text(json.dumps(data, indent=1) + "\n",
                                                  encoding="utf-8")
    print(f"written to {path}, {path.with_suffix('.svg')} and {build}/bench/results.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", help="a build directory configured with -Dbench=true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=sorted(SECTIONS))
    parser.add_argument("--no-large", action="store_true", help="leave out the files of 1 GiB")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()

    bench = Bench(options.build, options.rounds, not options.no_large)
    if not (bench.build / "bench" / "copytree").exists():
        sys.exit(f"bench.py: {bench.build} has no drivers: run\n"
                 f"  meson configure -Dbench=true {options.build} && ninja -C {options.build}")
    whole = not options.only and bench.large
    path = options.output or (HERE if whole else bench.build / "bench") / "results.md"
    ledger = Ledger()
    try:
        lines, found = run_sections(bench, options.only, ledger)
    finally:
        bench.clean()
    write(path, bench.build, lines, found, ledger)
    if whole and ledger.missing():
        sys.exit("bench.py: promised and not measured: " + ", ".join(ledger.missing())
                 + "; tools/deps bench installs what Pinfold is measured beside")


if __name__ == "__main__":
    main()
