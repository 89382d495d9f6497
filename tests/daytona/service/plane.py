# SPDX-License-Identifier: Apache-2.0
"""The control plane: what is asked about sandboxes from outside of them."""

import base64
import json
import threading
import time
from pathlib import Path

from .errors import ApiError, api_reply, empty, version
from .programs import Programs
from .sandboxes import NEXT, Sandbox, remove_tree
from .web import Reply, Request

RESOURCES = ("cpu", "memory", "disk", "gpu", "gpuType")


class Plane:
    def __init__(self, root: Path, config: dict) -> None:
        self.root = root
        self.config = config
        self.programs = Programs()
        self.lock = threading.Lock()
        self.sandboxes: dict[str, Sandbox] = {}
        self.stale: list[tuple[float, Sandbox]] = []  # destroyed, and in lists for a while yet
        self.closing = threading.Event()
        self.reaper = threading.Thread(target=self._reap, daemon=True)
        self.reaper.start()

    def _reap(self) -> None:
        while not self.closing.wait(0.05):
            for sandbox in self.all():
                sandbox.auto_stop(self.config["minute"])

    def all(self) -> list[Sandbox]:
        with self.lock:
            gone = [one for one in self.sandboxes.values() if one.state == "destroyed"]
            for one in gone:
                del self.sandboxes[one.id]
                self.stale.append((time.monotonic(), one))
            return list(self.sandboxes.values())

    def end_all(self) -> None:
        for sandbox in self.all():
            sandbox.set_state("destroyed")
            sandbox.remove()
        self.all()
        self.stale.clear()

    def close(self) -> None:
        self.closing.set()
        self.reaper.join()
        self.end_all()
        self.programs.close()
        remove_tree(self.root)

    def find(self, name: str) -> Sandbox:
        for sandbox in self.all():
            if name in (sandbox.id, sandbox.name):
                sandbox.look()
                if sandbox.state != "destroyed":
                    return sandbox
        raise ApiError(404, f"Sandbox with ID or name {name} not found")

    # The operations: of a request, the base URL, and the sandbox that the path names.

    def create(self, request: Request, base: str, _: str) -> Reply:
        body = request.json()
        if "buildInfo" in body and "snapshot" in body:
            raise ApiError(400, "Cannot specify both a snapshot and build information")
        if "buildInfo" not in body and any(name in body for name in RESOURCES):
            raise ApiError(400, "Cannot specify Sandbox resources when using a snapshot")
        if body.get("snapshot", "") in self.config["missing_snapshots"]:
            raise ApiError(400, f"Snapshot {body['snapshot']} not found. Did you add it through "
                                "the Daytona Dashboard?")
        living = self.all()
        if len(living) >= self.config["sandbox_limit"]:
            raise ApiError(400, "Total CPU limit exceeded. Maximum allowed: "
                                f"{self.config['sandbox_limit']}.")
        if body.get("name") in [one.name for one in living]:
            raise ApiError(409, f"Sandbox with name {body['name']} already exists")
        sandbox = Sandbox(self.root, body, self.config, self.programs)
        with self.lock:
            self.sandboxes[sandbox.id] = sandbox
        if self.config["create_waits"] and "buildInfo" not in body:
            self._wait_for_start(sandbox)
        return api_reply(sandbox.shown(base, False))

    def _wait_for_start(self, sandbox: Sandbox) -> None:
        """From a snapshot the service itself waits before it answers, but not for ever."""
        until = time.monotonic() + self.config["create_waits"]
        while sandbox.look() in NEXT and time.monotonic() < until:
            time.sleep(0.01)
        if sandbox.state in ("error", "build_failed"):
            raise ApiError(400, f"Sandbox failed to start: {sandbox.reason}")

    def get(self, _: Request, base: str, name: str) -> Reply:
        return api_reply(self.find(name).shown(base, False))

    def _matching(self, request: Request) -> list[Sandbox]:
        living, now = self.all(), time.monotonic()
        lag = self.config["list_lag"]
        self.stale = [(when, one) for when, one in self.stale if now - when < lag]
        found = [one for one in living if time.time() - one.created >= lag]
        found += [one for _, one in self.stale]
        labels = json.loads(request.first("labels") or "{}")
        states = [value for key, value in request.query if key == "states"]
        found = [one for one in found if labels.items() <= one.labels.items()
                 and (not states or one.state in states)
                 and one.id.startswith(request.first("id") or "")
                 and one.name.startswith(request.first("name") or "")]
        found.sort(key=lambda one: (one.created, one.id),
                   reverse=(request.first("order") or "desc").lower() == "desc")
        return found

    def list(self, request: Request, base: str, _: str) -> Reply:
        found = self._matching(request)
        if self.config["bare_list"] or version(self.config["api_version"]) < (0, 180):
            return api_reply([one.shown(base, False) for one in found])
        first, limit = 0, int(request.first("limit") or 100)
        if not 1 <= limit <= 200:
            raise ApiError(400, "limit must not be less than 1, limit must not be greater than 200")
        if cursor := request.first("cursor"):
            try:
                first = int(base64.b64decode(cursor, validate=True))
            except ValueError:
                raise ApiError(400, "Invalid cursor") from None
        last = first + limit
        more = base64.b64encode(b"%d" % last).decode() if len(found) > last else None
        return api_reply({"items": [one.shown(base, True) for one in found[first:last]],
                          "nextCursor": more})

    def paginated(self, request: Request, base: str, _: str) -> Reply:
        found = self._matching(request)
        page, limit = int(request.first("page") or 1), int(request.first("limit") or 100)
        some = found[(page - 1) * limit:page * limit]
        return api_reply({"items": [one.shown(base, False) for one in some], "total": len(found),
                          "page": page, "totalPages": -(-len(found) // limit)})

    def start(self, _: Request, base: str, name: str) -> Reply:
        sandbox = self.find(name)
        sandbox.start()
        return api_reply(sandbox.shown(base, False))

    def stop(self, _: Request, base: str, name: str) -> Reply:
        sandbox = self.find(name)
        sandbox.stop()
        return api_reply(sandbox.shown(base, False))

    def delete(self, _: Request, base: str, name: str) -> Reply:
        sandbox = self.find(name)
        with sandbox.lock:
            if sandbox.state in NEXT and sandbox.state != "destroying" \
                    and self.config["delete_conflicts"]:
                old = version(self.config["api_version"]) < (0, 160)
                raise ApiError(400 if old else 409, "Sandbox state change in progress")
            if sandbox.state != "destroying":
                sandbox.set_state("destroying", "destroyed")
            shown = sandbox.shown(base, False)
            if self.config["delete_polls"] == 0:
                sandbox.set_state("destroyed")
                sandbox.remove()
        return empty(200) if self.config["delete_empty"] else api_reply(shown)

    def set_labels(self, request: Request, _: str, name: str) -> Reply:
        sandbox = self.find(name)
        sandbox.labels = dict(request.json()["labels"])
        return api_reply({"labels": sandbox.labels})

    def set_interval(self, request: Request, base: str, name: str) -> Reply:
        sandbox = self.find(name)
        *_, which, minutes = request.words
        member = {"autostop": "autoStopInterval", "autoarchive": "autoArchiveInterval",
                  "autodelete": "autoDeleteInterval", "ttl": "ttlMinutes"}[which]
        sandbox.intervals[member] = int(minutes)
        sandbox.touch()
        return api_reply(sandbox.shown(base, False))

    def last_activity(self, _: Request, __: str, name: str) -> Reply:
        self.find(name).touch()
        return empty(201)

    def archive(self, _: Request, base: str, name: str) -> Reply:
        sandbox = self.find(name)
        if sandbox.state != "stopped":
            raise ApiError(400, "Sandbox is not stopped")
        sandbox.set_state("archiving", "archived")
        return api_reply(sandbox.shown(base, False))

    def toolbox_url(self, _: Request, base: str, name: str) -> Reply:
        self.find(name)
        if self.config["toolbox_url"] not in ("object", "endpoint"):
            raise ApiError(404, f"Cannot GET /api/sandbox/{name}/toolbox-proxy-url")
        return api_reply({"url": base + "/toolbox"})

    def public_config(self, _: Request, base: str, __: str) -> Reply:
        shown = {"version": "v" + self.config["api_version"]}
        if self.config["toolbox_url"] != "api":
            shown = {"proxyToolboxUrl": base + "/toolbox", **shown}
        return api_reply(shown)
