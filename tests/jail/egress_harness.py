# SPDX-License-Identifier: Apache-2.0
"""The proxy, servers for it to reach, and a name server, all on the loopback."""

import os
import queue
import socket
import struct
import subprocess
import threading

WAIT = 20  # seconds: longer than anything takes, unless it hangs


class Proxy:
    """A running proxy; events come from wait_event()."""

    def __init__(self, *allow, pass_fds=(), **tuning):
        options = [word for key, value in tuning.items()
                   for word in (f"--{key.replace('_', '-')}", str(value))]
        self.process = subprocess.Popen(
            [*os.environ.get("PINFOLD_WRAPPER", "").split(), os.environ["PINFOLD_EGRESS_SERVE"],
             *options, *allow], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            pass_fds=pass_fds)
        self.port = 0 if pass_fds else int(self.process.stdout.readline().split()[1])
        self.events = queue.Queue()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            kind, protocol, host, port, sent, received, reason = line.rstrip("\n").split(" ", 6)
            self.events.put((kind, protocol, host, int(port), int(sent), int(received), reason))

    def wait_event(self, kind):
        while True:
            event = self.events.get(timeout=WAIT)
            if event[0] == kind:
                return event

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        return sock

    def ask(self, data):
        """Send bytes, and return all that comes back."""
        with self.connect() as sock:
            sock.sendall(data)
            return read_all(sock)

    def tunnel(self, host, port):
        sock = self.connect()
        sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = read_head(sock)
        assert head.startswith(b"HTTP/1.1 200 "), head
        return sock

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        code = self.process.wait(timeout=WAIT)
        self.reader.join()
        self.process.stdout.close()
        assert code == 0, f"the proxy ended with {code}"


class Server:
    """Accepts on the loopback, and hands each connection to a function on a thread."""

    def __init__(self, handler, address="127.0.0.1"):
        self.listener = socket.create_server((address, 0), backlog=512)
        self.address, self.port = self.listener.getsockname()
        self.handler = handler
        self.accepted = 0
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._handle, args=(sock,), daemon=True).start()

    def _handle(self, sock):
        with sock:
            sock.settimeout(WAIT)
            try:
                self.handler(sock)
            except OSError:
                pass  # the test has hung up

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=WAIT)


class Dns:
    """Answers A queries from a table: name -> list of answers, one for each time it is asked."""

    def __init__(self, table):
        self.table = table
        self.asked = []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.server = f"127.0.0.1:{self.sock.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while True:
            query, peer = self.sock.recvfrom(2048)
            if query == b"stop":
                return
            self.sock.sendto(self._answer(query), peer)

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += query[at] + 1
        name, kind = ".".join(labels), struct.unpack(">H", query[at + 1:at + 3])[0]
        self.asked.append((name, {1: "A", 28: "AAAA"}.get(kind, str(kind))))
        times = self.asked.count((name, "A" if kind == 1 else "AAAA"))
        answers = self.table.get(name, [[]])
        addresses = answers[min(times, len(answers)) - 1]
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        aliases = [a[6:] for a in addresses if a.startswith("cname:")]
        addresses = [a for a in addresses if not a.startswith("cname:")]
        wanted = [a for a in addresses if (":" in a) == (kind == 28)]
        owner, chain = b"\xc0\x0c", b""
        for alias in aliases:  # each is an alias of the next, and the addresses are the last one's
            data = b"".join(bytes([len(part)]) + part.encode() for part in alias.split(".")) + b"\0"
            chain += owner + struct.pack(">HHIH", 5, 1, 0, len(data)) + data
            owner = data
        code = 0x8180 if name in self.table else 0x8183
        records = b"".join(
            owner + struct.pack(">HHIH", kind, 1, 0, 4 if kind == 1 else 16)
            + socket.inet_pton(family, a) for a in wanted)
        return (query[:2] + struct.pack(">HHHHH", code, 1, len(aliases) + len(wanted), 0, 0)
                + query[12:at + 5] + chain + records)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        host, port = self.sock.getsockname()
        self.sock.sendto(b"stop", (host, port))
        self.thread.join(timeout=WAIT)
        self.sock.close()


def read_all(sock):
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        assert part, f"the end after {len(data)} of {size} bytes"
        data += part
    return data


def read_head(sock):
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        part = sock.recv(1)
        if not part:
            break
        data += part
    return data


# Runs in a network namespace of its own: listens where a sandbox's proxy does, hands the socket
# out, and then tries what it is told to.
INSIDE = r"""
import fcntl, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, 0x8914, struct.pack("16sH22x", b"lo", 0x41))  # SIOCSIFFLAGS: up, running
out = socket.socket(fileno=int(sys.argv[1]))
listener = socket.create_server(("127.0.0.1", 3128))
socket.send_fds(out, [b"x"], [listener.fileno()])
listener.close()
while port := int(out.recv(16) or 0):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        direct = "open"
    except OSError as error:
        direct = error.__class__.__name__
    with socket.create_connection(("127.0.0.1", 3128), timeout=20) as proxy:
        proxy.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\nping" % port)
        got = b""
        while not got.endswith(b"ping") and (part := proxy.recv(4096)):
            got += part
    out.sendall(repr((direct, got)).encode())
"""
