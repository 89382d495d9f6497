# SPDX-License-Identifier: Apache-2.0
"""What all tests in Python share."""

import signal
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from owners import IS_ROOT, OWNERS, Owner

# A shell that starts something in the background has it ignore these, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that is gone at the end, unlike pytest's own, which keeps the last three."""
    with tempfile.TemporaryDirectory(prefix="pinfold-pytest-") as path:
        yield Path(path)


@pytest.fixture(params=OWNERS)
def owner(request: pytest.FixtureRequest) -> Iterator[Owner]:
    with tempfile.TemporaryDirectory(prefix="pinfold-proof-") as path:
        place = Path(path)
        place.chmod(0o755)
        made = Owner(place, request.param)
        if IS_ROOT:
            made.give(place)
        yield made
        assert list(made.tmp.iterdir()) == [], "something was left behind"
