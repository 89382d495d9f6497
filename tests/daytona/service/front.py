# SPDX-License-Identifier: Apache-2.0
"""From a request to its reply: who asks, what it is, what is wrong with it, who answers."""

import threading
import time
from typing import Callable

from . import bulk, check, commands, execute, files, searching
from .errors import (ApiError, ProxyError, ToolboxError, api_error, empty, go_reply,
                     not_found_page, proxy_error, toolbox_error, version)
from .plane import Plane
from .sandboxes import Sandbox
from .web import Reply, Request

NOT_STARTED = "bad request: no IP address found. Is the Sandbox started?"


def directory(sandbox: Sandbox, _: Request) -> Reply:
    return go_reply({"dir": str(sandbox.home)})


def daemon_version(sandbox: Sandbox, _: Request) -> Reply:
    return go_reply({"version": sandbox.config["daemon_version"]})


TOOLBOX: dict[str, Callable[[Sandbox, Request], Reply]] = {
    **execute.ROUTES, **commands.ROUTES, **files.ROUTES, **bulk.ROUTES, **searching.ROUTES,
    "toolbox.work-dir": directory, "toolbox.user-home-dir": directory,
    "toolbox.project-dir": directory, "toolbox.version": daemon_version}


class Front:
    def __init__(self, plane: Plane, config: dict) -> None:
        self.plane = plane
        self.config = config
        self.api = {
            "sandbox.create": plane.create, "sandbox.list": plane.list,
            "sandbox.paginated": plane.paginated, "sandbox.get": plane.get,
            "sandbox.delete": plane.delete, "sandbox.start": plane.start,
            "sandbox.stop": plane.stop, "sandbox.archive": plane.archive,
            "sandbox.labels": plane.set_labels, "sandbox.autostop": plane.set_interval,
            "sandbox.autoarchive": plane.set_interval, "sandbox.autodelete": plane.set_interval,
            "sandbox.ttl": plane.set_interval, "sandbox.last-activity": plane.last_activity,
            "sandbox.toolbox-proxy-url": plane.toolbox_url, "config": plane.public_config}

    def authenticate(self, request: Request) -> None:
        said = request.header("authorization") or ""
        organization = request.header("x-daytona-organization-id")
        for one in self.config["credentials"]:
            if said != "Bearer " + (one.get("key") or one["jwt"]):
                continue
            member = one.get("organization", self.config["organization"])
            if organization != member and ("jwt" in one or organization is not None):
                raise ApiError(403, "Invalid authentication context")
            if one.get("forbidden"):
                raise ApiError(403, "Access denied")
            return
        raise ApiError(401, "Invalid credentials")

    def answer(self, request: Request, found: check.Found | None, base: str,
               fault: dict | None, wrong: bool) -> Reply:
        """wrong: whether there is a complaint about it, and so anything may happen."""
        if found is None:
            if request.path.startswith("/api/"):
                return api_error(ApiError(404, f"Cannot {request.method} {request.path}"),
                                 request.path)
            return not_found_page()
        path = found.path
        try:
            if found.toolbox:
                return self.toolbox(request, found, fault)
            if found.route.name != "config":
                self.authenticate(request)
            return self.api[found.route.name](request, base, found.sandbox)
        except ApiError as error:
            return api_error(error, path)
        except ToolboxError as error:
            return toolbox_error(error, path, request.method)
        except ProxyError as error:
            return proxy_error(error, request.path, request.method)
        except (ValueError, LookupError, TypeError, AttributeError) as why:
            if not wrong:
                raise
            return api_error(ApiError(400, f"Bad Request: {why!r}"), path)

    def toolbox(self, request: Request, found: check.Found, fault: dict | None) -> Reply:
        try:
            self.authenticate(request)
        except ApiError as error:
            raise ProxyError(error.status, f"unauthorized: authentication failed: {error}") \
                from None
        sandbox = self.plane.sandboxes.get(found.sandbox)
        if sandbox is None or sandbox.state == "destroyed":
            raise ProxyError(400, "bad request: failed to get runner info: sandbox not found")
        if request.header("x-daytona-skip-last-activity-update") != "true":
            sandbox.touch()
        with sandbox.lock:
            sandbox.in_flight += 1
        try:
            return self.in_sandbox(request, found, sandbox, fault)
        finally:
            with sandbox.lock:
                sandbox.in_flight -= 1
                sandbox.touched = time.monotonic()

    def in_sandbox(self, request: Request, found: check.Found, sandbox: Sandbox,
                   fault: dict | None) -> Reply:
        kind = fault["kind"] if fault else None
        if kind == "lose_sessions":
            sandbox.lose_sessions()
        elif kind == "stop":
            sandbox.set_state(fault.get("state", "stopped"), fault.get("state", "stopped"))
        elif kind == "die" and "after" not in fault:
            sandbox.die()
        elif kind == "die":
            threading.Timer(fault["after"], sandbox.die).start()
        if sandbox.state in ("archived", "archiving"):
            raise ProxyError(404, "not found: sandbox container not found")
        if sandbox.state != "started":
            raise ProxyError(400, NOT_STARTED)
        if sandbox.daemon_died:
            raise ProxyError(502, None)
        if moved := self.moved(request, found):
            return moved
        try:
            return TOOLBOX[found.route.name](sandbox, request)
        except OSError as why:
            if not found.route.name.startswith("files."):
                raise
            raise files.failed(sandbox, why, request.first("path") or "") from None

    def moved(self, request: Request, found: check.Found) -> Reply | None:
        """What the old daemons had only with a slash at the end."""
        since = {"files.list": (0, 178), "files.delete": (0, 189)}.get(found.route.name)
        if since is None or found.path.endswith("/"):
            return None
        if version(self.config["daemon_version"]) >= since:
            return None
        if not self.config["redirect_slash"]:
            return not_found_page()
        path, mark, query = request.target.partition("?")
        status = 301 if request.method == "GET" else 307
        reply = empty(status)
        reply.headers.append(("Location", path + "/" + mark + query))
        return reply


