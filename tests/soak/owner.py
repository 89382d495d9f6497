# SPDX-License-Identifier: Apache-2.0
"""Owner of one sandbox after the other, by the Python package, for the soak: the same questions and
answers as owner.c has."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from typing import Any

from pinfold import (AgentCoreSandboxTemplate, DaytonaSandboxTemplate, IsolatedSandboxBackend,
                     Limits, LocalSandboxBackend, Sandbox, SandboxError, WorkspaceSyncPolicy)

UNLIMITED = 2**64 - 1
OUTPUT = 8 << 20


class Owner:
    """The sandbox of the moment, if there is one."""

    sandbox: Sandbox

    async def open(self, backend: str, root: str, seed: str, dest: str, endpoint: str,
                   own_id: str) -> list[bytes]:
        made: Any
        if backend == "daytona":
            made = DaytonaSandboxTemplate(api_url=endpoint)
        elif backend.startswith("agentcore"):
            made = AgentCoreSandboxTemplate("us-west-2", endpoint=endpoint,
                                            long_commands=backend.endswith("tasks"))
        elif backend == "local":
            made = LocalSandboxBackend(root)
        else:
            made = IsolatedSandboxBackend(
                root or None, limits=Limits(workspace_bytes=UNLIMITED),
                seed_mode="overlay" if backend == "overlay" else "copy")
        policy = WorkspaceSyncPolicy(sync_include_patterns=["src/**", "*.md"])
        self.sandbox = Sandbox(own_id, made, 3600, seed_from=seed or None, sync_policy=policy,
                               sync_dest=dest or None)
        await self.sandbox.start()
        return []

    async def write(self, path: str, data: str) -> list[bytes]:
        await self.sandbox.write_file(path, data)
        return []

    async def read(self, path: str) -> list[bytes]:
        return [await self.sandbox.read_bytes(path)]

    async def delete(self, path: str) -> list[bytes]:
        await self.sandbox.delete_files([path])
        return []

    async def move(self, source: str, dest: str) -> list[bytes]:
        await self.sandbox.move_file(source, dest)
        return []

    async def run(self, command: str) -> list[bytes]:
        done = await self.sandbox.execute(command, max_output_bytes=OUTPUT)
        return [str(done.exit_code).encode(), done.stdout.encode()]

    async def flush(self) -> list[bytes]:
        done = await self.sandbox.flush()
        if done is not None and done.errors:
            raise OSError(f"{len(done.errors)} paths: {done.errors[0]}")
        return []

    async def stop(self) -> list[bytes]:
        if hasattr(self, "sandbox"):
            sandbox = self.sandbox
            del self.sandbox
            await sandbox.stop(sync=False)
        return []

    async def descriptors(self) -> list[bytes]:
        gc.collect()  # of what failed there may be cycles
        return [str(len(os.listdir("/proc/self/fd")) - 1).encode()]


def decode(word: str) -> str:
    return "" if word == "-" else bytes.fromhex(word).decode()


async def answer(owner: Owner, line: str) -> str:
    name, *words = line.split()
    try:
        found = await getattr(owner, name)(*map(decode, words))
    except (SandboxError, OSError, ValueError, RuntimeError, MemoryError) as error:
        return f"fail {type(error).__name__}: {error}".replace("\n", " ")
    return " ".join(["ok", *(data.hex() or "-" for data in found)])


async def main() -> None:
    owner = Owner()
    # Not by another thread: when memory fails as it tells the loop what it has read, nobody hears
    # of that line again. The loop has nothing else to do meanwhile.
    while line := sys.stdin.readline():
        print(await answer(owner, line), flush=True)


asyncio.run(main())
