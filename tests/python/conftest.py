# SPDX-License-Identifier: Apache-2.0
"""The package as it was built, without installing it."""

import gc
import os
import sys
from pathlib import Path
from typing import Iterator

import pytest

from owners import BUILD

sys.path.insert(0, str(BUILD / "python"))


def descriptors() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the one of the listing
            continue
    return sorted(found)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test leaves a descriptor or a workspace behind."""
    gc.collect()
    before = descriptors()
    yield
    from pinfold import _pinfold  # pylint: disable=import-outside-toplevel
    gc.collect()
    assert _pinfold.wait_idle(60)
    gc.collect()
    left = [name for name in descriptors() if name not in before and "/pytest" not in name]
    assert left == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory for a workspace."""
    return tmp_path / "root"
