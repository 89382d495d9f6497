# SPDX-License-Identifier: Apache-2.0
"""pinfold doctor tells what isolation the machine offers."""

import os
import subprocess

import pytest
from helpers import copy_programs
from owners import IS_ROOT


def test_doctor_says_what_there_is_and_agrees_with_run(pinfold):
    done = pinfold("doctor")
    lines = done.stdout.splitlines()
    for name in ("user namespace", "mount", "seccomp", "Landlock", "cgroup v1", "a whole sandbox"):
        assert any(name in line for line in lines), name
    works = pinfold("run", "-q", "--backend", "isolated", "true").returncode == 0
    assert (done.returncode == 0) == works
    assert ("MISSING" in done.stdout) != works
    assert "refuses" in done.stdout or works


def test_doctor_takes_no_argument(pinfold):
    done = pinfold("doctor", "x")
    assert done.returncode == 125 and "takes no argument" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="needs the right to mount")
@pytest.mark.parametrize("proc, cause", [
    ("mount -t proc proc proc", "this process is in a chroot"),
    ("mount --rbind /proc proc", "this process is in a chroot"),
    # As a container looks, whose root is a mount too: one cause among others.
    ('mount --bind . . && cd "$PWD" && mount -t proc proc proc', "in a chroot"),
    pytest.param("true", "this process is in a chroot", marks=pytest.mark.plain),
], ids=["own", "host's", "mount", "no proc"])
def test_a_chroot_is_named_as_the_cause(tmp_path, proc, cause):
    """In which Linux makes no user namespaces."""
    tree = tmp_path / "tree"
    for name in "usr", "proc", "dev", "tmp":
        (tree / name).mkdir(parents=True)
    for name in "lib", "lib64", "bin":
        (tree / name).symlink_to(f"usr/{name}")
    copy_programs(tree)
    inside = f"{proc} && mount --bind /usr usr && exec chroot . /pinfold"
    for words in (["doctor"], ["run", "--", "true"]):
        done = subprocess.run(["unshare", "-m", "sh", "-c", f'{inside} "$@"', "sh", *words], cwd=tree,
                              env={**os.environ, "TMPDIR": "/tmp"}, capture_output=True, text=True,
                              timeout=60)
        said = done.stdout + done.stderr
        assert done.returncode in (1, 125) and cause in said, said
