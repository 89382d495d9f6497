# SPDX-License-Identifier: Apache-2.0
"""Bad input gives a clear error that names path and operation, and nothing is half done."""

import os
import resource
import shutil
import subprocess

import pytest

from helpers import BUILD


def fails(done, *words):
    """It is our failure, in one or more lines that begin with our name and hold the words."""
    assert done.returncode == 125, done
    assert done.stderr.startswith("pinfold: ")
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize("args, words", [
    ([], ["no command given", "pinfold help"]),
    (["frobnicate"], ["frobnicate: no such command", "pinfold help"]),
    (["--quiet", "run", "true"], ["--quiet: no such option here: those of a command follow it",
                                  "pinfold help"]),
    (["run"], ["no command to run", "pinfold help run"]),
    (["run", "--frobnicate", "true"], ["--frobnicate: no such option"]),
    (["run", "-x", "true"], ["-x: no such option"]),
    (["run", "--quiet=3", "true"], ["--quiet=3: takes no value"]),
    (["run", "--backend", "moon", "true"], ["--backend moon", "there are: local, isolated"]),
    (["run", "--backend", "local", "--net", "none", "true"], ["--net", "needs --backend isolated"]),
    (["run", "--memory", "1G", "--backend", "local", "true"], ["--memory", "needs --backend isolated"]),
    (["run", "--ro", "/opt", "--backend", "local", "true"], ["--ro", "needs --backend isolated"]),
    (["run", "--sync", "true"], ["--sync without --seed", "--sync=DIR"]),
    (["run", "--timeout"], ["--timeout: a value is missing"]),
    (["run", "--env", "NOEQUALS", "true"], ["--env NOEQUALS", "NAME=value"]),
    (["run", "--env", "=x", "true"], ["--env =x", "NAME=value"]),
    (["run", "--seed", "", "true"], ["--seed", "give a directory"]),
    (["plan"], ["nothing to plan"]),
    (["plan", "--sync=/tmp/x"], ["--sync needs --workspace"]),
    (["plan", "--seed", ".", "extra"], ["extra: takes no command"]),
    (["plan", "--workspace", ".", "--sync"], ["--sync without --seed has nowhere to go", "--sync=DIR"]),
    (["plan", "--backend", "daytona", "--sync=out"], ["--sync from --backend daytona: a workspace"]),
    (["plan", "--backend", "agentcore", "--sync=out"], ["--sync from --backend agentcore: "]),
    (["version", "extra"], ["extra: takes no arguments"]),
    (["version", "-q"], ["-q: no such option"]),
    (["help", "frobnicate"], ["frobnicate: no such command"]),
])
def test_a_wrong_call_says_what_is_wrong_and_where_help_is(pinfold, args, words):
    done = pinfold(*args)
    fails(done, *words)
    assert done.stdout == ""


@pytest.mark.parametrize("value", ["0", "0.0", "-1", "nan", "inf", "1e3", "0x10", "", "1s", "1.2.3",
                                   "9999999999"])
def test_a_timeout_is_a_positive_number(pinfold, value):
    fails(pinfold("run", "--timeout", value, "true"), f"--timeout {value}")


@pytest.mark.parametrize("value", ["0", "-1", "", "K", "1KB", "1 K", "k1", "1.5M", "0x10",
                                   "99999999999999999999", "99999999999G"])
def test_a_size_is_a_positive_number_with_a_suffix(pinfold, value):
    fails(pinfold("run", "--max-output", value, "true"), f"--max-output {value}")


@pytest.mark.parametrize("option", ["--exclude", "--include"])
@pytest.mark.parametrize("pattern", ["../x", "a/../b", "!x", ""])
def test_patterns_that_climb_or_negate_are_refused(pinfold, project, option, pattern):
    done = pinfold("run", "-q", "--seed", project, option, pattern, "echo ran")
    fails(done, f'"{pattern}"')
    assert done.stdout == ""


def test_a_missing_seed(pinfold, tmp_path):
    done = pinfold("run", "-q", "--seed", tmp_path / "missing", "echo ran")
    fails(done, "seed", f"{tmp_path}/missing", "No such file or directory")
    assert done.stdout == ""


def test_a_seed_that_is_a_file(pinfold, tmp_path):
    (tmp_path / "file").write_text("")
    fails(pinfold("run", "-q", "--seed", tmp_path / "file", "true"), f"{tmp_path}/file",
          "Not a directory")


@pytest.mark.parametrize("seed, workspace", [("a", "a/b"), ("a/b", "a")])
def test_seed_and_workspace_inside_each_other(pinfold, tmp_path, seed, workspace):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/file").write_text("1")
    done = pinfold("run", "-q", "--seed", tmp_path / seed, "--workspace", tmp_path / workspace,
                   "echo ran")
    fails(done, f"{tmp_path}/{seed}", "inside")
    assert done.stdout == ""
    assert sorted(path.name for path in (tmp_path / "a").rglob("*")) == ["b", "file"]


def test_a_workspace_that_is_not_writable(as_stranger, common):
    work = common / "work"
    work.mkdir()
    work.chmod(0o555)
    fails(as_stranger("run", "-q", "--workspace", work, "true"), str(work), "Permission denied")


def test_a_temporary_directory_that_is_not_writable(as_stranger, common):
    place = common / "closed"
    place.mkdir()
    place.chmod(0o555)
    done = as_stranger("run", "-q", "true", TMPDIR=str(place))
    fails(done, f"make a workspace in {place}: Permission denied", "--workspace")


def test_a_temporary_directory_that_is_missing(pinfold, tmp_path):
    done = pinfold("run", "-q", "true", env={**os.environ, "TMPDIR": str(tmp_path / "missing")})
    fails(done, f"{tmp_path}/missing: No such file or directory", "TMPDIR")


def test_a_workspace_that_is_a_file(pinfold, tmp_path):
    (tmp_path / "file").write_text("1")
    fails(pinfold("run", "-q", "--workspace", tmp_path / "file", "true"), f"{tmp_path}/file",
          "Not a directory")
    assert (tmp_path / "file").read_text() == "1"


def test_files_too_large_for_the_file_system_seed_nothing_half(pinfold, tmp_path, project):
    """A full disk as any user can have one: the limit on a file's size."""
    (project / "large.bin").write_bytes(os.urandom(200000))
    work = tmp_path / "work"
    line = 'ulimit -f 100; trap "" XFSZ; exec "$@"'
    done = subprocess.run(["/bin/sh", "-c", line, "sh", BUILD / "pinfold", "run", "-q", "--seed",
                           project, "--workspace", work, "true"], capture_output=True, text=True,
                          timeout=60)
    fails(done, "large.bin", "File too large")
    assert not (work / "large.bin").exists()
    assert (work / "README.md").read_text() == "# A project\n"
    assert sorted(path.name for path in work.iterdir()) == ["README.md", "src", "tool.sh"]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.getuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "small", place], check=False).returncode:
        pytest.skip("needs the right to mount")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_when_seeding(pinfold, small_disk, project):
    (project / "large.bin").write_bytes(os.urandom(500000))
    done = pinfold("run", "-q", "--seed", project, "--workspace", small_disk / "work", "true")
    fails(done, "large.bin", "No space left on device")
    assert not (small_disk / "work/large.bin").exists()


def test_a_full_disk_when_syncing_keeps_what_was_there(pinfold, small_disk, kept):
    out = small_disk / "out"
    out.mkdir()
    (out / "large.md").write_text("before")
    done = pinfold("run", "-q", f"--sync={out}", "head -c 500000 /dev/zero > large.md")
    fails(done, "large.md", "No space left on device", "status 0")
    assert kept(done.stderr) == {"large.md": "\0" * 500000}
    assert (out / "large.md").read_text() == "before"
    assert [path.name for path in out.iterdir()] == ["large.md"]


def test_special_files_and_links_out_of_the_seed_are_skipped(pinfold, project):
    os.mkfifo(project / "fifo")
    (project / "root").symlink_to("/")
    (project / "up").symlink_to("../..")
    (project / "inside").symlink_to("src/main.c")
    done = pinfold("run", "--seed", project, "ls -d fifo root up inside 2>/dev/null; true")
    assert (done.returncode, done.stdout) == (0, "inside\n")
    assert ", 4 skipped" in done.stderr


def test_names_that_are_not_utf8_travel_unchanged(pinfold, project, tmp_path):
    name = os.fsencode(project) + b"/bad\xff.md"
    with open(name, "w") as file:
        file.write("text")
    out = tmp_path / "out"
    assert pinfold("run", "-q", "--seed", project, f"--sync={out}", "true").returncode == 0
    assert b"bad\xff.md" in os.listdir(os.fsencode(out))


def test_a_file_size_limit_is_an_error_that_is_told(pinfold, project):
    (project / "large.bin").write_bytes(bytes(100000))
    done = pinfold("run", "-q", "--seed", project, "echo ran",
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000)))
    fails(done, "large.bin", "File too large")
    assert done.stdout == ""


def test_a_path_of_5000_bytes(pinfold):
    fails(pinfold("run", "-q", "--seed", "/tmp/" + "a/" * 2500, "true"), "File name too long")


@pytest.mark.parametrize("option", ["--workspace {}", "--rw {}", "--sync={}", "--sync --seed {}"])
def test_an_audit_file_that_the_command_could_change(pinfold, tmp_path, option):
    place = tmp_path / "place"
    (place / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("place/sub")
    for trail in (place / "trail", place / "sub/trail", tmp_path / "link/trail"):
        where = [word.format(place) for word in option.split()]
        fails(pinfold("run", "-q", *where, "--audit", trail, "echo ran"), "--audit", str(trail))
    done = pinfold("run", "-q", *where, "--audit", tmp_path / "place-trail", "echo ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_an_audit_file_that_cannot_be_opened(pinfold, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    fails(pinfold("run", "-q", "--audit", link, "echo ran"), str(link))
    assert not (tmp_path / "target").exists()


def test_an_audit_pipe_that_nobody_reads(pinfold, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    fails(pinfold("run", "-q", "--audit", tmp_path / "pipe", "echo ran"), str(tmp_path / "pipe"),
          "regular file")


def test_an_unreadable_file_in_the_seed(as_stranger, common, project):
    seed = common / "seed"
    shutil.copytree(project, seed)
    (seed / "closed").write_text("")
    (seed / "closed").chmod(0)
    place = common / "place"
    place.mkdir()
    place.chmod(0o777)
    done = as_stranger("run", "-q", "--seed", seed, "--workspace", place / "work", "echo ran")
    fails(done, "closed", "Permission denied", "--exclude")
    assert done.stdout == ""
