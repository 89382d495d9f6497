# SPDX-License-Identifier: Apache-2.0
"""How costs grow: with the number of files, their depth and size, with what lingers in a sandbox,
with how many sandboxes there are, how many commands were run, and how much they write.

Trees are on tmpfs where there is one, so that it is our work that grows and not the disk's.
"""
import os

import drivers
from report import Curve

TEXT = b"some line of sixty-three bytes, as there may be many in a file.\n" * 16

FILES = [100, 1000, 10_000, 100_000]
TURNS = 2  # of all but the largest trees
KIB_64, MIB = 1 << 16, 1 << 20
# (title, what grows, points, mode of the driver)
AROUND = [
    ("A command, with files in the workspace and in /tmp", "files in each", [1, 100, 1000, 10_000],
     "lingering"),
    ("A command, after others that left a process behind", "processes", [1, 10, 100, 300],
     "background"),
    ("A command and a start, with sandboxes open", "sandboxes", [1, 10, 100, 500], "live"),
    ("One manager of local sandboxes", "sandboxes", [10, 100, 1000, 4000], "managed"),
    ("A command, after others", "commands before", [1, 10, 100, 1000, 5000], "run"),
    ("A command that writes much", "bytes", [KIB_64, MIB, 16 * MIB, 128 * MIB], "output"),
    ("One large file", "bytes", [KIB_64, MIB, 4 * MIB, 16 * MIB], "size"),
]


def nested(seed, count):
    for index in range(count):
        folder = seed / f"d{index // 10_000}" / f"e{index // 100}"
        if index % 100 == 0:
            folder.mkdir(parents=True)
        (folder / f"file-{index}.txt").write_bytes(TEXT)


def wide(seed, count):
    (seed / "d").mkdir(parents=True)
    for index in range(count):
        (seed / "d" / f"file-{index}.txt").write_bytes(TEXT)


def deep(seed, count):
    """Each directory has a file and the next one. By descriptors: no path is as long."""
    seed.mkdir()
    fd = os.open(seed, os.O_RDONLY)
    for _ in range(count):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        file = os.open("f.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd)
        os.write(file, TEXT)
        os.close(file)
    os.close(fd)


TREES = [
    ("A tree, 100 files a directory, copied", "files", FILES, nested, "local"),
    ("A tree, 100 files a directory, shown by an overlay", "files", FILES, nested, "overlay"),
    ("One directory", "files", FILES, wide, "local"),
    ("Directories in each other, one file each", "names in all paths", [10, 100, 1000], deep,
     "local"),
]


def place(bench):
    return bench.workdir("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def fastest(build, *words):
    """{name: seconds}: what else a machine does adds to a time, and not to the work."""
    return {name: min(seconds) for name, seconds in drivers.run(build, "growth", *words).items()}


def collect(points, measure, amount=int):
    """{name: [[amount(x), seconds], ...]} of what measure(x) gives: {name: seconds}."""
    series = {}
    for point in points:
        turns = [measure(point) for _ in range(1 if point == FILES[-1] else TURNS)]
        for name in turns[0]:
            series.setdefault(name, []).append([amount(point), min(turn[name] for turn in turns)])
    return series


def curve(title, unit, series):
    return Curve(title, unit, "seconds", series, series)


def trees(bench):
    for title, unit, points, make, kind in TREES:
        def measure(count):
            work = place(bench)
            make(work / "seed", count)
            found = fastest(bench.build, "tree", kind, work)
            drivers.remove(work)
            return found

        yield curve(title, unit, collect(points, measure, names if make is deep else int))


def names(depth):
    """Of all paths together: the work that there is, since each path has to be followed."""
    return depth * (depth + 1) // 2


def around(bench):
    for title, unit, points, mode in AROUND:
        def measure(number):
            work = place(bench)
            found = fastest(bench.build, mode, number, work)
            drivers.remove(work)
            return found

        yield curve(title, unit, collect(points, measure))


def section(bench):
    yield from trees(bench)
    yield from around(bench)
