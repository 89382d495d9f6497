# SPDX-License-Identifier: Apache-2.0
"""Seeding a workspace and bringing changes home, beside cp, rsync and tar: see bench.py.

Of many small files nothing is deleted before everything has been measured: on ext4 that makes what
follows many times slower. What one place needs of a disk stays below 6 GiB.
"""
import os
import shutil
import statistics
import subprocess

import drivers
from report import Grid, Table, duration

SIZE, PER_DIRECTORY, LARGE = 4096, 100, 1 << 30
STARTED, SHOWN = "a sandbox's start, no process", "the same with an overlay"
COUNTS = 10, 1000, 10_000, 100_000
PROMISED = 10_000  # files of the tree that ARCHITECTURE.md speaks of


def rounds_of(count, rounds):
    """Fewer of what takes long, and fills the disk."""
    return {10_000: min(rounds, 5), 100_000: min(rounds, 2)}.get(count, rounds)


def make_files(root, count):
    data = os.urandom(SIZE + count)
    for index in range(count):
        folder = root / f"d{index // (10 * PER_DIRECTORY)}" / f"e{index // PER_DIRECTORY}"
        if index % PER_DIRECTORY == 0:
            folder.mkdir(parents=True)
        (folder / f"file-{index}.txt").write_bytes(data[index:index + SIZE])


def make_large(root):
    root.mkdir()
    block = os.urandom(1 << 20)
    with open(root / "file", "wb") as file:
        for _ in range(LARGE // len(block)):
            file.write(block)


def copiers(build, source):
    """{name: function(target) -> argument vector}; the first is ours, the second what it is
    measured against."""
    pipe = 'mkdir "$2" && tar -C "$1" -cf - . | tar -C "$2" -xf -'
    found = {"copier": lambda target: [build / "bench" / "copytree", source, target],
             "cp -a": lambda target: ["cp", "-a", source, target],
             "rsync -a": lambda target: ["rsync", "-a", f"{source}/", target],
             "tar | tar": lambda target: ["sh", "-c", pipe, "sh", source, target]}
    if not shutil.which("rsync"):
        del found["rsync -a"]
    return found


def seed_time(bench, work, source, turn):
    """Seconds that the start of a local sandbox with a seed takes, all that it looks after
    included; and of the same with an overlay."""
    for kind in "local", "overlay":
        root = work / f"{kind}-{turn}"
        root.mkdir()
        yield drivers.run(bench.build, "workspace", "seed", kind, root, source)["seed"][0]


def seed_small(bench, work, count):
    """{name: seconds}; the copies stay where they are."""
    contenders = copiers(bench.build, work / "source")
    names = ["copier", "cp -a", STARTED, SHOWN, *list(contenders)[2:]]
    times = {name: [] for name in names}
    for turn in range(rounds_of(count, bench.rounds)):
        order = [STARTED, *contenders]
        bench.rng.shuffle(order)
        for name in order:
            os.sync()  # what was written before is not to be written during the next run
            if name in contenders:
                argv = contenders[name](work / f"{name.split()[0]}-{turn}")
                times[name] += drivers.processes(bench.build, {name: argv}, 1)[name]
            else:
                copied, shown = seed_time(bench, work, work / "source", turn)
                times[name].append(copied)
                times[SHOWN].append(shown)
    return times


def flush_small(bench, work, count):
    """{name: seconds} for bringing every hundredth file home, which was changed."""
    rounds = bench.rounds
    for kind in "local", "overlay":
        (work / f"flush-{kind}").mkdir()
    theirs = {}
    if shutil.which("rsync"):
        theirs["rsync -a --delete"] = ["rsync", "-a", "--delete", f"{work}/flush-local/",
                                       f"{work}/cp-0/"]
    ours = drivers.run(bench.build, "workspace", "flush", rounds, "local", work / "flush-local",
                       work / "source", *drivers.words(theirs))
    overlay = drivers.run(bench.build, "workspace", "flush", rounds, "overlay",
                          work / "flush-overlay", work / "tar-0")
    return {"flush, after a copy": ours["flush"], **drivers.named(theirs, ours),
            "flush, after an overlay": overlay["flush"]}


def small(bench, base, label, kind, ratio):
    """Yields a table for each number of files, and a grid of all of them."""
    rows = []
    for count in COUNTS:
        work = bench.workdir(base)
        make_files(work / "source", count)
        os.sync()
        promised = count == PROMISED
        times = seed_small(bench, work, count)
        yield Table(f"Seed of {count:,} files of 4 KiB, {label}",
                    f"at least {ratio} x cp -a" if promised else None, times,
                    f"seed-{kind}" if promised else None)
        os.sync()
        flushed = flush_small(bench, work, count)
        if len(flushed) > 2:
            yield Table(f"Flush of every hundredth of {count:,} files, {label}", None, flushed)
        medians = map(statistics.median, (*times.values(), *flushed.values()))
        rows.append([f"{count:,}", *map(duration, medians)])
    yield Grid(f"Medians by the number of files, {label}", None, ["files", *times, *flushed], rows)


def large(bench, base, label, kind):
    """Pages that a virtual machine has never touched cost many times more than the copy, and
    whoever gets them is a matter of luck: all use those of the copy before."""
    work = bench.workdir(base)
    make_large(work / "source")
    contenders = copiers(bench.build, work / "source")
    times = {name: [] for name in contenders}
    target = work / "target"
    for turn in range(-1, min(bench.rounds, 5)):
        order = list(contenders)
        bench.rng.shuffle(order)
        for name in order:
            drivers.remove(target)
            os.sync()
            took = drivers.processes(bench.build, {name: contenders[name](target)}, 1)[name]
            if turn >= 0:
                times[name] += took
    drivers.remove(work)
    return Table(f"Seed of one file of 1 GiB, {label}", "never slower than cp", times,
                 f"large-{kind}")


def file_system(path):
    run = subprocess.run(["df", "--output=fstype", path], stdout=subprocess.PIPE, check=True,
                         text=True)
    return run.stdout.split()[-1]


def section(bench):
    places = [("/dev/shm", "tmpfs", 2), (os.environ.get("BENCH_DISK", "/var/tmp"), "disk", 1.5)]
    for base, kind, ratio in places:
        if not os.access(base, os.W_OK):
            continue
        label = f"{file_system(base)} ({base})"
        yield from small(bench, base, label, kind, ratio)
        drivers.remove(*(work for work in bench.dirs if str(work.parent) == base))
        os.sync()
        if bench.large and shutil.disk_usage(base).free > 12 << 30:
            yield large(bench, base, label, kind)
