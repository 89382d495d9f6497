# SPDX-License-Identifier: Apache-2.0
"""Sandboxes from their creation to their end, as the control plane and the proxy see them."""

import json
import signal
import uuid
from pathlib import Path

import pytest

from daytona_client import Fake, end_fake, is_alive, start_fake, wait_until

NOT_STARTED = "bad request: no IP address found. Is the Sandbox started?"


def state(fake: Fake, name: str | None = None) -> str:
    answer = fake.api("GET", f"sandbox/{name or fake.sandbox}")
    return answer.json["state"] if answer.status == 200 else "gone"


def test_a_sandbox_is_created_found_and_deleted(fake: Fake) -> None:
    answer = fake.api("POST", "sandbox", {
        "env": {"A": "b"}, "labels": {"app": "rec"}, "public": False, "target": "eu",
        "autoStopInterval": 5, "networkBlockAll": True, "networkAllowList": "10.0.0.0/8"})
    told = answer.json
    assert answer.status == 200 and (told["state"], told["desiredState"]) == ("creating", "started")
    assert (told["env"], told["labels"], told["target"], told["autoStopInterval"]) == (
        {"A": "b"}, {"app": "rec"}, "eu", 5)
    assert told["toolboxProxyUrl"] == fake.endpoint + "/toolbox"
    assert state(fake, told["id"]) == "creating" and state(fake, told["id"]) == "started"
    deleted = fake.api("DELETE", f"sandbox/{told['id']}")
    assert (deleted.status, deleted.json["state"], deleted.json["desiredState"]) == (
        200, "destroying", "destroyed")
    gone = fake.api("GET", f"sandbox/{told['id']}")
    assert gone.status == 404 and gone.json == {
        "path": f"/api/sandbox/{told['id']}", "timestamp": gone.json["timestamp"],
        "statusCode": 404, "error": "Not Found",
        "message": f"Sandbox with ID or name {told['id']} not found"}
    assert fake.api("DELETE", f"sandbox/{told['id']}").status == 404


def test_names_are_unique_and_found(fake: Fake) -> None:
    name = f"n-{uuid.uuid4()}"
    made = fake.api("POST", "sandbox", {"name": name}).json
    assert fake.api("GET", f"sandbox/{name}").json["id"] == made["id"]
    assert fake.api("POST", "sandbox", {"name": name}).status == 409
    assert fake.api("DELETE", f"sandbox/{name}").status == 200
    assert fake.api("POST", "sandbox", {"name": name}).status == 200


@pytest.mark.parametrize("body, message", [
    ({"cpu": 1}, "Cannot specify Sandbox resources when using a snapshot"),
    ({"snapshot": "a", "buildInfo": {"dockerfileContent": "FROM a\n"}}, "Cannot specify both"),
    ({"snapshot": "missing"}, "Snapshot missing not found")])
def test_what_a_creation_may_not_ask_for(fake: Fake, body: dict, message: str) -> None:
    answer = fake.api("POST", "sandbox", body)
    assert answer.status == 400 and answer.message.startswith(message)


def test_quotas(fake: Fake) -> None:
    fake.control("config", {"sandbox_limit": 0})
    answer = fake.api("POST", "sandbox", {})
    assert answer.status == 400 and "limit exceeded" in answer.message


def test_an_image_is_built(fake: Fake) -> None:
    built = fake.api("POST", "sandbox", {"buildInfo": {"dockerfileContent": "FROM debian:12\n"},
                                         "cpu": 2, "memory": 4, "disk": 8}).json
    assert (built["state"], built["cpu"]) == ("pending_build", 2) and "snapshot" not in built
    assert [state(fake, built["id"]) for _ in range(2)] == ["pending_build", "started"]


def test_a_creation_hangs_fails_or_is_waited_for(fake: Fake) -> None:
    fake.control("config", {"create_polls": None})
    hung = fake.api("POST", "sandbox", {}).json["id"]
    assert {state(fake, hung) for _ in range(20)} == {"creating"}
    assert fake.api("DELETE", f"sandbox/{hung}").status == 200
    fake.control("config", {"create_polls": 0, "create_state": "build_failed"})
    failed = fake.api("POST", "sandbox", {}).json["id"]
    told = fake.api("GET", f"sandbox/{failed}").json
    assert (told["state"], told["errorReason"]) == ("build_failed",
                                                    "the reason that was asked for")
    assert fake.api("POST", f"sandbox/{failed}/start").status == 400
    fake.control("config", {"create_waits": 30})
    refused = fake.api("POST", "sandbox", {})
    assert (refused.status, refused.message) == (
        400, "Sandbox failed to start: the reason that was asked for")
    fake.control("config", {"create_state": None, "create_polls": 3})
    assert fake.api("POST", "sandbox", {}).json["state"] == "started"


def test_stopping_and_starting(sandbox: Fake) -> None:
    sandbox.upload(("f", b"kept"))
    session = sandbox.session()
    pid = sandbox.execute("sleep 1000 >/dev/null 2>&1 & echo $!")["result"]
    sandbox.run(session, "echo $$ > pid; sleep 1000")
    wait_until(lambda: sandbox.execute("cat pid")["result"].strip())
    shell = sandbox.execute("cat pid")["result"]
    stopped = sandbox.api("POST", f"sandbox/{sandbox.sandbox}/stop", force="false")
    assert stopped.json["state"] == "stopping"
    wait_until(lambda: not is_alive(pid) and not is_alive(shell))
    refused = sandbox.tool("GET", "work-dir")
    assert (refused.status, refused.message) == (400, NOT_STARTED)
    assert refused.json["path"] == f"/toolbox/{sandbox.sandbox}/work-dir"
    assert [state(sandbox) for _ in range(2)] == ["stopping", "stopped"]
    for want in ("starting", "starting", "started"):
        assert sandbox.api("POST", f"sandbox/{sandbox.sandbox}/start").json["state"] == want
    assert [part.data for part in sandbox.download("f")] == [b"kept"]
    assert sandbox.tool("GET", f"process/session/{session}").status == 404


def test_a_sandbox_stops_by_itself_unless_it_is_used(fake: Fake) -> None:
    fake.create(autoStopInterval=1)
    fake.control("config", {"minute": 2})
    # While a request is open it is in use, however long that takes.
    assert fake.execute("sleep 3; echo done")["result"] == "done\n"
    assert fake.api("POST", f"sandbox/{fake.sandbox}/last-activity").status == 201
    wait_until(lambda: fake.control("sandboxes", method="GET")[0]["state"] == "stopped")
    assert fake.tool("POST", "process/session", {"sessionId": "s"}).message == NOT_STARTED
    told = fake.api("POST", f"sandbox/{fake.sandbox}/start").json
    assert told["desiredState"] == "started"
    off = fake.api("POST", f"sandbox/{fake.sandbox}/autostop/0").json
    assert off["autoStopInterval"] == 0
    fake.create(autoStopInterval=1, autoDeleteInterval=0)
    wait_until(lambda: state(fake) == "gone")


def test_an_archived_sandbox_is_not_found_by_the_proxy(sandbox: Fake) -> None:
    assert sandbox.api("POST", f"sandbox/{sandbox.sandbox}/archive").status == 400
    sandbox.control("state", {"sandbox": sandbox.sandbox, "state": "archived"})
    refused = sandbox.tool("GET", "files")
    assert (refused.status, refused.message) == (404, "not found: sandbox container not found")
    assert sandbox.api("POST", f"sandbox/{sandbox.sandbox}/start").status == 200


def test_a_deletion_conflicts_while_something_changes(fake: Fake) -> None:
    fake.control("config", {"delete_conflicts": True})
    made = fake.api("POST", "sandbox", {}).json["id"]
    assert fake.api("DELETE", f"sandbox/{made}").status == 409
    fake.control("config", {"api_version": "0.159.0"})
    made = fake.api("POST", "sandbox", {}).json["id"]
    assert fake.api("DELETE", f"sandbox/{made}").status == 400
    fake.control("config", {"delete_conflicts": False, "delete_empty": True, "delete_polls": 2})
    deleted = fake.api("DELETE", f"sandbox/{made}")
    assert (deleted.status, deleted.body) == (200, b"")
    assert [state(fake, made) for _ in range(3)] == ["destroying", "destroying", "gone"]


def test_labels_and_lists(fake: Fake) -> None:
    mark = str(uuid.uuid4())
    made = [fake.api("POST", "sandbox", {"labels": {"of": mark, "n": str(n % 2)},
                                         "env": {"S": "x"}}).json["id"] for n in range(5)]
    fake.api("POST", "sandbox", {"labels": {"of": "other"}})
    labels = json.dumps({"of": mark})
    found, more = [], {}
    while True:
        page = fake.api("GET", "sandbox", labels=labels, limit="2", order="asc", **more).json
        found += [one["id"] for one in page["items"]]
        assert all(not {"env", "volumes", "buildInfo"} & set(one) for one in page["items"])
        if page["nextCursor"] is None:
            break
        more = {"cursor": page["nextCursor"]}
    assert sorted(found) == sorted(made)
    both = json.dumps({"of": mark, "n": "1"})
    assert len(fake.api("GET", "sandbox", labels=both).json["items"]) == 2
    changed = fake.api("PUT", f"sandbox/{made[0]}/labels", {"labels": {"a": "1"}})
    assert changed.json == {"labels": {"a": "1"}}
    assert len(fake.api("GET", "sandbox", labels=labels).json["items"]) == 4
    started = fake.api("GET", "sandbox", labels=labels, states="started").json["items"]
    assert started == []
    assert fake.api("GET", "sandbox", limit="201").status == 400
    paged = fake.api("GET", "sandbox/paginated", labels=labels, page="2", limit="3").json
    assert (len(paged["items"]), paged["total"], paged["page"], paged["totalPages"]) == (1, 4, 2, 2)


def test_lists_may_be_behind_and_bare(fake: Fake) -> None:
    made = fake.create()
    fake.control("config", {"list_lag": 1000})
    assert fake.api("GET", "sandbox").json["items"] == []
    fake.control("config", {"list_lag": 0})
    fake.control("config", {"list_lag": 0, "api_version": "0.179.0"})
    bare = fake.api("GET", "sandbox").json
    assert isinstance(bare, list) and [one["id"] for one in bare] == [made]
    fake.control("config", {"api_version": "0.190.0", "bare_list": True})
    assert fake.api("GET", "sandbox").json == bare
    fake.control("config", {"bare_list": False, "list_lag": 1000})
    fake.api("DELETE", f"sandbox/{made}")
    stale = fake.api("GET", "sandbox").json["items"]
    assert [one["id"] for one in stale] == [made]
    assert fake.api("GET", f"sandbox/{made}").status == 404


def test_where_the_toolbox_is_told(sandbox: Fake) -> None:
    url, path = sandbox.endpoint + "/toolbox", f"sandbox/{sandbox.sandbox}"

    def told() -> tuple:
        shown = sandbox.api("GET", path).json
        endpoint = sandbox.api("GET", path + "/toolbox-proxy-url")
        return (shown.get("toolboxProxyUrl"), endpoint.json.get("url"),
                sandbox.api("GET", "config").json.get("proxyToolboxUrl"))
    assert told() == (url, url, url)
    for where, want in (("endpoint", (None, url, url)), ("config", (None, None, url)),
                        ("api", (None, None, None))):
        sandbox.control("config", {"toolbox_url": where})
        assert told() == want
    legacy = sandbox.api("GET", f"toolbox/{sandbox.sandbox}/toolbox/work-dir")
    assert legacy.json == {"dir": str(sandbox.home)}
    sandbox.control("config", {"toolbox_url": "object", "leave_out": ["daemonVersion", "cpu"]})
    assert not {"daemonVersion", "cpu"} & set(sandbox.api("GET", path).json)


def test_who_may_ask(sandbox: Fake) -> None:
    def ask(more: dict) -> tuple[int, int]:
        sandbox.headers = {**headers, **more}
        return (sandbox.api("GET", f"sandbox/{sandbox.sandbox}").status,
                sandbox.tool("GET", "work-dir").status)
    headers = dict(sandbox.headers)
    jwt = {"Authorization": "Bearer eyJfake.jwt.token"}
    assert ask({"Authorization": "Bearer wrong"}) == (401, 401)
    assert ask(jwt) == (403, 403)
    assert ask({**jwt, "X-Daytona-Organization-ID": "foreign"}) == (403, 403)
    assert ask({**jwt, "X-Daytona-Organization-ID": "org-fake"}) == (200, 200)
    assert sandbox.complaints() == []
    assert ask({"X-Daytona-Organization-ID": "org-fake"}) == (200, 200)
    assert sandbox.complaints() == ["an organization is named beside an API key"] * 2
    assert ask({"X-Daytona-Organization-ID": "foreign"}) == (403, 403)
    sandbox.complaints()
    sandbox.control("config", {"credentials": [{"key": "dtn_fake_key", "forbidden": True}]})
    sandbox.headers = headers
    assert sandbox.api("GET", "sandbox").message == "Access denied"


def test_the_toolbox_goes_by_id_alone(fake: Fake) -> None:
    fake.create(name="by-name")
    fake.sandbox = "by-name"
    refused = fake.tool("GET", "work-dir")
    assert refused.status == 400 and "failed to get runner info" in refused.message


# What it tells, and how it ends.


def test_requests_are_recorded_and_checked(fake: Fake, tmp_path: Path) -> None:
    log = tmp_path / "log"
    other = start_fake(tmp_path, "--log", str(log), "--config", '{"orphans": false}')
    made = other.create()
    other.execute("true")
    first, *_, last = other.control("requests", method="GET")
    assert (first["operation"], first["n"], first["status"]) == ("sandbox.create", 0, 200)
    assert (last["operation"], last["sandbox"]) == ("process.execute", made)
    assert json.loads(last["body"]) == {"command": "true"}
    assert other.control(f"requests?since={last['n']}", method="GET") == [last]
    assert other.control("counts", method="GET")["process.execute"] == 1
    status, said = end_fake(other)
    assert status == 3 and json.loads(said)["complaint"] == f"sandbox {made} was not deleted"
    assert len(log.read_text().splitlines()) == last["n"] + 1


WRONG = [
    ("GET", "/api/nowhere", None, "there is no such endpoint"),
    ("GET", "/toolbox/{}/nope", None, "there is no such endpoint"),
    ("PUT", "/toolbox/{}/files", None, "there is no such endpoint"),
    ("POST", "/api/sandbox", {"colour": 1}, "sandbox.create has no member colour"),
    ("POST", "/api/sandbox", {"ephemeral": True}, "sandbox.create has no member ephemeral"),
    ("POST", "/api/sandbox", {"env": {"A": 1}}, 'the member env may not be {"A": 1}'),
    ("POST", "/api/sandbox", {"networkAllowList": "all"},
     'the member networkAllowList may not be "all"'),
    ("POST", "/toolbox/{}/process/execute", {"command": "true", "timeout": "1"},
     'the member timeout may not be "1"'),
    ("GET", "/toolbox/{}/files?path=a&depht=1", None,
     "files.list has no query parameter depht"),
    ("GET", "/toolbox/{}/files/info", None, "the query parameter path is missing"),
    ("GET", "/toolbox/{}/files?path=a{{b}}", None, "the query is not percent-encoded"),
    ("POST", "/toolbox/{}/files/folder?path=a&mode=rwx", None,
     "the query parameter mode may not be 'rwx'"),
    ("POST", "/api/sandbox/{}/start", {}, "sandbox.start has no body"),
    ("POST", "/api/sandbox/{}/autostop/soon", None, "there is no such endpoint"),
    ("PUT", "/api/sandbox/{}/labels", {"labels": 7}, "the member labels may not be 7"),
    ("POST", "/api/sandbox", [], "the body is not an object"),
    ("GET", "/api/sandbox?limit=many", None, "the query parameter limit may not be 'many'"),
]


@pytest.mark.parametrize("method, target, value, complaint", WRONG)
def test_what_is_not_documented_is_complained_of(sandbox: Fake, method: str, target: str,
                                                 value: object, complaint: str) -> None:
    target = target.replace("{{", "%<").replace("}}", "%>")
    target = target.replace("{}", sandbox.sandbox).replace("%<", "{").replace("%>", "}")
    assert sandbox.ask(method, target, value).status < 599
    assert sandbox.complaints() == [complaint]


def test_headers_are_checked(sandbox: Fake) -> None:
    for name, complaint in (("X-Daytona-Source", "the header x-daytona-source is missing"),
                            ("User-Agent", "the header user-agent is missing")):
        headers = {key: value for key, value in sandbox.headers.items() if key != name}
        sandbox.send("GET", f"/api/sandbox/{sandbox.sandbox}", headers=headers)
        assert sandbox.complaints() == [complaint]
    sandbox.send("POST", "/api/sandbox", b"{}", {**sandbox.headers, "Content-Type": "text/x"})
    assert sandbox.complaints() == ["content-type: text/x: the body is JSON"]


def test_complaints_fail_the_fake(tmp_path: Path) -> None:
    fake = start_fake(tmp_path)
    fake.api("GET", "nowhere")
    status, said = end_fake(fake)
    assert status == 3 and json.loads(said)["complaint"] == "there is no such endpoint"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    fake = start_fake(tmp_path)
    fake.create()
    pid = fake.execute("mkdir -p a/b; touch a/b/c; chmod 0 a; setsid sleep 1000 >/dev/null 2>&1 & "
                       "echo $!")["result"]
    session = fake.session()
    fake.run(session, "sleep 1000")
    fake.process.send_signal(number)
    assert fake.process.wait(timeout=60) == 0
    end_fake(fake)
    assert not is_alive(pid) and list(tmp_path.iterdir()) == []


def test_killing_the_fake_kills_what_it_runs(tmp_path: Path) -> None:
    fake = start_fake(tmp_path)
    fake.create()
    pid = fake.execute("setsid sleep 1000 >/dev/null 2>&1 & echo $!")["result"]
    session = fake.session()
    _, shell, _ = fake.wait(session, fake.run(session, "echo $$"))
    assert is_alive(pid) and is_alive(shell)
    fake.process.kill()
    end_fake(fake)
    wait_until(lambda: not is_alive(pid) and not is_alive(shell))
