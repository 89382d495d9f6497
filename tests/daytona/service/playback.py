# SPDX-License-Identifier: Apache-2.0
"""
Playback: recorded exchanges, answered byte for byte instead of by the service.

A request gets the first recorded reply that was not used yet of the same route; the names in its
path may be others. With "exact" the path, the query and a JSON body have to be the recorded ones.
"""

import base64
import json
import threading
from pathlib import Path

from . import check
from .web import Body, Reply, Request

# What belongs to a connection and not to the reply.
OWN = ("transfer-encoding", "content-length", "connection")


def data_of(body: dict) -> bytes:
    if body.get("encoding") == "base64":
        return base64.b64decode(body["text"])
    return body.get("text", "").encode()


class Exchange:
    def __init__(self, path: Path) -> None:
        self.name = path.name
        told = json.loads(path.read_text())
        asked, answer = told["request"], told["response"]
        query = asked["query"].removeprefix("?")
        target = asked["path"] + ("?" + query if query else "")
        self.request = Request(asked["method"], target, [], Body(None, 0))
        self.found = check.route(self.request)
        self.body = data_of(asked["body"])
        headers = [(name, value) for name, value in answer["headers"]]
        self.reply = Reply(
            answer["status"], [one for one in headers if one[0].lower() not in OWN],
            data_of(answer["body"]), chunked="chunked" in [value for _, value in headers])

    def answers(self, request: Request, exact: bool) -> bool:
        found = check.route(request)
        if exact:
            same = request.target == self.request.target and request.method == self.request.method
            return same and (not self.body.startswith(b"{") or request.read_all() == self.body)
        return bool(found and self.found and found.route is self.found.route)


class Playback:
    def __init__(self) -> None:
        self.waiting: list[Exchange] = []
        self.exact = False
        self.address: tuple[str, str] | None = None  # what is written instead of what
        self.lock = threading.Lock()

    @property
    def active(self) -> bool:
        return bool(self.waiting)

    def load(self, files: list[str], exact: bool, address: tuple[str, str] | None) -> None:
        loaded = [Exchange(Path(name)) for name in files]
        with self.lock:
            self.waiting += loaded
            self.exact, self.address = exact, address

    def clear(self) -> None:
        with self.lock:
            self.waiting.clear()

    def take(self, request: Request) -> Reply | None:
        with self.lock:
            for exchange in self.waiting:
                if exchange.answers(request, self.exact):
                    self.waiting.remove(exchange)
                    reply = exchange.reply
                    if self.address:
                        old, new = (one.encode() for one in self.address)
                        reply.body = reply.body.replace(old, new)
                    return reply
        return None
