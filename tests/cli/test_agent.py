# SPDX-License-Identifier: Apache-2.0
"""pinfold agent: what a user and a script see of a run, and what comes home."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_run import KEY, Agent, drop_kept, execute, fix, tool, write
from helpers import BUILD, ROOT, STRANGER
from remote_faces import UNPRIVILEGED

MAIN = "int main(void) { return 0; }\n"


def files(project: Path) -> dict[str, str]:
    return {str(path.relative_to(project)): path.read_text()
            for path in project.rglob("*") if path.is_file()}


# ---- the ways to an end ----

def test_without_a_terminal_it_shows_and_writes_nothing(agent: Agent) -> None:
    before = files(agent.project)
    done = agent(fix(agent))
    assert done.returncode == 1
    assert done.stdout.startswith("I look.\nI write.\nDone.\ndiff --git a/Makefile b/Makefile\n")
    assert "there is no terminal to ask at; --yes writes" in done.stderr
    assert files(agent.project) == before


def test_its_calls_are_shown_with_time_and_status(agent: Agent) -> None:
    lines = agent(fix(agent)).stderr.splitlines()
    assert "[1] execute: cat src/main.c; echo oops >&2; exit 3" in lines
    assert any(re.fullmatch(r"\[1\] exit 3, \d+\.\d s: \[stderr\] oops \(2 lines\)", line)
               for line in lines), lines
    numbers = {re.search(r"^\[(\d)\] write_file: (\S+), 1?\d B$", line).groups()
               for line in lines if "write_file" in line}
    assert numbers in ({("2", "src/main.c"), ("3", "Makefile")},
                       {("3", "src/main.c"), ("2", "Makefile")})
    assert any(re.fullmatch(r"\[2\] done, \d+\.\d s: Wrote 1?\d bytes to \S+\.", line)
               for line in lines), lines
    assert "  modified  src/main.c" in lines and "  added     Makefile" in lines
    assert any("3 replies, 3 calls" in line and "tokens: 457 in, 7 of them cached, 55 out" in line
               for line in lines), lines


def test_yes_writes_every_kind_of_file_back(agent: Agent) -> None:
    done = agent(fix(agent), "--yes")
    assert done.returncode == 0, done.stderr
    assert (agent.project / "src/main.c").read_text() == "int main;\n"
    assert (agent.project / "Makefile").read_text() == "all:\n"
    assert "pinfold: wrote 2 files" in done.stderr


def test_no_sync_shows_and_asks_nobody(agent: Agent) -> None:
    before = files(agent.project)
    done = agent(fix(agent), "--no-sync")
    assert (done.returncode, files(agent.project)) == (0, before)
    assert "+int main;" in done.stdout and "nothing was written back" not in done.stderr


def test_diff_is_a_patch_that_git_takes(agent: Agent, tmp_path: Path) -> None:
    done = agent(fix(agent), "--diff")
    assert done.returncode == 0
    assert done.stdout.startswith("diff --git")
    assert "I look.\n" in done.stderr and "Done.\n" in done.stderr
    other = tmp_path / "other"
    subprocess.run(["cp", "-r", agent.project, other], check=True)
    subprocess.run(["git", "apply"], input=done.stdout, text=True, cwd=other, check=True,
                   env={**agent.env, "GIT_CEILING_DIRECTORIES": str(tmp_path)})
    assert (other / "src/main.c").read_text() == "int main;\n"
    assert (agent.project / "src/main.c").read_text() == MAIN


def test_a_diff_that_lacks_something_says_so(agent: Agent) -> None:
    model = agent.script([write("a.md", "a\n"), execute("head -c 100 /dev/zero > b.bin")], "Done.")
    done = agent(model, "--diff")
    assert done.returncode == 1
    assert "the diff is not whole: 1 files" in done.stderr and "+a\n" in done.stdout
    assert agent(model, "--diff", "--exclude", "*.bin").returncode == 0


def test_a_reader_of_the_diff_that_goes_loses_nobody_s_work(agent: Agent) -> None:
    model = agent.script([execute("seq 50000 > a.md")], "Done.")
    child = agent.start(model, "--yes")
    assert child.stdout.readline() == "Done.\n"
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    assert child.wait(60) == 141, err
    assert Path("a.md") in drop_kept(err)


def test_diff_and_yes_do_both(agent: Agent) -> None:
    done = agent(fix(agent), "--diff", "--yes")
    assert done.returncode == 0 and done.stdout.startswith("diff --git")
    assert (agent.project / "Makefile").exists()


def test_changes_can_go_elsewhere(agent: Agent, tmp_path: Path) -> None:
    before = files(agent.project)
    done = agent(fix(agent), "--yes", f"--sync={tmp_path / 'out'}", "--include", "src/**")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "out") == {"src/main.c": "int main;\n"}
    assert files(agent.project) == before


def test_an_agent_that_changes_nothing_is_done(agent: Agent) -> None:
    done = agent(agent.script("There is nothing to do."))
    assert (done.returncode, done.stdout) == (0, "There is nothing to do.\n")
    assert "the agent has changed nothing" in done.stderr


def test_what_cannot_be_looked_at_may_have_changed(agent: Agent) -> None:
    """It is all that the agent has done, and is not lost as if that were nothing."""
    def run(*words: str) -> Any:
        model = agent.script([execute("mkdir d; echo x > d/f.c; chmod 000 d")], "Done.")
        return subprocess.run([*UNPRIVILEGED, *agent.words("--model", model, *words)],
                              cwd=agent.project, env=agent.env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120)
    done = run("--yes")
    assert done.returncode == 125, done.stderr
    assert 'copy "d": read directory "d": Permission denied' in done.stderr
    assert "changed nothing" not in done.stderr
    [kept] = re.findall(r"results are kept in ([^;]*);", done.stderr)
    Path(kept, "d").chmod(0o700)
    assert drop_kept(done.stderr)[Path("d/f.c")] == b"x\n"
    done = run("--diff")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "the diff is not whole: 1 files" in done.stderr
    [told] = [line for line in map(json.loads, run("--json", "--no-sync").stdout.splitlines())
              if line["event"] == "changes"]
    assert (told["files"], told["diff_is_whole"]) == ([], False)


def test_what_is_deleted_is_told_and_stays_here(agent: Agent) -> None:
    (agent.project / "logo").write_bytes(b"\0\1")
    model = agent.script([execute("rm tool.sh logo; ln -s x src/link; chmod +x README.md")], "Done.")
    done = agent(model, "--yes")
    assert done.returncode == 1, done.stderr
    assert "  deleted   tool.sh  # not deleted here: do it yourself" in done.stderr
    assert "  deleted   logo  # binary; not deleted here: do it yourself" in done.stderr
    assert "  added     src/link  # stays in the sandbox" in done.stderr
    assert "nothing of that is written back" in done.stderr
    assert (agent.project / "tool.sh").exists() and not (agent.project / "src/link").exists()
    assert Path("README.md") in drop_kept(done.stderr)


@pytest.mark.parametrize("change", ["rm tool.sh", "ln -s x src/link", "chmod +x README.md",
                                    "rm tool.sh; ln -s x tool.sh"])
def test_a_run_that_leaves_a_change_behind_says_so_in_its_status(agent: Agent,
                                                                 change: str) -> None:
    model = agent.script([execute(f"echo x > a.md; {change}")], "Done.")
    done = agent(model, "--yes")
    kept = drop_kept(done.stderr)
    assert done.returncode == 1, done.stderr
    assert "1 of the changes were not written back: deletions, links and modes" in done.stderr
    assert "could not be written back" not in done.stderr
    assert (agent.project / "a.md").read_text() == "x\n"
    assert bool(kept) == (change != "rm tool.sh")  # of what is deleted there is nothing to keep
    assert (agent.project / "tool.sh").is_file() and not (agent.project / "tool.sh").is_symlink()


def test_quiet_leaves_words_and_diff(agent: Agent) -> None:
    done = agent(fix(agent), "-q", "--no-sync")
    assert done.returncode == 0 and done.stdout.startswith("I look.\n")
    assert done.stderr == ""


def test_json_tells_each_thing_in_a_line(agent: Agent) -> None:
    events = agent.events(fix(agent), "--yes")
    assert [event["event"] for event in events if event["event"] not in ("call", "result")] == [
        "start", "seed", "text", "reply", "text", "reply", "text", "reply", "changes", "sync", "end"]
    calls = [event for event in events if event["event"] == "call"]
    results = {event["number"]: event for event in events if event["event"] == "result"}
    assert [call["number"] for call in calls] == [1, 2, 3] and set(results) == {1, 2, 3}
    assert calls[0]["input"] == {"command": "cat src/main.c; echo oops >&2; exit 3"}
    assert results[1]["exit_code"] == 3 and "[stderr] oops" in results[1]["text"]
    changes = next(event for event in events if event["event"] == "changes")
    assert [(file["path"], file["kind"]) for file in changes["files"]] == [
        ("Makefile", "added"), ("src/main.c", "modified")]
    assert "+int main;" in changes["diff"] and changes["diff_is_whole"]
    end = events[-1]
    assert (end["status"], end["written"], end["turns"], end["calls"]) == (0, True, 3, 3)
    assert end["usage"] == {"input": 450, "output": 55, "cache_read": 7, "cache_write": 0}


# ---- what .gitignore names ----

BUILDS = "# products\n\n*.o\n/target/\nlog [x].txt  \n\\#odd\n[broken\n"


def build(agent: Agent) -> str:
    """A model that makes products, and a .gitignore that would hide the rest."""
    return agent.script([execute("ls -a target; mkdir -p target src/target; touch a.o src/b.o "
                                 "target/c 'log x.txt' '#odd' src/target/d e.md; "
                                 "echo '*' > .gitignore")], "Done.")


@pytest.fixture
def built(agent: Agent) -> Agent:
    (agent.project / "target").mkdir()
    (agent.project / "target/old").write_text("old\n")
    (agent.project / ".gitignore").write_text(BUILDS)
    return agent


def test_products_stay_on_their_side(built: Agent) -> None:
    events = built.events(build(built), "--yes")
    result = next(event for event in events if event["event"] == "result")
    assert result["exit_code"] == 0 and "No such file" in result["text"]
    changes = next(event for event in events if event["event"] == "changes")
    assert [file["path"] for file in changes["files"]] == [".gitignore", "e.md", "src/target/d"]
    assert (built.project / "e.md").exists() and not (built.project / "a.o").exists()


def test_products_travel_when_they_are_wanted(built: Agent) -> None:
    events = built.events(build(built), "--yes", "--all")
    assert "old" in next(event for event in events if event["event"] == "result")["text"]
    assert all((built.project / name).exists() for name in ("a.o", "src/b.o", "target/c", "#odd"))


def test_exceptions_are_not_guessed_at(agent: Agent) -> None:
    (agent.project / ".gitignore").write_text("*.o\n!keep.o\n")
    done = agent(agent.script([execute("touch keep.o a.o")], "Done."), "--yes")
    assert done.returncode == 0 and ".gitignore is not used" in done.stderr
    assert (agent.project / "keep.o").exists() and (agent.project / "a.o").exists()


@pytest.mark.parametrize("kind", ["directory", "fifo", "large"])
def test_a_gitignore_that_is_none_hides_nothing(agent: Agent, kind: str) -> None:
    path = agent.project / ".gitignore"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_text("*.md\n" * 100_000)
    done = agent(agent.script([execute("touch new.md")], "Done."), "--yes")
    assert done.returncode == 0, done.stderr
    assert (".gitignore is not used: File too large" in done.stderr) == (kind == "large")
    assert (agent.project / "new.md").exists()


# ---- what the agent has, and has not ----

def test_secrets_of_the_folder_and_the_environment_stay_outside(agent: Agent) -> None:
    (agent.project / ".env").write_text("TOKEN=hunter2hunter2\n")
    (agent.project / "id.pem").write_text("hunter2hunter2\n")
    agent.env |= {"ANTHROPIC_API_KEY": "hunter2hunter2", "AWS_SECRET_ACCESS_KEY": "hunter2hunter2"}
    for backend in "isolated", "local":
        events = agent.events(agent.script([execute("ls -a; env; cat .env id.pem")], "Done."),
                              "--backend", backend, "--env", "GIVEN=by the user")
        result = next(event for event in events if event["event"] == "result")
        assert "tool.sh" in result["text"] and "hunter2" not in json.dumps(events)
        assert "GIVEN=by the user\n" in result["text"]


def test_commands_see_no_variable_but_those_that_they_are_to(agent: Agent) -> None:
    """A few on the local backend, and with --no-inherit-env none, as in a run."""
    agent.env |= {"LANG": "C", "USER": "somebody", "OTHER": "other"}
    few = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME"} & set(agent.env)
    for options, more in ([], few), (["--no-inherit-env"], set()):
        events = agent.events(agent.script([execute("exec /usr/bin/env")], "Done."), "--backend", "local",
                              "--env", "GIVEN=x", *options)
        [text] = [event["text"] for event in events if event["event"] == "result"]
        seen = {line.partition("=")[0] for line in text.splitlines() if "=" in line}
        assert seen - {"PWD", "OLDPWD", "SHLVL", "_"} == more | {"GIVEN"}, options


@pytest.mark.parametrize("options, network", [
    ([], "no network"), (["--net", "allow=localhost"], "a few hosts of the network")])
def test_it_is_told_where_it_is_and_what_to_mind(agent: Agent, options: list[str],
                                                 network: str) -> None:
    model = agent.script({"expect": {"system": ["copy in a sandbox", network, "Be brief!"],
                                     "first": "count the lines",
                                     "tools": ["execute", "write_file"]}, "reply": "3"})
    done = agent(model, "--system", "Be brief!", *options, task="count the lines")
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


def test_a_task_can_come_from_stdin(agent: Agent) -> None:
    model = agent.script({"expect": {"first": "a task\nof two lines"}, "reply": "ok"})
    assert agent(model, task="-", input="a task\nof two lines\n").stdout == "ok\n"
    assert "there is none" in agent(model, task="-").stderr


@pytest.mark.parametrize("given, said", [
    ("do this\0 and that", "it holds a NUL byte"), ("a" * (1024 * 1024 + 1), "longer than 1 MiB"),
    (None, "Is a directory")], ids=["NUL", "long", "directory"])
def test_a_task_that_cannot_be_read_whole_is_none(agent: Agent, given: Any, said: str) -> None:
    directory = os.open("/", os.O_RDONLY)
    done = agent(agent.script("ok"), task="-",
                 **({"input": given} if given else {"stdin": directory}))
    os.close(directory)
    assert (done.returncode, done.stdout) == (125, "")
    assert "read the task from stdin: " in done.stderr and said in done.stderr


def test_a_reader_reads_and_can_do_nothing_else(agent: Agent, tmp_path: Path) -> None:
    log = tmp_path / "log"
    model = agent.script(
        {"expect": {"tools": ["read_file", "list_dir"], "no_tools": ["execute", "write_file"],
                    "system": "neither change them nor run commands"},
         "reply": [tool("read_file", path="src/main.c"), write("src/main.c", "x"),
                   execute("touch x")]},
        {"expect": {"results": [{"contains": "int main"}, {"error": True}, {"error": True}]},
         "reply": "Good."})
    before = files(agent.project)
    done = agent(model, "--read-only", "--audit", log)
    assert (done.returncode, done.stdout) == (0, "Good.\n"), done.stderr
    assert files(agent.project) == before
    # Not by good will: it works through a view, in which the workspace is mounted read-only.
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event for event in events if event["event"] == "sandbox.view"]
    assert not [event for event in events if event["event"] in ("sandbox.execute",
                                                               "sandbox.write_file")]


def test_limits_and_output_are_those_of_the_options(agent: Agent) -> None:
    model = agent.script([execute("sleep 60")], [execute("seq 100000")], "Done.")
    events = agent.events(model, "--timeout", "0.5", "--max-output", "1000", "--no-sync")
    results = [event for event in events if event["event"] == "result"]
    assert results[0]["exit_code"] == 124
    assert results[1]["exit_code"] == 0 and len(results[1]["text"]) < 2000


@pytest.mark.parametrize("mode", ["copy", "overlay"])
def test_what_was_changed_here_meanwhile_is_never_written_over(agent: Agent, mode: str,
                                                               tmp_path: Path) -> None:
    """The agent waits until the user has changed two files, one of which it changes as well."""
    gate = tmp_path / "gate"
    gate.mkdir()
    model = agent.script(
        [execute(f"touch {gate}/begun; while [ ! -e {gate}/go ]; do sleep 0.02; done"),
         ], [write("README.md", "agent\n"), write("new.md", "agent\n")], "Done.")
    child = agent.start(model, "--yes", "--rw", gate, "--seed-mode", mode)
    try:
        while not (gate / "begun").exists():
            assert child.poll() is None, child.communicate()
        (agent.project / "README.md").write_text("mine\n")
        (agent.project / "src/main.c").write_text("mine, and longer than it was before\n")
        (gate / "go").touch()
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 1, err
    assert (agent.project / "README.md").read_text() == "mine\n"
    assert (agent.project / "src/main.c").read_text() == "mine, and longer than it was before\n"
    assert (agent.project / "new.md").read_text() == "agent\n"
    assert "left as they are here:\npinfold:   README.md\n" in err
    assert b"agent\n" in [text for path, text in drop_kept(err).items() if path.name == "README.md"]


@pytest.mark.parametrize("mode", ["copy", "overlay"])
def test_what_may_have_changed_here_is_never_written_over(agent: Agent, mode: str,
                                                          tmp_path: Path) -> None:
    """Meanwhile the user has written to a file as much as the agent writes to it, so that only its
    bytes tell them apart, and closed it to everybody."""
    gate = tmp_path / "gate"
    gate.mkdir()
    hers = agent.project / "README.md"
    model = agent.script(
        [execute(f"touch {gate}/begun; while [ ! -e {gate}/go ]; do sleep 0.02; done"),
         ], [write("README.md", "agent\n"), write("new.md", "agent\n")], "Done.")
    child = subprocess.Popen(
        [*UNPRIVILEGED, *agent.words("--model", model, "--yes", "--rw", gate, "--seed-mode", mode)],
        cwd=agent.project, env=agent.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    try:
        while not (gate / "begun").exists():
            assert child.poll() is None, child.communicate()
        hers.write_text("hers!\n")
        hers.chmod(0)
        (gate / "go").touch()
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 1, err
    hers.chmod(0o644)
    assert hers.read_text() == "hers!\n"
    assert (agent.project / "new.md").read_text() == "agent\n"
    assert "left as they are here:\npinfold:   README.md\n" in err
    assert b"agent\n" in [text for path, text in drop_kept(err).items() if path.name == "README.md"]


def test_its_own_output_is_no_part_of_the_project(agent: Agent) -> None:
    with open(agent.project / "out.log", "w") as out:
        done = agent(fix(agent), "--yes", "--session", "talk", capture_output=False, stdout=out,
                     stderr=out)
    log = (agent.project / "out.log").read_text()
    assert done.returncode == 0, log
    assert "out.log" not in log and "talk" not in log


# ---- sessions ----

def test_a_session_goes_on(agent: Agent, tmp_path: Path) -> None:
    talk = tmp_path / "talk"
    assert agent(fix(agent), "--yes", "--session", talk, task="first task").returncode == 0
    assert talk.stat().st_mode & 0o777 == 0o600
    model = agent.script({"expect": {"first": "first task", "last": "second task", "messages": 7},
                          "reply": "I remember."})
    done = agent(model, "--session", talk, task="second task")
    assert (done.returncode, done.stdout) == (0, "I remember.\n"), done.stderr
    assert len(json.loads(talk.read_text())["messages"]) == 8
    assert list(tmp_path.glob("talk.*")) == []


def test_whatever_a_conversation_holds_is_kept(agent: Agent, tmp_path: Path) -> None:
    """What a model of a service reasons goes back to it unchanged: it may be signed."""
    messages = [
        {"role": "user", "blocks": [{"kind": "text", "text": "a\0b \u00fc \U0001f600"}]},
        {"role": "assistant", "blocks": [
            {"kind": "reasoning", "text": "thinking", "opaque": '{"signature":"c2ln"}'},
            {"kind": "reasoning", "text": ""},
            {"kind": "tool_use", "text": '{"command":"false"}', "id": "1", "name": "execute"}]},
        {"role": "user", "blocks": [
            {"kind": "tool_result", "text": "1", "id": "1", "error": True}]},
        {"role": "assistant", "blocks": [{"kind": "text", "text": "It failed."}]}]
    talk = tmp_path / "talk"
    talk.write_text(json.dumps({"pinfold_session": 1, "messages": messages}))
    done = agent(agent.script("So it goes."), "--session", talk)
    assert done.returncode == 0, done.stderr
    after = json.loads(talk.read_text())["messages"]
    assert len(after) == 6 and after[:4] == messages


@pytest.mark.parametrize("session, reason", [
    ("none/talk", "No such file or directory"), ("file/talk", "Not a directory"),
    (".", "Is a directory"), ("src", "Is a directory"), (250 * "x", "File name too long"),
    ("leads", "Is a directory"), ("/proc/talk", "No such file or directory")])
def test_a_session_that_cannot_be_written_is_told_before_anything_is_started(
        agent: Agent, session: str, reason: str) -> None:
    """Neither a model is asked, which costs, nor a sandbox made."""
    (agent.project / "file").write_text("")
    (agent.project / "leads").symlink_to("src")
    before = sorted(agent.project.rglob("*"))
    done = agent(fix(agent), "--yes", "--json", "--session", session)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["error", "end"]
    assert (done.returncode, events[1]["turns"]) == (125, 0)
    assert f"write session {session[:150]}: {reason}" in events[0]["message"]
    assert sorted(agent.project.rglob("*")) == before


@pytest.mark.skipif(os.getuid() != 0, reason="it takes two users")
def test_a_session_may_be_where_only_some_can_write(as_stranger, common: Path,
                                                    tmp_path: Path) -> None:
    """In a directory of another, and in the place of another's file where each has his own alone."""
    script, project = common / "script.json", common / "project"
    script.write_text(json.dumps({"turns": [{"reply": "Done."}]}))
    project.mkdir()
    (common / "closed").mkdir(mode=0o755)
    for open_to_all in "open", "tmp":
        (common / open_to_all).mkdir()
        (common / open_to_all).chmod(0o1777)
    (common / "open/ours").write_text("")
    (common / "open/ours").chmod(0o644)

    def talk(place: str) -> Any:
        return as_stranger("agent", "-q", "--backend", "local", "--model", f"scripted:{script}",
                           "--seed", project, "--session", common / place, "x",
                           TMPDIR=str(common / "tmp"))

    for place, reason in (("closed/talk", "Permission denied"),
                          ("open/ours", "Operation not permitted")):
        done = talk(place)
        assert (done.returncode, done.stdout) == (125, "")
        assert f"write session {common / place}: {reason}" in done.stderr
    assert (common / "open/ours").read_text() == ""
    assert (talk("open/own").returncode, talk("open/own").stdout) == (0, "Done.\n")


NO_MESSAGES = [
    ("x", ": its role is neither user nor assistant"),
    ({"role": "system", "blocks": []}, ": its role is neither user nor assistant"),
    ({"role": "user\0", "blocks": []}, ": its role is neither user nor assistant"),
    ({"role": "user"}, ": its blocks are no list"),
    ({"role": "user", "blocks": {}}, ": its blocks are no list"),
    ({"role": "user", "blocks": [1]}, ", block 1: it has no kind")]
NO_BLOCKS = [
    ({"kind": "odd", "text": ""}, "its kind is none of text, tool_use, tool_result, reasoning"),
    ({"kind": "text"}, "one of text, id, name, opaque, error is missing or is not what it is in"),
    ({"kind": "text", "text": 1}, "one of text, id, name, opaque, error is missing"),
    ({"kind": "tool_result", "text": "", "id": "1\0x"}, "one of text, id, name, opaque, error"),
    ({"kind": "tool_result", "text": "", "id": "1", "error": 1}, "one of text, id, name, opaque"),
    ({"kind": "reasoning", "text": "", "opaque": {}}, "one of text, id, name, opaque, error"),
    ({"kind": "tool_result", "text": ""}, "message: the id of a tool call is empty"),
    ({"kind": "tool_use", "text": "{}", "id": "1"}, "message: the name of a tool call is empty")]


def session(*messages: Any) -> str:
    return json.dumps({"pinfold_session": 1, "messages": messages})


def user_says(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "blocks": [{"kind": "text", "text": "good"}, *blocks]}


def says(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "blocks": list(blocks)}


CALL = {"kind": "tool_use", "id": "1", "name": "execute", "text": "{}"}
RESULT = {"kind": "tool_result", "id": "1", "text": "done"}
TEXT = {"kind": "text", "text": "well"}
NO_RESULT = "the call of a tool has no result in the message after it; mend the file, or name a new one"
NO_CALL = "the result of a tool has no call in the message before it; mend the file, or name a new one"
# Conversations that no model takes: the messages, and the message and block that are to blame.
NO_CONVERSATIONS = [
    ([says("assistant", TEXT, CALL)], 1, 2, NO_RESULT),
    ([says("assistant", CALL), says("user", TEXT)], 1, 1, NO_RESULT),
    ([says("assistant", CALL), says("user", TEXT), says("assistant", TEXT), says("user", RESULT)],
     1, 1, NO_RESULT),
    ([says("assistant", CALL), says("user", {**RESULT, "id": "2"})], 1, 1, NO_RESULT),
    ([says("assistant", CALL), says("user", RESULT, RESULT)], 1, 1, "the call of a tool has more than"),
    ([says("assistant", CALL), says("assistant", CALL), says("user", RESULT)], 3, 1,
     "the result of a tool has more than one call"),
    ([says("user", RESULT)], 1, 1, NO_CALL),
    ([says("assistant", TEXT), says("user", TEXT, RESULT)], 2, 2, NO_CALL),
    ([says("user", CALL)], 1, 1, "a tool_use is the assistant's, and this is the user's"),
    ([says("user", {"kind": "reasoning", "text": "hm"})], 1, 1, "a reasoning is the assistant's"),
    ([says("assistant", TEXT, RESULT)], 1, 2, "the result of a tool is the user's, and this is"),
]


@pytest.mark.parametrize("messages, message, block, reason", NO_CONVERSATIONS)
def test_a_conversation_that_no_model_takes_is_told_with_its_file(
        agent: Agent, tmp_path: Path, messages: list[Any], message: int, block: int,
        reason: str) -> None:
    """Before anything is sent or run, and in numbers that count from 1 as for other mistakes."""
    talk = tmp_path / "talk"
    talk.write_text(session(*messages))
    done = agent(agent.script("Hello."), "--session", talk)
    assert (done.returncode, done.stdout) == (125, "")
    assert f"read session {talk}: message {message}, block {block}: {reason}" in done.stderr
    assert talk.read_text() == session(*messages)


@pytest.mark.parametrize("messages", [
    [], [says("assistant", TEXT)], [says("user"), says("assistant"), says("user", TEXT)],
    [says("assistant", CALL), says("assistant", {**CALL, "id": "2"}),
     says("user", {**RESULT, "id": "2"}), says("user", RESULT)],
    [says("assistant", CALL), says("user", RESULT), says("assistant", CALL), says("user", RESULT)]])
def test_a_conversation_that_a_model_takes_goes_on(agent: Agent, tmp_path: Path,
                                                  messages: list[Any]) -> None:
    talk = tmp_path / "talk"
    talk.write_text(session(*messages))
    done = agent(agent.script("Hello."), "--session", talk)
    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr
    kept = json.loads(talk.read_text())["messages"]
    assert [message["role"] for message in kept[:len(messages)]] == [message["role"]
                                                                     for message in messages]
    assert kept[-1]["blocks"][0]["text"] == "Hello."


@pytest.mark.parametrize("text, reason", [
    ("", "line 1: "), ("{", "line 1: "), ("\n[1, }", "line 2: "), ("[]", "no session"),
    ("{}", "no session"), ('{"pinfold_session": 2, "messages": []}', "no session"),
    ('{"pinfold_session": 1, "messages": [], "messages": []}', "line 1: duplicate"),
    ('{"pinfold_session": 1}', "no session"), ('{"pinfold_session": 1, "messages": {}}', "no session"),
    *((session(user_says(), message), f"message 2{reason}") for message, reason in NO_MESSAGES),
    *((session(user_says(block)), f"message 1, block 2: {reason}") for block, reason in NO_BLOCKS)])
def test_a_file_that_is_no_session_is_told_and_left(agent: Agent, tmp_path: Path, text: str,
                                                   reason: str) -> None:
    talk = tmp_path / "talk"
    talk.write_text(text)
    done = agent(agent.script("Hello."), "--session", talk)
    assert done.returncode == 125 and done.stdout == ""
    assert f"session {talk}: " in done.stderr and reason in done.stderr
    assert talk.read_text() == text


def test_a_session_that_is_too_large_is_told_and_not_read(agent: Agent, tmp_path: Path) -> None:
    talk = tmp_path / "talk"
    with talk.open("wb") as file:
        file.truncate((256 << 20) + 1)
    done = agent(agent.script("Hello."), "--session", talk)
    assert done.returncode == 125 and f"read session {talk}: File too large" in done.stderr
    assert talk.stat().st_size == (256 << 20) + 1


@pytest.mark.parametrize("option", ["--session", "--model"])
def test_a_pipe_that_nobody_writes_is_not_waited_for(agent: Agent, tmp_path: Path,
                                                     option: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = tmp_path / "pipe"
    done = (agent(agent.script("Hello."), "--session", pipe) if option == "--session"
            else agent(f"scripted:{pipe}"))
    assert done.returncode == 125 and str(pipe) in done.stderr, done.stderr


# ---- agents that do not come to an end ----

def test_a_loop_ends_with_the_turns(agent: Agent) -> None:
    model = agent.script({"reply": [execute("true")], "times": 0})
    done = agent(model, "--max-turns", "5")
    assert done.returncode == 2
    assert "stopped after 5 replies" in done.stderr and "--max-turns" in done.stderr


def test_tokens_end_it_too_and_what_was_changed_is_offered(agent: Agent) -> None:
    model = agent.script({"reply": [write("a.md", "a\n")], "times": 0,
                          "usage": {"input": 40, "output": 10}})
    done = agent(model, "--max-tokens", "120", "--yes")
    assert done.returncode == 2
    assert "the tokens of --max-tokens are used up" in done.stderr and "3 replies" in done.stderr
    assert (agent.project / "a.md").read_text() == "a\n"


@pytest.mark.parametrize("stop, reason", [("length", "was cut"), ("refusal", "refused")])
def test_a_reply_that_is_no_end_is_told(agent: Agent, stop: str, reason: str) -> None:
    model = agent.script({"reply": "I", "stop": stop})
    done = agent(model)
    assert done.returncode == 2 and reason in done.stderr
    reply = next(event for event in agent.events(model, status=2) if event["event"] == "reply")
    assert reply["stop"] == stop


def test_a_model_that_fails_later_keeps_what_was_done(agent: Agent) -> None:
    model = agent.script([write("a.md", "a\n")],
                         {"reply": "And", "error": {"message": "out of order", "status": 500}})
    done = agent(model, "--yes")
    assert done.returncode == 125
    assert "out of order" in done.stderr and "+a" in done.stdout
    assert (agent.project / "a.md").read_text() == "a\n"


# ---- how it is called ----

@pytest.mark.parametrize("words, reason", [
    ([], "no task"),
    ([""], "no task"),
    (["fix", "it"], "put the task in quotes"),
    (["--max-turns", "0", "x"], "1 to 100000"),
    (["--max-turns", "many", "x"], "1 to 100000"),
    (["--yes", "--no-sync", "x"], "contradict"),
    (["--read-only", "--yes", "x"], "nothing to write back"),
    (["--diff", "--json", "x"], "--json has the diff"),
    (["--base-url", "http://me:hunter2@127.0.0.1/", "x"], "no user name or password"),
    (["--base-url", "gopher://x", "x"], "base URL"),
    (["--net", "host", "--backend", "local", "x"], "--net needs --backend isolated"),
    (["--tty", "x"], "no such option"),
    (["--seed", "/proc/nonexistent", "x"], "/proc/nonexistent"),
])
def test_mistakes_are_told_before_anything_is_done(agent: Agent, words: list[str],
                                                   reason: str) -> None:
    agent.env["OPENAI_API_KEY"] = KEY
    done = subprocess.run([BUILD / "pinfold", "agent", "--model", "openai:x", *words], env=agent.env,
                          cwd=agent.project, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (125, "")
    assert reason in done.stderr and "hunter2" not in done.stderr


def test_no_model_is_told_and_the_environment_can_name_one(agent: Agent) -> None:
    words = [BUILD / "pinfold", "agent", "x"]
    options: dict[str, Any] = {"cwd": agent.project, "capture_output": True, "text": True,
                               "timeout": 60, "stdin": subprocess.DEVNULL}
    done = subprocess.run(words, env=agent.env, **options)
    assert done.returncode == 125 and "PINFOLD_MODEL" in done.stderr
    done = subprocess.run(words, env={**agent.env, "PINFOLD_MODEL": agent.script("Hello.")},
                          **options)
    assert (done.returncode, done.stdout) == (0, "Hello.\n")


@pytest.mark.parametrize("model, name", [("anthropic:x", "ANTHROPIC_API_KEY"),
                                         ("openai:x", "OPENAI_API_KEY"),
                                         ("bedrock:x", "AWS_REGION"),
                                         ("what:x", "anthropic")])
def test_a_missing_key_is_named(agent: Agent, model: str, name: str) -> None:
    agent.env["HOME"] = "/nonexistent"
    done = agent(model)
    assert (done.returncode, done.stdout) == (125, "")
    assert name in done.stderr and "files" not in done.stderr
    assert len(done.stderr.splitlines()) == 1  # and no sums of what has not begun


def test_a_home_directory_is_not_taken_by_accident(agent: Agent) -> None:
    agent.env["HOME"] = str(agent.project)
    done = agent(agent.script("Hello."))
    assert done.returncode == 125 and "home directory" in done.stderr
    assert agent(agent.script("Hello."), "--seed", ".").returncode == 0


def test_a_workspace_of_ones_own_is_worked_in_and_kept(agent: Agent, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.md").write_text("a\n")
    model = agent.script([execute("cat a.md > b.md")], "Done.")
    done = agent(model, "--workspace", work)
    assert done.returncode == 0, done.stderr
    assert (work / "b.md").read_text() == "a\n"


@pytest.mark.plain
def test_the_small_programs_have_nothing_of_it() -> None:
    for name in "pinfold", "pinfold-full":
        if (BUILD / name).exists():
            assert b"You work on a project in a workspace" not in (BUILD / name).read_bytes()
    assert b"You work on a project in a workspace" in (BUILD / "pinfold-remote").read_bytes()


def test_it_takes_no_libcurl_to_say_what_is_wrong(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    subprocess.run(["strace", "-f", "-e", "trace=execve,openat", "-o", trace, BUILD / "pinfold",
                    "agent", "--model", "x"], capture_output=True, timeout=120, check=False)
    assert "execve" in trace.read_text()
    assert "pinfold-remote" not in trace.read_text()


def test_the_demonstration_plays_on_a_copy_of_the_example(agent: Agent, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "examples/wordcount", copy)
    done = agent(f"scripted:{ROOT}/examples/agent/demo.json", "--yes", cwd=copy,
                 task="add an option -l")
    assert done.returncode == 0, done.stderr
    assert "only_lines" in (copy / "src/wordcount.c").read_text()
    assert "4 replies, 4 calls" in done.stderr


def test_an_ordinary_user_has_agents_too(as_stranger, common: Path) -> None:
    user = STRANGER if os.getuid() == 0 else os.getuid()
    project, script, tmp = common / "project", common / "script.json", common / "tmp"
    project.mkdir()
    tmp.mkdir()
    (project / "a.md").write_text("a\n")
    for path in project, project / "a.md", tmp:
        os.chown(path, user, user)
    script.write_text(json.dumps({"turns": [{"reply": [execute("id -un; echo b >> a.md")]},
                                            {"expect": {"results": [{"contains": "agent"}]},
                                             "reply": "Done."}]}))
    done = as_stranger("agent", "--model", f"scripted:{script}", "--seed", project, "--yes", "do it",
                       TMPDIR=str(tmp), HOME="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert (project / "a.md").read_text() == "a\nb\n"
    assert (project / "a.md").stat().st_uid == user and list(tmp.iterdir()) == []
