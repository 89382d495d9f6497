# SPDX-License-Identifier: Apache-2.0
"""Random trees and random changes to them, for comparing overlay seeding with copying."""

import os
import random
import shlex
from pathlib import Path

NAMES = ["a.py", "b.md", "c.c", "d.json", "e", "f.txt", ".env", "key.pem", "sub", "src", "tests",
         "node_modules", "secrets", "lib", "x y.md", "-n.py"]
MODES = [0o644, 0o644, 0o644, 0o755, 0o600, 0o444]


def make_tree(where: Path, rand: random.Random, depth: int = 0) -> None:
    """Fill a directory with files, directories, links and a few special ones."""
    where.mkdir(exist_ok=True)
    for name in rand.sample(NAMES, rand.randint(2, 8)):
        path = where / name
        kind = rand.random()
        if kind < 0.3 and depth < 3:
            make_tree(path, rand, depth + 1)
            path.chmod(rand.choice([0o755, 0o700, 0o555, 0o755]))
        elif kind < 0.38:
            target = rand.choice(["a.py", "sub", "../b.md", "/etc/passwd", "../../../x", ".",
                                  "nowhere", "../src"])
            path.symlink_to(target)
        elif kind < 0.42:
            os.mkfifo(path)
        elif kind < 0.46 and depth < 3:
            path.mkdir()
        else:
            path.write_bytes(rand.randbytes(rand.choice([0, 1, 10, 5000, 70000])))
            path.chmod(rand.choice(MODES))


def make_script(rand: random.Random) -> str:
    """Shell lines, each of which may fail; both ways they have to fail alike."""
    lines = []
    for number in range(rand.randint(5, 25)):
        one, two = (shlex.quote("./" + "/".join(rand.choices(NAMES, k=rand.randint(1, 3))))
                    for _ in range(2))
        lines.append(rand.choice([
            f"echo new{number} > {one}",
            f"echo more{number} >> {one}",
            f"mkdir -p {one} && echo in{number} > {one}/n{number}.py",
            f"rm -f {one}",
            f"rm -rf {one}",
            f"rm -rf {one}; mkdir {one} && echo again > {one}/z.md",
            f"rm -rf {one}; echo file{number} > {one}",
            f"rm -rf {one}; ln -s a.py {one}",
            f"mv {one} {two}",
            f"cp -r {one} {two}",
            f"ln {one} {two}",
            f"touch {one}",
            f"chmod 700 {one}",
            f"chmod a-w {one}",
            f"truncate -s 3 {one}",
            f"sed -i s/new/old/ {one}",
            f"mkfifo {one}-pipe{number}",  # never opened by another line
            f"rmdir {one}",
        ]))
    return "\n".join(f"({line}) 2>/dev/null; echo $?" for line in lines)


# What a command sees: names, kinds, contents, links, and of files their modes. Which mode a
# directory of the seed has where the umask takes bits away is a difference that is documented.
LOOK = r"""
find . -mindepth 1 \( -type d -printf 'd %P\n' -o -type l -printf 'l %P %l\n' \
    -o -type f -printf 'f %P %m %s\n' -o -printf '%y %P\n' \) | LC_ALL=C sort
find . -type f -print0 | LC_ALL=C sort -z | xargs -0r md5sum --
"""


def describe(where: Path) -> list[tuple]:
    """A whole tree of the host."""
    found = []
    for directory, names, files in os.walk(where):
        for name in names + files:
            path = Path(directory, name)
            state = path.lstat()
            what = (os.readlink(path) if path.is_symlink() else
                    path.read_bytes() if path.is_file() else "")
            found.append((str(path.relative_to(where)), state.st_mode, what))
    return sorted(found)
