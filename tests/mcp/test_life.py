# SPDX-License-Identifier: Apache-2.0
"""Many requests at once, cancelling, processes, and how a server ends: with nothing left of it."""

import os
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from client import Client, Failure, Result, processes_with
from conftest import wait_until
from owners import BUILD, IS_ROOT, STRANGER, copy_programs, credentials

# ---- several requests ----


def test_requests_run_at_the_same_time(client) -> None:
    client.call("execute", command="mkfifo a b")
    one = client.begin_call("execute", command="echo 1 > a; cat b")
    two = client.begin_call("execute", command="cat a; echo 2 > b")
    replies = {reply["id"]: reply["result"]["structuredContent"]["stdout"]
               for reply in (client.receive(), client.receive())}
    assert replies == {one: "2\n", two: "1\n"}


def test_sixty_four_calls_run_at_once(client) -> None:
    """Each waits for all others: they would wait for ever if they did not."""
    client.call("execute", command="mkdir here")
    ids = [client.begin_call("execute", command=f"touch here/{n}; until [ $(ls here | wc -l) = 64 ];"
                                                "do sleep 0.2; done; echo done",
                             timeout_seconds=600) for n in range(64)]
    replies = [client.inbox.get(timeout=600) for _ in ids]
    assert sorted(reply["id"] for reply in replies) == ids
    for reply in replies:
        assert not reply["result"]["isError"], reply
        assert reply["result"]["structuredContent"]["stdout"] == "done\n", reply


def test_more_than_can_run_wait_for_their_turn(client) -> None:
    ids = [client.begin_call("read_file", path="none") for _ in range(200)]
    assert sorted(client.receive()["id"] for _ in ids) == ids


def test_too_many_requests_are_refused_and_the_others_go_on(client, mark) -> None:
    client.call("execute", command="true")
    ids = [client.begin_call("start_process", command=f"sleep {mark}") for _ in range(20)]
    refused = [reply for reply in (client.receive() for _ in ids) if reply["result"]["isError"]]
    assert len(refused) == 4
    assert "stop_process" in refused[0]["result"]["content"][0]["text"]
    waiting = [client.begin_call("execute", command=f"sleep {mark}") for _ in range(256)]
    over = client.begin_call("execute", command="true")
    reply = client.reply_to(over)
    assert reply["error"]["code"] == -32000
    for one in waiting:
        client.notify("notifications/cancelled", requestId=one)
    wait_until(lambda: "result" in client.reply_to(client.begin_call("execute", command="true")))


# ---- cancelling ----


def test_cancelling_kills_what_the_request_started(client, mark, there, gone) -> None:
    request = client.begin_call("execute", command=f"(setsid sleep {mark} &); sleep {mark}")
    there(mark)
    client.notify("notifications/cancelled", requestId=request, reason="not needed")
    gone(mark)
    assert client.request("ping") == {}  # and there was no reply before this one
    assert client.call("execute", command="echo on").data["stdout"] == "on\n"


def test_cancelling_a_wait_for_a_process_leaves_the_process(client, mark, there) -> None:
    process = client.call("start_process", command=f"sleep {mark}", wait_seconds=0).data["id"]
    there(mark)
    request = client.begin_call("read_process", id=process, wait_seconds=600)
    client.notify("notifications/cancelled", requestId=request)
    wait_until(lambda: client.call("read_process", id=process, wait_seconds=0).data["running"])
    assert processes_with(mark)


def test_cancelling_what_is_over_does_nothing(client) -> None:
    for _ in range(20):
        request = client.begin_call("execute", command="true")
        client.reply_to(request)
        client.notify("notifications/cancelled", requestId=request)
    assert client.request("ping") == {}


# ---- progress ----


def test_progress_is_told_while_a_command_runs(client) -> None:
    command = "for i in $(seq 1 12); do echo step $i; sleep 0.1; done"
    request = client.begin_call("execute", {"progressToken": "mine"}, command=command)
    assert client.reply_to(request)["result"]["structuredContent"]["exit_code"] == 0
    told = [note["params"] for note in client.notifications]
    assert told and {one["progressToken"] for one in told} == {"mine"}
    times = [one["progress"] for one in told]
    assert times == sorted(set(times))
    assert all(later - earlier >= 0.19 for earlier, later in zip(times, times[1:]))
    assert all(one["message"].startswith("step ") for one in told)


def test_progress_of_a_flood_is_little(client) -> None:
    request = client.begin_call("execute", {"progressToken": 5},
                                command="timeout 1 yes \"$(printf 'x\\033[2J\\377')\"")
    client.reply_to(request)
    told = [note["params"]["message"] for note in client.notifications]
    assert 0 < len(told) <= 600 and all(len(one) <= 400 for one in told)
    assert all("\x1b" not in one for one in told)


def test_a_silent_request_is_known_to_go_on(client) -> None:
    request = client.begin_call("execute", {"progressToken": 0}, command="sleep 7")
    client.reply_to(request)
    assert {note["params"]["progressToken"] for note in client.notifications} == {0}


def test_without_a_token_there_is_no_progress(client) -> None:
    client.call("execute", command="echo a; sleep 0.5; echo b")
    assert client.notifications == []


def test_the_oldest_revision_has_no_messages_of_progress(start) -> None:
    client = start(version="2024-11-05")
    request = client.begin_call("execute", {"progressToken": 1},
                                command="for i in 1 2 3 4 5; do echo $i; sleep 0.15; done")
    client.reply_to(request)
    assert client.notifications
    assert all("message" not in note["params"] for note in client.notifications)


# ---- processes ----


def test_a_process_is_read_while_it_runs(client) -> None:
    process = client.call("start_process", command="mkfifo pipe; echo ready; cat pipe; exit 5",
                         wait_seconds=60)
    assert process.data["running"] and process.data["stdout"] == "ready\n"
    news = client.begin_call("read_process", id=process.data["id"], wait_seconds=300)
    client.begin_call("execute", command="echo hello > pipe")
    replies = {reply["id"]: reply["result"] for reply in (client.receive(), client.receive())}
    seen = replies[news]["structuredContent"]
    text = seen["stdout"]
    while seen["running"]:
        seen = client.call("read_process", id=process.data["id"], wait_seconds=300).data
        text += seen["stdout"]
    assert (text, seen["exit_code"]) == ("hello\n", 5)


def test_a_process_can_be_waited_for_to_its_end(client) -> None:
    process = client.call("start_process", command="for i in 1 2 3; do echo $i; sleep 0.2; done",
                          wait_seconds=0).data["id"]
    result = client.call("read_process", id=process, until="exit", wait_seconds=300)
    assert (result.data["running"], result.data["exit_code"]) == (False, 0)
    assert result.data["stdout"].endswith("3\n")
    again = client.call("read_process", id=process)
    assert again.data["stdout"] == "" and "ended with exit code 0" in again.text


def test_a_wait_has_an_end(client, mark) -> None:
    process = client.call("start_process", command=f"sleep {mark}", wait_seconds=0).data["id"]
    result = client.call("read_process", id=process, wait_seconds=0.2)
    assert result.data["running"] and result.data["stdout"] == ""


def test_a_process_is_stopped_with_what_it_started(client, mark, there, gone) -> None:
    process = client.call("start_process", command=f"echo on; (setsid sleep {mark} &) ; sleep {mark}",
                          wait_seconds=0).data["id"]
    there(mark)
    result = client.call("stop_process", id=process)
    gone(mark)
    assert not result.data["running"] and "stopped" in result.text
    assert not client.call("stop_process", id=process).is_error


def test_a_process_that_cannot_start_says_why(client) -> None:
    result = client.call("start_process", command="no-such-program", wait_seconds=60)
    seen = result.data
    if seen["running"]:
        seen = client.call("read_process", id=seen["id"], until="exit", wait_seconds=60).data
    assert seen["exit_code"] == 127
    bad = client.call("start_process", command="true", cwd="no/such", wait_seconds=60)
    assert bad.is_error and "no/such" in bad.text


def test_the_output_of_a_process_is_bounded_and_its_end_is_kept(client) -> None:
    process = client.call("start_process", command="head -c 40000000 /dev/zero | tr '\\0' x; echo end",
                          wait_seconds=0).data["id"]
    result = client.call("read_process", id=process, until="exit", wait_seconds=300)
    assert "are lost" in result.text or "There is more" in result.text
    last = ""
    while text := client.call("read_process", id=process, wait_seconds=0).data["stdout"]:
        last = text
    assert last.endswith("xend\n")


def test_only_so_many_processes_that_have_ended_are_known(client) -> None:
    ids = []
    for number in range(20):
        ids.append(client.call("start_process", command=f"exit {number}").data["id"])
        client.call("read_process", id=ids[-1], until="exit", wait_seconds=60)
    assert client.call("read_process", id=ids[0]).is_error
    assert client.call("read_process", id=ids[-1]).data["exit_code"] == 19


def test_processes_of_one_client_are_no_others(start, mark) -> None:
    one, other = start(), start()
    process = one.call("start_process", command=f"sleep {mark}").data["id"]
    assert other.call("read_process", id=process, wait_seconds=0).is_error


# ---- the workspace ----


def test_nothing_is_made_before_it_is_needed(start, own_tmpdir: Path) -> None:
    client = start()
    client.request("tools/list")
    client.request("resources/templates/list")
    assert list(own_tmpdir.iterdir()) == []
    client.call("list_dir")
    assert len(list(own_tmpdir.iterdir())) == 1


@pytest.mark.parametrize("end", ["", "/"])
def test_the_clients_root_is_the_seed(start, project: Path, end: str) -> None:
    client = start(roots=[project.as_uri() + end])
    assert {one["path"] for one in client.call("list_dir").data["entries"]} == {
        "logo.png", "src", "tool.sh"}
    assert client.call("sync", dry_run=True).data["files"] == 0


def test_a_second_initialize_changes_nothing(start, project: Path) -> None:
    client = start(roots=[], version="2025-11-25")
    with pytest.raises(Failure, match="initialized already"):
        client.request("initialize", protocolVersion="2024-11-05", capabilities={},
                       clientInfo={"name": "test", "version": "1"})
    client.roots.append(project.as_uri())
    client.notify("notifications/roots/list_changed")
    assert "tool.sh" in {one["path"] for one in client.call("list_dir").data["entries"]}


def test_a_root_may_have_any_name_and_only_one_is_taken(start, tmp_path: Path) -> None:
    strange = tmp_path / "a b%\u00e9\udcff"
    strange.mkdir()
    (strange / "here").write_text("")
    client = start(roots=["https://example.org/", "file:///no/such/place", "nonsense",
                          f"file://localhost{tmp_path}/a%20b%25%C3%A9%FF", tmp_path.as_uri()])
    assert client.call("list_dir").data["entries"][0]["path"] == "here"


def test_a_home_directory_is_no_seed(start, tmp_path: Path) -> None:
    home = tmp_path / "home/me"
    home.mkdir(parents=True)
    (home / "token").write_text("secret")
    for root in home, home.parent, Path("/"):
        client = start(roots=[root.as_uri()], env={**os.environ, "HOME": str(home)})
        assert client.call("list_dir").data["entries"] == []


def test_a_seed_that_is_named_wins_and_roots_can_be_declined(start, project, tmp_path) -> None:
    (tmp_path / "other").mkdir()
    for options in ["--seed", tmp_path / "other"], ["--no-roots"]:
        assert start(*options, roots=[project.as_uri()]).call("list_dir").data["entries"] == []


def test_a_client_that_keeps_its_roots_to_itself_is_not_waited_for_long(start) -> None:
    client = start(capabilities={"roots": {}})
    for _ in range(2):
        assert client.call("list_dir").data["entries"] == []


def test_a_seed_that_is_missing_is_told_by_every_call(start) -> None:
    client = start("--seed", "/no/such/seed")
    for _ in range(2):
        result = client.call("execute", command="true")
        assert result.is_error and "/no/such/seed" in result.text


def test_a_workspace_of_the_users_is_kept(start, tmp_path: Path) -> None:
    start("--workspace", tmp_path / "work").call("write_file", path="a", content="kept")
    assert wait_until(lambda: (tmp_path / "work/a").read_text()) == "kept"


def test_an_idle_workspace_ends_and_the_next_call_has_a_new_one(start, project, own_tmpdir) -> None:
    client = start("--seed", project, "--ttl", "1")
    result = client.call("execute", command="echo x > new; sleep 2.5; ls")  # this is no idleness
    assert "new\n" in result.data["stdout"]
    wait_until(lambda: list(own_tmpdir.iterdir()) == [])
    result = client.call("list_dir")
    assert "new" not in [one["path"] for one in result.data["entries"]]
    assert "idle" in result.text


@pytest.mark.parametrize("backend", ["local", "isolated"])
def test_a_workspace_that_has_ended_leaves_the_server_no_child(start, own_tmpdir, backend) -> None:
    """Neither one that runs nor one that nobody has reaped: the server goes on, and has others."""
    client = start("--backend", backend, "--ttl", "0.1")
    before = children(client.process.pid)
    for _ in range(3):
        assert client.call("execute", command="echo x").data["stdout"] == "x\n"
        wait_until(lambda: list(own_tmpdir.iterdir()) == [])
        wait_until(lambda: children(client.process.pid) == before)


def children(pid: int) -> list[str]:
    return [child for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def test_results_come_home_at_the_end_when_the_user_says_so(project: Path) -> None:
    for options, expected in (["--sync"], "new\n"), ([], None):
        with Client("--seed", project, *options) as client:
            client.call("write_file", path="src/new.md", content="new\n")
        there = (project / "src/new.md")
        assert (there.read_text() if there.exists() else None) == expected
        there.unlink(missing_ok=True)


def test_results_that_cannot_come_home_are_kept(project, tmp_path, own_tmpdir) -> None:
    (tmp_path / "file").write_text("")
    client = Client("--seed", project, f"--sync={tmp_path / 'file'}")
    client.call("write_file", path="src/new.md", content="new\n")
    assert client.finish() == 125
    (kept,) = own_tmpdir.iterdir()
    assert str(kept).encode() in client.errors
    assert (kept / "src/new.md").read_text() == "new\n"
    subprocess.run(["rm", "-r", kept], check=True)


# ---- readers ----


def test_a_reader_looks_at_everything_and_changes_nothing(start, project: Path) -> None:
    client = start("--seed", project, "--read-only")
    tools = {tool["name"]: tool["annotations"] for tool in client.request("tools/list")["tools"]}
    assert not set(tools) & {"write_file", "edit_file", "delete_file", "move_file", "sync"}
    assert all(hints["readOnlyHint"] for name, hints in tools.items() if name != "stop_process")
    assert client.call("read_file", path="src/main.c").data["content"] == "int main;\n"
    result = client.call("execute", command="cat src/main.c; echo x > src/main.c; touch new; rm -r .")
    assert result.data["stdout"] == "int main;\n"
    assert "Read-only file system" in result.data["stderr"]
    assert client.call("list_dir").data["total"] == 3
    with pytest.raises(Failure):
        client.call("write_file", path="new", content="")


def test_a_reader_without_walls_runs_nothing(start, project: Path) -> None:
    client = start("--backend", "local", "--seed", project, "--read-only")
    tools = {tool["name"] for tool in client.request("tools/list")["tools"]}
    assert tools == {"read_file", "list_dir", "search", "diff"}
    for name in "execute", "start_process", "write_file":
        with pytest.raises(Failure):
            client.call(name, command="true")


# ---- the end ----

STATES = {
    "before initialize": None,
    "idle": [],
    "a command": [("execute", {"command": "{sleep}"})],
    "a daemon of a command": [("execute", {"command": "(setsid {sleep} &) ; {sleep}"})],
    "a process": [("start_process", {"command": "{sleep}", "wait_seconds": 0})],
    "something in the background": [("execute", {"command": "{sleep} & {sleep}"})],
    "many commands": [("execute", {"command": "{sleep}"})] * 20,
    "a wait": [("start_process", {"command": "{sleep}", "wait_seconds": 60})],
    "output that nobody reads": [("execute", {"command": "{sleep} & yes"})],
}


def begin_state(client: Client, state: str, mark: str, there) -> None:
    for name, arguments in STATES[state] or []:
        filled = {key: value.format(sleep=f"sleep {mark}") if isinstance(value, str) else value
                  for key, value in arguments.items()}
        client.begin_call(name, **filled)
    if STATES[state]:
        there(mark)


@pytest.mark.parametrize("state", STATES)
def test_a_client_that_goes_leaves_nothing(state, mark, there, gone, own_tmpdir) -> None:
    client = Client(handshake=STATES[state] is not None)
    begin_state(client, state, mark, there)
    with client:
        assert client.finish() == 0, client.errors
    gone(mark)


@pytest.mark.parametrize("state", ["idle", "a command", "a daemon of a command", "many commands"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_good_order(state, number, mark, there, gone) -> None:
    client = Client()
    begin_state(client, state, mark, there)
    client.process.send_signal(number)
    assert client.process.wait(timeout=60) == 0
    gone(mark)
    with client:
        client.process.stdin.close()


@pytest.mark.parametrize("state", ["a command", "a daemon of a command", "a process"])
def test_a_server_that_is_killed_leaves_nothing(state, mark, there, gone, own_tmpdir) -> None:
    client = Client()
    begin_state(client, state, mark, there)
    client.process.kill()
    client.process.wait()
    gone(mark)
    wait_until(lambda: list(own_tmpdir.iterdir()) == [])
    with client:
        client.process.stdin.close()


INITIALIZE = ('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
              '"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n')


@pytest.mark.parametrize("out, reason", [
    ("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor"),
    ("> /dev/null", None), ("| true", None)])
def test_an_answer_that_cannot_be_written_is_told_unless_the_client_has_gone(out, reason) -> None:
    """And the server ends: nobody would hear of what else it did."""
    line = f'{{ "$0" mcp; echo "status $?" >&2; }} {out}'
    child = subprocess.Popen(["/bin/sh", "-c", line, str(BUILD / "pinfold")], text=True,
                             stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdin.write(INITIALIZE)
    child.stdin.flush()
    if not reason:
        child.stdin.close()
    said = child.stderr.read()
    assert child.wait(60) == 0
    child.stdin.close()
    child.stderr.close()
    told = f"pinfold: write to stdout: {reason}; the client was told no more\n" if reason else ""
    assert said == f"{told}status {125 if reason else 0}\n"


def test_a_client_that_does_not_read_holds_up_no_end(own_tmpdir, mark, there, gone) -> None:
    process = subprocess.Popen([BUILD / "pinfold", "mcp"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    hello = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
             b'"2025-11-25","capabilities":{},"clientInfo":{}}}\n')
    process.stdin.write(hello)
    for n in range(40):
        process.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % (n + 2))
    process.stdin.write(b'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":{"name":'
                        b'"execute","arguments":{"command":"sleep %s"}}}\n' % mark.encode())
    process.stdin.flush()
    time.sleep(0.2)
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    gone(mark)
    process.stdout.close()


def test_a_reader_of_stdout_that_goes_is_the_end_of_what_is_said(own_tmpdir) -> None:
    process = subprocess.Popen([BUILD / "pinfold", "mcp"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.close()
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 10)
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def test_sockets_serve_as_well_as_pipes(own_tmpdir) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, subprocess.Popen([BUILD / "pinfold", "mcp"], stdin=theirs, stdout=theirs,
                                        stderr=subprocess.DEVNULL) as process:
        theirs.close()
        ours.settimeout(60)
        ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
                     b'"2025-11-25","capabilities":{},"clientInfo":{}}}\n'
                     b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute",'
                     b'"arguments":{"command":"head -c 3000000 /dev/zero | tr \\"\\\\0\\" y"}}}\n')
        got = b""
        while got.count(b"\n") < 2:
            got += ours.recv(65536)
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(timeout=60) == 0


def test_what_was_asked_before_the_end_is_answered(own_tmpdir) -> None:
    text = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
            b'"2025-11-25","capabilities":{},"clientInfo":{}}}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"ping"}')
    done = subprocess.run([BUILD / "pinfold", "mcp"], input=text, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count(b"\n") == 2


def test_commands_get_none_of_the_servers_descriptors(start) -> None:
    client = start("--backend", "local")
    listed = client.call("execute", command="ls -l /proc/self/fd").data["stdout"]
    assert "/dev/null" in [line.split(" -> ")[1] for line in listed.splitlines() if " 0 -> " in line]
    assert len(listed.splitlines()) <= 5  # total, 0, 1, 2, and that of ls itself


def test_an_ordinary_user_has_the_same_server(tmp_path: Path) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    for directory in tmp_path, place:
        directory.chmod(0o755)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    who = STRANGER if IS_ROOT else os.getuid()
    os.chown(temporary, who, who if IS_ROOT else -1)
    program = copy_programs(place)
    text = (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":'
            b'"2025-11-25","capabilities":{},"clientInfo":{}}}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute",'
            b'"arguments":{"command":"id -un; pwd"}}}\n')
    with subprocess.Popen([program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
                          env={**os.environ, "TMPDIR": str(temporary)},
                          **credentials(who)) as process:
        process.stdin.write(text)
        process.stdin.flush()
        replies = [process.stdout.readline(), process.stdout.readline()]
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert b'"stdout":"agent\\n/workspace\\n"' in replies[1]
    assert list(temporary.iterdir()) == []


@pytest.mark.plain
def test_readers_of_large_files_take_turns(client):
    """What agents have the server hold in memory is within no limit of the sandbox."""
    client.call("execute", command="yes line | head -c 32M > large")
    ids = {client.begin_call("read_file", path="large", limit=1) for _ in range(32)}
    while ids:
        reply = client.receive()
        assert Result(reply["result"]).data["next_offset"] == 1, reply
        ids.remove(reply["id"])
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    peak = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])
    assert peak < 400 * 1024, f"{peak} KiB: all at once would be 1 GiB"


# ---- too few descriptors ----


def descriptors(client: Client) -> int:
    return len(os.listdir(f"/proc/{client.process.pid}/fd"))


@pytest.mark.plain  # the same code, and many servers
@pytest.mark.parametrize("backend,limits", [("local", range(7, 17)), ("isolated", range(7, 25))])
def test_a_server_without_descriptors_says_so_and_goes_on_with_some(backend, limits, own_tmpdir):
    """Whatever it is that there is none for, nothing is kept of what failed."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with Client("--backend", backend) as client:
        client.call("execute", command="echo out")
        usual = descriptors(client)
    for limit in limits:
        with Client("--backend", backend, preexec_fn=lambda few=limit: resource.setrlimit(
                resource.RLIMIT_NOFILE, (few, most))) as client:
            for _ in range(3):
                reply = client.reply_to(client.begin_call("execute", command="echo out"))
                said = (reply["error"]["message"] if "error" in reply
                        else reply["result"]["content"][0]["text"])
                assert re.search("Too many open files|of descriptors", said), (limit, reply)
                assert "error" in reply or reply["result"]["isError"], (limit, reply)
            resource.prlimit(client.process.pid, resource.RLIMIT_NOFILE, (most, most))
            assert client.call("execute", command="echo out").data["stdout"] == "out\n", limit
            wait_until(lambda: descriptors(client) <= usual)
            assert client.finish() == 0, client.errors


@pytest.mark.plain
@pytest.mark.parametrize("limit", [4, 5, 6])
def test_a_server_that_cannot_begin_for_want_of_descriptors_says_why(limit, own_tmpdir) -> None:
    done = subprocess.run([BUILD / "pinfold", "mcp"], stdin=subprocess.DEVNULL, capture_output=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
                          text=True, timeout=60)
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == "pinfold: take over stdin and stdout: Too many open files\n"
