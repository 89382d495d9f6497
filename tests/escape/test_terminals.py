# SPDX-License-Identifier: Apache-2.0
"""Attacks by a program that was given a terminal: on the terminal's other side, and on others."""

import os
import select
import time

from conftest import PYTHON, Range

SCRIPT = """
import ctypes, errno, fcntl, os, struct, termios
GPTN, GPTPEER, SPTLCK, CONS = 0x80045430, 0x5441, 0x40045431, 0x541d

def attempt(name, call):
    try:
        print("RESULT", name, "got", call())
    except OSError as error:
        print("RESULT", name, errno.errorcode[error.errno])

def on(path, request, argument=0):
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    try:
        return fcntl.ioctl(fd, request, argument)
    finally:
        os.close(fd)

own = os.ttyname(0)
attempt("type", lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"))
attempt("console", lambda: fcntl.ioctl(0, CONS, 0))
attempt("discipline", lambda: fcntl.ioctl(0, termios.TIOCSETD, struct.pack("i", 3)))
attempt("peer", lambda: fcntl.ioctl(0, GPTPEER, os.O_RDWR))
attempt("lock", lambda: fcntl.ioctl(0, SPTLCK, struct.pack("i", 1)))
master, slave = os.openpty()
print("RESULT other", os.ttyname(slave) != own)
held = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)]
print("RESULT held", set(held) == {own}, sorted(set(os.listdir("/proc/self/fd")) - set("012"))[:1])
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        continue
    if int(pid) != os.getpid() and any("ptmx" in name or "socket" in name for name in names):
        print("RESULT found", pid, names)
os.close(master), os.close(slave)
if os.fork() == 0:
    os.setsid()
    attempt("steal", lambda: on(own, termios.TIOCSCTTY, 1))
    attempt("borrow", lambda: on(own, termios.TIOCSCTTY, 0))
    os._exit(0)
os.wait()
many = []
try:
    while len(many) < 2000:
        many.append(os.openpty())
except OSError as error:
    print("RESULT many", len(many) < 300, errno.errorcode[error.errno])
print("RESULT end")
"""


def on_terminal(field: Range, script: str) -> str:
    """What a script says on a terminal in the sandbox."""
    (field.workspace / "attack.py").write_text(script)
    master, slave = os.openpty()
    child = field.popen(field.arguments(f"{PYTHON} attack.py", "--tty"), stdin=slave, stdout=slave,
                        stderr=slave)
    said, deadline = b"", time.monotonic() + 60
    while child.poll() is None or select.select([master], [], [], 0)[0]:
        assert time.monotonic() < deadline, said
        if select.select([master], [], [], 0.05)[0]:
            said += os.read(master, 65536)
    other = os.openpty() # the machine has terminals left
    for fd in (master, slave, *other):
        os.close(fd)
    assert child.returncode == 0, said
    return said.decode(errors="replace").replace("\r", "")


def test_a_terminal_gives_no_hold_on_what_is_behind_it(field: Range) -> None:
    said = on_terminal(field, SCRIPT)
    results = dict(line.split(" ", 2)[1:] for line in said.splitlines()
                   if line.startswith("RESULT ") and line.count(" ") > 1)
    assert "RESULT end" in said
    assert results["type"] == results["console"] == results["discipline"] == "EPERM", said
    assert results["peer"] != "got" and "got" not in results["peer"], said
    assert "got" not in results["lock"], said
    assert results["other"] == "True" and results["held"].startswith("True"), said
    assert "found" not in results, said
    assert results["steal"] == results["borrow"] == "EPERM", said
    assert results["many"].startswith("True"), said

