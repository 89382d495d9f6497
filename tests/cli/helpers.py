# SPDX-License-Identifier: Apache-2.0
"""Where things are, and waiting for them."""

import os
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PINFOLD_BUILD", ROOT / "build")).resolve()
# Not a user of this machine: it owns nothing.
STRANGER = 54321


def wait_until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Poll for something that happens soon; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found
