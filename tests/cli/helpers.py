# SPDX-License-Identifier: Apache-2.0
"""Where things are, and waiting for them."""

import time
from pathlib import Path
from typing import Any, Callable

from owners import BUILD, STRANGER, copy_programs  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]


def wait_until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Poll for something that happens soon; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found
