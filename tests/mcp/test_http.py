# SPDX-License-Identifier: Apache-2.0
"""Streamable HTTP: what a client may say, and what becomes of what it began."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from owners import BUILD

from http_server import NEWEST, Client, Connection, Server, alive, wait_until

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
LOCAL = ["--backend", "local", "-q"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for the tests that leave nothing behind in it."""
    with Server(tmp_path_factory.mktemp("http"), *LOCAL, "--http-resume", "1") as running:
        yield running.learn()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.ask("DELETE")


def test_a_session_from_its_beginning_to_its_end(server):
    client = Client(server)
    assert len(client.session) == 32
    assert client.request("ping").message()["result"] == {}
    assert client.run("echo $((6 * 7))")["stdout"] == "42\n"
    assert client.ask("DELETE").status == 204
    assert client.request("ping").status == 404
    assert client.ask("DELETE").status == 404


def test_one_connection_serves_one_request_after_the_other(client, server):
    with Connection(server) as connection:
        for _ in range(3):
            assert client.request("ping", connection).message()["result"] == {}
            assert client.post({"jsonrpc": "2.0", "method": "notifications/x"},
                               connection).status == 202
        assert client.call("execute", connection, command="true").message()["result"]


BODY = json.dumps(PING).encode()


@pytest.mark.parametrize("what, status", [
    ({"authorization": None}, 401),
    ({"authorization": "Bearer wrong"}, 401),
    ({"authorization": "Bearer "}, 401),
    ({"authorization": "Basic eDp5"}, 401),
    ({"host": "evil.example"}, 403),
    ({"host": "evil.example:80"}, 403),
    ({"host": "127.0.0.1.evil.example"}, 403),
    ({"host": "localhost:1:2"}, 403),
    ({"host": "192.0.2.1"}, 403),
    ({"host": ""}, 403),
    ({"host": "[::1"}, 403),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://localhost.evil.example"}, 403),
    ({"origin": "file://localhost"}, 403),
    ({"path": "/"}, 404),
    ({"path": "/mcp/"}, 404),
    ({"path": "/mcp/../mcp"}, 404),
    ({"mcp_session_id": "0" * 32}, 404),
    ({"mcp_session_id": ""}, 404),
    ({"method": "PUT"}, 405),
    ({"method": "OPTIONS"}, 405),
    ({"accept": None}, 406),
    ({"accept": "application/json"}, 406),
    ({"accept": "text/event-stream"}, 406),
    ({"accept": "*/*;q=0"}, 406),
    ({"content_length": None}, 411),
    ({"content_length": None, "transfer_encoding": "chunked"}, 411),
    ({"content_length": "9000000"}, 413),
    ({"content_type": None}, 415),
    ({"content_type": "text/plain"}, 415),
    ({"mcp_protocol_version": "1999-01-01"}, 400),
    ({"transfer_encoding": "chunked"}, 400),
    ({"mcp_session_id": None}, 400),
])
def test_what_is_not_as_it_should_be_is_refused(client, server, what, status):
    what = {"mcp_session_id": client.session, "method": "POST", **what}
    method = what.pop("method")
    with Connection(server) as connection:
        answer = connection.ask(method, BODY, **what)
        assert answer.status == status
        error = json.loads(answer.body)
        assert (error["jsonrpc"], error["id"]) == ("2.0", None) and error["error"]["message"]
        if status == 401:
            assert answer.headers["www-authenticate"] == 'Bearer realm="pinfold"'
    assert client.request("ping").status == 200


@pytest.mark.parametrize("what", [
    {"host": "localhost:1234"}, {"host": "LOCALHOST"}, {"host": "[::1]:99"}, {"host": "127.9.9.9"},
    {"origin": "http://localhost:3000"}, {"origin": "https://127.0.0.1"},
    {"accept": "*/*"}, {"accept": "text/*, application/json;q=0.5"},
    {"content_type": "application/json; charset=utf-8"}, {"mcp_protocol_version": "2025-06-18"},
])
def test_what_is_as_it_should_be_is_not(client, what):
    assert client.post(PING, **what).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_requests_without_a_message_need_a_session(server, method):
    with Connection(server) as connection:
        assert connection.ask(method).status == 400


@pytest.mark.parametrize("text, code", [
    (b"{", -32700), (b"\xff", -32700), (b"", -32700), (b"[]", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', None),
])
def test_messages_that_are_none_are_answered(client, text, code):
    answer = client.ask("POST", body=text)
    error = json.loads(answer.body)
    assert error["error"]["code"] == (code or -32600)
    assert answer.status == (400 if error["id"] is None else 200)
    assert client.request("ping").status == 200


def test_nothing_but_initialize_begins_a_session(server):
    with Connection(server) as connection:
        for message in PING, {"jsonrpc": "2.0", "method": "notifications/initialized"}:
            answer = connection.ask(body=json.dumps(message).encode())
            assert answer.status == 400 and "mcp-session-id" not in answer.headers
            assert "Mcp-Session-Id" in answer.message()["error"]["message"]
        bad = {"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {"protocolVersion": 1}}
        answer = connection.ask(body=json.dumps(bad).encode())
        assert answer.status == 400 and "mcp-session-id" not in answer.headers
        assert answer.message()["id"] == 5


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST])
def test_every_revision_is_spoken(server, version):
    client = Client(server, version=version)
    events = list(client.call("execute", command="sleep 0.1; echo x").events())
    # Older clients would take an event without a message for a broken one.
    assert (events[0][1] is None) == (version == NEWEST)
    assert events[-1][1]["result"]["isError"] is False
    client.ask("DELETE")


def test_a_batch_is_answered_by_one_message(server):
    client = Client(server, version="2025-03-26")
    answer = client.post([PING, {**PING, "id": 2}])
    assert sorted(reply["id"] for reply in answer.message()) == [1, 2]
    client.ask("DELETE")


# ---- streams ----

def test_a_stream_goes_on_where_it_was_cut(client, server, tmp_path):
    gate = tmp_path / "gate"
    with Connection(server) as connection:
        answer = client.call("execute", connection,
                             command=f"until [ -e {gate} ]; do sleep 0.02; done; echo end")
        first, message = next(answer.events())
        assert message is None
    gate.touch()
    again = client.ask("GET", last_event_id=first)
    assert again.status == 200
    ids, messages = zip(*again.events())
    assert messages[-1]["result"]["structuredContent"]["stdout"] == "end\n"
    assert len(set(ids)) == len(ids) and {id.split("-")[0] for id in ids} == {first.split("-")[0]}
    # Whoever lost the last part of it gets that once more, and nothing else.
    assert list(client.ask("GET", last_event_id=ids[-1]).events()) == []
    if len(ids) > 1:
        assert list(client.ask("GET", last_event_id=ids[-2]).events()) == [(ids[-1], messages[-1])]


@pytest.mark.parametrize("id, status", [("x", 400), ("1", 400), ("1-x", 400), ("-1-1", 400),
                                        ("1-1-1", 400), ("99-0", 410), ("0-99", 410),
                                        ("99999999999999999999-1", 400)])
def test_events_that_there_never_were_are_gone(client, id, status):
    assert client.ask("GET", last_event_id=id).status == status


def test_only_so_many_streams_that_nobody_reads_are_kept(client, server, tmp_path):
    ids = []
    for number in range(80):
        gate = tmp_path / str(number)  # what is answered at once has no stream
        with Connection(server) as connection:
            answer = client.call("execute", connection,
                                 command=f"until test -e {gate}; do sleep 0.01; done; echo {number}")
            ids.append(next(answer.events())[0].split("-")[0])
            gate.touch()
    # The newest is there, and the rest of it; of the first nothing is.
    (*_, (_, last)) = client.ask("GET", last_event_id=f"{ids[-1]}-0").events()
    assert last["result"]["structuredContent"]["stdout"] == "79\n"
    wait_until(lambda: client.ask("GET", last_event_id=f"{ids[0]}-0").status == 410)
    assert client.request("ping").status == 200


def test_streams_do_not_mix(client, server):
    with Connection(server) as one, Connection(server) as other:
        answers = [client.call("execute", connection, command=f"sleep 0.3; echo {number}")
                   for number, connection in enumerate((one, other))]
        for number, answer in enumerate(answers):
            assert answer.message()["result"]["structuredContent"]["stdout"] == f"{number}\n"


def test_progress_comes_while_the_command_runs(client, server, tmp_path):
    gate = tmp_path / "gate"
    with Connection(server) as connection:
        answer = client.request("tools/call", connection, name="execute", arguments={
            "command": f"echo begun; until [ -e {gate} ]; do sleep 0.02; done"},
            _meta={"progressToken": "p"})
        events = answer.events()
        told = next(message for _, message in events if message)
        assert told["method"] == "notifications/progress"
        assert told["params"]["progressToken"] == "p"
        gate.touch()
        assert list(events)[-1][1]["result"]["isError"] is False


def test_the_server_s_own_stream_belongs_to_who_came_last(client, server):
    with Connection(server) as one, Connection(server) as other:
        first = client.ask("GET", one)
        assert first.status == 200 and first.headers["content-type"] == "text/event-stream"
        second = client.ask("GET", other)
        assert second.status == 200
        assert list(first.events()) == []
        # The end of the session is its end, too.
        client.ask("DELETE")
        assert list(second.events()) == []


def test_a_request_is_cancelled_by_its_client(client, server, tmp_path):
    pid = tmp_path / "pid"
    with Connection(server) as connection:
        answer = client.request("tools/call", connection, name="execute",
                                arguments={"command": f"echo $$ >{pid}.new; mv {pid}.new {pid}; "
                                                      "exec sleep 300"})
        wait_until(pid.exists)
        assert client.post({"jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": {"requestId": client.ids}}).status == 202
        assert not any(message for _, message in answer.events())
    wait_until(lambda: not alive(int(pid.read_text())))


# ---- clients that go ----

COMMAND = "echo $$ >pid.new; mv pid.new pid; exec sleep 300"


@pytest.mark.parametrize("how", ["hangs up", "ends its session"])
def test_who_goes_leaves_no_process(tmp_path, how):
    with Server(tmp_path, *LOCAL, "--http-resume", "0.5", "--workspace", tmp_path / "work") as server:
        client = Client(server.learn())
        with Connection(server) as connection:
            client.call("execute", connection, command=COMMAND)
            pid = int(wait_until((tmp_path / "work/pid").exists) and
                      (tmp_path / "work/pid").read_text())
            if how == "ends its session":
                assert client.ask("DELETE").status == 204
        wait_until(lambda: not alive(pid))
        if how == "hangs up":
            assert client.request("ping").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_in_good_order(tmp_path, number):
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    seed = tmp_path / "seed"
    seed.mkdir()
    with Server(tmp_path, "-q", "--seed", seed, "--sync", "--include", "*",
                env={"TMPDIR": str(tmp)}) as server:
        client = Client(server.learn())
        assert client.run("echo kept >kept.txt")["exit_code"] == 0
        with Connection(server) as one, Connection(server) as two, Connection(server) as three:
            client.call("execute", one, command="sleep 300")
            client.ask("GET", two)
            three.send(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            assert server.stop(number) == 0
            assert one.ended() and two.ended() and three.ended()
    assert (seed / "kept.txt").read_text() == "kept\n"
    assert list(tmp.iterdir()) == []


def test_a_server_that_is_killed_leaves_no_process(tmp_path):
    with Server(tmp_path, *LOCAL, "--workspace", tmp_path / "work") as server:
        client = Client(server.learn())
        with Connection(server) as connection:
            client.call("execute", connection, command=COMMAND)
            wait_until((tmp_path / "work/pid").exists)
            server.stop(signal.SIGKILL)
    wait_until(lambda: not alive(int((tmp_path / "work/pid").read_text())))


def test_a_client_that_is_idle_is_forgotten(tmp_path):
    with Server(tmp_path, *LOCAL, "--ttl", "1") as server:
        client = Client(server.learn())
        assert client.run("true")["exit_code"] == 0
        waits = Client(server)
        with Connection(server) as connection:
            assert waits.ask("GET", connection).status == 200
            wait_until(lambda: client_gone(client))
            # Who listens is not idle.
            assert waits.request("ping").status == 200


def client_gone(client: Client) -> bool:
    """Whether a session is over, without using it: asking would begin its time anew."""
    import time
    time.sleep(3)
    return client.request("ping").status == 404


# ---- who may what ----

def test_clients_share_a_workspace_each_with_its_own_mode(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("file-token-0123456789\n")
    secret.chmod(0o600)
    with Server(tmp_path, "-q", "--token", "writer:read_write", "--token",
                f"reviewer:read_only:file:{secret}", "--token", "other:read_only:env:OTHER",
                env={"OTHER": "variable-token-0123456789"}) as server:
        server.learn()
        writer = Client(server, server.tokens["writer"])
        reviewer = Client(server, "file-token-0123456789")
        other = Client(server, "variable-token-0123456789")
        assert writer.run("echo shared >file")["exit_code"] == 0
        for reader in reviewer, other:
            assert reader.run("cat file")["stdout"] == "shared\n"
            assert reader.run("echo mine >file; cat file")["stdout"] == "shared\n"
            result = reader.call("write_file", path="file", content="mine").message()
            assert "error" in result or result["result"]["isError"]
        # A session is its own client's.
        assert reviewer.post(PING, session=writer.session).status == 404
        assert writer.post(PING, session=other.session).status == 404
        command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert b"token-0123456789" not in command


def test_a_variable_with_a_token_is_not_handed_on(tmp_path):
    with Server(tmp_path, *LOCAL, "--token", "x:read_write:env:SECRET",
                env={"SECRET": "variable-token-0123456789"}) as server:
        client = Client(server, "variable-token-0123456789")
        assert client.run("echo ${SECRET-gone}")["stdout"] == "gone\n"


def test_read_only_is_for_all(tmp_path):
    with Server(tmp_path, "-q", "--read-only") as server:
        client = Client(server.learn())
        assert client.run("touch file")["exit_code"] != 0


@pytest.mark.parametrize("args, said", [
    (["--token", "x"], "not of the form NAME:MODE"),
    (["--token", "x:write"], "not of the form NAME:MODE"),
    (["--token", "x y:read_only"], "not of the form NAME:MODE"),
    (["--token", "x:read_only:0123456789abcdef"], "its value is not on the command line"),
    (["--token", "x:read_only:file:"], "its value is not on the command line"),
    (["--token", "x:read_only:file:/proc/nonexistent"], "No such file or directory"),
    (["--token", "x:read_only:file:open"], "others can read it; chmod 600"),
    (["--token", "x:read_only:file:short"], "its value has 16 to 256 characters"),
    (["--token", "x:read_only:file:odd"], "its value has letters, digits and -._~+/= alone"),
    (["--token", "x:read_only:env:NO_SUCH"], "there is no such variable"),
    (["--token", "x:read_only", "--token", "x:read_write"], "there are two of this name"),
    (["--token", "x:read_only:file:good", "--token", "y:read_write:file:good"],
     "another has the same value"),
    (["--http", "0.0.0.0:0"], "others can reach that"),
    (["--http", "[::]:0"], "others can reach that"),
    (["--http", "example.org:0"], "an address is 127.0.0.1"),
    (["--http", "[::zz]:0"], "an address is 127.0.0.1"),
    (["--http", f"{60 * '1'}:0"], "an address is 127.0.0.1"),
    (["--http", "127.0.0.1"], "not of the form ADDRESS:PORT"),
    (["--http", "127.0.0.1:99999"], "not of the form ADDRESS:PORT"),
])
def test_options_that_are_wrong_are_explained(tmp_path, args, said):
    for name, text, mode in (("open", "x" * 20, 0o644), ("short", "x" * 15, 0o600),
                             ("odd", "x" * 20 + "!", 0o600), ("good", "x" * 20, 0o600)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    server = Server(tmp_path, *LOCAL, *args)
    out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out) == (125, "")
    assert said in err


def test_localhost_is_an_address(tmp_path):
    with Server(tmp_path, *LOCAL, "--http", "localhost:0") as server:
        assert Client(server.learn()).request("ping").status == 200


def test_the_oldest_form_of_a_request_has_no_host_and_is_refused(server):
    with Connection(server) as connection:
        connection.send(b"POST /mcp HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
        assert connection.line().split()[1] == "400"


@pytest.mark.parametrize("option", ["--token=me:read_only", "--http-host=x", "--http-anywhere",
                                    "--http-resume=2"])
def test_options_of_http_are_not_passed_over_without_it(option):
    done = subprocess.run([BUILD / "pinfold", "mcp", option], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (125, "")
    assert f"{option.split('=')[0]} goes with --http" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_token_of_another_user_is_none(tmp_path):
    file = tmp_path / "token"
    file.write_text("x" * 20)
    file.chmod(0o600)
    os.chown(file, 12345, -1)
    server = Server(tmp_path, *LOCAL, "--token", f"x:read_only:file:{file}")
    out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out) == (125, "")
    assert "it belongs to another user" in err


def test_other_addresses_and_names_are_served_when_that_is_said(tmp_path):
    with Server(tmp_path, *LOCAL, "--http-anywhere", "--http-host", "agents.example") as server:
        client = Client(server.learn())
        for what in ({"host": "agents.example"}, {"host": "192.0.2.1:80"},
                     {"origin": "https://Agents.example"}):
            assert client.post(PING, **what).status == 200
        assert client.post(PING, host="other.example").status == 403


def test_an_address_that_is_taken_is_told(server, tmp_path):
    second = Server(tmp_path, *LOCAL, "--http", f"127.0.0.1:{server.address[1]}")
    _, err = second.process.communicate(timeout=60)
    assert second.process.returncode == 125
    assert err.endswith("Address already in use\n")


def test_a_client_has_so_many_sessions_and_no_more(tmp_path):
    with Server(tmp_path, *LOCAL, "--token", "a:read_write", "--token", "b:read_write") as server:
        server.learn(2)
        made = [Client(server, server.tokens["a"]) for _ in range(128)]
        with pytest.raises(AssertionError, match="too many sessions"):
            Client(server, server.tokens["a"])
        Client(server, server.tokens["b"])
        made[0].ask("DELETE")
        Client(server, server.tokens["a"])


def test_a_policy_says_where_to_listen_and_who_may_come(tmp_path):
    (tmp_path / "secret").write_text("file-token-0123456789")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "chosen.toml").write_text(
        'backend = "local"\n[http]\nlisten = "127.0.0.1:1"\nhosts = ["agents.example"]\n'
        '[[token]]\nname = "reader"\nmode = "read_only"\nfile = "secret"\n')
    with Server(tmp_path, "-q", "--config", "chosen.toml") as server:
        client = Client(server, "file-token-0123456789")
        assert client.post(PING, host="agents.example").status == 200


def test_a_project_cannot_open_the_server(tmp_path):
    (tmp_path / "pinfold.toml").write_text('[http]\nhosts = ["evil.example"]\n')
    server = Server(tmp_path, *LOCAL)
    out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out) == (125, "")
    assert "pinfold.toml:2: http.hosts: a file that lies in a project may not set it" in err


def test_the_environment_of_the_tests_is_not_the_server_s(server):
    # What the tests above count on.
    assert not any(name.startswith("PINFOLD_") for name in
                   Path(f"/proc/{server.process.pid}/environ").read_text().split("\0")
                   if os.path.exists(f"/proc/{server.process.pid}"))
