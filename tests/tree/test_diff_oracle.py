# SPDX-License-Identifier: Apache-2.0
"""Diffs of random and hostile trees, applied by git and by patch: the new tree must come out."""

import os
import pathlib
import random
import shutil
import stat
import subprocess

import pytest

DIFF_TREES = os.environ["PINFOLD_DIFF_TREES"]
ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/nonexistent",
       "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": "/"}
ENV.update({name: value for name, value in os.environ.items()
            if name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TMPDIR")})


def diff(old, new):
    done = subprocess.run([DIFF_TREES, old, new], env=ENV, capture_output=True, timeout=120)
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    return done.stdout


def snapshot(root):
    """Every file and link below a directory: its git mode and its bytes."""
    found = {}
    root = os.fsencode(root)
    for folder, dirs, files in os.walk(root):
        for name in files + [d for d in dirs if os.path.islink(os.path.join(folder, d))]:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                found[os.path.relpath(path, root)] = (0o120000, os.readlink(path))
            else:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root)] = (
                        0o100755 if st.st_mode & 0o100 else 0o100644, file.read())
    return found


def write_tree(root, tree):
    root = os.fsencode(root)
    os.makedirs(root)
    for name, (mode, content) in tree.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode == 0o120000:
            os.symlink(content, path)
        else:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o755 if mode == 0o100755 else 0o644)


def check_applies(tmp, old, new, tools=("git", "patch")):
    """old and new: {name: (mode, bytes)}. Returns the diff."""
    work = tmp / "work"
    write_tree(work / "old", old)
    write_tree(work / "new", new)
    text = diff(work / "old", work / "new")
    (work / "diff").write_bytes(text)
    for tool in tools:
        if not text:
            break
        target = work / tool
        shutil.copytree(work / "old", target, symlinks=True)
        command = (["git", "apply", "-p1", "--whitespace=nowarn", work / "diff"] if tool == "git"
                   else ["patch", "-p1", "-s", "-i", work / "diff"])
        done = subprocess.run(command, cwd=target, env=ENV, capture_output=True, timeout=120)
        assert done.returncode == 0, (tool, done.stdout, done.stderr, text[:2000])
        assert snapshot(target) == snapshot(work / "new"), (tool, text[:2000])
    assert text or old == new
    shutil.rmtree(work)
    return text


LINES = [b"a\n", b"b\n", b"c\n", b"\n", b" \n", b"--- x\n", b"+++ y\n", b"@@ -1 +1 @@\n", b"\\ x\n",
         b"diff --git a/x b/x\n", b"\r\n", b"long " * 50 + b"\n", b"\xff\xfe\n", b"# c\n"]


def random_text(rng, length):
    text = b"".join(rng.choice(LINES[:rng.choice([3, len(LINES)])]) for _ in range(length))
    return text[:-1] if rng.random() < 0.3 else text


def mutate(rng, text):
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(lines) + 1)
        if rng.random() < 0.5:
            lines[at:at] = [rng.choice(LINES) for _ in range(rng.randrange(3))]
        else:
            del lines[at:at + rng.randrange(3)]
    text = b"".join(lines)
    return text.rstrip(b"\n") if rng.random() < 0.2 else text


def random_name(rng):
    pieces = [b"a", b"b", b"file.txt", b"with space", b'q"uote', b"back\\slash", b"tab\there",
              b"new\nline", b"\xc3\xa4", b"\xff\xfe", b"-x", b"\x7f\x01", b"x'y", b"$(id)", b"a b/c"]
    return b"/".join(rng.choice(pieces) for _ in range(rng.randrange(1, 3)))


def random_trees(rng):
    old, new = {}, {}
    names = {b"n%d-" % i + random_name(rng) for i in range(rng.randrange(1, 25))}
    for name in names:
        kind = rng.random()
        mode = 0o100755 if rng.random() < 0.3 else 0o100644
        before = (mode, random_text(rng, rng.randrange(0, 40)))
        if kind < 0.08:
            before = (0o120000, rng.choice([b"target", b"no where", b"deep/er"]))
        if kind < 0.3:
            old[name] = before
        elif kind < 0.5:
            new[name] = before
        else:
            old[name] = before
            after = (0o100755 if rng.random() < 0.3 else 0o100644, mutate(rng, before[1]))
            new[name] = before if rng.random() < 0.3 else after
            if rng.random() < 0.05:
                new[name] = (0o120000, b"other")
    return old, new


def test_git_makes_the_new_tree_of_random_old_ones(tmp_path):
    rng = random.Random(1)
    for _ in range(60):
        old, new = random_trees(rng)
        check_applies(tmp_path, old, new, tools=("git",))


def test_patch_makes_the_new_tree_too(tmp_path):
    rng = random.Random(2)
    for _ in range(25):
        old, new = random_trees(rng)
        for tree in old, new:
            for name in [n for n, (mode, _) in tree.items() if mode == 0o120000 or b"-x" in n]:
                del tree[name]
        plain = {name for name in {*old, *new} if all(0x20 <= c < 0x7f and c not in b"\"\\'$"
                                                      for c in name)}
        old = {n: v for n, v in old.items() if n in plain}
        # It makes no empty files, and removes those that become empty.
        new = {n: v for n, v in new.items() if n in plain and v[1]}
        old = {n: v for n, v in old.items() if v[1]}
        check_applies(tmp_path, old, new, tools=("patch",))


@pytest.mark.parametrize("old,new", [
    (b"", b"x"), (b"x", b""), (b"x", b"x\n"), (b"x\n", b"x"), (b"\n", b"\n\n"), (b"a\nb", b"b\na"),
    (b"a\r\nb\r\n", b"a\nb\n"), (b"--- a\n+++ b\n", b"@@ -1 +1 @@\n"), (b"\xff\n", b"\xfe\n"),
    (b"x\n" * 50, b"x\n" * 51), (b"a\n" * 20000, b"a\nb\n" * 10000),
    (b"".join(b"%d\n" % i for i in range(5000)),
     b"".join(b"%d\n" % i for i in range(5000) if i % 7) + b"end"),
    (b"x" * 100000, b"y" * 100000 + b"\n"),
    (b"\\ No newline at end of file\n", b"\\ No newline at end of file"),
    (b"a\n" + b"x" * 9000 + b"\n\0\n", b"a\n" + b"x" * 9000 + b"\n\0\0\n"),
])
def test_hostile_texts_come_through_git(tmp_path, old, new):
    check_applies(tmp_path, {b"f": (0o100644, old)}, {b"f": (0o100644, new)}, tools=("git",))


def test_modes_links_and_types_come_through_git(tmp_path):
    file, program, link = 0o100644, 0o100755, 0o120000
    old = {b"mode": (file, b"x\n"), b"both": (file, b"x\n"), b"link": (link, b"a"),
           b"to-file": (link, b"a/b"), b"to-link": (file, b"x\n"), b"to-dir": (file, b"x\n"),
           b"from-dir/a": (file, b"x\n"), b"from-dir/b/c": (file, b"y"), b"empty": (file, b"")}
    new = {b"mode": (program, b"x\n"), b"both": (program, b"y\n"), b"link": (link, b"b c"),
           b"to-file": (program, b"x\n"), b"to-link": (link, b"\xff\n"), b"to-dir/in": (file, b"z"),
           b"from-dir": (file, b""), b"empty-too": (program, b"")}
    check_applies(tmp_path, old, new, tools=("git",))


def test_a_binary_file_is_told_and_git_refuses_it(tmp_path):
    write_tree(tmp_path / "old", {b"b": (0o100644, b"\0old"), b"t": (0o100644, b"old\n")})
    write_tree(tmp_path / "new", {b"b": (0o100644, b"\0new"), b"t": (0o100644, b"new\n")})
    text = diff(tmp_path / "old", tmp_path / "new")
    assert b"Binary files a/b and b/b differ\n" in text
    (tmp_path / "diff").write_bytes(text)
    apply = ["git", "apply", "-p1", tmp_path / "diff"]
    assert subprocess.run(apply, cwd=tmp_path / "old", env=ENV, capture_output=True).returncode != 0
    # The rest can be had.
    subprocess.run([*apply, "--exclude=b"], cwd=tmp_path / "old", env=ENV, check=True)
    assert (tmp_path / "old/t").read_bytes() == b"new\n"


def test_a_diff_is_hardly_longer_than_that_of_git(tmp_path):
    rng = random.Random(3)
    ours = theirs = 0
    for number in range(40):
        text = random_text(rng, 300)
        work = tmp_path / str(number)
        write_tree(work / "old", {b"f": (0o100644, text)})
        write_tree(work / "new", {b"f": (0o100644, mutate(rng, mutate(rng, text)))})
        ours += diff(work / "old", work / "new").count(b"\n")
        done = subprocess.run(["git", "diff", "--no-index", "--minimal", work / "old", work / "new"],
                              env=ENV, capture_output=True)
        theirs += done.stdout.count(b"\n")
    assert ours <= theirs * 1.05


def test_the_list_says_what_the_diff_does(tmp_path):
    write_tree(tmp_path / "old", {b"a": (0o100644, b"1"), b"b": (0o100644, b"1"),
                                  b"c\nd": (0o100644, b"1")})
    write_tree(tmp_path / "new", {b"a": (0o100644, b"2"), b"c\nd": (0o100755, b"1"),
                                  b"e": (0o120000, b"x")})
    done = subprocess.run([DIFF_TREES, "-l", tmp_path / "old", tmp_path / "new"], env=ENV,
                          capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [b"modified 100644 100644 a", b"deleted 100644 000000 b",
                                             b"mode 100644 100755 c\nd", b"added 000000 120000 e"]
