# SPDX-License-Identifier: Apache-2.0
"""The proxy end to end: real sockets, hostile clients, hostile servers, a hostile resolver."""

import ast
import hashlib
import http.client
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

from egress_harness import INSIDE, WAIT, Dns, Proxy, Server, read_all, read_exactly, read_head


def echo(sock):
    while data := sock.recv(65536):
        sock.sendall(data)


def web(sock):
    """Answer one request with what was asked for."""
    head = read_head(sock)
    length = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
              if line.lower().startswith(b"content-length:")]
    body = read_exactly(sock, length[0] if length else 0)
    answer = head + body
    sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                 % (len(answer), answer))


@pytest.fixture
def echo_server():
    with Server(echo) as server:
        yield server


@pytest.fixture
def web_server():
    with Server(web) as server:
        yield server


def local(server):
    return f"127.0.0.1:{server.port}"


# What goes through


def test_a_tunnel_carries_every_byte_untouched(echo_server):
    with Proxy(local(echo_server)) as proxy:
        with proxy.tunnel("127.0.0.1", echo_server.port) as sock:
            hello = bytes([0x16, 3, 1, 2, 0, 1]) + bytes(range(256)) + b"\r\n\r\nGET http://x/ HTTP/1.1"
            sock.sendall(hello)
            assert read_exactly(sock, len(hello)) == hello
        assert proxy.wait_event("allowed")[1:4] == ("connect", "127.0.0.1", echo_server.port)
        assert proxy.wait_event("closed")[4:6] == (len(hello), len(hello))


def test_bytes_sent_along_with_the_request_are_not_lost(echo_server):
    with Proxy(local(echo_server)) as proxy, proxy.connect() as sock:
        sock.sendall(b"CONNECT %s HTTP/1.1\r\n\r\nearly" % local(echo_server).encode())
        assert read_head(sock).startswith(b"HTTP/1.1 200 ")
        assert read_exactly(sock, 5) == b"early"


def test_a_plain_request_is_rewritten_for_its_origin(web_server):
    with Proxy(local(web_server)) as proxy:
        got = proxy.ask(
            b"GET http://%s/a?b=c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic x\r\n"
            b"Proxy-Connection: keep-alive\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n"
            b"Upgrade: h2c\r\nTE: trailers\r\nAccept: */*\r\n\r\n" % local(web_server).encode())
    head, body = got.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert body == (b"GET /a?b=c HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nAccept: */*\r\n\r\n"
                    % local(web_server).encode())


def test_the_http_client_of_python_works_through_it(web_server):
    with Proxy(local(web_server)) as proxy:
        client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=WAIT)
        client.request("POST", f"http://{local(web_server)}/p", body=b"hello")
        answer = client.getresponse()
        assert answer.status == 200 and answer.read().endswith(b"\r\n\r\nhello")
        client.close()
        client = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=WAIT)
        client.set_tunnel("127.0.0.1", web_server.port)
        client.request("GET", "/tunnelled")
        assert client.getresponse().read().startswith(b"GET /tunnelled HTTP/1.1\r\n")
        client.close()


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
@pytest.mark.parametrize("scheme, more", [
    ("http", []), ("http", ["--proxytunnel"]), ("socks5", []), ("socks5h", []),
    ("socks5h", ["--proxy-user", "any:thing"])])
def test_curl_works_through_it(web_server, scheme, more):
    with Proxy(local(web_server)) as proxy:
        done = subprocess.run(
            ["curl", "-sS", "-m", str(WAIT), "-x", f"{scheme}://127.0.0.1:{proxy.port}", *more,
             "--noproxy", "", f"http://{local(web_server)}/c"], capture_output=True, check=True)
    assert done.stdout.startswith(b"GET /c HTTP/1.1\r\n")


def chunked(sock):
    head = read_head(sock)
    assert b"Transfer-Encoding: chunked\r\n" in head
    body = b""
    while not body.endswith(b"0\r\n\r\n"):
        body += sock.recv(65536)
    sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)


def test_a_chunked_body_ends_where_its_chunks_end():
    with Server(chunked) as server, Proxy(local(server)) as proxy:
        got = proxy.ask(b"PUT http://%s/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"5\r\nhello\r\n0\r\n\r\nGET /second HTTP/1.1\r\n\r\n"
                        % local(server).encode())
    assert got.endswith(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")


def socks(sock, request, methods=b"\x00"):
    sock.sendall(b"\x05" + bytes([len(methods)]) + methods)
    answer = read_exactly(sock, 2)
    assert answer[1] == methods[0]
    sock.sendall(request)
    return read_exactly(sock, 10)


@pytest.mark.parametrize("kind, address", [
    (b"\x01", socket.inet_aton("127.0.0.1")),
    (b"\x03", b"\x09127.0.0.1"),
    (b"\x04", socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1"))])
def test_socks_reaches_addresses_in_each_form(echo_server, kind, address):
    with Proxy(local(echo_server)) as proxy, proxy.connect() as sock:
        request = b"\x05\x01\x00" + kind + address + struct.pack(">H", echo_server.port)
        assert socks(sock, request)[1] == 0
        sock.sendall(b"ping")
        assert read_exactly(sock, 4) == b"ping"


def test_names_are_resolved_outside_and_the_address_must_be_allowed(echo_server):
    with Dns({"box.example.org": [["127.0.0.1"]]}) as dns:
        names = f"box.example.org:{echo_server.port}"
        with Proxy(names, local(echo_server), dns=dns.server) as proxy:
            with proxy.tunnel("BOX.example.org.", echo_server.port) as sock:
                sock.sendall(b"ping")
                assert read_exactly(sock, 4) == b"ping"
        with Proxy(names, dns=dns.server) as proxy:
            got = proxy.ask(b"CONNECT %s HTTP/1.1\r\n\r\n" % names.encode())
            assert got.startswith(b"HTTP/1.1 403 ")
            assert f"--net allow=127.0.0.1:{echo_server.port} would allow it\n".encode() in got
            assert "loopback" in proxy.wait_event("refused")[6]


# What is refused


def test_a_refusal_says_what_would_allow_it():
    with Proxy("example.org") as proxy:
        got = proxy.ask(b"CONNECT www.example.org:8443 HTTP/1.1\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 403 Forbidden: this sandbox may not reach port 8443 of that "
                              b"name; --net allow=www.example.org:8443 would allow it\r\n")
        assert got.endswith(b"; --net allow=www.example.org:8443 would allow it\n")
        kind, protocol, host, port, *_ = proxy.wait_event("refused")
        assert (protocol, host, port) == ("connect", "www.example.org", 8443)
        with proxy.connect() as sock:
            name = b"www.example.org"
            assert socks(sock, b"\x05\x01\x00\x03" + bytes([len(name)]) + name + b"\x01\xbb")[1] == 2
            assert sock.recv(1) == b""


def test_nobody_is_asked_about_a_name_that_is_refused():
    with Dns({}) as dns, Proxy("example.org", dns=dns.server) as proxy:
        for host in ("secret.attacker.example", "example.org.attacker.example", "badexample.org"):
            assert proxy.ask(f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode()).startswith(
                b"HTTP/1.1 403 ")
        assert proxy.ask(b"CONNECT example.org:22 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")
        assert dns.asked == []
        assert proxy.ask(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 502 ")
        assert {name for name, _ in dns.asked} == {"example.org"}


def test_a_name_is_resolved_once_for_a_connection(echo_server):
    """Rebinding: the first answer may be dialled, every later one is a trap."""
    with Server(echo, "127.0.0.2") as trap:
        table = {"re.example.org": [["127.0.0.1"], ["127.0.0.2"]]}
        with Dns(table) as dns, Proxy(f"re.example.org:{echo_server.port}", local(echo_server),
                                      dns=dns.server) as proxy:
            with proxy.tunnel("re.example.org", echo_server.port) as sock:
                sock.sendall(b"ping")
                assert read_exactly(sock, 4) == b"ping"
            assert dns.asked.count(("re.example.org", "A")) == 1
            got = proxy.ask(b"CONNECT re.example.org:%d HTTP/1.1\r\n\r\n" % echo_server.port)
            assert got.startswith(b"HTTP/1.1 403 ") and b"127.0.0.2" in got
        assert trap.accepted == 0


def test_addresses_of_a_name_that_are_not_public_are_left_out(echo_server):
    """A public name with a forbidden address beside the allowed one."""
    table = {"mix.example.org": [["10.1.2.3", "169.254.169.254", "127.0.0.1", "::1"]]}
    with Dns(table) as dns, Proxy(f"mix.example.org:{echo_server.port}", local(echo_server),
                                  dns=dns.server) as proxy:
        with proxy.tunnel("mix.example.org", echo_server.port) as sock:
            sock.sendall(b"ping")
            assert read_exactly(sock, 4) == b"ping"


@pytest.mark.parametrize("host", [
    "127.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "0.0.0.0",
    "169.254.169.254", "10.0.0.1", "loop.example.org", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1%25lo]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "a..b", "a b", "127.0.0.1@example.org", "example.org%00.x"])
def test_ways_to_write_the_loopback_do_not_help(echo_server, host):
    """Every name and every network is allowed, and yet no address that is not public."""
    port = echo_server.port
    with Dns({"loop.example.org": [["127.0.0.1", "::1"]]}) as dns:
        with Proxy(f"*:{port}", f"0.0.0.0/0:{port}", f"[::/0]:{port}", dns=dns.server) as proxy:
            got = proxy.ask(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    assert got[:13] in (b"HTTP/1.1 403 ", b"HTTP/1.1 400 ")
    assert echo_server.accepted == 0


def test_an_address_of_this_machine_needs_an_entry_of_its_own(echo_server):
    with Server(echo, "127.0.0.2") as other:  # on the loopback's network, and no interface's address
        with Proxy(f"127.0.0.0/8:{echo_server.port}", f"127.0.0.0/8:{other.port}") as proxy:
            got = proxy.ask(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % echo_server.port)
            assert got.startswith(b"HTTP/1.1 403 ")
            proxy.tunnel("127.0.0.2", other.port).close()
    assert echo_server.accepted == 0


def test_the_proxy_does_not_dial_itself():
    with Proxy() as probe:
        port = probe.port  # free again in a moment, and then asked for
    with Proxy(f"127.0.0.1:{port}", port=port) as proxy:
        got = proxy.ask(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        assert got.startswith(b"HTTP/1.1 403 ") and b"this proxy" in got


@pytest.mark.parametrize("request_bytes, status", [
    (b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", 400),
    (b"GET https://example.org/ HTTP/1.1\r\n\r\n", 400),
    (b"GET http://example.org/ HTTP/2.0\r\n\r\n", 400),
    (b"GET http://example.org/ HTTP/1.1\n\n", 400),
    (b"GET http://example.org/ HTTP/1.1\r\nA: b\n\r\n", 400),
    (b"GET http://example.org/ HTTP/1.1\r\nA : b\r\n\r\n", 400),
    (b"GET http://example.org/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
    (b"GET http://example.org/ HTTP/1.1\r\nA: b\rc\r\n\r\n", 400),
    (b"GET http://example.org/ HTTP/1.1\r\nA: b\0c\r\n\r\n", 400),
    (b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
    (b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     400),
    (b"POST http://example.org/ HTTP/1.1\r\nContent-Length: +1\r\n\r\nx", 400),
    (b"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    (b"GET http://example.org/ HTTP/1.1\r\nA: " + b"x" * 17000 + b"\r\n\r\n", 431),
])
def test_malformed_requests_are_refused(request_bytes, status):
    with Dns({}) as dns, Proxy("example.org", dns=dns.server) as proxy:
        got = proxy.ask(request_bytes)
        assert got.startswith(b"HTTP/1.1 %d " % status)
        assert proxy.wait_event("refused")[2] == "-"
        assert dns.asked == []


def test_socks4_is_refused_in_its_own_words():
    with Proxy("example.org") as proxy:
        assert proxy.ask(b"\x04\x01\x01\xbb\x7f\x00\x00\x01\x00") == b"\x00\x5b" + bytes(6)


@pytest.mark.parametrize("request_bytes, reply", [
    (b"\x05\x02\x00\x01\x7f\x00\x00\x01\x01\xbb", 7),
    (b"\x05\x03\x00\x01\x7f\x00\x00\x01\x01\xbb", 7),
    (b"\x05\x01\x00\x09\x7f\x00\x00\x01\x01\xbb", 8),
    (b"\x05\x01\x00\x03\x0eexample.org\x00.x\x01\xbb", 2),
    (b"\x05\x01\x00\x03\x00\x01\xbb", 2)])
def test_socks_requests_that_are_not_for_us_are_refused(request_bytes, reply):
    with Proxy("example.org") as proxy, proxy.connect() as sock:
        assert socks(sock, request_bytes)[1] == reply
        assert sock.recv(1) == b""


# Time, and numbers


def test_a_client_that_never_finishes_its_request_is_sent_away():
    with Proxy("example.org", handshake_ms=300) as proxy, proxy.connect() as sock:
        sock.sendall(b"GET http://exam")
        for _ in range(4):
            time.sleep(0.05)
            sock.sendall(b"p")  # each byte is progress, and buys no time
        assert read_all(sock).startswith(b"HTTP/1.1 408 ")
        assert "in time" in proxy.wait_event("refused")[6]


def test_a_server_that_never_answers_is_given_up():
    with Server(lambda sock: sock.recv(1) and time.sleep(WAIT)) as server:
        with Proxy(local(server), idle_ms=300) as proxy:
            with proxy.connect() as sock, pytest.raises(ConnectionResetError):
                sock.sendall(b"GET http://%s/ HTTP/1.1\r\n\r\n" % local(server).encode())
                read_all(sock)
            assert proxy.wait_event("closed")[5] == 0


def test_a_name_server_that_never_answers_is_given_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with Proxy("example.org", dns=f"127.0.0.1:{silent.getsockname()[1]}",
                   connect_ms=300) as proxy:
            got = proxy.ask(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")
            assert got.startswith(b"HTTP/1.1 504 ")
            assert proxy.wait_event("failed")[2] == "example.org"


def test_a_port_where_nobody_listens_is_an_answer():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with Proxy(f"127.0.0.1:{port}") as proxy:
            got = proxy.ask(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            assert got.startswith(b"HTTP/1.1 502 ") and b"Connection refused" in got


def test_the_client_may_end_its_half_first():
    def count(sock):
        sock.sendall(b"%d" % len(read_all(sock)))

    with Server(count) as server, Proxy(local(server)) as proxy:
        with proxy.tunnel("127.0.0.1", server.port) as sock:
            sock.sendall(b"x" * 300000)
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"300000"
        assert proxy.wait_event("closed")[4:6] == (300000, 6)


def test_the_server_may_end_its_half_first():
    got = []

    def close_then_read(sock):
        sock.sendall(b"bye")
        sock.shutdown(socket.SHUT_WR)
        got.append(read_all(sock))

    with Server(close_then_read) as server, Proxy(local(server)) as proxy:
        with proxy.tunnel("127.0.0.1", server.port) as sock:
            assert read_all(sock) == b"bye"
            sock.sendall(b"y" * 200000)
            sock.shutdown(socket.SHUT_WR)
            assert proxy.wait_event("closed")[4:6] == (200000, 3)
    assert got == [b"y" * 200000]


def test_a_client_that_vanishes_takes_its_connection_outside_along():
    gone = threading.Event()

    def wait_for_the_end(sock):
        try:
            read_all(sock)
        except OSError:
            pass
        gone.set()

    with Server(wait_for_the_end) as server, Proxy(local(server)) as proxy:
        sock = proxy.tunnel("127.0.0.1", server.port)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        assert gone.wait(WAIT)
        proxy.wait_event("closed")


def test_three_hundred_clients_at_once_are_all_served(echo_server):
    done = []

    def one(number):
        with proxy.tunnel("127.0.0.1", echo_server.port) as sock:
            message = b"%d" % number
            sock.sendall(message)
            done.append(read_exactly(sock, len(message)) == message)

    with Proxy(local(echo_server)) as proxy:
        threads = [threading.Thread(target=one, args=(n,)) for n in range(300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=WAIT)
        assert done == [True] * 300


def test_more_connections_than_allowed_wait_their_turn(echo_server):
    with Proxy(local(echo_server), connections=4) as proxy:
        held = [proxy.tunnel("127.0.0.1", echo_server.port) for _ in range(4)]
        with proxy.connect() as fifth:
            fifth.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % local(echo_server).encode())
            fifth.settimeout(0.3)
            with pytest.raises(TimeoutError):
                fifth.recv(1)
            fifth.settimeout(WAIT)
            held.pop().close()
            assert read_head(fifth).startswith(b"HTTP/1.1 200 ")
        for sock in held:
            sock.close()


def test_a_slow_reader_holds_up_its_server_and_not_our_memory():
    sent = []

    def pour(sock):
        sock.settimeout(0.5)
        try:
            while True:
                sent.append(sock.send(b"z" * 65536))
        except TimeoutError:
            pass

    with Server(pour) as server, Proxy(local(server)) as proxy:
        with proxy.tunnel("127.0.0.1", server.port):
            proxy.wait_event("allowed")
            time.sleep(1)
            status = open(f"/proc/{proxy.process.pid}/status").read()
            assert len(sent) > 0
            if "PINFOLD_WRAPPER" not in os.environ and "PINFOLD_SANITIZED" not in os.environ:
                assert int(status.split("VmRSS:")[1].split()[0]) < 16 * 1024


def test_large_streams_arrive_whole_both_ways(echo_server):
    data = os.urandom(1 << 20) * 16
    with Proxy(local(echo_server)) as proxy:
        with proxy.tunnel("127.0.0.1", echo_server.port) as sock:
            def send():
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)

            sender = threading.Thread(target=send)
            sender.start()
            got = hashlib.sha256(read_all(sock)).digest()
            sender.join(timeout=WAIT)
        assert got == hashlib.sha256(data).digest()
        assert proxy.wait_event("closed")[4:6] == (len(data), len(data))


def test_stopping_with_connections_open_ends_them(echo_server):
    with Proxy(local(echo_server)) as proxy:
        sock = proxy.tunnel("127.0.0.1", echo_server.port)
    with sock, pytest.raises(ConnectionResetError):
        read_all(sock)


# The helper for ssh


def helper(proxy, *args, **kw):
    env = {"ALL_PROXY": f"http://127.0.0.1:{proxy.port}"}
    return subprocess.run([os.environ["PINFOLD_CONNECT"], *args], env=env, timeout=WAIT,
                          capture_output=True, **kw)


def test_the_helper_carries_standard_input_and_output(echo_server):
    data = os.urandom(300000)
    with Proxy(local(echo_server)) as proxy:
        done = helper(proxy, "127.0.0.1", str(echo_server.port), input=data)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_the_helper_says_why_it_cannot():
    with Proxy("example.org") as proxy:
        done = helper(proxy, "git.example.org", "22", stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and done.stdout == b""
    assert b"--net allow=git.example.org:22 would allow it\n" in done.stderr


def helper_with(env, *args, **kw):
    kw.setdefault("input", b"")
    return subprocess.run([os.environ["PINFOLD_CONNECT"], *args], env=env, capture_output=True,
                          timeout=WAIT, **kw)


def test_the_helper_needs_a_proxy():
    done = helper_with({}, "x", "22")
    assert done.returncode == 1 and b"no network" in done.stderr


@pytest.mark.parametrize("variable", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize("host", ["127.0.0.1", "LocalHost"])
def test_the_helper_connects_directly_where_no_proxy_says_so(echo_server, variable, host):
    env = {"ALL_PROXY": "http://127.0.0.1:1", variable: "example.org, localhost , 127.0.0.1"}
    done = helper_with(env, host, str(echo_server.port), input=b"straight on")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"straight on", b"")


def test_the_helper_connects_directly_by_ipv6():
    done = helper_with({"no_proxy": "::1"}, "::1", "1")  # where nobody listens, or there is no IPv6
    assert done.returncode == 1 and done.stderr.startswith(b"pinfold-connect: connect to ::1: ")


@pytest.mark.parametrize("env, args, words", [
    ({"no_proxy": "example.org"}, ("example.org", "22"), b"not an address: example.org"),
    ({"no_proxy": "127.0.0.1"}, ("127.0.0.1", "70000"), b"not a port: 70000"),
    ({"no_proxy": "127.0.0.1"}, ("127.0.0.1", "ssh"), b"not a port: ssh"),
    # The list names whole hosts: what only begins or ends so goes to the proxy.
    ({"no_proxy": "127.0.0.11,7.0.0.1"}, ("127.0.0.1", "22"), b"no network"),
    ({"ALL_PROXY": "socks5://127.0.0.1:1"}, ("x", "22"), b"no network"),
    ({"ALL_PROXY": "http://proxy.example:80"}, ("x", "22"), b"not http://ADDRESS:PORT: "),
    ({"ALL_PROXY": "http://127.0.0.1:99999"}, ("x", "22"), b"not http://ADDRESS:PORT: "),
])
def test_the_helper_says_what_it_cannot_use(env, args, words):
    done = helper_with(env, *args)
    assert (done.returncode, done.stdout) == (1, b"")
    assert words in done.stderr


def test_the_helper_says_how_it_is_used():
    done = helper_with({}, "x")
    assert (done.returncode, done.stderr) == (2, b"usage: pinfold-connect HOST PORT\n")


@pytest.mark.parametrize("answer, words", [
    (b"", b"the proxy hung up\n"),
    (b"HTTP/1.1 200", b"the proxy hung up\n"),
    (b"SSH-2.0-x 200\r\n\r\nnot that\n", b"not that\n"),
    (b"HTTP/1.1 502 no\r\n\r\nnot that\n", b"not that\n"),
])
def test_the_helper_is_told_no_by_a_proxy(answer, words):
    def say(sock):
        read_head(sock)
        sock.sendall(answer)
    with Server(say) as proxy:
        done = helper_with({"https_proxy": f"http://127.0.0.1:{proxy.port}"}, "x", "22")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.endswith(words)


def test_the_helper_does_not_send_half_a_name():
    asked = []
    with Server(lambda sock: asked.append(read_all(sock))) as proxy:
        done = helper_with({"ALL_PROXY": f"http://127.0.0.1:{proxy.port}"}, "x" * 2000, "22")
    assert done.returncode == 1 and b"too long a host name" in done.stderr
    assert set(asked) <= {b""}


@pytest.mark.parametrize("url", [
    "http://", "http://127.0.0.1", "http://127.0.0.1:", "http://127.0.0.1:0", "http://:3128",
    "http://127.0.0.1:65536", "http://127.0.0.1:4294970424", "http://127.0.0.1:-1",
    "http://127.0.0.1: 3128", "http://127.0.0.1x3128", "http://localhost:3128", "http://1.2.3:3128",
    "http://127.0.0.1111111111111111111:3128", "http://127.000000000.0.1:3128"])
def test_the_helper_takes_no_odd_proxy(url):
    done = helper_with({"ALL_PROXY": url}, "x", "22")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"pinfold-connect: not http://ADDRESS:PORT: " + url.encode() + b"\n"


# From inside a network namespace


def test_it_serves_a_socket_of_another_network_namespace(echo_server):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(WAIT)
        inside = subprocess.Popen(["unshare", "-Urn", sys.executable, "-c", INSIDE,
                                   str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                  stderr=subprocess.PIPE)
        theirs.close()
        try:
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
            if not fds:
                reason = inside.stderr.read().decode()
                pytest.skip(f"no network namespace here: {reason}")
            with Proxy(local(echo_server), fd=fds[0], pass_fds=fds) as proxy:
                ours.sendall(b"%d" % echo_server.port)
                direct, got = ast.literal_eval(ours.recv(4096).decode())
                assert direct == "ConnectionRefusedError"
                assert got.startswith(b"HTTP/1.1 200 ") and got.endswith(b"\r\n\r\nping")
                assert proxy.wait_event("allowed")[3] == echo_server.port
            os.close(fds[0])
        finally:
            ours.close()
            inside.wait(timeout=WAIT)
            inside.stderr.close()
