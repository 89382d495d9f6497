# SPDX-License-Identifier: Apache-2.0
"""The rooms of src/, and what each of them may use: docs/architecture.md has the picture."""

import graphlib

# From the ground up. What a room uses stands before it, or beside it.
FLOORS = (("base",), ("tree", "proc", "net", "jail"), ("backend",), ("sandbox",), ("agent",),
          ("cli", "mcp"))
FACES = FLOORS[-1]

BELOW: dict[str, set[str]] = {
    "base": set(),
    "tree": {"base", "proc"},
    "proc": {"base"},
    "jail": {"base", "proc", "tree"},
    "net": {"base", "proc"},
    "backend": {"base", "tree", "proc", "jail", "net"},
    "sandbox": {"base", "tree", "proc", "backend"},
    "agent": {"base", "tree", "proc", "net", "backend", "sandbox"},
    # The faces use the public interface alone: what they cannot do, no user can.
    "cli": set(),
    "mcp": {"cli"},  # its options, and the sandbox that they describe
}

# What one room uses of another, where that is not all of it.
ONLY: dict[tuple[str, str], set[str]] = {("tree", "proc"): {"proc/keeper.h"}}


def faults(below: dict[str, set[str]]) -> list[str]:
    """Where a table like BELOW climbs, runs in a circle, or has a face use what is not public."""
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    found = [f"tools/rooms.py: {room} is on no floor" for room in sorted(set(below) - set(floor))]
    for room, used in sorted(below.items()):
        for other in sorted(used):
            if floor.get(other, len(FLOORS)) > floor.get(room, 0):
                found.append(f"tools/rooms.py: {room} must not use {other}, which stands above it")
            elif room in FACES and other not in FACES:
                found.append(f"tools/rooms.py: {room} must not use {other}, which is not public")
    try:
        graphlib.TopologicalSorter(below).prepare()
    except graphlib.CycleError as error:
        found.append(f"tools/rooms.py: {' uses '.join(reversed(error.args[1]))}")
    return found
