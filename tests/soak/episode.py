# SPDX-License-Identifier: Apache-2.0
"""A story of a workspace by one face on one backend: a user's files, a few lives of an owner, what
goes wrong in them, and after each step the question whether all is as the oracle says."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterator

import adversity
import commands
import oracle
from faces import Died, Failed, Mcp, Opening, Owner
from oracle import Effect, File, Tree
from place import SOON, Place, Service

LASTING = ["library", "python", "mcp", "http"]
TEMPORARY = re.compile(r"\.pinfold-[0-9a-f]{16}\.tmp")

class Wrong(AssertionError):
    """Something is not as it must be."""


def torn(effects: list[Effect]) -> list[Effect]:
    """Of a seeding that was killed: until it is done nobody else sees the workspace."""
    return [(path, [*(oracle.Torn(one.data) for one in states if isinstance(one, File)), *states])
            for path, states in effects]


class Episode:
    """What faces of all kinds have in common."""

    def __init__(self, place: Place, name: str, face: str, backend: str,
                 service: Service | None, counts: Counter[str]) -> None:
        self.place, self.name, self.face, self.backend = place, name, face, backend
        self.service, self.counts = service, counts
        self.endpoint = service.endpoint if service else ""
        self.rng = random.Random(name)
        self.begun, self.story = time.monotonic(), list[str]()
        self.home_dir, self.dest_dir = place.disk / "home", place.disk / "dest"
        self.home, self.dest, self.work = Tree(), Tree(), Tree()
        self.killed = False  # somebody could not clean up
        self.unkept = False  # nor perhaps its keeper
        self.owners: list[int] = []

    def tell(self, text: str) -> None:
        self.story.append(f"{time.monotonic() - self.begun:8.3f} {text}")

    def count(self, what: str) -> None:
        self.counts[f"{self.face}/{self.backend}: {what}"] += 1

    # ---- the user's side ----

    def make_home(self) -> None:
        goes_home = self.rng.random() < 0.5
        states = commands.some_files(self.rng, goes_home)
        for path, state in states.items():
            at = self.home_dir / path
            at.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(state, File):
                at.write_bytes(state.data)
                at.chmod(0o755 if state.executable else 0o644)
            else:
                assert isinstance(state, oracle.Link)
                at.symlink_to(state.target)
        self.home_dir.mkdir(exist_ok=True)
        self.home = Tree(states)
        if goes_home:
            self.dest_dir, self.dest = self.home_dir, self.home
        self.dest_dir.mkdir(exist_ok=True)
        self.tell(f"{self.face} on {self.backend}; home: {states}; results go to "
                  f"{'it' if goes_home else 'another directory'}")

    def seeding(self) -> list[Effect]:
        now = oracle.seeded({path: self.home.now(path) for path in self.home.states})
        return [(path, [state]) for path, state in now.items()]

    def check_home(self) -> None:
        """Nothing of the user's is lost or damaged, whatever has happened."""
        self.check(self.home, self.home_dir, "home")
        if self.dest is not self.home:
            self.check(self.dest, self.dest_dir, "results")

    def check(self, tree: Tree, top: Path, what: str) -> None:
        self.drop_temporary(top)
        if wrong := tree.check(oracle.look(top) if top.exists() else {}):
            raise Wrong(f"{what}: {'; '.join(wrong)}")

    def drop_temporary(self, top: Path) -> None:
        """A file that replaces another has a temporary name between two system calls, and keeps it
        when its owner is killed in just that moment (docs/decisions.md)."""
        for path in top.rglob(".pinfold-*.tmp") if self.killed else ():
            if TEMPORARY.fullmatch(path.name):
                path.unlink()
                self.count("temporary names of the killed")

    def check_nothing_is_left(self) -> None:
        walls = self.backend in ("isolated", "overlay")
        sweeps = "isolated" if walls else "local"
        self.place.check_nothing_is_left(self.owners, sweeps if self.unkept else "")

    def some_failing_call(self) -> dict[str, str]:
        """The environment that has a call of the C library fail (tests/fault/failcalls.c)."""
        kind = "system" if self.parses_json() else self.rng.choice(["memory", "system"])
        fault = {"LD_PRELOAD": str(self.place.failcalls), "FAULT_KIND": kind,
                 "FAULT_AT": str(int(10 ** self.rng.uniform(0, 4.3))),
                 "FAULT_ERRNO": str(self.rng.choice([5, 12, 24, 28])),
                 "FAULT_COUNT": str(self.place.top / "count")}
        self.tell(f"one call fails: {fault}")
        self.count(f"trouble {kind} call")
        return fault

    def parses_json(self) -> bool:
        """Then memory is left alone: libjansson 2.14 writes past the end of a token for which it
        could not get any (docs/decisions.md), and whatever comes of that is no fault to find."""
        return bool(self.endpoint) or self.face in ("mcp", "http", "agent")

    def check_service(self) -> None:
        """What is left there, and whether it had to complain."""
        if not self.endpoint:
            return
        tidy = not self.killed and not self.was_cut
        if self.backend == "daytona":
            live = [one["id"] for one in adversity.control(self.endpoint, "sandboxes")]
            wrong = [one for one in adversity.control(self.endpoint, "complaints")
                     if tidy or not one["complaint"].endswith(HALF_A_REQUEST)]
        else:
            live = [one["sessionId"] for one in adversity.control(self.endpoint, "sessions")
                    if one["status"] == "READY"]
            wrong = []
        adversity.control(self.endpoint, "reset", {})
        if not tidy:
            self.forget_requests()
        if wrong or (live and tidy):
            raise Wrong(f"the service has {live} left, and complains of {wrong}")

    was_cut = False

    def forget_requests(self) -> None:
        """What the service still does for one that was killed must not be there for the next."""
        deadline = time.monotonic() + SOON
        while self.service_works():
            if time.monotonic() > deadline:
                raise Wrong("the service goes on with requests of the killed")
            time.sleep(0.005)
        adversity.control(self.endpoint, "reset", {})

    def settle(self) -> None:
        """Wait until no command writes any more: of a call that failed it may go on for a while."""
        deadline = time.monotonic() + SOON
        before: dict[int, list[str]] | None = None
        while time.monotonic() < deadline:
            calm = self.place.calm(self.service)
            if self.service_works():
                calm = None
            if calm is not None and calm == before:
                return
            before = calm
            time.sleep(0.005)
        raise Wrong(f"commands go on: {self.place.all_processes()}")

    def service_works(self) -> bool:
        """What it was asked for may have no process yet."""
        return bool(self.endpoint and adversity.control(self.endpoint, "working"))


class Lasting(Episode):
    """A face with a sandbox that lasts over many operations."""

    owner: Owner | Mcp | None = None
    root: Path | None = None
    is_open = False

    def run(self) -> None:
        self.make_home()
        lives = self.rng.randint(1, 4)
        if self.backend == "local" or (self.backend == "isolated" and self.rng.random() < 0.6):
            self.root = self.place.disk / "work"
        for life in range(lives):
            self.live(seeds=life == 0)
        if self.owner:
            self.end_owner(whole=False)
        self.check_nothing_is_left()
        self.check_home()
        self.check_service()

    @property
    def own_id(self) -> str:
        return "soak-" + self.name.replace("/", "-")

    # ---- a life of a sandbox ----

    def live(self, seeds: bool) -> None:
        self.spoiled = False  # something happened to it that it need not survive
        if not self.owner:
            self.start_owner()
        if not self.open(seeds or not self.root or self.rng.random() < 0.3):
            return
        with contextlib.suppress(Died):
            for _ in range(self.rng.randint(2, 14)):
                self.step()
            self.flush_and_close()
        self.after_death()

    def start_owner(self) -> None:
        if self.face in ("mcp", "http"):
            self.owner = Mcp(self.place, self.face, self.rng)
            return
        self.preloaded = self.face == "library" and self.rng.random() < 0.3
        self.unkept |= self.preloaded  # the call that fails may be the one that starts a keeper
        preload = self.some_failing_call() if self.preloaded else {}
        self.owner = Owner(self.place, self.face, preload)
        self.owners.append(self.owner.pid)
        self.closed_with: int | None = None
        if self.preloaded:
            self.owner.wait_until_it_listens()
        else:
            self.owner.descriptors()

    def open(self, seeds: bool) -> bool:
        """Returns whether there is a sandbox now."""
        opening = Opening(self.backend, self.root, self.home_dir if seeds else None,
                          self.dest_dir, self.endpoint, self.own_id)
        before = self.work if self.root else Tree()
        effects = self.seeding() if seeds else []
        self.work = before
        self.tell(f"open, {'seeded' if seeds else 'without a seed'}, root {self.root}")
        assert self.owner
        try:
            with self.trouble(0.2, opening=True):
                self.owner.open(opening)
        except Failed as error:
            self.failed("open", error)
            self.work.tried(effects)
            self.after_failed_open()
            return False
        except Died as error:
            self.died("open", error)
            self.work.tried(torn(effects))
            self.after_death()
            return False
        finally:
            if isinstance(self.owner, Mcp) and self.owner.client:
                self.owners.append(self.owner.pid)
        self.work.done(effects)
        self.count("opened")
        self.is_open = True
        return True

    def after_failed_open(self) -> None:
        self.killed = True
        if isinstance(self.owner, Mcp):
            self.end_owner(whole=False)
        self.look()
        self.check_home()

    def flush_and_close(self) -> None:
        if self.rng.random() < 0.7:
            self.flush()
        self.look()
        self.tell("close")
        self.is_open = False
        assert self.owner
        if isinstance(self.owner, Mcp):
            self.end_server(self.owner.pid)
            return
        try:
            self.may_fail(self.owner.close)
        except Failed:
            self.killed = True
        if not self.preloaded:
            self.count_descriptors()

    def end_server(self, pid: int) -> None:
        """Its results come home now, unless it is killed meanwhile."""
        if self.rng.random() < 0.8:
            self.end_owner(whole=not self.spoiled and not self.hurt)
            return
        self.count("trouble kill")
        self.tell("trouble: kill")
        self.hurt = True
        with adversity.killing(self.rng, lambda: pid, self.tell):
            self.end_owner(whole=False)

    def count_descriptors(self) -> None:
        assert self.owner
        now = self.owner.descriptors()
        if self.closed_with is None:
            self.closed_with = now
        elif now != self.closed_with:
            raise Wrong(f"{now} descriptors are open, {self.closed_with} were after the first life")

    def end_owner(self, whole: bool) -> None:
        """whole: all that is to come home at the end of a server must have come. A sandbox that is
        lost cannot give it any more, which the server then says."""
        assert self.owner
        if isinstance(self.owner, Mcp) and self.owner.client:
            oracle.flushed(self.work, self.dest, whole)
        status = self.owner.end()
        self.owner = None
        self.tell(f"the owner ended with {status}")
        could_not = self.spoiled and status == GONE_WRONG
        if status and not could_not and \
                not (self.hurt and (status > 0 or status in MAY_DIE_OF)):
            raise Wrong(f"the owner ended with {status}: {self.said()}")
        self.killed |= status != 0
        self.hurt = False
        self.check_home()

    def after_death(self) -> None:
        """When the owner is gone nothing goes on, and a workspace of the user's own is there."""
        if self.owner and self.dead:
            status = self.owner.end()
            self.tell(f"the owner had ended with {status}")
            if status not in (0, 3, *MAY_DIE_OF) and not (self.hurt and 0 < status < 128):
                raise Wrong(f"the owner died of {status}: {self.said()}")
            if isinstance(self.owner, Mcp):  # it may have come to its last flush
                oracle.flushed(self.work, self.dest, whole=False)
            self.owner, self.dead, self.killed, self.hurt = None, False, True, False
            self.is_open = False
            self.place.wait_until_alone()
        if not self.owner and not self.root:
            self.work = Tree()
        if not self.owner:
            self.look()
            self.check_home()

    def said(self) -> str:
        path = self.place.top / "owner.stderr"
        return path.read_text(errors="replace")[-2000:] if path.exists() else ""

    # ---- what goes wrong ----

    dead = hurt = was_trouble = shaken = False
    preloaded = False

    @contextlib.contextmanager
    def trouble(self, chance: float, opening: bool = False) -> Iterator[None]:
        """Perhaps some, until the end of what is done meanwhile."""
        self.was_trouble = False
        if self.rng.random() >= chance:
            yield
            return
        assert self.owner
        kinds = ["disk"] if self.place.own_disk else []
        if self.endpoint:
            kinds += ["cut"] * 3
        if not opening or isinstance(self.owner, Owner):
            kinds += ["kill", "inside", "inside", "descriptors", "files"]
            kinds += [] if self.parses_json() else ["memory"]
        if not kinds:
            yield
            return
        kind = self.rng.choice(kinds)
        self.tell(f"trouble: {kind}")
        self.count(f"trouble {kind}")
        self.was_cut |= kind == "cut"
        self.was_trouble = True
        try:
            with self.make_trouble(kind):
                yield
        finally:
            # One that is killed has a keeper; one that is out of something need not get any.
            self.unkept |= kind in ("descriptors", "memory", "files", "disk")
            if kind in ("kill", "memory", "files"):
                self.hurt = True
            self.spoiled |= kind == "cut"

    def make_trouble(self, kind: str) -> contextlib.AbstractContextManager[None]:
        assert self.owner
        pid = self.owner.pid if isinstance(self.owner, Owner) or self.owner.client else 0
        if kind == "kill":
            return adversity.killing(self.rng, lambda: pid, self.tell)
        if kind == "inside":
            someone = adversity.someone_inside(self.rng, self.place, pid,
                                               self.backend == "local", self.hit)
            return adversity.killing(self.rng, someone, self.tell)
        if kind == "descriptors":
            return adversity.few_descriptors(self.rng, pid)
        if kind == "memory":
            return adversity.little_memory(self.rng, pid)
        if kind == "files":
            return adversity.small_files(self.rng, pid)
        if kind == "disk":
            return adversity.full_disk(self.rng, self.place)
        return adversity.cut_connections(self.rng, self.backend, self.endpoint)

    def hit(self, name: str) -> None:
        """Supervisors are replaced, nobody misses a keeper; without its first process a sandbox is
        at its end."""
        self.count(f"killed {name}")
        self.unkept |= name in ("unnamed", "pinfold-keeper")
        self.spoiled |= name not in ("command", "pinfold-super", "pinfold-keeper")
        self.shaken |= name in ("unnamed", "pinfold-super")

    def is_excused(self, code: int, in_trouble: bool) -> bool:
        """Whether a command may end like that. A supervisor may get its next one before it dies."""
        excused = in_trouble or self.spoiled or self.preloaded
        excused |= self.shaken and code == KILLED
        self.shaken &= in_trouble
        return excused

    def failed(self, what: str, error: Failed) -> None:
        self.tell(f"{what} failed: {error}")
        self.count("failures")
        excused = self.was_trouble or self.spoiled or self.preloaded
        # What has no tool of its own is a command all the same (faces.py).
        if not excused and not (self.shaken and str(error).endswith(f": {KILLED}")):
            raise Wrong(f"{what} failed without a reason: {error}")

    def died(self, what: str, error: Died) -> None:
        self.tell(f"{what}: the owner has died: {error}")
        self.count("deaths")
        self.dead = True
        if not (self.hurt or self.preloaded):
            raise Wrong(f"the owner died in {what} without a reason: {error}: {self.said()}")

    def may_fail(self, action: Callable[..., Any], *args: Any) -> Any:
        """Perform it, perhaps in trouble."""
        try:
            with self.trouble(0.2):
                return action(*args)
        except Failed as error:
            self.failed(action.__name__, error)
            raise
        except Died as error:
            self.died(action.__name__, error)
            raise

    # ---- steps ----

    def step(self) -> None:
        steps: list[Callable[[], bool]] = [self.write, self.write, self.read, self.delete,
                                           self.move, self.command, self.command, self.command,
                                           self.flush, self.users_own]
        step = self.rng.choice(steps)
        if not step():
            self.settle()
            self.look()

    def act(self, effects: list[Effect], action: Callable[..., Any], *args: Any) -> bool:
        """Returns whether it was reported to be done."""
        self.tell(f"{action.__name__} {args!r}"[:600])
        self.count("operations")
        try:
            self.may_fail(action, *args)
        except (Failed, Died) as error:
            self.work.tried(effects)
            if isinstance(error, Died):
                raise
            return False
        self.work.done(effects)
        return True

    def write(self) -> bool:
        path = self.rng.choice(commands.NAMES)
        if not self.work.is_sure(path):
            return True
        size = self.rng.choice([*commands.SIZES, commands.BIG])
        data = commands.some_bytes(self.rng, size)
        old = self.work.now(path)
        new = File(data, isinstance(old, File) and old.executable)
        assert self.owner
        return self.act([(path, [new])], self.owner.write, path, data)

    def read(self) -> bool:
        path = self.some_file()
        if not path:
            return True
        self.tell(f"read {path!r}")
        self.count("operations")
        assert self.owner
        try:
            data = self.may_fail(self.owner.read, path)
        except Failed:
            return False
        want = self.work.now(path)
        assert isinstance(want, File)
        if data != want.data:
            raise Wrong(f"{path!r} was read as {File(data)}, and is {want}")
        return True

    def delete(self) -> bool:
        path = self.some_file()
        assert self.owner
        return not path or self.act([(path, [None])], self.owner.delete, path)

    def move(self) -> bool:
        source, dest = self.some_file(), self.rng.choice(commands.NAMES)
        if not source or source == dest or not self.work.is_sure(dest):
            return True
        what = self.work.now(source)
        assert self.owner
        self.tell(f"move {source!r} {dest!r}")
        self.count("operations")
        try:
            self.may_fail(self.owner.move, source, dest)
        except (Failed, Died) as error:
            self.work.tried_move(source, dest)
            if isinstance(error, Died):
                raise
            return False
        self.work.done([(dest, [what]), (source, [None])])
        return True

    def command(self) -> bool:
        script = commands.some_script(self.rng, self.work)
        self.tell(f"run {script.text!r}"[:2000])
        self.count("operations")
        assert self.owner
        try:
            code, _ = self.may_fail(self.owner.run, script.text)
        except (Failed, Died) as error:
            self.work.tried(script.effects)
            if isinstance(error, Died):
                raise
            return False
        is_excused = self.is_excused(code, self.was_trouble)
        if code:
            self.tell(f"it ended with {code}")
            self.work.tried(script.effects)
            if not is_excused:
                raise Wrong(f"a command ended with {code} without a reason")
            return False
        self.work.done(script.effects)
        return True

    def flush(self) -> bool:
        self.tell("flush")
        self.count("flushes")
        assert self.owner
        whole = False
        try:
            self.may_fail(self.owner.flush)
            whole = True
        except (Failed, Died) as error:
            if isinstance(error, Died):
                raise
        finally:
            oracle.flushed(self.work, self.dest, whole)
        self.check_home()
        return whole

    def users_own(self) -> bool:
        """The user goes on working at home; nobody may touch what is new."""
        if self.backend != "overlay":
            path = f"src/own-{self.rng.randrange(10)}"
            if path not in self.work.states:
                state = File(commands.some_bytes(self.rng))
                (self.home_dir / path).parent.mkdir(parents=True, exist_ok=True)
                (self.home_dir / path).write_bytes(state.data)
                (self.home_dir / path).chmod(0o644)
                self.home.done([(path, [state])])
        return True

    def some_file(self) -> str | None:
        found = [path for path in self.work.sure_files() if path in commands.NAMES]
        return self.rng.choice(found) if found else None

    # ---- looking ----

    def look(self) -> None:
        """Whether the workspace is as it must be."""
        if self.root:
            self.check(self.work, self.root, "the workspace")
        elif self.owner and self.is_open:
            self.look_inside()

    def look_inside(self) -> None:
        assert self.owner
        try:
            code, packed = self.owner.run(oracle.LOOK)
        except Failed as error:
            self.failed("look", error)
            return
        except Died as error:
            self.died("look", error)
            raise
        is_excused = self.is_excused(code, False)
        if code == 0:
            found = oracle.look_at_tar(oracle.unpack(packed))
            if wrong := self.work.check(found):
                raise Wrong("the workspace: " + "; ".join(wrong))
        elif not is_excused:
            raise Wrong(f"looking ended with {code}")


# Of who was killed, or was told that no more of it is wanted.
HALF_A_REQUEST = "the connection ended inside a request"
GONE_WRONG = 125  # of our commands
KILLED = 128 + signal.SIGKILL
# What an owner whose limits were lowered, or who was killed, may die of.
MAY_DIE_OF = (-signal.SIGKILL, -signal.SIGXFSZ)


def describe(episode: Episode, error: BaseException) -> str:
    """All that there is to know about a failure."""
    lines = episode.story[-200:]
    lines.append(f"here: {episode.place.all_waits()}")
    if episode.service:
        lines.append(f"there: {episode.place.all_waits(episode.service.pid)}")
    return json.dumps({"episode": episode.name, "face": episode.face, "backend": episode.backend,
                       "error": f"{type(error).__name__}: {error}"[:6000], "story": lines})
