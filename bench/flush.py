# SPDX-License-Identifier: Apache-2.0
"""What it costs to bring ten changed files home: from an overlay, which knows what was changed, and
from a copy, which has to look at everything once. See bench.py."""
import json
import os
import pathlib
import shutil
import subprocess
import time
from typing import Iterator

from report import Table

FILES, FEW, CHANGES = 10_000, 100, 10
# Whatever is flushed goes back to where it was seeded from.
PROGRAM = r"""
import asyncio, json, logging, sys, time
import pinfold

logging.disable(logging.WARNING)

async def main(rounds, mode, trees):
    times = {}
    policy = pinfold.WorkspaceSyncPolicy(sync_include_patterns=["**"])
    for tree in trees:
        backend = pinfold.IsolatedSandboxBackend(seed_mode=mode)
        async with pinfold.Sandbox("bench", backend, 600, seed_from=tree, sync_policy=policy,
                                   sync_dest=tree) as sandbox:
            for turn in range(rounds + 1):
                await sandbox.execute(
                    f"for i in 0 1 2 3 4 5 6 7 8 9; do echo {turn} $i > d0/e0/file-$i.txt; done")
                start = time.perf_counter()
                result = await sandbox.flush()
                if turn:  # the first one is a rehearsal
                    times.setdefault(tree, []).append(time.perf_counter() - start)
                assert result.files_synced == 10, result
    return times

print(json.dumps(asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))))
"""


def make_tree(root: pathlib.Path, count: int, per_dir: int = 100) -> str:
    for index in range(count):
        folder = root / f"d{index // (10 * per_dir)}" / f"e{index // per_dir}"
        if index % per_dir == 0:
            folder.mkdir(parents=True)
        (folder / f"file-{index}.txt").write_bytes(b"x" * 1000)
    return str(root)


def flushes(build: pathlib.Path, rounds: int, mode: str, *trees: str) -> dict[str, list[float]]:
    env = {**os.environ, "PYTHONPATH": str(build / "python")}
    return json.loads(subprocess.run(
        ["/usr/bin/python3", "-c", PROGRAM, str(rounds), mode, *trees], env=env, check=True,
        stdout=subprocess.PIPE, text=True).stdout)


def rsyncs(rounds: int, work: pathlib.Path, tree: str) -> dict[str, list[float]]:
    """The same changes, by what is made for it, by metadata and by content; both sides are there.
    """
    times: dict[str, list[float]] = {"rsync -a": [], "rsync -a --checksum": []}
    subprocess.run(["cp", "-a", tree, work / "changed"], check=True)
    for turn in range(rounds):
        for name, taken in times.items():
            for index in range(CHANGES):
                (work / f"changed/d0/e0/file-{index}.txt").write_text(f"{name} {turn} {index}\n")
            start = time.perf_counter()
            subprocess.run([*name.split(), f"{work}/changed/", f"{tree}/"], check=True)
            taken.append(time.perf_counter() - start)
    return times


def section(bench) -> Iterator[Table]:
    work = bench.workdir("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    small, large = make_tree(work / "small", FEW), make_tree(work / "large", FILES)
    found = flushes(bench.build, 10 * bench.rounds, "overlay", large, small)
    yield Table("Ten changes of an overlay, back to its seed", "what is there costs nothing",
                {f"of {FILES:,} files": found[large], f"of {FEW} files": found[small]},
                "flush-overlay")
    copied = flushes(bench.build, bench.rounds, "copy", large)[large]
    others = rsyncs(bench.rounds, work, large) if shutil.which("rsync") else {}
    yield Table(f"Ten changes of a copy of {FILES:,} files, back to its seed",
                "one pass of metadata: at most rsync's time", {"pinfold": copied} | others,
                "flush-copy")
