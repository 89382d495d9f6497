# SPDX-License-Identifier: Apache-2.0
"""What a call costs through the MCP server over stdio: see bench.py and mcp_calls.c."""
import collections
import statistics
import subprocess

TITLES = {"read_file": "read_file of 1 KiB", "execute": 'execute("true") on isolated'}


def section(build):
    """Yields (title, goal, times), and last (title, goal, facts)."""
    found = collections.defaultdict(list)
    printed = subprocess.run([str(build / "bench" / "mcp_calls"), str(build / "pinfold")],
                             stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in printed.splitlines():
        name, seconds = line.split()
        found[name].append(float(seconds))
    added = {}
    for tool, title in TITLES.items():
        times = {"tools/call over stdio": found[f"MCP-{tool}"], "C": found[f"C-{tool}"]}
        added[title] = statistics.median(times["tools/call over stdio"]) - statistics.median(
            times["C"])
        yield title, None, times
    yield ("What the server adds at the median", "at most 0.3 ms",
           {title: f"{seconds * 1000:.3f} ms" for title, seconds in added.items()})
