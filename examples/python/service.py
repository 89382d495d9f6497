#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small HTTP service that runs each request in a sandbox of its own.

    service.py [PORT]        then        curl --data 'echo hello; id' http://127.0.0.1:PORT/

The answer is what the command printed, its exit code in a header. A client that hangs up ends its
command. Port 0, the default, is any free one; the line that is printed says which.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from pinfold import ExecuteResult, IsolatedSandboxBackend, Limits, Sandbox

MAX_COMMAND = 64 * 1024
AT_ONCE = asyncio.Semaphore(16)
numbers = itertools.count()


async def run(command: str) -> ExecuteResult:
    """One command, in a sandbox that is gone afterwards."""
    backend = IsolatedSandboxBackend(timeout=10, limits=Limits(memory_bytes=256 << 20))
    async with AT_ONCE, Sandbox(f"request-{next(numbers)}", backend, ttl_seconds=60) as sandbox:
        return await sandbox.execute(command)


async def read_body(reader: asyncio.StreamReader) -> bytes:
    """The body of a request that says how long it is."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next((int(line.split(":")[1]) for line in head.split("\r\n")
                   if line.startswith("content-length:")), 0)
    if length > MAX_COMMAND:
        raise ValueError(f"more than {MAX_COMMAND} bytes")
    return await reader.readexactly(length)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, one request."""
    running: asyncio.Task[ExecuteResult] | None = None
    try:
        command = (await read_body(reader)).decode()
        running = asyncio.ensure_future(run(command))
        gone = asyncio.ensure_future(reader.read(1))
        await asyncio.wait([running, gone], return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if running.done():
            result = running.result()
            body = result.output.encode()
            head = (f"HTTP/1.1 200 OK\r\nX-Exit-Code: {result.exit_code}\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n")
            writer.write(head.encode() + body)
            await writer.drain()
    except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.write(f"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n{error}\n".encode())
    except ConnectionError:
        pass
    finally:
        if running is not None:
            running.cancel()
            await asyncio.wait([running])  # by then the command is dead
        writer.close()


async def main(port: int) -> None:
    """Serve until somebody presses Ctrl-C."""
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
    except KeyboardInterrupt:
        pass
