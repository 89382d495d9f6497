# SPDX-License-Identifier: Apache-2.0
"""pinfold run --json: one object on stdout, and nothing else there."""

import json
import os


def test_holds_the_result_of_the_command(pinfold):
    done = pinfold("run", "--json", "echo out; echo err >&2; exit 3")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert set(report) == {"execute"}
    execute = report["execute"]
    assert execute["exit_code"] == 3
    assert execute["success"] is False
    assert execute["output"] == "out\n[stderr] err\n"
    assert execute["stderr"] == "err\n"
    assert execute["truncated"] is False
    assert execute["timed_out"] is False
    assert (execute["stdout_bytes"], execute["stderr_bytes"]) == (4, 4)
    assert 0 < execute["duration_seconds"] < 60


def test_holds_seed_and_sync(pinfold, project, tmp_path):
    out = tmp_path / "out"
    done = pinfold("run", "--json", "--seed", project, f"--sync={out}", "echo x > src/new.txt")
    report = json.loads(done.stdout)
    assert report["seed"]["files_seeded"] == 3
    assert report["seed"]["bytes_seeded"] == sum(
        (project / name).stat().st_size for name in ("src/main.c", "README.md", "tool.sh"))
    assert report["seed"]["skipped_paths"] == [".git/"]
    assert report["sync"]["files_synced"] == 3
    assert report["sync"]["errors"] == []


def test_text_with_nul_and_bad_bytes_is_valid_json(pinfold):
    done = pinfold("run", "--json", r"printf 'a\000b\377c\033'")
    assert json.loads(done.stdout)["execute"]["output"] == "a\0b\ufffdc\x1b"


def test_names_that_are_not_utf8_are_escaped_and_stay_distinct(pinfold, project):
    for name in (b"bad\xff", b"bad\xfe", rb"bad\xff"):
        os.mkfifo(os.fsencode(project) + b"/" + name)
    report = json.loads(pinfold("run", "--json", "--seed", project, "true").stdout)
    skipped = report["seed"]["skipped_paths"]
    assert {r"bad\xff", r"bad\xfe", r"bad\x5cxff"} <= set(skipped)


def test_a_timeout_keeps_the_partial_output(pinfold):
    done = pinfold("run", "--json", "--timeout", "0.3", "echo early; sleep 60")
    assert done.returncode == 124
    execute = json.loads(done.stdout)["execute"]
    assert execute["timed_out"] is True
    assert execute["output"].startswith("early\n")


def test_max_output_limits_what_is_kept(pinfold):
    done = pinfold("run", "--json", "--max-output", "100", "yes | head -c 1000000")
    execute = json.loads(done.stdout)["execute"]
    assert execute["truncated"] is True
    assert execute["output"].startswith("y\n" * 25)
    assert len(execute["output"]) < 400
    assert execute["stdout_bytes"] == 1000000


def test_a_failure_of_pinfold_is_in_it_and_on_stderr(pinfold, tmp_path):
    done = pinfold("run", "--json", "--seed", tmp_path / "missing", "true")
    assert done.returncode == 125
    error = json.loads(done.stdout)["error"]
    assert error["type"] == "WorkspacePrepareError"
    assert "missing" in error["message"]
    assert error["message"] in done.stderr


def test_background_processes_are_counted(pinfold):
    done = pinfold("run", "--json", "sleep 50 & sleep 50 & exit 0")
    assert json.loads(done.stdout)["execute"]["background_processes"] == 2
