# SPDX-License-Identifier: Apache-2.0
"""What a call costs through the MCP server over stdio: see bench.py and mcp_calls.c."""
import collections
import statistics
import subprocess
from typing import Iterator

from report import Facts, Table

TITLES = {"read_file": "read_file of 1 KiB", "execute": 'execute("true") on isolated'}
PROMISES = {"read_file": "mcp-read", "execute": "mcp-execute"}


def section(bench) -> Iterator[Table | Facts]:
    found = collections.defaultdict(list)
    printed = subprocess.run(
        [str(bench.build / "bench" / "mcp_calls"), str(bench.build / "pinfold")],
        stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in printed.splitlines():
        name, seconds = line.split()
        found[name].append(float(seconds))
    added = {}
    for tool, title in TITLES.items():
        times = {"tools/call over stdio": found[f"MCP-{tool}"], "C": found[f"C-{tool}"]}
        added[tool] = 1000 * (statistics.median(times["tools/call over stdio"])
                              - statistics.median(times["C"]))
        yield Table(title, None, times)
    yield Facts("What the server adds at the median", "at most 0.3 ms",
                {TITLES[tool]: f"{ms:.3f} ms" for tool, ms in added.items()},
                {PROMISES[tool]: ms for tool, ms in added.items()})
