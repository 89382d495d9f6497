# SPDX-License-Identifier: Apache-2.0
"""TLS before the fake of a service, which speaks none, with certificates of the test's own."""

import contextlib
import socket
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Iterator

from remote_runner import RemoteRunner

# Who is trusted: the server's certificate, those that variables name, and what an error is to say;
# "": there is none.
TRUST = [
    ("good", {}, "SSL_CERT_FILE"),
    ("good", {"SSL_CERT_FILE": ""}, "SSL_CERT_FILE"),
    ("good", {"SSL_CERT_FILE": "elsewhere"}, "SSL_CERT_FILE"),
    ("good", {"SSL_CERT_FILE": "missing"}, "missing.pem"),
    ("good", {"SSL_CERT_FILE": "good"}, ""),
    ("elsewhere", {"SSL_CERT_FILE": "elsewhere"}, "localhost"),
    ("old", {"SSL_CERT_FILE": "old"}, "expired"),
]


def make_certificate(place: Path, name: str, host: str, days: int) -> None:
    """Of host, in NAME.pem, and its key in NAME.key; with fewer than 0 days it is over."""
    (place / "extension").write_text(f"subjectAltName=DNS:{host}\n")
    request, key = place / "request", place / f"{name}.key"
    for words in (
        ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=a test", "-keyout", key, "-out", request],
        ["x509", "-req", "-in", request, "-signkey", key, "-extfile", place / "extension",
         "-days", str(days), "-out", place / f"{name}.pem"],
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


@contextlib.contextmanager
def certificates() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pinfold-tls-") as path:
        place = Path(path)
        make_certificate(place, "good", "localhost", 2)
        make_certificate(place, "elsewhere", "elsewhere.example", 2)
        make_certificate(place, "old", "localhost", -1)
        yield place


def shut_down(one: socket.socket) -> None:
    """After the shutdown of ssl's own, a thread that reads would get the records as they are."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(one, socket.SHUT_RDWR)


class End:
    """Takes connections, and serves each on a thread of its own."""

    def __init__(self) -> None:
        self.count = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.target = self._listener.getsockname()
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for one in self._sockets:
            shut_down(one)
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.count += 1
            self._sockets.append(client)
            self._threads.append(threading.Thread(target=self._run, args=[client]))
            self._threads[-1].start()

    def _run(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        raise NotImplementedError


def relay(client: socket.socket, target: tuple[str, int]) -> bytes:
    """Hand on what comes on both sides, until both end; what the client said."""
    with socket.create_connection(target) as server:
        back = threading.Thread(target=hand_on, args=[server, client])
        back.start()
        said = hand_on(client, server)
        back.join(60)
    return said


def hand_on(source: socket.socket, to: socket.socket) -> bytes:
    said = b""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            said += data
            to.sendall(data)
    shut_down(to)
    return said


class TlsEnd(End):
    """Takes connections of TLS, and hands what comes on them to where."""

    def __init__(self, where: tuple[str, int], certificate: Path) -> None:
        self.where, self.told = where, 0  # bytes that came, and not as TLS's own
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        super().__init__()
        self.address = f"https://localhost:{self.target[1]}"

    def _serve(self, client: socket.socket) -> None:
        shaken = self._context.wrap_socket(client, server_side=True)
        self._sockets.append(shaken)
        self.told += len(relay(shaken, self.where))


@contextlib.contextmanager
def behind_tls(run: RemoteRunner, target: tuple[str, int], where: str, shown: str,
               variables: dict[str, str], place: Path | None = None) -> Iterator[TlsEnd]:
    """where: the variable of the service's address, '=', and what that is behind {}; place: of
    certificates() that there are."""
    name, address = where.split("=")
    with contextlib.ExitStack() as stack:
        place = place or stack.enter_context(certificates())
        end = TlsEnd(target, place / f"{shown}.pem")
        for trusted in "SSL_CERT_FILE", "AWS_CA_BUNDLE":
            run.env.pop(trusted, None)
        run.env |= {trusted: which and f"{place}/{which}.pem"
                    for trusted, which in variables.items()}
        run.env[name] = address.format(end.address)
        try:
            yield end
        finally:
            end.close()


def only_who_is_vouched_for_is_trusted(run: RemoteRunner, target: tuple[str, int], where: str,
                                       shown: str, variables: dict[str, str],
                                       said: str) -> None:
    with behind_tls(run, target, where, shown, variables) as end:
        done = run("echo ran")
    if said:
        assert (done.returncode, done.stdout, end.told) == (125, "", 0), (done, end.told)
        assert said in done.stderr, done.stderr
        assert ("SSL_CERT_FILE" in done.stderr) == (said == "SSL_CERT_FILE"), done.stderr
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
        assert end.told > 0
