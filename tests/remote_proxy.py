# SPDX-License-Identifier: Apache-2.0
"""A proxy between a command and a service behind TLS, which keeps all that is said to it."""

import contextlib
import socket
from typing import Iterator

import remote_tls
from remote_runner import RemoteRunner

OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"
USER = "user:sesame@"

# What variables say, {} being the proxy, and whether requests go by it.
WAYS = [
    ({"https_proxy": "http://{}"}, True),
    ({"HTTPS_PROXY": "{}"}, True),
    ({"all_proxy": "http://{}"}, True),
    ({"ALL_PROXY": "http://{}/"}, True),
    ({"https_proxy": "", "HTTPS_PROXY": "http://" + USER + "{}"}, True),
    ({"https_proxy": "http://{}", "no_proxy": ""}, True),
    ({"https_proxy": "http://{}", "no_proxy": "example.org,host"}, True),
    ({"https_proxy": "http://{}", "no_proxy": "example.org, localhost"}, False),
    ({"https_proxy": "http://{}", "NO_PROXY": "*"}, False),
    ({"http_proxy": "http://{}", "HTTP_PROXY": "http://{}"}, False),
    ({"https_proxy": "", "all_proxy": ""}, False),
]

REFUSALS = [
    b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
    b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 307 There\r\nLocation: http://localhost:9/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 20",
    b"",
]


class Proxy(remote_tls.End):
    """Lets a connection through to where CONNECT says, or always elsewhere, or gives another
    answer."""

    def __init__(self, answer: bytes = OPEN, elsewhere: tuple[str, int] | None = None) -> None:
        self.answer, self.elsewhere = answer, elsewhere
        self.heads: list[bytes] = []
        self.carried: list[bytes] = []
        super().__init__()
        self.name = "127.0.0.1:%d" % self.target[1]

    def _serve(self, client: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            data = client.recv(1)
            if not data:
                return
            head += data
        self.heads.append(head)
        client.sendall(self.answer)
        if self.answer == OPEN:
            host, port = head.split()[1].decode().rsplit(":", 1)
            self.carried.append(remote_tls.relay(client, self.elsewhere or (host, int(port))))
        remote_tls.shut_down(client)

    def hears_nothing_but_the_way(self, end: remote_tls.TlsEnd, secrets: list[str]) -> None:
        place = end.address.removeprefix("https://")
        for head in self.heads:
            first, *rest = head.decode().removesuffix("\r\n\r\n").split("\r\n")
            assert first == f"CONNECT {place} HTTP/1.1"
            fields = dict(line.split(": ", 1) for line in rest)
            assert fields.pop("Host") == place
            assert fields.keys() <= {"User-Agent", "Proxy-Connection", "Proxy-Authorization"}
        said = b"".join(self.heads + self.carried)
        assert not [one for one in secrets if one.encode() in said]


@contextlib.contextmanager
def behind_proxy(run: RemoteRunner, variables: dict[str, str], proxy: Proxy,
                 name: str = "") -> Iterator[Proxy]:
    run.env |= {one: value.format(name or proxy.name) for one, value in variables.items()}
    try:
        yield proxy
    finally:
        proxy.close()


TRUSTED = "good", {"SSL_CERT_FILE": "good"}


def requests_go_where_variables_say(run: RemoteRunner, service: tuple[str, int], where: str,
                                    secrets: list[str], variables: dict[str, str],
                                    by_proxy: bool) -> None:
    with remote_tls.behind_tls(run, service, where, *TRUSTED) as end, \
            behind_proxy(run, variables, Proxy()) as proxy:
        done = run("echo ran")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert end.told > 0
    assert len(proxy.heads) == len(proxy.carried) == (end.count if by_proxy else 0)
    proxy.hears_nothing_but_the_way(end, secrets)
    named = any(USER in value for value in variables.values())
    assert all((b"\r\nProxy-Authorization: Basic dXNlcjpzZXNhbWU=\r\n" in head) == named
               for head in proxy.heads)


def a_proxy_that_refuses_is_named(run: RemoteRunner, service: tuple[str, int], where: str,
                                  secrets: list[str], answer: bytes) -> None:
    with remote_tls.behind_tls(run, service, where, *TRUSTED) as end, \
            behind_proxy(run, {"https_proxy": f"http://{USER}{{}}"}, Proxy(answer)) as proxy:
        done = run("echo ran")
    assert (done.returncode, done.stdout, end.count) == (125, "", 0)
    assert f"https_proxy (http://{proxy.name})" in done.stderr, done.stderr
    assert "sesame" not in done.stderr
    assert proxy.heads
    proxy.hears_nothing_but_the_way(end, secrets)


def behind_a_proxy_it_is_the_service_that_is_verified(run: RemoteRunner, service: tuple[str, int],
                                                      where: str) -> None:
    """A proxy leads to another who has a certificate, but not that host's."""
    with remote_tls.certificates() as place:
        other = remote_tls.TlsEnd(service, place / "elsewhere.pem")
        variables = {"SSL_CERT_FILE": "elsewhere"}
        try:
            with remote_tls.behind_tls(run, service, where, "good", variables, place) as end, \
                    behind_proxy(run, {"https_proxy": "http://{}"},
                                 Proxy(elsewhere=other.target)) as proxy:
                done = run("echo ran")
        finally:
            other.close()
    assert (done.returncode, done.stdout, end.count, other.told) == (125, "", 0, 0)
    assert other.count > 0 and proxy.heads
    assert "'localhost'" in done.stderr, done.stderr


def a_proxy_of_tls_is_verified_as_a_service_is(run: RemoteRunner, service: tuple[str, int],
                                               where: str, shown: str) -> None:
    """shown: the certificate of the proxy; "good" is trusted, and no other."""
    with remote_tls.certificates() as place, \
            remote_tls.behind_tls(run, service, where, *TRUSTED, place) as end:
        proxy = Proxy()
        front = remote_tls.TlsEnd(proxy.target, place / f"{shown}.pem")
        try:
            with behind_proxy(run, {"https_proxy": "{}"}, proxy, front.address):
                done = run("echo ran")
        finally:
            front.close()
    if shown == "good":
        assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
        assert len(proxy.heads) == end.count > 0
    else:
        assert (done.returncode, done.stdout, proxy.heads, end.count) == (125, "", [], 0)
        assert f"https_proxy ({front.address})" in done.stderr, done.stderr
        assert "SSL_CERT_FILE" in done.stderr
