#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Development on this machine: an agent with a workspace of its own, and tools of the host beside.

    PINFOLD_MODEL=openai:gpt-5 BYPASS_TOOL_CONSENT=true examples/python/local_dev.py PROJECT TASK

Nothing here is isolated. The agent works on a copy of PROJECT; what it says and does is shown while
it happens, and what it made goes back to PROJECT.
"""

import asyncio
import sys
import tempfile

from elsai import Agent, tool
from elsai.agent import AgentConfig, SandboxMode
from elsai.execution import LocalSandboxBackend, close_sandbox_workspace
from elsai.plugins.sandbox import SandboxPlugin, run_command
from pinfold import BeforeToolCallEvent, HookRegistry, host_tools


@tool
async def count_lines(pattern: str, agent: Agent) -> str:
    """Count the lines of all files of a kind.

    Args:
        pattern: Which files, "*.py" say.
    """
    return await run_command(agent, f"find . -name '{pattern}' -exec cat {{}} + | wc -l")


class Careful:
    """Hooks: no command of this agent removes anything."""

    def register_hooks(self, registry: HookRegistry, **_kwargs: object) -> None:
        registry.add_callback(BeforeToolCallEvent, self.look)

    def look(self, event: BeforeToolCallEvent) -> None:
        if "rm " in str(event.tool_use["input"]):
            event.cancel_tool = "Nothing is removed here. Leave it where it is."


async def main(project: str, task: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        agent = Agent(AgentConfig(
            execution_backend=LocalSandboxBackend(place), workspace_root=project,
            sandbox_mode=SandboxMode.LOCAL_DEV, agent_id="developer", hooks=[Careful()],
            plugins=[SandboxPlugin()], tools=[count_lines, *host_tools()]))
        async for event in agent.stream_async(task):
            if "data" in event:
                print(event["data"], end="", flush=True)
            elif "message" in event:
                for block in event["message"]["content"]:
                    if "toolUse" in block:
                        print(f"\n[{block['toolUse']['name']} {block['toolUse']['input']}]")
        print()
        await close_sandbox_workspace(agent)


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
