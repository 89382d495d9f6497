# SPDX-License-Identifier: Apache-2.0
"""What goes into a workspace, what comes home, and the dry runs of both."""

import json
import os
import stat
import subprocess

import pytest

from helpers import BUILD

DEFAULT_EXCLUDES = [".git", "node_modules", "__pycache__", ".venv", ".env", "key.pem",
                    "credentials.json", "secrets"]


def listing(place):
    """Every file below a directory."""
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def test_the_seed_is_copied_without_what_is_excluded(pinfold, project):
    done = pinfold("run", "--seed", project, "find . -type f | sort; ./tool.sh")
    assert done.stdout == "./README.md\n./src/main.c\n./tool.sh\ntool\n"
    assert "pinfold: seeded 3 files (" in done.stderr
    assert ", 1 skipped" in done.stderr


def test_secrets_stay_at_home_by_default(pinfold, project):
    for name in DEFAULT_EXCLUDES:
        place = project / "deep" / name
        if name in ("key.pem", "credentials.json", ".env"):
            place.parent.mkdir(exist_ok=True)
            place.write_text("secret")
        else:
            place.mkdir(parents=True)
            (place / "file").write_text("secret")
    done = pinfold("run", "-q", "--seed", project, "grep -r secret . || echo none")
    assert done.stdout == "none\n"


def test_exclude_adds_to_the_defaults(pinfold, project):
    done = pinfold("run", "-q", "--seed", project, "--exclude", "*.sh", "--exclude", "/src",
                   "find . -type f")
    assert done.stdout == "./README.md\n"


def test_the_seed_itself_is_not_changed_without_sync(pinfold, project):
    before = listing(project)
    assert pinfold("run", "-q", "--seed", project, "echo x > new.md; rm -r src").returncode == 0
    assert listing(project) == before


def test_sync_without_a_directory_goes_back_to_the_seed(pinfold, project):
    done = pinfold("run", "--seed", project, "--sync", "echo new > new.md; rm README.md; exit 3")
    assert done.returncode == 3
    assert (project / "new.md").read_text() == "new\n"
    assert (project / "README.md").exists(), "nothing is deleted at the destination"
    assert "pinfold: synced 1 files (4 B)" in done.stderr


def test_sync_to_another_directory_leaves_the_seed_alone(pinfold, project, tmp_path):
    out = tmp_path / "out"
    assert pinfold("run", "-q", "--seed", project, f"--sync={out}", "echo 1 > a.md; echo 2 > a.c",
                   ).returncode == 0
    assert listing(out) == ["README.md", "a.md", "src/main.c"]
    assert not (project / "a.md").exists()


def test_a_relative_destination_is_one_of_the_current_directory(pinfold, project, tmp_path):
    done = pinfold("run", "-q", "--seed", "project", "--sync=out", "true", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "out/README.md").exists()


def test_include_replaces_the_default_kinds_and_exclude_wins(pinfold, project, tmp_path):
    out = tmp_path / "out"
    pinfold("run", "-q", "--seed", project, f"--sync={out}", "--include", "*.c", "--include",
            "*.sh", "--exclude", "src", "echo 1 > top.c")
    assert listing(out) == ["tool.sh", "top.c"]


def test_a_kept_workspace_can_be_synced_without_a_seed(pinfold, tmp_path):
    work, out = tmp_path / "work", tmp_path / "out"
    assert pinfold("run", "-q", "--workspace", work, f"--sync={out}", "echo 1 > a.md").returncode == 0
    assert listing(out) == ["a.md"]


def test_sync_happens_after_a_timeout_too(pinfold, tmp_path):
    out = tmp_path / "out"
    done = pinfold("run", "-q", "--timeout", "0.3", f"--sync={out}", "echo 1 > a.md; sleep 60")
    assert done.returncode == 124
    assert listing(out) == ["a.md"]


def test_a_sync_that_fails_is_125_and_names_the_status_of_the_command(pinfold, tmp_path, kept):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.md").mkdir()  # a directory stands where a file should go
    done = pinfold("run", f"--sync={out}", "echo 1 > a.md; echo 2 > b.md; exit 7")
    assert done.returncode == 125
    assert "status 7" in done.stderr
    assert "a.md" in done.stderr
    assert listing(out) == ["b.md"]
    assert kept(done.stderr) == {"a.md": "1\n", "b.md": "2\n"}


def test_a_sync_that_cannot_begin_keeps_the_results(pinfold, tmp_path, kept):
    (tmp_path / "out").write_text("a file")
    done = pinfold("run", "-q", "--json", f"--sync={tmp_path}/out", "echo 1 > a.md")
    assert done.returncode == 125
    assert kept(json.loads(done.stdout)["kept_workspace"]) == {"a.md": "1\n"}


def test_a_sync_that_fails_leaves_a_workspace_with_a_name_alone(pinfold, tmp_path):
    (tmp_path / "out").write_text("a file")
    done = pinfold("run", "-q", "--workspace", tmp_path / "work", f"--sync={tmp_path}/out",
                   "echo 1 > a.md")
    assert done.returncode == 125
    assert "kept" not in done.stderr
    assert listing(tmp_path / "work") == ["a.md"]


def test_audit_writes_one_json_line_for_everything(pinfold, project, tmp_path):
    trail = tmp_path / "audit.jsonl"
    pinfold("run", "-q", "--seed", project, "--sync", "--audit", trail, "echo secret-word")
    events = [json.loads(line) for line in trail.read_text().splitlines()]
    names = [event["event"] for event in events]
    assert names[0] == "sandbox.start" and names[-1] == "sandbox.stop"
    assert "sandbox.execute" in names and "sandbox.flush" in names
    assert "secret-word" not in trail.read_text()
    assert stat.S_IMODE(trail.stat().st_mode) == 0o600


def test_plan_of_a_seed_lists_and_changes_nothing(pinfold, project, own_tmpdir):
    done = pinfold("plan", "--seed", project, "--exclude", "*.sh")
    assert done.returncode == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["copy", "12", "B", "README.md"] in lines
    assert ["copy", "29", "B", "src/main.c"] in lines
    assert lines[-1] == "would seed 2 files (41 B)".split()
    assert any(line[:2] == ["skip", "tool.sh"] and "#" in line for line in lines)
    assert any(line[:2] == ["skip", ".git/"] for line in lines)
    assert list(own_tmpdir.iterdir()) == []


def test_plan_as_json(pinfold, project):
    plan = json.loads(pinfold("plan", "--json", "--seed", project).stdout)["seed"]
    actions = {entry["path"]: entry["action"] for entry in plan["entries"]}
    assert actions["README.md"] == "copy"
    assert actions[".git/"] == "skip"
    assert plan["files"] == 3
    assert all(entry["reason"] for entry in plan["entries"] if entry["action"] == "skip")


def test_plan_of_a_sync_tells_new_from_changed_from_identical(pinfold, tmp_path):
    work, out = tmp_path / "work", tmp_path / "out"
    for place, changed in ((work, "1"), (out, "2")):
        place.mkdir()
        (place / "changed.md").write_text(changed)
        (place / "same.md").write_text("same")
    (work / "new.md").write_text("new")
    (work / "other.c").write_text("")
    done = pinfold("plan", "--workspace", work, f"--sync={out}", "--json")
    assert done.returncode == 0
    plan = json.loads(done.stdout)["sync"]
    actions = {entry["path"]: entry["action"] for entry in plan["entries"]}
    assert actions["new.md"] == "copy"
    assert actions["changed.md"] == "overwrite"
    assert actions["same.md"] == "identical"
    assert actions.get("other.c", "skip") == "skip"
    assert not (out / "new.md").exists()
    assert (out / "changed.md").read_text() == "2"


def test_plan_of_a_sync_without_a_place_is_home_to_the_seed(pinfold, tmp_path):
    work, seed = tmp_path / "work", tmp_path / "seed"
    for place in work, seed:
        place.mkdir()
    (work / "new.md").write_text("new")
    done = pinfold("plan", "--workspace", work, "--seed", seed, "--sync")
    assert done.returncode == 0
    assert ["copy", "3", "B", "new.md"] in [line.split() for line in done.stdout.splitlines()]
    assert list(seed.iterdir()) == []


def test_a_plan_that_cannot_be_made_or_shown_fails(pinfold, project, tmp_path):
    done = pinfold("plan", "--seed", tmp_path / "missing")
    assert (done.returncode, done.stdout) == (125, "")
    assert f"{tmp_path}/missing" in done.stderr
    for json_too in [], ["--json"]:
        with open("/dev/full", "w") as full:
            done = subprocess.run([BUILD / "pinfold", "plan", "--seed", project, *json_too],
                                  stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 125 and "No space left on device" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["--region", "eu-central-1"], "--region needs --backend agentcore"),
    (["--session-timeout", "9", "--backend", "daytona"], "--session-timeout needs --backend agentcore"),
    (["--image", "a", "--backend", "local"], "--image needs --backend daytona"),
    (["--image", "a", "--snapshot", "b", "--backend", "daytona"], "--snapshot and --image: a sandbox"),
    (["--workspace", ".", "--backend", "agentcore"], "--workspace is a directory of this machine"),
])
def test_plan_refuses_what_a_run_refuses(pinfold, project, words, said):
    """A plan that passes over an option is one of another run."""
    for command in (["plan"], ["run"]):
        done = pinfold(*command, "--seed", project, *words, *(["true"] if command == ["run"] else []))
        assert (done.returncode, done.stdout) == (125, "")
        assert f": {said}" in done.stderr


def test_plan_of_a_sync_needs_a_workspace_that_is_there(pinfold, tmp_path):
    done = pinfold("plan", "--workspace", tmp_path / "missing", f"--sync={tmp_path}/out")
    assert done.returncode == 125
    assert "missing: No such file or directory" in done.stderr
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("name", ["with space", "new\nline", "esc\x1b[31m", "ünïcode"])
def test_plan_shows_names_that_cannot_fool_a_terminal(pinfold, project, name):
    (project / name).write_text("")
    text = pinfold("plan", "--seed", project).stdout
    assert "\x1b" not in text
    # every line is one path, whatever is in its name
    assert len(text.splitlines()) == 6


def test_a_huge_hole_is_brought_home_twice(pinfold, tmp_path, backend):
    """The fixture ends a run that reads it."""
    home = tmp_path / "home"
    home.mkdir()
    for _ in range(2):
        done = pinfold("run", "-q", *backend, f"--sync={home}",
                       "for size in 15T 1T 100G; do truncate -s $size huge.md && break; done; "
                       "printf end >>huge.md")
        assert (done.returncode, done.stderr) == (0, "")
    assert (home / "huge.md").stat().st_size >= 100 << 30
    with (home / "huge.md").open("rb") as file:
        file.seek(-4, os.SEEK_END)
        assert file.read() == b"\0end"
