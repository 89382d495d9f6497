# SPDX-License-Identifier: Apache-2.0
"""The faces of Pinfold as the soak uses them. Each of those that last has the same methods: open,
write, read, delete, move, run, flush, close. They raise Failed when a failure was reported, and
Died when whoever should have answered is gone."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import random
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Iterator

import client as stdio  # of tests/mcp, as the next one
import http_server as http

from owners import BUILD
from place import Place, runs

HERE = Path(__file__).resolve().parent
PATIENCE = 150  # seconds, for a machine that is busy with other things
INCLUDE = ["--include", "src/**", "--include", "*.md"]


class Failed(Exception):
    """A failure was reported."""


class Died(Exception):
    """The owner of the sandbox has ended."""


class Hangs(AssertionError):
    """There is no answer."""


@dataclass(frozen=True)
class Opening:
    """What a sandbox is made of."""

    backend: str
    root: Path | None
    seed: Path | None
    dest: Path | None
    endpoint: str
    own_id: str


def words_of(opening: Opening) -> list[str]:
    """The same for the command."""
    words = ["--backend", opening.backend.split("-")[0].replace("overlay", "isolated"), *INCLUDE]
    if opening.backend == "overlay":
        words += ["--seed-mode", "overlay"]
    if opening.backend == "agentcore-tasks":
        words += ["--timeout", "600"]
    if opening.backend in ("isolated", "overlay"):
        words += ["--workspace-size", "unlimited"]
    if opening.endpoint and opening.backend != "daytona":
        words += ["--endpoint", opening.endpoint]
    if opening.root:
        words += ["--workspace", str(opening.root)]
    if opening.seed:
        words += ["--seed", str(opening.seed)]
    if opening.dest:
        words += [f"--sync={opening.dest}"]
    return words


class Owner:
    """owner.c or owner.py, at the other end of two pipes."""

    process: subprocess.Popen[bytes]

    def __init__(self, place: Place, kind: str, preload: dict[str, str]) -> None:
        self.place, self.text = place, b""
        words = {"library": [str(BUILD / "owner")],
                 "python": [sys.executable, str(place.owner_py)]}[kind]
        env = place.env | preload | {"PYTHONPATH": str(BUILD / "python"),
                                     "LD_LIBRARY_PATH": str(BUILD)}
        self.said = (place.top / "owner.stderr").open("wb")
        self.process = subprocess.Popen(words, env=env, cwd=place.top, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.said)

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_until_it_listens(self) -> None:
        """What an interpreter or a linker makes of trouble is its own, and none is meant for it."""
        deadline = time.monotonic() + PATIENCE
        while runs(self.pid):
            if time.monotonic() > deadline:
                raise Hangs(f"it does not begin; {self.place.all_processes()}")
            time.sleep(0.002)

    def ask(self, name: str, *args: bytes | str | Path | None) -> list[bytes]:
        words = [name]
        for arg in args:
            data = arg if isinstance(arg, bytes) else os.fsencode(arg) if arg else b""
            words.append(data.hex() or "-")
        assert self.process.stdin
        try:
            self.process.stdin.write(" ".join(words).encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Died(name) from error
        kind, _, rest = self._line(name).partition(b" ")
        if kind == b"fail":
            raise Failed(rest.decode(errors="replace"))
        assert kind == b"ok", (kind, rest)
        return [b"" if word == b"-" else bytes.fromhex(word.decode()) for word in rest.split()]

    def _line(self, name: str) -> bytes:
        assert self.process.stdout
        out = self.process.stdout.fileno()
        while b"\n" not in self.text:
            if not select.select([out], [], [], PATIENCE)[0]:
                raise Hangs(f"{name}: no answer; {self.place.all_processes()}")
            data = os.read(out, 1 << 20)
            if not data:
                raise Died(name)
            self.text += data
        line, self.text = self.text.split(b"\n", 1)
        return line

    def open(self, opening: Opening) -> None:
        self.ask("open", opening.backend, opening.root, opening.seed, opening.dest,
                 opening.endpoint, opening.own_id)

    def write(self, path: str, data: bytes) -> None:
        self.ask("write", path, data)

    def read(self, path: str) -> bytes:
        return self.ask("read", path)[0]

    def delete(self, path: str) -> None:
        self.ask("delete", path)

    def move(self, source: str, dest: str) -> None:
        self.ask("move", source, dest)

    def run(self, command: str) -> tuple[int, bytes]:
        code, out = self.ask("run", command)
        return int(code), out

    def flush(self) -> None:
        self.ask("flush")

    def close(self) -> None:
        """The sandbox; its owner stays for another."""
        self.ask("stop")

    def descriptors(self) -> int | None:
        return int(self.ask("descriptors")[0])

    def end(self) -> int:
        """The owner. Returns its exit status."""
        for stream in (self.process.stdin, self.process.stdout):
            assert stream
            try:
                stream.close()
            except OSError:  # it has died
                pass
        self.said.close()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Hangs(f"the owner does not end; {self.place.all_processes()}") from error


class Mcp:
    """pinfold mcp, over stdio or HTTP; the client's side is that of tests/mcp."""

    def __init__(self, place: Place, kind: str, rng: random.Random) -> None:
        self.place, self.kind, self.rng = place, kind, rng
        self.client: Any = None
        self.server: Any = None
        self.stack = contextlib.ExitStack()

    @property
    def pid(self) -> int:
        process: subprocess.Popen[bytes] = (self.server or self.client).process
        return process.pid

    def open(self, opening: Opening) -> None:
        words = [*words_of(opening), "--quiet", "--no-roots", "--max-output", "8M"]
        with self.answers("open"):
            if self.kind == "mcp":
                self.client = stdio.Client(*words, env=self.place.env, cwd=self.place.top)
            else:
                self.server = http.Server(self.place.top, *words, "--http-resume", PATIENCE,
                                          env=self.place.env)
                self.stack.enter_context(self.server)
                self.client = http.Client(self.server.learn())
        self.run("true")  # the first call makes the workspace

    @contextlib.contextmanager
    def answers(self, name: str) -> Iterator[None]:
        """What happens to a client whose server ends."""
        try:
            yield
        except (TimeoutError, queue.Empty) as error:
            raise Hangs(f"{name}: no answer; {self.place.all_processes()}") from error
        except (OSError, AssertionError) as error:
            raise Died(f"{name}: {error}") from error

    def call(self, name: str, **arguments: Any) -> Any:
        with self.answers(name):
            if self.server:
                message = self.ask(name, arguments)
                if "error" in message:
                    raise Failed(message["error"]["message"])
                result = stdio.Result(message["result"])
            else:
                try:
                    result = self.client.call(name, **arguments)
                except stdio.Failure as error:
                    raise Failed(str(error)) from error
        if result.is_error:
            raise Failed(result.text)
        return result.data

    def ask(self, name: str, arguments: dict[str, Any]) -> Any:
        """Over HTTP; at times the connection ends before the answer, which must not get lost."""
        if self.rng.random() < 0.8:
            return self.client.call(name, **arguments).message()
        with http.Connection(self.server) as connection:
            answer = self.client.call(name, connection, **arguments)
            if answer.headers["content-type"] == "application/json":
                return json.loads(answer.body)
            first, _ = next(answer.events())
        again = self.client.ask("GET", last_event_id=first)
        return [one for _, one in again.events() if one and "method" not in one][-1]

    def write(self, path: str, data: bytes) -> None:
        self.call("write_file", path=path, content=data.decode())

    def read(self, path: str) -> bytes:
        """Texts are shown in parts, so a command does it."""
        code, out = self.run(f"cat -- {quote(path)}")
        if code:
            raise Failed(f"cat: {code}")
        return out

    def delete(self, path: str) -> None:
        self.call("delete_file", path=path)

    def move(self, source: str, dest: str) -> None:
        self.call("move_file", source=source, destination=dest, overwrite=True)

    def run(self, command: str) -> tuple[int, bytes]:
        data = self.call("execute", command=command)
        return data["exit_code"], data["stdout"].encode()

    def flush(self) -> None:
        if errors := self.call("sync")["errors"]:
            raise Failed(f"{len(errors)} paths: {errors[0]}")

    def close(self) -> None:
        """The end of the client is that of the sandbox: see end()."""

    def descriptors(self) -> int | None:
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except OSError:
            return None

    def end(self) -> int:
        """Returns the exit status. With --sync it is a flush as well."""
        if self.server:
            status = self.server.stop()
            self.stack.pop_all()
        else:
            with contextlib.suppress(OSError):
                self.client.process.stdin.close()
            status = self.client.process.wait(PATIENCE)
            for thread in self.client.threads:
                thread.join(PATIENCE)
        process = self.server.process if self.server else self.client.process
        for stream in process.stdout, process.stderr:
            stream.close()
        return int(status)
