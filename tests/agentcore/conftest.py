# SPDX-License-Identifier: Apache-2.0
"""A running fake for each file of tests, as at its start for each test."""

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Iterator

import pytest

from client import KEY, Fake, end_fake, start_fake


@pytest.fixture(scope="module")
def running_fake() -> Iterator[Fake]:
    with tempfile.TemporaryDirectory(prefix="pinfold-fake-") as path:
        fake = start_fake(Path(path))
        try:
            yield fake
        finally:
            assert end_fake(fake) == 0
        assert list(Path(path).iterdir()) == [], "something was left behind"


@pytest.fixture
def fake(running_fake: Fake) -> Iterator[Fake]:
    running_fake.key, running_fake.token, running_fake.skew = KEY, None, timedelta()
    yield running_fake
    running_fake.control("reset")
