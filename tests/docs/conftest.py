# SPDX-License-Identifier: Apache-2.0
"""What the tests of the documentation share."""

import subprocess
from typing import Callable

import pytest

from owners import BUILD


@pytest.fixture(scope="session")
def told() -> Callable[..., str]:
    """What 'pinfold help' says of a command."""
    def run(*words: str) -> str:
        return subprocess.run([BUILD / "pinfold", "help", *words], capture_output=True, text=True,
                              check=True, timeout=60).stdout
    return run
