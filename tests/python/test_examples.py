# SPDX-License-Identifier: Apache-2.0
"""The examples run, and all of it is typed."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from owners import BUILD, Owner
from support import call

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/python"
ENV = {**os.environ, "PYTHONPATH": str(BUILD / "python")}


def python(*words: Any, **options: Any) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *map(str, words)], text=True, timeout=600,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          **{"env": ENV, **options})


def test_analysis_brings_its_report_home(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("group,value\na,1\na,3\nb,5\n")
    done = python(EXAMPLES / "analyse.py", tmp_path / "data.csv", tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "3 rows in 2 groups\n"), done.stderr
    assert os.listdir(tmp_path / "out") == ["report.json"]
    assert '"mean": 2.0' in (tmp_path / "out/report.json").read_text()


def test_own_backend_holds_files() -> None:
    done = python(EXAMPLES / "own_backend.py")
    assert (done.returncode, done.stdout) == (0, "notes/a.md # A\nnotes/c.md # B\n"), done.stderr


def test_service_gives_each_request_a_sandbox(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, EXAMPLES / "service.py"], env=ENV, text=True,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as service:
        try:
            assert service.stdout
            port = int(re.findall(r":(\d+)/", service.stdout.readline())[0])
            for word in "one", "two":
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
                client.request("POST", "/", f"ls; echo {word} > f; cat f; exit 3")
                answer = client.getresponse()
                assert (answer.status, answer.getheader("X-Exit-Code")) == (200, "3")
                assert answer.read() == f"{word}\n".encode()
                client.close()
        finally:
            service.send_signal(2)
    assert service.returncode == 0


@pytest.mark.parametrize("name", ["analyse", "local_dev", "two_agents"])
@pytest.mark.parametrize("words", [[], ["one"], ["one", "two", "three"]])
def test_examples_that_want_words_say_which(name: str, words: list[str]) -> None:
    done = python(EXAMPLES / f"{name}.py", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr and f"{name}.py " in done.stderr


def test_package_and_examples_are_typed(tmp_path: Path) -> None:
    done = subprocess.run(
        ["/usr/bin/mypy", "--config-file", ROOT / "pyproject.toml", "--strict",
         "--cache-dir", tmp_path / "cache", "--python-version", "3.10",
         *(ROOT / "python" / name for name in ("pinfold", "elsai", "elsai_tools")),
         *EXAMPLES.glob("*.py")],
        env={**os.environ, "MYPYPATH": str(ROOT / "python")}, cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def test_ordinary_users_have_isolated_sandboxes(owner: Owner) -> None:
    shutil.copytree(BUILD / "python", owner.bin / "python",
                    ignore=shutil.ignore_patterns("*.p", "__pycache__"))
    text = """if True:
        import asyncio, pinfold
        async def main():
            backend = pinfold.IsolatedSandboxBackend()
            async with pinfold.Sandbox("job", backend, 60) as sandbox:
                await sandbox.add_files({"a": "text"})
                print((await sandbox.execute("id -un; cat a")).output)
        asyncio.run(main())"""
    done = owner.run("/usr/bin/python3", "-c", text, timeout=300,
                     env={"PYTHONPATH": str(owner.bin / "python"), "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.stdout == "agent\ntext\n", done.stderr


def with_script(tmp_path: Path, *turns: Any, any_order: bool = False) -> dict[str, str]:
    (tmp_path / "script.json").write_text(json.dumps({"turns": turns, "any_order": any_order}))
    return {**ENV, "PINFOLD_MODEL": f"scripted:{tmp_path}/script.json"}


def test_two_agents_share_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "project/src").mkdir(parents=True)
    env = with_script(
        tmp_path, {"expect": {"first": "Review", "messages": 1, "no_tools": ["write_file"]},
                   "reply": [call("read_file", path="src/a.py")]},
        {"expect": {"first": "Review", "results": [{"contains": "VALUE = 1"}]}, "reply": "Good."},
        {"expect": {"messages": 1},
         "reply": [call("write_file", path="src/a.py", content="VALUE = 1\n")]},
        {"expect": {"messages": 3}, "reply": "Written."}, any_order=True)
    done = python(EXAMPLES / "two_agents.py", tmp_path / "project", "Write a.py", env=env)
    assert (done.returncode, done.stdout) == (0, "coder: Written.\nreviewer: Good.\n"), done.stderr
    assert (tmp_path / "project/src/a.py").read_text() == "VALUE = 1\n"


def test_development_keeps_tools_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/a.py").write_text("1\n2\n")
    env = with_script(
        tmp_path, {"expect": {"tools": ["shell", "execute", "count_lines"]},
                   "reply": ["I count.", call("count_lines", pattern="*.py"),
                             call("execute", command="rm -rf ."), call("shell", command="pwd")]},
        {"expect": {"results": [{"contains": "exit code: 0\n2\n"},
                                {"contains": "Nothing is removed", "error": True},
                                {"contains": str(tmp_path)}]},
         "reply": [call("write_file", path="b.md", content="two\n")]}, {"reply": "Two lines."})
    done = python(EXAMPLES / "local_dev.py", tmp_path / "project", "Count", cwd=tmp_path,
                  env={**env, "BYPASS_TOOL_CONSENT": "true"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("I count.\n[count_lines") and "Two lines.\n" in done.stdout
    assert (tmp_path / "project/b.md").read_text() == "two\n"
