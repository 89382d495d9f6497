# SPDX-License-Identifier: Apache-2.0
"""Where a worker of the soak does everything, and what may not be left there: processes, mounts,
control groups, files. The worker adopts every orphan of what it starts."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from owners import BUILD

PR_SET_CHILD_SUBREAPER = 36
SOON = 120  # seconds within which a thing that is over must be gone, on a busy machine
SWEEPS = 5  # a run sweeps for a second; what it has no time for is for the next
# What the scripts of commands.py run, by the names of the processes.
PROGRAMS = {"seq", "rm", "mv", "cp", "chmod", "mkdir", "ln", "tar", "base64", "nohup", "setsid"}
SHELLS = {"sh", "dash", "bash"}
COMMANDS = PROGRAMS | SHELLS | {"sleep", "cat"}
SERVICES = ("AWS_", "DAYTONA_", "PINFOLD_", "XDG_", "LD_")


@dataclass(frozen=True)
class Service:
    """A fake of a remote service, which somebody else has started."""

    endpoint: str
    pid: int


def state(pid: int) -> str:
    """The letter of proc(5); of one that is gone as of one that has ended and is not reaped: Z."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "Z"
    return stat.rpartition(")")[2].split()[0].replace("X", "Z")


def runs(pid: int) -> bool:
    """Whether a process is at work at this moment, or is about to be."""
    return state(pid) in "RD"


def turns(pid: int) -> list[str]:
    """How often a process that waits has come to its turn: a shell has another one before it starts
    a program, and when that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return []
    return [line for line in status.splitlines() if "ctxt_switches" in line]


def waits(pid: int) -> list[str]:
    """The system call, by its number, and the function of the kernel that each thread is in."""
    found: list[str] = []
    tasks: list[Path] = []
    with contextlib.suppress(OSError):  # it is gone
        tasks += Path(f"/proc/{pid}/task").iterdir()
    for task in tasks:
        with contextlib.suppress(OSError):  # it is gone, or none of our business
            call = (task / "syscall").read_text().split()[0]
            found.append(f"{call} {(task / 'wchan').read_text()}")
    return found


class Place:
    """The directories of a worker, and its children. own_disk: its disk is small, and its own."""

    groups = "/sys/fs/cgroup"

    def __init__(self, top: Path, owner_py: Path, failcalls: Path, own_disk: bool) -> None:
        self.top, self.owner_py, self.failcalls = top, owner_py, failcalls
        self.own_disk, self.disk, self.tmp = own_disk, top / "disk", top / "disk/tmp"
        self.tmp.mkdir()
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(SERVICES) and not name.lower().endswith("_proxy")}
        self.env |= {"TMPDIR": str(self.tmp), "HOME": str(top), "no_proxy": "127.0.0.1",
                     "AWS_ACCESS_KEY_ID": "AKIAFAKEFAKEFAKEFAKE", "AWS_REGION": "us-west-2",
                     "AWS_SECRET_ACCESS_KEY": "fakeSecretKey/Example+0123456789ABCDEFGH",
                     "DAYTONA_API_KEY": "dtn_fake_key", "PYTHONDONTWRITEBYTECODE": "1"}
        libc = ctypes.CDLL(None)
        assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        self.mounts, self.others = self.seen_mounts(), self.seen_groups()

    # ---- processes ----

    def descendants(self, pid: int | None = None) -> list[tuple[int, str]]:
        """Number and name of all that a process, or else this one, has started."""
        parents: dict[int, list[tuple[int, str]]] = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                stat = (process / "stat").read_text(errors="replace")
            except OSError:  # it is gone
                continue
            head, _, rest = stat.rpartition(")")
            child, _, name = head.partition(" (")
            parents.setdefault(int(rest.split()[1]), []).append((int(child), name))
        found, todo = [], [pid or os.getpid()]
        while todo:
            children = parents.get(todo.pop(), [])
            found += children
            todo += [child for child, _ in children]
        return found

    def all_processes(self) -> str:
        return ", ".join(f"{pid} {name} {state(pid)}"
                         for pid, name in self.descendants()) or "no process"

    def all_waits(self, pid: int | None = None) -> str:
        """What the threads of all those wait for."""
        return "; ".join(f"{child} {name}: {', '.join(waits(child))}"
                         for child, name in self.descendants(pid)) or "no process"

    def calm(self, service: Service | None) -> dict[int, list[str]] | None:
        """None while commands run here or at a service; else the turns of each shell, which may
        wait for ever for its next command. A look at all processes takes longer than a short
        program, and may see none of a script that runs one after the other: nothing runs when two
        looks found the same. What was orphaned has ended, but is reaped by wait_until_alone()
        alone."""
        found = self.descendants() + (self.descendants(service.pid) if service else [])
        if any(name in PROGRAMS and state(pid) != "Z" for pid, name in found):
            return None
        shells = [pid for pid, name in found if name in SHELLS]
        return None if any(map(runs, shells)) else {pid: turns(pid) for pid in shells}

    def wait_until_alone(self) -> None:
        """Every child must end by itself, now that whoever held it has ended."""
        deadline = time.monotonic() + SOON
        while time.monotonic() < deadline:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.002)
            except ChildProcessError:
                return
        raise AssertionError(f"processes are left: {self.all_processes()}")

    def kill_all(self) -> None:
        """Before the report of a failure."""
        for _ in range(100):
            for pid, _ in self.descendants():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.02)

    # ---- what is left ----

    def seen_mounts(self) -> list[str]:
        return [line for line in Path("/proc/self/mountinfo").read_text().splitlines()
                if str(self.top) in line]

    def sweep(self, backend: str) -> None:
        """What the next run does for one that was killed and had no keeper."""
        done = subprocess.run(
            [str(BUILD / "pinfold"), "run", "--quiet", "--backend", backend, "--", "true"],
            env=self.env, cwd=self.top, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=SOON, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done

    def seen_groups(self) -> set[str]:
        return {os.path.join(directory, name) for directory, names, _ in os.walk(self.groups)
                for name in names if name.startswith("pinfold-")}

    def left_groups(self, owners: list[int]) -> list[str]:
        """The control groups of owners that are gone. Numbers are used again, on a busy machine a
        minute later: what has the number of one by now may have groups of its own, and nobody
        removes groups of who is there; and what had it may have left some before the episode, where
        nobody has swept since."""
        found = [(path, pid) for path in self.seen_groups() - self.others for pid in owners
                 if Path(path).name.startswith(f"pinfold-{pid}-")]
        return [path for path, pid in found
                if not os.path.exists(f"/proc/{pid}") and os.path.exists(path)]

    def check_nothing_is_left(self, owners: list[int], sweeps: str) -> None:
        """At the end of an episode, whose owners these processes were. sweeps: one of them may have
        had no keeper, and so the next run on this backend cleans up."""
        self.wait_until_alone()
        for number in range(SWEEPS if sweeps else 0):
            if number == 0 or any(self.tmp.iterdir()):
                self.sweep(sweeps)
                self.wait_until_alone()
        left = sorted(path.name for path in self.tmp.iterdir())
        assert not left, f"temporary files are left: {left}"
        assert self.seen_mounts() == self.mounts, f"mounts are left: {self.seen_mounts()}"
        groups = self.left_groups(owners)
        assert not groups, f"control groups are left: {groups}"

    def clear(self) -> None:
        """For the next episode."""
        self.others = self.seen_groups()
        for path in self.disk.iterdir():
            if path == self.tmp:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
