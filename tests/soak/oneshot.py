# SPDX-License-Identifier: Apache-2.0
"""The faces whose sandbox lasts for one call of the command: run, agent and shell. Each is seeded,
changed by a script, and its results come home at the end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator

import adversity
import commands
import oracle
from commands import Script
from episode import MAY_DIE_OF, Episode, Wrong, torn
from faces import PATIENCE, Hangs, Opening, words_of
from oracle import Tree
from owners import BUILD
from terminal import Terminal

HERE = ["local", "isolated", "overlay"]
ONE_SHOT = {"run": [*HERE, "agentcore", "agentcore-tasks", "daytona"], "shell": HERE,
            "agent": [*HERE, "agentcore", "daytona"]}
KEPT = re.compile(r"(?:results are|agent's copy is|copy is) kept in ([^;\n]*?)(/changes)?[;\n]")


class OneShot(Episode):
    """Each life is one call."""

    def run(self) -> None:
        self.make_home()
        self.root: Path | None = None
        if self.face != "agent" and self.backend in ("local", "isolated"):
            self.root = self.place.disk / "work" if self.rng.random() < 0.5 else None
        for number in range(self.rng.randint(1, 5)):
            self.live(number == 0 or not self.root or self.rng.random() < 0.3)
            self.place.wait_until_alone()
            self.settle()
            if self.root:
                self.check(self.work, self.root, "the workspace")
            self.check_home()
        self.check_nothing_is_left()
        self.check_service()

    def live(self, seeds: bool) -> None:
        opening = Opening(self.backend, self.root, self.home_dir if seeds else None, self.dest_dir,
                          self.endpoint, "soak")
        work = self.work if self.root else Tree()
        before = Tree()
        before.states = {path: list(may) for path, may in work.states.items()}
        if seeds:
            work.done(self.seeding())
            before.tried(torn(self.seeding()))
        script = self.make_script(work)
        self.tell(f"{self.face} {words_of(opening)}: {script.text!r}"[:3000])
        self.count("calls")
        status, said = self.call(opening, script)
        self.tell(f"it ended with {status}: {said[-1500:]!r}")
        # What its commands did is a matter between an agent and its model.
        all_done = status == 0 and (self.face != "agent" or "[1] exit 0" in said)
        if all_done:
            work.done(script.effects)
        else:  # at any point between the start of seeding and the end
            self.check_failure(status, said)
            before.tried(script.effects)
            work = before
        oracle.flushed(work, self.dest, whole=all_done and self.brings_home(script, before))
        self.work = work
        self.check_kept(said)

    def brings_home(self, script: Script, before: Tree) -> bool:
        """An agent that has changed nothing writes nothing."""
        return self.face != "agent" or any(
            states[-1] not in before.may(path) for path, states in script.effects)

    def make_script(self, work: Tree) -> Script:
        if self.face == "run":
            return commands.some_script(self.rng, work)
        names = [name for name in commands.NAMES
                 if name.isascii() and (self.face == "shell" or oracle.comes_home(name))]
        steps = commands.WRITING if self.face == "agent" else commands.STEPS
        return commands.some_script(self.rng, work, names=names, steps=steps)

    def check_failure(self, status: int, said: str) -> None:
        self.count("failures")
        if not self.trouble:
            raise Wrong(f"it ended with {status} without a reason: {said}")
        if status < 0 and status not in MAY_DIE_OF:
            raise Wrong(f"it died of {status}: {said}")
        self.killed |= status < 0 or self.trouble in ("memory", "descriptors", "call")

    def check_kept(self, said: str) -> None:
        """What could not be written home is kept, if that is what it says."""
        if named := KEPT.search(said):
            self.count("kept")
            kept = Path(named[1])
            if not named[2] and self.face != "agent":
                self.check(self.work, kept, "what was kept")
            shutil.rmtree(kept)

    # ---- calls ----

    def call(self, opening: Opening, script: Script) -> tuple[int, str]:
        self.trouble = ""
        if self.rng.random() < 0.5:
            kinds = ["kill", "kill", "inside", "descriptors", "files"]
            kinds += [] if self.parses_json() else ["memory"]
            kinds += ["disk"] if self.place.own_disk else []
            kinds += ["cut"] * 3 if self.endpoint else []
            kinds += ["call", "call"] if self.face == "run" and not self.endpoint else []
            self.trouble = self.rng.choice(kinds)
            self.count(f"trouble {self.trouble}")
            self.was_cut |= self.trouble == "cut"
            self.unkept |= self.trouble not in ("kill", "cut")
            self.tell(f"trouble: {self.trouble}")
        return {"run": self.call_run, "agent": self.call_agent,
                "shell": self.call_shell}[self.face](opening, script)

    def call_run(self, opening: Opening, script: Script) -> tuple[int, str]:
        # One that is linked as usual, so that a call of it can be made to fail.
        program = BUILD / ("pinfold-dynamic" if self.trouble == "call" else "pinfold")
        fault = self.some_failing_call() if self.trouble == "call" else {}
        words = [str(program), "run", *words_of(opening), "--", script.text]
        return self.perform(words, fault)

    def call_agent(self, opening: Opening, script: Script) -> tuple[int, str]:
        turns: list[Any] = [{"reply": [{"tool": "execute", "input": {"command": script.text}}]},
                            {"reply": "Done."}]
        model = self.place.top / "model.json"
        model.write_text(json.dumps({"turns": turns}))
        words = [str(BUILD / "pinfold"), "agent", "--model", f"scripted:{model}", "--yes", "--all",
                 *words_of(opening), "change something"]
        return self.perform(words, {})

    def perform(self, words: list[str], env: dict[str, str]) -> tuple[int, str]:
        with self.beforehand():
            child = subprocess.Popen(words, env=self.place.env | env, cwd=self.place.top, text=True,
                                     errors="replace", preexec_fn=self.lower_limits(),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            self.owners.append(child.pid)
            with self.meanwhile(child.pid):
                try:
                    out, err = child.communicate(timeout=PATIENCE)
                except subprocess.TimeoutExpired as error:
                    raise Hangs(f"it does not end; {self.place.all_processes()}") from error
        return child.returncode, err + out

    def call_shell(self, opening: Opening, script: Script) -> tuple[int, str]:
        terminal = Terminal()
        words = [BUILD / "pinfold", "shell", *words_of(opening)]
        with self.beforehand(), contextlib.closing(terminal):
            child = terminal.start(*words, env={**self.place.env, "TERM": "xterm", "PS1": "$ "},
                                   cwd=self.place.top)
            self.owners.append(child.pid)
            with self.meanwhile(child.pid):
                status = 0
                for line in ["true", *script.lines]:
                    status = status or self.type(terminal, line)
                with contextlib.suppress(OSError):
                    terminal.type(f"exit {status}\r")
                return terminal.wait(PATIENCE), terminal.seen.decode(errors="replace")

    @staticmethod
    def type(terminal: Terminal, line: str) -> int:
        """Returns the status of a line, or 1 when nobody is there any more to tell it."""
        terminal.type(f"{line}\recho \"END\"OF:$?:\r")
        for _ in range(PATIENCE * 20):
            if found := re.search(rb"ENDOF:(\d+):", terminal.seen):
                terminal.seen = terminal.seen[found.end():]
                return int(found[1])
            if terminal.child.poll() is not None:
                return 1
            terminal.read(0.05)
        raise Hangs(f"the shell does not answer: {terminal.seen[-2000:]!r}")

    # ---- trouble ----

    @contextlib.contextmanager
    def beforehand(self) -> Iterator[None]:
        if self.trouble == "disk":
            with adversity.full_disk(self.rng, self.place):
                yield
        elif self.trouble == "cut":
            with adversity.cut_connections(self.rng, self.backend, self.endpoint):
                yield
        else:
            yield

    @contextlib.contextmanager
    def meanwhile(self, pid: int) -> Iterator[None]:
        victim: Callable[[], int | None] = lambda: pid
        if self.trouble == "inside":
            victim = adversity.someone_inside(self.rng, self.place, pid,
                                              self.backend == "local",
                                              lambda name: self.count(f"killed {name}"))
        if self.trouble in ("kill", "inside"):
            with adversity.killing(self.rng, victim, self.tell, slack=400):
                yield
        else:
            yield

    def lower_limits(self) -> Callable[[], None]:
        """In the child, before it becomes the command."""
        what = {"descriptors": (resource.RLIMIT_NOFILE, self.rng.randint(3, 40)),
                # with less the kernel cannot even execute it, which is SIGSEGV
                "memory": (resource.RLIMIT_DATA, int(2 ** self.rng.uniform(18.7, 24))),
                "files": (resource.RLIMIT_FSIZE, self.rng.choice([0, 10, 1000, 50_000]))
                }.get(self.trouble)

        def lower() -> None:
            if what:
                resource.setrlimit(what[0], (what[1], resource.getrlimit(what[0])[1]))
        return lower
