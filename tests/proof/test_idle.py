# SPDX-License-Identifier: Apache-2.0
"""
Many sandboxes at once are opened and closed, again and again (idle.c), and nothing adds up:
descriptors, threads and memory of the owner, processes, namespaces, mounts, control groups, files.

PINFOLD_IDLE=1000 is the whole proof; fewer are opened whenever the tests run.
"""

import os
import shutil
from pathlib import Path

from owners import BUILD, Owner

COUNT = int(os.environ.get("PINFOLD_IDLE", "25"))
ROUNDS = 4


def groups_of_nobody(pid: int) -> list[str]:
    """Control groups of a process that is gone."""
    return [os.path.join(directory, name) for directory, names, _ in os.walk("/sys/fs/cgroup")
            for name in names if name.startswith(f"pinfold-{pid}-")]


def test_nothing_adds_up(owner: Owner) -> None:
    # Root in a user namespace is no ordinary root: its namespaces are not counted.
    how = ["counted"] if owner.uid else []
    shutil.copy(BUILD / "tests/proof/idle", owner.bin)
    mounts = Path("/proc/self/mountinfo").read_text().count(str(owner.place))
    child = owner.popen(owner.bin / "idle", COUNT, ROUNDS, *how,
                        env={"LD_LIBRARY_PATH": str(owner.bin)})
    try:
        out, err = child.communicate(timeout=60 + COUNT)
    finally:
        child.kill()
    assert child.returncode == 0, out + err
    rounds = [[int(word) for word in line.split()] for line in out.splitlines()]
    assert len(rounds) == ROUNDS
    descriptors, threads, memory = zip(*rounds)
    assert len(set(descriptors)) == 1 and descriptors[0] <= 6, descriptors
    assert set(threads) == {1}
    # What the allocator keeps is there after the first round; 1 KiB of each sandbox would be seen.
    assert memory[-1] - memory[0] < 256 + COUNT, memory
    assert groups_of_nobody(child.pid) == []
    assert Path("/proc/self/mountinfo").read_text().count(str(owner.place)) == mounts
