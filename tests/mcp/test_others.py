# SPDX-License-Identifier: Apache-2.0
"""Clients that we did not write: the official SDKs, and the Inspector's command line."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from client import LATEST
from others import HERE, npm_packages, python_with_mcp
from owners import BUILD

pytestmark = pytest.mark.plain
RUN_SECONDS = 300


def run(*command: Any, **environ: str) -> Any:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=RUN_SECONDS, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environ})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_official_typescript_sdk_is_content(project: Path) -> None:
    seen = run("node", HERE / "npm/stdio.mjs", npm_packages(), project, BUILD / "pinfold", "mcp")
    assert seen["errors"] == []
    assert seen["server"] == "pinfold" and len(seen["tools"]) == 14
    assert seen["listed"] == ["logo.png", "src", "tool.sh"]  # its root is the seed
    assert seen["executed"]["exit_code"] == 2 and seen["executed"]["stdout"] == "hello\n"
    assert seen["image"] == "resource" and seen["wrong"] and seen["unknown"] == -32602
    assert seen["progress"] and seen["aborted"] and seen["timed_out"] == -32001
    assert seen["many"] and seen["logged"]
    assert seen["resources"] == ["pinfold://audit", "pinfold://workspace/logo.png",
                                 "pinfold://workspace/src/main.c", "pinfold://workspace/tool.sh"]
    assert seen["text"] == "int main;\n" and seen["templates"] == 1 and seen["missing"] == -32002


def test_the_official_python_package_is_content(project: Path) -> None:
    library = python_with_mcp()
    python, path = (library, {}) if library.is_file() else (
        sys.executable, {"PYTHONPATH": str(library / "lib"), "PYTHONDONTWRITEBYTECODE": "1"})
    seen = run(python, HERE / "pypi/stdio.py", BUILD / "pinfold", "mcp", "--quiet", "--seed", project,
               **path)
    assert seen["version"] == LATEST and len(seen["tools"]) == 14
    assert seen["executed"] == [2, "exit code: 2\nhello\n"]
    assert seen["wrong"] and seen["many"] and seen["timed_out"]
    assert len(seen["resources"]) == 4


@pytest.fixture(scope="module")
def inspector():
    script = npm_packages() / "node_modules/@modelcontextprotocol/inspector-cli/build/cli.js"

    def inspect(options: list, *words: Any) -> Any:
        return run("node", script, "--cli", BUILD / "pinfold", "mcp", *options, "--method", *words)
    return inspect


def test_the_inspector_lists_and_calls(inspector, project: Path) -> None:
    tools = inspector([], "tools/list")["tools"]
    assert [tool["name"] for tool in tools][:3] == ["execute", "read_output", "read_file"]
    result = inspector([], "tools/call", "--tool-name", "execute", "--tool-arg", "command=pwd")
    assert result["structuredContent"]["stdout"] == "/workspace\n"
    assert inspector([], "resources/list")["resources"][0]["uri"] == "pinfold://audit"
    assert inspector([], "resources/templates/list")["resourceTemplates"]
