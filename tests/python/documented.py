# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of the specification, block by block, as it stands, and checks what it did.

    documented.py BLOCKS TESTS

BLOCKS is a file of JSON, {name of the file: [block]}; TESTS the directory with the fakes of the
services. It is started inside a sandbox, whose root has the directories that the blocks name: they
are what somebody would type on a machine of his own. It prints how many blocks of each file ran.
"""

import ast
import asyncio
import inspect
import json
import logging
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Callable

from elsai import Agent
from elsai.agent import AgentConfig, SandboxAttachMode
from elsai.execution import LocalSandboxBackend, SandboxRef, WorkspaceSeedResult

ANSWER = "_answer"  # of a block that ends in an expression
WORKSPACE = Path("/tmp/documented")
PROJECT, REPO, MONOREPO = Path("/path/to/project"), Path("/path/to/repo"), Path("/host/monorepo")
SCRIPT = {"any_order": True, "turns": [
    {"expect": {"first": "Implement JWT", "messages": 1, "tools": ["execute", "write_file"]},
     "reply": [{"tool": "write_file",
                "input": {"path": "services/auth/jwt.py", "content": "LIFETIME = 900\n"}}]},
    {"expect": {"first": "Implement JWT", "results": [{"error": False}]},
     "reply": [{"tool": "execute", "input": {"command": "cat services/auth/*.py"}}]},
    {"expect": {"first": "Implement JWT",
                "results": [{"contains": "exit code: 0\nOLD = 1\nLIFETIME = 900"}]},
     "reply": "Done."},
    {"expect": {"first": "Review", "messages": 1, "tools": ["read_file", "list_dir"],
                "no_tools": ["execute", "write_file"]},
     "reply": [{"tool": "read_file", "input": {"path": "services/auth/jwt.py"}},
               {"tool": "execute", "input": {"command": "rm -rf /"}}]},
    {"expect": {"first": "Review", "results": [{"contains": "LIFETIME = 900"}, {"error": True}]},
     "reply": "Nothing to say."},
]}

Names = dict[str, Any]


def run_block(text: str, names: Names) -> None:
    """As Python's interactive mode would, which awaits at the top too. Nothing but the value of a
    last expression is caught."""
    tree = ast.parse(text)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        target = ast.Name(ANSWER, ast.Store())
        tree.body[-1] = ast.fix_missing_locations(ast.copy_location(
            ast.Assign([target], last.value), last))
    names.pop(ANSWER, None)
    made = eval(compile(tree, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(made):
        asyncio.run(made)


def imported(text: str) -> list[str]:
    return [alias.asname or alias.name for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom) for alias in node.names]


class Events(logging.Handler):
    """The audit, as it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.audit)  # type: ignore[attr-defined]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.seen if event["event"] == name]


# ---- the API ----

def start(names: Names) -> None:
    if not names["sandbox"].is_started:
        asyncio.run(names["sandbox"].start())


def before_api(text: str, names: Names) -> None:
    """What a block takes for granted."""
    if "workspace_id=\"graph-run-1\"" in text:
        names["backend_template"] = LocalSandboxBackend(WORKSPACE)
    if text.startswith(("await sandbox.", "sandbox.")) and "sandbox.start" not in text:
        start(names)
    if "add_files" in text:
        names["files"] = {"docs/a.md": "text", "b.bin": b"\xff"}
    if "download_files" in text:
        names["files"] = {"docs/a.md": "/tmp/out/a.md"}
    if "stop(" in text:
        (WORKSPACE / "src/made.py").write_text("made")
    names.update(paths=["b.bin"], src="docs/a.md", dest="docs/c.md", path="docs/c.md")
    if "attach(" in text and "detach(" not in text:
        names.update(agent=Agent(AgentConfig(agent_id="documented")),
                     SandboxAttachMode=SandboxAttachMode)
    if "supports_execution(backend)" in text:
        names["backend"] = names["backend_template"]


def is_ref(ref: Any) -> bool:
    return isinstance(ref, SandboxRef) and ref.workspace_id == "graph-run-1" \
        and ref.backend_type == "LocalSandboxBackend"


API_CHECKS: dict[str, Callable[[Names], Any]] = {
    "async with Sandbox(\n": lambda names: (WORKSPACE / "src/a.py").exists()
    and not names["sandbox"].is_started,
    "sandbox.start(": lambda names: names["sandbox"].is_started
    and isinstance(names[ANSWER], WorkspaceSeedResult) and names[ANSWER].files_seeded == 1,
    "sandbox.stop(": lambda names: not names["sandbox"].is_started
    and (PROJECT / "src/made.py").read_text() == "made",
    "sandbox.add_files(": lambda names: names[ANSWER] == ["docs/a.md", "b.bin"]
    and (WORKSPACE / "b.bin").read_bytes() == b"\xff",
    "sandbox.download_files(": lambda names: names[ANSWER] == ["docs/a.md"]
    and Path("/tmp/out/a.md").read_text() == "text",
    "sandbox.delete_files(": lambda _: not (WORKSPACE / "b.bin").exists(),
    "sandbox.move_file(": lambda _: not (WORKSPACE / "docs/a.md").exists(),
    "sandbox.read_file(": lambda names: names[ANSWER] == "text",
    "sandbox.flush(": lambda names: names[ANSWER].success
    and (PROJECT / "docs/c.md").read_text() == "text",
    "sandbox.attach(": lambda names: "execute" in names["agent"].tool_names,
    "sandbox.detach(": lambda names: names["agent"].tool_names == [],
    "sandbox.ref(": lambda names: is_ref(names[ANSWER]),
    "SandboxManager(ttl": lambda names: names[ANSWER].ttl_seconds == 3600.0,
    "LocalSandboxBackend(\n": lambda names: names[ANSWER].id.startswith("LocalSandboxBackend"),
    "supports_execution(backend)": lambda names: names[ANSWER] is True,
}


def check(text: str, names: Names, checks: dict[str, Callable[[Names], Any]]) -> None:
    """Every block is checked: what it imports is there, and what it does is done."""
    done = imported(text)
    for name in done:
        assert name in names, f"{name} of\n{text}"
    for part, passed in checks.items():
        if part in text:
            done.append(part)
            assert passed(names), f"{part} of\n{text}\n{names.get(ANSWER)!r}"
    assert done, f"nothing checks\n{text}"


def run_api(blocks: list[str]) -> None:
    (PROJECT / "src").mkdir(parents=True)
    (PROJECT / "src/a.py").write_text("a")
    names: Names = {}
    for text in blocks:
        if "Sandbox(...)" in text:  # a sketch, which says so when it is run
            try:
                run_block(text, dict(names))
            except TypeError as error:
                assert "backend" in str(error), error
                continue
            raise AssertionError("an Ellipsis is no workspace")
        before_api(text, names)
        run_block(text, names)
        check(text, names, API_CHECKS)
    asyncio.run(names["sandbox"].stop(sync=False))


# ---- backends ----

class Fake:
    """A fake service of its own, for as long as this process lives."""

    def __init__(self, path: Path, *words: str):
        # pylint: disable-next=consider-using-with
        self.child = subprocess.Popen([sys.executable, path, "--leash", *words],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout
        self.told = json.loads(self.child.stdout.readline())

    def ask(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.told['endpoint']}/_fake/{what}") as answer:
            return json.load(answer)

    def end(self) -> int:
        assert self.child.stdin
        self.child.stdin.close()
        return self.child.wait(60)


def run_backends(blocks: list[str], tests: Path) -> None:
    for place in REPO, MONOREPO / "services/auth", Path("my-repo"):
        place.mkdir(parents=True)
        (place / "a.py").write_text("OLD = 1\n")
    agentcore = Fake(tests / "agentcore/fake.py")
    # The key of the specification is three dots.
    daytona = Fake(tests / "daytona/fake.py", "--config", '{"credentials": [{"key": "..."}]}')
    os.environ.update(
        AWS_ENDPOINT_URL_BEDROCK_AGENTCORE=agentcore.told["endpoint"],
        AWS_ACCESS_KEY_ID="AKIAFAKEFAKEFAKEFAKE", no_proxy="127.0.0.1",
        AWS_SECRET_ACCESS_KEY="fakeSecretKey/Example+0123456789ABCDEFGH",
        DAYTONA_API_URL=daytona.told["api"], DAYTONA_TARGET="us", PINFOLD_MODEL="scripted:s.json")
    Path("s.json").write_text(json.dumps(SCRIPT))
    events = Events()
    logging.getLogger("elsai.sandbox.audit").addHandler(events)
    logging.getLogger("elsai.sandbox.audit").setLevel(logging.INFO)
    checks: dict[str, Callable[[Names], Any]] = {
        "LocalSandboxBackend(Path": lambda names: Path("/tmp/elsai-sandbox/a.py").exists()
        and names["sandbox"].ref().workspace_id == "graph-local-dev",
        "AgentCoreSandboxTemplate(\n": lambda names:
        names["sandbox"].ref().workspace_id == "graph-77"
        and {one["status"] for one in agentcore.ask("sessions")} == {"TERMINATED"},
        "DaytonaSandboxTemplate(\n": lambda _: daytona.ask("counts").get("sandbox.create") == 1
        and daytona.ask("sandboxes") == [],
        "async def main()": lambda _: production(events, agentcore),
    }
    names: Names = {"run_id": "77"}
    for text in blocks:
        run_block(text, names)
        check(text, names, checks)
    assert daytona.end() == 0 and agentcore.end() == 0


def production(events: Events, agentcore: Fake) -> bool:
    """One agent has changed the workspace, the other has looked; the change has come home."""
    assert (MONOREPO / "services/auth/jwt.py").read_text() == "LIFETIME = 900\n"
    assert [event["mode"] for event in events.named("attach")] == ["read_write", "read_only"]
    assert len(events.named("detach")) == 2 and len(events.named("sandbox.execute")) == 1
    assert {one["status"] for one in agentcore.ask("sessions")} == {"TERMINATED"}
    assert agentcore.ask("counts")["ran"]["executeCommand"] >= 1
    return True


def main() -> None:
    blocks = json.loads(Path(sys.argv[1]).read_text())
    for name in "path", "host":  # /path and /host lead here
        Path(name).mkdir()
    run_api(blocks["sandbox-api.txt"])
    run_backends(blocks["sandbox-backends.txt"], Path(sys.argv[2]))
    print(json.dumps({name: len(found) for name, found in blocks.items()}))


main()
