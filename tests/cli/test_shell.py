# SPDX-License-Identifier: Apache-2.0
"""pinfold shell and pinfold run --tty, at a terminal, as root and as somebody else."""

import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import termios
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

from helpers import BUILD, STRANGER, wait_until
from terminal import Terminal, processes_with

PROGRAMS = ("pinfold", "pinfold-full", "pinfold-init", "pinfold-launch")
numbers = itertools.count(random.randrange(10**8, 2 * 10**8) * 100)


class Box:
    """How to start the command on a terminal: by whom, and with which backend."""

    def __init__(self, program: Path, backend: str, user: int, tmpdir: Path) -> None:
        self.program, self.backend, self.user, self.tmpdir = program, backend, user, tmpdir
        self.terminals: list[Terminal] = []

    def start(self, command: str, *args: Any, size: tuple[int, int] = (33, 101),
              **options: Any) -> Terminal:
        term = Terminal(*size, owner=self.user if os.getuid() == 0 else None)
        self.terminals.append(term)
        env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SHELL": "/bin/bash",
               "TERM": "xterm", "TMPDIR": str(self.tmpdir), "PS1": "$ "}
        if os.getuid() == 0 and self.user != 0:
            options.update(user=self.user, group=self.user, extra_groups=[])
        term.start(self.program, command, "-q", "--backend", self.backend, *args, env=env,
                   cwd="/", **options)
        return term

    def shell(self, *args: Any, **options: Any) -> Terminal:
        """A shell that has come up, with no line editor and no prompt in the way."""
        term = self.start("shell", *args, **options)
        term.type("PS1= PS2=; set +o emacs; bind 'set enable-bracketed-paste off' 2>/dev/null; "
                  "echo UP=$((1 + 1))\r")
        # What is typed while the editor has the terminal would keep its carriage returns.
        term.expect("UP=2\r\n")
        term.run("stty -echo")
        assert term.run("echo $((40 + 2))").endswith("42\n")
        return term


@pytest.fixture(params=itertools.product(("local", "isolated"), ("root", "stranger")),
                ids="-".join)
def box(request: pytest.FixtureRequest, common: Path) -> Iterator[Box]:
    backend, who = request.param
    if who == "root" and os.getuid() != 0:
        pytest.skip("this is not root")
    user = 0 if who == "root" else STRANGER if os.getuid() == 0 else os.getuid()
    for name in PROGRAMS:
        if (BUILD / name).exists():
            shutil.copy(BUILD / name, common)
    tmpdir = common / "tmpdir"
    tmpdir.mkdir()
    os.chown(tmpdir, user, user)
    made = Box(common / "pinfold", backend, user, tmpdir)
    yield made
    for term in made.terminals:
        term.close()
    wait_until(lambda: list(tmpdir.iterdir()) == [])  # one that was killed has a keeper


def sleeper() -> str:
    """A time to sleep for that no other test uses."""
    return str(next(numbers))


# ---- a terminal ----

def test_it_is_a_terminal_of_the_size_and_kind_of_ours(box):
    term = box.shell()
    assert term.run("test -t 0 && test -t 1 && test -t 2 && echo all").strip() == "all"
    name = term.run("tty").strip()
    assert name == "/dev/pts/0" if box.backend == "isolated" else name.startswith("/dev/pts/")
    assert term.run("stty size").strip() == "33 101"
    assert term.run("echo $TERM").strip() == "xterm"
    assert term.run("echo $HOME; pwd").split()[-1] == (
        "/workspace" if box.backend == "isolated" else str(next(box.tmpdir.iterdir())))
    term.type("exit 7\r")
    assert term.wait() == 7


def test_it_is_of_another_kind_when_that_is_said(box):
    term = box.start("run", "--tty", "--env", "TERM=said", "echo KIND=$TERM")
    term.expect("KIND=said\r\n")
    assert term.wait() == 0


def test_the_window_can_change_its_size(box):
    term = box.shell()
    for size in ("50 200", "10 20", "300 1000"):
        term.resize(*map(int, size.split()))
        wait_until(lambda: term.run("stty size").strip() == size)
    term.resize(0, 0) # a terminal that does not know keeps what was last
    term.resize(41, 42)
    wait_until(lambda: term.run("stty size").strip() == "41 42")


def test_a_window_of_no_size_has_the_usual_one_inside(box):
    term = box.shell(size=(0, 0))
    assert term.run("stty size").strip() == "24 80"


def test_a_program_is_told_of_a_new_size(box):
    term = box.start("run", "--tty", "trap 'echo SIZE:$(stty size); exit 5' WINCH; echo UP; "
                                     "while :; do sleep 0.1; done")
    term.expect("UP")
    term.resize(44, 55)
    term.expect("SIZE:44 55")
    assert term.wait() == 5


# ---- job control ----

def test_ctrl_c_ends_only_the_job_in_the_foreground(box):
    term, behind, front = box.shell(), sleeper(), sleeper()
    term.run(f"sleep {behind} &")
    wait_until(lambda: processes_with(behind))  # the prompt may come before it has begun
    term.type(f"sleep {front}\r")
    wait_until(lambda: processes_with(front))
    term.type("\x03")
    assert term.run("echo was $?").split() == ["was", "130"]
    assert processes_with(behind) and not processes_with(front)
    term.type("exit\r")
    assert term.wait() == 0
    assert not processes_with(behind)


def test_ctrl_z_stops_a_job_and_fg_continues_it(box):
    term, front = box.shell(), sleeper()
    term.type(f"sleep {front}\r")
    (pid,) = wait_until(lambda: processes_with(front))
    term.type("\x1a")
    term.expect("Stopped")
    assert "Stopped" in term.run("jobs")
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    term.type("fg\r")
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
    term.type("\x03")
    assert term.run("echo $?").split()[-1] == "130"
    assert not processes_with(front)


def test_ctrl_d_ends_the_shell(box):
    term = box.shell()
    term.type("\x04")
    assert term.wait() == 0


# ---- nothing stays ----

def test_nothing_outlives_the_shell_whatever_hides_it(box):
    term, hidden = box.shell(), sleeper()
    term.run(f"sleep {hidden} & nohup sleep {hidden} >/dev/null 2>&1 & "
             f"setsid sh -c 'trap \"\" HUP TERM INT; sleep {hidden}; :' & "
             f"(setsid nohup sleep {hidden} >/dev/null 2>&1 &)")
    wait_until(lambda: len(processes_with(hidden)) >= 4)
    term.type("exit 3\r")
    assert term.wait() == 3
    assert processes_with(hidden) == []


def test_a_job_that_holds_the_terminal_does_not_hold_the_call(box):
    hidden = sleeper()
    term = box.start("run", "-t", f"trap '' HUP; sleep {hidden} & echo LAST WORDS; exit 4")
    assert term.wait() == 4
    assert b"LAST WORDS" in term.seen
    assert processes_with(hidden) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_ends_it_all_and_restores_the_terminal(box, number):
    term = Terminal()
    before = term.modes()
    term.close()
    term, hidden = box.shell(), sleeper()
    assert term.modes() != before
    term.type(f"(setsid nohup sleep {hidden} >/dev/null 2>&1 &); sleep {hidden}\r")
    wait_until(lambda: len(processes_with(hidden)) == 2)
    term.child.send_signal(number)
    assert term.wait() == 128 + number
    assert term.modes() == before
    assert processes_with(hidden) == []


def test_sigkill_restores_the_terminal_and_leaves_nothing_running(box):
    term = Terminal()
    before = term.modes()
    term.close()
    term, hidden = box.shell(), sleeper()
    assert term.modes() != before
    term.type(f"(setsid nohup sleep {hidden} >/dev/null 2>&1 &); sleep {hidden}\r")
    wait_until(lambda: len(processes_with(hidden)) == 2)
    term.child.kill()
    wait_until(lambda: term.modes() == before)
    wait_until(lambda: processes_with(hidden) == [])
    assert term.wait() == -signal.SIGKILL


def test_sigkill_leaves_the_terminal_alone_that_another_program_has_changed(box):
    term = box.shell()
    changed = term.modes()
    changed[3] ^= 0o20 # ECHOE, in the local modes
    termios.tcsetattr(term.slave, termios.TCSANOW, changed)
    term.child.kill()
    term.wait()
    wait_until(lambda: not processes_with(str(box.program)))
    assert term.modes() == changed


def test_a_terminal_that_hangs_up_ends_it_all(box):
    term, hidden = box.shell(), sleeper()
    term.type(f"sleep {hidden}\r")
    wait_until(lambda: processes_with(hidden))
    os.close(term.master)
    os.close(term.slave)
    term.master = term.slave = -1
    assert term.child.wait(30) == 128 + signal.SIGHUP
    assert processes_with(hidden) == []


def test_it_can_be_stopped_and_continued(box):
    plain = Terminal()
    before = plain.modes()
    plain.close()
    term = box.shell()
    during = term.modes()
    term.child.send_signal(signal.SIGTSTP)
    wait_until(lambda: os.waitpid(term.child.pid, os.WUNTRACED | os.WNOHANG)[0])
    assert term.modes() == before
    term.resize(61, 62)
    term.child.send_signal(signal.SIGCONT)
    wait_until(lambda: term.modes() == during)
    assert term.run("stty size").strip() == "61 62"


def test_the_terminal_is_as_before_after_the_end(box):
    plain = Terminal()
    before = plain.modes()
    plain.close()
    term = box.shell()
    term.type("stty raw -echo; exit 5\r")
    assert term.wait() == 5
    assert term.modes() == before


# ---- bytes ----

def test_every_byte_passes_in_both_directions(box, common):
    data = random.randbytes(100_000) + b"\x1b[?1049h\x1b[2J\x1b[?1049l"
    files = common / "files"
    files.mkdir()
    (files / "data").write_bytes(data)
    term = box.start("run", "-t", "--seed", files,
                     "stty raw -echo; printf START; cat data; printf READY; head -c 200000 >copy; "
                     f"head -c {len(data)} copy | cmp - data && echo SAME; cksum <copy")
    term.expect("START")
    while len(term.seen) < len(data):
        assert term.read(20)
    assert term.seen[:len(data)] == data
    term.seen = term.seen[len(data):]
    term.expect("READY")
    sent = data + bytes(200_000 - len(data)) # more than all buffers on the way hold
    for at in range(0, len(sent), 4096): # a terminal takes what the relay has read
        term.type(sent[at:at + 4096])
    term.expect("SAME")
    term.expect(r"\d+ 200000")
    assert term.wait() == 0


def test_a_paste_waits_for_a_program_that_does_not_read_yet(box):
    sent = random.randbytes(150_000)
    term = box.start("run", "-t", f"stty raw -echo; printf READY; sleep 1; head -c {len(sent)} "
                                  "| sha256sum")
    term.expect("READY")
    for at in range(0, len(sent), 4096):
        term.type(sent[at:at + 4096])
    term.expect(hashlib.sha256(sent).hexdigest())
    assert term.wait() == 0


def test_a_screen_that_takes_nothing_costs_no_memory_and_no_control(box):
    term = box.shell()
    status = Path(f"/proc/{term.child.pid}/status")

    def kib() -> int:
        return int(status.read_text().partition("VmRSS:")[2].split()[0])
    before, word = kib(), "y" + sleeper()
    term.type(f"yes {word}\r")
    wait_until(lambda: processes_with(word))
    time.sleep(0.5) # nobody reads
    assert kib() < before + 1024
    assert processes_with(word)
    term.type("\x03")
    wait_until(lambda: not processes_with(word))
    assert term.run("echo $((6 * 7))").rpartition("\n")[0].endswith("42")


def test_letters_of_many_bytes_can_be_erased(box):
    term = box.start("run", "-t", "stty -echo; echo READY; read line; echo \"<$line>\"")
    term.expect("READY")
    term.type("aä€\x7f\x7fb\r")
    term.expect("<ab>")
    assert term.wait() == 0


def test_the_output_may_go_to_a_file(box, common):
    with open(common / "out", "wb") as out:
        term = box.start("run", "-t", "head -c 1000000 /dev/zero; test -t 1 && exit 9", stdout=out)
        assert term.wait() == 9
    assert (common / "out").read_bytes() == bytes(1_000_000)


# ---- around it ----

def test_seed_and_sync_go_around_the_shell(box, common):
    seed, out = common / "seed", common / "out"
    seed.mkdir()
    out.mkdir()
    os.chown(out, box.user, box.user)
    (seed / "in.md").write_text("seeded\n")
    term = box.shell("--seed", seed, f"--sync={out}")
    assert term.run("cat in.md").strip() == "seeded"
    term.run("echo made >out.md")
    term.type("exit\r")
    assert term.wait() == 0
    assert (out / "out.md").read_text() == "made\n"


def test_a_signal_syncs_nothing(box, common):
    out = common / "out"
    out.mkdir()
    os.chown(out, box.user, box.user)
    term = box.shell(f"--sync={out}")
    term.run("echo made >out.md")
    term.child.terminate()
    assert term.wait() == 128 + signal.SIGTERM
    assert list(out.iterdir()) == []


def test_time_runs_out_only_when_it_was_given(box):
    hidden = sleeper()
    term = box.start("run", "--tty", "--timeout", "0.5", f"trap '' HUP TERM; sleep {hidden}; :")
    assert term.wait() == 124
    assert processes_with(hidden) == []


@pytest.mark.parametrize("option, command, status", [
    ("--workspace-size=1M", "head -c 4000000 /dev/zero >big; sleep 60", 137),
    ("--cpu-seconds=1", "while :; do :; done", 128 + signal.SIGXCPU),
    ("--file-size=1M", "head -c 4000000 /dev/zero >big", 128 + signal.SIGXFSZ)])
def test_a_limit_that_ends_it_is_told(option, command, status):
    term = Terminal()
    try:
        term.start(BUILD / "pinfold", "run", "--tty", option, command)
        term.expect(re.escape(option.split("=")[0]) + " gives it more")
        assert term.wait() == status
    finally:
        term.close()


def test_a_command_that_kills_its_supervisor_does_not_lose_its_results(box, common):
    out = common / "out"
    out.mkdir()
    os.chown(out, box.user, box.user)
    term = box.start("run", "--tty", f"--sync={out}", "echo made >out.md; kill -9 $PPID; sleep 60")
    # Without a jail nobody knows who it was, and what still runs.
    assert term.wait() == (137 if box.backend == "isolated" else 125)
    assert (out / "out.md").read_text() == "made\n"


def test_the_audit_tells_of_its_start_and_its_end(box, common):
    log = common / "log"
    log.touch()
    os.chown(log, box.user, box.user)
    term = box.start("run", "--tty", "--audit", log, "echo hello; exit 6")
    assert term.wait() == 6
    events = [json.loads(line) for line in log.read_text().splitlines()]
    start, end = [event for event in events if event["event"].endswith("_terminal")]
    assert start["event"] == "sandbox.open_terminal" and end["event"] == "sandbox.close_terminal"
    assert start["command_sha256"] == end["command_sha256"] and start["command_length"] == 18
    assert (end["exit_code"], end["timed_out"], end["bytes"]) == (6, False, len("hello\r\n"))
    assert "hello" not in log.read_text()


def test_a_program_and_its_arguments_need_no_shell(box):
    term = box.start("run", "-t", "--", "printf", "%s|", "a b", "$HOME")
    assert term.wait() == 0
    assert term.seen == b"a b|$HOME|"


def test_what_is_not_there_is_told_on_the_terminal(box):
    term = box.start("run", "-t", "--", "no-such-program", "x")
    assert term.wait() == 127
    assert b"no-such-program: not found" in term.seen


# ---- misuse ----

def test_without_a_terminal_it_says_what_to_do(pinfold):
    for args in (["shell"], ["run", "--tty", "true"]):
        done = pinfold(*args, stdin=subprocess.DEVNULL)
        assert done.returncode == 125
        assert "stdin is not a terminal; 'pinfold run' without --tty needs none" in done.stderr


def test_what_does_not_go_with_a_terminal_is_refused(pinfold):
    assert "do not go with it" in pinfold("run", "-t", "--json", "true").stderr
    assert "do not go with it" in pinfold("run", "-t", "--max-output", "5", "true").stderr
    assert "takes no command" in pinfold("shell", "true").stderr
    for option in ("--json", "--max-output=5", "--region=us-east-1", "--image=debian:12"):
        assert "no such option" in pinfold("shell", option).stderr
    for service in ("agentcore", "daytona"):
        assert "no terminals" in pinfold("shell", "--backend", service).stderr
    assert "no such option" in pinfold("plan", "-t").stderr
