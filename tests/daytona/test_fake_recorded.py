# SPDX-License-Identifier: Apache-2.0
"""The fake against what was recorded of the real handlers and clients, one exchange at a time."""

import base64
import json
import os
import re

import pytest

from daytona_client import NEEDS_WIRE, WIRE, Answer, Fake, wait_until

pytestmark = NEEDS_WIRE

SANDBOX = "11111111-2222-4333-8444-555555555555"
HOME = b"/home/daytona"
# Each run of a client, with the settings under which the fake is the service that it met.
SCENARIOS = {
    "0*": {}, "legacy0108/*": {}, "legacy0115/*": {}, "sdk0139/*": {}, "variants/env-*": {},
    "variants/jwt-*": {}, "variants/events-*": {}, "variants/server-*": {},
    "variants/stopped-*": {}, "variants/noproxyurl-*": {"toolbox_url": "endpoint"}}
CREDENTIALS = [{"key": key} for key in ("dtn_fake_key_for_recording", "dtn_fake", "dtn_fake_env",
                                        "dtn_fake_key")] + [
    {"jwt": "eyJfake.jwt.token", "organization": "org-fake"}]
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def recorded(pattern: str) -> list[dict]:
    """The exchanges of one run; those of a WebSocket are no exchanges."""
    found = [{"file": path, **json.loads(path.read_text())}
             for path in sorted(WIRE.glob(pattern)) if path.suffix == ".json"]
    return [one for one in found if "path" in one["request"]]


def data_of(body: dict) -> bytes:
    text = body.get("text", "")
    return base64.b64decode(text) if body.get("encoding") == "base64" else text.encode()


def parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None


def long_home() -> bytes:
    """The home's name in binary recordings, which were not made nameless."""
    body = data_of(recorded("043-*")[0]["response"]["body"])
    return re.search(rb'filename="([^"]+)/[^"/]+/deep/', body)[1]


def one_home(data: bytes, home: bytes) -> bytes:
    """The home's name as it is in most recordings; in binary ones it is another."""
    data = data.replace(home, HOME)
    return data.replace(home.replace(b"/", b"%2F"), HOME.replace(b"/", b"%2F"))


class Replay:
    """One run of a client, said again to the fake, and what it answers in the recorded names."""

    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.sandbox = ""
        self.home = b""
        self.names: dict[str, str] = {}  # recorded ids: ours

    def ours(self, data: bytes) -> bytes:
        for home in (long_home(), HOME) if self.home else ():
            # The longer of the two has the shorter in it.
            data = re.sub(rb"(?<![\w])" + re.escape(home), self.home, data)
        for old, new in {**self.names, SANDBOX: self.sandbox or SANDBOX}.items():
            data = data.replace(old.encode(), new.encode())
        return data

    def theirs(self, data: bytes) -> bytes:
        if self.home:
            data = one_home(data, self.home)
        for old, new in {**self.names, SANDBOX: self.sandbox or SANDBOX}.items():
            data = data.replace(new.encode(), old.encode())
        return data

    def send(self, request: dict) -> Answer:
        body = self.ours(data_of(request["body"]))
        target = self.ours((request["path"] + request["query"]).encode()).decode()
        headers = {name: value for name, value in request["headers"] if name.lower() not in
                   ("content-length", "host", "connection", "transfer-encoding")}
        chunked = ["Transfer-Encoding", "chunked"] in request["headers"]
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        sized = body if body or ["Content-Length", "0"] in request["headers"] else None
        return self.fake.send(request["method"], target, iter([body]) if chunked else sized,
                              headers)


def comparable(data: bytes) -> object:
    """A body without what is another each time: moments, sizes of directories, the owner."""
    text = re.sub(rb"\d{4}-\d\d-\d\d[T ][\d:.]+(Z| \+0000 UTC)", b"T", data)
    text = re.sub(rb'"size":\d+,"mode":"d', b'"size":0,"mode":"d', text)
    text = text.replace(b'"owner":"0","group":"0"',
                        b'"owner":"%d","group":"%d"' % (os.getuid(), os.getgid()))
    value = parsed(text)
    if isinstance(value, dict) and "output" in value:
        # Nobody knows which of the two streams came first.
        value["output"] = sorted(str(value["output"]).split("\n"))
    for session in value if isinstance(value, list) else [value]:
        if isinstance(session, dict) and "commands" in session:
            session["commands"].sort(key=lambda one: one["id"])
    return text if value is None else value


def same_shape(mine: object, theirs: object) -> None:
    """Replies of the control plane were written for the recording: their members count."""
    if isinstance(theirs, dict):
        # The recorder named a snapshot where there was none.
        theirs = {name: value for name, value in theirs.items()
                  if name != "snapshot" or "buildInfo" not in mine}
        assert sorted(set(theirs) - set(mine)) == []
        for name, value in theirs.items():
            if isinstance(value, (bool, int, str, dict)) and name not in ("labels", "env"):
                assert type(mine[name]) is type(value), name


def prepare(fake: Fake, exchange: dict) -> None:
    """What made the service answer as it did."""
    body = parsed(data_of(exchange["request"]["body"]))
    boom = body.get("labels", {}).get("boom") if isinstance(body, dict) else None
    creates = exchange["request"]["path"] == "/api/sandbox" and body
    status = exchange["response"]["status"]
    if creates:
        fake.control("config", {"create_polls": 2, "create_state": None})
    if boom in ("429", "400"):
        more = {"throttler": "sandbox-create"} if boom == "429" else {}
        fake.fault("http", "sandbox.create", status=status, **more,
                   message=json.loads(data_of(exchange["response"]["body"]))["message"])
    elif boom == "error":
        fake.control("config", {"create_polls": 0, "create_state": "error"})
    if "no IP address" in str(exchange["response"]["body"]):
        fake.control("state", {"state": "stopped"})


def polled(replay: Replay, exchange: dict, want: bytes) -> Answer:
    """The answer, or the one that it becomes: a command may have taken longer or shorter."""
    answer = replay.send(exchange["request"])
    if exchange["request"]["method"] == "GET" and "/process/session" in exchange["request"]["path"]:
        told = []

        def settled() -> bool:
            told[:] = [replay.send(exchange["request"])]
            enough = len(told[0].body) >= len(want) or b"stdout" not in want
            return enough and told[0].body.count(b"exitCode") >= want.count(b"exitCode")
        wait_until(settled)
        answer = told[0]
    return answer


def compare(replay: Replay, exchange: dict, answer: Answer, want: bytes) -> None:
    request, response = exchange["request"], exchange["response"]
    status, name = response["status"], exchange["file"].name
    if request["path"].endswith("/input"):
        # The pipe was not there yet, which is a race that one may win.
        assert answer.status in (204, 500), name
        return
    assert answer.status == status, (name, answer.body)
    wanted = {key.lower(): value for key, value in response["headers"]}
    for header in set(wanted) - {"date", "content-length"}:
        if not header.startswith("x-rate"):
            assert answer.headers.get(header) == wanted[header], (name, header)
    if "fake reply" in exchange["kind"] and b"IP address" not in want:
        same_shape(parsed(answer.body), parsed(want))
        return
    got, wished = comparable(replay.theirs(answer.body)), comparable(want)
    if isinstance(got, dict) and "exitCode" in got and "exitCode" not in wished:
        del got["exitCode"]  # it took less time than then
    if request["path"].endswith("/logs") and wished == comparable(
            b'{"output":"","stdout":"","stderr":""}'):
        return
    if isinstance(got, (dict, list)) and "/process/session" in request["path"]:
        # read waited for the input that lost the race
        for told in (got, wished):
            for session in told if isinstance(told, list) else [told]:
                for command in session.get("commands", []):
                    if command["command"].startswith("read line"):
                        command.pop("exitCode", None)
    assert got == wished, name


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_recorded_run_gets_the_recorded_answers(fake: Fake, scenario: str) -> None:
    fake.control("config", {"credentials": CREDENTIALS, "oldest_client": "0.108.0",
                            **SCENARIOS[scenario]})
    replay = Replay(fake)
    exchanges = recorded(scenario)
    assert len(exchanges) > 5
    for exchange in exchanges:
        prepare(fake, exchange)
        want = one_home(data_of(exchange["response"]["body"]), long_home())
        answer = polled(replay, exchange, want)
        told = parsed(answer.body)
        if isinstance(told, dict) and "cmdId" in told:
            replay.names[parsed(want)["cmdId"]] = told["cmdId"]
        compare(replay, exchange, answer, want)
        if exchange["request"]["path"] == "/api/sandbox" and exchange["request"]["method"] \
                == "POST" and answer.status == 200:
            replay.sandbox = told["id"]
            [one] = [one for one in fake.control("sandboxes", method="GET")
                     if one["id"] == told["id"]]
            replay.home = (one["directory"] + "/home/daytona").encode()
    assert fake.complaints() == []


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_recorded_replies_are_played_back_byte_for_byte(fake: Fake, scenario: str) -> None:
    exchanges = recorded(scenario)
    fake.control("playback", {"files": [str(one["file"]) for one in exchanges], "exact": True})
    for exchange in exchanges:
        answer = Replay(fake).send(exchange["request"])
        response = exchange["response"]
        assert answer.status == response["status"]
        assert answer.body == data_of(response["body"])
        wanted = {name.lower(): value for name, value in response["headers"]}
        assert {name: answer.headers.get(name) for name in wanted} == {
            **wanted, **({"content-length": str(len(answer.body))}
                         if "content-length" in wanted else {})}
    assert fake.control("playback", method="GET") == []
    fake.complaints()


def test_playback_goes_by_route_and_may_rewrite(fake: Fake) -> None:
    files = [str(one["file"]) for one in recorded("0*")][:9]
    fake.control("playback", {"files": files,
                              "rewrite": ["http://127.0.0.1:18080", fake.endpoint]})
    made = fake.api("POST", "sandbox", {}).json
    assert (made["id"], made["toolboxProxyUrl"]) == (SANDBOX, fake.endpoint + "/toolbox")
    fake.sandbox = "another"
    assert fake.tool("GET", "work-dir").json == {"dir": "/home/daytona"}
    assert fake.tool("POST", "process/execute", {"command": "other"}).json["exitCode"] == 3
    assert len(fake.control("playback", method="GET")) == 6
    assert fake.control("playback", method="DELETE") == []
    assert fake.api("GET", f"sandbox/{SANDBOX}").status == 404


# The probes of odd corners.


def probes(name: str) -> str:
    return (WIRE / name).read_text(errors="surrogateescape")


def test_execute_answers_the_probes_as_recorded(sandbox: Fake) -> None:
    found = re.findall(r"^--- execute: (.*)\n(.*) \[http (\d+) t=",
                       probes("edge-1-exec-session.txt"), re.M)
    assert len(found) > 15
    replay = Replay(sandbox)
    replay.sandbox, replay.home = sandbox.sandbox, str(sandbox.home).encode()
    for body, want, status in found:
        answer = sandbox.send("POST", f"/toolbox/{sandbox.sandbox}/process/execute", body.encode(),
                              {**sandbox.headers, "Content-Type": "application/json"})
        assert answer.status == int(status), body
        assert comparable(replay.theirs(answer.body)) == comparable(want.encode()), body
    # Those that were no requests as documented.
    assert len(sandbox.complaints()) == 6


def arguments(line: str) -> tuple[str, str, dict, bytes | None]:
    """Method, target, headers and body of what curl was asked for."""
    url = re.search(r"http://127.0.0.1:2280(\S*(?: \S*)*)$", line)[1]
    options = dict.fromkeys("XdH")
    options.update({key: value.strip() for key, value in
                    re.findall(r"-([XdH]) ?(.+?)(?= -| http:)", line)})
    fields = re.findall(r"-F (\S+?)=(.*?)(?= -F| http:)", line)
    headers = dict([options["H"].split(": ", 1)]) if options["H"] else {}
    body = options["d"].encode() if options["d"] else None
    if fields:
        boundary = "probe"
        body = b"".join(
            (f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
             + ('; filename="f.bin"' if value.startswith("@") else "")).encode() + b"\r\n\r\n"
            + (b"abcdefghij" if value.startswith("@") else value.encode()) + b"\r\n"
            for name, value in fields) + f"--{boundary}--\r\n".encode()
        headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
    if "--data-binary" in line:
        body = b"abcdefghij"
    return options["X"] or ("POST" if fields else "GET"), url, headers, body


def test_files_answer_the_probes_as_recorded(sandbox: Fake) -> None:
    found = re.findall(r"^--- (.*)\n(HTTP/1.1 (\d+) .*\n(?:.+\n)*)\n(.*)\n", probes(
        "edge-2-files.txt"), re.M)
    assert len(found) > 35
    replay = Replay(sandbox)
    replay.sandbox, replay.home = sandbox.sandbox, str(sandbox.home).encode()
    sandbox.session()  # has made .daytona
    for line, head, status, body in found:
        if "/files?path=/home/daytona HTTP" in head or line.endswith("/files?path=/home/daytona"):
            # Links had been made: one to up2.bin and one to nowhere.
            sandbox.execute("ln -s up2.bin lnk; ln -s nowhere dangling")
        method, url, headers, data = arguments(line)
        headers = {**sandbox.headers, **{name.title(): value for name, value in headers.items()}}
        answer = sandbox.send(method, f"/toolbox/{sandbox.sandbox}"
                              + replay.ours(url.encode()).decode(),
                              replay.ours(data) if data else data, headers)
        assert answer.status == int(status), line
        assert comparable(replay.theirs(answer.body)) == comparable(body.encode()), line
        for name, value in re.findall(r"^([\w-]+): (.*)$", head, re.M):
            if name not in ("Content-Length", "Last-Modified", "Date"):
                assert answer.headers[name.lower()] == value, (line, name)
    sandbox.complaints()
