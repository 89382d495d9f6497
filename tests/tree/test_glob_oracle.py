# SPDX-License-Identifier: Apache-2.0
"""The glob matcher beside git's: thousands of generated patterns and paths, one answer.

Left out, since we differ on purpose: patterns that we refuse (no ']', an unknown class, a last
'\\'), "a//b" and "./a" (git matches nothing), and what only the format of .gitignore gives a
meaning (a leading '#' or '!', trailing blanks).
"""
import ctypes
import os
import random
import shutil
import subprocess

import pytest

PATTERNS = 1500
NAMES = ["a", "b", "ab", "a.c", "b.md", ".a", "aab", "A", "a-b", "a]", "1", "src", "x y"]
PIECES = ["a", "b", "ab", ".", "c", "md", "*", "*", "?", "**", "[ab]", "[!a]", "[^b]", "[a-c]",
          "[[:alpha:]]", "[[:digit:]-]", "[]a]", "\\*", "\\a", "A", "-", "src"]


def segment(rng):
    if rng.random() < 0.2:
        return "**"
    text = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 3)))
    return text if text not in (".", "..") else "a"


def pattern(rng):
    text = "/".join(segment(rng) for _ in range(rng.choice([1, 1, 2, 2, 3, 4])))
    return ("/" if rng.random() < 0.15 else "") + text + ("/" if rng.random() < 0.2 else "")


def plant(rng, root, depth, paths, prefix=""):
    """Directories and files with all the names, since git looks at what a path is."""
    for name in NAMES:
        path = prefix + name
        if depth > 0 and rng.random() < 0.45:
            os.mkdir(root / path)
            paths[path] = True
            plant(rng, root, depth - 1, paths, path + "/")
        elif rng.random() < 0.7:
            (root / path).write_bytes(b"")
            paths[path] = False


@pytest.fixture(scope="module")
def library():
    lib = ctypes.CDLL(os.environ["PINFOLD_LIBRARY"])
    lib.pinfold_patterns_match.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_char_p,
                                           ctypes.c_bool, ctypes.c_void_p]
    return lib


def ours(lib, text, name, is_dir):
    patterns = (ctypes.c_char_p * 2)(text.encode(), None)
    result = lib.pinfold_patterns_match(patterns, name.encode(), is_dir, None)
    assert result in (0, 1), (text, result)
    return bool(result)


def theirs(repo, env, text, names):
    (repo / ".git" / "info" / "exclude").write_text(text + "\n")
    run = subprocess.run(["git", "-C", str(repo), "-c", "core.ignoreCase=false", "check-ignore",
                          "--no-index", "--stdin", "-z"],
                         input="".join(name + "\0" for name in names).encode(), env=env,
                         stdout=subprocess.PIPE, check=False)
    assert run.returncode in (0, 1), text
    return set(run.stdout.decode().split("\0")) - {""}


def test_our_answers_are_those_of_git(library, tmp_path):
    if not shutil.which("git"):
        pytest.skip("git is not installed: there is nothing to compare with")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C",
           "GIT_CONFIG_NOSYSTEM": "1"}
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], env=env, check=True)
    rng = random.Random(20240229)
    paths = {}
    plant(rng, repo, 3, paths)
    matches = asked = 0
    for _ in range(PATTERNS):
        text = pattern(rng)
        names = rng.sample(sorted(paths), 25)
        ignored = theirs(repo, env, text, names)
        for name in names:
            answer = ours(library, text, name, paths[name])
            assert answer == (name in ignored), (text, name, paths[name])
            matches += answer
            asked += 1
    # A comparison of nothing but misses would prove nothing.
    assert matches > asked / 20
