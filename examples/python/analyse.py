#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Have code that nobody has read analyse data that nobody else may see.

    analyse.py DATA.csv REPORT_DIR

The data goes into a sandbox of its own, without a network. The code, which a model could have
written, runs there; what it draws up comes home, if it is of a kind that was asked for.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pinfold import IsolatedSandboxBackend, Limits, Sandbox, WorkspaceSyncPolicy

CODE = '''
import csv, json, statistics

with open("data.csv", newline="") as file:
    rows = list(csv.DictReader(file))
groups = {}
for row in rows:
    groups.setdefault(row["group"], []).append(float(row["value"]))
report = {name: {"count": len(values), "mean": statistics.mean(values)}
          for name, values in sorted(groups.items())}
with open("report.json", "w") as file:
    json.dump(report, file, indent=2)
print(f"{len(rows)} rows in {len(groups)} groups")
'''


async def analyse(data: Path, results: Path) -> int:
    """Returns the exit code of the analysis."""
    backend = IsolatedSandboxBackend(timeout=60, limits=Limits(memory_bytes=1 << 30, processes=64))
    sandbox = Sandbox("analysis", backend, ttl_seconds=600, sync_dest=results,
                      sync_policy=WorkspaceSyncPolicy(sync_include_patterns=["report.*"]))
    async with sandbox:
        await sandbox.add_files({"data.csv": data, "analysis.py": CODE})
        result = await sandbox.execute("python3 analysis.py")
        print(result.output, end="")
        if result.limit:
            print(f"it was ended by its limit of {result.limit}", file=sys.stderr)
        return result.exit_code


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(asyncio.run(analyse(Path(sys.argv[1]), Path(sys.argv[2]))))
