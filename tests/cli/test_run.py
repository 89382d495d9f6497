# SPDX-License-Identifier: Apache-2.0
"""pinfold run: commands, output, exit statuses, workspaces."""

import os
import subprocess

import pytest

from helpers import BUILD

def test_one_argument_is_a_shell_command_line(run):
    done = run("echo a b; echo c | tr c d")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a b\nd\n", "")


def test_several_arguments_are_a_vector(run):
    done = run("printf", "%s|", "a b", "$HOME", ";")
    assert done.stdout == "a b|$HOME|;|"


def test_options_after_the_first_word_belong_to_the_command(run):
    done = run("echo", "--timeout", "-q", "--")
    assert (done.returncode, done.stdout) == (0, "--timeout -q --\n")


def test_double_dash_ends_the_options(run):
    done = run("--", "echo", "--json")
    assert done.stdout == "--json\n"


@pytest.mark.parametrize("status", [0, 1, 3, 42, 126, 255])
def test_the_exit_status_is_that_of_the_command(run, status):
    assert run(f"exit {status}").returncode == status


def test_a_signal_is_128_and_its_number(run):
    assert run("kill -TERM $$").returncode == 143


def test_a_missing_program_is_127_and_one_that_cannot_run_is_126(run, tmp_path):
    assert run("no-such-program", "argument").returncode == 127
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert run("--workspace", tmp_path, "./plain", "argument").returncode == 126


def test_stdout_and_stderr_stay_apart(run):
    done = run("echo out; echo err >&2; exit 5")
    assert (done.returncode, done.stdout, done.stderr) == (5, "out\n", "err\n")


def test_output_is_passed_on_as_the_bytes_it_is(run):
    done = run(r"printf 'a\377\000b'", text=False)
    assert done.stdout == b"a\xff\0b"


def test_output_arrives_while_the_command_runs(start, backend, tmp_path):
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    child = start("run", "-q", *backend, "--workspace", tmp_path, "echo first; cat go; echo second")
    assert child.stdout.readline() == "first\n"
    fifo.write_text("between\n")  # blocks until the command reads: it did not end before
    assert child.communicate(timeout=20)[0] == "between\nsecond\n"


def test_the_warning_of_the_local_backend_comes_once(pinfold):
    done = pinfold("run", "--backend", "local", "true")
    assert done.stderr.count("pinfold: warning: ") == 1
    assert "isolate" in done.stderr
    assert done.stdout == ""


def test_the_default_isolates_and_has_nothing_to_warn_of(pinfold):
    done = pinfold("run", "pwd")
    assert (done.returncode, done.stdout, done.stderr) == (0, "/workspace\n", "")


def test_quiet_silences_warnings_notes_and_summaries(pinfold, backend, project):
    done = pinfold("run", "--quiet", *backend, "--seed", project, "--max-output", "1", "echo abc")
    assert done.stderr == ""


def test_the_temporary_workspace_is_private_and_empty(run, own_tmpdir):
    done = run("stat -c %a .; ls -A")
    assert done.stdout == "700\n"
    assert list(own_tmpdir.iterdir()) == []


def test_the_temporary_workspace_is_below_tmpdir(pinfold, own_tmpdir):
    done = pinfold("run", "-q", "--backend", "local", "pwd")
    assert os.path.dirname(done.stdout.strip()) == str(own_tmpdir)
    assert not os.path.exists(done.stdout.strip())


def test_a_workspace_of_ours_is_made_and_kept(run, tmp_path):
    place = tmp_path / "work"
    assert run("--workspace", place, "echo 1 > kept").returncode == 0
    done = run("--workspace", place, "cat kept")
    assert done.stdout == "1\n"


def test_a_relative_workspace_is_one_of_the_current_directory(run, tmp_path):
    assert run("--workspace", "work", "echo 1 > here", cwd=tmp_path).returncode == 0
    assert (tmp_path / "work/here").read_text() == "1\n"


def test_the_workspace_goes_whatever_is_in_it(run):
    make = """
        mkdir -p closed/inner a/b/c && touch closed/inner/file 'new
line' a/b/c/.hidden "$(printf 'bad\\377name')" && ln -s / root && ln -s nowhere dangling
        mkfifo fifo && mkdir removing-0 removing-1 && touch removing-1/file
        chmod 0 closed/inner && chmod 500 closed a && echo done
    """
    assert run(make).stdout == "done\n"


def test_a_very_deep_workspace_goes_too(run):
    make = "import os\nfor i in range(3000):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)"
    assert run("/usr/bin/python3", "-c", make).returncode == 0


def test_max_output_cuts_the_stream_and_says_so(pinfold, backend):
    done = pinfold("run", *backend, "--max-output", "1K", "yes | head -c 5000; echo end >&2; exit 3")
    assert done.returncode == 3
    assert len(done.stdout) == 768  # a quarter is kept for stderr
    assert "the output was cut" in done.stderr
    assert "end\n" in done.stderr


@pytest.mark.parametrize("letter", ["é", "€", "🦊"])
@pytest.mark.parametrize("limit", range(1000, 1006))
def test_max_output_cuts_no_letter_in_two(pinfold, project, letter, limit):
    (project / "text.md").write_text(letter * 5000)
    for stream in ("1", "2"):
        # In one piece, and in pieces that end within a letter.
        for command in ("cat text.md", "dd if=text.md bs=7 status=none"):
            done = pinfold("run", "-q", "--backend", "local", "--seed", project, "--max-output", str(limit),
                           f"({command}) >&{stream}", text=False)
            told = (done.stdout if stream == "1" else done.stderr).decode()
            room = limit - limit // 4 if stream == "1" else limit
            assert set(told) == {letter} and len(told.encode()) > room - len(letter.encode())


def test_max_output_holds_for_both_streams_together(run):
    done = run("--max-output", "1K", "yes | head -c 500; yes | head -c 5000 >&2")
    assert (len(done.stdout), len(done.stderr)) == (500, 524)


def test_without_max_output_all_of_a_long_stream_arrives(run):
    done = run("head -c 3000000 /dev/zero", text=False)
    assert done.stdout == bytes(3000000)


def test_a_timeout_is_124_and_output_before_it_is_there(pinfold, backend):
    done = pinfold("run", *backend, "--timeout", "0.3", "echo early; sleep 60")
    assert (done.returncode, done.stdout) == (124, "early\n")
    assert "ran out of time" in done.stderr


def test_env_wins_and_the_rest_is_inherited_without_isolation_alone(pinfold):
    env = {**os.environ, "FROM_OUTSIDE": "yes", "BOTH": "outside"}
    words = ("--env", "BOTH=inside", "--env", "E=a=b", 'echo "$FROM_OUTSIDE $BOTH $E"')
    assert pinfold("run", "-q", "--backend", "local", *words, env=env).stdout == "yes inside a=b\n"
    assert pinfold("run", "-q", *words, env=env).stdout == " inside a=b\n"


def test_no_inherit_env_gives_the_variables_named_alone(pinfold):
    done = pinfold("run", "-q", "--backend", "local", "--no-inherit-env", "--env", "A=1",
                   "/usr/bin/env", "-u", "PWD")
    assert done.stdout == "A=1\n"


@pytest.mark.parametrize("blank", ["", " \t\n"])
def test_an_empty_command_is_1_and_says_why(run, blank):
    done = run(blank)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pinfold: the command is empty: nothing was run\n"


def test_stdin_is_empty(run):
    done = run("cat; echo end", input="from outside\n")
    assert done.stdout == "end\n"


def test_works_with_its_standard_descriptors_closed(tmp_path, backend):
    mark = tmp_path / "mark"
    line = 'exec "$0" run "$@" "echo more >&2; touch mark" <&- >&- 2>&-'
    subprocess.run(["/bin/sh", "-c", line, BUILD / "pinfold", *backend, "--workspace", tmp_path],
                   check=True)
    # /dev/null took their places: no file of ours became a stderr
    assert mark.read_bytes() == b""


def test_output_without_a_stdout_is_an_error():
    line = 'exec "$0" run "echo text" >&-'
    done = subprocess.run(["/bin/sh", "-c", line, BUILD / "pinfold"], check=False,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125
    assert "write to stdout: Bad file descriptor" in done.stderr


def test_words_and_variables_may_be_very_many(run):
    """They go in one message, or in a file, to whoever starts the command."""
    words = [f"word {number}" for number in range(1000)]
    assert run("--", "printf", "%s\\n", *words).stdout.splitlines() == words
    given = [f"--env=V{number}={number}" for number in range(400)]
    assert run(*given, "env | grep -c ^V[0-9]").stdout == "400\n"
    long = [number * "x" for number in range(1000)]  # half a megabyte
    assert run(*given, "--", "printf", "%s\\n", *long).stdout.splitlines() == long


def test_a_program_is_searched_for_as_a_shell_does(run, tmp_path):
    for name in "first", "second":
        (tmp_path / name).mkdir()
        (tmp_path / name / "prog").write_text("#!/bin/sh\necho it\n")
    (tmp_path / "second/prog").chmod(0o755)

    def search(path: str, *words: str) -> subprocess.CompletedProcess:
        return run("--workspace", tmp_path, f"--env=PATH={path}", "--", *(words or ["prog", "x"]))
    assert search("none:first:second").stdout == "it\n"
    assert search("none:first").returncode == 126
    assert search("none:first/prog").returncode == 127
    (tmp_path / "second/prog").rename(tmp_path / "prog")
    assert search("none::first").stdout == "it\n"
    assert search(f"/{5000 * 'x'}:").stdout == "it\n"


def test_without_a_PATH_the_usual_places_are_searched(pinfold):
    """That of an isolated command is set."""
    done = pinfold("run", "-q", "--backend", "local", "--no-inherit-env", "--", "env", "-0")
    assert done.returncode == 0 and "PATH=" not in done.stdout
