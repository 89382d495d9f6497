# SPDX-License-Identifier: Apache-2.0
"""Each call that a whole run makes of the C library fails in turn, and nothing bad comes of it.

Nothing bad: the command ends by itself and soon, it says what went wrong or did its job all the
same, no file at the destination is half written, no temporary name and no process is left.
"""

import errno
import os
import subprocess
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

PINFOLD = os.environ["PINFOLD_DYNAMIC"]
FAILCALLS = os.environ["PINFOLD_FAILCALLS"]
OLD, NEW = b"old\n" * 2000, b"new\n" * 3000
BIG = b"0123456789abcdef" * 8192
# It leaves something behind, which its supervisor stays with.
COMMAND = ("sleep 1000 </dev/null >/dev/null 2>&1 & cp src/new.txt src/made.txt && "
           "cp src/new.txt src/old.txt && echo out && echo err >&2")


class Run(NamedTuple):
    number: int
    code: int
    err: str
    out: str
    counted: int
    failed: str


def tree(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def alive_with(mark: str) -> list[str]:
    """Processes whose environment carries a mark."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (proc / "environ").read_bytes():
                found.append((proc / "cmdline").read_text())
        except OSError:
            continue
    return found


def run_once(base: Path, kind: str, number: int, error: int, json: bool, backend: str) -> Run:
    """One run in a place of its own, with call `number` failing; checks what must always hold."""
    place = base / f"{kind}-{error}-{number}-{json}"
    seed, dest, tmp = place / "seed", place / "dest", place / "tmp"
    (seed / "src" / "deep").mkdir(parents=True)
    (dest / "src").mkdir(parents=True)
    tmp.mkdir()
    (seed / "src" / "new.txt").write_bytes(NEW)
    (seed / "src" / "deep" / "big.txt").write_bytes(BIG)
    (seed / "link").symlink_to("src/new.txt")
    (dest / "src" / "old.txt").write_bytes(OLD)
    mark, count = uuid.uuid4().hex, place / "count"
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp), "MARK": mark, "LD_PRELOAD": FAILCALLS,
           "FAULT_AT": str(number), "FAULT_KIND": kind, "FAULT_ERRNO": str(error),
           "FAULT_COUNT": str(count)}
    done = subprocess.run(
        [PINFOLD, "run", "-q", "--backend", backend, "--seed", seed, f"--sync={dest}", "--audit", place / "audit",
         "--exclude", "*.o", *(["--json"] if json else []), "--", COMMAND],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    counted, failed = count.read_text().split()[:2] if count.exists() else ("0", "unknown")
    result = Run(number, done.returncode, done.stderr, done.stdout, int(counted), failed)
    check(result, dest, tmp, mark)
    return result


def check(run: Run, dest: Path, tmp: Path, mark: str) -> None:
    assert 0 <= run.code < 128, f"call {run.number}: ended by signal: {run}"
    files = tree(dest)
    whole = {"src/old.txt": (OLD, NEW), "src/new.txt": (NEW,), "src/made.txt": (NEW,),
             "src/deep/big.txt": (BIG,)}
    for name, content in files.items():
        assert name in whole, f"call {run.number}: {name} was left at the destination: {run}"
        assert content in whole[name], f"call {run.number}: {name} is half written: {run}"
    if run.code == 0:
        assert files.get("src/old.txt") == NEW, f"call {run.number}: not synced, not said: {run}"
        assert len(files) == 4, f"call {run.number}: not all synced, not said: {run}"
        assert "out" in run.out, f"call {run.number}: output lost: {run}"
    else:
        assert run.err.strip(), f"call {run.number}: failed without a word: {run}"
    # The supervisor may be there a moment longer than its owner, and sweeps the directory last.
    deadline = time.monotonic() + 20
    while alive_with(mark) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not alive_with(mark), f"call {run.number}: a process was left: {run}"
    left = [p.name for p in tmp.iterdir()]
    said = "remove the workspace" in run.err or "the results are kept in" in run.err
    assert not left or said, f"call {run.number}: {left} left: {run}"


def sweep(base: Path, kind: str, error: int, json: bool, backend: str) -> list[Run]:
    """A run without a fault tells how many calls there are; then each of them fails."""
    first = run_once(base, kind, 0, error, json, backend)
    assert first.code == 0, first
    assert first.counted > 20, "the library was not preloaded"
    with ThreadPoolExecutor(2) as pool:
        runs = pool.map(lambda n: run_once(base, kind, n, error, json, backend),
                        range(1, first.counted + 1))
        return list(runs)


@pytest.mark.parametrize("json,backend", [(False, "local"), (True, "local"), (False, "isolated")])
def test_every_allocation_fails_in_turn(tmp_path: Path, json: bool, backend: str) -> None:
    runs = sweep(tmp_path, "memory", errno.ENOMEM, json, backend)
    assert any(run.code == 125 and "memory" in run.err for run in runs)


@pytest.mark.parametrize("error,backend", [
    *((error, "local") for error in (errno.EIO, errno.ENOSPC, errno.EMFILE, errno.EINTR)),
    *((error, "isolated") for error in (errno.EIO, errno.EINTR))])
def test_every_system_call_fails_in_turn(tmp_path: Path, error: int, backend: str) -> None:
    runs = sweep(tmp_path, "system", error, False, backend)
    if error != errno.EINTR:
        assert any(run.code == 125 for run in runs)
