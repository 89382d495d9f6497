# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any, Callable, Coroutine

from pinfold import Agent, LocalSandboxBackend, Sandbox, ScriptedModel

SPEC = Path(__file__).resolve().parents[3] / "shared" / "spec"

# One workspace is owned once in a process; nobody else makes these names.
LONG = "echo $$ > pid; sleep 1000 & echo $! > child; wait"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine; nothing here takes minutes unless something hangs."""
    return asyncio.run(asyncio.wait_for(work, 600))


def local(root: Path, name: str = "job", **options: Any) -> Sandbox:
    return Sandbox(name, LocalSandboxBackend(root), 3600, **options)


async def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll for something that happens soon, on the event loop."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(0.01)
    return found


def started(root: Path) -> list[int]:
    """The processes of LONG, once both are there."""
    try:
        return [int((root / name).read_text()) for name in ("pid", "child")]
    except (FileNotFoundError, ValueError):
        return []


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def call(name: str, own_id: str | None = None, **given: Any) -> dict[str, Any]:
    """A call of a tool, as scripts have it."""
    return {"tool": name, "input": given, **({"id": own_id} if own_id else {})}


def scripted(*turns: Any) -> ScriptedModel:
    """A model with these turns."""
    return ScriptedModel({"turns": list(turns)})


def results(agent: Agent) -> list[str]:
    """What the last results of tools say."""
    for message in reversed(agent.messages):
        found = [block["toolResult"]["content"][0]["text"] for block in message["content"]
                 if "toolResult" in block]
        if found:
            return found
    return []
