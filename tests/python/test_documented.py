# SPDX-License-Identifier: Apache-2.0
"""Every Python block of the specification runs as it stands."""

import json
import os
import re
from pathlib import Path

import pytest
from pinfold import IsolatedSandboxBackend, Sandbox

from owners import BUILD
from support import SPEC, run

if not SPEC.is_dir():
    pytest.skip("the specification is not here", allow_module_level=True)

# What a Python has that has loaded a sanitizer, for a build that needs it.
SANITIZER = {name: os.environ[name] for name in ("LD_PRELOAD", "PYTHONMALLOC", "ASAN_OPTIONS",
                                                 "UBSAN_OPTIONS") if name in os.environ}
TESTS = Path(__file__).resolve().parents[1]
FILES = ("sandbox-api.txt", "sandbox-backends.txt")

# How lines of code begin, in text that has no other marks of it.
BEGINS = re.compile(r"(from [\w.]+ import |import \w+$|await \w+\.|async (with|def) |"
                    r"sandbox\.\w+\(|asyncio\.run\(|\w+\($|"
                    r"SandboxManager\(ttl|supports_execution\(backend)")
GOES_ON = re.compile(r"[ )#]")


def is_code(paragraph: list[str]) -> bool:
    return all(BEGINS.match(line) or GOES_ON.match(line) for line in paragraph)


def blocks_of(text: str) -> list[str]:
    """Paragraphs that are code. What is imported is used after a blank line, and what is defined is
    run: the block goes on."""
    found: list[str] = []
    goes_on = False
    for paragraph in re.split(r"\n\n+", text):
        lines = paragraph.splitlines()
        if not is_code(lines):
            goes_on = False
        elif goes_on and (lines[0].startswith(" ") or found[-1].startswith(("import", "from"))):
            found[-1] += "\n\n" + paragraph
        else:
            found.append(paragraph)
            goes_on = True
    return found


BLOCKS = {name: blocks_of((SPEC / name).read_text(encoding="utf-8")) for name in FILES}


def test_all_of_it_is_found() -> None:
    for name, blocks in BLOCKS.items():
        text, code = (SPEC / name).read_text(encoding="utf-8"), "\n".join(blocks)
        for line in text.splitlines():
            if re.match(r"\s*(from elsai\S* import|import |async |await |sandbox\.\w+\()", line):
                assert line in code.splitlines(), line
    assert [len(blocks) for blocks in BLOCKS.values()] == [29, 4]


def machine(place: Path) -> Path:
    """A root on which /path and /host are directories that can be written: those of the workspace.
    """
    for name in "usr", "etc", "tmp", "dev", "proc", "workspace":
        (place / name).mkdir(parents=True)
    for path in BUILD, TESTS:
        place.joinpath(*path.parts[1:]).mkdir(parents=True, exist_ok=True)
    for name in "bin", "sbin", "lib", "lib64":
        (place / name).symlink_to(f"usr/{name}")
    for name in "path", "host":
        (place / name).symlink_to(f"workspace/{name}")
    return place


def test_documented_code_runs_as_it_stands(tmp_path: Path) -> None:
    """Inside a sandbox, on a machine that has what the code names."""
    backend = IsolatedSandboxBackend(
        rootfs=machine(tmp_path / "root"), ro=["/usr", "/etc", BUILD, TESTS], timeout=600,
        env={**SANITIZER, "PYTHONPATH": str(BUILD / "python"), "PYTHONDONTWRITEBYTECODE": "1"})

    async def main() -> None:
        async with Sandbox("documented", backend, 3600) as sandbox:
            await sandbox.add_files({"blocks.json": json.dumps(BLOCKS)})
            result = await sandbox.execute(
                ["/usr/bin/python3", str(TESTS / "python/documented.py"), "blocks.json",
                 str(TESTS)])
            assert result.exit_code == 0, result.output
            ran = json.loads(result.stdout.splitlines()[-1])
            assert ran == {name: len(blocks) for name, blocks in BLOCKS.items()}
    run(main())
