# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, a closed stdout, a reader that does not read, SIGKILL: nothing stays behind."""

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from helpers import BUILD, wait_until

class Stubborn:
    """A command that starts what is hard to kill, and waits. Its processes are known by a word that
    no other test has, because inside a sandbox they have other numbers."""

    def __init__(self) -> None:
        self.word = f"300.{random.getrandbits(60)}"
        self.script = f"""
            trap '' TERM INT HUP
            setsid sleep {self.word} &
            (trap '' TERM; sleep {self.word}; true) &
            sleep 0.1; echo ready
            while :; do sleep {self.word}; done
        """

    def running(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.word in (entry / "cmdline").read_text(errors="replace").split("\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def started(self, child: Any) -> None:
        assert child.stdout.readline() == "ready\n"
        wait_until(lambda: len(self.running()) == 3)


@pytest.fixture
def stubborn() -> Stubborn:
    return Stubborn()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                                    signal.SIGQUIT])
def test_a_signal_kills_everything_and_removes_the_workspace(start, backend, stubborn, own_tmpdir, number):
    child = start("run", "-q", *backend, stubborn.script)
    stubborn.started(child)
    assert len(list(own_tmpdir.iterdir())) == 1
    child.send_signal(number)
    assert child.wait(20) == 128 + number
    assert stubborn.running() == []
    assert list(own_tmpdir.iterdir()) == []


def test_a_second_ctrl_c_does_not_break_the_cleanup(start, backend, stubborn, own_tmpdir):
    child = start("run", "-q", *backend, stubborn.script)
    stubborn.started(child)
    for _ in range(20):
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        time.sleep(0.02)
    assert child.wait(20) == 130
    assert stubborn.running() == []
    assert list(own_tmpdir.iterdir()) == []


def test_ctrl_c_syncs_nothing_and_says_nothing_more(start, backend, tmp_path):
    out = tmp_path / "out"
    child = start("run", "-q", *backend, f"--sync={out}", "echo x > a.md; echo ready; sleep 300")
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20)[1] == ""
    assert child.returncode == 130
    assert not out.exists()


def test_an_ignored_sighup_stays_ignored(tmp_path, backend):
    go = tmp_path / "go"
    os.mkfifo(go)
    line = 'trap "" HUP; exec "$0" run -q "$@" "echo ready; cat go; exit 4"'
    child = subprocess.Popen(["/bin/sh", "-c", line, BUILD / "pinfold", *backend, "--workspace",
                              tmp_path], stdout=subprocess.PIPE,
                             text=True)
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGHUP)
    go.write_text("on\n")
    assert child.communicate(timeout=20)[0] == "on\n"
    assert child.returncode == 4


def test_sigkill_leaves_no_process(start, backend, stubborn, own_tmpdir):
    child = start("run", "-q", *backend, stubborn.script)
    stubborn.started(child)
    child.kill()
    child.wait(20)
    wait_until(lambda: not stubborn.running())
    # nobody was there to remove the workspace
    for place in own_tmpdir.iterdir():
        place.rmdir()


def test_a_closed_stdout_stops_the_command_with_141(start, backend, stubborn, own_tmpdir):
    child = start("run", "-q", *backend, f"sleep {stubborn.word} & while echo y; do :; done; wait")
    assert child.stdout.readline() == "y\n"
    child.stdout.close()
    assert child.wait(20) == 141
    assert stubborn.running() == []
    child.stdout = open(os.devnull)
    assert list(own_tmpdir.iterdir()) == []


SCRIPT = '{"turns": [{"reply": "Done."}]}'
AGENT = ["agent", "-q", "--backend", "local", "--no-sync", "--model", "scripted:script.json", "x"]
PRINTS = [["help"], ["help", "run"], ["run", "--help"], ["version"], ["doctor"], ["config", "check"],
          ["config", "check", "--json"], ["plan", "--seed", "."], ["plan", "--json", "--seed", "."],
          ["run", "-q", "--backend", "local", "echo x"], AGENT, [*AGENT[:-1], "--json", "x"],
          ["run", "--json", "--backend", "local", "echo x"], ["mcp", "install", "cursor", "-q"]]


@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_what_prints_ends_with_141_when_nobody_reads_it_and_says_why_when_it_cannot(words, tmp_path):
    """From the first byte on: whatever is printed, in JSON as well, and by whoever was started
    without a signal for it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "script.json").write_text(SCRIPT)
    for ignored in (True, False):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([BUILD / "pinfold", *words], stdout=writer, stderr=subprocess.PIPE,
                              text=True, cwd=project, timeout=60, restore_signals=not ignored)
        os.close(writer)
        assert done.returncode in ((141,) if ignored else (141, -signal.SIGPIPE)), done.stderr
        assert "pinfold: write" not in done.stderr and "cancelled" not in done.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run([BUILD / "pinfold", *words], stdout=full, stderr=subprocess.PIPE,
                              text=True, cwd=project, timeout=60)
    assert done.returncode == 125
    assert done.stderr.count("No space left on device") == 1, done.stderr


def test_a_full_stdout_is_an_error_that_says_so(run):
    with open("/dev/full", "w") as full:
        done = run( "echo text; sleep 300", capture_output=False, stdout=full,
                       stderr=subprocess.PIPE)
    assert done.returncode == 125
    assert "write to stdout: No space left on device" in done.stderr


def test_a_reader_that_sleeps_holds_up_neither_deadline_nor_ctrl_c(start, backend):
    for args, stop, status in ((["--timeout", "0.5"], None, 124), ([], signal.SIGINT, 130)):
        child = start("run", "-q", *backend, *args, "yes")
        wait_until(lambda: select.select([child.stdout], [], [], 0)[0])
        time.sleep(0.2)  # the pipe fills up
        if stop:
            child.send_signal(stop)
        assert child.wait(20) == status


def test_a_non_blocking_stdout_loses_nothing(start, backend):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    child = start("run", "-q", *backend, "head -c 2000000 /dev/zero", stdout=writer)
    os.close(writer)
    time.sleep(0.2)  # the pipe fills up
    with os.fdopen(reader, "rb") as stream:
        assert len(stream.read()) == 2000000
    assert child.wait(20) == 0


def test_background_processes_end_with_the_run(pinfold, backend, stubborn):
    done = pinfold("run", *backend, f"sleep {stubborn.word} >/dev/null 2>&1 & echo x")
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert stubborn.running() == []
    assert "background" in done.stderr


def read_all(terminal):
    """All that appears on a terminal until nobody has it open, and close it."""
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # EIO: the other side is closed
            os.close(terminal)
            return shown.decode()


def on_terminal(*args):
    """Run the command with a terminal as stderr. Returns what appeared there."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([BUILD / "pinfold", *args], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = read_all(ours)
    assert child.wait(60) == 0
    return shown


def test_a_short_seed_shows_no_progress_on_a_terminal(project):
    assert on_terminal("run", "-q", "--seed", project, "true") == ""


def test_no_escape_sequence_reaches_a_file(pinfold, project):
    assert "\r" not in pinfold("run", "--seed", project, "--sync", "true").stderr


@pytest.mark.plain  # the allocator of ASan keeps what was freed
@pytest.mark.parametrize("args", [["-q"], ["-q", "--max-output", "100000"], ["--json"]])
def test_memory_does_not_grow_with_the_output(start, backend, tmp_path, args):
    mark = tmp_path / "mark"
    line = "head -c 300000000 /dev/zero; touch mark; while [ -e mark ]; do sleep 0.01; done"
    child = start("run", *backend, "--workspace", tmp_path, *args, line, stdout=subprocess.DEVNULL)
    wait_until(mark.exists)
    status = Path(f"/proc/{child.pid}/status").read_text()
    mark.unlink()
    assert child.wait(20) == 0
    peak_kib = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    assert peak_kib < 16 * 1024


def test_a_long_seed_shows_progress_and_erases_it(tmp_path, own_tmpdir):
    seed = tmp_path / "many"
    seed.mkdir()
    for number in range(4000):
        (seed / f"{number}").write_text("x")
    ours, theirs = pty.openpty()
    child = subprocess.Popen([BUILD / "pinfold", "run", "--seed", seed, "true"], stderr=theirs)
    os.close(theirs)
    # As slow as it has to be: stopped in the middle for longer than no line shows.
    wait_until(lambda: any(place.joinpath("0").exists() or len(list(place.iterdir())) > 1
                           for place in own_tmpdir.iterdir()))
    child.send_signal(signal.SIGSTOP)
    time.sleep(0.7)
    child.send_signal(signal.SIGCONT)
    shown = read_all(ours)
    assert child.wait(60) == 0
    assert re.search(r"\rpinfold: seeding: \d+ files, \d[^\r]*\x1b\[K", shown)
    assert "\r\x1b[Kpinfold: seeded 4000 files" in shown


def supervisors_of(mark: str) -> list[int]:
    """The processes that have a variable in their environment; a zombie has none."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARK={mark}\0".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("where", [[], ["--workspace", "work"]])
def test_no_process_outlives_a_run_by_much(pinfold, tmp_path, where):
    mark = f"{tmp_path}-{where}"
    env = {**os.environ, "MARK": mark}
    done = pinfold("run", "-q", "--backend", "local", *where, "--", "sh", "-c",
                   "tr '\\0' '\\n' </proc/$PPID/environ", env=env, cwd=tmp_path)
    assert f"MARK={mark}\n" in done.stdout  # the supervisor would be found
    wait_until(lambda: not supervisors_of(mark))


@pytest.mark.parametrize("mode", ["copy", "overlay"])
def test_a_command_that_kills_its_supervisor_does_not_lose_its_results(pinfold, project, mode, tmp_path):
    done = pinfold("run", "--seed", project, "--seed-mode", mode, f"--sync={tmp_path / 'out'}",
                   "echo made >out.md; kill -9 $PPID; sleep 60")
    assert done.returncode == 137 and "killed its supervisor" in done.stderr
    assert (tmp_path / "out/out.md").read_text() == "made\n"
    done = pinfold("run", "--json", "--seed", project, "--seed-mode", mode,
                   f"--sync={tmp_path / 'out'}", "echo more >out.md; kill -9 -1")
    assert done.returncode == 137
    answer = json.loads(done.stdout)
    assert answer["execute"]["supervisor_lost"] is True and answer["sync"]["files_synced"] == 1
    assert (tmp_path / "out/out.md").read_text() == "more\n"


# The first process asks its parent, the supervisor, to trace it, as some programs do to find out
# whether they are debugged; so does one that comes to the supervisor as an orphan.
TRACED = """
import ctypes, os, signal, sys, time
if sys.argv[1] == "orphan" and os.fork():
    time.sleep(0.5)
    os._exit(7)
time.sleep(0.2 if sys.argv[1] == "orphan" else 0)
assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0
signal.signal(signal.SIGUSR1, lambda *_: print("had it", flush=True))
for _ in range(3):
    os.kill(os.getpid(), signal.SIGUSR1)
print("goes on", flush=True)
if sys.argv[1] == "die":
    os.kill(os.getpid(), signal.SIGTERM)
os.execvp("sh", ["sh", "-c", "exit 7"])
"""


@pytest.mark.parametrize("how, status", [("exec", 7), ("die", 128 + signal.SIGTERM), ("orphan", 7)])
def test_a_command_that_makes_a_tracer_of_its_supervisor_runs_on(run, project, how, status):
    (project / "traced.py").write_text(TRACED)
    done = run("--seed", project, "--timeout", "30", "--", "/usr/bin/python3", "traced.py", how)
    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout == "had it\n" * 3 + "goes on\n"
