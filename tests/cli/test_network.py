# SPDX-License-Identifier: Apache-2.0
"""The way out of an isolated sandbox, with the programs that people use, and what is told of it.

The servers are on the host's loopback, which no_proxy names: the commands unset it first.
"""

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from helpers import BUILD, copy_programs

ISOLATED = ("run", "-q", "--backend", "isolated")
CLEAR = "unset no_proxy NO_PROXY; "
GIT_ENV = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
           "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@example.org"}
DROPBEAR = shutil.which("dropbear", path="/usr/sbin:/usr/bin")
# A stranger to whom only a user namespace gives an account: uid 1000, with a home in the test's
# own directory.
SSHD = """
mount --bind {home}/passwd /etc/passwd && mount --bind {home}/shells /etc/shells &&
exec {dropbear} -i -s -r {home}/hostkey
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def web(directory: Path) -> Iterator[int]:
    """A server of the host for the files of a directory; its port."""
    server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def inetd(*command: Any, **options: Any) -> Iterator[int]:
    """Start a program for each connection, as inetd does; the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    children: list[subprocess.Popen] = []

    def serve() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                children.append(subprocess.Popen(list(map(str, command)), stdin=sock, stdout=sock,
                                                 stderr=subprocess.DEVNULL, **options))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for child in children:
            child.kill()
            child.wait()


def git(*args: Any) -> None:
    subprocess.run(["git", *map(str, args)], check=True, capture_output=True, env=GIT_ENV)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A directory with project.git, ready to be served."""
    work = tmp_path / "work"
    git("init", "-q", work)
    (work / "file").write_text("from the repository\n")
    git("-C", work, "add", "file")
    git("-C", work, "commit", "-qm", "one")
    served = tmp_path / "served"
    git("clone", "-q", "--bare", work, served / "project.git")
    git("-C", served / "project.git", "update-server-info")
    return served


@pytest.fixture
def ssh(pinfold: Callable[..., Any], repository: Path,
        tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A server for ssh; its port, and a directory with a key that it takes."""
    if not DROPBEAR or not shutil.which("ssh-keygen"):
        pytest.skip("dropbear or openssh-client is not installed")
    home, keys = tmp_path / "home", tmp_path / "keys"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    keys.mkdir()
    home.chmod(0o700)
    # It wants its user to have an account, as there is one inside.
    made = pinfold(*ISOLATED, "--rw", keys, "--",
                   f"ssh-keygen -q -t ed25519 -N '' -f {keys}/id")
    assert made.returncode == 0, made.stderr
    shutil.copy(keys / "id.pub", home / ".ssh/authorized_keys")
    (home / ".ssh/authorized_keys").chmod(0o600)
    (home / "passwd").write_text(f"git:x:1000:1000::{home}:/bin/sh\n")
    (home / "shells").write_text("/bin/sh\n")
    subprocess.run([Path(DROPBEAR).parent.parent / "bin/dropbearkey", "-t", "ed25519", "-f",
                    home / "hostkey"], check=True, capture_output=True)
    public = subprocess.run([Path(DROPBEAR).parent.parent / "bin/dropbearkey", "-y", "-f",
                             home / "hostkey"], check=True, capture_output=True, text=True).stdout
    key = next(line for line in public.splitlines() if line.startswith("ssh-ed25519"))
    (home / "run").write_text(SSHD.format(home=home, dropbear=DROPBEAR))
    with inetd("unshare", "-U", "--map-user=1000", "--map-group=1000", "--keep-caps", "-m", "sh",
               home / "run") as port:
        (keys / "known_hosts").write_text(f"[127.0.0.1]:{port} {key}\n")
        yield port, keys


def clone(pinfold: Callable[..., Any], url: str, *options: Any, before: str = "") -> Any:
    return pinfold(*ISOLATED, *options, "--",
                   f"{CLEAR}{before}git clone -q {url} got && cat got/file")


def check_clone(pinfold: Callable[..., Any], url: str, port: int, **more: Any) -> None:
    """It works through the proxy, and only when it is allowed."""
    done = clone(pinfold, url, "--net", f"allow=127.0.0.1:{port}", **more)
    assert (done.returncode, done.stdout) == (0, "from the repository\n"), done.stderr
    done = clone(pinfold, url, "--net", f"allow=127.0.0.1:{port ^ 1}", **more)
    assert done.returncode != 0 and done.stdout == ""
    if not url.startswith("http"):  # git keeps the body of an answer of HTTP to itself
        assert f"--net allow=127.0.0.1:{port} would allow it" in done.stderr
    else:
        assert "403" in done.stderr
    assert clone(pinfold, url, **more).returncode != 0


def test_git_clones_by_http(pinfold, repository):
    with web(repository) as port:
        check_clone(pinfold, f"http://127.0.0.1:{port}/project.git", port)


def test_git_clones_by_its_own_protocol(pinfold, repository):
    with inetd("git", "daemon", "--inetd", "--export-all", f"--base-path={repository}", repository,
               env={**GIT_ENV, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
                    "GIT_CONFIG_VALUE_0": "*"}) as port:
        check_clone(pinfold, f"git://127.0.0.1:{port}/project.git", port)


def test_git_clones_by_ssh(pinfold, repository, ssh, tmp_path):
    port, keys = ssh
    before = (f"export GIT_SSH_COMMAND='ssh -i {keys}/id -o UserKnownHostsFile={keys}/known_hosts "
              "-o BatchMode=yes'; ")
    more = {"before": before}
    url = f"ssh://git@127.0.0.1:{port}{repository}/project.git"
    done = clone(pinfold, url, "--ro", keys, "--net", f"allow=127.0.0.1:{port}", **more)
    assert (done.returncode, done.stdout) == (0, "from the repository\n"), done.stderr
    done = clone(pinfold, url, "--ro", keys, "--net", f"allow=127.0.0.1:{port ^ 1}", **more)
    assert done.returncode != 0 and f"--net allow=127.0.0.1:{port} would allow it" in done.stderr


PYTHON_GET = "/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read())'"
PYTHON_TUNNEL = ("/usr/bin/python3 -c 'import http.client as h, os; "
                 "c = h.HTTPConnection(*os.environ[\"https_proxy\"][7:].split(\":\")); "
                 "c.set_tunnel(\"127.0.0.1\", {port}); c.request(\"GET\", \"/hello\"); "
                 "print(c.getresponse().read())'")


@pytest.mark.parametrize("command", [
    PYTHON_GET, PYTHON_TUNNEL, "curl -sS {url}", "curl -sS --proxytunnel {url}",
    "curl -sS -x socks5h://127.0.0.1:3128 {url}",
    "printf \"GET /hello HTTP/1.0\\r\\n\\r\\n\" | /run/pinfold/connect 127.0.0.1 {port}"])
def test_programs_find_the_way_out_by_themselves(pinfold, tmp_path, command):
    if not shutil.which(command.split()[0]) and command.startswith("curl"):
        pytest.skip("curl is not installed")
    (tmp_path / "hello").write_text("hello, sandbox")
    with web(tmp_path) as port:
        line = CLEAR + command.format(url=f"http://127.0.0.1:{port}/hello", port=port)
        done = pinfold(*ISOLATED, "--net", f"allow=127.0.0.1:{port}", "--", line)
        assert "hello, sandbox" in done.stdout, done.stderr
        assert "hello, sandbox" not in pinfold(*ISOLATED, "--net", "allow=example.org", "--",
                                               line).stdout
        assert "hello, sandbox" not in pinfold(*ISOLATED, "--", line).stdout


def test_a_refused_tunnel_tells_programs_what_would_allow_it(pinfold):
    fetch = "import urllib.request as u; u.urlopen(\"https://evil.example/\")"
    done = pinfold(*ISOLATED, "--net", "allow=example.org", "--", f"/usr/bin/python3 -c '{fetch}'")
    assert "403 Forbidden: " in done.stderr
    assert "--net allow=evil.example would allow it" in done.stderr


def test_the_loopback_of_the_sandbox_is_reached_without_the_proxy(pinfold):
    script = ("/usr/bin/python3 -c 'import socket\n"
              "s = socket.create_server((\"127.0.0.1\", 4000)); print(\"up\", flush=True)\n"
              "c, _ = s.accept(); c.sendall(b\"inside\")' >up & "
              "until [ -s up ]; do sleep 0.05; done; /run/pinfold/connect localhost 4000 </dev/null")
    done = pinfold(*ISOLATED, "--net", "allow=example.org", "--", script)
    assert done.stdout == "inside", done.stderr


def test_there_is_no_resolver_inside(pinfold):
    done = pinfold(*ISOLATED, "--net", "allow=example.org", "--",
                   "getent hosts example.org && echo resolved; wc -c </etc/resolv.conf")
    assert done.stdout == "0\n"


def test_without_a_way_out_nothing_speaks_of_one(pinfold):
    done = pinfold(*ISOLATED, "--", "ls /run/pinfold /etc/ssh; env")
    assert done.stdout.count("proxy") == 0 and done.stderr.count("No such file") == 2


def test_without_the_program_that_ssh_takes_there_is_a_warning(tmp_path):
    program = copy_programs(tmp_path)
    (tmp_path / "pinfold-connect").unlink()
    done = subprocess.run([program, "run", "--net", "allow=example.org", "ls /run/pinfold; true"],
                          capture_output=True, text=True, timeout=60)
    (libexec,) = re.findall(r'PF_LIBEXECDIR "(.*)"', (BUILD / "pf_config.h").read_text())
    installed = Path(libexec, "pinfold-connect").exists()
    said = "warning: the program pinfold-connect is neither beside this one nor installed"
    assert (said in done.stderr) != installed, done.stderr
    assert ("connect" in done.stdout.split()) == installed
    assert done.returncode == 0


def events(trail: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    return [line for line in lines if line["event"] == f"sandbox.network_{name}"]


def test_the_audit_tells_what_was_refused_failed_and_opened(pinfold, tmp_path):
    trail = tmp_path / "trail.jsonl"
    (tmp_path / "hello").write_text("secret content")
    with web(tmp_path) as port, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = closed.getsockname()[1]
        pinfold(*ISOLATED, "--audit", trail, "--net", f"allow=127.0.0.1:{port}", "--net",
                f"allow=127.0.0.1:{dead}", "--",
                f"{CLEAR} for at in evil.example:8443 127.0.0.1:{port} 127.0.0.1:{dead}; do "
                "/run/pinfold/connect ${at%:*} ${at#*:} </dev/null; done; "
                f"curl -s http://127.0.0.1:{port}/hello")
    (refused,) = events(trail, "refuse")
    assert (refused["protocol"], refused["host"], refused["port"], refused["count"]) == (
            "connect", "evil.example", 8443, 1)
    assert "--net allow=evil.example:8443 would allow it" in refused["reason"]
    assert refused["workspace_id"].startswith("run-") and refused["owner_id"]
    (failed,) = events(trail, "fail")
    assert (failed["port"], failed["reason"]) == (dead, "connect: Connection refused")
    opened = events(trail, "open")
    assert [(event["protocol"], event["port"]) for event in opened] == [
            ("connect", port), ("http", port)]
    assert "secret content" not in trail.read_text() and "/hello" not in trail.read_text()


FLOOD = """
import socket
for number in range(1200):
    sock = socket.create_connection(("127.0.0.1", 3128))
    host = "same.example" if number % 2 else f"h{number}.example"
    sock.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n".encode())
    assert sock.recv(64).startswith(b"HTTP/1.1 403 ")
    sock.close()
"""


def test_an_agent_cannot_fill_the_audit(pinfold, tmp_path):
    """Each of twelve hundred refusals is counted; only some are lines."""
    trail, seed = tmp_path / "trail.jsonl", tmp_path / "seed"
    seed.mkdir()
    (seed / "flood.py").write_text(FLOOD)
    done = pinfold(*ISOLATED, "--seed", seed, "--audit", trail, "--net", "allow=example.org", "--",
                   "/usr/bin/python3 flood.py && echo done")
    assert done.stdout == "done\n", done.stderr
    refused = events(trail, "refuse")
    assert sum(event["count"] for event in refused) == 1200
    assert len(refused) < 250
    assert sum(event["count"] for event in refused if event.get("host") == "same.example") > 5


@pytest.mark.parametrize("entry, word", [
    ("https://example.org", "scheme"), ("example.org/path", "path"), ("*.*.org", "'*'"),
    ("exämple.org", "xn--"), ("example.org:0", "port"), ("example.org:80-90", "port"),
    ("10.1.2.3/8", "beyond"), ("10.0.0.0/33", "prefix"), ("[example.org]:80", "IPv6"),
    ("fd00::/8:443", "brackets"), ("127.1", "plain form"), ("a b", "byte"), (".example.org", "label")])
def test_a_bad_entry_is_explained(pinfold, entry, word):
    done = pinfold(*ISOLATED, "--net", f"allow={entry}", "--", "true")
    assert done.returncode == 125
    shown = entry if entry.isascii() else "ex"
    assert shown in done.stderr and word in done.stderr, done.stderr


def test_entries_come_in_one_list_or_in_several(pinfold):
    script = ("for at in a.example b.example:22 c.b.example:22; do "
              "/run/pinfold/connect ${at%:*} ${at#*:} </dev/null 2>&1 | grep -c 'would allow'; done")
    done = pinfold(*ISOLATED, "--net", "allow=a.example:81,b.example:22", "--net",
                   "allow=[::1]:5,10.0.0.0/8", "--", script.replace("a.example", "a.example:81", 1))
    assert done.stdout.split() == ["0", "0", "1"], done.stderr
    assert "argument" not in done.stderr
    empty = pinfold(*ISOLATED, "--net", "allow=a.example,,b", "--", "true")
    assert empty.returncode == 125 and "empty" in empty.stderr
