# SPDX-License-Identifier: Apache-2.0
"""What holds of a remote backend by whatever face of pinfold it is used: run, agent, mcp."""

import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import Any

from owners import IS_ROOT
from remote_runner import PINFOLD, RemoteRunner
from terminal import Terminal

LONG = "sleep 30"  # a command that is to be ended much earlier

# Before a command line: nothing is read that modes forbid, by root neither.
UNPRIVILEGED: tuple[str, ...] = (
    "setpriv", "--bounding-set=-dac_override,-dac_read_search", "--") if IS_ROOT else ()

# What a command does to directories, an option, and which of them an error is to name.
CLOSED = [
    ("chmod 000 src/deep", "--include=src", ["src/deep"]),
    ("chmod 300 src/deep", "--include=src/**/*.txt", ["src/deep"]),
    ("chmod 600 src/deep", "--include=src", ["src/deep"]),
    ("chmod 000 src lib", "--include=*.txt", ["lib", "src"]),
    ("chmod 000 src lib", "--include=/lib/", ["lib"]),
    ("chmod 000 src/deep", "--exclude=deep", []),
    ("chmod 000 src/deep", "--exclude=/src", []),
]

# Programs that stand in for those of the list of a flush: killed in the middle of a name, not there
# in whole, failing where nothing can say of what.
BROKEN = [
    {"find": r"printf 'f 2 a.txt\0f 2 src/b'; kill -9 $$"},
    {"find": r"printf 'f 2 a.txt\0'; echo 'find: libm.so.6: No such file or directory' >&2; exit 127"},
    {"find": r"printf 'f 2 a.txt\0'; echo 'find: ./src: Input/output error' >&2; exit 1",
     "grep": "exit 127"},
]

# What a command does to a directory of the seed, and what is to be told as deleted.
GONE = [
    ("chmod 000 src", []),
    ("rm -r src; ln -s /etc src", ["src/a.txt", "src/deep/b.txt"]),
    ("rm -r src; ln -s src src", ["src/a.txt", "src/deep/b.txt"]),
    ("rm -r src; ln -s nowhere src", ["src/a.txt", "src/deep/b.txt"]),
    ("rm -r src/deep; ln -s .. src/deep", ["src/deep/b.txt"]),
    ("rm -r src; echo >src", ["src/a.txt", "src/deep/b.txt"]),
]


class McpServer:
    """pinfold mcp on the backend, with one client."""

    def __init__(self, run: RemoteRunner, *words: Any) -> None:
        self.process = subprocess.Popen(
            [PINFOLD, "mcp", "--backend", run.backend, *map(str, words)], env=run.env,
            cwd=run.here, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.last_id = 0
        self.request("initialize", protocolVersion="2025-11-25", capabilities={},
                     clientInfo={"name": "test", "version": "1"})

    def request(self, method: str, **params: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.last_id += 1
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            reply = json.loads(line)
            if reply.get("id") == self.last_id and "method" not in reply:
                return reply["result"]
        raise AssertionError("the server has ended")

    def call(self, name: str, **arguments: Any) -> Any:
        result = self.request("tools/call", name=name, arguments=arguments)
        assert not result["isError"], result
        return result["structuredContent"]

    def __enter__(self) -> "McpServer":
        return self

    def __exit__(self, *_: Any) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


def is_running(mark: str) -> bool:
    """Whether a process has this word; the fake really runs what it is sent, on this machine."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in process.read_bytes().decode(errors="replace").split("\0"):
                return True
        except OSError:
            pass
    return False


def wait_for(mark: str, running: bool) -> None:
    until = time.monotonic() + 60
    while is_running(mark) != running:
        assert time.monotonic() < until, f"{mark} is {'not ' if running else ''}running"
        time.sleep(0.05)


def agent_with_timeout(run: RemoteRunner, tmp: Path) -> None:
    """pinfold agent --timeout ends a command of the agent's."""
    script = tmp / "timeout.json"
    script.write_text(json.dumps({"turns": [
        {"reply": [{"tool": "execute", "input": {"command": LONG}}]},
        {"expect": {"results": [{"contains": ["exit code: 124", "timed out after 1 s"]}]},
         "reply": "Done."}]}))
    seed = tmp / "seed of the agent"
    seed.mkdir()
    done = subprocess.run(
        [PINFOLD, "agent", "--backend", run.backend, "--model", f"scripted:{script}", "--no-sync",
         "--timeout", "1", "--seed", seed, "do it"], env=run.env, cwd=run.here, text=True,
        capture_output=True, timeout=180, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr


def mcp_with_timeout(run: RemoteRunner) -> None:
    """pinfold mcp --timeout is the default of a command, and a call may say otherwise."""
    with McpServer(run, "--timeout", "1") as server:
        ended = server.call("execute", command=LONG)
        assert (ended["exit_code"], ended["timed_out"]) == (124, True)
        ended = server.call("execute", command="sleep 2; echo end", timeout_seconds=100)
        assert (ended["exit_code"], ended["stdout"]) == (0, "end\n")


def mcp_call_with_timeout(run: RemoteRunner) -> None:
    """A call's own time is kept when the server was given none."""
    with McpServer(run) as server:
        ended = server.call("execute", command=LONG, timeout_seconds=1)
        assert (ended["exit_code"], ended["timed_out"]) == (124, True)


def mcp_dry_run(run: RemoteRunner, tmp: Path) -> None:
    """A dry run tells of what could not be fetched, as the sync itself does; a socket is nothing to
    fetch."""
    seed = tmp / "seed of the server"
    seed.mkdir()
    with McpServer(run, "--seed", seed) as server:
        server.call("execute", command="echo > new.md; echo > Makefile; truncate -s 17G huge.md; "
                    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s.md\")'")
        plan = server.call("sync", dry_run=True)
        assert (plan["files"], list(seed.iterdir())) == (1, [])
        assert [error.partition(":")[0] for error in plan["errors"]] == ["huge.md"], plan
        assert len(server.call("sync")["errors"]) == 1
        assert [one.name for one in seed.iterdir()] == ["new.md"]


def sync_from(run: RemoteRunner, backend: str, home: Path, option: str,
              command: str) -> tuple[int, list[str], list[str]]:
    """The exit status, what could not come home, and what has."""
    words = [*(UNPRIVILEGED if backend == "local" else ()), PINFOLD, "run", "--json", "--backend",
             backend, f"--sync={home}", option, "mkdir -p src/deep lib; echo 1 | "
             f"tee src/deep/a.txt src/b.txt >lib/c.txt; {command}"]
    done = subprocess.run(words, env=run.env, cwd=run.here, text=True, capture_output=True,
                          timeout=180, stdin=subprocess.DEVNULL)
    told = json.loads(done.stdout)
    assert "sync" in told, (told, done.stderr)
    return (done.returncode, sorted(told["sync"]["errors"]),
            sorted(str(one.relative_to(home)) for one in home.rglob("*.txt")))


def closed_directories(run: RemoteRunner, tmp: Path) -> None:
    """What a command made where nobody can look is not lost without a word: an error tells of the
    directory, as on this machine, and the rest comes home."""
    for number, (command, option, names) in enumerate(CLOSED):
        there = sync_from(run, run.backend, tmp / f"there-{number}", option, command)
        here = sync_from(run, "local", tmp / f"here-{number}", option, command)
        assert there[1] == [f'fetch "{name}": it could not be read there' for name in names]
        assert (there[0], there[2]) == (here[0], here[2]), (command, option, there, here)
        assert bool(here[1]) == bool(names) and here[0] == (125 if names else 0), (command, here)
    # The root itself.
    assert sync_from(run, run.backend, tmp / "closed", "--include=src", "chmod 300 .") == (
        125, ['fetch ".": it could not be read there'], [])


def broken_lists(run: RemoteRunner, tmp: Path, tools: Path) -> None:
    """Where not all could be listed nothing is lost without a word, and the rest comes home. tools:
    where programs are looked for first."""
    tools.mkdir()
    for number, programs in enumerate(BROKEN):
        for name, text in programs.items():
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o644)  # a backend may look at its start whether they do their work
        assert sync_from(run, run.backend, tmp / f"broken-{number}", "--include=/*.txt",
                         f"echo 1 >a.txt; chmod 755 {tools}/*") == (
            125, ['fetch ".": it could not be read there'], ["a.txt"]), programs


def mcp_closed_directory(run: RemoteRunner, tmp: Path) -> None:
    """A dry run tells of it, too."""
    seed = tmp / "seed that is closed"
    seed.mkdir()
    with McpServer(run, "--seed", seed, "--include", "src") as server:
        server.call("execute", command="mkdir -p src/deep; echo >src/deep/a; chmod 000 src/deep")
        assert server.call("sync", dry_run=True)["errors"] == [
            "src/deep/: it could not be read there"]
        told = server.request("tools/call", name="diff", arguments={})["content"][0]["text"]
        assert "Nothing has changed" not in told and "could not be read there" in told


def agent_with_directories_gone(run: RemoteRunner, tmp: Path) -> None:
    """Where a directory of the seed cannot be looked into, or is something else now, the rest of an
    agent's work comes home, and what was deleted is told."""
    for number, (command, deleted) in enumerate(GONE):
        seed, script = tmp / f"agent-{number}", tmp / "directories.json"
        (seed / "src/deep").mkdir(parents=True)
        for name in "src/a.txt", "src/deep/b.txt", "top.txt":
            (seed / name).write_text("old\n")
        script.write_text(json.dumps({"turns": [
            {"reply": [{"tool": "execute", "input": {"command": f"echo >top.txt; {command}"}}]},
            {"reply": "Done."}]}))
        done = subprocess.run(
            [PINFOLD, "agent", "--backend", run.backend, "--model", f"scripted:{script}", "--yes",
             "--seed", seed, "do it"], env=run.env, cwd=run.here, text=True, capture_output=True,
            timeout=180, stdin=subprocess.DEVNULL)
        told = [line.split()[1] for line in done.stderr.splitlines() if line[:9] == "  deleted"]
        assert told == deleted, (command, done.stderr)
        assert (seed / "top.txt").read_text() == "\n", (command, done.stderr)
        assert done.returncode != 0 and ("Permission denied" in done.stderr) == (not deleted)


def agent_with_a_file_untold(run: RemoteRunner, tmp: Path, tools: Path) -> None:
    """What an archive there leaves out at first, and then does not, is not written over what was
    changed here meanwhile. tools: where programs are looked for first."""
    seed, script = tmp / "seed of two", tmp / "untold.json"
    seed.mkdir()
    tools.mkdir()
    for name in "a.txt", "b.txt":
        (seed / name).write_text("old\n")
    (tools / "tar").write_text(f"""#!/bin/sh
case "$*" in *-cf*) mkdir {tools}/once && exec /bin/tar --exclude=a.txt "$@" ;; esac 2>/dev/null
exec /bin/tar "$@"
""")
    (tools / "tar").chmod(0o644)
    script.write_text(json.dumps({"turns": [
        {"reply": [{"tool": "execute", "input": {
            "command": f"echo new | tee a.txt >b.txt; echo mine >'{seed}/a.txt'; "
                       f"chmod 755 {tools}/tar"}}]},
        {"reply": "Done."}]}))
    done = subprocess.run(
        [PINFOLD, "agent", "--backend", run.backend, "--model", f"scripted:{script}", "--yes",
         "--seed", seed, "do it"], env=run.env, cwd=run.here, text=True, capture_output=True,
        timeout=180, stdin=subprocess.DEVNULL)
    assert (seed / "a.txt").read_text() == "mine\n", done.stderr
    assert (seed / "b.txt").read_text() == "new\n", done.stderr
    assert done.returncode == 125, done.stderr
    assert 'could not be written back\npinfold:   fetch "a.txt"' in done.stderr
    assert "left as they are here:\npinfold:   a.txt\n" in done.stderr


ANSWERS = """#!/bin/sh
case "$*" in *-cf*) mkdir {asked} 2>/dev/null || echo bad >b.txt ;; esac
exec /bin/tar "$@"
"""  # of a tar: one to the first who asks, and another after that


def agent_with_two_answers(run: RemoteRunner, tmp: Path, tools: Path) -> None:
    """What was shown is written, whatever a sandbox answers to whom asks it once more. What it has
    said is kept below the destination meanwhile, at times."""
    seed, script, home = tmp / "seed of one", tmp / "twice.json", tmp / "home"
    asked = tools / "asked"
    for directory in seed, tools, home / "tmp":
        directory.mkdir(parents=True)
    (seed / "b.txt").write_text("old\n")
    (tools / "tar").write_text(ANSWERS.format(asked=asked))
    script.write_text(json.dumps({"turns": [
        {"reply": [{"tool": "execute", "input": {
            "command": f"echo new >b.txt; chmod 755 {tools}/tar"}}]},
        {"reply": "Done."}]}))
    for to, words in (home, [f"--sync={home}"]), (seed, []):
        (tools / "tar").chmod(0o644)
        done = subprocess.run(
            [PINFOLD, "agent", "--backend", run.backend, "--model", f"scripted:{script}", "--yes",
             *words, "--seed", seed, "do it"], env={**run.env, "TMPDIR": str(home / "tmp")},
            cwd=run.here, text=True, capture_output=True, timeout=180, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        assert (to / "b.txt").read_text() == "new\n", done.stderr
        asked.rmdir()
        assert not any((home / "tmp").iterdir())


def agent_that_asks(run: RemoteRunner, tmp: Path, tools: Path) -> None:
    """Nor is it asked once more after a yes, when only what was changed here meanwhile counts."""
    seed, script, term = tmp / "seed", tmp / "asks.json", Terminal()
    for directory in seed, tools:
        directory.mkdir()
    for name in "b.txt", "c.txt":
        (seed / name).write_text("old\n")
    (tools / "tar").write_text(ANSWERS.format(asked=tools / "asked"))
    (tools / "tar").chmod(0o644)
    script.write_text(json.dumps({"turns": [
        {"reply": [{"tool": "execute", "input": {
            "command": f"echo new | tee b.txt >c.txt; chmod 755 {tools}/tar"}}]},
        {"reply": "Done."}]}))
    term.start(PINFOLD, "agent", "--backend", run.backend, "--model", f"scripted:{script}",
               "--seed", seed, "do it", env=run.env, cwd=run.here)
    term.expect(r"\? \[y/N\] ", 120)
    (seed / "c.txt").write_text("mine\n")
    term.type("y\r")
    term.expect(r"changed these meanwhile.*c\.txt", 120)
    assert term.wait() == 1
    term.close()
    assert (seed / "b.txt").read_text() == "new\n"
    assert (seed / "c.txt").read_text() == "mine\n"
    assert not any(run.tmp.iterdir())


def directories_of_all_kinds(run: RemoteRunner, tmp: Path) -> None:
    """run: beside a fake without root's right to pass over modes."""
    closed_directories(run, tmp)
    mcp_closed_directory(run, tmp)
    agent_with_directories_gone(run, tmp)


def mcp_growing_file(run: RemoteRunner, tmp: Path) -> None:
    """A log that is written to while the results are fetched does not keep the others from home."""
    seed = tmp / "seed with a log"
    seed.mkdir()
    with McpServer(run, "--seed", seed) as server:
        server.call("execute", command="echo precious > a.md; head -c 100000 /dev/zero > log.md")
        server.call("start_process", wait_seconds=0.5,
                    command="while :; do head -c 100000 /dev/zero >> log.md; sleep 0.01; done")
        assert server.call("sync")["files"] >= 1
    assert (seed / "a.md").read_text() == "precious\n"


def mcp_sync_over_cuts(run: RemoteRunner, tmp: Path, fake: Any, where: list[dict[str, str]]) -> None:
    """One broken connection, wherever it is in a flush, does not keep the results from home. where:
    which requests it may be."""
    seed = tmp / "seed of cuts"
    seed.mkdir()
    # So many names go by a file of their own, and random bytes stay as many when they are packed.
    many = f"mkdir -p many; (cd many && seq -f {'x' * 60}%g.md 700 | xargs touch)"
    with McpServer(run, "--seed", seed) as server:
        for number, (request, skip, when, command) in enumerate(itertools.product(
                where, (0, 1), ("before", "after"), (":", many))):
            server.call("execute", command=f"{command}; echo {number} >top.md; "
                                           "head -c 100000 /dev/urandom >big.md")
            fake.control("faults", {"kind": "close", "skip": skip, "when": when, **request})
            told = server.call("sync")
            assert told["errors"] == [], (request, skip, when)
            assert (seed / "top.md").read_text() == f"{number}\n", (request, skip, when)
            assert (seed / "big.md").stat().st_size == 100000
            fake.control("faults", method="DELETE")
            server.call("execute", command="rm -rf many")
    assert len(list((seed / "many").iterdir())) == 700


def mcp_diff(run: RemoteRunner) -> None:
    """What a diff did not look for it does not call nothing."""
    with McpServer(run) as server:
        server.call("execute", command="echo > new.md; echo > Makefile")
        some = server.call("diff")
        assert [one["path"] for one in some["changes"]] == ["new.md"] and "left_out" not in some
        every = server.call("diff", everything=True)
        assert [one["path"] for one in every["changes"]] == ["Makefile", "new.md"]


def mcp_stop_process(run: RemoteRunner, mark: str) -> None:
    """stop_process kills, and does not only stop to wait."""
    with McpServer(run) as server:
        started = server.call("start_process", command=f"sh -c 'sleep 60; :' {mark}",
                              wait_seconds=0)
        wait_for(mark, True)
        ended = server.call("stop_process", id=started["id"])
        assert not ended["running"] and ended["exit_code"] == 137
        wait_for(mark, False)
