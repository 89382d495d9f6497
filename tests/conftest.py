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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project: text, bytes, a secret that is not seeded, a program."""
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    (place / "src/main.c").write_text("int main;\n")
    (place / "logo.png").write_bytes(bytes(range(256)))
    (place / ".env").write_text("TOKEN=secret\n")
    (place / "tool.sh").write_text("#!/bin/sh\necho tool\n")
    (place / "tool.sh").chmod(0o755)
    return place
