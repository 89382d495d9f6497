# SPDX-License-Identifier: Apache-2.0
"""
Runs one command for the fake service and leaves no process of it behind.

    runner.py shell          the command on a terminal of its own, under /bin/sh
    runner.py exec PROGRAM.. a program without a terminal

Standard input carries the length and the text of the command (shell only) and is the leash from
then on: when it ends, because the caller let go or died, everything that was started is killed.
Standard output carries what the command printed. The exit status is the command's; 128 + N for a
signal N. As a subreaper the runner stays the ancestor of every process, also of daemons.
"""

import ctypes
import os
import pty
import select
import signal
import struct
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    # The name in parentheses may hold anything; the parent is behind the last one.
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found, ahead = [], [os.getpid()]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def kill_all() -> None:
    """Again and again as long as there are any: a process may fork while it is being looked for,
    and what it forked is not among those that were killed."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def copy(master: int) -> bool:
    try:
        data = os.read(master, 65536)
    except OSError:
        # The terminal's other side is closed by everybody.
        return False
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]
    return bool(data)


def watch(pid: int, master: int | None) -> int:
    """Until the command ends or the leash does; the command's exit status."""
    ended = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(ended, select.POLLIN)
    if master is not None:
        poll.register(master, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll()]
        if master in ready and not copy(master):
            poll.unregister(master)
        if 0 in ready and not os.read(0, 4096):
            return 128 + signal.SIGKILL
        if ended in ready:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            return status if status >= 0 else 128 - status


def read_command() -> str:
    with os.fdopen(0, "rb", buffering=0, closefd=False) as leash:
        size, text = struct.unpack(">I", leash.read(4))[0], b""
        while len(text) < size:
            text += leash.read(size - len(text)) or sys.exit(1)
    return text.decode("utf-8", "surrogateescape")


def start(words: list[str]) -> tuple[int, int | None]:
    if words[0] == "shell":
        program = ["/bin/sh", "-c", read_command()]
        pid, master = pty.fork()
    else:
        program, master = words[1:], None
        pid = os.fork()
    if pid:
        return pid, master
    try:
        # What is ignored stays so: Python ignores some, and who runs tests in the background others.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        if words[0] == "shell":
            os.environ["PATH"] = words[1]
        if master is None:
            os.setsid()
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
        os.execv(program[0], program)
    finally:
        os._exit(127)


def main() -> int:
    # The fake waits for its signals with these blocked, and what is blocked is inherited.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pid, master = start(sys.argv[1:])
    status = watch(pid, master)
    kill_all()
    while master is not None and copy(master):
        pass
    return status


if __name__ == "__main__":
    sys.exit(main())
