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

sys.dont_write_bytecode = True
import calls  # noqa: E402
import chart  # noqa: E402
import concurrency  # noqa: E402
import density  # noqa: E402
import drivers  # noqa: E402
import flush  # noqa: E402
import growth  # noqa: E402
import isolated  # noqa: E402
import mcp_calls  # noqa: E402
import output  # noqa: E402
import overlay  # noqa: E402
import rate  # noqa: E402
import remote  # noqa: E402
import smallfiles  # noqa: E402
import transfer  # noqa: E402
from promises import Ledger  # noqa: E402
from report import Curve, Facts, Table  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# What says the version of each contender that is there.
VERSIONS = (["cp", "--version"], ["rsync", "--version"], ["tar", "--version"],
            ["bwrap", "--version"], ["crun", "--version"], ["podman", "--version"],
            ["nsjail", "--version"], ["minijail0", "--version"], ["ldd", "--version"],
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
        drivers.remove(*self.dirs)


def commands(bench):
    promises = ("local-process", "output-kept", "output-speed")
    for (title, goal, times), promise in zip(output.section(bench.build, bench.rounds), promises,
                                             strict=True):
        yield Table(title, goal, times, promise)
    yield Facts(*output.memory(bench.build))


def overlays(bench):
    yield from overlay.section(bench, file_system)


SECTIONS = {"seed": ("Seeding a workspace, and flushing it", transfer.section),
            "overlay": ("Seeding by an overlay", overlays),
            "flush": ("Flushing few changes", flush.section),
            "commands": ("Running commands", commands),
            "isolated": ("Isolated sandboxes", isolated.section),
            "rate": ("Sandboxes each second", rate.section),
            "density": ("Idle sandboxes", density.section),
            "concurrency": ("Many commands at once", concurrency.section),
            "files": ("Small files", smallfiles.section),
            "python": ("Python", calls.section), "mcp": ("The MCP server", mcp_calls.section),
            "remote": ("Backends of services, against fakes of them", remote.section),
            "growth": ("Growth", growth.section)}


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
            " nothing else is said; a flush of ours is a call of the library, and rsync beside it a"
            " process. What is promised is compared by medians.", "", *about, "",
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
