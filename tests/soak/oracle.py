# SPDX-License-Identifier: Apache-2.0
"""What must be in a directory, and what may be there, as a dictionary. It knows nothing of Pinfold.

Of each path there are the states that it may be in: one after an operation that reported success,
those before and after it when it failed. A look at the directory says which of them it is."""

from __future__ import annotations

import base64
import io
import os
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Union


@dataclass(frozen=True)
class File:
    """A file with these bytes, which may be executed or not."""

    data: bytes
    executable: bool = False

    def __repr__(self) -> str:
        shown = repr(self.data[:20])[2:-1] + ("..." if len(self.data) > 20 else "")
        return f"<{len(self.data)} bytes {shown!r}{' x' if self.executable else ''}>"


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Torn:
    """A file that a program was writing to, in place, when it was stopped: so many bytes of these
    at least. That is the program's doing; what is written by Pinfold is whole."""

    whole: bytes
    least: int = 0

    def __repr__(self) -> str:
        return f"<{self.least} to {len(self.whole)} bytes of {self.whole[:20]!r}>"


State = Union[File, Link, Torn, None]  # None: there is nothing
Effect = tuple[str, list[State]]  # the path, and what it goes through; the last is what it becomes


def matches(found: State, state: State) -> bool:
    if isinstance(state, Torn):
        return isinstance(found, File) and len(found.data) >= state.least and \
            state.whole.startswith(found.data)
    return found == state


class Tree:
    """A directory: what its files and links may be. Directories come and go with them."""

    def __init__(self, states: dict[str, State] | None = None) -> None:
        self.states: dict[str, list[State]] = {path: [state] for path, state
                                               in (states or {}).items()}
        # Bytes that were on their way from one path to another: they are at one of these.
        self.moving: list[tuple[State, str, str]] = []

    def __contains__(self, path: str) -> bool:
        """Whether it surely is there."""
        return path in self.states and None not in self.states[path]

    def may(self, path: str) -> list[State]:
        return self.states.get(path, [None])

    def is_sure(self, path: str) -> bool:
        return len(self.may(path)) == 1

    def now(self, path: str) -> State:
        [state] = self.may(path)
        return state

    def sure_files(self) -> list[str]:
        return sorted(path for path, may in self.states.items()
                      if len(may) == 1 and isinstance(may[0], File))

    def done(self, effects: Iterable[Effect]) -> None:
        """What has been done."""
        for path, states in effects:
            self._forget_move(path)
            self.states[path] = [states[-1]]

    def tried(self, effects: Iterable[Effect]) -> None:
        """What may have been done, up to some point."""
        for path, states in effects:
            self._forget_move(path)
            may = self.states.setdefault(path, [None])
            may.extend(state for state in states if state not in may)

    def tried_move(self, source: str, dest: str) -> None:
        what = self.now(source)
        self.tried([(source, [None]), (dest, [what])])
        self.moving.append((what, source, dest))

    def _forget_move(self, path: str) -> None:
        self.moving = [one for one in self.moving if path not in one[1:]]

    def check(self, found: dict[str, State]) -> list[str]:
        """What is wrong with what was found. From now on that is what it is."""
        wrong = []
        for path in sorted({*self.states, *found}):
            state, may = found.get(path), self.may(path)
            if not any(matches(state, one) for one in may):
                wrong.append(f"{path!r} is {state}, and not one of {may}")
            if state is None:
                self.states.pop(path, None)
            else:
                self.states[path] = [state]
        for what, source, dest in self.moving:
            if what not in (found.get(source), found.get(dest)):
                wrong.append(f"{what} was moved from {source!r} to {dest!r}, and is at neither")
        self.moving.clear()
        return wrong


def comes_home(path: str) -> bool:
    """What the soak asks to be flushed: --include 'src/**' --include '*.md'."""
    return path.startswith("src/") or path.endswith(".md")


def is_secret(path: str) -> bool:
    """Of the names that never travel those that the soak uses."""
    return any(part in (".env", ".git", "secrets", "node_modules") for part in path.split("/"))


def seeded(home: dict[str, State]) -> dict[str, State]:
    """The workspace that a home gives."""
    return {path: state for path, state in home.items() if not is_secret(path)}


def flushed(workspace: Tree, home: Tree, whole: bool) -> None:
    """What a flush makes of the home; whole: it reported success."""
    for path, may in workspace.states.items():
        if not comes_home(path) or is_secret(path):
            continue
        before = home.may(path)
        after: list[State] = []
        for state in may:
            if isinstance(state, (File, Torn)):
                after += [old if _same_bytes(old, state) else state for old in before]
            else:  # nothing is deleted, no link is written
                after += before
        home.states[path] = list(dict.fromkeys(after if whole else before + after))


def _same_bytes(old: State, new: State) -> bool:
    """A file with the same bytes is left alone, with its mode."""
    return isinstance(old, File) and isinstance(new, File) and old.data == new.data


# ---- looking ----


def look(top: Path) -> dict[str, State]:
    """What is in a directory of this machine."""
    found: dict[str, State] = {}
    for directory, names, files in os.walk(top):
        for name in [*files, *(name for name in names if os.path.islink(f"{directory}/{name}"))]:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, top)] = _look_at(path)
    return found


def _look_at(path: str) -> State:
    st = os.lstat(path)
    if stat.S_ISLNK(st.st_mode):
        return Link(os.readlink(path))
    assert stat.S_ISREG(st.st_mode), f"{path} is neither a file nor a link"
    return File(Path(path).read_bytes(), bool(st.st_mode & 0o100))


LOOK = "tar -cf - . | base64"


def unpack(text: bytes) -> bytes:
    return base64.b64decode(text)


def look_at_tar(data: bytes) -> dict[str, State]:
    """What a command has packed that ran inside."""
    found: dict[str, State] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            path = os.path.normpath(member.name)
            if member.issym():
                found[path] = Link(member.linkname)
            elif member.islnk():
                found[path] = found[os.path.normpath(member.linkname)]
            elif not member.isdir():
                content = archive.extractfile(member)
                assert content is not None, f"{path} is neither a file nor a link"
                found[path] = File(content.read(), bool(member.mode & 0o100))
    return found
