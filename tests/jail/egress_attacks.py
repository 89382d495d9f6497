# SPDX-License-Identifier: Apache-2.0
"""Attacks on the proxy: by its client, by the servers it reaches, by names, and by numbers."""

import http.client
import os
import resource
import socket
import struct
import threading
import time

import pytest

from egress_harness import WAIT, Dns, Proxy, Server, read_all, read_exactly, read_head

PLAIN = "PINFOLD_WRAPPER" not in os.environ and "PINFOLD_SANITIZED" not in os.environ


def echo(sock):
    while data := sock.recv(65536):
        sock.sendall(data)


def says(*parts):
    """A server that sends parts, whatever it is asked, and waits for the client to hang up."""
    def handler(sock):
        read_head(sock)
        for part in parts:
            sock.sendall(part)
            time.sleep(0.02)
        sock.shutdown(socket.SHUT_WR)
        read_all(sock)
    return handler


def local(server):
    return f"127.0.0.1:{server.port}"


def get(proxy, server):
    return proxy.ask(b"GET http://%s/ HTTP/1.1\r\n\r\n" % local(server).encode())


# Servers


def test_an_origin_cannot_answer_for_the_next_host():
    """It promises to keep the connection, and sends a second answer for whatever comes next."""
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    honest = (b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=600\r\n"
              b"Proxy-Connection : keep-alive,\r\n more\r\nContent-Length: 4\r\n\r\nreal")
    with Server(says(honest, forged)) as bad, Server(echo) as good:
        with Proxy(local(bad), local(good)) as proxy:
            got = get(proxy, bad)
            assert got.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n")
            client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=WAIT)
            client.request("GET", f"http://{local(bad)}/")
            answer = client.getresponse()
            assert answer.read() == b"real" and answer.will_close
            client.close()
    assert good.accepted == 0


def test_interim_answers_go_through_before_the_last_one():
    with Server(says(b"HTTP/1.1 100 Continue\r\nConnection: keep-alive\r\n\r\nHTTP/1.1 103 Early",
                     b" Hints\r\nLink: x\r\n\r\n", b"HTTP/1.1 204 No\r\nA: b\r\n\r\n")) as server:
        with Proxy(local(server)) as proxy:
            assert get(proxy, server) == (
                    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                    b"HTTP/1.1 204 No\r\nA: b\r\nConnection: close\r\n\r\n")


def test_an_answer_that_comes_byte_by_byte_is_whole():
    answer = b"HTTP/1.0 200 OK\nA: b\n\nbody"
    parts = [answer[at:at + 1] for at in range(len(answer))]
    with Server(says(*parts)) as server, Proxy(local(server)) as proxy:
        assert get(proxy, server) == b"HTTP/1.0 200 OK\nA: b\nConnection: close\r\n\nbody"


@pytest.mark.parametrize("answer, reason", [
    (b"", "without a whole answer"), (b"HTTP/1.1 200 OK\r\nA: b\r\n", "without a whole answer"),
    (b"hello\r\n\r\n", "HTTP/1"), (b"HTTP/2 200\r\n\r\n", "HTTP/1"), (b"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1"),
    (b"HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1"), (b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "HTTP/1"),
    (b"HTTP/1.1 200 OK\r\nA: b\rConnection: keep-alive\r\n\r\n", "HTTP/1"),
    (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "HTTP/1"),
    (b"HTTP/1.1 200 OK\r\nConnection\x0b: keep-alive\r\n\r\n", "odd name"),
    (b"HTTP/1.1 200 OK\r\n\xefConnection: keep-alive\r\n\r\n", "odd name"),
    (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "protocols"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"x" * 33000 + b"\r\n\r\n", "32 KiB")])
def test_an_answer_that_is_none_is_said_to_be_none(answer, reason):
    with Server(says(answer)) as server, Proxy(local(server)) as proxy:
        got = get(proxy, server)
        assert got.startswith(b"HTTP/1.1 502 ") and reason.encode() in got
        assert reason in proxy.wait_event("failed")[6]


def test_a_flood_of_interim_answers_takes_no_memory():
    stop = threading.Event()

    def flood(sock):
        read_head(sock)
        while not stop.is_set():
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    with Server(flood) as server, Proxy(local(server)) as proxy, proxy.connect() as sock:
        sock.sendall(b"GET http://%s/ HTTP/1.1\r\n\r\n" % local(server).encode())
        total = 0
        while total < 4 << 20:
            total += len(sock.recv(1 << 20))
        stop.set()


# Clients


@pytest.mark.parametrize("body", [
    b"", b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"])
def test_a_second_request_on_a_connection_goes_nowhere(body):
    seen = []

    def record(sock):
        sock.settimeout(0.5)
        data = b""
        try:
            while part := sock.recv(65536):
                data += part
        except TimeoutError:
            pass
        seen.append(data)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with Server(record) as first, Server(echo) as second, Dns({}) as dns:
        with Proxy(local(first), local(second), "example.org", dns=dns.server) as proxy:
            got = proxy.ask(
                    b"POST http://%s/ HTTP/1.1\r\n%s%sGET http://%s/ HTTP/1.1\r\n\r\n"
                    b"CONNECT example.org:443 HTTP/1.1\r\n\r\n"
                    % (local(first).encode(), body, b"" if body else b"\r\n",
                       local(second).encode()))
        assert got.count(b"HTTP/1.1 ") == 1 and second.accepted == 0 and dns.asked == []
        assert b"CONNECT" not in seen[0] and seen[0].count(b" / HTTP/1.1") == 1


def test_the_target_counts_and_no_header_does():
    with Server(echo) as server, Dns({}) as dns, Proxy("example.org", dns=dns.server) as proxy:
        for line in (b"CONNECT %s HTTP/1.1\r\nHost: example.org\r\n\r\n",
                     b"GET http://%s/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
                     b"GET http://%s/ HTTP/1.1\r\nHost: example.org\r\nX-Forwarded-Host: example.org"
                     b"\r\nForwarded: host=example.org\r\n\r\n"):
            assert proxy.ask(line % local(server).encode()).startswith(b"HTTP/1.1 403 ")
        assert server.accepted == 0 and dns.asked == []


@pytest.mark.parametrize("target", [
    b"http://example.org@127.0.0.1/", b"http://127.0.0.1\\@example.org/", b"http://example.org:80:22/",
    b"http://example.org\t/", b"http:///example.org", b"http://", b"http://:80/", b"//example.org/",
    b"http://example.org#@127.0.0.1/", b"http://example.org%2f@127.0.0.1/", b"http://[::1/",
    b"http://[::1]x/", b"http://::1/", b"ftp://example.org/", b"http://example.org:/",
    b"http://example.org:00080/", b"http://example.org:65616/", b"http://\xff\xfe/", b"*"])
def test_targets_that_readers_disagree_about_are_refused(target):
    with Dns({}) as dns, Proxy("*", "*:22", dns=dns.server) as proxy:
        got = proxy.ask(b"GET " + target + b" HTTP/1.1\r\nHost: example.org\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 400 ")
        assert dns.asked == []


def test_wildcards_match_whole_labels():
    table = {True: ["a.example.com", "A.B.Example.COM", "a.example.com.", "xn--a.example.com"],
             False: ["example.com", "evil-example.com", "evilexample.com", "example.com.evil.org",
                     "a.example.com.evil.org", "com", "a.example.co", "a.example.comm"]}
    with Dns({}) as dns, Proxy("*.example.com", dns=dns.server) as proxy:
        for allowed, names in table.items():
            for name in names:
                got = proxy.ask(f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
                assert got.startswith(b"HTTP/1.1 502 " if allowed else b"HTTP/1.1 403 "), name
            got = proxy.ask(f"CONNECT {names[0]}:8443 HTTP/1.1\r\n\r\n".encode())
            assert got.startswith(b"HTTP/1.1 403 ")
        assert {name.lower() for name, _ in dns.asked} == {
                "a.example.com", "a.b.example.com", "xn--a.example.com"}


# Names


@pytest.mark.parametrize("name", [
    "127.0.0.1\0.example.org", "127.0.0.1.", "127.0.0.1 ", "127.000.000.001", "0177.0.0.1", "127.1",
    "0x7f000001", "2130706433", "017700000001", "0x7f.1", "１２７.0.0.1", "127。0。0。1", "①27.0.0.1",
    "::ffff:127.0.0.1", "::127.0.0.1", "::1%1", "fe80::1%lo", "[::1]", "0:0:0:0:0:ffff:7f00:1",
    "64:ff9b::7f00:1", "2002:7f00:1::", "localhost", "LOCALHOST.", "sub.localhost", "x" * 64 + ".org",
    "a..org", "-", "a\r\nHost: b", "a/b", "a@b", "%6c", "0", "0.0.0.0", "255.255.255.255", "::",
    "169.254.169.254", "fd00:ec2::254", "224.0.0.1", "ff02::1"])
def test_no_name_reaches_what_is_not_public(name):
    """By SOCKS, where any bytes can be written, with every name and every public address allowed."""
    with Server(echo) as server, Dns({"localhost": [["127.0.0.1"]]}) as dns:
        port = server.port
        with Proxy(f"*:{port}", f"0.0.0.0/0:{port}", f"[::/0]:{port}", dns=dns.server,
                   connect_ms=2000) as proxy, proxy.connect() as sock:
            raw = name.encode()
            sock.sendall(b"\x05\x01\x00\x05\x01\x00\x03" + bytes([len(raw)]) + raw
                         + struct.pack(">H", port))
            assert read_exactly(sock, 2) == b"\x05\x00"
            assert read_exactly(sock, 10)[1] in (2, 4)
        assert server.accepted == 0


def test_an_alias_of_the_loopback_is_the_loopback():
    with Server(echo) as server:
        table = {"www.example.org": [["cname:a.cdn.example", "cname:b.cdn.example", "127.0.0.1"]]}
        with Dns(table) as dns, Proxy(f"*:{server.port}", dns=dns.server) as proxy:
            got = proxy.ask(b"CONNECT www.example.org:%d HTTP/1.1\r\n\r\n" % server.port)
            assert got.startswith(b"HTTP/1.1 403 ") and b"loopback" in got
        with Dns(table) as dns, Proxy(f"www.example.org:{server.port}", local(server),
                                      dns=dns.server) as proxy:
            proxy.tunnel("www.example.org", server.port).close()


# Numbers


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_process_without_descriptors_waits_and_does_not_spin():
    with Server(echo) as server, Proxy(local(server)) as proxy:
        pid = proxy.process.pid
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        proxy.tunnel("127.0.0.1", server.port).close()  # it is up
        proxy.wait_event("closed")
        time.sleep(0.2)  # and has closed what it has told of
        taken = set(map(int, os.listdir(f"/proc/{pid}/fd")))
        used = min(set(range(100)) - taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, hard))
        with proxy.connect() as sock:
            sock.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % local(server).encode())
            before = cpu_seconds(pid)
            sock.settimeout(1)
            with pytest.raises(TimeoutError):
                sock.recv(1)
            if PLAIN:
                assert cpu_seconds(pid) - before < 0.5
            # One for the client, none for the server.
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 1, hard))
            sock.settimeout(WAIT)
            assert read_all(sock)[:13] in (b"HTTP/1.1 403 ", b"HTTP/1.1 502 ")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
        proxy.tunnel("127.0.0.1", server.port).close()


def test_a_client_in_a_loop_is_slowed_down():
    """However fast it is, each second is for five hundred; nobody is turned away."""
    with Proxy("example.org") as proxy:
        began = time.monotonic()
        for _ in range(1100):
            with proxy.connect() as sock:
                sock.sendall(b"CONNECT a.example:1 HTTP/1.1\r\n\r\n")
                assert sock.recv(13) == b"HTTP/1.1 403 "
        assert time.monotonic() - began > 1.5


def test_many_connections_hold_little_and_wait_for_each_other():
    with Server(echo) as server, Proxy(local(server), handshake_ms=2000) as proxy:
        held = [proxy.connect() for _ in range(400)]
        for sock in held:
            sock.sendall(b"GET http://exam")
        status = open(f"/proc/{proxy.process.pid}/status").read()
        limit = resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE)[0]
        assert len(os.listdir(f"/proc/{proxy.process.pid}/fd")) < min(limit / 2, 600)
        if PLAIN:
            assert int(status.split("VmRSS:")[1].split()[0]) < 64 * 1024
        # Those who say nothing are sent away, and so somebody who asks is served at last.
        with proxy.connect() as sock:
            sock.settimeout(60)
            sock.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % local(server).encode())
            for other in held:
                other.close()
            assert read_head(sock).startswith(b"HTTP/1.1 200 ")


def test_what_a_server_does_not_take_stays_with_the_client():
    """The kernel's buffers are the owner's memory too: little of what is under way is there."""
    done = threading.Event()
    with Server(lambda sock: done.wait(WAIT)) as server:
        server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with Proxy(local(server)) as proxy, proxy.tunnel("127.0.0.1", server.port) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            sock.settimeout(1)
            total = 0
            try:
                while total < 64 << 20:
                    total += sock.send(b"x" * 4096)
            except TimeoutError:
                pass
            done.set()
        assert total < 2 << 20
