# SPDX-License-Identifier: Apache-2.0
"""pinfold run --backend isolated, as its users see it."""

import http.server
import json
import os
import resource
import signal
import subprocess
import threading
from pathlib import Path
from typing import Iterator

import pytest

from helpers import BUILD, wait_until

ISOLATED = ("run", "-q", "--backend", "isolated")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[int]:
    """A server of the host on its loopback; its port."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_seeded_project_is_worked_on_and_comes_home(pinfold, project, tmp_path):
    out = tmp_path / "out"
    done = pinfold(*ISOLATED, "--seed", project, f"--sync={out}", "--",
                   "pwd; id -un; cp src/main.c src/copy.c; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "/workspace\nagent\n", "err\n")
    assert (out / "src/copy.c").read_bytes() == (project / "src/main.c").read_bytes()


def test_nothing_of_the_host_is_there(pinfold, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    script = f"cat {secret}; ls /root /home /var /sys /boot; echo $HOST_SECRET; touch /usr/x /etc/x"
    done = pinfold(*ISOLATED, "--", script, env={**os.environ, "HOST_SECRET": "leaked"})
    assert "secret" not in done.stdout and "leaked" not in done.stdout
    assert done.stdout.split() == ["/home:", "agent"] or done.stdout.split() == [
        "/home:", "agent", "/var:"]
    assert done.stderr.count("Read-only file system") == 2


@pytest.mark.parametrize("most", [0, 1, 1000, 2000])
def test_a_limit_of_file_sizes_that_is_too_low_is_told_as_what_it_is(pinfold, most):
    """The kernel cuts the write that goes beyond it, and says why to the next one."""
    def lower() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    done = pinfold(*ISOLATED, "--", "true", preexec_fn=lower)
    assert done.returncode == 125
    assert "File too large" in done.stderr and "kernel" not in done.stderr


def test_exit_statuses_are_those_of_the_local_backend(pinfold):
    assert pinfold(*ISOLATED, "--", "kill -9 $$").returncode == 137
    assert pinfold(*ISOLATED, "--", "no-such-program-here").returncode == 127
    assert pinfold(*ISOLATED, "--", "/etc/passwd", "x").returncode == 126
    assert pinfold(*ISOLATED, "--timeout", "0.3", "--", "sleep 50").returncode == 124


def test_a_timeout_reaches_daemons_too(pinfold):
    done = pinfold(*ISOLATED, "--timeout", "0.5", "--json", "--",
                   "setsid -f env -i sleep 50; sleep 50")
    assert done.returncode == 124
    assert json.loads(done.stdout)["execute"]["timed_out"] is True


def test_ctrl_c_ends_the_command_and_cleans_up(start):
    child = start(*ISOLATED, "--", "echo ready; sleep 50")
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == 128 + signal.SIGINT


def test_the_owners_death_takes_everything_down(start, own_tmpdir):
    mark = f"pinfold-test-{os.getpid()}-{own_tmpdir.name}"
    child = start(*ISOLATED, "--", f"setsid -f sh -c 'sleep 50; : {mark}'; echo ready; sleep 50")
    assert child.stdout.readline() == "ready\n"

    def alive() -> list[str]:
        found = []
        for proc in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (proc / "cmdline").read_text() and int(proc.name) != child.pid:
                    found.append(proc.name)
            except (OSError, UnicodeDecodeError):
                continue
        return found

    assert alive()
    child.kill()
    child.wait(20)
    wait_until(lambda: not alive())
    for left in own_tmpdir.iterdir():  # nobody was left to remove it
        left.rmdir()


def test_there_is_no_network_unless_asked_for(pinfold, web):
    fetch = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{web}', timeout=5).read())"
    command = ("--", "/usr/bin/python3", "-c", fetch)
    assert "hello" not in pinfold(*ISOLATED, *command).stdout
    assert "hello" in pinfold(*ISOLATED, "--net", "host", *command).stdout


def test_the_way_out_leads_to_what_was_named_alone(pinfold, web):
    fetch = ("import os, urllib.request as u; os.environ.pop('no_proxy'); os.environ.pop('NO_PROXY')\n"
             "p = u.ProxyHandler({'http': 'http://127.0.0.1:3128'});\n"
             "o = u.build_opener(p)\n"
             f"for port in ({web}, {web} ^ 1):\n"
             "    try: print(o.open(f'http://127.0.0.1:{port}/', timeout=5).read())\n"
             "    except u.HTTPError as e: print(e.code)\n")
    done = pinfold(*ISOLATED, "--net", f"allow=127.0.0.1:{web}", "--", "/usr/bin/python3", "-c",
                   fetch.replace("u.HTTPError", "Exception").replace("e.code", "getattr(e, 'code', e)"))
    assert done.stdout.split("\n")[:2] == ["b'hello'", "403"], done
    refused = pinfold(*ISOLATED, "--net", "allow=bad name", "--", "true")
    assert refused.returncode == 125 and "bad name" in refused.stderr


def test_directories_are_shown_as_asked(pinfold, tmp_path):
    here = tmp_path / "shown"
    here.mkdir()
    (here / "f").write_text("seen\n")
    done = pinfold(*ISOLATED, "--ro", here, "--", f"cat {here}/f; echo x > {here}/g")
    assert done.stdout == "seen\n" and "Read-only" in done.stderr
    assert pinfold(*ISOLATED, "--rw", here, "--", f"echo x > {here}/g").returncode == 0
    assert (here / "g").read_text() == "x\n"
    missing = pinfold(*ISOLATED, "--ro", tmp_path / "missing", "--", "true")
    assert missing.returncode == 125 and "missing" in missing.stderr


@pytest.mark.parametrize("option", ["--ro", "--rw"])
@pytest.mark.parametrize("path, own", [("/home", "/home/agent"), ("/home/", "/home/agent"),
                                       ("/home/agent", "/home/agent"), ("/tmp", "/tmp"),
                                       ("/workspace", "/workspace"), ("/dev/shm", "/dev"),
                                       ("/proc/sys", "/proc"), ("/", "/")])
def test_what_is_the_sandbox_s_own_is_not_covered(pinfold, option, path, own):
    done = pinfold("run", "-q", option, path, "--", "true")
    assert done.returncode == 125 and f"cannot show {path} in a sandbox" in done.stderr
    assert own in done.stderr.split("in a sandbox", 1)[1]


def test_a_relative_directory_is_shown_by_its_absolute_path(pinfold, tmp_path):
    for name in "here", "beside/system", "written":
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "beside/f").write_text("seen\n")
    (tmp_path / "here/link").symlink_to("../written")
    done = pinfold("run", "-q", "--ro", "../beside", "--rw", "link", "--",
                   f"cat {tmp_path}/beside/f; echo x > {tmp_path}/written/g", cwd=tmp_path / "here")
    assert (done.stdout, done.returncode) == ("seen\n", 0), done.stderr
    assert (tmp_path / "written/g").read_text() == "x\n"
    done = pinfold("run", "-q", "--rootfs", "usr/..", "--", "echo", "done", cwd="/")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    done = pinfold("run", "-q", "--ro", "missing", "--", "true", cwd=tmp_path)
    assert done.returncode == 125
    assert "--ro missing: No such file or directory" in done.stderr


@pytest.mark.plain  # sanitizers have descriptors of their own
def test_too_few_descriptors_are_said_to_be_too_few():
    few = 'ulimit -n "$1" && exec "$2" run -q -- true'
    for limit in range(10, 44):
        done = subprocess.run(["sh", "-c", few, "sh", str(limit), BUILD / "pinfold"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 or (
            done.returncode == 125 and "too many open files" in done.stderr.lower()), (limit, done)


def test_processes_are_limited(pinfold):
    script = "i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done; echo all"
    done = pinfold(*ISOLATED, "--processes", "40", "--timeout", "10", "--", script)
    assert "all" not in done.stdout
    assert "fork" in done.stderr.lower()


def test_background_processes_and_tmp_end_with_the_run(pinfold):
    assert pinfold(*ISOLATED, "--", "echo x > /tmp/here; sleep 50 &").returncode == 0
    assert pinfold(*ISOLATED, "--", "cat /tmp/here").returncode == 1


def test_the_names_of_its_control_groups_say_nothing(pinfold):
    """As many of them have the number of the process that made them."""
    for line in pinfold(*ISOLATED, "--", "cat", "/proc/self/cgroup").stdout.splitlines():
        assert line.endswith(":/"), line
