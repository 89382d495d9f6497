# SPDX-License-Identifier: Apache-2.0
"""What the tests of the MCP server share."""

import random
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from client import PATIENCE, Client, processes_with


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "plain: only for a build without sanitizers")


@pytest.fixture(autouse=True)
def own_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary workspaces go where the test can see that they are gone."""
    place = tmp_path / "tmpdir"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    assert list(place.iterdir()) == [], "something was left behind"


@pytest.fixture
def client(own_tmpdir: Path) -> Iterator[Client]:
    """A server with an empty workspace."""
    with Client() as one:
        yield one


@pytest.fixture
def start(own_tmpdir: Path) -> Iterator[Callable[..., Client]]:
    """Start servers with options; they end in good order."""
    started: list[Client] = []

    def make(*options: Any, **more: Any) -> Client:
        started.append(Client(*options, **more))
        return started[-1]
    yield make
    for one in started:
        with one:
            pass


@pytest.fixture
def mark() -> str:
    """A number of seconds to sleep that no other process of the machine sleeps."""
    return f"7{random.randrange(10**8):08d}.{random.randrange(10**6):06d}"


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found


@pytest.fixture
def gone() -> Callable[[str], None]:
    """Wait until no process sleeps that long any more."""
    return lambda mark: wait_until(lambda: not processes_with(mark))


@pytest.fixture
def there() -> Callable[[str], None]:
    """Wait until one does."""
    return lambda mark: wait_until(lambda: processes_with(mark))
