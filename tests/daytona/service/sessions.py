# SPDX-License-Identifier: Apache-2.0
"""
Process sessions. Each is one long-lived shell without a terminal, which reads its standard input
and sources the text of one command after another; that is the cause of every trap that it has.

The output of a command comes through two pipes with names, line by line, each line behind a mark
that says which of the two it was. Its exit status is known when the shell wrote it to a third pipe
and nobody has the first two open any more.
"""

import errno
import os
import queue
import select
import shutil
import threading
import time
import uuid
from pathlib import Path
from shlex import quote

from .errors import daemon_error
from .sandboxes import Sandbox

MARKS = (b"\1\1\1", b"\2\2\2")


class Labeler:
    """One of the two streams of a command: whole lines alone are passed on."""

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.part = b""

    def take(self, data: bytes) -> bytes:
        # A shell's variables cannot hold a NUL.
        lines, newline, part = data.replace(b"\0", b"").rpartition(b"\n")
        if not newline:
            self.part += part
            return b""
        whole, self.part = self.part + lines, part
        return self.mark + whole.replace(b"\n", b"\n" + self.mark) + b"\n"

    def end(self) -> bytes:
        part, self.part = self.part, b""
        return self.mark + part + b"\n" if part else b""


class Command:
    def __init__(self, place: Path, text: str, asynchronous: bool) -> None:
        self.id = str(uuid.uuid4())
        self.text = text
        self.asynchronous = asynchronous
        self.code: int | None = None
        self.finished = 0.0
        self.done = threading.Event()
        self.place = place / self.id
        self.place.mkdir(parents=True)
        (self.place / "cmd.sh").write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")
        (self.place / "output.log").touch()
        self.pipes = [self._pipe("stdout.pipe"), self._pipe("stderr.pipe"),
                      self._pipe("exit.pipe")]

    def _pipe(self, name: str) -> int:
        os.mkfifo(self.place / name, 0o600)
        return os.open(self.place / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def line(self) -> bytes:
        """What the session's shell is told: in its own process, or cd and export would be lost."""
        name = {one: quote(str(self.place / one)) for one in
                ("cmd.sh", "stdout.pipe", "stderr.pipe", "exit.pipe", "input.pipe")}
        stdin = "/dev/null"
        before = ""
        if self.asynchronous:
            # Open for both, so that it never ends.
            stdin = f"> {name['input.pipe']}"
            before = f"mkfifo -m 600 {name['input.pipe']}; "
        return (f"{before}{{ . {name['cmd.sh']}; }} <{stdin} >{name['stdout.pipe']} "
                f"2>{name['stderr.pipe']}; echo $? >{name['exit.pipe']}\n").encode()

    def log(self) -> bytes:
        return (self.place / "output.log").read_bytes()

    def shown(self) -> dict:
        code = {} if self.code is None else {"exitCode": self.code}
        return {"id": self.id, "command": self.text, **code}

    def input(self, data: str) -> None:
        if self.code is not None:
            raise daemon_error(410, "command has already completed with exit code "
                                    f"{self.code}")
        pipe = self.place / "input.pipe"
        try:
            fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as why:
            words = "no such file or directory" if why.errno == errno.ENOENT else "no such device"
            raise daemon_error(500, f"failed to open input pipe: open {pipe}: {words}") from None
        with os.fdopen(fd, "wb", buffering=0) as opened:
            opened.write(data.encode("utf-8", "surrogateescape") + b"\n")

    def close(self) -> None:
        for fd in self.pipes:
            os.close(fd)


class Session:
    def __init__(self, sandbox: Sandbox, name: str, cwd: Path) -> None:
        self.id = name
        self.place = sandbox.home / ".daytona" / "sessions" / name
        self.place.mkdir(parents=True, exist_ok=True)
        self.commands: dict[str, Command] = {}
        self.waiting: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self.ended = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.over = False
        asked, self.shell = os.pipe()
        null = os.open("/dev/null", os.O_RDWR)
        shell = sandbox.config["shell"]
        try:
            self.program = sandbox.start_program([shell], str(cwd), sandbox.environment(),
                                                 (asked, null, null))
        finally:
            os.close(asked)
            os.close(null)
        if self.program is None or self.program.error:
            raise daemon_error(500, f"failed to start {shell}")
        self.sandbox = sandbox
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        """One command at a time, until the shell is gone and the session with it."""
        while command := self.waiting.get():
            if self.over:
                break
            try:
                os.write(self.shell, command.line())
            except BrokenPipeError:
                break  # it ended while this one waited: there will be no status
            if not self._follow(command):
                break

    def _follow(self, command: Command) -> bool:
        """Until it is done; False: the session ended first."""
        out, err, status = command.pipes
        labelers = {out: Labeler(MARKS[0]), err: Labeler(MARKS[1])}
        poll = select.poll()
        for fd in (*command.pipes, self.ended):
            poll.register(fd, select.POLLIN)
        said = b""
        with open(command.place / "output.log", "ab", buffering=0) as log:
            while labelers or not said.endswith(b"\n"):
                for fd, _ in poll.poll():
                    if fd == self.ended:
                        return False
                    try:
                        data = os.read(fd, 1 << 16)
                    except BlockingIOError:
                        # To poll(2), which takes no lock, a writer that is just opening the pipe
                        # may look like one that has come and gone.
                        continue
                    if fd == status:
                        said += data
                        if said.endswith(b"\n"):
                            poll.unregister(fd)
                        continue
                    log.write(labelers[fd].take(data) if data else labelers.pop(fd).end())
                    if not data:
                        poll.unregister(fd)
        command.finished = time.monotonic()
        command.code = int(said)
        command.done.set()
        return True

    def execute(self, text: str, asynchronous: bool) -> Command:
        with self.sandbox.lock:
            command = Command(self.place, text, asynchronous)
            self.commands[command.id] = command
            if self.over or self.program.ended.is_set():
                raise daemon_error(400, "failed to write command: write |1: broken pipe")
            self.waiting.put(command)
        return command

    def is_at_work(self) -> bool:
        """Whether its shell has a command to begin or to end."""
        if self.over or self.program.ended.is_set():
            return False
        return not all(command.done.is_set() for command in list(self.commands.values()))

    def end(self) -> None:
        """Kill all that it ever started. Only the one that took it out of the sandbox may."""
        with self.sandbox.lock:
            self.over = True
        os.eventfd_write(self.ended, 1)
        self.waiting.put(None)
        self.program.kill()
        self.thread.join()
        os.close(self.shell)
        for command in list(self.commands.values()):  # one that comes now is refused, but is there
            command.done.set()
            command.close()
        os.close(self.ended)
        shutil.rmtree(self.place, ignore_errors=True)
