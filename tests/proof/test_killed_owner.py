# SPDX-License-Identifier: Apache-2.0
"""
The owner of a sandbox is killed (SIGKILL) at random moments of its life, from the start of the
program over seeding, the command and the sync to the end of the program. Then nothing is left:

- no process: soon. The test is their reaper, so that it has them all, and no others, for children;
- no mount on the host: never was one;
- no control group and no file: when the next run, which must work, has ended; without isolation
  when its supervisor has, a moment later.

PINFOLD_KILLS=200 is the whole proof; a few are made whenever the tests run.
"""

import ctypes
import os
import random
import time
from pathlib import Path

import pytest

from owners import Owner

KILLS = int(os.environ.get("PINFOLD_KILLS", "12"))
PR_SET_CHILD_SUBREAPER = 36
FILES = {f"src/{n}/{m}.py": f"{n} {m}\n" * 500 for n in range(10) for m in range(20)}
MADE = "made.md"
# It leaves processes that do not want to die, and takes a while itself.
COMMAND = (f"(trap '' TERM INT HUP; setsid sleep 60 & sleep 60 & wait) >/dev/null 2>&1 & "
           f"for i in 1 2 3 4 5 6 7 8; do echo $i >> src/0/0.py; sleep 0.005; done; "
           f"for d in src/*; do for f in $d/*; do echo x >> $f; done; done; "
           f"head -c 3000000 /dev/zero > {MADE}")
OPTIONS = [[], ["--net", "allow=example.org"], ["--json"], ["--memory", "1G"]]


@pytest.fixture
def reaper():
    """Orphans of our children become ours."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def run(owner: Owner, *options: str):
    return owner.popen(owner.pinfold, "run", "--quiet", "--backend", "isolated", "--seed",
                       owner.place / "seed", f"--sync={owner.place}/dest", *options, "--", COMMAND)


def no_child_is_left() -> bool:
    """Wait for all of them."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.005)
        except ChildProcessError:
            return True
    return False


def mounts(owner: Owner) -> list[str]:
    """Of the host, those that have to do with this test."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if str(owner.place) in line or "pinfold" in line]


def groups(pid: int) -> list[Path]:
    """Control groups that a process has made."""
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        found += [Path(directory, name) for name in names if name.startswith(f"pinfold-{pid}-")]
    return found


def check_destination(owner: Owner) -> None:
    """No temporary name, and nothing that is half there."""
    for path in (owner.place / "dest").rglob("*"):
        if path.is_dir():
            continue
        name = str(path.relative_to(owner.place / "dest"))
        if name == MADE:
            assert path.stat().st_size == 3000000, path
        else:
            assert name in FILES, f"{name} was left"
            text = path.read_text()
            assert text.startswith(FILES[name]) and text.endswith("x\n"), f"{name} is half there"


def life_of_a_run(owner: Owner) -> float:
    """In seconds, undisturbed."""
    started = time.monotonic()
    child = run(owner)
    assert child.wait(timeout=60) == 0, child.communicate()
    taken = time.monotonic() - started
    child.communicate()
    check_destination(owner)
    assert len([path for path in (owner.place / "dest").rglob("*") if path.is_file()]) == 201
    return taken


def test_nothing_is_left_of_a_killed_owner(owner: Owner, reaper) -> None:
    for name, text in FILES.items():
        (owner.place / "seed" / name).parent.mkdir(parents=True, exist_ok=True)
        (owner.place / "seed" / name).write_text(text)
    before = mounts(owner)
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    life = life_of_a_run(owner)
    early = left = 0
    for number in range(KILLS):
        what = f"kill {number} of {KILLS}, random seed {seed}"
        if number % 2:  # the first sync creates, the next ones replace
            owner.run("rm", "-rf", owner.place / "dest")
        child = run(owner, *moments.choice(OPTIONS))
        time.sleep(moments.uniform(0, life))
        in_time = child.poll() is None
        early += in_time
        child.kill()
        child.communicate()
        left += any(owner.tmp.iterdir())
        assert no_child_is_left(), what
        assert mounts(owner) == before, what
        check_destination(owner)
        after = owner.run(owner.pinfold, "run", "--quiet", "--backend", "isolated", "--", "pwd")
        assert (after.returncode, after.stdout, after.stderr) == (0, "/workspace\n", ""), what
        assert list(owner.tmp.iterdir()) == [], what
        assert groups(child.pid) == [], what
        for name, text in FILES.items():
            assert (owner.place / "seed" / name).read_text() == text, what
        if not in_time:  # the machine has become faster
            owner.run("rm", "-rf", owner.place / "dest")
            life = life_of_a_run(owner)
    # The kills came in time, and what they left was there to be swept.
    assert early >= KILLS // 2 and left > 0, (early, left, life)


def test_the_next_run_without_isolation_sweeps_when_it_has_ended(owner: Owner, reaper) -> None:
    child = owner.popen(owner.pinfold, "run", "--quiet", "--backend", "local", "--",
                        "mkdir -p a/b; echo x > a/b/c; chmod 0 a; sleep 60")
    deadline = time.monotonic() + 30
    while not list(owner.tmp.glob("*/a")) and time.monotonic() < deadline:
        time.sleep(0.005)
    child.kill()
    child.communicate()
    assert no_child_is_left() and list(owner.tmp.iterdir())
    after = owner.run(owner.pinfold, "run", "--quiet", "--backend", "local", "--", "echo done")
    assert (after.returncode, after.stdout) == (0, "done\n"), after
    assert no_child_is_left()  # its supervisor, which sweeps, is the last of them
    assert list(owner.tmp.iterdir()) == []
