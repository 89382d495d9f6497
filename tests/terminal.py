# SPDX-License-Identifier: Apache-2.0
"""A terminal of a person, with the command on it."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any


class Terminal:
    """What the test types and sees; the command has the other side as its controlling terminal."""

    def __init__(self, rows: int = 33, cols: int = 101, owner: int | None = None) -> None:
        self.master, self.slave = os.openpty()
        self.seen = b""
        self.child: Any = None
        self.resize(rows, cols)
        if owner is not None:
            os.fchown(self.slave, owner, owner)

    def start(self, *args: Any, **options: Any) -> Any:
        def take() -> None:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for name in ("stdin", "stdout", "stderr"):
            options.setdefault(name, self.slave)
        self.child = subprocess.Popen([os.fspath(arg) for arg in args], preexec_fn=take, **options)
        return self.child

    def modes(self) -> list:
        return termios.tcgetattr(self.slave)

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        while data:
            data = data[os.write(self.master, data):]

    def read(self, seconds: float = 0) -> bool:
        """Take in what there is; whether there was anything."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def expect(self, pattern: str | bytes, seconds: float = 30) -> Any:
        """Wait for a pattern in what was not matched yet, and drop all up to its end."""
        regex = re.compile(pattern.encode() if isinstance(pattern, str) else pattern, re.DOTALL)
        deadline = time.monotonic() + seconds
        while not (match := regex.search(self.seen)):
            assert time.monotonic() < deadline, f"{pattern!r} not in {self.seen[-2000:]!r}"
            self.read(0.05)
        self.seen = self.seen[match.end():]
        return match

    def run(self, line: str) -> str:
        """Type a line at a shell, and wait for what it prints."""
        self.type(f"{line}\recho \"END\"OF:$?:\r")
        match = self.expect(rb"(.*?)ENDOF:\d+:\r\n")
        return match[1].decode(errors="replace").replace("\r", "").rpartition("\x1b[?2004l")[2]

    def wait(self, seconds: float = 30) -> int:
        """The exit status; reads meanwhile, as a person's terminal does."""
        deadline = time.monotonic() + seconds
        while self.child.poll() is None:
            assert time.monotonic() < deadline, f"it does not end: {self.seen[-2000:]!r}"
            self.read(0.02)
        while self.read(0):
            pass
        return self.child.returncode

    def close(self) -> None:
        if self.child and self.child.poll() is None:
            self.child.terminate()
            self.child.send_signal(signal.SIGCONT)
            try:
                self.wait()
            finally:
                self.child.kill()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)


def processes_with(word: str) -> list[int]:
    """Who has a word in its command line, in all sandboxes of this machine."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found
