#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A backend of one's own: a workspace that is a dictionary. See docs/python.md."""

from __future__ import annotations

import asyncio

from pinfold import FileInfo, Sandbox


class DictBackend:
    """Files in memory; it runs no commands. Methods could be coroutines just as well."""

    def __init__(self) -> None:
        self.files: dict[str, str | bytes] = {}

    def read_file(self, path: str) -> str | bytes:
        """str or bytes; what is missing is a FileNotFoundError."""
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def write_file(self, path: str, content: str | bytes) -> None:
        """str for what is text."""
        self.files[path] = content

    def list_dir(self, path: str) -> list[FileInfo]:
        """Entries of one directory, in any order."""
        prefix = "" if path == "." else path + "/"
        names = {name[len(prefix):].split("/")[0] for name in self.files if name.startswith(prefix)}
        return [FileInfo(prefix + name, prefix + name not in self.files) for name in names]

    def remove_file(self, path: str) -> None:
        """A file."""
        del self.files[path]


async def main() -> None:
    """Use it as any other."""
    async with Sandbox("memory", DictBackend(), ttl_seconds=60) as sandbox:
        await sandbox.add_files({"notes/a.md": "# A", "notes/b.md": "# B"})
        await sandbox.move_file("notes/b.md", "notes/c.md")
        for entry in await sandbox.list_dir("notes"):
            print(entry.path, await sandbox.read_file(entry.path))


if __name__ == "__main__":
    asyncio.run(main())
