# SPDX-License-Identifier: Apache-2.0
"""What a program does that uses the official Python package. Arguments: the server's command line.
Prints what it has seen as JSON."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(command: str, *args: str) -> dict:
    seen = {}
    async with stdio_client(StdioServerParameters(command=command, args=list(args))) as streams:
        async with ClientSession(*streams) as session:
            hello = await session.initialize()
            seen["version"] = hello.protocol_version
            seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
            result = await session.call_tool("execute", {"command": "echo hello; exit 2"})
            seen["executed"] = result.structured_content["exit_code"], result.content[0].text
            seen["wrong"] = (await session.call_tool("read_file", {"path": "no"})).is_error
            many = await asyncio.gather(*(session.call_tool("execute", {"command": f"echo {n}"})
                                          for n in range(32)))
            seen["many"] = [one.structured_content["stdout"] for one in many] == [
                f"{n}\n" for n in range(32)]
            seen["resources"] = [str(one.uri) for one in (await session.list_resources()).resources]
            try:
                await asyncio.wait_for(session.call_tool("execute", {"command": "sleep 300"}), 0.3)
            except asyncio.TimeoutError:
                seen["timed_out"] = True
            await session.send_ping()
    return seen


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
