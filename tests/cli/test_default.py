# SPDX-License-Identifier: Apache-2.0
"""Isolation as the default: what happens where it cannot be had, and what is said to a person whose
command did not find something."""

import os
import pty
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import BUILD, STRANGER, copy_programs
from terminal import Terminal

# In a user namespace of its own a process may forbid itself namespaces, without touching the machine.
FORBID = 'echo 0 > /proc/sys/user/max_{kind}_namespaces && exec "$@"'


def forbidding(kind: str, *words: object, **options: object) -> subprocess.CompletedProcess:
    """Run the command where no namespaces of a kind can be made."""
    who = {"user": STRANGER, "group": STRANGER, "extra_groups": []} if options.pop("low") else {}
    line = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c", FORBID.format(kind=kind), "sh",
            *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, cwd="/",
                          env={**os.environ, **options}, **who)


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.skipif(
        os.getuid() != 0, reason="only root can become somebody else"))], ids=["we", "stranger"])
def forbidden(request: pytest.FixtureRequest, common: Path):
    """A copy of the command that everybody may run, as us and as a stranger."""
    copy_programs(common)
    place = common / "tmp"
    place.mkdir()
    place.chmod(0o777)
    probe = subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip("this machine gives no user namespace to make the test in")
    yield lambda kind, *words: forbidding(kind, common / "pinfold", *words, low=request.param,
                                          TMPDIR=str(place))
    assert list(place.iterdir()) == [], "a temporary workspace was left behind"


@pytest.mark.parametrize("kind", ["user", "mnt", "pid", "net"])
def test_where_nothing_can_be_isolated_nothing_runs(forbidden, kind):
    done = forbidden(kind, "run", "echo it ran; echo it ran >&2")
    assert done.returncode == 125
    assert "it ran" not in done.stdout + done.stderr
    assert f"sysctl user.max_{kind}_namespaces=" in done.stderr
    assert "--backend local" in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) <= 3 and all(line.startswith("pinfold: ") for line in lines)


def test_what_was_told_to_run_without_isolation_runs(forbidden):
    done = forbidden("user", "run", "-q", "--backend", "local", "echo it ran")
    assert (done.returncode, done.stdout) == (0, "it ran\n")


def test_a_refusal_is_in_the_report_too(forbidden):
    done = forbidden("user", "run", "--json", "echo it ran")
    assert done.returncode == 125 and "NotImplementedError" in done.stdout
    assert "it ran" not in done.stdout


def test_doctor_says_the_same(forbidden):
    done = forbidden("user", "doctor")
    assert done.returncode == 1
    assert "MISSING" in done.stdout and "refuses" in done.stdout


def test_a_missing_program_init_is_told(pinfold, tmp_path):
    alone = tmp_path / "pinfold"
    shutil.copy(BUILD / "pinfold", alone)
    done = subprocess.run([alone, "run", "echo it ran"], capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        pytest.skip("pinfold-init is installed on this machine")
    assert (done.returncode, done.stdout) == (125, "")
    assert "pinfold-init" in done.stderr


# ---- hints ----

@pytest.fixture
def toolbox(tmp_path: Path) -> Path:
    """A directory with a program of the user's own."""
    place = tmp_path / "tools/bin"
    place.mkdir(parents=True)
    tool = place / "frobnicate-here"
    tool.write_text("#!/bin/sh\necho frobnicated\n")
    tool.chmod(0o755)
    return place


@pytest.mark.parametrize("words", [["cd . && frobnicate-here --all | cat; exit 127"],
                                   ["frobnicate-here", "--all"]])
def test_a_program_that_is_elsewhere_on_this_machine_is_pointed_at(pinfold, toolbox, words):
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:{toolbox}"}
    done = pinfold("run", "--", *words, env=env)
    assert done.returncode == 127
    assert f"frobnicate-here is in {toolbox} here" in done.stderr
    given = ["--ro", str(toolbox), "--env", f"PATH={toolbox}:/usr/local/bin:/usr/bin:/bin"]
    assert " ".join(given) in done.stderr
    assert pinfold("run", *given, "frobnicate-here").stdout == "frobnicated\n"


@pytest.mark.parametrize("name", ["a b", "it's", "$HOME", "a;b", "*", "\\", "\u00e9 \"x\""])
@pytest.mark.parametrize("whole", [False, True])
def test_what_is_said_to_try_can_be_typed(pinfold, toolbox, name, whole):
    place = toolbox.rename(toolbox.parent / name)
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:{place}"}
    command = f"{place}/frobnicate-here" if whole else "frobnicate-here"
    done = pinfold("run", "--", command, "x", env=env)
    pattern = "; (--ro .*) would, and" if whole else "try (--ro .*), and another --ro"
    given = shlex.split(re.search(pattern, done.stderr)[1])
    assert given[:2] == ["--ro", str(place)]
    assert pinfold("run", *given, "--", command, "x").stdout == "frobnicated\n"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[1m", os.fsdecode(b"\xff")])
def test_what_cannot_be_typed_is_not_said_to_be_tried(pinfold, toolbox, name):
    place = toolbox.rename(toolbox.parent / name)
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:{place}"}
    done = pinfold("run", "--", "frobnicate-here", env=env)
    assert done.returncode == 127 and done.stderr.count("\n") == 2
    assert done.stderr.endswith(" here, which is not shown to the command\n")


def test_a_path_that_is_not_shown_is_pointed_at(pinfold, toolbox):
    done = pinfold("run", "--", f"{toolbox}/frobnicate-here")
    assert done.returncode == 127
    assert f"--ro {toolbox} would" in done.stderr
    assert pinfold("run", "--ro", toolbox, "--", f"{toolbox}/frobnicate-here").returncode == 0


@pytest.mark.parametrize("option", [[], ["--ro"], ["--rw"]])
def test_a_path_that_is_shown_is_not_pointed_at(pinfold, toolbox, option):
    """The command, which is there, said itself that something is not."""
    path = f"{toolbox}/frobnicate-here" if option else "/bin/true"
    done = pinfold("run", *option, *([toolbox] if option else []), "--", f"{path}; exit 127")
    assert done.returncode == 127 and "--ro" not in done.stderr


@pytest.mark.parametrize("options", [["-q"], ["--backend", "local", "-q"]])
def test_quiet_gives_no_hint(pinfold, toolbox, options):
    done = pinfold("run", *options, f"{toolbox}/missing")
    assert done.returncode == 127 and "--ro" not in done.stderr


def test_what_nobody_has_gets_no_hint(pinfold):
    done = pinfold("run", "no-such-program-anywhere")
    assert done.returncode == 127 and "--ro" not in done.stderr


def on_terminal(*args: object) -> str:
    ours, theirs = pty.openpty()
    child = subprocess.Popen([BUILD / "pinfold", *map(str, args)], stdout=subprocess.DEVNULL,
                             stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            os.close(ours)
            child.wait(60)
            return shown.decode()


def test_a_person_is_told_that_the_workspace_was_empty(pinfold, project):
    assert "--seed . copies the current directory in" in on_terminal("run", "test -e README.md")
    assert "--seed" not in on_terminal("run", "test ! -e README.md")
    assert "--seed" not in on_terminal("run", "--seed", project, "test ! -e README.md")
    assert "--seed" not in pinfold("run", "false").stderr


def test_a_person_who_starts_the_server_is_told_what_it_waits_for():
    term = Terminal()
    term.start(BUILD / "pinfold", "mcp")
    term.expect("pinfold: agent programs start this, .*Ctrl-D ends it")
    term.type("\x04")
    assert term.wait() == 0
    term.close()


# ---- first commands ----

def test_a_seed_below_home_and_relative_names_just_work(pinfold, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "project/src").mkdir(parents=True)
    (home / "project/src/a.py").write_text("print('a')\n")
    monkeypatch.setenv("HOME", str(home))
    done = pinfold("run", "--seed", "project", "--sync=out", "--workspace", "work",
                   "python3 src/a.py | tee b.md", cwd=home)
    assert (done.returncode, done.stdout) == (0, "a\n")
    assert (home / "out/b.md").read_text() == (home / "work/b.md").read_text() == "a\n"
    done = pinfold("run", "-q", "--seed", ".", "python3 src/a.py", cwd=home / "project")
    assert done.stdout == "a\n"


@pytest.mark.skipif(os.getuid() != 0, reason="root alone may look into what is another user's")
def test_root_is_warned_of_a_workspace_that_is_another_users(pinfold, tmp_path):
    work = tmp_path / "work"
    work.mkdir(mode=0o755)
    os.chown(work, STRANGER, STRANGER)
    done = pinfold("run", "--workspace", work, "touch x")
    assert f"belongs to user {STRANGER}, and commands cannot write to it" in done.stderr
    assert done.returncode == 1 and "Permission denied" in done.stderr
    os.chown(work, 0, 0)
    assert pinfold("run", "--workspace", work, "touch x").stderr == ""


@pytest.mark.skipif(not shutil.which("git"), reason="there is no git")
def test_a_commit_needs_no_configuration(pinfold):
    done = pinfold("run", "-q", "git init -q . && echo 1 > a && git add a && git commit -qm one && "
                                "git log --format='%an %s'")
    assert (done.returncode, done.stdout) == (0, "agent one\n"), done.stderr


def test_a_system_looks_like_one(pinfold):
    script = ("import os, pwd, socket, locale, time, tempfile, getpass\n"
              "print(getpass.getuser(), os.path.expanduser('~'), locale.getpreferredencoding())\n"
              "print(socket.getprotobyname('tcp'), socket.getservbyname('https'))\n"
              "print(os.cpu_count() == len(os.sched_getaffinity(0)) or os.cpu_count() > 0)\n"
              "print(socket.gethostbyname('localhost'), tempfile.gettempdir())\n"
              "import multiprocessing; print(sum(multiprocessing.Pool(2).map(abs, [-1, -2])))\n")
    done = pinfold("run", "-q", "/usr/bin/python3", "-c", script)
    assert done.stdout.split("\n")[:-1] == ["agent /home/agent UTF-8", "6 443", "True",
                                            "127.0.0.1 /tmp", "3"], done.stderr
