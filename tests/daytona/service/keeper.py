# SPDX-License-Identifier: Apache-2.0
"""
Keepers: each starts one program and is the ancestor of all that comes of it.

    keeper.py    with a socket as standard input

For each request on the socket one more keeper is forked, because a fork is much faster than one
more Python. A request is a length, a JSON {"argv", "cwd", "env"}, and five descriptors: the leash,
the report, and the program's standard ones. The keeper writes a line of JSON to the report when the
program was started ({"pid"} or {"error"}: an errno) and one when it ended ({"status"}: negative
for a signal). It lives, and the report stays open, until nothing is left of what the program
started. On the leash, b"g" kills the program's process group; its end, because the caller let go or
died, kills everything. As a subreaper the keeper stays the ancestor of daemons, too.
"""

import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys

PR_SET_CHILD_SUBREAPER = 36


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as listed:
                found += map(int, listed.read().split())
    except OSError:
        pass  # it ended meanwhile: its children are ours now
    return found


def kill_all() -> None:
    """Once more as long as there are any: a process may fork while it is being looked for."""
    while True:
        ahead = [os.getpid()]
        while ahead:
            for pid in children_of(ahead.pop()):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                ahead.append(pid)
        try:
            # The first may take a moment to die; what else ended is collected with it.
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def tell(report: int, **told: int) -> None:
    try:
        os.write(report, json.dumps(told).encode() + b"\n")
    except BrokenPipeError:
        pass  # nobody asks any more


def start(asked: dict, fds: list[int]) -> int:
    """The program's pid; minus the errno when it could not be started."""
    failed, fail = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            # Python ignores these, and what is ignored stays so.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            os.chdir(asked["cwd"])
            os.execve(asked["argv"][0], asked["argv"], asked["env"])
        except OSError as why:
            os.write(fail, struct.pack("i", why.errno))
        finally:
            os._exit(127)
    os.close(fail)
    code = os.read(failed, 4)
    os.close(failed)
    return -struct.unpack("i", code)[0] if code else pid


def reap(pid: int, report: int) -> bool:
    """Collect what ended; False when nothing is left."""
    try:
        while (done := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if done[0] == pid:
                tell(report, status=os.waitstatus_to_exitcode(done[1]))
    except ChildProcessError:
        return False
    return True


def keep(pid: int, leash: int, report: int) -> None:
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(leash, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while reap(pid, report):
        for fd, _ in poll.poll():
            said = os.read(fd, 512)
            if fd == leash and not said:
                kill_all()
                return
            if fd == leash and b"g" in said:
                try:
                    os.killpg(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def keeper(asked: dict, fds: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    leash, report, *standard = fds
    pid = start(asked, standard)
    for fd in standard:
        os.close(fd)
    if pid < 0:
        tell(report, error=-pid)
        return
    tell(report, pid=pid)
    keep(pid, leash, report)


def receive(asked: socket.socket) -> tuple[dict, list[int]] | None:
    head, fds, _, _ = socket.recv_fds(asked, 4, 5)
    if not head:
        return None
    for fd in fds:
        os.set_inheritable(fd, False)  # unlike all others that Python makes
    size, text = struct.unpack(">I", head)[0], b""
    while len(text) < size:
        text += asked.recv(size - len(text)) or sys.exit(1)
    return json.loads(text), fds


def main() -> None:
    # The fake waits for its signals with these blocked, and what is blocked is inherited.
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers that ended are nobody's concern
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's; the socket's end is ours
    os.umask(0o022)
    asked = socket.socket(fileno=0)
    null = os.open("/dev/null", os.O_RDWR)
    while request := receive(asked):
        if os.fork() == 0:
            # The socket is the fake's; its end must be seen by the first process alone.
            os.dup2(null, 0)
            os.close(null)
            keeper(*request)
            os._exit(0)
        for fd in request[1]:
            os.close(fd)


if __name__ == "__main__":
    main()
