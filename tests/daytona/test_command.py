# SPDX-License-Identifier: Apache-2.0
"""pinfold run --backend daytona, against the fake: what a user sees, and that nobody pays for a
sandbox that was left behind."""

import json
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

import remote_faces
import remote_proxy
import remote_tls
from daytona_client import KEY, Fake, end_fake, start_fake, wait_until
from remote_runner import PINFOLD, RemoteRunner


class Runner(RemoteRunner):
    def __init__(self, fake: Fake, tmp: Path) -> None:
        super().__init__("daytona", "DAYTONA_", tmp, {
            "DAYTONA_API_KEY": KEY, "DAYTONA_API_URL": fake.endpoint + "/api"})
        self.fake = fake

    def made(self) -> list[dict]:
        """What sandboxes were asked for."""
        return [json.loads(one["body"]) if isinstance(one["body"], str) else one["body"]
                for one in self.fake.control("requests", method="GET")
                if one["operation"] == "sandbox.create"]

    def left(self) -> list[str]:
        return [one["id"] for one in self.fake.control("sandboxes", method="GET")
                if one["state"] != "destroyed"]

    def assert_one_was_made_and_none_is_left(self) -> None:
        assert len(self.made()) == 1
        assert self.left() == []


@pytest.fixture
def run(fake: Fake, tmp_path: Path) -> Runner:
    return Runner(fake, tmp_path)


def test_a_command_runs_there_and_its_streams_and_status_come_back(run: Runner) -> None:
    done = run("echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    run.assert_one_was_made_and_none_is_left()


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
    run.assert_one_was_made_and_none_is_left()


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


def test_the_audit_names_the_backend_and_each_step(run: Runner, tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    assert run("--audit", log, "exit 2").returncode == 2
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["event"] for one in events] == ["sandbox.start", "sandbox.execute", "sandbox.stop"]
    assert {one["backend_type"] for one in events} == {"DaytonaSandboxBackend"}
    assert events[1]["exit_code"] == 2
    assert KEY not in log.read_text()


@pytest.mark.parametrize("option, member", [
    (["--target", "eu"], {"target": "eu"}),
    (["--snapshot", "mine"], {"snapshot": "mine"}),
    (["--image", "debian:12"], {"buildInfo": {"dockerfileContent": "FROM debian:12\n"}}),
])
def test_the_options_reach_the_service(run: Runner, option: list[str], member: dict) -> None:
    done = run(*option, "true")
    assert (done.returncode, done.stderr) == (0, "")
    [body] = run.made()
    assert body | member == body
    assert run.left() == []


def test_the_key_may_be_in_a_file_and_the_address_may_not(run: Runner) -> None:
    del run.env["DAYTONA_API_KEY"]
    (run.here / ".env").write_text(f"DAYTONA_API_KEY={KEY}\n")
    assert run("true").returncode == 0
    (run.here / ".env").write_text(f"DAYTONA_API_KEY={KEY}\nDAYTONA_API_URL=http://127.0.0.1:9\n")
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert ".env" in done.stderr and "address" in done.stderr
    run.assert_one_was_made_and_none_is_left()


def test_output_is_cut_where_the_option_says(run: Runner) -> None:
    done = run("--max-output", "1000", "seq 100000")
    assert done.returncode == 0
    assert len(done.stdout) <= 1000 and done.stdout.startswith("1\n2\n")
    assert "the output was cut" in done.stderr


def test_large_output_comes_whole(run: Runner) -> None:
    assert run("seq 400000").stdout == "".join(f"{number}\n" for number in range(1, 400001))


def test_a_timeout_stops_the_command_and_keeps_what_it_made(run: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("--timeout", "5", f"--sync={out}", "echo before; echo x > made.md; sleep 1000")
    assert (done.returncode, done.stdout) == (124, "before\n"), done.stderr
    assert "ran out of time" in done.stderr
    assert (out / "made.md").read_text() == "x\n"
    run.assert_one_was_made_and_none_is_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_deletes_the_sandbox(run: Runner, number: int) -> None:
    child = run.start("touch begun; sleep 1000")
    try:
        wait_until(lambda: any(list(Path(one["directory"]).glob("home/*/workspace/begun"))
                               for one in run.fake.control("sandboxes", method="GET")))
        child.send_signal(number)
        child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 128 + number
    run.assert_one_was_made_and_none_is_left()
    assert list(run.tmp.iterdir()) == []


@pytest.mark.parametrize("answered", [True, False])
def test_a_signal_while_the_sandbox_starts_leaves_none(run: Runner, answered: bool) -> None:
    """Before it runs, and before its id is known."""
    if answered:
        run.fake.control("config", {"create_polls": None})
    else:
        run.fake.fault("slow", "sandbox.create", delay=100)
    child = run.start("true")
    try:
        wait_until(lambda: run.made() and run.left())
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 128 + signal.SIGINT
    wait_until(lambda: run.left() == [])
    assert len(run.made()) == 1


def test_a_seed_that_fails_deletes_the_sandbox_and_runs_nothing(run: Runner,
                                                                project: Path) -> None:
    # After it: a reply that comes before all was sent may end the connection in the middle.
    run.fake.fault("http", "files.bulk-upload", status=403, message="no such luck", count=None,
                   when="after")
    done = run("--seed", project, "echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "no such luck" in done.stderr
    run.assert_one_was_made_and_none_is_left()


def test_results_that_cannot_come_home_are_said_to_be_lost(run: Runner, project: Path) -> None:
    done = run("--seed", project, "--sync", 'echo ran; rm -rf "$PWD"')
    assert (done.returncode, done.stdout) == (125, "ran\n")
    assert "lost with its sandbox" in done.stderr
    run.assert_one_was_made_and_none_is_left()


def test_a_sandbox_that_cannot_be_deleted_is_an_error_that_names_it(run: Runner) -> None:
    run.fake.fault("http", "sandbox.delete", status=403, message="not yours", count=None)
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "ran\n")
    [left] = run.left()
    assert left in done.stderr and "not yours" in done.stderr


def test_a_bad_key_is_an_error_that_does_not_show_it(run: Runner) -> None:
    run.env["DAYTONA_API_KEY"] = "dtn_of_nobody"
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "401" in done.stderr and "dtn_of_nobody" not in done.stderr
    assert run.left() == []
    run.fake.complaints()


def test_no_key_is_an_error_that_names_the_variable(run: Runner) -> None:
    del run.env["DAYTONA_API_KEY"]
    done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "DAYTONA_API_KEY" in done.stderr


def test_an_address_that_nobody_serves_is_an_error(run: Runner) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        run.env["DAYTONA_API_URL"] = "http://127.0.0.1:%d/api" % taken.getsockname()[1]
        done = run("echo ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "create" in done.stderr and "127.0.0.1" in done.stderr


@pytest.mark.parametrize("words, reason", [
    (["--tty", "true"], "no terminals"),
    (["--workspace", "/tmp", "true"], "--workspace"),
    (["--net", "host", "true"], "--net needs --backend isolated"),
    (["--region", "us-west-2", "true"], "--region needs --backend agentcore"),
    (["--seed-mode", "overlay", "--seed", "/tmp", "true"], "--seed-mode overlay"),
    (["--snapshot", "a", "--image", "b", "true"], "--snapshot and --image"),
    (["--image", "debian:12\nRUN x", "true"], "no image"),
    (["--target", "", "true"], "empty"),
    ([], "no command"),
])
def test_what_makes_no_sense_is_refused_before_anything_starts(run: Runner, words: list[str],
                                                               reason: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (125, "")
    assert reason in done.stderr
    assert run.fake.control("requests", method="GET") == []


@pytest.mark.parametrize("option", ["--target=x", "--snapshot=x", "--image=x"])
@pytest.mark.parametrize("backend", ["isolated", "local", "agentcore"])
def test_its_options_are_refused_elsewhere(backend: str, option: str) -> None:
    done = subprocess.run([PINFOLD, "run", "--backend", backend, option, "true"], text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 125
    assert f"{option.partition('=')[0]} needs --backend daytona" in done.stderr


def test_a_plan_of_a_seed_asks_nobody(run: Runner, project: Path) -> None:
    words = [PINFOLD, "plan", "--backend", "daytona", "--target", "us"]
    done = subprocess.run([*words, "--seed", project], env=run.env, text=True, capture_output=True,
                          timeout=60)
    assert done.returncode == 0
    assert "would seed 3 files" in done.stdout
    back = subprocess.run([*words, "--workspace", project, "--sync=/proc/nonexistent"], env=run.env,
                          text=True, capture_output=True, timeout=60)
    assert back.returncode == 125
    assert "nothing to look at" in back.stderr
    assert run.fake.control("requests", method="GET") == []


def test_an_agent_s_changes_come_home_after_its_commands_were_stopped(run: Runner, project: Path,
                                                                      tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [
        {"reply": [{"tool": "execute", "input": {"command": "echo x > new.c; rm tool.sh"}}]},
        {"reply": "Done."}]}))
    words = [PINFOLD, "agent", "--backend", "daytona", "--model", f"scripted:{script}", "--yes",
             "--seed", project, "do it"]
    done = subprocess.run(words, env=run.env, cwd=run.here, text=True, capture_output=True,
                          timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done.stderr  # tool.sh is not deleted here
    assert "+x\n" in done.stdout and "deleted file mode" in done.stdout
    assert (project / "new.c").read_text() == "x\n" and (project / "tool.sh").exists()
    run.assert_one_was_made_and_none_is_left()


def test_the_time_of_an_agent_s_commands_is_kept(run: Runner, tmp_path: Path) -> None:
    remote_faces.agent_with_timeout(run, tmp_path)


def test_the_time_that_a_server_is_given_is_kept(run: Runner) -> None:
    remote_faces.mcp_with_timeout(run)


def test_the_time_that_a_call_of_a_server_is_given_is_kept(run: Runner) -> None:
    remote_faces.mcp_call_with_timeout(run)


def test_a_process_that_a_client_stops_is_dead(run: Runner) -> None:
    remote_faces.mcp_stop_process(run, "pinfold-stopped-on-daytona")


def test_a_dry_run_tells_what_a_sync_could_not_fetch(run: Runner, tmp_path: Path) -> None:
    remote_faces.mcp_dry_run(run, tmp_path)


def test_a_diff_does_not_call_nothing_what_it_did_not_look_for(run: Runner) -> None:
    remote_faces.mcp_diff(run)


def test_a_file_that_grows_keeps_no_other_from_home(run: Runner, tmp_path: Path) -> None:
    remote_faces.mcp_growing_file(run, tmp_path)


def test_a_broken_connection_keeps_no_results_from_home(run: Runner, tmp_path: Path) -> None:
    remote_faces.mcp_sync_over_cuts(run, tmp_path, run.fake, [
        {"operation": name} for name in ("session.create", "session.exec", "session.command",
                                         "session.logs", "files.download", "files.delete",
                                         "files.bulk-upload")])


def look_for_programs_first_in(run: Runner, tools: Path) -> None:
    shell = tools.with_name("shell")
    shell.write_text(f'#!/bin/sh\nPATH="{tools}:$PATH" exec /bin/sh "$@"\n')
    shell.chmod(0o755)
    run.fake.control("config", {"shell": str(shell)})


def test_a_list_that_is_not_whole_is_an_error(run: Runner, tmp_path: Path) -> None:
    look_for_programs_first_in(run, tmp_path / "tools")
    remote_faces.broken_lists(run, tmp_path, tmp_path / "tools")


def test_what_an_archive_leaves_out_is_not_written_over(run: Runner, tmp_path: Path) -> None:
    look_for_programs_first_in(run, tmp_path / "tools")
    remote_faces.agent_with_a_file_untold(run, tmp_path, tmp_path / "tools")


def test_what_was_shown_is_what_is_written(run: Runner, tmp_path: Path) -> None:
    look_for_programs_first_in(run, tmp_path / "tools")
    remote_faces.agent_with_two_answers(run, tmp_path, tmp_path / "tools")


def test_what_was_shown_is_written_after_a_yes(run: Runner, tmp_path: Path) -> None:
    look_for_programs_first_in(run, tmp_path / "tools")
    remote_faces.agent_that_asks(run, tmp_path, tmp_path / "tools")


def test_a_directory_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    # Where sessions have their homes paths have to be short.
    with tempfile.TemporaryDirectory(prefix="pinfold-fake-") as place:
        fake = start_fake(Path(place), before=remote_faces.UNPRIVILEGED)
        try:
            remote_faces.directories_of_all_kinds(Runner(fake, tmp_path), tmp_path)
        finally:
            assert end_fake(fake) == (0, "")


ADDRESS = "DAYTONA_API_URL={}/api"


@pytest.mark.parametrize("shown, variables, said", [
    *remote_tls.TRUST,
    ("good", {"AWS_CA_BUNDLE": "good"}, "SSL_CERT_FILE"),
])
def test_only_who_is_vouched_for_is_trusted(run: Runner, shown: str, variables: dict[str, str],
                                            said: str) -> None:
    run.fake.control("config", {"toolbox_url": "api"})
    remote_tls.only_who_is_vouched_for_is_trusted(run, run.fake.address, ADDRESS, shown, variables,
                                                  said)


@pytest.mark.parametrize("variables, by_proxy", remote_proxy.WAYS)
def test_requests_go_where_variables_say(run: Runner, variables: dict[str, str],
                                         by_proxy: bool) -> None:
    run.fake.control("config", {"toolbox_url": "api"})
    remote_proxy.requests_go_where_variables_say(run, run.fake.address, ADDRESS, [KEY],
                                                 variables, by_proxy)


@pytest.mark.parametrize("answer", remote_proxy.REFUSALS)
def test_a_proxy_that_refuses_is_named(run: Runner, answer: bytes) -> None:
    remote_proxy.a_proxy_that_refuses_is_named(run, run.fake.address, ADDRESS, [KEY], answer)


def test_behind_a_proxy_it_is_the_service_that_is_verified(run: Runner) -> None:
    remote_proxy.behind_a_proxy_it_is_the_service_that_is_verified(run, run.fake.address, ADDRESS)


@pytest.mark.parametrize("shown", ["good", "elsewhere"])
def test_a_proxy_of_tls_is_verified_as_a_service_is(run: Runner, shown: str) -> None:
    run.fake.control("config", {"toolbox_url": "api"})
    remote_proxy.a_proxy_of_tls_is_verified_as_a_service_is(run, run.fake.address, ADDRESS, shown)
