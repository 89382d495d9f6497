# SPDX-License-Identifier: Apache-2.0
"""Policies in pinfold.toml: who may say what, which word counts, and what 'config check' tells."""

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

from helpers import BUILD

PROJECT, USER = "pinfold.toml", ".config/pinfold/pinfold.toml"


class Place:
    """A home and a project, and the command in them."""

    def __init__(self, root: Path):
        self.home, self.project = root / "home", root / "project"
        for directory in self.home / ".config/pinfold", self.project:
            directory.mkdir(parents=True)

    def user(self, text: str) -> Path:
        path = self.home / USER
        path.write_text(text)
        return path

    def project_file(self, text: str) -> Path:
        path = self.project / PROJECT
        path.write_text(text)
        return path

    def run(self, *args: Any, **env: str) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PINFOLD_", "XDG_"))}
        return subprocess.run([str(BUILD / "pinfold"), *map(str, args)], cwd=self.project,
                              env={**clean, "HOME": str(self.home), **env},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def check(self, *args: Any, **env: str) -> dict[str, Any]:
        done = self.run("config", "check", "--json", *args, **env)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)["settings"]

    def refuse(self, *args: Any, **env: str) -> str:
        done = self.run("config", "check", *args, **env)
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr.removeprefix("pinfold: ").removesuffix("\n")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_files_everything_is_a_default(place):
    settings = place.check()
    assert {setting["source"] for setting in settings.values()} == {"default"}
    assert settings["limits.memory"]["default"] == "4G"


def test_options_win_over_variables_and_these_over_files(place):
    path = place.user('[limits]\nmemory = "3G"\nprocesses = 30\ntimeout = 30\n')
    settings = place.check("--memory", "1G", PINFOLD_MEMORY="2G", PINFOLD_PROCESSES="20")
    assert settings["limits.memory"] == {"values": ["1G"], "source": "option", "in_force": True}
    assert settings["limits.processes"]["values"] == ["20"]
    assert settings["limits.processes"]["source"] == "environment"
    assert settings["limits.timeout"] == {"values": ["30"], "source": "user", "file": str(path),
                                          "line": 4, "in_force": True}


def test_the_text_names_files_lines_and_sources(place):
    path = place.user('[limits]\nmemory = "3G"\n')
    place.project_file('exclude = ["*.o"]\n')
    lines = place.run("config", "check", "--timeout", "5").stdout.splitlines()
    assert lines[:2] == [f"user     {path}", "project  pinfold.toml: it may only tighten"]
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[3:]}
    assert told["limits.memory"] == f"3G  # {path}:2"
    assert told["exclude"] == "*.o  # pinfold.toml:1"
    assert told["limits.timeout"] == "5  # option"
    assert told["limits.processes"] == "1024  # default"


def test_a_project_may_tighten(place):
    place.user('exclude = ["*.log"]\nnetwork = ["a.example", "b.example"]\n')
    place.project_file('exclude = ["*.o"]\nnetwork = ["b.example"]\n'
                       '[limits]\nmemory = "512M"\nmax-output = 1000\nworkspace-size = "9G"\n')
    settings = place.check()
    assert settings["exclude"]["values"] == ["*.log", "*.o"]
    assert settings["network"]["values"] == ["allow=b.example"]
    assert settings["limits.memory"]["values"] == ["512M"]
    place.project_file('network = "none"\n')
    assert place.check()["network"]["values"] == ["none"]


@pytest.mark.parametrize("text, line, what", [
    ('backend = "local"', 1, "backend: a file that lies in a project may not set it"),
    ('seed = "/"', 1, "seed: a file that lies in a project may not set it"),
    ('sync = true', 1, "sync: a file that lies in a project may not set it"),
    ('include = ["**"]', 1, "include: a file that lies in a project may not set it"),
    ('rw = ["/srv"]', 1, "rw: a file that lies in a project may not set it"),
    ('rootfs = "/x"', 1, "rootfs: a file that lies in a project may not set it"),
    ('audit = "x"', 1, "audit: a file that lies in a project may not set it"),
    ('[env]\nLD_PRELOAD = "x"', 1, "env: a file that lies in a project may not set it"),
    ('[http]\nlisten = "127.0.0.1:1"', 2, "http.listen: a file that lies in a project may not"),
    ('[[token]]\nname = "x"\nmode = "read_write"', 1, "token: a file that lies in a project may"),
    ('[daytona]\nimage = "x"', 2, "daytona.image: a file that lies in a project may not set it"),
    ('network = "host"', 1, "network: a file that lies in a project may not open it, as host"),
    ('network = ["c.example"]', 1, "network: a file that lies in a project may not open it"),
    ('[limits]\nmemory = "3G"', 2, "limits.memory: a file that lies in a project may only lower"),
    ('[limits]\nprocesses = 1025', 2, "limits.processes: a file that lies in a project may only"),
    ('[limits]\nprocesses = "unlimited"', 2, "limits.processes: a file that lies in a project"),
    ('[limits]\nworkspace-size = "unlimited"', 2, "limits.workspace-size: a file that lies in a"),
    ('[limits]\nmax-output = 30001', 2, "limits.max-output: a file that lies in a project may only"),
    ('ttl = 31', 1, "ttl: a file that lies in a project may only lower it, and it is 30"),
])
def test_a_project_may_not_weaken_anything(place, text, line, what):
    place.user('ttl = 30\nnetwork = ["a.example"]\n[limits]\nmemory = "2G"\n')
    place.project_file(text + "\n")
    said = place.refuse()
    assert said.startswith(f"pinfold.toml:{line}: {what}")
    assert "--config names a file that you trust" in said
    # The same words are fine in a file that somebody has chosen.
    if "file" not in text:
        assert place.run("config", "check", "--config", PROJECT, "--seed", ".").returncode == 0


def test_a_named_file_stands_for_the_others(place):
    place.user('[limits]\nmemory = "1G"\n')
    place.project_file('[limits]\nmemory = "512M"\n')
    named = place.home / "chosen.toml"
    named.write_text('[limits]\nprocesses = 7\n')
    for settings in (place.check("--config", named), place.check(PINFOLD_CONFIG=str(named))):
        assert settings["limits.memory"]["source"] == "default"
        assert settings["limits.processes"]["source"] == "named"
    assert place.run("config", "check", "--config", "/proc/nonexistent").stderr == (
        "pinfold: read /proc/nonexistent: No such file or directory\n")


@pytest.mark.parametrize("text, said", [
    ("memory = 1", "1: memory: no such setting; limits.memory may be meant"),
    ("[limits]\nmemmory = 1", "2: limits.memmory: no such setting; limits.memory may be meant"),
    ("\nnonsense = 1", "2: nonsense: no such setting; 'pinfold help config' lists what there is"),
    ("[nonsense]", "1: nonsense: no such section; 'pinfold help config' lists what there is"),
    ("[limits]\nmemory = 1.5", '2: limits.memory: not a number of bytes, or a text such as "512M"'),
    ('[limits]\nmemory = "1T"', "2: limits.memory: not a number of bytes greater than 0, such as "
                                "100000, 64K or 1M"),
    ('[limits]\nprocesses = true', "2: limits.processes: not a number"),
    ("exclude = 1", "1: exclude: not a list of texts"),
    ('exclude = ["a", 1]', "1: exclude: not a list of texts"),
    ('exclude = [["a"]]', "1: exclude: not a list of texts"),
    ('network = "open"', '1: network: not "none", "host" or a list of names'),
    ("seed = 2026-01-01", "1: seed: not a text"),
    ('seed = "a\\u0000b"', "1: seed: not a text"),
    ("sync = false", "1: sync: not true, or the name of a directory"),
    ('sync = ""', "1: sync: not true, or the name of a directory"),
    ('env = ["A=b"]', '1: env: a section: [env], and NAME = "value" below it'),
    ("[env]\nA = 1", "2: env.A: not a text"),
    ('backend = "docker"', "1: backend: no such backend; there are: local, isolated, agentcore, "
                           "daytona"),
    ('[[token]]\nname = "x"', "1: token: it takes a name and a mode"),
    ('[[token]]\nname = "x"\nmode = "admin"', "1: token: not of the form NAME:MODE, where MODE is "
                                              "read_write or read_only"),
    ('[[token]]\nvalue = "secret"', "2: token.value: a secret does not belong here; file names one "
                                    "that has it, env a variable"),
    ('[[token]]\nname = "x"\nmode = "read_only"\nfile = "f"\nenv = "E"',
     "1: token: either a file or a variable has its value"),
    ('token = "x"', "1: token: sections: [[token]], and name, mode below it"),
    ("exclude = [" + 1025 * '"a", ' + "]", "1: a list has at most 1024"),
    (f"{'k' * 200} = 1", f"1: {'k' * 60}: no such setting; 'pinfold help config' lists"),
    (f"[limits]\n{'k' * 200} = 1", f"2: limits.{'k' * 53}: no such setting; 'pinfold help"),
    ("nonsense = [1]", "1: nonsense: no such setting; 'pinfold help config' lists what there is"),
    ("[[nonsense]]", "1: nonsense: no such setting; 'pinfold help config' lists what there is"),
    ("[[limits]]\nmemory = 1", "1: limits: a section, and there is one"),
    ("[limits.memory]\nx = 1", "1: limits.memory: not a number of bytes, or a text"),
    ("[exclude]", "1: exclude: not a list of texts"), ("seed = ['a']", "1: seed: not a text"),
    ("[token]", "1: token: sections: [[token]], and name, mode below it"),
    ("token = [1]", "1: token: sections: [[token]], and name, mode below it"),
    ("[[token]]\nx = 1", "2: token.x: not one of name, mode, file, env"),
    ("[[token]]\nname = 1", "2: token.name: not a text"),
    ("[[token]]\nname.a = 1", "2: token.name: not a text"),
    *((f'[[token]]\nname = "x"\nmode = "read_only"\n{key} = ""', f"4: token.{key}: it is empty")
      for key in ("file", "env")),
    ('[[token]]\nname = "x"\n[limits]', "1: token: it takes a name and a mode"),
    ("[env]\n'' = '1'\n[limits]", "1: env: not of the form NAME=value"),
    ("[env]\n'A=B' = '1'", '2: env."A=B": no variable can have that name'),
    ('[env]\n"A\\u0000B" = "1"', '2: env."A: no variable can have that name'),
    ('"\\u001b[31m" = 1', '1: "\\x1b[31m": no such setting'),
    ("[env]\nA.b = '1'", "2: env.A: not a text"), ("[[env]]\nA = '1'", "1: env: a section: [env]"),
    ("ttl = 1\nttl = 2", "2: Error while parsing key-value pair: cannot redefine existing integer "
                         "'ttl'"),
])
def test_what_is_wrong_is_told_with_its_line(place, text, said):
    path = place.user(text + "\n")
    assert place.refuse().startswith(f"{path}:{said}")


# What no sandbox takes, whatever else is said: the option's name, a value of its list, what is told.
NO_SANDBOX = [
    ("network", "net", ["bad name"], 'allow entry "bad name": a byte in the name'),
    ("network", "net", ["a.example", "b.example:99999"], 'allow entry "b.example:99999": no port'),
    ("network", "net", ["https://a.example"], 'allow entry "https://a.example": a URL'),
    ("exclude", "exclude", ["../x"], 'pattern "../x": a ".." component leaves the tree'),
    ("exclude", "exclude", ["ok", "!x"], 'pattern "!x": '),
    ("include", "include", ["src/**", "a["], "pattern \"a[\": '[' has no ']'"),
    ("ro", "ro", ["/usr/include", "/proc"], "cannot show /proc in a sandbox: /proc there is"),
    ("rw", "rw", ["/"], "cannot show / in a sandbox: name an absolute path below /"),
    ("ro", "ro", ["/usr/../etc"], "cannot show /usr/../etc in a sandbox: the path has a part"),
    ("limits.open-files", "open-files", 1, "a sandbox needs at least 16 open files"),
    ("limits.processes", "processes", 2, "a sandbox needs at least 3 processes"),
    ("limits.memory", "memory", 1024, "a sandbox needs at least 1048576 bytes of memory"),
    ("limits.cpus", "cpus", 0.001, "a sandbox has 0.01 to 100000 processors"),
]


# Of a service, whose words alone show that no service can be meant: the setting, the option, values,
# what is told.
NO_REGION = "not the name of a region of AWS, such as eu-central-1"
NO_SERVICE = [
    ("region", ["x y", "foo", "us-west", "us-2", "US-west-2", "us-west-2/", "us--2", "us-west-2\n",
                "europe-we-1", "u-west-2", f"us-{60 * 'a'}-2", "evil.example/us-a-1"], NO_REGION),
    ("endpoint", ["foo", "ftp://x", "http://", "https:///", "http:/x", "HTTP://x", "//x", "http://x/y",
                  "http://x?y", "http://x#y", "http://x//", "https://:/x"],
     "not of the form https://HOST or https://HOST:PORT"),
    ("endpoint", ["http://a b", "http://a\n", "http://\u00e4"],
     "not an address: it has a blank in it, or what is no ASCII"),
    ("endpoint", ["https://me:hunter2@x", "hunter2@x"],
     "no user name or password belongs into an address"),
    ("region", [""], "an empty value"), ("endpoint", [""], "an empty value"),
]


@pytest.mark.parametrize("key, value, said", [(key, value, said) for key, values, said in NO_SERVICE
                                              for value in values])
def test_what_can_be_no_service_is_refused_where_it_is_read(place, key, value, said):
    """And not by the first call of a client, nor is a password repeated."""
    path = place.user(f"[agentcore]\n{key} = {json.dumps(value)}\n")
    assert place.refuse() == f"{path}:2: agentcore.{key}: {said}"
    assert place.run("mcp").stderr == f"pinfold: {path}:2: agentcore.{key}: {said}\n"
    path.unlink()
    assert place.refuse(**{f"PINFOLD_{key.upper()}": value}) == f"the variable for --{key}: {said}"
    for command in (["run", "true"], ["plan", "--seed", "."], ["mcp"], ["config", "check"],
                    ["agent", "--model", "scripted:x", "x"]):
        at = 2 if command[0] == "config" else 1
        done = place.run(*command[:at], "--backend", "agentcore", f"--{key}={value}", *command[at:])
        assert done.returncode == 125 and f": {said};" in done.stderr, command
        assert "hunter2" not in done.stderr


@pytest.mark.parametrize("key, value", [
    ("region", "us-gov-west-1"), ("region", "ap-southeast-12"), ("region", "eusc-de-east-1"),
    ("endpoint", "http://127.0.0.1:8000/"), ("endpoint", "https://[::1]:1"), ("endpoint", "https://x")])
def test_what_can_be_a_service_is_taken(place, key, value):
    place.user(f'[agentcore]\n{key} = "{value}"\n')
    assert place.check("--backend", "agentcore")[f"agentcore.{key}"]["values"] == [value]
    assert place.run("mcp", "--backend", "agentcore", f"--{key}={value}").returncode == 0


def test_what_a_project_may_not_say_is_told_before_what_is_wrong_with_it(place):
    place.project_file('rw = ["/"]\n')
    assert place.refuse().startswith("pinfold.toml:1: rw: a file that lies in a project may not set")
    place.project_file('exclude = ["a["]\n')
    assert place.refuse().startswith('pinfold.toml:1: exclude: pattern "a["')


def values_of(option: str, value: Any) -> list[str]:
    """As words of the command line."""
    prefix = "allow=" if option == "net" else ""
    return [f"{prefix}{one}" for one in (value if isinstance(value, list) else [value])]


@pytest.mark.parametrize("key, option, value, said", NO_SANDBOX)
def test_what_no_sandbox_takes_is_refused_where_it_is_read(place, key, option, value, said):
    """Not when the first sandbox is made, which may be days later, by a server's client."""
    section, _, name = key.rpartition(".")
    line = f"{name} = {json.dumps(value)}\n"
    path = place.user(f"\n[{section}]\n{line}" if section else f"\n\n{line}")
    assert place.refuse().startswith(f"{path}:3: {key}: {said}")
    done = place.run("mcp")
    assert done.returncode == 125 and f"{path}:3: {key}: {said}" in done.stderr
    path.unlink()
    words = [f"--{option}={one}" for one in values_of(option, value)]
    assert place.refuse(*words).startswith(f"--{option}: {said}")
    if not isinstance(value, list) or option == "net":
        variable = f"PINFOLD_{option.upper().replace('-', '_')}"
        told = place.refuse(**{variable: values_of(option, value)[-1]})
        assert told.startswith(f"the variable for --{option}: {said}")
    done = place.run("mcp", *words)
    assert done.returncode == 125 and said in done.stderr


# What is right alone, and not together: a policy, where it is told to be wrong, and as options.
CLASHES = [
    ("sync = true", "1: sync: without a seed it has nowhere to go", ["--sync"],
     "--sync without --seed has nowhere to go"),
    ('ttl = 1\nseed-mode = "overlay"', "2: seed-mode: overlay without a seed has nothing to show",
     ["--seed-mode", "overlay"], "--seed-mode overlay without --seed has nothing to show"),
    ('seed = "."\nseed-mode = "overlay"\nbackend = "local"', '2: seed-mode: overlay needs backend = '
     '"isolated"', ["--seed", ".", "--seed-mode", "overlay", "--backend", "local"],
     "--seed-mode overlay needs --backend isolated"),
    ('workspace = "w"\nbackend = "agentcore"', "1: workspace: it is a directory of this machine",
     ["--workspace", "w", "--backend", "agentcore"], "--workspace is a directory of this machine"),
    ('workspace = "w"\nbackend = "daytona"', "1: workspace: it is a directory of this machine",
     ["--workspace", "w", "--backend", "daytona"], "--workspace is a directory of this machine"),
    ('backend = "daytona"\n[daytona]\nimage = "a"\nsnapshot = "b"', "4: daytona.snapshot: there is "
     "an image, too", ["--backend", "daytona", "--image", "a", "--snapshot", "b"],
     "--snapshot and --image: a sandbox is made of one of them"),
    ('backend = "local"\n[limits]\nmemory = "1G"', '3: limits.memory: it needs backend = "isolated"',
     ["--backend", "local", "--memory", "1G"], "--memory needs --backend isolated"),
    ('backend = "daytona"\nnetwork = "none"', '2: network: it needs backend = "isolated"',
     ["--backend", "daytona", "--net", "none"], "--net needs --backend isolated"),
    ('[http]\nlisten = "0.0.0.0:0"', "2: http.listen: others can reach that",
     ["--http", "0.0.0.0:0"], "--http 0.0.0.0:0: others can reach that"),
    ('[http]\nlisten = "[::]:0"', "2: http.listen: others can reach that",
     ["--http", "[::]:0"], "--http [::]:0: others can reach that"),
    ('[http]\nlisten = "127.0.0.1:0"\n' + 2 * '[[token]]\nname = "x"\nmode = "read_only"\n',
     "6: token: there are two of the name x",
     ["--http", "127.0.0.1:0", "--token", "x:read_only", "--token", "x:read_write"],
     "--token x: there are two of this name"),
]


@pytest.mark.parametrize("text, said, words, said_of_words", CLASHES)
def test_what_does_not_go_together_is_found_before_the_server_starts(place, text, said, words,
                                                                     said_of_words):
    path = place.user(text + "\n")
    told = place.refuse()
    assert told.startswith(f"{path}:{said}")
    done = place.run("mcp")
    assert (done.returncode, done.stderr) == (125, f"pinfold: {told}\n")
    error = json.loads(place.run("config", "check", "--json").stdout)["error"]
    assert error == {"type": "ValueError", "message": told}
    path.unlink()
    assert place.refuse(*words).startswith(said_of_words)
    done = place.run("mcp", *words)
    assert done.returncode == 125 and f": {said_of_words}" in done.stderr


def test_who_runs_something_is_told_which_line_of_the_policy_it_is(place):
    path = place.user('sync = true\n')
    told = f"pinfold: {path}:1: sync: without a seed"
    done = place.run("run", "--config", path, "touch ran")
    assert done.returncode == 125 and done.stderr.startswith(told)
    assert place.run("run", "-q", "--backend", "local", "--config", path, "--seed", ".",
                     "true").returncode == 0
    done = place.run("run", "--config", path, "--sync", "touch ran")
    assert done.returncode == 125 and "run: --sync without --seed has nowhere" in done.stderr
    path.unlink()
    done = place.run("mcp", PINFOLD_BACKEND="local", PINFOLD_MEMORY="1G")
    assert done.stderr == 'pinfold: the variable for --memory: it needs backend = "isolated"\n'


@pytest.mark.parametrize("where, words", [
    ("seed", ["--seed", "seed", "--sync"]), ("home", ["--seed", "seed", "--sync=home"]),
    ("kept", ["--workspace", "kept"]), ("shown", ["--rw", "shown"])])
@pytest.mark.parametrize("name", ["trail", "there", "below/trail", "leads"])
def test_a_record_is_not_made_where_it_could_be_changed(place, where, words, name):
    """Neither by a run nor by a server, which says so before it has a client."""
    for directory in "seed", "home", "kept", "shown", "elsewhere":
        (place.project / directory / "below").mkdir(parents=True)
    (place.project / where / "there").touch()
    (place.project / "elsewhere/leads").symlink_to(place.project / where)
    audit = f"elsewhere/leads/{name}" if name == "leads" else f"{where}/{name}"
    before = sorted(place.project.rglob("*"))
    said = f"--audit {audit}: the command could change what lies in "
    assert place.refuse("--audit", audit, *words).startswith(said)
    for command in (["run", "--json"], ["mcp"]):
        done = place.run(*command, "--audit", audit, *words, *(["true"] if command[0] == "run" else []))
        assert done.returncode == 125
        assert said in done.stdout + done.stderr
    assert sorted(place.project.rglob("*")) == before
    assert place.run("mcp", "--audit", "elsewhere/trail", *words).returncode == 0


def test_options_for_HTTP_without_HTTP_are_told_to_be_for_nothing(place):
    assert place.refuse("--token", "x:read_only").startswith("--token goes with --http")
    place.user('[[token]]\nname = "x"\nmode = "read_only"\n[http]\nresume = 3\n')
    assert place.check()["token"]["values"] == ["x:read_only"]  # for another day
    assert place.check("--http", "0.0.0.0:1", "--http-anywhere")["http.listen"]["in_force"]


@pytest.mark.parametrize("address", ["example.org:0", "[::zz]:0", "127.1:0", "[127.0.0.1]:0", "::1:0",
                                     "localhost.:0", f"{60 * '1'}:0", " 127.0.0.1:0", "[]:0"])
def test_an_address_that_nobody_can_listen_at_is_refused_where_it_is_read(place, address):
    said = "an address is 127.0.0.1, [::1], localhost, or another in numbers"
    path = place.user(f'[http]\nlisten = "{address}"\n')
    assert place.refuse() == f"{path}:2: http.listen: {said}"
    assert place.run("mcp").stderr == f"pinfold: {path}:2: http.listen: {said}\n"
    path.unlink()
    assert f"--http {address}: {said}" in place.run("mcp", "--http", address).stderr


# One setting of each kind that another can be at odds with.
SETTINGS = ['seed = "."', 'seed-mode = "overlay"', 'sync = true', 'sync = "home"', 'workspace = "w"',
            'network = ["a.example"]', 'ro = ["/usr"]', 'env.A = "b"', 'limits.memory = "1G"',
            'limits.timeout = 5', 'agentcore.region = "eu-central-1"', 'daytona.image = "a"',
            'daytona.snapshot = "b"', 'http.hosts = ["a.example"]', 'audit = "trail"', 'ttl = 9']


@pytest.mark.parametrize("backend", ["isolated", "local", "agentcore", "daytona"])
def test_the_server_starts_with_what_the_check_accepts_and_with_nothing_else(place, backend):
    accepted = 0
    for one, other in itertools.combinations(SETTINGS, 2):
        if one.partition(" ")[0] == other.partition(" ")[0]:
            continue
        place.user(f'backend = "{backend}"\n{one}\n{other}\n')
        check = place.run("config", "check", "--json")
        server = place.run("mcp", "-q")
        assert (check.returncode, server.returncode) in ((0, 0), (1, 125)), (one, other)
        assert check.stderr == server.stderr or check.returncode == 0, (one, other)
        accepted += check.returncode == 0
    assert 0 < accepted < len(SETTINGS) ** 2 / 2


def test_a_wrong_file_is_told_as_json_too(place):
    path = place.user("nonsense = 1\n")
    done = place.run("config", "check", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["message"].startswith(f"{path}:1: nonsense")


def test_a_variable_that_is_wrong_is_named_by_its_option(place):
    assert place.refuse(PINFOLD_TTL="soon").startswith("the variable for --ttl: not ")
    assert place.refuse(PINFOLD_MEMORY="").startswith("the variable for --memory: not ")
    assert place.refuse(PINFOLD_SYNC="").startswith("the variable for --sync: an empty name")
    assert place.refuse(PINFOLD_CONFIG="") == (
        "the variable PINFOLD_CONFIG: an empty name; give a file, or unset it")


def test_the_file_of_the_user_is_where_XDG_CONFIG_HOME_says(place):
    path = place.project / "elsewhere/pinfold/pinfold.toml"
    path.parent.mkdir(parents=True)
    path.write_text("ttl = 7\n")
    settings = place.check(XDG_CONFIG_HOME=str(place.project / "elsewhere"))
    assert settings["ttl"]["source"] == "user"
    assert place.check(XDG_CONFIG_HOME="elsewhere")["ttl"]["source"] == "default"


@pytest.mark.parametrize("name", ["", ".", "relative"])
def test_a_home_that_begins_in_the_project_is_none(place, name):
    """Or the project's own file would be the user's, which may say everything."""
    path = place.project / name / USER
    path.parent.mkdir(parents=True)
    path.write_text('backend = "local"\naudit = "~/audit"\n')
    done = place.run("config", "check", HOME=name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == ["user     none: HOME is not set to a directory",
                                            "project  pinfold.toml: not there"]
    settings = place.check(HOME=name)
    assert {setting["source"] for setting in settings.values()} == {"default"}
    place.project_file('exclude = ["*.o"]\n')
    assert place.check(HOME=name)["exclude"]["source"] == "project"
    named = place.check("--config", path, HOME=name)
    assert named["audit"]["values"] == [f"{path.parent}/~/audit"]


def test_files_that_others_could_change_are_refused(place):
    path = place.user("ttl = 1\n")
    path.chmod(0o666)
    assert place.refuse() == f"read {path}: everybody can write to it; chmod o-w"
    path.unlink()
    os.mkfifo(path)
    assert place.refuse() == f"read {path}: not a regular file"
    path.unlink()
    path.write_text("#" * 300000)
    assert place.refuse() == f"read {path}: larger than 256 KiB"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(place):
    path = place.user("ttl = 1\n")
    os.chown(path, 12345, -1)
    assert place.refuse().startswith(f"read {path}: it belongs to another user")


def test_the_home_of_somebody_else_has_no_policy_of_ours(tmp_path, as_stranger):
    home = tmp_path / "home"
    (home / ".config/pinfold").mkdir(parents=True)
    (home / USER).write_text("ttl = 1\n")
    home.chmod(0o700)
    done = as_stranger("config", "check", HOME=str(home), XDG_CONFIG_HOME="")
    if os.getuid() == 0:
        assert (done.returncode, done.stderr) == (0, "") and "not there" in done.stdout
    else:
        assert f"{home / USER}:1" in done.stdout


def test_a_file_that_is_named_and_may_not_be_read_is_told_so(tmp_path, as_stranger):
    """It is there, so that 'no such file' would send its reader looking for a mistake in the name."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "chosen.toml").write_text("ttl = 1\n")
    closed.chmod(0o700 if os.getuid() == 0 else 0)
    done = as_stranger("config", "check", "--config", str(closed / "chosen.toml"))
    closed.chmod(0o700)
    assert (done.returncode, done.stderr) == (
        125, f"pinfold: read {closed}/chosen.toml: Permission denied\n")


def test_relative_paths_begin_at_the_file(place):
    named = place.home / "deep/chosen.toml"
    named.parent.mkdir()
    named.write_text('seed = "here"\naudit = "~/audit"\nro = ["there", "/abs"]\n')
    settings = place.check("--config", named)
    assert settings["seed"]["values"] == [f"{named.parent}/here"]
    assert settings["audit"]["values"] == [f"{place.home}/audit"]
    assert settings["ro"]["values"] == [f"{named.parent}/there", "/abs"]
    named.write_text('seed = "~"\naudit = "~else"\n')
    settings = place.check("--config", named)
    assert settings["seed"]["values"] == [f"{place.home}"]
    assert settings["audit"]["values"] == [f"{named.parent}/~else"]
    named.write_text('seed = "~/x"\nsync = "~"\n')  # no home is not /, nor back to the seed
    settings = place.check("--config", named, HOME="")
    assert settings["seed"]["values"] == [f"{named.parent}/~/x"]
    assert settings["sync"]["values"] == [f"{named.parent}/~"]


def test_lists_are_the_strongest_ones_but_excludes_and_variables_add_up(place):
    place.user('include = ["a"]\nexclude = ["b"]\n')
    settings = place.check("--include", "c", "--include", "d", "--exclude", "e")
    assert settings["include"]["values"] == ["c", "d"]
    assert settings["exclude"]["values"] == ["b", "e"]


def test_what_is_for_another_backend_is_shown_and_not_used(place):
    place.user('[daytona]\ntarget = "eu"\n')
    assert place.check()["daytona.target"]["in_force"] is False
    assert place.check("--backend", "daytona")["daytona.target"]["in_force"] is True
    assert place.run("run", "--config", place.home / USER, "--backend", "local", "-q",
                     "true").returncode == 0


@pytest.mark.parametrize("said", ["", 'backend = "local"\n', 'backend = "daytona"\n'])
def test_the_backend_of_an_option_says_which_settings_count(place, said):
    """As 'config check' tells: those of the backend that is chosen, and no others."""
    path = place.user(f'{said}[agentcore]\nendpoint = "http://127.0.0.1:1"\n'
                      '[daytona]\nimage = "a"\nsnapshot = "b"\n')
    for command in (["run", "true"], ["plan", "--seed", "."], ["agent", "--model", "scripted:x", "x"],
                    ["mcp"]):
        word, *rest = command
        # What is there twice shows that it is there, and a region that is not there what is not.
        done = place.run(word, "--config", path, "--backend", "daytona", *rest)
        assert done.returncode == 125 and "daytona.snapshot: there is an image, too" in done.stderr
        done = place.run(word, "-q", "--config", path, "--backend", "local", *rest)
        assert "snapshot" not in done.stderr and "endpoint" not in done.stderr, command
    done = place.run("run", "--config", path, "--backend", "agentcore", "true",
                     AWS_REGION="us-west-2", AWS_ACCESS_KEY_ID="A", AWS_SECRET_ACCESS_KEY="B")
    assert done.returncode == 125 and "127.0.0.1" in done.stderr


def test_what_a_policy_says_of_other_runs_is_no_mistake_of_this_one(place):
    """Only what was said for it: of a terminal's output, of what a reader brings home, and of a
    workspace that a plan would look at."""
    seed = place.project / "seed"
    seed.mkdir()
    (seed / "a.txt").write_text("a\n")
    (place.project / "kept").mkdir()
    (place.project / "kept/b.md").write_text("b\n")
    (place.project / "script.json").write_text(json.dumps({"turns": [{"reply": "Read."}]}))
    agent = ["agent", "-q", "--model", "scripted:script.json", "--read-only"]
    for sync in "true", f'"{place.project}/home"':
        path = place.user(f'backend = "local"\nseed = "{seed}"\nsync = {sync}\n'
                          "[limits]\nmax-output = 1000\n")
        done = place.run("run", "--config", path, "--tty", "true")
        assert done.returncode == 125 and "stdin is not a terminal" in done.stderr
        done = place.run(*agent, "--config", path, "x")
        assert (done.returncode, done.stdout, done.stderr) == (0, "Read.\n", "")
        done = place.run("plan", "--config", path)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "would seed 1 files (2 B)")
        done = place.run("plan", "--config", path, "--workspace", "kept")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "would sync 1 files (2 B)")
        # What is said for it is as wrong as ever.
        assert "--max-output do not go with it" in place.run(
            "run", "--config", path, "--tty", "--max-output", "1K", "true").stderr
        assert "nothing to write back" in place.run(*agent, "--config", path, "--sync=x", "x").stderr
        assert "--sync needs --workspace" in place.run("plan", "--config", path, "--sync").stderr


def test_run_reads_a_policy_only_when_it_is_named(place, backend):
    seed = place.project / "seed"
    seed.mkdir()
    (seed / "kept.txt").write_text("kept\n")
    (seed / "left.log").write_text("log\n")
    (seed / PROJECT).write_text("this is not read\n")
    path = place.user(f'seed = "{seed}"\nexclude = ["*.log"]\n[env]\nWORD = "word"\n'
                      "[limits]\ntimeout = 50\n")
    done = place.run("run", "-q", *backend, "ls; echo $WORD")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")
    done = place.run("run", "-q", *backend, "--config", path, "ls; echo $WORD")
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept.txt\nword\n", "")
    # Options win; of variables those that have another name stay.
    done = place.run("run", "-q", *backend, "--config", path, "--timeout", "0.2", "sleep 30")
    assert done.returncode == 124
    done = place.run("run", "-q", *backend, f"--config={path}", "--env", "WORD=other", "--",
                     "sh", "-c", "echo $WORD $0", "--config=x")
    assert done.stdout == "other --config=x\n"


def test_a_policy_does_not_come_home(place):
    seed = place.project / "seed"
    seed.mkdir()
    path = seed / PROJECT
    path.write_text('seed = "."\nsync = true\ninclude = ["**"]\n')
    before = path.read_text()
    done = place.run("run", "-q", "--backend", "local", "--config", path,
                     "echo 'backend = \"local\"' > pinfold.toml; echo new > new.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert (seed / "new.txt").read_text() == "new\n"
    assert path.read_text() == before


def test_plan_takes_of_a_policy_what_concerns_it(place):
    seed = place.project / "seed"
    seed.mkdir()
    (seed / "a.txt").write_text("a\n")
    (seed / "b.log").write_text("b\n")
    path = place.user(f'seed = "{seed}"\nexclude = ["*.log"]\n[limits]\nmemory = "1G"\n')
    lines = place.run("plan", "--config", path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["copy", "skip", "would"]


def test_variables_have_the_names_that_the_file_gives_them(place, backend):
    names = ["A", "a.b", "x y", 'q"q', "\\", "ü", "npm_config_//r/:k"]
    path = place.user("[env]\n" + "".join(f"{json.dumps(name)} = 'value'\n" for name in names))
    done = place.run("run", "-q", *backend, "--config", path, "/usr/bin/env", "-0")
    assert done.returncode == 0, done.stderr
    assert {f"{name}=value" for name in names} <= set(done.stdout.split("\0"))


@pytest.mark.parametrize("args, said", [
    (["config"], "say 'pinfold config check'"),
    (["config", "chek"], "chek: it can only check"),
    (["config", "check", "x"], "x: takes options alone"),
    (["config", "check", "--memory", "1T"], "--memory 1T: not a number of bytes"),
])
def test_wrong_calls_are_explained(place, args, said):
    done = place.run(*args)
    assert done.returncode == 125
    assert said in done.stderr


def words_of(command: str) -> list[str]:
    """How each command that takes --config is called."""
    script = ["--model", "scripted:script.json"]
    return {"run": ["run", "true"], "shell": ["shell"], "agent": ["agent", *script, "x"],
            "plan": ["plan", "--seed", "."], "mcp": ["mcp"], "config": ["config", "check"]}[command]


def test_every_command_that_takes_a_policy_reads_it(place):
    """That it takes the option is no proof: it may be another program that reads the file."""
    path = place.user("nonsense = 1\n")
    reads = [command for command in ("run", "shell", "agent", "plan", "mcp", "config", "doctor")
             if "--config FILE" in place.run("help", command).stdout]
    assert reads == ["run", "shell", "agent", "plan", "mcp", "config"]
    for command in reads:
        word, *rest = words_of(command)
        at = 1 if command == "config" else 0
        done = place.run(word, *rest[:at], "--config", path, *rest[at:])
        assert (done.returncode, done.stdout) == (1 if command == "config" else 125, ""), command
        assert done.stderr.startswith(f"pinfold: {path}:1: nonsense: no such setting"), command


def test_what_a_policy_says_holds_for_an_agent(place):
    """And its options win, those too that an agent has in a form of its own."""
    seed = place.project / "seed"
    seed.mkdir()
    (seed / "kept.txt").write_text("kept\n")
    (seed / "left.log").write_text("log\n")
    look = 'ls; echo "$WORD"; echo new > new.txt; echo new > new.md'
    calls = [{"tool": "execute", "input": {"command": look}, "id": "1"},
             {"tool": "execute", "input": {"command": "sleep 30"}, "id": "2"}]
    (place.project / "script.json").write_text(json.dumps({"turns": [{"reply": calls},
                                                                     {"reply": "Done."}]}))
    path = place.user(f'backend = "local"\nseed = "{seed}"\nsync = "{place.project}/home"\n'
                      'include = ["*.md"]\nexclude = ["*.log"]\n[env]\nWORD = "word"\n'
                      "[limits]\ntimeout = 0.2\n")
    words = ["agent", "-q", "--model", "scripted:script.json", "--config", path, "--yes"]

    def results(*more: str) -> list[str]:
        done = place.run(*words, "--json", *more, "x")
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert events[0]["backend"] == "local"
        told = {event["number"]: event["text"] for event in events if event["event"] == "result"}
        return [told[number] for number in sorted(told)]

    listed, slept = results()
    assert "kept.txt\nword" in listed and "left.log" not in listed and "124" in slept
    assert sorted(path.name for path in (place.project / "home").iterdir()) == ["new.md"]
    results("--sync=other", "--include", "*.txt")
    assert sorted(path.name for path in (place.project / "other").iterdir()) == ["kept.txt", "new.txt"]
    assert sorted(path.name for path in (place.project / "home").iterdir()) == ["new.md"]


def test_a_policy_that_is_wrong_stops_a_run(place, run: Callable[..., Any]):
    path = place.user("nonsense = 1\n")
    done = run("--config", path, "touch ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"pinfold: {path}:1: nonsense: no such setting")
