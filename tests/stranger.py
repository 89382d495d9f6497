# SPDX-License-Identifier: Apache-2.0
"""An ordinary user for tests that run as root."""

import os

import pytest

# One of each process: whoever runs beside it as the same user takes from its limit of processes,
# and is seen by tests that ask what a user has left. 32-bit process numbers end at 4,194,304, and
# users of a machine have lower numbers than this. Nobody has this one: it owns nothing.
STRANGER = 1_000_000_000 + os.getpid()
IS_ROOT = os.getuid() == 0

# Tests of the isolated backend run for whoever runs the tests, and for an ordinary user.
OWNERS = [pytest.param(os.getuid(), id="root" if IS_ROOT else "user")]
if IS_ROOT:
    OWNERS.append(pytest.param(STRANGER, id="stranger"))


def credentials(uid: int) -> dict[str, object]:
    """What subprocess needs to run something as another user; nothing for our own."""
    if uid == os.getuid():
        return {}
    return {"user": uid, "group": uid, "extra_groups": []}
