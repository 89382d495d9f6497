# SPDX-License-Identifier: Apache-2.0
"""
Attacks on a seed that is shown by an overlay: to change it, and to read what is hidden of it. Each is
first shown to change a directory that is worked on directly.
"""

import os
import shutil
from pathlib import Path

import pytest

from conftest import PYTHON, Range

OVERLAY = ("--seed-mode", "overlay", "--seed")

PRELUDE = """
import ctypes, fcntl, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def say(what):
    print(what, flush=True)
def link_descriptor(fd, name):
    assert libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, name, 0x400) == 0
"""

# By name: what the script does to the file "victim", or to the directory "box" with "box/file".
CHANGES = {
    "write": "open('victim', 'w').write('evil')",
    "append": "open('victim', 'a').write('evil')",
    "truncate": "os.truncate('victim', 1)",
    "chmod": "os.chmod('victim', 0o777)",
    "chmod_by_descriptor": "os.fchmod(os.open('victim', os.O_RDONLY), 0o777)",
    "chmod_directory": "os.chmod('box', 0o700)",
    "touch": "os.utime('victim', (1, 1))",
    "touch_by_descriptor": "os.utime(os.open('victim', os.O_RDONLY), (1, 1))",
    "set_attribute": "os.setxattr('victim', 'user.evil', b'1')",
    "set_attribute_of_directory": "os.setxattr('box', 'user.evil', b'1')",
    "shared_mapping": """
fd = os.open('victim', os.O_RDWR)
mmap.mmap(fd, 4, mmap.MAP_SHARED)[0:4] = b'evil'
""",
    # A descriptor of the lower file from before it was changed, opened anew for writing.
    "reopen": """
fd = os.open('victim', os.O_RDONLY)
os.write(os.open(f'/proc/self/fd/{fd}', os.O_WRONLY), b'evil')
""",
    "reopen_path_only": """
fd = os.open('victim', os.O_PATH)
os.truncate(f'/proc/self/fd/{fd}', 0)
""",
    "reopen_after_change": """
fd = os.open('victim', os.O_RDONLY)
os.rename('victim', 'moved')
os.write(os.open(f'/proc/self/fd/{fd}', os.O_WRONLY), b'evil')
""",
    "private_then_protect": """
fd = os.open('victim', os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, 4096, 1, 1, fd, 0)
if libc.mprotect(ctypes.c_void_p(at), 4096, 3) == 0:
    ctypes.memmove(at, b'evil', 4)
os.write(os.open('victim', os.O_WRONLY), b'evil')
""",
    "hard_link": """
os.link('victim', 'other')
open('other', 'w').write('evil')
""",
    "hard_link_by_descriptor": """
fd = os.open('victim', os.O_RDONLY)
link_descriptor(fd, b'other')
os.write(os.open('other', os.O_WRONLY), b'evil')
""",
    "rename_over": """
open('new', 'w').write('evil')
os.rename('new', 'victim')
""",
    "exchange": """
open('new', 'w').write('evil')
assert libc.renameat2(-100, b'new', -100, b'victim', 2) == 0
open('new', 'w').write('evil')
""",
    "unnamed_file": """
fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b'evil')
os.unlink('victim')
link_descriptor(fd, b'victim')
""",
    "delete": "os.unlink('victim')",
    "delete_directory": "import shutil; shutil.rmtree('box')",
    "punch": """
fd = os.open('victim', os.O_RDWR)
libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4))
os.pwrite(fd, b'evil', 0)
""",
    "clone_range": """
open('new', 'w').write('evil')
os.copy_file_range(os.open('new', os.O_RDONLY), os.open('victim', os.O_RDWR), 4)
""",
    "flags": """
fd = os.open('victim', os.O_RDONLY)
flags = struct.unpack('l', fcntl.ioctl(fd, 0x80086601, struct.pack('l', 0)))[0]
fcntl.ioctl(fd, 0x40086602, struct.pack('l', flags | 0x40))
""",
    "new_in_directory": "open('box/new', 'w').write('evil')",
    "directory_in_its_place": """
os.unlink('victim')
os.mkdir('victim')
open('victim/file', 'w').write('evil')
""",
}


def state(where: Path) -> list[tuple]:
    """All that can be known of a tree without reading times change it."""
    found = []
    for directory, names, files in os.walk(where):
        for path in [Path(directory, name) for name in names + files] + [Path(directory)]:
            of = path.lstat()
            found.append((str(path.relative_to(where)), of.st_mode, of.st_ino, of.st_nlink,
                          of.st_uid, of.st_gid, of.st_size, of.st_mtime_ns, of.st_ctime_ns,
                          path.read_bytes() if path.is_file() else b"",
                          sorted(os.listxattr(path, follow_symlinks=False))))
    return sorted(set((*entry[:-1], tuple(entry[-1])) for entry in found))


@pytest.fixture
def seed(field: Range) -> Path:
    where = field.place / "seed"
    (where / "box").mkdir(parents=True)
    (where / "secrets").mkdir()
    (where / "victim").write_text("victim\n")
    (where / "box/file").write_text("file\n")
    (where / ".env").write_text(field.token)
    (where / "box/.env").write_text(field.token)
    (where / "secrets/key").write_text(field.token)
    (where / "out").symlink_to(field.secret)
    field.give(where)
    return where


def write_script(field: Range, seed: Path, text: str) -> None:
    (seed / "attack.py").write_text(PRELUDE + text)
    field.give(seed)


@pytest.mark.parametrize("name", CHANGES)
def test_a_seed_stays_what_it_is(field: Range, seed: Path, name: str) -> None:
    write_script(field, seed, CHANGES[name])
    shutil.copytree(seed, field.workspace, dirs_exist_ok=True, symlinks=True)
    field.give(field.workspace)
    before = state(field.workspace)
    control = field.control(f"{PYTHON} attack.py")
    if "not supported" in control.stderr or "Inappropriate ioctl" in control.stderr:
        pytest.skip("this file system has no such thing")
    assert state(field.workspace) != before, f"the attack does nothing: {control.stderr}"
    shutil.rmtree(field.workspace)
    before = state(seed)
    done = field.run(f"{PYTHON} attack.py", *OVERLAY, seed, "--json", workspace=False)
    assert '"mode": "overlay"' in done.stdout
    assert state(seed) == before
    assert "Traceback" not in done.stdout, done.stdout


READ_HIDDEN = """
import itertools
names = ['.env', 'box/.env', 'secrets/key', 'secrets', 'out']
def look(when):
    for name in names:
        for path in (name, './' + name, '/workspace/' + name, '/proc/self/root/workspace/' + name,
                     '/proc/self/cwd/' + name, '/proc/thread-self/cwd/' + name):
            try:
                say((when, path, os.listdir(path) if os.path.isdir(path) else open(path).read()))
            except OSError:
                pass
    for directory, _, files in os.walk('.'):
        for file in files:
            try:
                say((when, directory, file, open(os.path.join(directory, file)).read(100)))
            except OSError:
                pass
def attempt(what, *args, **more):
    try:
        return what(*args, **more)
    except OSError as error:
        return None
look('at first')
for name in names:
    # Put something over a whiteout and take it away again.
    attempt(os.mkdir, name)
    look('mkdir ' + name)
    attempt(os.rmdir, name)
    look('rmdir ' + name)
    attempt(os.mknod, name, 0o20000, 0)
    attempt(os.unlink, name)
    look('unlink ' + name)
    attempt(os.link, name, 'linked')
    attempt(os.rename, name, 'renamed')
    look('rename ' + name)
for mark in 'user.overlay.opaque', 'user.overlay.whiteout', 'user.overlay.redirect', \\
            'user.overlay.metacopy', 'user.overlay.origin', 'trusted.overlay.opaque':
    for where in '.', 'box', 'victim':
        for value in b'y', b'x', b'/secrets', b'/.env', b'':
            attempt(os.setxattr, where, mark, value)
        attempt(os.removexattr, where, mark)
    look(mark)
attempt(os.rename, 'box', 'carton')
look('renamed the directory')
import shutil
attempt(shutil.rmtree, 'box')
attempt(os.mkdir, 'box')
look('made the directory anew')
fd = os.open('.', os.O_RDONLY)
for path in '..', '../..', '../changes', '../hidden', '../work', '../seed', '/proc/1/cwd', \\
            '/proc/1/root', '/proc/1/fd', '/proc/self/fd/1', '/proc/self/fd/9', '/hidden', '/changes':
    try:
        other = os.open(path, os.O_RDONLY, dir_fd=fd)
        say((path, os.listdir(other)))
        say((path, os.open('secrets/key', os.O_RDONLY, dir_fd=other)))
    except OSError:
        pass
say('tried everything')
"""


def test_what_is_hidden_of_a_seed_stays_hidden(field: Range, seed: Path) -> None:
    write_script(field, seed, READ_HIDDEN)
    shutil.copytree(seed, field.workspace, dirs_exist_ok=True, symlinks=True)
    field.give(field.workspace)
    control = field.control(f"{PYTHON} attack.py")
    assert control.stdout.count(field.token) >= 4, "the attack does nothing"
    before = state(seed)
    done = field.run(f"{PYTHON} attack.py", *OVERLAY, seed, workspace=False)
    assert done.stdout.endswith("tried everything\n"), done.stderr
    assert field.token not in done.stdout
    assert "changes" not in done.stdout and "hidden" not in done.stdout
    assert state(seed) == before


def test_attributes_of_a_seed_are_no_orders_to_the_overlay(field: Range, seed: Path) -> None:
    """Marks of overlays in a seed that somebody prepared must not lead to what is hidden, or out."""
    for path, mark, value in [("box", "user.overlay.redirect", b"/secrets"),
                              ("box", "user.overlay.opaque", b"y"),
                              ("victim", "user.overlay.redirect", b"/.env"),
                              ("victim", "user.overlay.metacopy", b"")]:
        os.setxattr(seed / path, mark, value)
    write_script(field, seed, READ_HIDDEN)
    done = field.run(f"{PYTHON} attack.py", *OVERLAY, seed, workspace=False)
    assert done.stdout.endswith("tried everything\n"), done.stderr
    assert field.token not in done.stdout


def test_links_of_a_seed_lead_a_flush_nowhere(field: Range, seed: Path) -> None:
    """What an agent puts in the place of a link that was hidden is not written through it."""
    (seed / "src").symlink_to(field.outside)
    (seed / "note.md").symlink_to(field.secret)
    field.give(seed)
    done = field.run("mkdir src; echo evil > src/secret; echo evil > note.md; echo good > ok.md",
                     *OVERLAY, seed, "--sync", workspace=False)
    assert field.secret.read_text() == field.token + "\n"
    assert (seed / "ok.md").read_text() == "good\n"
    assert done.returncode == 125 and "symbolic link" in done.stderr
    (kept,) = field.tmp.iterdir()
    shutil.rmtree(kept)


def test_a_read_only_directory_of_a_seed_opens_no_other(field: Range, seed: Path) -> None:
    """Those are made anew in the hidden layer, which must not make what it hides visible."""
    (seed / "shut").mkdir()
    (seed / "shut/.env").write_text(field.token)
    (seed / "shut/file").write_text("file")
    field.give(seed)
    (seed / "shut").chmod(0o500)
    done = field.run("ls -A shut; cat shut/.env; echo x > shut/new && rm shut/new && cat shut/*",
                     *OVERLAY, seed, workspace=False)
    assert done.stdout == "file\nfile"
    (seed / "shut").chmod(0o700)
