# SPDX-License-Identifier: Apache-2.0
"""Random changes of a workspace: as shell commands, with what each of them makes of the files."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from shlex import quote
from typing import Callable, Sequence

from oracle import Effect, File, Link, State, Torn, Tree

NAMES = ["src/a", "src/b.c", "src/sp ace", "src/d/e.txt", "src/d/deep/er/f", "src/quo'te", "src/-x",
         "src/\u00fcml\u00e4ut", "notes.md", "docs/x.md", "docs/y.md", "other/bin", "other/z",
         "other/$HOME", "top", "src/w\\x"]
LINKS = ["other/l1", "other/deep/l2"]
SIZES = [0, 1, 10, 100, 1000, 5000, 70_000]
BIG = 400_000  # bytes; takes some time to write


@dataclass
class Script:
    """A command line, and what it does to files when all of it succeeds."""

    lines: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(["set -e", *self.lines])


def some_bytes(rng: random.Random, size: int | None = None) -> bytes:
    """Printable, so that it goes through every face, and different each time."""
    if size is None:
        size = rng.choice(SIZES)
    line = b"%016x the quick brown fox\n" % rng.getrandbits(64)
    return (line * (size // len(line) + 1))[:size]


def some_files(rng: random.Random, goes_home: bool) -> dict[str, State]:
    """What a user has at home: a project with secrets, which never travel. goes_home: it is where
    results go; elsewhere a link would be missing, and none is written."""
    home: dict[str, State] = {name: File(some_bytes(rng), rng.random() < 0.3)
                              for name in rng.sample(NAMES, rng.randint(0, 10))}
    if rng.random() < 0.3:
        home["src/big"] = File(some_bytes(rng, BIG))
    if rng.random() < 0.5:
        home |= {"src/target": File(b"linked\n"),
                 "src/link" if goes_home else "lib/link": Link("../src/target")}
    for name in ".env", "secrets/key", ".git/config", "node_modules/m/index.js":
        home[name] = File(some_bytes(rng, 50))
    return home


def _write(rng: random.Random, tree: Tree, path: str, script: Script) -> None:
    old, data = tree.now(path), some_bytes(rng, rng.choice([0, 10, 100, 1000]))
    script.lines.append(f"printf %s {quote(data.decode())} > {quote('./' + path)}")
    new = File(data, isinstance(old, File) and old.executable)
    script.effects.append((path, [Torn(data), new]))


def _write_much(rng: random.Random, tree: Tree, path: str, script: Script) -> None:
    old, first, count = tree.now(path), rng.randrange(10**6), rng.choice([1000, 50_000])
    script.lines.append(f"seq {first} {first + count} > {quote('./' + path)}")
    data = "".join(f"{n}\n" for n in range(first, first + count + 1)).encode()
    new = File(data, isinstance(old, File) and old.executable)
    script.effects.append((path, [Torn(data), new]))


def _append(rng: random.Random, tree: Tree, path: str, script: Script) -> None:
    old, data = tree.now(path), some_bytes(rng, rng.choice([1, 100]))
    script.lines.append(f"printf %s {quote(data.decode())} >> {quote('./' + path)}")
    before = old if isinstance(old, File) else File(b"")
    new = File(before.data + data, before.executable)
    script.effects.append((path, [Torn(new.data, len(before.data)), new]))


def _remove(_: random.Random, __: Tree, path: str, script: Script) -> None:
    script.lines.append(f"rm -f -- {quote(path)}")
    script.effects.append((path, [None]))


def _mark(rng: random.Random, tree: Tree, path: str, script: Script) -> None:
    old, executable = tree.now(path), rng.random() < 0.5
    if isinstance(old, File):
        script.lines.append(f"chmod {'+x' if executable else 'a-x'} {quote('./' + path)}")
        script.effects.append((path, [File(old.data, executable)]))


def _rename(rng: random.Random, tree: Tree, path: str, script: Script) -> None:
    source = _another(rng, tree, path)
    if source:
        script.lines.append(f"mv -- {quote(source)} {quote(path)}")
        script.effects += [(path, [tree.now(source)]), (source, [None])]


def _copy(rng: random.Random, tree: Tree, path: str, script: Script) -> None:
    source = _another(rng, tree, path)
    old = tree.now(path)
    if source:
        what = tree.now(source)
        assert isinstance(what, File)
        script.lines.append(f"cp -- {quote(source)} {quote(path)}")
        # cp gives a new file the mode of its source, and keeps that of an old one.
        executable = old.executable if isinstance(old, File) else what.executable
        new = File(what.data, executable)
        script.effects.append((path, [Torn(what.data), new]))


def _link(rng: random.Random, tree: Tree, _: str, script: Script) -> None:
    path, target = rng.choice(LINKS), rng.choice(["../src/a", "/etc/passwd", "nowhere"])
    if tree.is_sure(path):
        # ln -f has another name for it meanwhile, which would stay when it is killed. And for set
        # -e a failure before && is none.
        script.lines += ["mkdir -p other/deep", f"rm -f -- {path}", f"ln -s -- {target} {path}"]
        script.effects += [(path, [None, Link(target)])]


def _leave_running(rng: random.Random, _: Tree, __: str, script: Script) -> None:
    how = rng.choice(["", "setsid ", "nohup "])
    script.lines.append(f"{how}sleep 1000 </dev/null >/dev/null 2>&1 &")


Step = Callable[[random.Random, Tree, str, Script], None]
WRITING: list[Step] = [_write, _write_much, _append]  # what an agent's changes come home of whole
STEPS: list[Step] = [_write, _write, _write_much, _append, _append, _remove, _mark, _rename, _copy,
                     _link, _leave_running]


def _another(rng: random.Random, tree: Tree, path: str) -> str | None:
    found = [name for name in tree.sure_files() if name != path]
    return rng.choice(found) if found else None


def some_script(rng: random.Random, tree: Tree, names: Sequence[str] = NAMES,
                steps: Sequence[Step] = STEPS) -> Script:
    """Changes of paths whose state is known. The tree is left as it is."""
    script, after = Script(), Tree()
    after.states = {path: list(may) for path, may in tree.states.items()}
    for _ in range(rng.randint(1, 6)):
        path, step = rng.choice(names), rng.choice(steps)
        if not after.is_sure(path):
            continue
        before = len(script.effects)
        if step in (_write, _write_much, _append, _rename, _copy) and "/" in path:
            script.lines.append(f"mkdir -p -- {quote(path.rsplit('/', 1)[0])}")
        step(rng, after, path, script)
        after.done(script.effects[before:])
    return script
