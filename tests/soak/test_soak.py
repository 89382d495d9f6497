# SPDX-License-Identifier: Apache-2.0
"""
Random work by all faces on all backends, while owners, supervisors and first processes of sandboxes
are killed, disks are full, descriptors, memory and file sizes run out, and services hang up. An
oracle says what must be in each workspace, and in the user's own directories; at the end of each
episode no process, descriptor, mount, control group or temporary file is left.

PINFOLD_SOAK_SECONDS=7200 is the whole proof; a minute is made whenever the tests run.
PINFOLD_SOAK_SEED makes the same choices again, although not the same moments; what failed says
which. PINFOLD_SOAK_EPISODE=SEED/WORKER/NUMBER repeats one episode alone, PINFOLD_SOAK_ONLY=FACE or
FACE/BACKEND makes no others, PINFOLD_SOAK_WORKERS is how many work at once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Iterator

import pytest

from owners import BUILD, IS_ROOT, STRANGER, copy_programs

HERE = Path(__file__).resolve().parent
SECONDS = float(os.environ.get("PINFOLD_SOAK_SECONDS", "60"))
SEED = os.environ.get("PINFOLD_SOAK_SEED", str(random.randrange(1 << 32)))
EPISODE = os.environ.get("PINFOLD_SOAK_EPISODE", "")
ONLY = os.environ.get("PINFOLD_SOAK_ONLY", "")
WORKERS = int(os.environ.get("PINFOLD_SOAK_WORKERS", "3"))
PATIENCE = 900  # seconds, for the last episode of a worker on a busy machine


@pytest.fixture
def top() -> Iterator[Path]:
    # Short: AgentCore's backend takes no home whose path has 100 bytes.
    with tempfile.TemporaryDirectory(prefix="soak-") as path:
        Path(path).chmod(0o755)
        programs = Path(path, "bin")
        programs.mkdir()
        copy_programs(programs)
        shutil.copy(BUILD / "libpinfold.so.0", programs)
        shutil.copy(BUILD / "tests/soak/owner", programs)
        for name in "failcalls.so", "pinfold-dynamic":
            shutil.copy(BUILD / "tests/fault" / name, programs)
        shutil.copy(HERE / "owner.py", path)
        if (BUILD / "python").is_dir():
            shutil.copytree(BUILD / "python", programs / "python",
                            ignore=shutil.ignore_patterns("*.p", "__pycache__"))
        yield Path(path)


class Fakes:
    """The services of one worker."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.services: dict[str, dict[str, Any]] = {}
        place.mkdir()
        env = {**os.environ, "TMPDIR": str(place)}
        for name in "agentcore", "daytona":
            with open(place / f"{name}.stderr", "w", encoding="utf-8") as stderr:
                process = subprocess.Popen(
                    [sys.executable, str(HERE.parent / name / "fake.py"), "--leash", "--directory",
                     str(place)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=stderr, text=True)
            self.running[name] = process
            assert process.stdout
            said = json.loads(process.stdout.readline())
            self.services[name] = {"endpoint": said.get("api", said["endpoint"]),
                                   "pid": process.pid}
        self.services["agentcore-tasks"] = self.services["agentcore"]

    def said(self) -> str:
        """What went wrong in them, which is nobody's fault but their own."""
        said = [path.read_text(errors="replace")[-4000:] for path in self.place.glob("*.stderr")]
        return "".join(said)

    def end(self) -> None:
        for process in self.running.values():
            process.terminate()
            process.communicate(timeout=PATIENCE)


def start(top: Path, number: int, uid: int, name: str, fakes: Fakes) -> subprocess.Popen[str]:
    place = top / f"w{number}"
    place.mkdir()
    words = [sys.executable, str(HERE / "worker.py"), "--top", str(place), "--owner-py",
             str(top / "owner.py"), "--failcalls", str(top / "bin/failcalls.so"), "--uid", str(uid),
             "--seconds", str(SECONDS), "--services", json.dumps(fakes.services), "--only", ONLY,
             name]
    if uid != os.getuid():
        os.chown(place, uid, uid)
    env = {**os.environ, "PINFOLD_BUILD": str(top / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, errors="replace")


def explain(said: dict[str, Any]) -> str:
    only = f"PINFOLD_SOAK_ONLY={ONLY} " if ONLY else ""
    return "\n".join([f"episode {said['episode']}: {said['face']} on {said['backend']}",
                      *said["story"], said["error"],
                      f"again: {only}PINFOLD_SOAK_EPISODE={said['episode']} "
                      "pytest-3 -s tests/soak"])


def test_nothing_is_lost_and_nothing_is_left(top: Path) -> None:
    names = [EPISODE] if EPISODE else [f"{SEED}/{number}" for number in range(WORKERS)]
    # The last of them is an ordinary user; which one an episode had stands in its name.
    users = [STRANGER if IS_ROOT and int(name.split("/")[1]) % 3 == 2 else os.getuid()
             for name in names]
    fakes = [Fakes(top / f"s{number}") for number in range(len(names))]
    workers = [start(top, number, uid, name, fakes[number])
               for number, (uid, name) in enumerate(zip(users, names))]
    counts: Counter[str] = Counter()
    failures = []
    try:
        for worker, services in zip(workers, fakes):
            out, err = worker.communicate(timeout=SECONDS + PATIENCE)
            said = json.loads(out.splitlines()[-1]) if out else {}
            if worker.returncode:
                failures.append((explain(said) if said else err) + services.said())
            elif not said["own_disk"]:
                print("disks were not full: it takes root to mount one for that")
            counts.update(said.get("counts", {}))
    finally:
        for worker in workers:
            worker.kill()
        for one in fakes:
            one.end()
    print(f"seed {EPISODE or SEED}", *(f"{what}: {count}" for what, count in sorted(counts.items())), sep="\n")
    assert not failures, "\n\n".join(failures)
    assert counts
