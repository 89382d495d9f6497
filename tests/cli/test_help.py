# SPDX-License-Identifier: Apache-2.0
"""Help, version, and the completion of bash."""

import re
import subprocess

import pytest

from helpers import BUILD, ROOT

COMMANDS = ["run", "shell", "agent", "plan", "mcp", "config", "doctor", "version", "help"]
COMPLETE = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_pinfold "$1"
printf '%s\n' "${COMPREPLY[@]}"
"""


def complete(*words, cwd=None):
    """What bash offers for the last word; "=" is a word of its own there."""
    done = subprocess.run(["bash", "--norc", "-c", COMPLETE, "bash",
                           ROOT / "completions/pinfold.bash", BUILD / "pinfold", *words],
                          capture_output=True, text=True, check=True, cwd=cwd)
    assert done.stderr == ""
    return done.stdout.split()


def options_of(pinfold, command):
    return re.findall(r"^  (--[a-z-]+)", pinfold("help", command).stdout, re.MULTILINE)


def test_version_is_that_of_the_build(pinfold):
    version = re.search(r"version : '([^']+)'", (ROOT / "meson.build").read_text())[1]
    for args in (["version"], ["--version"]):
        assert pinfold(*args).stdout == f"pinfold {version}\n"


def test_the_overview_lists_every_command(pinfold):
    for args in (["help"], ["--help"], ["-h"]):
        done = pinfold(*args)
        assert done.returncode == 0
        assert re.findall(r"^  ([a-z]+)  +\S", done.stdout, re.MULTILINE) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_in_three_ways(pinfold, command):
    texts = {pinfold(*args).stdout for args in ([command, "--help"], [command, "-h"],
                                               ["help", command])}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith(f"usage: pinfold {command}")
    assert all(len(line) <= 100 for line in text.splitlines())


def test_help_for_run_names_every_option_and_exit_status(pinfold):
    text = pinfold("help", "run").stdout
    for word in ("--backend", "--seed", "--exclude", "--sync", "--include", "--timeout",
                 "--max-output", "--env", "--no-inherit-env", "--workspace", "--audit", "--json",
                 "124", "125", "126", "127", "128+n"):
        assert word in text


def test_help_on_a_full_disk_fails(pinfold):
    with open("/dev/full", "w") as full:
        done = pinfold("help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 125
    assert "No space left on device" in done.stderr


def test_completes_commands():
    assert complete("") == COMMANDS
    assert complete("p") == ["plan"]
    assert complete("help", "v") == ["version"]


@pytest.mark.parametrize("command", COMMANDS)
def test_completes_every_option_that_the_help_names(pinfold, command):
    if command == "help":
        assert complete("help", "") == COMMANDS
    else:
        assert complete(command, "--") == options_of(pinfold, command)


def test_completes_values(tmp_path):
    here = tmp_path / "here"
    (here / "seeds").mkdir(parents=True)
    (here / "seed.txt").write_text("")
    assert complete("run", "--seed", "see", cwd=here) == ["seeds"]
    assert complete("run", "--sync", "=", "see", cwd=here) == ["seeds"]
    assert complete("run", "--sync", "=", cwd=here) == ["seeds"]
    assert sorted(complete("run", "--audit", "see", cwd=here)) == ["seed.txt", "seeds"]
    assert sorted(complete("run", "--backend", "")) == ["agentcore", "daytona", "isolated", "local"]
    assert complete("run", "--net", "h") == ["host"]
    assert complete("agent", "--model", "o") == ["openai:"]
    assert complete("agent", "--seed", "see", cwd=here) == ["seeds"]
    assert sorted(complete("agent", "--session", "see", cwd=here)) == ["seed.txt", "seeds"]
    assert complete("agent", "--max-turns", "") == []


def test_completes_the_words_behind_commands(tmp_path):
    (tmp_path / "policy.toml").write_text("")
    assert complete("config", "") == ["check"]
    assert complete("mcp", "") == ["install"]
    assert complete("mcp", "install", "c") == ["claude-code", "codex", "cursor"]
    assert "--write" in complete("mcp", "install", "codex", "--")
    assert "--seed" not in complete("mcp", "install", "codex", "--")
    assert complete("mcp", "install", "codex", "--scope", "u") == ["user"]
    assert complete("run", "--config", "pol", cwd=tmp_path) == ["policy.toml"]


def test_completes_the_command_that_is_run(tmp_path):
    (tmp_path / "file.c").write_text("")
    assert "printf" in complete("run", "--seed", "x", "prin")
    assert complete("run", "cat", "fi", cwd=tmp_path) == ["file.c"]
    # its options are not ours
    assert complete("run", "-q", "--timeout", "3", "cat", "--se", cwd=tmp_path) == []
    assert complete("run", "--", "cat", "fi", cwd=tmp_path) == ["file.c"]
