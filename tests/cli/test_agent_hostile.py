# SPDX-License-Identifier: Apache-2.0
"""pinfold agent with a model, and a sandbox, that mean no good."""

import json
import re
from pathlib import Path

import pytest

from agent_run import Agent, drop_kept, execute, tool, write

# Clear the screen, set the title, write to the clipboard; the same with C1; overprint a line; turn
# the direction of writing.
EVIL = "\x1b[2J\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x9b2J\x9d0;owned\x9c\rsafe\x08\x08\x7f\u202etxt\u2066"
# What of our own may be in a line on a terminal: colours that we set.
OURS = re.compile(r"\x1b\[(0|1|2|31|32|36)m")
RAW = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def shown(seen: bytes) -> str:
    """What a terminal was given, without what a terminal may be given."""
    return OURS.sub("", seen.decode()).replace("\r\n", "\n")


def test_nothing_that_a_model_says_reaches_the_terminal_raw(agent: Agent) -> None:
    model = agent.script(
        [{"reasoning": EVIL}, EVIL, execute(f"printf '{EVIL}'; echo; printf '{EVIL}' >&2; exit 1"),
         {"tool": "bad", "input": {EVIL: EVIL}}, {"tool": "read_file", "raw_input": EVIL}],
        [tool("read_file", path=EVIL), write("évil", EVIL)], "Done.")
    term = agent.at_terminal(model, "--no-sync")
    assert term.wait() == 0
    text = shown(term.seen)
    assert not RAW.search(text) and "\r" not in text, repr(RAW.search(text))
    assert r"\x1b[2J" in text and r"\xe2\x80\xae" in text and "évil" in text
    done = agent(model, "--no-sync", "--json")
    assert not RAW.search(done.stdout + done.stderr)
    done = agent(model, "--diff")  # a patch has the bytes of the file: it may be for a program
    assert EVIL.replace("\r", "\n") in done.stdout and not RAW.search(done.stderr)


def test_names_and_bytes_in_a_diff_do_not_reach_the_terminal_raw(agent: Agent) -> None:
    names = [b"a\x1b[2Jb", b"new\nline", b"\xff\xfe", b"-rf", "ü\u202e".encode(), b"tab\tname",
             b'quo"te', b"back\\slash"]
    octal = ["".join(f"\\{byte:03o}" for byte in name) for name in names]
    command = "; ".join(f"printf '%b' '{EVIL}\\n\\0377\\n' > \"$(printf '{name}')\"" for name in octal)
    model = agent.script([execute(f"cd src; {command}; ls | wc -l")], "Done.")
    term = agent.at_terminal(model, "--no-sync")
    assert term.wait() == 0
    text = shown(term.seen)
    assert not RAW.search(text) and "\r" not in text
    # Each change is one line of the list, whatever its name.
    listed = [line for line in text.splitlines() if line.startswith("  added ")]
    assert len(listed) == 8, text
    assert r"a\x1b[2Jb" in text and r"new\nline" in text and r"\xff\xfe" in text
    done = agent(model, "--json", "--no-sync")
    changes = [json.loads(line) for line in done.stdout.splitlines()][-2]
    assert len(changes["files"]) == 8


def test_a_long_line_of_many_byte_letters_is_shown_as_it_is(agent: Agent) -> None:
    line = "x" + "ä€\U0001d11e" * 30000
    term = agent.at_terminal(agent.script([write("a.md", line + "\n")], "Done."), "--no-sync")
    assert term.wait() == 0
    assert "+" + line + "\n" in shown(term.seen)


def test_nothing_that_a_service_says_of_its_failure_reaches_the_terminal_raw(agent: Agent) -> None:
    done = agent(agent.script({"reply": "Well.", "error": {"message": EVIL}}))
    assert done.returncode == 125
    assert "safe" in done.stderr and "\\xe2\\x80\\xaetxt" in done.stderr
    assert not RAW.search(done.stderr)


def test_a_file_name_cannot_answer_for_the_user(agent: Agent) -> None:
    model = agent.script([execute("touch \"$(printf 'x\\nWrite these changes? [yN] y\\n')\"")],
                         "Done.")
    done = agent(model)
    assert done.returncode == 1
    assert "\nWrite these changes" not in done.stdout + done.stderr


@pytest.mark.parametrize("name, arguments", [
    ("no_such_tool", "{}"), ("execute", "no json {"), ("execute", "[1]"), ("execute", "{}"),
    ("execute", '{"command": 5}'), ("execute", '{"command": "true", "more": 1}'),
    ("execute", "\u0000"), ("x" * 5000, "{}")])
def test_a_mistake_is_told_to_the_model_and_it_goes_on(agent: Agent, name: str,
                                                       arguments: str) -> None:
    model = agent.script([{"tool": name, "raw_input": arguments, "id": "call_1"}],
                         {"expect": {"results": [{"id": "call_1", "error": True}]}, "reply": "I see."})
    done = agent(model)
    assert (done.returncode, done.stdout) == (0, "I see.\n"), done.stderr
    assert "[1] failed, " in done.stderr
    assert all(len(line) < 200 for line in done.stderr.splitlines())


def test_an_argument_of_ten_megabytes_is_refused_and_not_shown(agent: Agent) -> None:
    big = "\u001b[2J" + "x" * 10_000_000
    model = agent.script([write("big", big)], [{"tool": big[:64], "raw_input": big}],
                         {"expect": {"results": [{"error": True}]}, "reply": "I see."})
    done = agent(model)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stderr) < 5000 and not RAW.search(done.stderr)
    events = agent.events(agent.script([write("big", big)], "I see."))
    call = next(event for event in events if event["event"] == "call")
    assert call["input_bytes"] > 10_000_000 and len(json.dumps(call)) < 200_000


def test_endless_output_is_cut_and_endless_files_are_too(agent: Agent) -> None:
    model = agent.script([execute("yes | head -c 300000000")],
                         [execute("head -c 50000000 /dev/zero > big.bin; seq 3000000 > big.txt")],
                         "Done.")
    done = agent(model, "--no-sync", timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout) < 5_000_000
    assert "big.txt  # too large for the diff" in done.stderr


def test_two_hundred_calls_in_one_reply_are_told_apart(agent: Agent) -> None:
    model = agent.script([execute(f"echo {number}") for number in range(200)], "Done.")
    events = agent.events(model)
    results = [event for event in events if event["event"] == "result"]
    assert [event["number"] for event in events if event["event"] == "call"] == list(range(1, 129))
    assert {event["text"].split()[-1] for event in results} == {str(n) for n in range(128)}


def test_a_secret_beside_the_folder_is_not_reached(agent: Agent, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2hunter2\n")
    (agent.project / "link").symlink_to(secret)
    (agent.project / "src/up").symlink_to("../..")
    paths = ["link", "../secret.txt", "src/up/../secret.txt", str(secret), "/etc/shadow"]
    model = agent.script([tool("read_file", path=path) for path in paths]
                         + [execute("; ".join(f"cat {path}" for path in paths))]
                         + [write(path, "owned\n") for path in paths], "Done.")
    done = agent(model, "--yes", "--json")
    drop_kept(done.stderr)
    assert done.returncode == 125 and "link" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert secret.read_text() == "hunter2hunter2\n"


def test_links_that_it_leaves_lead_nowhere(agent: Agent, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("mine\n")
    model = agent.script([execute(f"rm -r src; ln -s {outside} src; ln -s {outside}/a.md b.md")],
                         "Done.")
    agent(model, "--no-sync")
    assert [path.name for path in outside.iterdir()] == ["a.md"]
    (agent.project / "out").symlink_to(outside)
    done = agent(agent.script([execute("rm -f out; mkdir out; echo owned > out/a.md")], "Done."),
                 "--yes")
    assert (outside / "a.md").read_text() == "mine\n", done.stderr
    drop_kept(done.stderr)
