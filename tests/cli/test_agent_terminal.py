# SPDX-License-Identifier: Apache-2.0
"""pinfold agent at a terminal: the question, Ctrl-C at any moment, and signals elsewhere."""

import json
import random
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

from agent_run import Agent, Service, drop_kept, execute, fix, write
from helpers import wait_until
from terminal import processes_with

CTRL_C = "\x03"
QUESTION = r"\? \[y/N\] "


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def sleeper() -> str:
    """A time to sleep for that no other test uses."""
    return f"400.{random.getrandbits(60)}"


def in_tool(agent: Agent, word: str) -> str:
    """A model that changes a file, and then runs what is hard to kill."""
    return agent.script([write("a.md", "first\n")],
                        [execute(f"trap '' TERM INT; setsid sleep {word} & while :; do sleep {word}; "
                                 "done")], "Never.")


# ---- the question ----

@pytest.mark.parametrize("answer, written", [("y\r", True), ("YES\r", True), ("n\r", False),
                                             ("\r", False), ("yessir\r", False), ("\x04", False)])
def test_changes_are_shown_and_written_after_a_yes(agent: Agent, answer: str,
                                                   written: bool) -> None:
    term = agent.at_terminal(fix(agent))
    term.expect(r"I look\..*\[1\].*execute.*exit 3.*I write\..*Done\.")
    term.expect(r"diff --git a/Makefile b/Makefile.*\+all:.*-int main.*\+int main;")
    term.expect("Write these changes to " + re.escape(str(agent.project)) + QUESTION)
    assert not (agent.project / "Makefile").exists()
    term.type(answer)
    assert term.wait() == (0 if written else 1)
    assert (agent.project / "Makefile").exists() == written


def test_what_was_typed_before_is_no_answer(agent: Agent) -> None:
    model = agent.script([execute("sleep 1; echo x > a.md")], "Done.")
    term = agent.at_terminal(model)
    term.expect(r"execute")
    term.type("y\ry\r")
    term.expect(QUESTION)
    time.sleep(0.2)
    assert term.child.poll() is None
    term.type("n\r")
    assert term.wait() == 1
    assert not (agent.project / "a.md").exists()


@pytest.mark.parametrize("option", ["--backend=isolated", "--backend=local", "--seed-mode=overlay"])
def test_what_is_shown_is_what_is_written_whatever_was_left_running(agent: Agent,
                                                                    option: str) -> None:
    word = sleeper()
    model = agent.script([execute(f"echo shown > a.md; setsid -f sh -c 'sleep {word}; :' x; "
                                  f"nohup sleep {word} >/dev/null 2>&1 &")],
                         [execute("echo more >> a.md")], "Done.")
    term = agent.at_terminal(model, option)
    term.expect(QUESTION)
    assert not processes_with(word)
    term.type("y\r")
    assert term.wait() == 0
    assert (agent.project / "a.md").read_text() == "shown\nmore\n"


def test_the_question_tells_of_files_that_the_diff_lacks(agent: Agent) -> None:
    command = ("head -c 1200000 /dev/zero | tr '\\0' x > big; printf '\\0' > bin; echo x > a.md; "
               "rm -r src")
    term = agent.at_terminal(agent.script([execute(command)], "Done."))
    term.expect(r"Write these changes, 2 of them not shown, to [^?]*" + QUESTION)
    term.type("n\r")
    assert term.wait() == 1


def test_what_is_changed_here_while_it_asks_is_not_written_over(agent: Agent) -> None:
    term = agent.at_terminal(fix(agent))
    term.expect(QUESTION)
    (agent.project / "src/main.c").write_text("mine;\n")
    term.type("y\r")
    term.expect(r"changed these meanwhile.*src/main\.c")
    assert term.wait() == 1
    assert (agent.project / "src/main.c").read_text() == "mine;\n"
    assert (agent.project / "Makefile").read_text() == "all:\n"
    assert drop_kept(term.seen.decode())[Path("src/main.c")] == b"int main;\n"


def test_no_question_where_the_answer_is_known(agent: Agent) -> None:
    term = agent.at_terminal(fix(agent), "--yes")
    assert term.wait() == 0
    assert b"[y/N]" not in term.seen and (agent.project / "Makefile").exists()
    term = agent.at_terminal(agent.script("Nothing to do."))
    assert term.wait() == 0
    assert b"[y/N]" not in term.seen


def test_a_terminal_that_goes_away_is_no_yes(agent: Agent) -> None:
    term = agent.at_terminal(fix(agent))
    term.expect(QUESTION)
    term.child.send_signal(signal.SIGHUP)
    assert term.wait() == 128 + signal.SIGHUP
    assert not (agent.project / "Makefile").exists()


def test_the_question_needs_the_terminal_on_both_sides(agent: Agent) -> None:
    term = agent.at_terminal(fix(agent), stdin=subprocess.DEVNULL)
    assert term.wait() == 1
    assert b"[y/N]" not in term.seen and b"no terminal to ask at" in term.seen
    term = agent.at_terminal(fix(agent), "--json")
    assert term.wait() == 1
    assert b"[y/N]" not in term.seen


def test_colours_are_for_terminals_that_have_them(agent: Agent) -> None:
    term = agent.at_terminal(fix(agent), "--no-sync")
    assert term.wait() == 0
    assert b"\x1b[32m+int main;" in term.seen
    for name, value in ("NO_COLOR", "1"), ("TERM", "dumb"):
        before = dict(agent.env)
        agent.env[name] = value
        term = agent.at_terminal(fix(agent), "--no-sync")
        assert term.wait() == 0
        assert b"+int main;" in term.seen and b"\x1b" not in term.seen
        agent.env = before


def test_thoughts_are_shown_on_a_terminal_alone(agent: Agent) -> None:
    reply = [{"reasoning": "Let me see."}, "Yes."]
    term = agent.at_terminal(agent.script(reply))
    term.expect(r"\x1b\[2mLet me see\.\x1b\[0m\r\nYes\.")
    assert term.wait() == 0
    done = agent(agent.script(reply))
    assert "Let me see" not in done.stdout + done.stderr


# ---- Ctrl-C ----

def test_ctrl_c_in_a_tool_kills_it_and_offers_what_was_changed(agent: Agent) -> None:
    word = sleeper()
    term = agent.at_terminal(in_tool(agent, word))
    wait_until(lambda: len(processes_with(word)) == 2)
    term.type(CTRL_C)
    term.expect(r"\+first")
    term.expect("Write what was changed so far to [^?]*" + QUESTION)
    assert not processes_with(word)
    term.type("y\r")
    assert term.wait() == 130
    assert (agent.project / "a.md").read_text() == "first\n"


@pytest.mark.parametrize("then", ["n\r", CTRL_C])
def test_a_no_or_another_ctrl_c_leaves_everything_as_it_was(agent: Agent, then: str) -> None:
    word = sleeper()
    term = agent.at_terminal(in_tool(agent, word))
    wait_until(lambda: len(processes_with(word)) == 2)
    term.type(CTRL_C)
    term.expect(QUESTION)
    term.type(then)
    assert term.wait() == 130
    assert not (agent.project / "a.md").exists() and not processes_with(word)


def test_ctrl_c_at_the_question_is_a_no(agent: Agent) -> None:
    term = agent.at_terminal(fix(agent))
    term.expect(QUESTION)
    term.type(CTRL_C)
    assert term.wait() == 130
    assert not (agent.project / "Makefile").exists()


@pytest.mark.parametrize("switches", ["stall=0", "stall=300"])
def test_ctrl_c_while_the_model_thinks_ends_the_call(agent: Agent, service: Service,
                                                     switches: str) -> None:
    agent.env["OPENAI_API_KEY"] = "sk-test-0123456789"
    term = agent.at_terminal("openai:long", "--base-url", service.url(switches, "/v1"))
    term.expect("are in the sandbox")
    time.sleep(0.3)  # long enough for the question to be asked, mostly; either way it ends
    term.type(CTRL_C)
    assert term.wait() == 130


def test_ctrl_c_while_a_reply_comes_slowly(agent: Agent) -> None:
    model = agent.script({"reply": "abc " * 1000, "chunk": 4, "delay_ms": 50})
    term = agent.at_terminal(model)
    term.expect("abc abc")
    term.type(CTRL_C)
    assert term.wait() == 130


def test_a_screen_that_takes_nothing_holds_nothing_up(agent: Agent) -> None:
    model = agent.script({"reply": "x" * 5_000_000})
    term = agent.at_terminal(model)
    wait_until(lambda: term.read(0.05))
    time.sleep(0.5)  # nobody reads
    term.type(CTRL_C)
    deadline = time.monotonic() + 30
    while term.child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)  # and nobody reads now
    assert term.child.returncode == 130


# ---- signals, and readers that go ----

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("options", [[], ["--yes"], ["--backend", "local"]])
def test_a_signal_ends_everything_and_writes_nothing(agent: Agent, number: int,
                                                     options: list[str]) -> None:
    word = sleeper()
    child = agent.start(in_tool(agent, word), *options)
    try:
        wait_until(lambda: len(processes_with(word)) == 2)
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 128 + number, err
    assert not processes_with(word)
    assert not (agent.project / "a.md").exists()
    assert "nothing was written back" in err


def test_a_reader_that_goes_ends_it(agent: Agent) -> None:
    model = agent.script({"reply": ["word " * 5000, execute("true")], "times": 0})
    child = agent.start(model, "--yes", "--max-turns", "100000")
    try:
        assert child.stdout.read(10) == "word word "
        child.stdout.close()
        assert child.wait(60) == 128 + signal.SIGPIPE
    finally:
        child.kill()
        child.stderr.close()


def test_a_full_disk_is_an_error_that_is_told(agent: Agent) -> None:
    with open("/dev/full", "w") as full:
        done = agent(agent.script("word " * 5000), capture_output=False, stdout=full,
                     stderr=subprocess.PIPE)
    assert done.returncode == 125
    assert "No space left on device" in done.stderr


def test_an_end_by_a_signal_is_in_the_json(agent: Agent) -> None:
    word = sleeper()
    child = agent.start(in_tool(agent, word), "--json")
    try:
        wait_until(lambda: len(processes_with(word)) == 2)
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    end = json.loads(out.splitlines()[-1])
    assert (end["event"], end["status"], end["written"]) == ("end", 143, False)
