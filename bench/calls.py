# SPDX-License-Identifier: Apache-2.0
"""What a call through Python costs: see bench.py. Runs a program of its own with the package."""
import json
import os
import subprocess
from typing import Iterator

from report import Facts, Table

PROGRAM = r"""
import asyncio, json, logging, sys, tempfile, time
import pinfold

logging.disable(logging.WARNING)

async def times(count, work):
    found = []
    for _ in range(count):
        start = time.perf_counter()
        await work()
        found.append(time.perf_counter() - start)
    return found

async def shell(command="true"):
    child = await asyncio.create_subprocess_shell(
        command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    await child.communicate()

async def stall(work):
    # The longest turn of the loop while work runs, by the clock and by the thread's own time.
    ended = asyncio.ensure_future(work)
    clocks = time.perf_counter, time.thread_time
    longest, last = [0.0, 0.0], [clock() for clock in clocks]
    while not ended.done():
        await asyncio.sleep(0)
        now = [clock() for clock in clocks]
        longest = [max(most, end - start) for most, end, start in zip(longest, now, last)]
        last = now
    await ended
    return longest

async def main(root, rounds):
    answer = {}
    async with pinfold.Sandbox("bench", pinfold.LocalSandboxBackend(root), 600) as sandbox:
        await sandbox.add_files({"file": "x" * 1024})
        core = sandbox._core

        async def here():  # where it stands, as a program without a loop would
            core.read_file("file").run(False)

        async def hopping():  # as when it must wait for a disk
            await pinfold._loop.run(core.read_file("file"))

        for name, work in (("read here", here), ("read awaited", lambda: sandbox.read_file("file")),
                           ("read on a thread", hopping)):
            answer[name] = await times(3000, work)
        ours, theirs = [], []
        for _ in range(rounds * 20):  # in turns
            ours += await times(1, lambda: sandbox.execute("true"))
            theirs += await times(1, shell)
        answer.update({"execute": ours, "subprocess": theirs})
        for name, work in ("stall", sandbox.execute), ("stall of asyncio", shell):
            answer[name] = await stall(asyncio.gather(
                *(work("sleep 1; echo done") for _ in range(200))))
    return answer

with tempfile.TemporaryDirectory(prefix="pinfold-bench-") as root:
    print(json.dumps(asyncio.run(main(root + "/root", int(sys.argv[1])))))
"""


def section(bench) -> Iterator[Table | Facts]:
    env = {**os.environ, "PYTHONPATH": str(bench.build / "python")}
    found = json.loads(subprocess.run(
        ["/usr/bin/python3", "-c", PROGRAM, str(bench.rounds)], env=env, stdout=subprocess.PIPE,
        check=True, text=True).stdout)
    in_c = [float(line) for line in subprocess.run(
        [str(bench.build / "bench" / "calls")], stdout=subprocess.PIPE, check=True,
        text=True).stdout.split()]
    yield Table("read_file of 1 KiB", "at most 3 x of the call in C",
                {"Python, awaited": found["read awaited"], "C": in_c,
                 "Python, blocking": found["read here"],
                 "Python, awaited, on a thread": found["read on a thread"]}, "python-read")
    yield Table('execute("true") on local', "at most 1.15 x of asyncio's",
                {"Sandbox.execute": found["execute"],
                 "create_subprocess_shell, communicate": found["subprocess"]}, "python-execute")
    (clock, own), (their_clock, their_own) = [
        [f"{seconds * 1000:.1f} ms" for seconds in found[name]]
        for name in ("stall", "stall of asyncio")]
    yield Facts("An event loop with 200 commands at once", "no turn of 50 ms",
                {"longest turn": clock, "of the thread's own time, at most": own,
                 "longest turn with asyncio's subprocesses": their_clock,
                 "of the thread's own time, at most, with these": their_own},
                {"python-stall": found["stall"][0] * 1000})
