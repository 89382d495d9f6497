# SPDX-License-Identifier: Apache-2.0
"""The protocol: initialize, its revisions, and what belongs to no tool."""

import json

import pytest

from client import LATEST, VERSIONS, Client, Failure

TOOLS = {"execute", "read_output", "read_file", "write_file", "edit_file", "list_dir", "search",
         "delete_file", "move_file", "diff", "start_process", "read_process", "stop_process"}


@pytest.mark.parametrize("version", VERSIONS)
def test_speaks_the_revision_that_the_client_asks_for(start, version: str) -> None:
    client = start(version=version)
    assert client.hello["protocolVersion"] == version
    info = client.hello["serverInfo"]
    assert info["name"] == "pinfold" and info["version"]
    assert ("title" in info) == (version >= "2025-06-18")
    assert ("description" in info) == (version >= LATEST)


@pytest.mark.parametrize("version", ["2099-01-01", "2024-01-01", "", "1.0.0"])
def test_answers_with_its_newest_to_a_revision_that_it_does_not_know(start, version: str) -> None:
    assert start(version=version).hello["protocolVersion"] == LATEST


@pytest.mark.parametrize("version", VERSIONS)
def test_tools_have_what_their_revision_has(start, version: str) -> None:
    client = start(version=version)
    tools = client.request("tools/list")["tools"]
    assert {tool["name"] for tool in tools} == TOOLS
    for tool in tools:
        assert tool["inputSchema"]["type"] == "object"
        assert len(tool["description"]) > 40
        assert ("annotations" in tool) == (version >= "2025-03-26")
        assert ("outputSchema" in tool) == (version >= "2025-06-18")
        assert ("title" in tool) == (version >= "2025-06-18")
    raw = client.call("execute", command="true").raw
    assert ("structuredContent" in raw) == (version >= "2025-06-18")


def test_hints_say_what_a_tool_can_do(start, project) -> None:
    tools = {tool["name"]: tool["annotations"]
             for tool in start("--seed", project).request("tools/list")["tools"]}
    assert {name for name, hints in tools.items() if hints["readOnlyHint"]} == {
        "read_file", "list_dir", "search", "diff", "read_output", "read_process"}
    assert tools["sync"]["destructiveHint"] and tools["sync"]["openWorldHint"]
    assert tools["delete_file"]["destructiveHint"]
    assert not tools["execute"]["openWorldHint"]  # it has no network


def test_a_network_makes_the_world_open(start) -> None:
    tools = {tool["name"]: tool["annotations"]
             for tool in start("--net", "host").request("tools/list")["tools"]}
    assert tools["execute"]["openWorldHint"] and not tools["write_file"]["openWorldHint"]


def test_ping_works_before_and_after_initialize(start) -> None:
    client = start(handshake=False)
    assert client.request("ping") == {}
    client.request("initialize", protocolVersion=LATEST, capabilities={},
                   clientInfo={"name": "test", "version": "1"})
    assert client.request("ping") == {}


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "resources/list",
                                    "logging/setLevel"])
def test_nothing_else_works_before_initialize(start, method: str) -> None:
    with pytest.raises(Failure) as failure:
        start(handshake=False).request(method)
    assert failure.value.code == -32600


def test_a_session_is_initialized_once(client) -> None:
    with pytest.raises(Failure) as failure:
        client.request("initialize", protocolVersion="2024-11-05", capabilities={},
                       clientInfo={"name": "test", "version": "1"})
    assert failure.value.code == -32600
    assert client.request("tools/list")["tools"][0]["outputSchema"]


@pytest.mark.parametrize("params", [
    {}, {"protocolVersion": LATEST}, {"protocolVersion": 1, "capabilities": {}, "clientInfo": {}},
    {"protocolVersion": LATEST, "capabilities": [], "clientInfo": {}},
    {"protocolVersion": LATEST, "capabilities": {}, "clientInfo": "me"},
])
def test_initialize_needs_its_params(start, params: dict) -> None:
    client = start(handshake=False)
    with pytest.raises(Failure) as failure:
        client.request("initialize", **params)
    assert failure.value.code == -32602


@pytest.mark.parametrize("method", ["prompts/list", "completion/complete", "tasks/list",
                                    "server/discover", "tools/List", "", "x" * 10000])
def test_a_method_that_is_not_there_is_said_to_be_none(client, method: str) -> None:
    with pytest.raises(Failure) as failure:
        client.request(method)
    assert failure.value.code == -32601


def test_notifications_that_nobody_knows_are_passed_over(client) -> None:
    client.notify("notifications/whatever", a=1)
    client.notify("notifications/cancelled", requestId=12345)
    client.notify("notifications/cancelled")
    client.notify("tools/call", name="execute", arguments={"command": "true"})
    assert client.request("ping") == {}


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/templates/list"])
@pytest.mark.parametrize("cursor", ["nonsense", "-1", "99999999999999999999", 5, "", "1\0"])
def test_a_cursor_that_was_never_given_out_is_refused(client, method: str, cursor) -> None:
    with pytest.raises(Failure) as failure:
        client.request(method, cursor=cursor)
    assert failure.value.code == -32602


def test_levels_of_logging_are_those_of_syslog(client) -> None:
    for level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"):
        assert client.request("logging/setLevel", level=level) == {}
    for level in ("loud", "", None, 3):
        with pytest.raises(Failure) as failure:
            client.request("logging/setLevel", level=level)
        assert failure.value.code == -32602


def test_log_messages_come_as_the_client_wants_them(start, project) -> None:
    quiet, loud = start("--seed", project), start("--seed", project)
    loud.request("logging/setLevel", level="debug")
    for client in quiet, loud:
        client.call("execute", command="true")
        client.request("ping")
    assert quiet.notifications == []
    (note,) = [one for one in loud.notifications if "copy of" in str(one["params"]["data"])]
    assert note["method"] == "notifications/message"
    assert note["params"]["level"] == "info" and note["params"]["logger"] == "pinfold"


def test_a_batch_works_in_the_one_revision_that_has_them(start) -> None:
    client = start(version="2025-03-26")
    client.send([{"jsonrpc": "2.0", "id": "a", "method": "ping"},
                 {"jsonrpc": "2.0", "method": "notifications/whatever"},
                 {"jsonrpc": "2.0", "id": "b", "method": "tools/call",
                  "params": {"name": "execute", "arguments": {"command": "echo b"}}},
                 {"jsonrpc": "2.0", "id": "c", "method": "initialize", "params": {}},
                 {"id": "d"}, 5])
    replies = client.receive()
    by_id = {reply["id"]: reply for reply in replies}
    assert len(replies) == 5
    assert by_id["a"]["result"] == {}
    assert by_id["b"]["result"]["content"][0]["text"] == "exit code: 0\nb\n"
    assert by_id["c"]["error"]["code"] == -32600
    assert by_id["d"]["error"]["code"] == by_id[None]["error"]["code"] == -32600


def test_a_batch_of_notifications_has_no_answer(start) -> None:
    client = start(version="2025-03-26")
    client.send([{"jsonrpc": "2.0", "method": "notifications/whatever"}] * 3)
    assert client.request("ping") == {}


@pytest.mark.parametrize("batch", [[], [{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 129])
def test_a_batch_has_at_least_one_message_and_not_too_many(start, batch: list) -> None:
    client = start(version="2025-03-26")
    client.send(batch)
    reply = client.receive()
    assert reply["error"]["code"] == -32600 and reply["id"] is None


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", LATEST])
def test_a_batch_is_refused_by_the_other_revisions(start, version: str) -> None:
    client = start(version=version)
    client.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    assert client.receive()["error"]["code"] == -32600
    assert client.request("ping") == {}


def test_ids_come_back_as_they_were(client) -> None:
    for one in 0, -1, 2**62, "", "5", "\u00fc\n\u0000", "x" * 1024:
        client.send({"jsonrpc": "2.0", "id": one, "method": "ping"})
        assert client.receive() == {"jsonrpc": "2.0", "id": one, "result": {}}


def test_an_id_that_is_in_use_is_refused_and_free_again_afterwards(client) -> None:
    first = client.begin_call("execute", command="sleep 0.3; echo first")
    client.send({"jsonrpc": "2.0", "id": first, "method": "tools/list"})
    refused, answered = client.receive(), client.receive()
    assert refused["error"]["code"] == -32600 and "id" in refused["error"]["message"]
    assert "first" in answered["result"]["content"][0]["text"]
    client.send({"jsonrpc": "2.0", "id": first, "method": "ping"})
    assert client.receive()["result"] == {}


def test_every_schema_is_one_that_the_results_obey(start, project) -> None:
    """The schemas are data for clients; here a small reading of them checks every tool's result."""
    client = start("--seed", project)
    schemas = {tool["name"]: tool["outputSchema"] for tool in client.request("tools/list")["tools"]}
    calls = [("execute", {"command": "echo a; echo b >&2"}),
             ("execute", {"command": "seq 1 20000"}),
             ("write_file", {"path": "src/new.md", "content": "new\n"}),
             ("read_file", {"path": "src/main.c"}), ("read_file", {"path": "logo.png"}),
             ("edit_file", {"path": "src/new.md", "old_text": "new", "new_text": "newer"}),
             ("list_dir", {}), ("search", {"text": "newer"}), ("search", {"names": ["*.c"]}),
             ("diff", {}), ("sync", {"dry_run": True}), ("sync", {}),
             ("move_file", {"source": "src/new.md", "destination": "b.md"}),
             ("delete_file", {"path": "b.md"}),
             ("start_process", {"command": "echo hello; sleep 100"})]
    seen = set()
    for name, arguments in calls:
        result = client.call(name, **arguments)
        assert not result.is_error, (name, result.text)
        check(schemas[name], result.data, name)
        seen.add(name)
        if result.data.get("output_id"):
            check(schemas["read_output"],
                  client.call("read_output", id=result.data["output_id"]).data, "read_output")
    process = client.call("start_process", command="sleep 100").data["id"]
    for name in "read_process", "stop_process":
        more = {"wait_seconds": 0} if name == "read_process" else {}
        check(schemas[name], client.call(name, id=process, **more).data, name)
    assert seen | {"read_output", "read_process", "stop_process"} == set(schemas)


TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list,
         "object": dict, "null": type(None)}


def check(schema: dict, value, where: str) -> None:
    types = schema.get("type")
    if types:
        names = [types] if isinstance(types, str) else types
        assert any(isinstance(value, TYPES[name]) for name in names), (where, value)
    if "enum" in schema:
        assert value in schema["enum"], (where, value)
    for key in schema.get("required", []):
        assert key in value, (where, key)
    for key, part in schema.get("properties", {}).items():
        if key in value:
            check(part, value[key], f"{where}.{key}")
    if isinstance(value, dict) and "properties" in schema:
        assert set(value) <= set(schema["properties"]), (where, value)
    for one in value if isinstance(value, list) else []:
        check(schema.get("items", {}), one, f"{where}[]")


def test_schemas_are_json_schemas(client) -> None:
    for tool in client.request("tools/list")["tools"]:
        for schema in tool["inputSchema"], tool["outputSchema"]:
            assert schema["type"] == "object"
            assert set(schema.get("required", [])) <= set(schema["properties"])
        json.dumps(tool)
