# SPDX-License-Identifier: Apache-2.0
"""One worker of the soak: one episode after the other until the time is over. Prints lines of JSON:
the counts at the end, or all about an episode that went wrong. test_soak.py starts it."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "mcp"), str(HERE.parent / "cli")]

from episode import LASTING, Episode, Lasting, describe  # noqa: E402
from oneshot import ONE_SHOT, OneShot  # noqa: E402
from owners import BUILD  # noqa: E402
from place import Place, Service  # noqa: E402

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
DISK = b"size=32m,mode=755"


def mount_disk(at: Path) -> bool:
    """A small disk that this process and its children alone see, and which ends with them."""
    libc = ctypes.CDLL(None, use_errno=True)
    return (libc.unshare(CLONE_NEWNS) == 0 and
            libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0 and
            libc.mount(b"soak", os.fsencode(at), b"tmpfs", 0, DISK) == 0)


def become(uid: int, top: Path) -> None:
    os.chown(top / "disk", uid, uid)
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.environ.pop("XDG_RUNTIME_DIR", None)


def choices(services: dict[str, Service]) -> list[tuple[str, str]]:
    """Faces and backends that go together here."""
    remote = [name for name in ("agentcore", "agentcore-tasks", "daytona") if name in services]
    found = [(face, backend) for face in LASTING
             for backend in ["local", "isolated", "overlay", *remote]]
    found += [(face, backend) for face, backends in ONE_SHOT.items()
              for backend in backends if backend not in ("agentcore", "daytona") or remote]
    has_python = (BUILD / "python/pinfold/_pinfold.abi3.so").exists()
    return [one for one in found if has_python or one[0] != "python"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--top", type=Path, required=True)
    parser.add_argument("--owner-py", type=Path, required=True)
    parser.add_argument("--failcalls", type=Path, required=True)
    parser.add_argument("--uid", type=int, default=os.getuid())
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--services", type=json.loads, default={})
    parser.add_argument("--only", default="", help="FACE or FACE/BACKEND")
    parser.add_argument("name", help="SEED/WORKER, or SEED/WORKER/EPISODE for one alone")
    return parser.parse_args()


def perform(place: Place, name: str, services: dict[str, Service], only: str,
            counts: Counter[str]) -> str | None:
    """One episode. Returns what there is to say of its failure, or None."""
    able = [one for one in choices(services) if "/".join(one).startswith(only)]
    face, backend = random.Random(f"kind {name}").choice(able)
    kind = OneShot if face in ONE_SHOT else Lasting
    episode: Episode = kind(place, name, face, backend, services.get(backend), counts)
    episode.count("episodes")
    try:
        episode.run()
        place.clear()
    except Exception as error:  # pylint: disable=broad-exception-caught
        said = describe(episode, error)
        place.kill_all()
        return said
    return None


def main() -> int:
    asked = parse()
    os.umask(0o022)
    (asked.top / "disk").mkdir()
    own_disk = os.getuid() == 0 and mount_disk(asked.top / "disk")
    if asked.uid != os.getuid():
        become(asked.uid, asked.top)
    place = Place(asked.top, asked.owner_py, asked.failcalls, own_disk)
    services = {name: Service(**one) for name, one in asked.services.items()}
    if "daytona" in services:
        place.env["DAYTONA_API_URL"] = services["daytona"].endpoint
    counts: Counter[str] = Counter()
    end = time.monotonic() + asked.seconds
    one_alone = asked.name.count("/") == 2
    for number in range(1 << 30):
        name = asked.name if one_alone else f"{asked.name}/{number}"
        if said := perform(place, name, services, asked.only, counts):
            print(said, flush=True)
            return 1
        if one_alone or time.monotonic() >= end:
            break
    print(json.dumps({"own_disk": own_disk, "counts": counts}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
