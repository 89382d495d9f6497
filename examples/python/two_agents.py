#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two agents in one workspace: one writes, the other one may only look.

    PINFOLD_MODEL=anthropic:NAME examples/python/two_agents.py PROJECT TASK

The workspace is seeded from PROJECT, and what was made goes back there at the end. For a service
instead of this machine, give Sandbox another backend: AgentCoreSandboxTemplate(region=...) say.
"""

import asyncio
import sys

from elsai import Agent
from elsai.agent import AgentConfig, SandboxAttachMode
from elsai.execution import IsolatedSandboxBackend, Sandbox, workspace_id_for_run
from elsai.plugins.sandbox import SandboxPlugin


async def main(project: str, task: str) -> None:
    async with Sandbox(
        workspace_id=workspace_id_for_run("two-agents"),
        backend=IsolatedSandboxBackend(),
        ttl_seconds=7200,
        seed_from=project,
    ) as sandbox:
        coder = Agent(AgentConfig(agent_id="coder", sandbox=sandbox, plugins=[SandboxPlugin()]))
        reviewer = Agent(AgentConfig(
            agent_id="reviewer", sandbox=sandbox, sandbox_attach_mode=SandboxAttachMode.READ_ONLY,
            plugins=[SandboxPlugin()]))

        print("coder:", await coder.invoke_async(task))
        print("reviewer:", await reviewer.invoke_async(f"Review what was done for: {task}"))


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
