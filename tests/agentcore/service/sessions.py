# SPDX-License-Identifier: Apache-2.0
"""Sessions: a directory, a Python that remembers, tasks, and every process that was started."""

import json
import os
import re
import secrets
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Iterator

from .errors import ServiceError, not_active

HERE = Path(__file__).parent
# What the live service has in its working directory.
FOLDERS = ("log", "run", "node_modules", "nodejs-js-execution", "nodejs-ts-execution", ".ipython")
FILES = ("package.json", "package-lock.json")
# What pinfold's commands have in /tmp, which goes with the virtual machine there.
OF_PINFOLD = re.compile(r"^m=([0-9a-f]{16}); T=/tmp/pinfold-\$m;")
ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class Run:
    """One command or program under runner.py."""

    def __init__(self, place: Path, words: list[str], command: str | None = None,
                 fds: tuple[int, ...] = ()) -> None:
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(place), "PWD": str(place),
               "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        self.started = time.monotonic()
        self.output = bytearray()
        self.seconds = 0.0
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HERE / "runner.py"), *words], cwd=place, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=fds,
            start_new_session=True)
        if command is not None:
            text = command.encode("utf-8", "surrogateescape")
            try:
                self.process.stdin.write(struct.pack(">I", len(text)) + text)
                self.process.stdin.flush()
            except BrokenPipeError:
                pass

    def let_go(self) -> None:
        """Kill all of it; the end is seen by whoever waits."""
        try:
            self.process.stdin.close()
        except (OSError, ValueError):
            pass

    def wait(self, limit: int, seconds: float) -> int:
        """Read to the end; at the limits the command is killed. One byte more than the limit is
        kept, for the caller to see that there was more."""
        until = self.started + seconds
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        while True:
            left = max(until - time.monotonic(), 0) * 1000
            if not poll.poll(None if self.process.stdin.closed else left):
                self.let_go()
                continue
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                break
            self.output += data[:limit + 1 - len(self.output)]
            if len(self.output) > limit:
                self.let_go()
        status = self.process.wait()
        self.seconds = time.monotonic() - self.started
        self.process.stdout.close()
        self.let_go()
        return status


class Kernel:
    """The Python of executeCode."""

    def __init__(self, place: Path) -> None:
        asked, self.ask = os.pipe()
        self.answer, answered = os.pipe()
        self.run = Run(place, ["exec", sys.executable, str(HERE / "kernel.py"), str(asked),
                               str(answered)], fds=(asked, answered))
        os.close(asked)
        os.close(answered)

    def execute(self, code: str, clear: bool, seconds: float) -> dict | None:
        """None: the interpreter is gone."""
        timer = threading.Timer(seconds, self.run.let_go)
        timer.start()
        try:
            with os.fdopen(os.dup(self.ask), "w") as ask:
                print(json.dumps({"code": code, "clear": clear}), file=ask, flush=True)
            with os.fdopen(os.dup(self.answer)) as answer:
                line = answer.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        return json.loads(line) if line else None

    def close(self) -> None:
        self.run.let_go()
        self.run.process.wait()
        self.run.process.stdout.close()
        os.close(self.ask)
        os.close(self.answer)


class Task:
    def __init__(self, run: Run, limit: int, seconds: float) -> None:
        self.id = secrets.token_hex(16)
        self.run = run
        self.status = "submitted"
        self.code: int | None = None
        self.thread = threading.Thread(target=self._wait, args=(limit, seconds), daemon=True)
        self.thread.start()

    def _wait(self, limit: int, seconds: float) -> None:
        self.code = self.run.wait(limit, seconds)
        if self.status != "canceled":
            self.status = "completed" if self.code == 0 else "failed"

    def stop(self) -> None:
        if self.code is None:
            self.status = "canceled"
            self.run.let_go()
        self.thread.join()


class Session:
    def __init__(self, root: Path, identifier: str, body: dict, now: datetime) -> None:
        self.id = "01" + "".join(secrets.choice(ULID) for _ in range(24))
        self.identifier = identifier
        self.body = body
        self.seconds = body.get("sessionTimeoutSeconds", 900)
        self.created = self.updated = now
        self.deadline = time.monotonic() + self.seconds
        self.active = True
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.idle = threading.Condition(self.lock)
        self.python = threading.Lock()
        self.kernel: Kernel | None = None
        self.tasks: dict[str, Task] = {}
        self.runs: set[Run] = set()
        self.temporary: set[str] = set()
        self.in_flight = 0
        self.place = root / self.id
        self.place.mkdir()
        for name in FOLDERS:
            (self.place / name).mkdir()
        for name in FILES:
            (self.place / name).write_text("{}\n")

    def start(self, words: list[str], command: str | None = None) -> Run | None:
        """None: the session ended in the meantime."""
        with self.lock:
            if not self.active:
                return None
            if found := OF_PINFOLD.match(command or ""):
                self.temporary.add(f"/tmp/pinfold-{found[1]}")
            run = Run(self.place, words, command)
            self.runs.add(run)
            return run

    @contextmanager
    def call(self, most: int) -> Iterator[None]:
        """Around each call: so many at once, and none after the end, which waits for all."""
        with self.lock:
            if self.active and self.in_flight >= most:
                raise ServiceError("ServiceQuotaExceededException",
                                   "Too many concurrent calls in one session")
            admitted = self.active
            self.in_flight += admitted
        if not admitted:
            self.ended.wait()
            raise not_active(self.id)
        try:
            yield
        finally:
            with self.idle:
                self.in_flight -= 1
                self.idle.notify_all()

    def python_kernel(self) -> Kernel | None:
        with self.lock:
            if self.active and self.kernel is None:
                self.kernel = Kernel(self.place)
            return self.kernel

    def drop_kernel(self) -> None:
        with self.lock:
            kernel, self.kernel = self.kernel, None
        if kernel:
            kernel.close()

    def tasks_at_work(self) -> int:
        return sum(task.code is None for task in list(self.tasks.values())) if self.active else 0

    def end(self, now: datetime) -> None:
        """Kill all that runs and remove the directory."""
        with self.lock:
            first, self.active = self.active, False
            self.updated = now if first else self.updated
            runs, kernel = list(self.runs), self.kernel
        if not first:
            self.ended.wait()
            return
        for run in runs:
            run.let_go()
        for run in runs:
            run.process.wait()
        if kernel:
            kernel.run.let_go()
            kernel.run.process.wait()
        with self.idle:
            self.idle.wait_for(lambda: self.in_flight == 0)
        self.drop_kernel()
        try:
            for path in self.temporary:
                remove_temporary(path)
            shutil.rmtree(self.place, onerror=open_up)
        finally:
            self.ended.set()


def remove_temporary(path: str) -> None:
    """Not by open_up(), which would change the mode of /tmp."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path, ignore_errors=True)
    else:
        Path(path).unlink(missing_ok=True)


def open_up(remove, path: str, _) -> None:
    """A directory that its owner may not write is no reason to leave it behind."""
    if not os.path.lexists(path):
        return
    os.chmod(os.path.dirname(path), 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        remove(path)
