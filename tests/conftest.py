# SPDX-License-Identifier: Apache-2.0
"""What all tests in Python share."""

import tempfile
from pathlib import Path
from typing import Iterator

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that is gone at the end, unlike pytest's own, which keeps the last three."""
    with tempfile.TemporaryDirectory(prefix="pinfold-pytest-") as path:
        yield Path(path)
