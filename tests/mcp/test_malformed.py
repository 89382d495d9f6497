# SPDX-License-Identifier: Apache-2.0
"""Whatever a client sends, it gets an answer that says what is wrong, and the server lives on."""

import json
import random

import pytest

PARSE, INVALID = -32700, -32600

# What is sent, and the code of the error. Each is one line.
CORPUS = [
    (b"{", PARSE), (b"}", PARSE), (b"nonsense", PARSE), (b'{"jsonrpc":"2.0","id":1', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}', PARSE),
    (b"\x00", PARSE), (b'{"jsonrpc":"2.0",\x00"id":1,"method":"ping"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"p\x00ing"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', PARSE),  # no UTF-8
    (b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}', PARSE),  # too long a form
    (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', PARSE),  # a surrogate
    (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', PARSE),  # half a pair
    (b'{"jsonrpc":"2.0","id":1,"method":"\\udc00\\ud800"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"\\x41"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', PARSE),  # which one?
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a\\u0000":1}}', PARSE),
    (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', PARSE),
    (b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}', PARSE),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', PARSE),
    (b"{'jsonrpc':'2.0','id':1,'method':'ping'}", PARSE),
    (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', PARSE),  # a byte order mark
    (b"[" * 100000, PARSE), (b'{"a":' * 100000, PARSE), (b"[" * 3000 + b"]" * 3000, PARSE),
    (b"Content-Length: 40", PARSE), (b"GET / HTTP/1.1", PARSE),
    (b"1", INVALID), (b'"ping"', INVALID), (b"null", INVALID), (b"true", INVALID),
    (b"[]", INVALID), (b"[1]", INVALID), (b"{}", INVALID),
    (b'{"id":1,"method":"ping"}', INVALID), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 1025 + b'","method":"ping"}', INVALID),
    (b'{"jsonrpc":"2.0","id":1}', INVALID), (b'{"jsonrpc":"2.0","id":1,"method":5}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":null}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping\\u0000"}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', INVALID),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', INVALID),
    (b'{"jsonrpc":"2.0","result":{}}', INVALID),
]


def test_every_malformed_message_has_its_error_and_the_server_lives_on(client) -> None:
    for line, code in CORPUS:
        client.send_bytes(line + b"\n")
        reply = client.receive()
        assert reply["error"]["code"] == code, line[:100]
        assert reply["id"] in (None, 1), line[:100]
        assert reply["error"]["message"]
        assert client.request("ping") == {}, line[:100]
    assert not client.call("execute", command="true").is_error


def test_the_id_comes_back_when_it_could_be_read(client) -> None:
    client.send({"jsonrpc": "1.0", "id": "mine", "method": "ping"})
    assert client.receive()["id"] == "mine"


@pytest.mark.parametrize("own", [1, "mine", "\ufffe\U0001f600"])
@pytest.mark.parametrize("text", [r"\uDE00", r"\ude00\ud83d", r"\\\uD83D", r"\ud83d\\ude00"])
def test_half_an_emoji_is_an_error_of_its_request(client, own, text: str) -> None:
    """Models write such, and clients pass it on: with no id they would wait for ever."""
    message = {"jsonrpc": "2.0", "id": own, "method": "tools/call", "params": {
        "name": "write_file", "arguments": {"path": "a", "content": "HERE"}}}
    line = json.dumps(message, ensure_ascii=False).replace("HERE", text)
    client.send_bytes(line.encode() + b"\n")
    reply = client.receive()
    assert reply["id"] == own and reply["error"]["code"] == PARSE, line


@pytest.mark.parametrize("line", [
    rb'{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}', rb'{"jsonrpc":"2.0","method":"\ud83d"}',
    rb'{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d"}}', rb'{"id":1,"id":2,"method":"\ud83d"}',
    rb'["\ud83d"]', rb'"\ud83d', rb'{"id":1,"method":"\ud8', b'{"id":1,"method":"\\'])
def test_an_id_that_is_not_sure_does_not_come_back(client, line: bytes) -> None:
    client.send_bytes(line + b"\n")
    reply = client.receive()
    assert reply["id"] is None and reply["error"]["code"] == PARSE


def test_answers_that_nobody_asked_for_are_passed_over(client) -> None:
    for message in ({"id": 1, "result": {}}, {"id": "x", "result": {"roots": []}},
                    {"id": 7, "error": {"code": 1, "message": "no"}},
                    {"id": None, "error": {"code": -32700, "message": "no"}},
                    {"error": {"code": -32700, "message": "no"}}):
        client.send({"jsonrpc": "2.0", **message})
    assert client.request("ping") == {}


def test_empty_lines_and_carriage_returns_are_no_messages(client) -> None:
    client.send_bytes(b"\n\n\r\n\n")
    client.send_bytes(b'{"jsonrpc":"2.0","id":"a","method":"ping"}\r\n')
    assert client.receive() == {"jsonrpc": "2.0", "id": "a", "result": {}}


def test_a_message_may_come_in_any_pieces(client) -> None:
    text = b'{"jsonrpc":"2.0","id":"a","method":"ping"}\n{"jsonrpc":"2.0","id":"b","method":"ping"}\n'
    for size in 1, 7, len(text):
        for at in range(0, len(text), size):
            client.send_bytes(text[at:at + size])
        assert [client.receive()["id"], client.receive()["id"]] == ["a", "b"]


def test_a_message_that_is_too_long_is_refused_without_being_kept(client) -> None:
    client.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"')
    for _ in range(24):
        client.send_bytes(b"x" * 2**20)
    client.send_bytes(b'"}}\n')
    reply = client.receive()
    assert reply["id"] is None and reply["error"]["code"] == INVALID
    assert "8388608 bytes" in reply["error"]["message"]
    status = open(f"/proc/{client.process.pid}/status").read()
    (peak,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")]
    assert peak < 400 * 1024  # kB; with sanitizers too
    assert client.request("ping") == {}


def test_a_message_that_is_just_not_too_long_is_taken(client) -> None:
    begin, end = b'{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":"', b'"}}'
    client.send_bytes(begin + b"x" * (2**23 - len(begin) - len(end)) + end + b"\n")
    assert client.receive()["result"] == {}
    client.send_bytes(begin + b"x" * (2**23 + 1 - len(begin) - len(end)) + end + b"\n")
    assert client.receive()["error"]["code"] == INVALID


def test_noise_does_no_harm(client) -> None:
    chance = random.Random(8)
    for _ in range(300):
        noise = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))
        client.send_bytes(noise.replace(b"\n", b" ") + b"\n")
    client.send({"jsonrpc": "2.0", "id": "end", "method": "ping"})
    while (reply := client.receive())["id"] != "end":
        assert reply["error"]["code"] in (PARSE, INVALID)


def test_broken_messages_of_every_length_do_no_harm(client) -> None:
    whole = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute",'
             b'"arguments":{"command":"echo \\u00e9 \\ud83d\\ude00"}}}')
    for end in range(1, len(whole)):
        client.send_bytes(whole[:end] + b"\n")
        assert client.receive()["error"]["code"] == PARSE


@pytest.mark.parametrize("params", [
    {}, {"name": 5}, {"name": None}, {"name": "nothing"}, {"name": ""}, {"name": "execute\u0000"},
    {"name": "execute", "arguments": []}, {"name": "execute", "arguments": "ls"},
    {"arguments": {"command": "true"}},
])
def test_a_call_of_no_tool_is_an_error_of_the_protocol(client, params: dict) -> None:
    client.send({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params})
    assert client.receive()["error"]["code"] == -32602


@pytest.mark.parametrize("name, arguments", [
    ("execute", {}), ("execute", {"command": 5}), ("execute", {"command": ""}),
    ("execute", {"command": "true", "cmd": "x"}), ("execute", {"command": None}),
    ("execute", {"command": "true", "timeout_seconds": 0}),
    ("execute", {"command": "true", "timeout_seconds": -1}),
    ("execute", {"command": "true", "timeout_seconds": 1e300}),
    ("execute", {"command": "true", "timeout_seconds": "5"}),
    ("execute", {"command": "true", "cwd": 5}), ("execute", {"command": "true", "cwd": "a\u0000b"}),
    ("execute", {"command": "true", "cwd": "../.."}), ("execute", {"command": "true", "cwd": "no"}),
    ("read_file", {}), ("read_file", {"path": "no"}), ("read_file", {"path": ""}),
    ("read_file", {"path": "/etc/passwd"}), ("read_file", {"path": "a\u0000b"}),
    ("read_file", {"path": "."}), ("read_file", {"path": "a" * 5000}),
    ("read_file", {"path": "x", "offset": -1}), ("read_file", {"path": "x", "offset": 1.5}),
    ("write_file", {"path": "x"}), ("write_file", {"path": "../x", "content": ""}),
    ("write_file", {"path": "/tmp/x", "content": ""}), ("write_file", {"path": ".", "content": ""}),
    ("edit_file", {"path": "no", "old_text": "a", "new_text": "b"}),
    ("edit_file", {"path": "no", "old_text": "", "new_text": "b"}),
    ("delete_file", {"path": "."}), ("delete_file", {"path": "no"}),
    ("delete_file", {"path": "../no"}),
    ("move_file", {"source": "no", "destination": "b"}),
    ("move_file", {"source": ".", "destination": "b"}),
    ("list_dir", {"path": "no"}), ("list_dir", {"path": "../"}),
    ("search", {}), ("search", {"text": "(", "regex": True}), ("search", {"names": ["!a"]}),
    ("search", {"names": "x"}), ("search", {"names": ["a\u0000"]}), ("search", {"text": ""}),
    ("diff", {"path": "../"}), ("read_output", {"id": "output-1"}), ("read_output", {}),
    ("read_process", {"id": "process-1"}), ("stop_process", {"id": ""}),
    ("start_process", {"command": ""}),
])
def test_what_is_wrong_with_a_call_is_told_to_the_model(shared, name, arguments) -> None:
    result = shared.call(name, **arguments)
    assert result.is_error and len(result.text) > 10
    assert "structuredContent" not in result.raw


@pytest.fixture(scope="module")
def shared():
    from client import Client
    with Client() as one:
        yield one
