# SPDX-License-Identifier: Apache-2.0
"""Commands in isolated sandboxes, and their starts, beside what else one would do: see peers.py."""
import drivers
import peers as peer
from report import Table


PROMISES = "command", "command-shell"


def commands(bench, rounds, peers):
    for words, promise in zip((["/bin/true"], ["/bin/sh", "-c", "true"]), PROMISES, strict=True):
        others = {f"{name}, for each": [*argv[:-1], *words] for name, argv in peers.starts.items()
                  if name not in peer.CONTAINERS}
        others |= {name: [*argv, *words] for name, argv in peers.execs.items()}
        times = drivers.run(bench.build, "sandboxes", "command", rounds, *words,
                            *(["---", *drivers.words(others)] if others else []))
        yield Table(f"{' '.join(words)}, in a live sandbox",
                    "at most 1.15 x of posix_spawn and wait",
                    {"isolated": times["isolated"], "posix_spawn and wait": times["spawn"],
                     "local": times["local"], **drivers.named(others, times)}, promise)


def starts(bench, rounds, peers):
    times = drivers.run(bench.build, "sandboxes", "start", rounds, *drivers.words(peers.starts))
    return Table("From nothing to the first finished command, through the library",
                 "at most 0.4 x of bwrap",
                 {"open a sandbox, run true": times["start"], **drivers.named(peers.starts, times),
                  "then close it": times["stop"]}, peers.beside_bwrap("isolated-start"))


def whole(bench, rounds, peers):
    ours = {"pinfold run --backend isolated":
            [bench.build / "pinfold", "run", "--backend", "isolated", "--", "true"]}
    return Table("The whole process", "at most 0.5 x of bwrap",
                 drivers.processes(bench.build, ours | peers.starts, rounds),
                 peers.beside_bwrap("isolated-process"))


def section(bench):
    rounds = bench.rounds * 20
    with peer.Peers(bench.workdir(None)) as peers:
        yield from peers.missing()
        yield from commands(bench, rounds, peers)
        yield starts(bench, rounds, peers)
        yield whole(bench, rounds, peers)
