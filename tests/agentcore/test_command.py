# SPDX-License-Identifier: Apache-2.0
"""pinfold run --backend agentcore, against the fake: what a user sees, and that nobody pays for a
session that was left behind."""

import json
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import remote_faces
import remote_proxy
import remote_tls
from client import KEY, SECRET, Fake, end_fake, start_fake, wait_until
from remote_runner import PINFOLD, RemoteRunner


class Runner(RemoteRunner):
    def __init__(self, fake: Fake, tmp: Path) -> None:
        home = tmp / "home"
        home.mkdir()
        super().__init__("agentcore", "AWS_", tmp, {
            "HOME": str(home), "AWS_REGION": "us-west-2",
            "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE": fake.endpoint,
        })
        self.fake = fake

    def sessions(self) -> list[str]:
        return [one["status"] for one in self.fake.control("sessions", method="GET")]

    def sent(self, operation: str) -> list[dict]:
        return [json.loads(one["body"]) for one in self.fake.control("requests", method="GET")
                if one["operation"] == operation]


@pytest.fixture
def run(fake: Fake, tmp_path: Path) -> Runner:
    return Runner(fake, tmp_path)


def test_a_command_runs_there_and_its_streams_and_status_come_back(run: Runner) -> None:
    done = run("echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert run.sessions() == ["TERMINATED"]


def test_several_words_are_a_program_and_its_arguments(run: Runner) -> None:
    done = run("--env", "NAME=a 'b' $c", "--", "sh", "-c", 'printf "%s|" "$NAME" "$@"', "sh",
               "x y", "$HOME", "")
    assert (done.returncode, done.stdout) == (0, "a 'b' $c|x y|$HOME||")


def test_a_project_goes_there_and_results_come_home(run: Runner, project: Path,
                                                    tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("--seed", project, f"--sync={out}", "--include", "*.png", "--include", "src/**",
               "ls -a; ./tool.sh; cp logo.png src/copy.png")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [".", "..", "logo.png", "src", "tool.sh", "tool"]
    assert "seeded 3 files" in done.stderr and "synced " in done.stderr
    assert (out / "src/copy.png").read_bytes() == bytes(range(256))
    assert not (out / "tool.sh").exists()


def test_many_files_take_few_requests(run: Runner, tmp_path: Path) -> None:
    seed, out = tmp_path / "seed", tmp_path / "out"
    for number in range(1000):
        (seed / f"d{number % 10}").mkdir(parents=True, exist_ok=True)
        (seed / f"d{number % 10}/f{number}.md").write_text(f"{number}\n")
    done = run("--seed", seed, f"--sync={out}", "find . -type f | wc -l")
    assert (done.returncode, done.stdout.strip()) == (0, "1000"), done.stderr
    assert len(list(out.rglob("*.md"))) == 1000
    counts = run.fake.control("counts", method="GET")
    assert sum(counts["requests"].values()) <= 10, counts


def test_the_options_reach_the_service(run: Runner) -> None:
    """From whatever command they are given to."""
    run.env["AWS_REGION"] = "nowhere"
    del run.env["AWS_ENDPOINT_URL_BEDROCK_AGENTCORE"]
    words = ("--region", "us-west-2", "--endpoint", run.fake.endpoint, "--interpreter",
             "mine-0123456789", "--session-timeout", "77", "--env", "WORD=told")
    done = run(*words, "echo $WORD")
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")
    for execute in run.execute_by_agent, run.execute_by_client:
        assert execute("echo $WORD", *words) == "exit code: 0\ntold\n", execute
    sessions = run.sent("StartCodeInterpreterSession")
    assert [body["sessionTimeoutSeconds"] for body in sessions] == [77, 77, 77]
    assert all(body["name"].startswith("pinfold-run-") for body in sessions)
    targets = [one["target"] for one in run.fake.control("requests", method="GET")]
    assert all(target.startswith("/code-interpreters/mine-0123456789/") for target in targets)


def test_a_profile_has_region_and_credentials(run: Runner, tmp_path: Path) -> None:
    for name in "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION":
        del run.env[name]
    (tmp_path / "home/.aws").mkdir()
    (tmp_path / "home/.aws/config").write_text(
        f"[profile work]\nregion = us-west-2\naws_access_key_id = {KEY}\n"
        f"aws_secret_access_key = {SECRET}\n")
    assert run("--profile", "work", "true").returncode == 0
    done = run("--profile", "leisure", "true")
    assert done.returncode == 125
    assert "leisure" in done.stderr


def test_json_tells_everything_once(run: Runner, project: Path) -> None:
    done = run("--json", "--seed", project, "--sync", "echo hello; echo more > new.md; exit 3")
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert report["seed"]["files_seeded"] == 3
    assert report["execute"]["output"] == "hello\n"
    assert report["execute"]["exit_code"] == 3
    assert report["sync"]["errors"] == []
    assert (project / "new.md").read_text() == "more\n"


def test_the_time_of_an_agents_and_a_clients_command_is_the_option_s(run: Runner) -> None:
    """They name none for a command, and nobody stops one for them."""
    for execute in run.execute_by_agent, run.execute_by_client:
        told = execute("echo before; sleep 100", "--timeout", "2")
        assert told.startswith("exit code: 124\n") and "before" in told, execute
        assert execute("echo in time", "--timeout", "60") == "exit code: 0\nin time\n", execute


def test_sessions_live_as_long_as_the_help_says(run: Runner) -> None:
    told = subprocess.run([PINFOLD, "agent", "--help"], capture_output=True, text=True).stdout
    assert "up to 28800 (default 900; agent 7200)" in told
    run.execute_by_agent("true")
    run.execute_by_client("true")
    run.execute_by_agent("true", "--session-timeout", "77")
    run.execute_by_client("true", "--session-timeout", "78")
    assert [body["sessionTimeoutSeconds"] for body in run.sent("StartCodeInterpreterSession")] == [
        7200, 900, 77, 78]


def test_the_audit_names_the_backend_and_each_step(run: Runner, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    assert run("--audit", log, "exit 2").returncode == 2
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["event"] for one in events] == ["sandbox.start", "sandbox.execute", "sandbox.stop"]
    assert {one["backend_type"] for one in events} == {"AgentCoreSandboxBackend"}
    assert events[1]["exit_code"] == 2
    text = log.read_text()
    assert KEY not in text and SECRET not in text


@pytest.mark.parametrize("options", [[], ["--timeout", "60"]])
def test_streams_that_come_as_one_are_said_to(run: Runner, tmp_path: Path,
                                              options: list[str]) -> None:
    tools = tmp_path / "tools"  # all but base64
    tools.mkdir()
    for name in "cat", "env", "head", "mkdir", "mv", "rm", "wc":
        (tools / name).symlink_to(shutil.which(name))
    run.fake.control("config", {"path": str(tools)})
    done = run(*options, "echo out; echo err >&2; exit 4")
    assert (done.returncode, done.stdout) == (4, "out\nerr\n"), done.stderr
    assert "warning: AgentCore: stdout and stderr came as one stream" in done.stderr


def test_output_is_cut_where_the_option_says(run: Runner) -> None:
    done = run("--max-output", "1000", "seq 100000")
    assert done.returncode == 0
    assert len(done.stdout) <= 1000 and done.stdout.startswith("1\n2\n")
    assert "the output was cut" in done.stderr


def test_large_output_comes_whole(run: Runner) -> None:
    done = run("seq 400000")
    assert done.stdout == "".join(f"{number}\n" for number in range(1, 400001))


def test_a_timeout_stops_the_command_and_keeps_what_it_made(run: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("--timeout", "2", f"--sync={out}", "echo before; echo x > made.md; sleep 1000")
    assert (done.returncode, done.stdout) == (124, "before\n"), done.stderr
    assert "ran out of time" in done.stderr
    assert (out / "made.md").read_text() == "x\n"
    assert run.sessions() == ["TERMINATED"]


def test_a_session_outlives_the_timeout(run: Runner) -> None:
    assert run("--timeout", "5000", "true").returncode == 0
    assert run("--timeout", "50", "true").returncode == 0
    assert run("--timeout", "5000", "--session-timeout", "60", "true").returncode == 0
    assert [body["sessionTimeoutSeconds"]
            for body in run.sent("StartCodeInterpreterSession")] == [5120, 900, 60]
    run.fake.control("reset")
    for execute in run.execute_by_agent, run.execute_by_client:
        for seconds in "50", "10000", "100000":
            execute("true", "--timeout", seconds)
    assert [body["sessionTimeoutSeconds"] for body in run.sent("StartCodeInterpreterSession")] == [
        7200, 10120, 28800, 900, 10120, 28800]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("options", [[], ["--timeout", "100"]])
def test_a_signal_stops_the_session(run: Runner, number: int, options: list[str]) -> None:
    child = run.start(*options, "touch begun; sleep 1000")
    try:
        wait_until(lambda: any(Path(one["directory"], "workspace/begun").exists()
                               for one in run.fake.control("sessions", method="GET")))
        child.send_signal(number)
        child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 128 + number
    assert run.sessions() == ["TERMINATED"]
    assert list(run.tmp.iterdir()) == []


def test_a_signal_while_the_session_starts_leaves_none(run: Runner) -> None:
    run.fake.control("faults", {"kind": "slow", "operation": "StartCodeInterpreterSession",
                                "delay": 2})
    child = run.start("true")
    try:
        wait_until(run.sessions)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 128 + signal.SIGINT
    wait_until(lambda: run.sessions() == ["TERMINATED"])


def test_a_seed_that_fails_stops_the_session_and_runs_nothing(run: Runner, project: Path) -> None:
    run.fake.control("faults", {"kind": "http", "error": "AccessDeniedException", "tool":
                                "writeFiles", "count": None})
    done = run("--seed", project, "echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "AccessDeniedException" in done.stderr
    assert run.sessions() == ["TERMINATED"]


def test_results_that_cannot_come_home_are_said_to_be_lost(run: Runner, project: Path) -> None:
    done = run("--seed", project, "--sync", 'echo ran; rm -rf "$PWD"')
    assert (done.returncode, done.stdout) == (125, "ran\n")
    assert "lost with its session" in done.stderr
    assert run.sessions() == ["TERMINATED"]


def test_bad_credentials_are_an_error_that_says_so(run: Runner) -> None:
    run.env["AWS_SECRET_ACCESS_KEY"] = "wrong" + SECRET
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "InvalidSignatureException" in done.stderr and "403" in done.stderr
    assert SECRET not in done.stderr
    assert run.sessions() == []


def test_no_credentials_are_an_error_that_names_the_places(run: Runner) -> None:
    del run.env["AWS_ACCESS_KEY_ID"], run.env["AWS_SECRET_ACCESS_KEY"]
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "credentials" in done.stderr


def test_no_region_is_an_error(run: Runner) -> None:
    del run.env["AWS_REGION"]
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "region" in done.stderr


def test_an_endpoint_that_nobody_serves_is_an_error(run: Runner) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        done = run("--endpoint", "http://127.0.0.1:%d" % taken.getsockname()[1], "echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "start session" in done.stderr


def test_a_session_that_ends_too_early_is_told(run: Runner) -> None:
    run.fake.control("faults", {"kind": "expire", "tool": "executeCommand", "skip": 1})
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "has ended" in done.stderr


def test_a_session_that_cannot_be_stopped_is_named(run: Runner) -> None:
    run.fake.control("faults", {"kind": "http", "error": "AccessDeniedException",
                                "operation": "StopCodeInterpreterSession", "count": 99})
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "ran\n")
    assert "may run on, and cost" in done.stderr


@pytest.mark.parametrize("words, reason", [
    (["--tty", "true"], "no terminals"),
    (["--workspace", "/tmp", "true"], "--workspace"),
    (["--net", "host", "true"], "--net needs --backend isolated"),
    (["--seed-mode", "overlay", "--seed", "/tmp", "true"], "--seed-mode overlay"),
    (["--session-timeout", "0", "true"], "1 to 28800"),
    (["--session-timeout", "28801", "true"], "1 to 28800"),
    (["--region", "", "true"], "empty"),
    (["--region", "not/a region", "true"], "region"),
    (["--endpoint", "gopher://x", "true"], "endpoint"),
    (["--endpoint", "http://me:hunter2@127.0.0.1:1", "true"], "user name"),
    ([], "no command"),
])
def test_what_makes_no_sense_is_refused_before_anything_starts(run: Runner, words: list[str],
                                                               reason: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert reason in done.stderr
    assert "hunter2" not in done.stderr
    assert run.fake.control("requests", method="GET") == []


@pytest.mark.parametrize("option", ["--region=us-west-2", "--profile=x", "--interpreter=x",
                                    "--endpoint=http://x", "--session-timeout=9"])
@pytest.mark.parametrize("backend", ["isolated", "local"])
def test_its_options_are_refused_elsewhere(backend: str, option: str) -> None:
    done = subprocess.run([PINFOLD, "run", "--backend", backend, option, "true"], text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 125
    assert f"{option.partition('=')[0]} needs --backend agentcore" in done.stderr


def test_a_plan_of_a_seed_asks_nobody(run: Runner, project: Path) -> None:
    words = [PINFOLD, "plan", "--backend", "agentcore", "--region", "us-west-2"]
    done = subprocess.run([*words, "--seed", project], env=run.env, text=True, capture_output=True,
                          timeout=60)
    assert done.returncode == 0
    assert "would seed 3 files" in done.stdout
    back = subprocess.run([*words, "--workspace", project, "--sync=/proc/nonexistent"], env=run.env,
                          text=True, capture_output=True, timeout=60)
    assert back.returncode == 125
    assert "nothing to look at" in back.stderr
    assert run.fake.control("requests", method="GET") == []


@pytest.mark.parametrize("words", [["--backend", "local", "true"], ["--backend", "local", "--json",
                                                                    "true"]])
def test_no_other_run_loads_the_library_that_speaks_http(tmp_path: Path, words: list[str]) -> None:
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-e", "trace=execve,openat", "-o", trace, PINFOLD, "run",
                           "-q", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "execve" in trace.read_text()
    assert "libcurl" not in trace.read_text() and "pinfold-remote" not in trace.read_text()


def test_an_agent_works_there_and_its_changes_come_home(run: Runner, project: Path,
                                                        tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [
        {"reply": [{"tool": "execute", "input": {"command": "cat src/main.c; rm tool.sh; exit 4"}},
                   {"tool": "write_file", "input": {"path": "new.c", "content": "int x;\n"}}]},
        {"expect": {"results": [{"contains": ["exit code: 4", "int main"]}, {"error": False}]},
         "reply": "Done."}]}))
    words = [PINFOLD, "agent", "--backend", "agentcore", "--model", f"scripted:{script}", "--yes",
             "--seed", project, "do it"]
    done = subprocess.run(words, env=run.env, cwd=run.here, text=True, capture_output=True,
                          timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done.stderr  # tool.sh is not deleted here
    assert "is lost with" not in done.stderr
    assert "+int x;" in done.stdout and "deleted file mode" in done.stdout
    assert (project / "new.c").read_text() == "int x;\n" and (project / "tool.sh").exists()
    assert run.sessions() == ["TERMINATED"]
    [body] = run.sent("StartCodeInterpreterSession")
    assert body["sessionTimeoutSeconds"] == 7200
    # Commands that a time can end, of which the help says one.
    assert "startCommandExecution" in {one["name"] for one in run.sent("InvokeCodeInterpreter")}


def test_the_time_of_an_agent_s_commands_is_kept(run: Runner, tmp_path: Path) -> None:
    remote_faces.agent_with_timeout(run, tmp_path)


def test_the_time_that_a_server_is_given_is_kept(run: Runner) -> None:
    remote_faces.mcp_with_timeout(run)


def test_the_time_that_a_call_of_a_server_is_given_is_kept(run: Runner) -> None:
    remote_faces.mcp_call_with_timeout(run)


def test_a_process_that_a_client_stops_is_dead(run: Runner) -> None:
    remote_faces.mcp_stop_process(run, "pinfold-stopped-on-agentcore")


def test_a_dry_run_tells_what_a_sync_could_not_fetch(run: Runner, tmp_path: Path) -> None:
    remote_faces.mcp_dry_run(run, tmp_path)


def test_a_diff_does_not_call_nothing_what_it_did_not_look_for(run: Runner) -> None:
    remote_faces.mcp_diff(run)


def test_a_file_that_grows_keeps_no_other_from_home(run: Runner, tmp_path: Path) -> None:
    remote_faces.mcp_growing_file(run, tmp_path)


def test_a_broken_connection_keeps_no_results_from_home(run: Runner, tmp_path: Path) -> None:
    remote_faces.mcp_sync_over_cuts(run, tmp_path, run.fake, [
        {"tool": "executeCommand"}, {"tool": "readFiles"}])


@pytest.mark.parametrize("fault", [
    {"kind": "exception", "exception": "internalServerException"},
    {"kind": "exception", "exception": "internalServerException", "after_result": True},
    {"kind": "exception", "exception": "throttlingException", "after_result": True},
    {"kind": "error_message", "code": "InternalError", "message": "it passes"}],
    ids=["exception", "after", "throttled", "message"])
def test_an_answer_that_breaks_off_keeps_no_results_from_home(run: Runner, tmp_path: Path,
                                                              fault: dict) -> None:
    seed = tmp_path / "seed"
    seed.mkdir()
    with remote_faces.McpServer(run, "--seed", seed) as server:
        for skip in 0, 1:  # the list, the archive
            server.call("execute", command=f"echo {skip} >a.md")
            run.fake.control("faults", {"tool": "executeCommand", "skip": skip, **fault})
            assert server.call("sync")["errors"] == []
            assert (seed / "a.md").read_text() == f"{skip}\n"
            assert run.fake.control("faults", method="GET") == []


def test_a_list_that_is_not_whole_is_an_error(run: Runner, tmp_path: Path) -> None:
    run.fake.control("config", {"path": f"{tmp_path}/tools:/usr/local/bin:/usr/bin:/bin"})
    remote_faces.broken_lists(run, tmp_path, tmp_path / "tools")


def test_what_an_archive_leaves_out_is_not_written_over(run: Runner, tmp_path: Path) -> None:
    run.fake.control("config", {"path": f"{tmp_path}/tools:/usr/local/bin:/usr/bin:/bin"})
    remote_faces.agent_with_a_file_untold(run, tmp_path, tmp_path / "tools")


def test_what_was_shown_is_what_is_written(run: Runner, tmp_path: Path) -> None:
    run.fake.control("config", {"path": f"{tmp_path}/tools:/usr/local/bin:/usr/bin:/bin"})
    remote_faces.agent_with_two_answers(run, tmp_path, tmp_path / "tools")


def test_what_was_shown_is_written_after_a_yes(run: Runner, tmp_path: Path) -> None:
    run.fake.control("config", {"path": f"{tmp_path}/tools:/usr/local/bin:/usr/bin:/bin"})
    remote_faces.agent_that_asks(run, tmp_path, tmp_path / "tools")


def test_a_directory_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    # Where sessions have their homes paths have to be short.
    with tempfile.TemporaryDirectory(prefix="pinfold-fake-") as place:
        fake = start_fake(Path(place), before=remote_faces.UNPRIVILEGED)
        try:
            remote_faces.directories_of_all_kinds(Runner(fake, tmp_path), tmp_path)
        finally:
            assert end_fake(fake) == 0


ADDRESS = "AWS_ENDPOINT_URL_BEDROCK_AGENTCORE={}"


@pytest.mark.parametrize("shown, variables, said", [
    *remote_tls.TRUST,
    ("good", {"AWS_CA_BUNDLE": "good"}, ""),
    ("good", {"AWS_CA_BUNDLE": "", "SSL_CERT_FILE": "good"}, ""),
    ("good", {"AWS_CA_BUNDLE": "good", "SSL_CERT_FILE": "missing"}, ""),
    ("good", {"AWS_CA_BUNDLE": "elsewhere", "SSL_CERT_FILE": "good"}, "SSL_CERT_FILE"),
])
def test_only_who_is_vouched_for_is_trusted(run: Runner, shown: str, variables: dict[str, str],
                                            said: str) -> None:
    remote_tls.only_who_is_vouched_for_is_trusted(run, run.fake.address, ADDRESS, shown, variables,
                                                  said)


@pytest.mark.parametrize("variables, by_proxy", remote_proxy.WAYS)
def test_requests_go_where_variables_say(run: Runner, variables: dict[str, str],
                                         by_proxy: bool) -> None:
    remote_proxy.requests_go_where_variables_say(run, run.fake.address, ADDRESS, [KEY, SECRET],
                                                 variables, by_proxy)


@pytest.mark.parametrize("answer", remote_proxy.REFUSALS)
def test_a_proxy_that_refuses_is_named(run: Runner, answer: bytes) -> None:
    remote_proxy.a_proxy_that_refuses_is_named(run, run.fake.address, ADDRESS, [KEY, SECRET], answer)


def test_behind_a_proxy_it_is_the_service_that_is_verified(run: Runner) -> None:
    remote_proxy.behind_a_proxy_it_is_the_service_that_is_verified(run, run.fake.address, ADDRESS)


@pytest.mark.parametrize("shown", ["good", "elsewhere"])
def test_a_proxy_of_tls_is_verified_as_a_service_is(run: Runner, shown: str) -> None:
    remote_proxy.a_proxy_of_tls_is_verified_as_a_service_is(run, run.fake.address, ADDRESS, shown)
