# SPDX-License-Identifier: Apache-2.0
"""What a sandbox's proxy moves, beside the same copy over the loopback without it.

python3 bench/egress.py BUILD: prints MB/s of both, three times, and the ratio.
"""

import multiprocessing
import socket
import subprocess
import sys
import time

TOTAL = 1 << 30
PIECE = bytes(1 << 18)


def pour(listener):
    while True:
        sock, _ = listener.accept()
        with sock:
            for _ in range(TOTAL // len(PIECE)):
                sock.sendall(PIECE)


def take(sock):
    """Read all of it; returns the seconds."""
    buffer = bytearray(1 << 18)
    begin, left = time.monotonic(), TOTAL
    while left > 0:
        got = sock.recv_into(buffer)
        assert got, "cut off"
        left -= got
    return time.monotonic() - begin


def connect(port, through):
    sock = socket.create_connection(("127.0.0.1", through or port))
    if through:
        sock.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
    return sock


def main(build):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    source = multiprocessing.Process(target=pour, args=(listener,), daemon=True)
    source.start()
    proxy = subprocess.Popen([f"{build}/tests/jail/egress_serve", f"127.0.0.1:{port}"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    through = int(proxy.stdout.readline().split()[1])
    for _ in range(3):
        speeds = []
        for way in (0, through):
            with connect(port, way) as sock:
                speeds.append(TOTAL / take(sock) / 1e6)
        print(f"direct {speeds[0]:.0f} MB/s, through the proxy {speeds[1]:.0f} MB/s, "
              f"ratio {speeds[1] / speeds[0]:.2f}")
    proxy.stdin.close()
    proxy.wait()
    source.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
