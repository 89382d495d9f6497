# SPDX-License-Identifier: Apache-2.0
"""
What a request has to be: which routes there are, and what their queries, headers and bodies may
hold. The real service minds little of it and ignores what it does not know; here everything that
is not as documented and recorded is complained about, apart from what the service answers.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Callable, Iterator
from urllib.parse import urlsplit

from . import multipart
from .errors import version
from .web import Request

Rule = Callable[[object], bool]


def text(value: object) -> bool:
    return isinstance(value, str)


def flag(value: object) -> bool:
    return isinstance(value, bool)


def count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 32


def interval(value: object) -> bool:
    return type(value) is int and -1 <= value < 1 << 31


def texts(value: object) -> bool:
    return isinstance(value, list) and all(map(text, value))


def mapping(value: object) -> bool:
    return isinstance(value, dict) and all(map(text, value.values()))


def build_info(value: object) -> bool:
    return (isinstance(value, dict) and text(value.get("dockerfileContent"))
            and set(value) <= {"dockerfileContent", "contextHashes"}
            and texts(value.get("contextHashes", [])))


def volumes(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and {"volumeId", "mountPath"} <= set(one)
        <= {"volumeId", "mountPath", "subpath"} and all(map(text, one.values())) for one in value)


def networks(value: object) -> bool:
    return text(value) and all(re.fullmatch(r"[0-9a-fA-F.:]+/\d{1,3}", one.strip())
                               for one in value.split(","))


CREATE: dict[str, Rule] = {
    "name": text, "snapshot": text, "buildInfo": build_info, "user": text, "env": mapping,
    "labels": mapping, "public": flag, "target": text, "cpu": count, "memory": count,
    "disk": count, "gpu": count, "gpuType": texts, "autoStopInterval": interval,
    "autoPauseInterval": interval, "autoArchiveInterval": interval, "autoDeleteInterval": interval,
    "ttlMinutes": count, "networkBlockAll": flag, "networkAllowList": networks,
    "domainAllowList": text, "outboundProxyUrl": text, "otelEndpointOverride": text,
    "volumes": volumes, "secrets": lambda value: isinstance(value, list), "linkedSandbox": text,
    "spot": flag, "kvm": flag}
EXECUTE: dict[str, Rule] = {"command": text, "cwd": text, "timeout": count, "envs": mapping}
SESSION_EXECUTE: dict[str, Rule] = {"command": text, "runAsync": flag, "async": flag,
                                    "suppressInputEcho": flag}


@dataclass
class Route:
    name: str
    method: str
    template: str
    query: dict[str, str] = field(default_factory=dict)  # name: pattern; a name with ! must be
    body: dict[str, Rule] | str | None = None  # members, "form" or "raw"
    needs: tuple[str, ...] = ()  # members that must be

    def matches(self, method: str, words: list[str]) -> bool:
        wanted = self.template.split("/")
        return (method == self.method and len(words) == len(wanted)
                and all(word.lstrip("-").isdecimal() if want == "{n}" else
                        want.startswith("{") or want == word
                        for want, word in zip(wanted, words)))


PATHS = {"path!": ".+"}
LIST = {"labels": r"\{.*\}", "limit": r"\d+", "cursor": ".+", "states": r"[a-z_]+", "id": ".+",
        "name": ".+", "sort": r"\w+", "order": "asc|desc"}
API = [
    Route("sandbox.create", "POST", "sandbox", {}, CREATE),
    Route("sandbox.list", "GET", "sandbox", LIST),
    Route("sandbox.paginated", "GET", "sandbox/paginated", {**LIST, "page": r"\d+"}),
    Route("sandbox.get", "GET", "sandbox/{id}", {"verbose": "true|false"}),
    Route("sandbox.delete", "DELETE", "sandbox/{id}", {"force": "true|false"}),
    Route("sandbox.start", "POST", "sandbox/{id}/start"),
    Route("sandbox.stop", "POST", "sandbox/{id}/stop", {"force": "true|false"}),
    Route("sandbox.archive", "POST", "sandbox/{id}/archive"),
    Route("sandbox.labels", "PUT", "sandbox/{id}/labels", {}, {"labels": mapping}, ("labels",)),
    Route("sandbox.autostop", "POST", "sandbox/{id}/autostop/{n}"),
    Route("sandbox.autoarchive", "POST", "sandbox/{id}/autoarchive/{n}"),
    Route("sandbox.autodelete", "POST", "sandbox/{id}/autodelete/{n}"),
    Route("sandbox.ttl", "POST", "sandbox/{id}/ttl/{n}"),
    Route("sandbox.last-activity", "POST", "sandbox/{id}/last-activity"),
    Route("sandbox.toolbox-proxy-url", "GET", "sandbox/{id}/toolbox-proxy-url"),
    Route("config", "GET", "config"),
]
MODE = "[0-7]{3,4}"
TOOLBOX = [
    Route("toolbox.work-dir", "GET", "work-dir"),
    Route("toolbox.user-home-dir", "GET", "user-home-dir"),
    Route("toolbox.project-dir", "GET", "project-dir"),
    Route("toolbox.version", "GET", "version"),
    Route("process.execute", "POST", "process/execute", {}, EXECUTE, ("command",)),
    Route("session.create", "POST", "process/session", {}, {"sessionId": text}, ("sessionId",)),
    Route("session.list", "GET", "process/session"),
    Route("session.get", "GET", "process/session/{sid}"),
    Route("session.delete", "DELETE", "process/session/{sid}"),
    Route("session.exec", "POST", "process/session/{sid}/exec", {}, SESSION_EXECUTE,
          ("command",)),
    Route("session.command", "GET", "process/session/{sid}/command/{cid}"),
    Route("session.logs", "GET", "process/session/{sid}/command/{cid}/logs",
          {"follow": "true|false"}),
    Route("session.input", "POST", "process/session/{sid}/command/{cid}/input", {},
          {"data": text}, ("data",)),
    Route("files.list", "GET", "files", {"path": ".+", "depth": "[1-9][0-9]*"}),
    Route("files.list", "GET", "files/", {"path": ".+", "depth": "[1-9][0-9]*"}),
    Route("files.info", "GET", "files/info", PATHS),
    Route("files.download", "GET", "files/download", PATHS),
    Route("files.bulk-download", "POST", "files/bulk-download", {}, {"paths": texts}, ("paths",)),
    Route("files.bulk-upload", "POST", "files/bulk-upload", {}, "form"),
    Route("files.upload", "POST", "files/upload", PATHS, "form"),
    Route("files.upload-v2", "POST", "files/upload-v2", PATHS, "raw"),
    Route("files.folder", "POST", "files/folder", {**PATHS, "mode!": MODE}),
    Route("files.delete", "DELETE", "files", {**PATHS, "recursive": "true|false"}),
    Route("files.delete", "DELETE", "files/", {**PATHS, "recursive": "true|false"}),
    Route("files.move", "POST", "files/move", {"source!": ".+", "destination!": ".+"}),
    Route("files.permissions", "POST", "files/permissions",
          {**PATHS, "mode": MODE, "owner": ".+", "group": ".+"}),
    Route("files.search", "GET", "files/search", {**PATHS, "pattern!": ".+"}),
    Route("files.find", "GET", "files/find", {**PATHS, "pattern!": ".+"}),
    Route("files.replace", "POST", "files/replace", {},
          {"files": texts, "pattern": text, "newValue": text}, ("files", "pattern", "newValue")),
]


@dataclass
class Found:
    """Where a request goes."""

    route: Route
    sandbox: str  # id or name; empty when the path names none
    path: str  # as the handler of the route sees it
    toolbox: bool


def route(request: Request) -> Found | None:
    """The route, from the path as it was sent: a %2F in it separates nothing."""
    raw = request.path.split("/")[1:]
    words = request.words
    if raw[:1] == ["toolbox"] and len(raw) > 2:
        return toolbox_route(request.method, raw[2:], words[1])
    if raw[:2] == ["api", "toolbox"] and len(raw) > 4 and raw[3] == "toolbox":
        return toolbox_route(request.method, raw[4:], words[2])
    if raw[:1] == ["api"]:
        for one in API:
            if one.matches(request.method, raw[1:]):
                return Found(one, words[2] if len(words) > 2 else "", request.path, False)
    return None


def toolbox_route(method: str, raw: list[str], sandbox: str) -> Found | None:
    for one in TOOLBOX:
        if one.matches(method, raw):
            return Found(one, sandbox, "/" + "/".join(raw), True)
    return None


def complaints(request: Request, found: Found | None, config: dict) -> Iterator[str]:
    if found is None:
        yield "there is no such endpoint"
        return
    yield from wrong_headers(request, config)
    yield from wrong_query(request, found.route)
    yield from wrong_body(request, found.route, config)


def wrong_headers(request: Request, config: dict) -> Iterator[str]:
    names = [name.lower() for name, _ in request.headers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"the header {name} is there more than once"
    for name in ("host", "user-agent", "x-daytona-source", "x-daytona-sdk-version"):
        if not request.header(name):
            yield f"the header {name} is missing"
    said = request.header("x-daytona-sdk-version") or ""
    if said and "dev" not in said and version(said) < version(config["oldest_client"]):
        yield f"x-daytona-sdk-version: {said} is so old that logs come in another form"
    if "chunked" == (request.header("transfer-encoding") or "") and config["sized_bodies"]:
        yield "the body has no content-length"
    if request.header("x-daytona-organization-id") and not config["organization_beside_key"]:
        if any(one.get("key") and request.header("authorization") == "Bearer " + one["key"]
               for one in config["credentials"]):
            yield "an organization is named beside an API key"


def wrong_query(request: Request, one: Route) -> Iterator[str]:
    rules = {name.rstrip("!"): pattern for name, pattern in one.query.items()}
    query = urlsplit(request.target).query
    if re.search(r"[^!-~]|[\"<>\\^`{|}]", query):
        yield "the query is not percent-encoded"
    for name, value in request.query:
        if name not in rules:
            yield f"{one.name} has no query parameter {name}"
        elif not re.fullmatch(rules[name], value, re.S):
            yield f"the query parameter {name} may not be {value!r}"
    for name in one.query:
        if name.endswith("!") and request.first(name.rstrip("!")) is None:
            yield f"the query parameter {name.rstrip('!')} is missing"


def wrong_body(request: Request, one: Route, config: dict) -> Iterator[str]:
    kind = request.header("content-type") or ""
    if one.body == "form":
        try:
            multipart.boundary_of(kind)
        except multipart.Broken as why:
            yield str(why)
    elif isinstance(one.body, dict):
        if not re.fullmatch(r"application/json(; ?charset=utf-8)?", kind, re.I):
            yield f"content-type: {kind}: the body is JSON"
        yield from wrong_json(request, one, config)
    elif one.body is None and request.read_all():
        yield f"{one.name} has no body"


def wrong_json(request: Request, one: Route, config: dict) -> Iterator[str]:
    try:
        body = json.loads(request.read_all().decode(), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as why:
        yield f"the body is not JSON: {why}"
        return
    if not isinstance(body, dict):
        yield "the body is not an object"
        return
    for name, value in body.items():
        if name not in one.body:
            yield f"{one.name} has no member {name}"
        elif not one.body[name](value) and not (value is None and config["nulls"]):
            yield f"the member {name} may not be {json.dumps(value)[:100]}"
    for name in one.needs:
        if name not in body:
            yield f"the member {name} is missing"


def distinct(pairs: list[tuple[str, object]]) -> dict:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a member is there twice")
    return dict(pairs)
