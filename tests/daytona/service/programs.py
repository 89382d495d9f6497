# SPDX-License-Identifier: Apache-2.0
"""Programs that the fake runs, each under a keeper of its own."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path


class Program:
    """One program and all that it started."""

    def __init__(self, leash: int, report: int) -> None:
        self._leash: int | None = leash
        self._report = os.fdopen(report, "rb")
        self._lock = threading.Lock()
        told = json.loads(self._report.readline() or b'{"error": 32}')
        self.error: int | None = told.get("error")
        self.pid: int | None = told.get("pid")
        self.status: int | None = None
        self.ended = threading.Event()
        self.gone = threading.Event()  # with all that it started
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        line = self._report.readline()
        self.status = json.loads(line)["status"] if line else -9
        self.ended.set()
        self._report.read()
        self._report.close()
        self._let_go()
        self.gone.set()

    def _let_go(self) -> None:
        with self._lock:
            leash, self._leash = self._leash, None
        if leash is not None:
            os.close(leash)

    def kill_group(self) -> None:
        with self._lock:
            if self._leash is not None:
                try:
                    os.write(self._leash, b"g")
                except BrokenPipeError:
                    pass

    def kill(self) -> None:
        """All of it, and wait until nothing is left."""
        self._let_go()
        self.gone.wait()


class Programs:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._asks = ours
        self._lock = threading.Lock()
        self._zygote = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).parent / "keeper.py")], stdin=theirs)
        theirs.close()

    def start(self, argv: list[str], cwd: str, env: dict[str, str],
              fds: tuple[int, int, int]) -> Program:
        """fds are the program's standard descriptors; the caller closes its own."""
        held, leash = os.pipe()
        report, told = os.pipe()
        text = json.dumps({"argv": argv, "cwd": cwd, "env": env}).encode()
        try:
            with self._lock:
                socket.send_fds(self._asks, [struct.pack(">I", len(text))], [held, told, *fds])
                self._asks.sendall(text)
        finally:
            os.close(held)
            os.close(told)
        return Program(leash, report)

    def close(self) -> None:
        self._asks.close()
        self._zygote.wait()
