# SPDX-License-Identifier: Apache-2.0
"""Commands on a pseudo-terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from . import _check as check
from . import _pinfold
from ._loop import run
from ._results import TerminalExit

#: Rows and columns.
MOST_CELLS = 2**16 - 1
_MOST_BYTES = 1 << 20  # a terminal never holds as many


class Terminal:
    """A command on a terminal; Sandbox.open_terminal() starts one. Somebody has to read: a command
    that prints waits once the terminal holds some 64 KiB. To be closed, by "async with" say. Any
    loop and any thread may use it."""

    def __init__(self, core: _pinfold.Terminal):
        self._core = core

    async def read(self, size: int = 65536, timeout: float | None = None) -> bytes:
        """What it prints, at least a byte; b"" at the end. TimeoutError when there is nothing."""
        room = min(check.whole("size", size), _MOST_BYTES)
        data: bytes = await run(self._core.read(room, check.wait("timeout", timeout)))
        return data

    async def write(self, data: str | bytes, timeout: float | None = None) -> int:
        """Type; returns how many bytes were taken."""
        count: int = await run(self._core.write(data, check.wait("timeout", timeout)))
        return count

    async def wait(self, timeout: float | None = None) -> TerminalExit:
        """Until the command has ended. Somebody else should read meanwhile."""
        return TerminalExit(*await run(self._core.wait(check.wait("timeout", timeout))))

    def resize(self, rows: int, cols: int) -> None:
        """Another size; the command hears of it."""
        self._core.resize(check.whole("rows", rows, 0, MOST_CELLS),
                          check.whole("cols", cols, 0, MOST_CELLS))

    def send_signal(self, signal: int) -> None:
        """SIGINT, SIGQUIT or SIGTSTP, to the job in the foreground."""
        self._core.signal(check.whole("signal", signal, 1, 64))

    def kill(self) -> None:
        """Begin to kill everything that was started on it; wait() sees the end."""
        self._core.kill()

    async def close(self) -> None:
        """Kill what still runs, and wait until it is gone. Reads and waits of others end."""
        await run(self._core.close())

    async def __aenter__(self) -> Terminal:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()
