# SPDX-License-Identifier: Apache-2.0
"""Running the drivers of this directory, which print a name and nanoseconds for what they timed."""
import collections
import subprocess


def run(build, name, *words):
    """Run a driver; return {name: [seconds, ...]}."""
    argv = [str(build / "bench" / name), *map(str, words)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True)
    times = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        label, nanoseconds = line.rsplit(" ", 1)
        times[label].append(int(nanoseconds) / 1e9)
    return times


def words(contenders):
    """{name: argument vector} in the words that contender.h has; names become numbers. A vector
    that begins with "@FILE" is run in the mount namespace that FILE is a name of."""
    found = []
    for number, argv in enumerate(contenders.values()):
        argv = list(map(str, argv))
        name = f"{number}{argv.pop(0)}" if argv[0].startswith("@") else str(number)
        found += [*(["---"] if number else []), name, *argv]
    return found


def named(contenders, times):
    """The times of {name: argument vector}, of what was run with words() of it."""
    return {name: times[str(number)] for number, name in enumerate(contenders)}


def processes(build, contenders, rounds):
    """Times of whole processes, {name: argument vector}, in turns: for what is over so soon that
    Python's own way to start it would count."""
    return named(contenders, run(build, "processes", rounds, *words(contenders)))


def at_once(build, argv, threads, count):
    """Seconds for running a program COUNT times, so many at once."""
    return run(build, "processes", "--at-once", threads, count, *words({"": argv}))["0"][0]


def remove(*paths):
    """Trees, however deep: shutil.rmtree() is called once for each level."""
    subprocess.run(["rm", "-rf", "--", *map(str, paths)], check=False)
