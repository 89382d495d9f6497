# SPDX-License-Identifier: Apache-2.0
"""pinfold doctor tells what isolation the machine offers."""


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
