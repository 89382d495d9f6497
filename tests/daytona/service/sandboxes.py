# SPDX-License-Identifier: Apache-2.0
"""One sandbox: its state, its directory, and every process that was started in it."""

import os
import shutil
import threading
import time
import uuid
from pathlib import Path

from .errors import ApiError, js_time
from .programs import Program, Programs

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What a state becomes by itself, after so many looks at it as the setting says.
NEXT = {"creating": ("started", "create_polls"), "pending_build": ("started", "create_polls"),
        "starting": ("started", "start_polls"), "stopping": ("stopped", "stop_polls"),
        "destroying": ("destroyed", "delete_polls"), "archiving": ("archived", "stop_polls")}
INTERVALS = {"autoStopInterval": 15, "autoArchiveInterval": 10080, "autoDeleteInterval": -1}
RUNNING = ("started", "creating", "starting")
STARTABLE = ("stopped", "archived", "archiving", "paused")


class Sandbox:
    def __init__(self, root: Path, body: dict, config: dict, programs: Programs) -> None:
        self.id = str(uuid.uuid4())
        self.name = body.get("name") or self.id
        self.body = body
        self.labels = dict(body.get("labels") or {})
        given = {name: body[name] for name in INTERVALS if body.get(name) is not None}
        self.intervals = INTERVALS | given
        self.config = config
        self.programs = programs
        self.lock = threading.RLock()
        self.state = "pending_build" if "buildInfo" in body else "creating"
        self.desired = "started"
        self.reason: str | None = None
        self.looks = 0  # at this state
        self.daemon_died = False
        self.created = self.updated = self.active = time.time()
        self.touched = time.monotonic()
        self.in_flight = 0
        self.running: set[Program] = set()
        self.sessions: dict = {}
        self.complaints: list[str] = []  # of the request that is being answered
        self.place = root / self.id
        self.home = self.place / "home" / "daytona"
        self.home.mkdir(parents=True)
        (self.place / "tmp").mkdir()

    def environment(self, more: dict | None = None) -> dict[str, str]:
        """What the sandbox's shells have; it is no secret that they run on this machine."""
        return {"PATH": PATH, "HOME": str(self.home), "USER": "daytona", "LANG": "C.UTF-8",
                "SHELL": self.config["shell"], "TERM": "xterm", "TMPDIR": str(self.place / "tmp"),
                **(self.body.get("env") or {}), **(more or {})}

    def set_state(self, state: str, desired: str | None = None, reason: str | None = None) -> None:
        with self.lock:
            self.state, self.looks, self.reason = state, 0, reason
            self.desired = desired or self.desired
            self.updated = time.time()
            self.touched = time.monotonic()
            if state == "started":
                self.daemon_died = False
        if state not in RUNNING:
            self.end_programs()

    def look(self) -> str:
        """The state; a look may be the one that finds it changed."""
        with self.lock:
            after = NEXT.get(self.state)
            if after:
                polls = self.config[after[1]]
                if polls is not None and self.looks >= polls:
                    self._become(after[0])
                else:
                    self.looks += 1
            return self.state

    def _become(self, state: str) -> None:
        if state == "started" and self.config["create_state"] and self.desired == "started":
            state = self.config["create_state"]
        if state == "stopped" and self.intervals["autoDeleteInterval"] == 0:
            state = "destroyed"
        reason = self.config["create_reason"] if state in ("error", "build_failed") else None
        self.set_state(state, reason=reason)
        if state == "destroyed":
            self.remove()

    def touch(self) -> None:
        self.touched, self.active = time.monotonic(), time.time()

    def auto_stop(self, minute: float) -> None:
        """What its interval says, once it was idle for so long."""
        after = self.intervals["autoStopInterval"] * minute
        with self.lock:
            idle = self.state == "started" and not self.in_flight and after > 0
            if idle and time.monotonic() - self.touched >= after:
                self.set_state("stopped", "stopped")
                if self.intervals["autoDeleteInterval"] == 0:
                    self._become("destroyed")

    def start(self) -> None:
        with self.lock:
            if self.state in ("started", "starting"):
                return
            if self.state in ("error", "build_failed"):
                raise ApiError(400, "Sandbox is in an errored state")
            if self.state not in STARTABLE:
                raise ApiError(409, "Sandbox state change in progress")
            self.set_state("starting", "started")

    def stop(self) -> None:
        with self.lock:
            if self.state in ("stopped", "stopping"):
                return
            if self.state != "started":
                raise ApiError(409 if self.state in NEXT else 400, "Sandbox is not started")
            self.set_state("stopping", "stopped")

    def start_program(self, argv: list[str], cwd: str, env: dict[str, str],
                      fds: tuple[int, int, int]) -> Program | None:
        """None: the sandbox ended meanwhile."""
        with self.lock:
            if self.state not in RUNNING or self.daemon_died:
                return None
            program = self.programs.start(argv, cwd, env, fds)
            self.running = {one for one in self.running if not one.gone.is_set()} | {program}
            return program

    def end_programs(self) -> None:
        with self.lock:
            programs, self.running = self.running, set()
        self.lose_sessions()
        for program in programs:
            program.kill()

    def lose_sessions(self) -> None:
        with self.lock:
            sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.end()

    def die(self) -> None:
        """The daemon is gone with all that it ran, and the control plane has not noticed."""
        with self.lock:
            self.daemon_died = True
        self.end_programs()

    def remove(self) -> None:
        self.end_programs()
        remove_tree(self.place)

    def shown(self, base: str, listed: bool) -> dict:
        """The sandbox object; the one of a list lacks three members."""
        body = self.body
        built = body.get("buildInfo")
        if built:
            built = {**built, "createdAt": js_time(self.created), "snapshotRef": "daytona-fake",
                     "updatedAt": js_time(self.created)}
        shown = {
            "id": self.id, "organizationId": self.config["organization"], "name": self.name,
            **({} if built else {"snapshot": body.get("snapshot", "daytonaio/sandbox:fake")}),
            "user": body.get("user", "daytona"),
            **({} if listed else {"env": body.get("env") or {}}),
            "labels": self.labels, "public": body.get("public", False),
            "networkBlockAll": body.get("networkBlockAll", False),
            **{name: body[name] for name in ("networkAllowList", "domainAllowList")
               if name in body},
            "target": body.get("target", "us"), "cpu": body.get("cpu", 1),
            "gpu": body.get("gpu", 0), "memory": body.get("memory", 1),
            "disk": body.get("disk", 3), "kvm": body.get("kvm", False), "state": self.state,
            "desiredState": self.desired,
            **({"errorReason": self.reason} if self.reason else {}), **self.intervals,
            **({} if listed else {"volumes": body.get("volumes", [])}),
            **({"buildInfo": built} if built and not listed else {}),
            "createdAt": js_time(self.created), "updatedAt": js_time(self.updated),
            "lastActivityAt": js_time(self.active), "sandboxClass": "container",
            "daemonVersion": self.config["daemon_version"], "runnerId": "runner-fake"}
        if self.config["toolbox_url"] == "object":
            shown["toolboxProxyUrl"] = base + "/toolbox"
        return {name: value for name, value in shown.items()
                if name not in self.config["leave_out"]}


def remove_tree(place: Path) -> None:
    """A request that is being answered may still make a file in it."""
    until = time.monotonic() + 10
    while place.exists():
        try:
            shutil.rmtree(place, onerror=open_up)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def open_up(remove, path: str, _) -> None:
    """A directory that its owner may not write is no reason to leave it behind."""
    if not os.path.lexists(path):
        return
    os.chmod(os.path.dirname(path), 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path, onerror=open_up)
    else:
        remove(path)
