# SPDX-License-Identifier: Apache-2.0
"""
The owner of a sandbox is killed (SIGKILL) at random moments of its life, from the start of the
program over seeding, the command and the sync to the end of the program. Soon afterwards, and with
no other run, nothing is left:

- no process. The test is their reaper, so that it has them all, and no others, for children: the
  keeper, which removes the rest, is the last of them;
- no mount on the host: never was one;
- no control group and no file.

And the next run works.

PINFOLD_KILLS=200 is the whole proof; a few are made whenever the tests run.
"""

import ctypes
import os
import random
import signal
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
OPTIONS = {
    "isolated": [[], ["--net", "allow=example.org"], ["--json"], ["--memory", "1G"],
                 ["--seed-mode", "overlay"]],
    "local": [[], ["--json"]],
}


@pytest.fixture
def reaper():
    """Orphans of our children become ours."""
    libc = ctypes.CDLL(None)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    no_child_is_left()  # what a test that failed has left is none of the next one's
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def run(owner: Owner, backend: str, *options: str):
    return owner.popen(owner.pinfold, "run", "--quiet", "--backend", backend, "--seed",
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


def life_of_a_run(owner: Owner, backend: str) -> float:
    """In seconds, undisturbed."""
    started = time.monotonic()
    child = run(owner, backend)
    assert child.wait(timeout=60) == 0, child.communicate()
    taken = time.monotonic() - started
    child.communicate()
    check_destination(owner)
    assert len([path for path in (owner.place / "dest").rglob("*") if path.is_file()]) == 201
    return taken


@pytest.mark.parametrize("backend", list(OPTIONS))
def test_nothing_is_left_of_a_killed_owner(owner: Owner, reaper, backend: str) -> None:
    for name, text in FILES.items():
        (owner.place / "seed" / name).parent.mkdir(parents=True, exist_ok=True)
        (owner.place / "seed" / name).write_text(text)
    if os.getuid() == 0:
        owner.give(owner.place / "seed")  # a seed of somebody else's is not shown, but copied
    before = mounts(owner)
    seed = random.randrange(1 << 32)
    moments = random.Random(seed)
    life = life_of_a_run(owner, backend)
    early = had = 0
    for number in range(KILLS):
        what = f"kill {number} of {KILLS}, random seed {seed}"
        if number % 2:  # the first sync creates, the next ones replace
            owner.run("rm", "-rf", owner.place / "dest")
        child = run(owner, backend, *moments.choice(OPTIONS[backend]))
        time.sleep(moments.uniform(0, life))
        in_time = child.poll() is None
        early += in_time
        had += any(owner.tmp.iterdir())
        child.kill()
        child.communicate()
        assert no_child_is_left(), what
        assert list(owner.tmp.iterdir()) == [], what
        assert groups(child.pid) == [], what
        assert mounts(owner) == before, what
        check_destination(owner)
        after = owner.run(owner.pinfold, "run", "--quiet", "--backend", backend, "--", "echo done")
        assert (after.returncode, after.stdout, after.stderr) == (0, "done\n", ""), what
        assert no_child_is_left(), what
        assert list(owner.tmp.iterdir()) == [], what
        for name, text in FILES.items():
            assert (owner.place / "seed" / name).read_text() == text, what
        if not in_time:  # the machine has become faster
            owner.run("rm", "-rf", owner.place / "dest")
            life = life_of_a_run(owner, backend)
    print(f"{backend}: {KILLS} kills, {early} of a run that went on, {had} of one with a workspace; "
          f"nothing was left")
    # The kills came in time, and there was something to remove.
    assert early >= KILLS // 2 and had > 0, (early, had, life)


def keeper(owner: int) -> int:
    """The number of a process's keeper."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                stat = (process / "stat").read_text(errors="replace")
            except OSError:  # it is gone
                continue
            head, _, rest = stat.rpartition(")")
            if head.endswith("(pinfold-keeper") and int(rest.split()[1]) == owner:
                return int(process.name)
        time.sleep(0.005)
    raise AssertionError("there is no keeper")


@pytest.mark.parametrize("backend", list(OPTIONS))
def test_what_a_killed_keeper_cannot_remove_is_swept_by_the_next_run(
        owner: Owner, reaper, backend: str) -> None:
    child = owner.popen(owner.pinfold, "run", "--quiet", "--backend", backend, "--",
                        "mkdir -p a/b; echo x > a/b/c; chmod 0 a; touch ready; sleep 60")
    deadline = time.monotonic() + 30
    while not list(owner.tmp.glob("*/ready")) and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(keeper(child.pid), signal.SIGKILL)
    child.kill()
    child.communicate()
    assert no_child_is_left() and list(owner.tmp.iterdir())
    after = owner.run(owner.pinfold, "run", "--quiet", "--backend", backend, "--", "echo done")
    assert (after.returncode, after.stdout, after.stderr) == (0, "done\n", ""), after
    assert no_child_is_left()  # without isolation its supervisor, which sweeps, is the last of them
    assert list(owner.tmp.iterdir()) == []
    assert groups(child.pid) == []


def test_groups_of_a_workspace_that_stays_are_removed(owner: Owner, reaper) -> None:
    work = owner.place / "tmp/work"
    child = owner.popen(owner.pinfold, "run", "--quiet", "--backend", "isolated", "--workspace",
                        work, "--", "touch ready; sleep 60")
    deadline = time.monotonic() + 30
    while not (work / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    child.kill()
    child.communicate()
    assert no_child_is_left()
    assert groups(child.pid) == []
    assert [path.name for path in work.iterdir()] == ["ready"]
    owner.run("rm", "-r", work)


@pytest.mark.parametrize("backend", list(OPTIONS))
def test_a_keeper_does_not_outlive_its_run(owner: Owner, reaper, backend: str) -> None:
    """Without isolation the run has ended first, and whoever adopts orphans sees the keeper go."""
    for _ in range(5):
        child = owner.popen(owner.pinfold, "run", "--quiet", "--backend", backend, "--",
                            f"touch {'/tmp' if backend == 'isolated' else owner.place}/x")
        assert child.wait(timeout=60) == 0, child.communicate()
        left = [Path(f"/proc/{pid}/comm").read_text() for pid in children()]
        assert backend == "local" or "pinfold-keeper\n" not in left
        child.communicate()
        assert no_child_is_left()


def children() -> list[int]:
    """Ours that are there, or have ended without anybody's having looked."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(word) for word in listed.read_text().split()]
