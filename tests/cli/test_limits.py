# SPDX-License-Identifier: Apache-2.0
"""Limits of the isolated backend, and what results say about them, for root and for a stranger."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from helpers import STRANGER, copy_programs

PYTHON = "/usr/bin/python3"
IS_ROOT = os.getuid() == 0
USERS = [os.getuid()] + ([STRANGER] if IS_ROOT else [])
# What nothing else of a sandbox takes.
BOMB = f"{PYTHON} -c 'hold = [bytearray(1 << 20) for _ in range(4096)]'"


class Owner:
    """Runs the command as one user, with a temporary directory of that user's."""

    def __init__(self, uid: int, place: Path):
        self.uid, self.place = uid, place
        self.tmp = place / "tmp"
        self.tmp.mkdir()
        copy_programs(place)
        os.chown(self.tmp, uid, uid)

    def run(self, *args: Any, before: list[str] | None = None) -> subprocess.CompletedProcess:
        who = {} if self.uid == os.getuid() else {
            "user": self.uid, "group": self.uid, "extra_groups": []}
        return subprocess.run([*(before or []), str(self.place / "pinfold"), *map(str, args)],
                              capture_output=True, text=True, errors="replace", timeout=100,
                              cwd="/", env={**os.environ, "TMPDIR": str(self.tmp)}, **who)

    def execute(self, *args: Any, **options: Any) -> dict[str, Any]:
        done = self.run("run", "-q", "--json", "--backend", "isolated", *args, **options)
        answer = json.loads(done.stdout)
        assert "execute" in answer, answer
        assert answer["execute"]["exit_code"] == done.returncode
        return answer["execute"]


@pytest.fixture(params=USERS, ids=lambda uid: "root" if uid == 0 else "user")
def owner(request: pytest.FixtureRequest) -> Iterator[Owner]:
    with tempfile.TemporaryDirectory(prefix="pinfold-limits-") as path:
        place = Path(path)
        place.chmod(0o755)
        made = Owner(request.param, place)
        yield made
        assert list(made.tmp.iterdir()) == [], "a temporary workspace was left behind"


def for_owners(*uids: int) -> Callable[[Any], Any]:
    """Only of these, as far as they are there."""
    return pytest.mark.parametrize("owner", [uid for uid in USERS if uid in uids], indirect=True,
                                   ids=lambda uid: "root" if uid == 0 else "user")


@pytest.fixture
def held(owner: Owner) -> Callable[[str], str | None]:
    """What holds a limit of this owner's, as the sandbox says."""
    found = owner.execute("--cpu-seconds", "50", "--", "true")["limits_held_by"]
    return lambda name: found.get(name)


def test_what_a_command_used_is_told(owner):
    burn = f"{PYTHON} -c 'import time\nwhile time.process_time() < 0.4: pass\nx = b\"x\" * (60 << 20)'"
    used = owner.execute("--", burn)
    assert 0.4 <= used["cpu_seconds"] < 30
    assert 60 << 20 <= used["peak_bytes"] < 300 << 20
    assert used["limit"] is None and used["limits_hit"] == []
    idle = owner.execute("--", "sleep 0.3")
    assert idle["cpu_seconds"] < 0.3 and idle["peak_bytes"] < 50 << 20


def test_what_children_used_counts(owner):
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    used = owner.execute("--", f"{PYTHON} -c '{burn}' & {PYTHON} -c '{burn}'; wait")
    assert used["cpu_seconds"] >= 0.6


def test_the_local_backend_tells_it_too(pinfold):
    local = ("run", "-q", "--backend", "local", "--json")
    done = pinfold(*local, "--", f"{PYTHON} -c 'x = b\"x\" * (60 << 20)'")
    used = json.loads(done.stdout)["execute"]
    assert used["cpu_seconds"] > 0 and used["peak_bytes"] > 60 << 20
    assert used["sandbox_peak_bytes"] is None
    assert used["limits_held_by"] == {"time": "owner"}
    late = json.loads(pinfold(*local, "--timeout", "0.2", "--", "sleep 20").stdout)
    assert late["execute"]["limit"] == "time" and late["execute"]["limits_hit"] == ["time"]


def test_a_memory_bomb_is_put_down_to_the_limit(owner, held):
    result = owner.execute("--memory", "128M", "--", BOMB)
    assert (result["limit"], result["limits_hit"]) == ("memory", ["memory"])
    assert "out of memory" in result["output"] and "128 MiB" in result["output"]
    if held("memory").startswith("cgroup"):
        assert result["exit_code"] == 137
        assert 100 << 20 < result["sandbox_peak_bytes"] <= 128 << 20
    else:
        assert held("memory") == "rlimit" and result["exit_code"] != 0
        assert result["sandbox_peak_bytes"] is None


def test_a_memory_bomb_leaves_the_rest_of_the_command_alone(owner, held):
    result = owner.execute("--memory", "128M", "--", f"({BOMB}) 2>/dev/null; echo goes on")
    assert (result["exit_code"], result["limit"]) == (0, None)
    assert result["output"].startswith("goes on\n")
    if held("memory").startswith("cgroup"):
        assert result["limits_hit"] == ["memory"] and "1 process in it was" in result["output"]


def test_many_processes_together_run_into_the_memory_limit(owner, held):
    """Where a control group holds memory. An rlimit holds each process alone, and lets all run."""
    each = f"{PYTHON} -c 'x = bytearray(40 << 20); import time; time.sleep(2)'"
    result = owner.execute("--memory", "128M", "--", " & ".join([each] * 6) + "; wait")
    if held("memory").startswith("cgroup"):
        assert "memory" in result["limits_hit"]
        assert result["sandbox_peak_bytes"] <= 128 << 20
    else:
        assert held("memory") == "rlimit" and result["limits_hit"] == []


def test_files_in_memory_leave_room_for_commands(owner):
    result = owner.execute("--memory", "128M", "--", "for d in /tmp /dev/shm $HOME; do "
                           "cat /dev/zero > $d/large; done 2>/dev/null; du -cm /tmp /dev/shm $HOME"
                           " | tail -n1; rm /tmp/large && echo alive")
    total, last = result["output"].split("\n")[:2]
    assert 80 <= int(total.split()[0]) <= 100 and last == "alive"
    assert result["limit"] is None


def test_a_fork_bomb_is_put_down_to_the_limit(owner, held):
    script = ("import os, time\nfor _ in range(5000):\n    if os.fork() == 0: time.sleep(20); "
              "os._exit(0)")
    result = owner.execute("--processes", "60", "--", PYTHON, "-c", script)
    assert result["exit_code"] == 1 and "BlockingIOError" in result["output"]
    if held("processes").startswith("cgroup"):
        assert result["limit"] == "processes" and "limit of 60" in result["output"]
    else:
        assert held("processes") == "rlimit"


@for_owners(0)  # who may hide them
def test_fork_bombs_are_contained_where_there_are_no_control_groups(owner):
    """As in many containers: for root, whom rlimits do not hold, process numbers run out."""
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "-"]
    script = ("import os, time\ncount = 0\ntry:\n    while count < 20000:\n"
              "        if os.fork() == 0: time.sleep(20); os._exit(0)\n        count += 1\n"
              "except OSError: pass\nprint(count)")
    done = owner.run("run", "-q", "--json", "--backend", "isolated", "--processes", "60", "--",
                     PYTHON, "-c", script, before=hidden)
    answer = json.loads(done.stdout)
    if "execute" in answer:
        assert answer["execute"]["limits_held_by"]["processes"] == "pid_max"
        assert answer["execute"]["limits_held_by"]["memory"] == "rlimit"
        assert int(answer["execute"]["output"].split()[0]) < 16 * 1024
    else:  # an older kernel
        assert "nothing can limit its processes" in answer["error"]["message"]
    done = owner.run("run", "-q", "--json", "--backend", "isolated", "--cpus", "1", "--", "true",
                     before=hidden)
    assert done.returncode == 125 and "1 processors" in json.loads(done.stdout)["error"]["message"]


def test_processor_time_ends_with_a_signal_and_then_with_another(owner):
    told = owner.execute("--cpu-seconds", "1", "--", "while :; do :; done")
    assert (told["exit_code"], told["limit"]) == (128 + 24, "cpu time")
    assert "processor time: the limit of each process is 1 s" in told["output"]
    deaf = owner.execute("--cpu-seconds", "1", "--", "trap '' XCPU; while :; do :; done")
    assert (deaf["exit_code"], deaf["limit"]) == (137, "cpu time")
    child = owner.execute("--cpu-seconds", "1", "--", "sh -c 'while :; do :; done'; exit $?")
    assert (child["exit_code"], child["limit"]) == (128 + 24, "cpu time")


def test_processors_are_shared_out_or_refused(owner):
    burn = "timeout 2 sh -c 'while :; do :; done'"
    done = owner.run("run", "-q", "--json", "--backend", "isolated", "--cpus", "0.3", "--", burn)
    answer = json.loads(done.stdout)
    if owner.uid == 0:
        assert answer["execute"]["limits_held_by"]["cpu share"].startswith("cgroup")
        assert answer["execute"]["cpu_seconds"] < 1.2
    else:
        assert done.returncode == 125 and "Delegate" in answer["error"]["message"]


def test_a_large_file_is_put_down_to_the_limit(owner):
    result = owner.execute("--file-size", "1M", "--", "head -c 3M /dev/zero > f")
    assert (result["exit_code"], result["limit"]) == (128 + 25, "file size")
    assert "size limit of 1 MiB" in result["output"]
    assert owner.execute("--file-size", "unlimited", "--", "head -c 3M /dev/zero > f; wc -c < f")[
        "output"] == f"{3 << 20}\n"


def test_open_files_and_tmp_are_as_asked(owner):
    result = owner.execute("--open-files", "30", "--tmp-size", "3M", "--", PYTHON, "-c",
                           "import os\nst = os.statvfs('/tmp'); print(st.f_blocks * st.f_frsize)\n"
                           "try:\n    while True: os.dup(0)\n"
                           "except OSError as e: print(e.strerror, os.dup2(0, 29))\n")
    assert result["output"] == f"{3 << 20}\nToo many open files 29\n"


def test_a_workspace_that_grows_too_large_stops_the_command(owner):
    result = owner.execute("--workspace-size", "20M", "--",
                           "trap '' TERM; cat /dev/zero > large; sleep 60")
    assert (result["exit_code"], result["limit"]) == (137, "workspace")
    assert "[stopped: the workspace reached its size limit of 20 MiB]" in result["output"]
    assert "the call was stopped" not in result["output"]
    many = owner.execute("--workspace-size", "4M", "--", PYTHON, "-c",
                         "import os\nn = 0\nwhile True:\n    os.symlink('x', str(n)); n += 1")
    assert many["limit"] == "workspace"


def test_what_fits_into_the_workspace_is_left_alone(owner):
    result = owner.execute("--workspace-size", "40M", "--",
                           "head -c 30M /dev/zero > large; sleep 0.5; ls")
    assert (result["exit_code"], result["limit"], result["output"]) == (0, None, "large\n")


def test_a_seed_larger_than_the_workspace_is_refused(owner):
    seed = owner.place / "seed"
    seed.mkdir()
    (seed / "large").write_bytes(b"x" * (3 << 20))
    done = owner.run("run", "--backend", "isolated", "--workspace-size", "2M", "--seed", seed, "--",
                     "true")
    assert done.returncode == 125 and "its limit is 2097152" in done.stderr


def test_notes_say_which_option_gives_more(owner):
    done = owner.run("run", "--backend", "isolated", "--memory", "128M", "--", BOMB)
    assert "ran out of memory; --memory gives it more" in done.stderr
    done = owner.run("run", "--backend", "isolated", "--file-size", "1M", "--",
                     "head -c 3M /dev/zero > f")
    assert "--file-size gives it more" in done.stderr


def test_the_audit_has_it_too(owner):
    trail = owner.tmp / "trail"
    owner.execute("--audit", trail, "--file-size", "1M", "--", "head -c 3M /dev/zero > f")
    events = [json.loads(line) for line in trail.read_text().splitlines()]
    trail.unlink()
    (event,) = [event for event in events if event["event"] == "sandbox.execute"]
    assert event["limit"] == "file size" and event["cpu_ns"] > 0 and event["peak_bytes"] > 0


def test_a_program_with_address_sanitizer_runs(owner, held):
    """It reserves terabytes: only where each process is held must memory be unlimited for it."""
    source, program = owner.place / "x.c", owner.place / "asan"
    source.write_text("int main(void) { return 0; }\n")
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not compiler or subprocess.run([compiler, "-fsanitize=address", "-o", program, source],
                                      capture_output=True).returncode:
        pytest.skip("there is no compiler with AddressSanitizer")
    # Its search for leaks needs ptrace(2), which is closed.
    shown = ("--ro", owner.place, "--env", "ASAN_OPTIONS=detect_leaks=0", "--", program, "x")
    plain = owner.execute(*shown)
    assert (plain["exit_code"] == 0) == held("memory").startswith("cgroup")
    assert owner.execute("--memory", "unlimited", *shown)["exit_code"] == 0


@pytest.mark.parametrize("option", ["--memory", "--processes", "--cpu-seconds", "--cpus",
                                    "--open-files", "--file-size", "--workspace-size",
                                    "--tmp-size", "--rootfs", "--net", "--ro"])
def test_what_only_the_isolated_backend_has_is_refused_elsewhere(pinfold, option):
    value = {"--rootfs": "/usr", "--ro": "/usr", "--net": "none"}.get(option, "1")
    done = pinfold("run", "--backend", "local", option, value, "--", "true")
    assert done.returncode == 125 and f"{option} needs --backend isolated" in done.stderr


@pytest.mark.parametrize("words", [("--memory", "0"), ("--memory", "1T"), ("--cpus", "nan"),
                                   ("--cpus", "0"), ("--open-files", "x"), ("--processes", "-1"),
                                   ("--rootfs", "missing"), ("--file-size", "99999999999G")])
def test_values_that_mean_nothing_are_refused(pinfold, words):
    done = pinfold("run", "--backend", "isolated", *words, "--", "true")
    assert done.returncode == 125 and " ".join(words) in done.stderr


@pytest.mark.parametrize("option, setting", [
    ("memory", "3G"), ("processes", "9"), ("cpu-seconds", "9"), ("cpus", "0.5"), ("open-files", "99"),
    ("file-size", "9M"), ("workspace-size", "9M"), ("tmp-size", "9M")])
def test_every_limit_may_be_unlimited_and_so_be_lifted(owner, option, setting):
    """As the manual says of all of them: an option lifts what a policy has set, and a policy may
    say the same."""
    policy = owner.place / "policy.toml"
    for value in setting if setting[-1].isdigit() else json.dumps(setting), '"unlimited"':
        policy.write_text(f"[limits]\n{option} = {value}\n")
        checked = owner.run("config", "check", "--json", "--config", policy, f"--{option}",
                            "unlimited")
        assert checked.returncode == 0, checked.stderr
        lifted = owner.run("run", "-q", "--config", policy, f"--{option}", "unlimited", "--",
                           "echo ran")
        assert (lifted.returncode, lifted.stdout, lifted.stderr) == (0, "ran\n", ""), option


def test_a_file_size_that_a_program_is_told_of_is_its_own_to_tell(owner):
    """As the manual says: Python ignores the signal that the result is made of."""
    write = "open('big', 'wb').write(bytes(2 << 20))"
    told = owner.execute("--file-size", "1M", "--", "python3", "-c", write)
    assert told["exit_code"] == 1 and told["limit"] is None and "File too large" in told["output"]
    ended = owner.execute("--file-size", "1M", "--", "head -c 3M /dev/zero > big")
    assert ended["limit"] == "file size"


def test_doctor_says_what_holds_each_limit(owner):
    text = owner.run("doctor").stdout
    lines = text[text.index("limits are held by:"):].splitlines()[1:]
    said = {line[2:12].strip(): line[13:] for line in lines if line.startswith("  ")}
    assert said["tmp size"] == "tmpfs" and said["open files"] == "rlimit"
    assert said["memory"] in ("cgroup v1", "cgroup v2", "rlimit")
    if said["cpu share"].startswith("nothing"):
        assert "--cpus is refused" in said["cpu share"]
