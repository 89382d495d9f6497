# SPDX-License-Identifier: Apache-2.0
"""Clients that we did not write, over HTTP: the official TypeScript SDK and conformance suite."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from http_server import NEWEST, Server
from others import HERE, npm_packages

pytestmark = pytest.mark.plain
RUN_SECONDS = 300

# The scenarios of the suite that ask nothing of a server but the protocol. The others call tools,
# and read resources and prompts, of a server that was made for the suite: a tool test_image_content
# say. They are run all the same, so that one which passes with a new version is seen.
OURS = {"server-initialize", "logging-set-level", "ping", "tools-list", "resources-list",
        "server-sse-multiple-streams", "dns-rebinding-protection"}


def test_the_official_typescript_sdk_is_content_over_http(tmp_path: Path) -> None:
    packages = npm_packages()
    with Server(tmp_path, "-q", "--backend", "local") as server:
        server.learn()
        done = subprocess.run(["node", HERE / "npm/http.mjs", packages, server.url, tmp_path],
                              capture_output=True, text=True, timeout=RUN_SECONDS,
                              stdin=subprocess.DEVNULL,
                              env={**os.environ, "TEST_TOKEN": server.token})
        assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["errors"] == []
    assert (seen["version"], seen["session"]) == (NEWEST, 32)
    assert seen["tools"] >= 12
    assert seen["executed"]["exit_code"] == 2 and seen["executed"]["stdout"] == "hello\n"
    assert seen["wrong"] and seen["unknown"] == -32602
    assert seen["progress"] and seen["aborted"] and seen["many"]
    assert seen["resumed"] == "end\n"
    assert seen["refused"] == 401


def test_the_official_conformance_suite_passes_where_it_asks_for_the_protocol(tmp_path) -> None:
    packages = npm_packages()
    script = packages / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    seed = tmp_path / "seed"
    seed.mkdir()
    (seed / "file.txt").write_text("text\n")
    with Server(tmp_path, "-q", "--seed", seed) as server:
        server.learn()
        done = subprocess.run(["node", "--import", HERE / "npm/conformance_preload.mjs", script,
                               "server", "--url", server.url], capture_output=True, text=True,
                              timeout=RUN_SECONDS, stdin=subprocess.DEVNULL, cwd=tmp_path,
                              env={**os.environ, "TEST_TOKEN": server.token, "NO_COLOR": "1"})
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    results = dict(re.findall(r"^[✓✗] ([\w-]+): \d+ passed, (\d+) failed", text, re.M))
    assert len(results) >= 30, done.stdout + done.stderr
    assert {name for name, failed in results.items() if failed == "0"} >= OURS, text[-3000:]
