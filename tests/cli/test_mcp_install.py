# SPDX-License-Identifier: Apache-2.0
"""'pinfold mcp install': what is printed, and what becomes of files that belong to others."""

import json
import os
import re
import resource
import signal
import subprocess
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

from helpers import BUILD

# Files as these programs leave them, and as people write them.
CLAUDE_JSON = """{
  "numStartups": 12,
  "installMethod": "native",
  "tipsHistory": {"shift-enter": 3, "memory-command": 10},
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp/"
    }
  },
  "projects": {
    "/home/x/p": {"allowedTools": [], "history": [{"display": "caf\\u00e9 {", "n": 1.50}]}
  },
  "userID": "0123456789abcdef"
}"""
VSCODE_JSON = """// What we use in this project
{
\t"inputs": [
\t\t{ "type": "promptString", "id": "key", "description": "API \\"key\\"", "password": true },
\t],
\t"servers": {
\t\t// Of the whole team
\t\t"memory": {
\t\t\t"command": "npx",
\t\t\t"args": ["-y", "@example/server-memory"], // no "version"
\t\t}, /* more to come */
\t},
}
"""
CODEX_TOML = """# Codex
model = "o4"
approval_policy = "on-request"  # ask

[mcp_servers.docs]
command = "npx"
args = [
    "-y",
    "docs-mcp",  # a comment
]
env = { "API_KEY" = "v#lue" }

[profiles.fast]
model = '''
[mcp_servers.not]
'''
"""


class Home:
    def __init__(self, root: Path):
        self.home, self.project = root / "home", root / "project"
        self.home.mkdir()
        self.project.mkdir()

    def run(self, *args: Any, **env: str) -> subprocess.CompletedProcess:
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PINFOLD_", "XDG_", "CODEX_"))}
        return subprocess.run([str(BUILD / "pinfold"), "mcp", "install", *map(str, args)],
                              cwd=self.project, env={**clean, "HOME": str(self.home), **env},
                              capture_output=True, text=True, timeout=60)

    def write(self, *args: Any, **env: str) -> str:
        done = self.run(args[0], "--write", *args[1:], **env)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return done.stderr

    def refuse(self, *args: Any) -> str:
        done = self.run(args[0], "--write", *args[1:])
        assert (done.returncode, done.stdout) == (125, "")
        return done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def without_comments(text: str) -> Any:
    """JSON as VS Code reads it; good enough for the texts above."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or "", text, flags=re.S)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def command() -> str:
    return str(BUILD / "pinfold")


@pytest.mark.parametrize("client, expected", [
    ("claude-code", {"mcpServers": {"pinfold": {"type": "stdio", "command": command(),
                                                "args": ["mcp", "--seed", "."]}}}),
    ("cursor", {"mcpServers": {"pinfold": {"command": command(),
                                           "args": ["mcp", "--seed", "${workspaceFolder}"]}}}),
    ("vscode", {"servers": {"pinfold": {"type": "stdio", "command": command(),
                                        "args": ["mcp", "--seed", "${workspaceFolder}"]}}}),
])
def test_json_is_printed_and_nothing_is_written(home, client, expected):
    done = home.run(client)
    assert (done.returncode, json.loads(done.stdout)) == (0, expected)
    assert "--write merges it" in done.stderr
    assert list(home.project.iterdir()) == list(home.home.iterdir()) == []


@pytest.mark.parametrize("path", [str(BUILD), f"/nowhere:{BUILD}:/bin", "."])
def test_a_command_that_was_found_by_its_name_is_named_by_its_place(home, path):
    (home.project / "pinfold").symlink_to(BUILD / "pinfold")
    done = subprocess.run(["pinfold", "mcp", "install", "cursor"], cwd=home.project,
                          executable=BUILD / "pinfold", env={"PATH": path, "HOME": str(home.home)},
                          capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["mcpServers"]["pinfold"]["command"] == command()


def test_a_server_that_asks_for_no_token_is_named_without_one(home):
    done = home.run("cursor", "--url", "http://127.0.0.1:8000/mcp")
    assert json.loads(done.stdout) == {
        "mcpServers": {"pinfold": {"url": "http://127.0.0.1:8000/mcp"}}}


def test_toml_is_printed_for_codex(home):
    done = home.run("codex", "-q")
    # Codex has no roots, and starts its servers in the directory that it works in.
    assert tomllib.loads(done.stdout) == {
        "mcp_servers": {"pinfold": {"command": command(), "args": ["mcp", "--seed", "."]}}}
    assert done.stderr == ""
    done = home.run("codex", "-q", "--", "--seed", 'a "b"\\\n', "--net", "allow=é")
    assert tomllib.loads(done.stdout)["mcp_servers"]["pinfold"]["args"] == [
        "mcp", "--seed", 'a "b"\\\n', "--net", "allow=é"]


def test_words_are_the_server_s_own(home):
    done = home.run("claude-code", "-q", "--name", "pen", "--", "--read-only", "--memory", "1G")
    assert json.loads(done.stdout)["mcpServers"]["pen"]["args"] == ["mcp", "--read-only", "--memory",
                                                                    "1G"]


@pytest.mark.parametrize("client, expected", [
    ("claude-code", {"type": "http", "url": "http://127.0.0.1:8765/mcp",
                     "headers": {"Authorization": "Bearer ${PEN_TOKEN}"}}),
    ("cursor", {"url": "http://127.0.0.1:8765/mcp",
                "headers": {"Authorization": "Bearer ${env:PEN_TOKEN}"}}),
    ("vscode", {"type": "http", "url": "http://127.0.0.1:8765/mcp",
                "headers": {"Authorization": "Bearer ${env:PEN_TOKEN}"}}),
    ("codex", {"url": "http://127.0.0.1:8765/mcp", "bearer_token_env_var": "PEN_TOKEN"}),
])
def test_a_server_that_runs_is_named_by_its_address(home, client, expected):
    done = home.run(client, "-q", "--url", "http://127.0.0.1:8765/mcp", "--token-env", "PEN_TOKEN")
    read = tomllib.loads if client == "codex" else json.loads
    (servers,) = read(done.stdout).values()
    assert servers == {"pinfold": expected}


@pytest.mark.parametrize("client, scope, path", [
    ("claude-code", None, "project/.mcp.json"), ("claude-code", "user", "home/.claude.json"),
    ("codex", None, "home/.codex/config.toml"), ("codex", "project", "project/.codex/config.toml"),
    ("cursor", None, "project/.cursor/mcp.json"), ("cursor", "user", "home/.cursor/mcp.json"),
    ("vscode", None, "project/.vscode/mcp.json"),
])
def test_a_file_is_made_where_the_client_looks(home, tmp_path, client, scope, path):
    said = home.write(client, *(["--scope", scope] if scope else []))
    file = tmp_path / path
    assert said.endswith(": written\n")
    read = tomllib.loads if path.endswith("toml") else json.loads
    (servers,) = read(file.read_text()).values()
    assert servers["pinfold"]["command"] == command()
    assert file.stat().st_mode & 0o777 == (0o600 if path.startswith("home") else 0o644)
    assert [name.name for name in file.parent.iterdir()] == [file.name]
    assert "it is there already" in home.write(client, *(["--scope", scope] if scope else []))


def test_variables_of_the_clients_are_followed(home, tmp_path):
    (tmp_path / "config/Code/User").mkdir(parents=True)
    (tmp_path / "codex").mkdir()
    home.write("vscode", "--scope", "user", XDG_CONFIG_HOME=str(tmp_path / "config"))
    home.write("codex", CODEX_HOME=str(tmp_path / "codex"))
    assert (tmp_path / "config/Code/User/mcp.json").exists()
    assert (tmp_path / "codex/config.toml").exists()


def test_everything_else_in_a_json_file_stays_byte_by_byte(home):
    file = home.home / ".claude.json"
    file.write_text(CLAUDE_JSON)
    file.chmod(0o640)
    said = home.write("claude-code", "--scope", "user")
    text = file.read_text()
    before, after = CLAUDE_JSON.split('/mcp/"\n    }')
    assert text.startswith(before) and text.endswith(after)
    expected = json.loads(CLAUDE_JSON)
    expected["mcpServers"]["pinfold"] = {"type": "stdio", "command": command(), "args": ["mcp"]}
    assert json.loads(text) == expected
    assert list(json.loads(text)) == list(expected)
    backup = file.with_name(".claude.json.bak")
    assert f"what was there is in {backup}" in said
    assert backup.read_text() == CLAUDE_JSON
    assert file.stat().st_mode & 0o777 == backup.stat().st_mode & 0o777 == 0o640


def test_an_entry_is_replaced_and_each_backup_kept(home):
    file = home.project / ".mcp.json"
    home.write("claude-code")
    first = file.read_text()
    home.write("claude-code", "--", "--read-only")
    second = json.loads(file.read_text())
    assert second["mcpServers"]["pinfold"]["args"] == ["mcp", "--read-only"]
    home.write("claude-code", "--name", "other")
    third = json.loads(file.read_text())
    assert third["mcpServers"]["pinfold"] == second["mcpServers"]["pinfold"]
    assert list(third["mcpServers"]) == ["pinfold", "other"]
    assert file.with_name(".mcp.json.bak").read_text() == first
    assert json.loads(file.with_name(".mcp.json.bak1").read_text()) == second


def test_comments_and_last_commas_of_vs_code_stay(home):
    file = home.project / ".vscode/mcp.json"
    file.parent.mkdir()
    file.write_text(VSCODE_JSON)
    home.write("vscode")
    text = file.read_text()
    for line in VSCODE_JSON.splitlines():
        assert line in text
    assert '\n\t\t"pinfold": {' in text
    expected = without_comments(VSCODE_JSON)
    expected["servers"]["pinfold"] = {"type": "stdio", "command": command(),
                                      "args": ["mcp", "--seed", "${workspaceFolder}"]}
    assert without_comments(text) == expected
    home.write("vscode", "--", "--read-only")
    expected["servers"]["pinfold"]["args"] = ["mcp", "--read-only"]
    assert without_comments(file.read_text()) == expected
    for line in VSCODE_JSON.splitlines():
        assert line in file.read_text()


@pytest.mark.parametrize("text", [
    "", "  \n", "{}", "{ }\n", "{\n}\n", '{"a":1}', '{"a": 1, "mcpServers": {}}',
    '{"mcpServers":{"a":{}}}', '{"mcpServers": {\n}}', '\ufeff{"a": [1, {"}": "{"}]}',
    '{"mcpServers": {"a": {"args": ["}", "//", "/*", "\\\\", "\\"", ","]}}}',
    '{\r\n  "x": {},\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n',
    '{"\\u006dcpServers": {"pin\\u0066old": 5}, "z": null}', '{"mcpServers": {"pinfold": {}}, "b": 2}',
])
def test_whatever_form_the_json_has_it_means_the_same_afterwards(home, text):
    file = home.project / ".mcp.json"
    file.write_bytes(text.encode())
    home.write("claude-code")
    expected = json.loads(text.encode().decode("utf-8-sig")) if text.strip() else {}
    expected.setdefault("mcpServers", {})["pinfold"] = {
        "type": "stdio", "command": command(), "args": ["mcp", "--seed", "."]}
    changed = file.read_bytes()
    assert json.loads(changed.decode("utf-8-sig")) == expected
    assert changed.count(b"\r\n") == changed.count(b"\n") or b"\r" not in text.encode()


@pytest.mark.parametrize("text, why", [
    ("{", "line 1:"), ('{"a": 1,}', "line 1:"), ("// c\n{}", "line 1:"), ("[]", "no JSON object"),
    ('{"a": 1} x', "line 1:"), ('{"a": 1, "a": 2}', "line 1: duplicate object key"),
    ('{"mcpServers": []}', "its section of servers is no object"),
    ('{"mcpServers": null}', "its section of servers is no object"), ('{"a": "\ud800"}', "line 1:"),
    ("nul\0", "it holds a NUL byte"),
])
def test_what_cannot_be_read_is_refused_and_left_alone(home, text, why):
    file = home.project / ".mcp.json"
    file.write_bytes(text.encode(errors="surrogatepass"))
    before = file.read_bytes()
    said = home.refuse("claude-code")
    assert str(file) in said and why in said
    assert file.read_bytes() == before
    assert [path.name for path in home.project.iterdir()] == [".mcp.json"]


def pipe(file: Path) -> None:
    os.mkfifo(file)


def large(file: Path) -> None:
    with file.open("wb") as out:
        out.truncate(8 * 1024 * 1024 + 1)


def loop(file: Path) -> None:
    file.symlink_to(file.name)


@pytest.mark.parametrize("make, why", [
    (pipe, "not a regular file of at most 8 MiB"), (large, "not a regular file of at most 8 MiB"),
    (Path.mkdir, "not a regular file of at most 8 MiB"), (loop, "Too many levels of symbolic links"),
])
def test_what_is_no_file_of_a_client_is_refused_at_once(home, make, why):
    file = home.home / ".claude.json"
    make(file)
    said = home.refuse("claude-code", "--scope", "user")
    assert str(file) in said and why in said
    assert [path.name for path in home.home.iterdir()] == [".claude.json"]


@pytest.mark.parametrize("make", [pipe, large, Path.mkdir])
def test_what_a_link_leads_to_is_refused_by_the_name_of_the_link(home, make):
    make(home.project / "elsewhere")
    (home.project / ".mcp.json").symlink_to("elsewhere")
    assert "read .mcp.json: not a regular file of at most 8 MiB" in home.refuse("claude-code")


def test_a_file_whose_directory_is_none_is_refused(home):
    (home.home / ".cursor").write_text("mine")
    said = home.refuse("cursor", "--scope", "user")
    assert f"open {home.home}/.cursor/mcp.json: Not a directory" in said
    assert (home.home / ".cursor").read_text() == "mine"
    said = home.run("cursor", "--scope", "user", "--write", HOME=f"{home.home}/none").stderr
    assert f"make {home.home}/none/.cursor: No such file or directory" in said


def test_a_file_that_cannot_be_kept_is_not_changed(home):
    file = home.project / ".mcp.json"
    file.write_text("{}")
    for number in range(100):
        file.with_name(f".mcp.json.bak{number or ''}").write_text("old")
    assert ".mcp.json.bak99: File exists" in home.refuse("claude-code")
    assert file.read_text() == "{}"
    assert {path.read_text() for path in home.project.iterdir() if path != file} == {"old"}
    assert len(list(home.project.iterdir())) == 101


@pytest.mark.parametrize("limit, name", [(0, ".mcp.json.pinfold-"), (1000, ".mcp.json.bak: ")])
def test_a_file_that_there_is_no_room_for_is_not_changed(home, limit, name):
    """What is written is shorter than what is kept."""
    text = json.dumps({"mcpServers": {"pinfold": {"command": "c" * 2000}}})
    file = home.project / ".mcp.json"
    file.write_text(text)
    done = subprocess.run(
        [BUILD / "pinfold", "mcp", "install", "claude-code", "--write"], cwd=home.project,
        preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))),
        env={"PATH": os.environ["PATH"], "HOME": str(home.home)}, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=60)
    assert done.returncode == 125 and done.stderr.endswith(b": File too large\n"), done.stderr
    assert name.encode() in done.stderr
    assert file.read_text() == text
    assert list(home.project.iterdir()) == [file]


def test_everything_else_in_codex_s_file_stays_line_by_line(home):
    file = home.home / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(CODEX_TOML)
    home.write("codex")
    text = file.read_text()
    assert text.startswith(CODEX_TOML + "\n[mcp_servers.pinfold]\n")
    expected = tomllib.loads(CODEX_TOML)
    expected["mcp_servers"]["pinfold"] = {"command": command(), "args": ["mcp", "--seed", "."]}
    assert tomllib.loads(text) == expected
    # Another section behind it, and again: it is exchanged where it stands.
    file.write_text(text + "\n# the end\n[tui]\nnotifications = true\n")
    home.write("codex", "--", "--read-only")
    expected["mcp_servers"]["pinfold"]["args"] = ["mcp", "--read-only"]
    expected["tui"] = {"notifications": True}
    assert tomllib.loads(file.read_text()) == expected
    assert file.read_text().endswith("\n\n# the end\n[tui]\nnotifications = true\n")
    # With a section of its own below it that is gone with it.
    file.write_text(CODEX_TOML + '[mcp_servers.pinfold]\ncommand = "x"\n'
                    '[mcp_servers.pinfold.env]\nA = "b"\n[tui]\nnotifications = true\n')
    home.write("codex", "--", "--read-only")
    assert tomllib.loads(file.read_text()) == expected


@pytest.mark.parametrize("text", [
    "x = ", "[mcp_servers]\n[mcp_servers]\n", 'mcp_servers = { a = { command = "x" } }\n',
    'mcp_servers = { pinfold = { command = "x" }, b = {} }\n', "mcp_servers = 1\n",
    '[mcp_servers.pinfold]\ncommand = "x"\n[tui]\na = 1\n[mcp_servers.pinfold.env]\nA = "b"\n',
    'mcp_servers.pinfold.command = "x"\nmodel = "y"\nmcp_servers.pinfold.args = []\n',
])
def test_toml_that_cannot_be_changed_safely_is_refused_and_left_alone(home, text):
    file = home.home / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text(text)
    said = home.refuse("codex")
    assert str(file) in said
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_a_link_stays_one_and_what_it_leads_to_is_changed(home, tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text('{"a": 1}')
    link = home.home / ".claude.json"
    link.symlink_to(real)
    home.write("claude-code", "--scope", "user")
    assert link.is_symlink() and json.loads(real.read_text())["mcpServers"]["pinfold"]
    assert (tmp_path / "dotfiles.json.bak").read_text() == '{"a": 1}'


@pytest.mark.parametrize("client, link, file", [
    ("claude-code", ".mcp.json", "servers.json"), ("vscode", ".vscode", "mcp.json"),
    ("vscode", ".vscode", None), ("codex", ".codex", "config.toml"),
])
def test_a_link_of_a_project_does_not_lead_out_of_it(home, tmp_path, client, link, file):
    outside = tmp_path / "project-of-another"
    outside.mkdir()
    if file:
        (outside / file).write_text("")
    (home.project / link).symlink_to(outside / file if link == ".mcp.json" else outside)
    assert "leads out of the project" in home.refuse(client, "--scope", "project")
    assert [path.read_text() for path in outside.iterdir()] == [""] * bool(file)


def test_a_link_within_a_project_is_followed(home):
    (home.project / "shared").mkdir()
    (home.project / "shared/mcp.json").write_text("{}")
    (home.project / ".mcp.json").symlink_to("shared/mcp.json")
    home.write("claude-code")
    assert "pinfold" in (home.project / "shared/mcp.json").read_text()


def test_a_file_that_somebody_else_writes_meanwhile_is_never_half_of_either(home):
    file = home.home / ".claude.json"
    done = threading.Event()

    def other() -> None:
        count = 0
        while not done.is_set():
            new = file.with_name("new")
            new.write_text(json.dumps({"count": count, "x": "y" * 50000}))
            new.rename(file)
            count += 1
    file.write_text("{}")
    thread = threading.Thread(target=other)
    thread.start()
    try:
        results = [home.run("claude-code", "--scope", "user", "--write") for _ in range(8)]
    finally:
        done.set()
        thread.join()
    for result in results:
        assert result.returncode == 0 or "it has changed meanwhile" in result.stderr
    json.loads(file.read_text())
    assert not [path for path in home.home.iterdir() if "pinfold" in path.name]
    # "Nothing was written" is true of what is kept, too.
    assert len([path for path in home.home.iterdir() if ".bak" in path.name]) == [
        result.returncode for result in results].count(0)


@pytest.mark.parametrize("args, said", [
    ([], "for whom? claude-code, codex, cursor or vscode"),
    (["emacs"], "emacs: none of claude-code, codex, cursor, vscode"),
    (["cursor", "--scope", "x"], "none of: project, user"),
    (["cursor", "--name", "a.b"], "not a name of letters"),
    (["cursor", "--url", "ftp://x"], "not an address"),
    (["cursor", "--url", "http://x", "--", "--seed", "."], "--url is of a server that runs"),
    (["cursor", "--token-env", "X"], "--token-env goes with --url"),
    (["cursor", "--seed", "."], "no such option"),
])
def test_wrong_calls_are_explained(home, args, said):
    done = home.run(*args)
    assert (done.returncode, done.stdout) == (125, "")
    assert said in done.stderr and "see 'pinfold help mcp install'" in done.stderr


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "vscode"])
@pytest.mark.parametrize("name", ["", ".", "relative"])
def test_without_a_home_there_is_no_file_of_the_user(home, client, name):
    """And none at the root of the system, or in the current directory, which nobody would read."""
    for words in (), ("--write",):
        done = home.run(client, "--scope", "user", *words, HOME=name)
        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr == (f"pinfold: HOME is not set to a directory, and the file of {client} "
                               "is there; set it, or give --scope project\n")
    assert list(home.project.iterdir()) == []
    assert home.run(client, "--scope", "project", "--write", HOME=name).returncode == 0


@pytest.mark.parametrize("words", [["extra"], ["--", "extra"], ["--write", "--", "extra", "--sync"]])
def test_words_that_no_server_takes_are_refused(home, words):
    """They would stand in the configuration of a server that does not start."""
    done = home.run("cursor", *words)
    assert (done.returncode, done.stdout) == (125, "")
    assert "the words after -- are options of 'pinfold mcp'" in done.stderr
    assert list(home.project.iterdir()) == []


def test_its_help_is_there_in_three_ways(home):
    texts = {subprocess.run([BUILD / "pinfold", *args], capture_output=True, text=True).stdout
             for args in (["mcp", "install", "--help"], ["mcp", "install", "codex", "-h"],
                          ["help", "mcp", "install"])}
    assert len(texts) == 1 and texts.pop().startswith("usage: pinfold mcp install CLIENT")
