# SPDX-License-Identifier: Apache-2.0
"""pinfold on a remote backend, beside the fake of its service."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from owners import BUILD

PINFOLD = str(BUILD / "pinfold")


class RemoteRunner:
    """The command with an environment that has nothing of the service's but what is said here."""

    def __init__(self, backend: str, foreign: str, tmp: Path, env: dict[str, str]) -> None:
        """foreign: how variables begin that are not inherited."""
        self.backend = backend
        self.tmp, self.here = tmp / "tmpdir", tmp / "here"
        self.tmp.mkdir()
        self.here.mkdir()
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(foreign) and not name.lower().endswith("_proxy")}
        self.env |= {"TMPDIR": str(self.tmp), **env}

    def start(self, *words: Any, command: str = "run",
              stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
        return subprocess.Popen([PINFOLD, command, "--backend", self.backend, *map(str, words)],
                                env=self.env, cwd=self.here, stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, *words: Any, command: str = "run") -> "subprocess.CompletedProcess[str]":
        return self._await(self.start(*words, command=command))

    def execute_by_agent(self, line: str, *words: Any) -> str:
        """What an agent is told of a command that it runs."""
        script = self.tmp.parent / "script.json"
        script.write_text(json.dumps({"turns": [
            {"reply": [{"tool": "execute", "input": {"command": line}, "id": "1"}]},
            {"reply": "Done."}]}))
        done = self("--json", "--model", f"scripted:{script}", *words, "x", command="agent")
        assert done.returncode == 0, done.stderr
        [told] = [event for event in map(json.loads, done.stdout.splitlines())
                  if event["event"] == "result"]
        return told["text"]

    def execute_by_client(self, line: str, *words: Any) -> str:
        """What the client of a server is told of a command that it has run."""
        child = self.start(*words, command="mcp", stdin=subprocess.PIPE)
        assert child.stdin and child.stdout
        for number, (method, params) in enumerate((
                ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "test", "version": "1"}}),
                ("tools/call", {"name": "execute", "arguments": {"command": line}}))):
            print(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}),
                  file=child.stdin, flush=True)
            # Between them comes what it has to say meanwhile.
            answer = next(message for message in map(json.loads, child.stdout)
                          if message.get("id") == number)
        assert self._await(child).returncode == 0
        return answer["result"]["content"][0]["text"]

    def _await(self, child: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
        try:
            out, err = child.communicate(timeout=180)
        finally:
            child.kill()
        assert list(self.tmp.iterdir()) == [], "a temporary directory was left behind"
        return subprocess.CompletedProcess(child.args, child.returncode, out, err)
