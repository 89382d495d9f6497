# SPDX-License-Identifier: Apache-2.0
"""Where things are, and waiting for them."""

import os
import shutil
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PINFOLD_BUILD", ROOT / "build")).resolve()
# Not a user of this machine: it owns nothing.
STRANGER = 54321


def copy_programs(place: Path) -> Path:
    """The command and what it executes, where other users can reach them. Returns the command."""
    for name in "pinfold", "pinfold-full", "pinfold-init":
        if (BUILD / name).exists():
            shutil.copy(BUILD / name, place)
    return place / "pinfold"


def wait_until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Poll for something that happens soon; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found
