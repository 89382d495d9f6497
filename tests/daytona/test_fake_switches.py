# SPDX-License-Identifier: Apache-2.0
"""Each switch does what it says, to the request it was meant for, as often as it says."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daytona_client import FAKE, Fake, end_fake, form, is_alive, start_fake, wait_until

COUNT = {"command": "echo run >> runs; cat runs"}


def runs(fake: Fake) -> int:
    """How often COUNT ran."""
    [part] = fake.download("runs")
    return part.data.count(b"run") if part.name == "file" else 0


def raw(fake: Fake, method: str, path: str, body: bytes = b"", kind: str = "application/json",
        timeout: float = 60) -> bytes:
    """All bytes of a reply as they come, to the end of the connection or of our patience."""
    head = {**fake.headers, "Host": "x", **({"Content-Type": kind} if body else {}),
            "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    got = b""
    with socket.create_connection(fake.address, timeout=timeout) as peer:
        peer.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        peer.shutdown(socket.SHUT_WR)
        while more := peer.recv(65536):
            got += more
    return got


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 410, 422, 429, 500, 502, 503,
                                    504])
def test_each_status_comes_once_on_both_sides(sandbox: Fake, status: int) -> None:
    sandbox.fault("http", "sandbox.get", status=status, message="said")
    sandbox.fault("http", "process.execute", status=status, message="said")
    answer = sandbox.api("GET", f"sandbox/{sandbox.sandbox}")
    assert answer.status == status
    assert (answer.json["statusCode"], answer.message) == (status, "said")
    assert sandbox.api("GET", f"sandbox/{sandbox.sandbox}").status == 200
    refused = sandbox.tool("POST", "process/execute", COUNT)
    assert refused.status == status and refused.message.endswith("said")
    assert refused.json["path"] == "/process/execute" and runs(sandbox) == 0
    assert sandbox.tool("POST", "process/execute", COUNT).json["result"] == "run\n"


def test_a_429_has_the_headers_of_its_throttler(fake: Fake) -> None:
    fake.fault("http", "sandbox.create", throttler="sandbox-create", seconds=9)
    answer = fake.api("POST", "sandbox", {})
    assert (answer.status, answer.message) == (429, "ThrottlerException: Too Many Requests")
    assert {name: value for name, value in answer.headers.items() if "r" in name
            and name.endswith("sandbox-create")} == {
        "x-ratelimit-limit-sandbox-create": "300", "x-ratelimit-remaining-sandbox-create": "0",
        "x-ratelimit-reset-sandbox-create": "9", "retry-after-sandbox-create": "9"}
    fake.fault("http", "sandbox.list", throttler="failed-auth", seconds=3)
    assert fake.api("GET", "sandbox").headers["retry-after"] == "3"
    fake.fault("http", "sandbox.list", throttler="authenticated", headers={"X-More": "1"})
    assert fake.api("GET", "sandbox").headers["x-more"] == "1"


def test_a_502_may_be_empty_html_or_anything(sandbox: Fake) -> None:
    for more, want in (({"empty": True}, b""), ({"body": "{"}, b"{"),
                       ({"html": True}, b"<html><body><h1>502 Bad Gateway</h1></body></html>\n")):
        sandbox.fault("http", "session.*", status=502, **more)
        answer = sandbox.tool("GET", "process/session")
        assert (answer.status, answer.body) == (502, want)


def test_a_fault_comes_before_or_after(sandbox: Fake) -> None:
    for when, ran in (("before", 0), ("after", 1)):
        sandbox.fault("http", "process.execute", status=500, when=when)
        assert sandbox.tool("POST", "process/execute", COUNT).status == 500
        assert runs(sandbox) == ran
    for when, ran in (("before", 1), ("after", 2)):
        sandbox.fault("close", "process.execute", when=when)
        assert raw(sandbox, "POST", f"/toolbox/{sandbox.sandbox}/process/execute",
                   json.dumps(COUNT).encode()) == b""
        assert runs(sandbox) == ran


def test_a_fault_waits_for_its_request_and_is_used_up(sandbox: Fake) -> None:
    one = sandbox.sandbox
    other = sandbox.create()
    sandbox.control("faults", [
        {"kind": "http", "status": 500, "operation": "files.list", "skip": 1, "count": 2},
        {"kind": "http", "status": 503, "count": None, "operation": "sandbox.get",
         "sandbox": one}])
    assert [sandbox.tool("GET", "files").status for _ in range(4)] == [200, 500, 500, 200]
    assert [sandbox.api("GET", f"sandbox/{name}").status for name in (one, other, one)] == [
        503, 200, 503]
    assert len(sandbox.control("faults", method="GET")) == 1
    assert sandbox.control("faults", method="DELETE") == []
    assert sandbox.api("GET", f"sandbox/{one}").status == 200


def test_a_deletion_conflicts_so_many_times(sandbox: Fake) -> None:
    sandbox.fault("http", "sandbox.delete", status=409, count=3)
    deleted = [sandbox.api("DELETE", f"sandbox/{sandbox.sandbox}").status for _ in range(5)]
    assert deleted == [409, 409, 409, 200, 404]


def test_a_reply_is_cut_at_any_byte(sandbox: Fake) -> None:
    sandbox.upload(("f", b"x" * 1000))
    body = b'{"paths":["f"]}'
    target = f"/toolbox/{sandbox.sandbox}/files/bulk-download"
    whole = raw(sandbox, "POST", target, body)
    assert whole.endswith(b"0\r\n\r\n")
    for at in (1, 20, 200, len(whole) - 1):
        sandbox.fault("close", "files.bulk-download", wire_byte=at)
        assert raw(sandbox, "POST", target, body) == whole[:at]
    for at in (0, 1, 100, 1100):
        sandbox.fault("close", "files.bulk-download", body_byte=at)
        with pytest.raises(http.client.IncompleteRead):
            sandbox.tool("POST", "files/bulk-download", {"paths": ["f"]})
    sandbox.fault("close", "files.bulk-download", body_byte=500, then="end")
    assert len(sandbox.tool("POST", "files/bulk-download", {"paths": ["f"]}).body) == 500
    sandbox.fault("close", "files.download", body_byte=500, then="reset")
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        sandbox.tool("GET", "files/download", path="f")


def test_an_upload_is_cut_at_any_byte(sandbox: Fake) -> None:
    kind, body = form([("a", b"1" * 5000), ("b", b"2" * 5000)])
    target = f"/toolbox/{sandbox.sandbox}/files/bulk-upload"
    for at, want in ((0, []), (3000, ["a"]), (len(body) - 20, ["a", "b"])):
        sandbox.fault("close", "files.bulk-upload", read_byte=at)
        # What it did not read makes the kernel send a reset.
        try:
            assert raw(sandbox, "POST", target, body, kind) == b""
        except ConnectionResetError:
            pass
        found = [one["name"] for one in sandbox.tool("GET", "files").json]
        assert [name for name in found if name in "ab"] == want
    sizes = [one["size"] for one in sandbox.tool("GET", "files").json if one["name"] in "ab"]
    assert sizes[0] == 5000 and 4900 < sizes[1] < 5000


def test_a_reply_stalls_until_the_client_leaves(sandbox: Fake) -> None:
    for fault in ({"body_byte": 2}, {"wire_byte": 10}, {}):
        sandbox.fault("stall", "toolbox.version", **fault)
        connection = sandbox.connect()
        connection.timeout = 0.5
        connection.request("GET", f"/toolbox/{sandbox.sandbox}/version", headers=sandbox.headers)
        with pytest.raises(TimeoutError):
            connection.getresponse().read()
        connection.close()


def test_a_reply_is_slow(sandbox: Fake) -> None:
    began = time.monotonic()
    sandbox.fault("slow", "process.execute", delay=0.3, piece=10, pause=0.02)
    answer = sandbox.tool("POST", "process/execute", {"command": "seq 100"})
    assert time.monotonic() - began >= 0.3 + 0.02 * (len(answer.body) // 10)
    assert answer.json["exitCode"] == 0
    sandbox.fault("slow", "process.execute", piece=1)
    assert sandbox.tool("POST", "process/execute", {"command": "seq 9"}).json["exitCode"] == 0


def test_a_far_service_takes_a_round_trip_each_time_and_one_more_at_first(sandbox: Fake) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in sandbox.headers.items())
    one = (f"GET /toolbox/{sandbox.sandbox}/version HTTP/1.1\r\nHost: x\r\n{head}\r\n").encode()
    sandbox.control("config", {"latency": 0.2})
    began = time.monotonic()
    with socket.create_connection(sandbox.address, timeout=60) as peer:
        peer.sendall(one * 2)
        peer.shutdown(socket.SHUT_WR)
        replies = b"".join(iter(lambda: peer.recv(65536), b""))
    assert replies.count(b'{"version":"0.190.0"}') == 2
    assert time.monotonic() - began >= 0.6


def test_replies_are_garbage_or_lack_something(sandbox: Fake) -> None:
    path = f"sandbox/{sandbox.sandbox}"
    sandbox.fault("garbage", "sandbox.get", payload="{no")
    assert sandbox.api("GET", path).body == b"{no"
    sandbox.fault("missing", "sandbox.get", members=["state", "no.such", "labels.x"])
    assert "state" not in sandbox.api("GET", path).json
    sandbox.fault("null", "sandbox.*", members=["items.state", "nextCursor"])
    [item] = sandbox.api("GET", "sandbox").json["items"]
    assert item["state"] is None and item["id"]
    session = sandbox.session()
    command = sandbox.run(session, "true")
    sandbox.wait(session, command)
    sandbox.fault("null", "session.command", members=["exitCode"])
    told = sandbox.tool("GET", f"process/session/{session}/command/{command}").json
    assert told["exitCode"] is None


def test_a_sandbox_is_stopped_between_calls(sandbox: Fake) -> None:
    session = sandbox.session()
    sandbox.fault("stop", "session.exec")
    answer = sandbox.tool("POST", f"process/session/{session}/exec", {"command": "true"})
    assert answer.status == 400 and "Is the Sandbox started?" in answer.message
    assert sandbox.api("GET", f"sandbox/{sandbox.sandbox}").json["state"] == "stopped"
    sandbox.api("POST", f"sandbox/{sandbox.sandbox}/start")
    wait_until(lambda: sandbox.api("GET", f"sandbox/{sandbox.sandbox}").json["state"] == "started")
    sandbox.fault("stop", "files.list", state="archived")
    assert sandbox.tool("GET", "files").status == 404


def test_sessions_are_lost(sandbox: Fake) -> None:
    session = sandbox.session()
    command = sandbox.run(session, "sleep 1000")
    sandbox.fault("lose_sessions", "session.command")
    answer = sandbox.tool("GET", f"process/session/{session}/command/{command}")
    assert (answer.status, answer.message) == (404, "not found: session not found")
    session = sandbox.session()
    assert sandbox.control("lose_sessions", {"sandbox": sandbox.sandbox}) == {"sandboxes": 1}
    assert sandbox.tool("GET", "process/session").json == []
    assert sandbox.tool("POST", "process/session", {"sessionId": session}).status == 201


def test_a_sandbox_dies_in_the_middle_of_a_command(sandbox: Fake) -> None:
    pid = sandbox.execute("sleep 1000 >/dev/null 2>&1 & echo $!")["result"]
    session = sandbox.session()
    for path, body in (("process/execute", {"command": "sleep 1000"}),
                       (f"process/session/{session}/exec", {"command": "sleep 1000"})):
        sandbox.fault("die", "*", after=0.3)
        answer = sandbox.tool("POST", path, body)
        assert (answer.status, answer.body) == (502, b"")
        assert sandbox.tool("GET", "version").status == 502
        assert sandbox.api("GET", f"sandbox/{sandbox.sandbox}").json["state"] == "started"
        wait_until(lambda: not is_alive(pid))
        for how in ("stop", "start"):
            assert sandbox.api("POST", f"sandbox/{sandbox.sandbox}/{how}").status == 200
            wait_until(lambda: sandbox.api("GET", f"sandbox/{sandbox.sandbox}").json["state"]
                       in ("stopped", "started"))
        assert sandbox.tool("POST", "process/session", {"sessionId": session}).status == 201
    sandbox.fault("die", "toolbox.work-dir")
    assert sandbox.tool("GET", "work-dir").status == 502
    assert sandbox.control("die") == {"sandboxes": 1}


@pytest.mark.parametrize("state", ["error", "destroyed", "stopping", "unknown"])
def test_a_sandbox_can_have_any_state(sandbox: Fake, state: str) -> None:
    sandbox.control("state", {"state": state, "reason": "why"})
    answer = sandbox.api("GET", f"sandbox/{sandbox.sandbox}")
    if state == "destroyed":
        assert answer.status == 404
    else:
        assert (answer.json["state"], answer.json["errorReason"]) == (state, "why")


@pytest.mark.parametrize("name, value", [
    ("faults", {"kind": "nothing"}), ("faults", {"kind": "slow", "off": 1}),
    ("faults", {"kind": "http", "when": "never"}), ("config", {"colour": 1}), ("nowhere", {}),
    ("playback", {"files": ["/none"]})])
def test_a_wrong_switch_is_refused(fake: Fake, name: str, value: dict) -> None:
    answer = fake.send("POST", f"/_fake/{name}", json.dumps(value).encode(), {})
    assert answer.status == 400 and answer.json["message"]
    assert fake.control("faults", method="GET") == []


def test_switches_come_from_the_command_line_and_the_environment(tmp_path: Path) -> None:
    fault = '[{"kind": "http", "status": 503, "operation": "sandbox.list"}]'
    fake = start_fake(tmp_path, "--config", '{"sandbox_limit": 0}', "--faults", fault)
    assert fake.api("POST", "sandbox", {}).status == 400
    assert [fake.api("GET", "sandbox").status for _ in range(2)] == [503, 200]
    fake.control("config", {"sandbox_limit": 5})
    fake.control("reset", method="POST")
    assert fake.control("config", method="GET")["sandbox_limit"] == 0
    assert end_fake(fake) == (0, "")
    script = ("import os, urllib.request as u; "
              "assert os.environ['DAYTONA_API_KEY'] and 'DAYTONA_JWT_TOKEN' not in os.environ; "
              "print(u.urlopen(os.environ['PINFOLD_DAYTONA_CONTROL'] + '/config').read().decode())")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "DAYTONA_JWT_TOKEN": "x",
               "PINFOLD_FAKE_DAYTONA_CONFIG": '{"sandbox_limit": 7}',
               "PINFOLD_FAKE_DAYTONA_FAULTS": fault}
    done = subprocess.run([sys.executable, str(FAKE.with_name("with_fake.py")), sys.executable,
                           "-c", script], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sandbox_limit"] == 7


@pytest.mark.parametrize("command, status", [
    ("exit 7", 7), ("exit 0", 0), ("curl -s \"$DAYTONA_API_URL/nowhere\"", 1)])
def test_with_fake_tells_what_the_command_and_the_fake_say(tmp_path: Path, command: str,
                                                           status: int) -> None:
    script = command.replace("curl -s", f"{sys.executable} -c 'import sys, urllib.request as u\n"
                             "try: u.urlopen(sys.argv[1])\nexcept OSError: pass'")
    done = subprocess.run([sys.executable, str(FAKE.with_name("with_fake.py")), "sh", "-c", script],
                          env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert ("there is no such endpoint" in done.stderr) == (status == 1)
    assert list(tmp_path.iterdir()) == []


def test_one_connection_carries_many_requests(sandbox: Fake) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in sandbox.headers.items())
    one = (f"GET /toolbox/{sandbox.sandbox}/version HTTP/1.1\r\nHost: x\r\n{head}\r\n").encode()
    with socket.create_connection(sandbox.address, timeout=60) as peer:
        peer.sendall(one * 3)
        peer.shutdown(socket.SHUT_WR)
        replies = b"".join(iter(lambda: peer.recv(65536), b""))
    assert replies.count(b'{"version":"0.190.0"}') == 3


def test_many_clients_are_served_at_once(sandbox: Fake) -> None:
    def client(number: int) -> str:
        mine = Fake(sandbox.process, sandbox.endpoint, sandbox.directory, sandbox=sandbox.sandbox)
        gate.wait()
        session = mine.session()
        _, out, _ = mine.wait(session, mine.run(session, f"echo {number}"))
        assert mine.tool("DELETE", f"process/session/{session}").status == 204
        return out + mine.execute(f"echo {number}")["result"]
    gate = threading.Barrier(16)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(client, range(16))) == [f"{n}\n{n}\n" for n in range(16)]
    assert sandbox.tool("GET", "process/session").json == []
