# SPDX-License-Identifier: Apache-2.0
"""Our checks of JSON Schema as a function, and the official test suite."""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

BUILD = Path(os.environ.get("PINFOLD_BUILD", Path(__file__).parents[2] / "build"))
# Its source carries the suite.
SUITE = "jsonschema==4.26.0"
INSTALL_SECONDS = 400

Check = Callable[[Any, Any], str]


@pytest.fixture(scope="session")
def check() -> Iterator[Check]:
    """"valid", "invalid: ..." or "refused: ..." of a schema and a value."""
    process = subprocess.Popen([BUILD / "tests/schema/schema_check"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stdin and process.stdout

    def ask(schema: Any, value: Any) -> str:
        process.stdin.write(json.dumps([schema, value]) + "\n")
        process.stdin.flush()
        return process.stdout.readline().rstrip("\n")
    yield ask
    process.stdin.close()
    process.stdout.close()
    assert process.wait(60) == 0


def fetch(kept: Path) -> None:
    """Put the suite there, whole or not at all."""
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as place:
        try:
            subprocess.run([sys.executable, "-m", "venv", f"{place}/venv"], check=True,
                           capture_output=True, timeout=INSTALL_SECONDS)
            subprocess.run([f"{place}/venv/bin/python", "-m", "pip", "download", "--quiet",
                            "--no-deps", "--no-binary", "jsonschema", "--no-cache-dir",
                            "--retries", "1", "--dest", place, SUITE],
                           check=True, capture_output=True, timeout=INSTALL_SECONDS,
                           env={**os.environ, "TMPDIR": place})
            with tarfile.open(next(Path(place).glob("*.tar.gz"))) as archive:
                for member in archive.getmembers():
                    inner = member.name.partition("/json/tests/")[2]
                    data = archive.extractfile(member) if member.isfile() else None
                    if data and inner.startswith(("draft2020-12/", "draft7/")):
                        path = Path(place) / "fresh" / inner
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_bytes(data.read())
            (Path(place) / "fresh").rename(kept)
        except (subprocess.SubprocessError, OSError, StopIteration):
            if not kept.exists():
                pytest.skip("the test suite of JSON Schema cannot be had")


@pytest.fixture(scope="session")
def suite() -> Path:
    kept = BUILD / "pip" / f"{SUITE}-suite"
    if not kept.exists():
        fetch(kept)
    return kept
