# SPDX-License-Identifier: Apache-2.0
"""
The host's file operations and a command inside work on the same paths, while the command exchanges
them for links that lead out (hammer.c, swap.c). Nothing outside may be touched, or come inside.

PINFOLD_HAMMER_SECONDS=60 is the whole proof; a few seconds are made whenever the tests run.
"""

import os
import secrets
import shutil
from pathlib import Path

from owners import BUILD, Owner

SECONDS = os.environ.get("PINFOLD_HAMMER_SECONDS", "3")
OPERATIONS = ["read", "write", "upload", "download", "list", "move", "delete", "flush", "seed",
              "execute"]


def seen(top: Path) -> dict[str, tuple]:
    """All that there is to know about a tree, without what reading it changes."""
    found = {}
    for path in [top, *top.rglob("*")]:
        st = path.lstat()
        content = os.readlink(path) if path.is_symlink() else \
            path.read_bytes() if path.is_file() else None
        found[str(path)] = (content, st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_nlink,
                            st.st_size, st.st_mtime_ns, st.st_ctime_ns)
    return found


def set_up(owner: Owner, token: str) -> Path:
    place = owner.place / "race"
    for name in "ws", "seed/dir", "seed/near", "seed/deep/er", "dest", "down", "outside/er":
        (place / name).mkdir(parents=True)
    (place / "token").write_text(token)
    for name in "file", "dir/secret", "dir/new", "near/secret", "deep/er/secret", "kind":
        (place / "seed" / name).write_text("evil\n" * 100)
    for name in "secret", "er/secret", f"entry-{token}":
        (place / "outside" / name).write_text(token + "\n")
    (place / "outside/link").symlink_to("secret")
    shutil.copy(BUILD / "tests/proof/swap", place / "ws")
    owner.give(place)
    return place


def test_links_swapped_under_the_host_lead_nowhere(owner: Owner) -> None:
    token = secrets.token_hex(16)
    place = set_up(owner, token)
    shutil.copy(BUILD / "tests/proof/hammer", owner.bin)
    before = seen(place / "outside")
    done = owner.run(owner.bin / "hammer", place, SECONDS, timeout=float(SECONDS) + 120,
                     env={"LD_LIBRARY_PATH": str(owner.bin)})
    said = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen(place / "outside") == before, done.stdout
    for top in "dest", "down", "ws":
        for path in (place / top).rglob("*"):
            assert token not in path.name, path
            if path.is_file() and not path.is_symlink():
                assert token.encode() not in path.read_bytes(), path
    print(done.stdout)
    # The race was there: names were swapped, all operations worked at times, and an open() by path
    # came out at the secret.
    counts = {name: (int(tries), int(good)) for name, tries, good in
              (words for words in said if words[0] != "swap")}
    swaps = [int(words[2]) for words in said if words[0] == "swap"]
    assert len(swaps) == 6 and min(swaps) > 0, done.stdout
    assert all(counts[name][1] > 0 for name in [*OPERATIONS, "naive"]), done.stdout
