# SPDX-License-Identifier: Apache-2.0
"""pinfold agent, with models that are files or fakes of services."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from helpers import BUILD, ROOT
from terminal import Terminal

KEY = "sk-test-0123456789"  # what the fake services take
SECRET_NAMES = ("ANTHROPIC_", "OPENAI_", "AWS_", "PINFOLD_MODEL", "NO_COLOR")


class Agent:
    """The command in a directory of its own, with an environment that has no keys but those that a
    test gives."""

    def __init__(self, place: Path, project: Path) -> None:
        self.place, self.project, self.scripts = place, project, 0
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(SECRET_NAMES) and not name.lower().endswith("_proxy")}
        self.env["TERM"] = "xterm"
        self.terminals: list[Terminal] = []

    def script(self, *replies: Any, **more: Any) -> str:
        """A model that gives these replies, each with the results of the one before. A reply is
        what stands under "reply" of a script, or a whole turn."""
        self.scripts += 1
        path = self.place / f"script{self.scripts}.json"
        turns = [reply if isinstance(reply, dict) and "reply" in reply else {"reply": reply}
                 for reply in replies]
        path.write_text(json.dumps({"turns": turns, **more}))
        return f"scripted:{path}"

    def words(self, *args: Any, task: str = "do it") -> list[str]:
        return [str(BUILD / "pinfold"), "agent", *map(os.fsdecode, args), task]

    def __call__(self, model: str, *args: Any, task: str = "do it", **options: Any) -> Any:
        options = {"capture_output": True, "text": True, "timeout": 120, "cwd": self.project,
                   "env": self.env, **options}
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.words("--model", model, *args, task=task), **options)

    def start(self, model: str, *args: Any, **options: Any) -> Any:
        """In the background; the test waits for it."""
        return subprocess.Popen(self.words("--model", model, *args), cwd=self.project, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)

    def at_terminal(self, model: str, *args: Any, **options: Any) -> Terminal:
        term = Terminal()
        self.terminals.append(term)
        term.start(*self.words("--model", model, *args), cwd=self.project, env=self.env, **options)
        return term

    def events(self, model: str, *args: Any, status: int = 0) -> list[dict]:
        done = self(model, "--json", *args)
        assert done.returncode == status, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def drop_kept(said: str) -> dict[Path, bytes]:
    """Remove the workspace that a run has kept and named, if it has; what files were in it."""
    named = re.search(r"results are kept in ([^;]*?)(/changes)?;", said)
    if not named:
        return {}
    found = [path for path in Path(named[1]).rglob("*") if path.is_file()]
    kept = {path.relative_to(named[1]): path.read_bytes() for path in found}
    shutil.rmtree(named[1])
    return kept


def tool(name: str, **arguments: Any) -> dict:
    return {"tool": name, "input": arguments}


def execute(command: str) -> dict:
    return tool("execute", command=command)


def write(path: str, content: str) -> dict:
    return tool("write_file", path=path, content=content)


def fix(agent: Agent) -> str:
    """A model that changes two files and says so."""
    return agent.script(
        {"reply": ["I look.", execute("cat src/main.c; echo oops >&2; exit 3")],
         "usage": {"input": 100, "output": 20, "cache_read": 7}},
        {"reply": ["I write.", write("src/main.c", "int main;\n"), write("Makefile", "all:\n")],
         "usage": {"input": 150, "output": 30}},
        {"reply": "Done.", "usage": {"input": 200, "output": 5}})


class Service:
    """The fake of tests/models, running."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, str(ROOT / "tests/models/fake.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.endpoint = json.loads(self.process.stdout.readline())["endpoint"]

    def url(self, switches: str = "", path: str = "") -> str:
        return self.endpoint + (f"/s/{switches}" if switches else "") + path

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
