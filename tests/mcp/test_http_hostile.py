# SPDX-License-Identifier: Apache-2.0
"""What strangers send: nothing of it is served, holds anybody up, or ends the server."""

import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest

from http_server import Answer, Client, Connection, Server, wait_until

LOCAL = ["--backend", "local", "-q"]
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("http"), *LOCAL, "--http-resume", "1") as running:
        yield running.learn()
        assert Client(running).request("ping").status == 200, "it does not serve any more"


def head(server: Server, *lines: str, method: str = "POST", session: str | None = None) -> bytes:
    """A request up to its body, with a token."""
    usual = ["Host: 127.0.0.1", f"Authorization: Bearer {server.token}",
             "Accept: application/json, text/event-stream", "Content-Type: application/json"]
    if session:
        usual.append(f"Mcp-Session-Id: {session}")
    return "\r\n".join([f"{method} /mcp HTTP/1.1", *usual, *lines, "", ""]).encode()


def everything(connection: Connection) -> bytes:
    """All that the server says until it closes."""
    try:
        while connection.more():
            pass
    except ConnectionResetError:
        pass
    return connection.text


def statuses(connection: Connection) -> list[int]:
    """Of every response until the connection ends, which the client asks for."""
    found = []
    while connection.text or connection.more():
        answer = Answer(connection)
        answer.body
        found.append(answer.status)
    return found


# ---- two requests in one, for who reads them differently ----

@pytest.mark.parametrize("lines", [
    ("Content-Length: 40", "Content-Length: 41"),
    ("Content-Length: 40", "Content-Length: 40"),
    ("Content-Length: 40, 40",),
    ("Content-Length: +40",),
    ("Content-Length: 0x28",),
    ("Content-Length: -40",),
    ("Content-Length: 40", "Transfer-Encoding: chunked"),
    ("Transfer-Encoding: chunked", "Content-Length: 40"),
    ("Transfer-Encoding: xchunked", "Content-Length: 40"),
    ("Transfer-Encoding: identity", "Content-Length: 40"),
    ("Transfer-Encoding: chunked",),
    ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
    ("Content-Length: 99999999999999999999999",),
    ("Content-Length: 18446744073709551615",),
    ("Host: evil.example", "Content-Length: 40"),
    ("Authorization: Bearer other", "Content-Length: 40"),
    ("Mcp-Session-Id: other", "Mcp-Session-Id: another", "Content-Length: 40"),
])
def test_a_request_with_two_meanings_is_refused_and_nothing_after_it_is_read(server, lines):
    client = Client(server)
    session = None if any("Session" in line for line in lines) else client.session
    with Connection(server) as connection:
        connection.send(head(server, *lines, session=session) + PING +
                        head(server, "Connection: close", method="DELETE", session=client.session))
        # libmicrohttpd says the head of some of its own refusals twice.
        assert everything(connection).startswith(b"HTTP/1.1 4")
        assert b"HTTP/1.1 2" not in connection.text
    assert client.request("ping").status == 200
    client.ask("DELETE")


def test_what_follows_a_request_is_another_one_that_has_to_show_a_token(server):
    client = Client(server)
    with Connection(server) as connection:
        connection.send(head(server, f"Content-Length: {len(PING)}", session=client.session) + PING +
                        b"DELETE /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                        b"Mcp-Session-Id: " + client.session.encode() + b"\r\n\r\n")
        assert statuses(connection) == [200, 401]
    assert client.request("ping").status == 200
    client.ask("DELETE")


@pytest.mark.parametrize("text", [
    b"\r\n" * 5000, b"\0" * 5000, b"GET\r\n\r\n", b"GET /mcp\r\n\r\n", b"GET /mcp HTTP/9.9\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n\r\n", b"GET /mcp HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n Host: 127.0.0.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"POST " + b"/" * 40000 + b" HTTP/1.1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nX: " + b"x" * 40000 + b"\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\n" + b"".join(b"X-%d: x\r\n" % i for i in range(5000)) + b"\r\n",
    b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n",
    b"GET http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET /mcp%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
], ids=range(16))
def test_what_is_no_request_is_not_served(server, text):
    with Connection(server) as connection:
        connection.socket.settimeout(2)
        try:
            connection.send(text)
            while connection.more():
                pass
        except OSError:  # it was refused before it was read, or is waited for
            pass
        assert not connection.text or int(connection.text.split()[1]) >= 400


def test_noise_of_all_kinds_is_survived(server):
    """Requests with bytes exchanged, cut and repeated."""
    chance = random.Random(8)
    whole = head(server, f"Content-Length: {len(PING)}") + PING
    for _ in range(300):
        text = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(text))
            text[at:at + chance.randrange(3)] = chance.randbytes(chance.randrange(4))
        with Connection(server) as connection:
            connection.socket.settimeout(0.02)  # for half a request it waits longer than we do
            try:
                connection.send(bytes(text[:chance.randrange(len(text)) + 1]))
                while connection.more():
                    pass
            except OSError:
                pass
    assert Client(server).request("ping").status == 200


def test_a_body_that_is_shorter_than_it_should_be_is_nothing(server):
    client = Client(server)
    with Connection(server) as connection:
        connection.send(head(server, "Content-Length: 1000", session=client.session) + PING)
    assert client.request("ping").status == 200
    client.ask("DELETE")


def test_a_long_message_that_may_be_sent_is_read_whole(server):
    client = Client(server)
    text = "x" * 4_000_000
    assert "error" not in client.call("write_file", path="long", content=text).message()
    assert client.run("wc -c <long; rm long")["stdout"].strip() == "4000000"
    client.ask("DELETE")


# ---- who takes his time ----

def test_slow_requests_hold_up_nobody_and_are_given_up(tmp_path):
    with Server(tmp_path, *LOCAL) as server:
        client = Client(server.learn())
        slow = [Connection(server) for _ in range(60)]
        started = time.monotonic()
        for number, connection in enumerate(slow):
            connection.send(head(server, "Content-Length: 40")[:20 + number])
        assert client.request("ping").status == 200
        # A byte now and then does not help.
        done: set[int] = set()
        while len(done) < len(slow):
            assert time.monotonic() - started < 60, f"{len(slow) - len(done)} are still there"
            for number, connection in enumerate(slow):
                if number in done:
                    continue
                try:
                    connection.send(b"x")
                    connection.socket.settimeout(0.001)
                    if not connection.more():
                        done.add(number)
                except TimeoutError:
                    pass
                except OSError:
                    done.add(number)
            time.sleep(0.5)
        assert client.request("ping").status == 200
        for connection in slow:
            connection.socket.close()


def test_who_does_not_read_holds_up_nobody(server):
    client = Client(server)
    with Connection(server) as deaf:
        deaf.socket.setsockopt(1, 8, 4096)  # SOL_SOCKET, SO_RCVBUF
        client.ids += 1
        text = json.dumps({"jsonrpc": "2.0", "id": client.ids, "method": "tools/call", "params": {
            "name": "execute", "_meta": {"progressToken": 1},
            "arguments": {"command": "for i in $(seq 300); do head -c 20000 /dev/zero | tr '\\0' x;"
                                     "sleep 0.01; done"}}}).encode()
        deaf.send(head(server, f"Content-Length: {len(text)}", session=client.session) + text)
        for _ in range(20):
            assert client.request("ping").status == 200
    client.ask("DELETE")


# ---- many at once ----

def descriptors(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def visit(server: Server, number: int, goes: bool, failures: list[str]) -> None:
    """One client: a session, a file, a command, and no good-bye if it need not go."""
    try:
        client = Client(server)
        content = f"client {number}\n"
        written = client.call("write_file", path=f"f{number}", content=content).message()
        assert written["result"]["isError"] is False, written
        result = client.run(f"cat f{number}")
        assert result["stdout"] == content, result
        if number % 3 == 0:
            with Connection(server) as connection:  # and hangs up in the middle
                client.call("execute", connection, command="sleep 60")
        if number % 2 or goes:
            assert client.ask("DELETE").status == 204
    except BaseException as wrong:  # threads have nobody to tell
        failures.append(repr(wrong))


@pytest.mark.parametrize("backend", ["isolated", "local"])
def test_64_clients_at_once(tmp_path, backend):
    seconds = float(os.environ.get("PINFOLD_HTTP_SECONDS", "0"))
    with Server(tmp_path, "-q", "--backend", backend, "--http-resume", "0.5", "--ttl",
                str(max(30.0, seconds))) as server:
        server.learn()
        Client(server).run("true")
        before, begun, rounds = descriptors(server), time.monotonic(), 0
        while rounds == 0 or time.monotonic() - begun < seconds:
            failures: list[str] = []
            threads = [threading.Thread(target=visit, args=(server, number, rounds > 0, failures))
                       for number in range(64)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert failures == []
            rounds += 1
        # Whoever hung up has left neither a process nor a descriptor.
        wait_until(lambda: descriptors(server) <= before + 20)
        client = Client(server)
        left = "for p in /proc/[0-9]*/comm; do read -r c <$p && echo $c; done 2>/dev/null; true"
        if backend == "isolated":
            wait_until(lambda: "sleep" not in client.run(left)["stdout"].split())
        else:
            wait_until(lambda: not sleepers(server))


def sleepers(server: Server) -> list[str]:
    """What runs in the server's workspace and waits."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cmdline").read_bytes() == b"sleep\x0060\0" and \
                    str(server.place) in (path / "environ").read_text():
                found.append(path.name)
        except OSError:
            continue
    return found
