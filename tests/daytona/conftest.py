# SPDX-License-Identifier: Apache-2.0
"""A running fake for each file of tests, as at its start for each test."""

import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from daytona_client import HEADERS, Fake, end_fake, start_fake


@pytest.fixture(scope="module")
def running_fake() -> Iterator[Fake]:
    with tempfile.TemporaryDirectory(prefix="pinfold-fake-") as path:
        fake = start_fake(Path(path))
        try:
            yield fake
        finally:
            assert end_fake(fake) == (0, "")
        assert list(Path(path).iterdir()) == [], "something was left behind"


@pytest.fixture
def fake(running_fake: Fake) -> Iterator[Fake]:
    """A test must take the complaints that it provokes."""
    running_fake.headers, running_fake.sandbox = dict(HEADERS), ""
    running_fake.connection = None
    yield running_fake
    running_fake.connection = None
    complaints = running_fake.control("complaints", method="GET")
    running_fake.control("reset")
    assert complaints == []


@pytest.fixture
def sandbox(fake: Fake) -> Fake:
    """The fake, with a sandbox that is started."""
    fake.create()
    return fake
