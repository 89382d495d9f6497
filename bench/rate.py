# SPDX-License-Identifier: Apache-2.0
"""How many sandboxes can be started, used for one command and stopped, one and several at once."""
import statistics

import drivers
import peers as peer
from report import Grid

AT_ONCE, COUNT, COUNT_SLOW = (1, 8), 100, 16


def measure(build, rounds, peers, threads):
    """{name: [seconds for one sandbox, ...]}."""
    times = {"isolated": [], **{name: [] for name in peers.starts}}
    for _ in range(min(rounds, 5)):
        total = drivers.run(build, "sandboxes", "rate", threads, COUNT)["isolated"][0]
        times["isolated"].append(total / COUNT)
        for name, argv in peers.starts.items():
            count = COUNT_SLOW if name.startswith("podman") else COUNT
            times[name].append(drivers.at_once(build, argv, threads, count) / count)
    return times


def section(bench):
    with peer.Peers(bench.workdir(None)) as peers:
        found = {threads: measure(bench.build, bench.rounds, peers, threads)
                 for threads in AT_ONCE}
        yield from peers.missing()
    rows = [[name, threads, *map(per_second, (statistics.median(times[name]), max(times[name]),
                                              min(times[name])))]
            for threads, times in found.items() for name in times]
    yield Grid("Start, run true, stop: sandboxes each second", None,
               ["", "at once", "median run", "slowest", "fastest"], rows)


def per_second(seconds):
    return f"{1 / seconds:,.0f}"
