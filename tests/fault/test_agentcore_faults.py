# SPDX-License-Identifier: Apache-2.0
"""A session of AgentCore in which one system call fails, another one in each run.

Ours and libcurl's alike: the program ends by itself and soon, says what went wrong or did its job
all the same, and leaves no file. Every call of a run would take long, so some fail, spread over the
whole run. Allocations fail elsewhere, and only ours: OpenSSL 3.0 does not survive each of its own.
"""

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest

PROGRAM = os.environ["PINFOLD_AGENTCORE_RUN"]
FAILCALLS = os.environ["PINFOLD_FAILCALLS"]
FAKE = os.environ["PINFOLD_FAKE_AGENTCORE"]
RUNS = 40


class Run(NamedTuple):
    number: int
    code: int
    err: str
    counted: int
    failed: str


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    fake = subprocess.Popen([sys.executable, "-B", FAKE, "--leash"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    with fake:
        yield json.loads(fake.stdout.readline())["endpoint"]
        fake.stdin.close()
        assert fake.wait(60) == 0


def run_once(base: Path, endpoint: str, number: int, error: int) -> Run:
    tmp, count = base / f"{error}-{number}", base / f"{error}-{number}.count"
    tmp.mkdir()
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp), "HOME": str(tmp),
           "no_proxy": "127.0.0.1", "LD_PRELOAD": FAILCALLS, "FAULT_AT": str(number),
           "FAULT_KIND": "system", "FAULT_ERRNO": str(error), "FAULT_COUNT": str(count)}
    done = subprocess.run([PROGRAM, endpoint], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False)
    counted, failed = count.read_text().split()[:2] if count.exists() else ("0", "unknown")
    result = Run(number, done.returncode, done.stderr, int(counted), failed)
    assert result.code in (0, 1), result
    assert result.code == 0 or result.err.strip(), f"it failed without a word: {result}"
    assert not list(tmp.iterdir()), f"something is left: {result}"
    return result


def sweep(base: Path, endpoint: str, error: int) -> list[Run]:
    first = run_once(base, endpoint, 0, error)
    assert first.code == 0, first
    assert first.counted > 20, "the library was not preloaded"
    step = max(first.counted // RUNS, 1)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda n: run_once(base, endpoint, n, error),
                             range(1, first.counted + 1, step)))


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE, errno.EINTR])
def test_system_calls_fail(tmp_path: Path, endpoint: str, error: int) -> None:
    runs = sweep(tmp_path, endpoint, error)
    if error == errno.EIO:
        assert any(run.code == 1 for run in runs)
