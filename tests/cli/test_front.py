# SPDX-License-Identifier: Apache-2.0
"""The program that starts quickly executes the full one for what it does not do itself."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import BUILD

pytestmark = [
    pytest.mark.plain,
    pytest.mark.skipif(not (BUILD / "pinfold-full").exists(), reason="built without musl"),
]

# What was executed, and how: the process, then one argument a line.
TELL = "#!/bin/sh\necho \"full $$\"\nfor word; do echo \"$word\"; done\nexit 7\n"


@pytest.fixture
def front(common: Path):
    """The quick program without the full one, in a directory of its own."""
    program = common / "pinfold"
    for name in "pinfold", "pinfold-init":
        shutil.copy(BUILD / name, common)

    def run(*args: str, full: str | None = None, mode: int = 0o755):
        if full is not None:
            (common / "pinfold-full").write_text(full)
            (common / "pinfold-full").chmod(mode)
        child = subprocess.Popen([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        out, err = child.communicate(timeout=60)
        return child, out, err
    return run


@pytest.mark.parametrize("args", [
    ["run", "--json", "--", "echo", "a b", ""],
    ["run", "--quiet", "--audit", "/proc/nonexistent/audit", "true"],
    ["run", "--backend=isolated", "--net", "allow=example.org", "true"],
    ["plan", "--seed", "/proc/nonexistent"],
    ["help", "run"],
    ["--help"],
    ["no-such-command", "-x", "--", "\\ \t*"],
])
def test_the_full_program_takes_over_with_every_word(front, args: list[str]) -> None:
    child, out, err = front(*args, full=TELL)
    assert out == f"full {child.pid}\n" + "".join(word + "\n" for word in args)
    assert (child.returncode, err) == (7, "")


@pytest.mark.parametrize("args, status, words", [
    (["run", "-q", "exit 3"], 3, ""),
    (["run", "-q", "--", "echo", "--json"], 0, "--json\n"),
    (["run", "-q", "--backend", "local", "true"], 0, ""),
    (["run", "--help"], 0, "usage: pinfold run"),
    (["version"], 0, "pinfold "),
    (["--version"], 0, "pinfold "),
    (["doctor", "--help"], 0, "usage: pinfold doctor"),
    (["run", "--json"], 125, ""),
    (["run", "--json", "--no-such-option", "true"], 125, ""),
])
def test_the_common_things_need_no_full_program(front, args, status, words) -> None:
    child, out, err = front(*args, full="#!/bin/sh\necho wrong\nexit 99\n")
    if status == 125 and args == ["run", "--json"]:
        assert err == "pinfold: run: no command to run; see 'pinfold help run'\n"
    assert child.returncode == status, err
    assert out.startswith(words)
    assert "wrong" not in out


def test_a_full_program_that_cannot_be_executed_is_an_error_that_names_it(front) -> None:
    child, out, err = front("run", "--json", "true", full=TELL, mode=0o644)
    assert (child.returncode, out) == (125, "")
    assert err == "pinfold: execute pinfold-full: Permission denied\n"


def test_a_full_program_that_is_missing_is_an_error_that_says_where_it_should_be(front) -> None:
    config = (BUILD / "pf_config.h").read_text()
    (installed,) = re.findall(r'PF_LIBEXECDIR "(.*)"', config)
    if os.path.exists(f"{installed}/pinfold-full"):
        child, out, _ = front("run", "--json", "true")
        assert (child.returncode, json.loads(out)["execute"]["exit_code"]) == (0, 0)
        return
    child, out, err = front("run", "--json", "true")
    assert (child.returncode, out) == (125, "")
    assert err == ("pinfold: this takes the program pinfold-full, which is neither beside this one "
                   f"nor in {installed}; install pinfold anew\n")


@pytest.mark.parametrize("args", [
    ["run", "-q", "--seed", "/proc/nonexistent", "true"],
    ["run", "-q", "--seed", "/tmp/" + "a/" * 2500, "true"],
    ["run", "-q", "--workspace", "/dev/null", "true"],
    ["run", "-q", "--", "/"],
    ["run", "-q", "--", "no-such-program"],
    ["run", "-q", "echo out; echo err >&2; exit 4"],
    ["run", "-q", "kill -9 $$"],
    ["run", "--timeout", "x", "true"],
    ["run", "-q", "--timeout", "0.2", "sleep 20"],
    ["run", "-q", "--backend", "isolated", "--rw", "/nonexistent", "true"],
    ["run", "--help"],
    ["doctor", "x"],
    ["version"],
    [],
])
def test_both_programs_do_and_say_the_same(args: list[str]) -> None:
    both = [subprocess.run([BUILD / name, *args], capture_output=True, text=True, timeout=60)
            for name in ("pinfold", "pinfold-full")]
    assert (both[0].returncode, both[0].stdout) == (both[1].returncode, both[1].stdout)
    assert both[0].stderr == both[1].stderr


def test_more_than_a_page_of_unicode_goes_through_both_alike() -> None:
    line = "printf 'ä€𝄞\\n%.0s' $(seq 3000); printf 'broken \\303'"
    both = [subprocess.run([BUILD / name, "run", "-q", line], capture_output=True, timeout=60)
            for name in ("pinfold", "pinfold-full")]
    assert both[0].stdout == both[1].stdout
    assert both[0].stdout.startswith("ä€𝄞\n".encode() * 3000)
