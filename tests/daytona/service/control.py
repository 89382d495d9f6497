# SPDX-License-Identifier: Apache-2.0
"""What a test tells the fake and asks of it, past the service; ../fake.py describes all of it."""

import json
from collections import Counter
from urllib.parse import parse_qs, urlsplit

from .errors import api_reply
from .web import Reply, Request


def answer(fake, request: Request) -> Reply:
    try:
        split = urlsplit(request.target)
        asked = request.json() if request.body.length != 0 else None
        words = (request.method, split.path.removeprefix("/_fake/"))
        value = command(fake, words, asked, parse_qs(split.query))
    except (ValueError, TypeError, AttributeError, KeyError, OSError) as why:
        return api_reply({"message": repr(why)}, 400)
    if isinstance(value, bytes):
        return Reply(200, [("content-type", "application/jsonl")], value)
    return api_reply(value)


def command(fake, words: tuple[str, str], asked: object, query: dict) -> object:
    method, what = words
    if what in ("requests", "counts", "sandboxes") and method == "GET":
        return told(fake, what, int(query.get("since", ["0"])[0]))
    if what == "working" and method == "GET":
        return working(fake)
    if what == "complaints":
        if method == "DELETE":
            fake.complaints.clear()
        return list(fake.complaints)
    if what == "faults":
        if method == "POST":
            fake.faults.add(asked if isinstance(asked, list) else [asked])
        elif method == "DELETE":
            fake.faults.clear()
        return fake.faults.waiting
    if what == "playback":
        return play(fake, method, asked)
    if what == "config":
        return fake.configure(asked or {})
    if what == "reset" and method == "POST":
        return fake.reset()
    if method == "POST" and what in ("state", "die", "lose_sessions"):
        return disturb(fake, what, asked or {})
    raise ValueError(f"no such control: {method} /_fake/{what}")


def told(fake, what: str, since: int) -> object:
    with fake.lock:
        records = fake.records[since:]
    if what == "requests":
        return "".join(json.dumps(one) + "\n" for one in records).encode()
    if what == "counts":
        return Counter(one["operation"] for one in records if one["operation"])
    return [{"id": one.id, "name": one.name, "state": one.state, "directory": str(one.place),
             "sessions": list(one.sessions), "labels": one.labels}
            for one in fake.plane.all()]


def working(fake) -> int:
    """Requests before commands: what a request has started is there when it is answered."""
    answering = fake.answering.count
    return answering + sum(session.is_at_work() for sandbox in fake.plane.all()
                           for session in list(sandbox.sessions.values()))


def disturb(fake, what: str, asked: dict) -> dict:
    some = [one for one in fake.plane.all() if asked.get("sandbox", one.id) == one.id]
    for one in some:
        if what == "state":
            one.set_state(asked["state"], reason=asked.get("reason"))
        elif what == "die":
            one.die()
        else:
            one.lose_sessions()
    return {"sandboxes": len(some)}


def play(fake, method: str, asked: object) -> list[str]:
    if method == "POST":
        rewrite = asked.get("rewrite")
        fake.playback.load(asked["files"], asked.get("exact", False),
                           tuple(rewrite) if rewrite else None)
    elif method == "DELETE":
        fake.playback.clear()
    return [one.name for one in fake.playback.waiting]
