# SPDX-License-Identifier: Apache-2.0
"""The fake refuses what the services refuse: a check that cannot fail checks nothing."""

import copy
import json
from typing import Any, Callable

import pytest

import checks

HEADERS = {"anthropic-version": "2026-10-21",
           "content-type": "application/json", "authorization": f"Bearer {checks.KEY}"}

ANTHROPIC: dict[str, Any] = {
    "model": "text", "max_tokens": 10, "stream": True, "system": "Be brief.",
    "tools": [{"name": "cat", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "a", "name": "cat", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "text", "text": "well?"}]}]}

OPENAI: dict[str, Any] = {
    "model": "text", "stream": True,
    "tools": [{"type": "function", "function": {"name": "cat", "parameters": {}}}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "cat", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"}]}

BEDROCK: dict[str, Any] = {
    "system": [{"text": "Be brief."}],
    "toolConfig": {"tools": [{"toolSpec": {"name": "cat", "inputSchema": {"json": {}}}}]},
    "messages": [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "a", "name": "cat", "input": {}}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "a", "content": [{"text": "x"}]}}]}]}

Change = Callable[[Any], Any]

CHANGES: list[tuple[str, Change]] = [
    ("anthropic", lambda b: b["messages"].pop(0)),
    ("anthropic", lambda b: b["messages"].pop(1)),
    ("anthropic", lambda b: b["messages"][2]["content"].reverse()),
    ("anthropic", lambda b: b["messages"][2]["content"].pop(0)),
    ("anthropic", lambda b: b["messages"][0]["content"][0].update(text=" ")),
    ("anthropic", lambda b: b["messages"][1]["content"][0].update(signature="")),
    ("anthropic", lambda b: b["messages"][1]["content"][1].update(input="{}")),
    ("anthropic", lambda b: b["messages"][1]["content"][1].update(name="no such tool!")),
    ("anthropic", lambda b: b.update(system="")),
    ("anthropic", lambda b: b.update(max_tokens=0)),
    ("anthropic", lambda b: b.update(stream=False)),
    ("anthropic", lambda b: b.update(top_x=1)),
    ("anthropic", lambda b: b["tools"][0].update(input_schema={})),
    ("openai", lambda b: b["messages"].pop(3)),
    ("openai", lambda b: b["messages"].pop(2)),
    ("openai", lambda b: b["messages"].insert(3, {"role": "user", "content": "well?"})),
    ("openai", lambda b: b["messages"].append({"role": "user", "content": ""})),
    ("openai", lambda b: b["messages"].append({"role": "system", "content": "x"})),
    ("openai", lambda b: b["messages"].append({"role": "assistant", "content": None})),
    ("openai", lambda b: b["messages"][2]["tool_calls"][0]["function"].update(arguments={})),
    ("openai", lambda b: b.update(stream=False)),
    ("bedrock", lambda b: b.pop("toolConfig")),
    ("bedrock", lambda b: b["toolConfig"]["tools"].clear()),
    ("bedrock", lambda b: b["messages"].pop(0)),
    ("bedrock", lambda b: b["messages"][2]["content"].append({"text": ""})),
    ("bedrock", lambda b: b["messages"][2]["content"][0].update(text="x")),
    ("bedrock", lambda b: b["messages"][2]["content"].pop()),
    ("bedrock", lambda b: b["messages"][1]["content"][0]["toolUse"].update(toolUseId="a/b")),
    ("bedrock", lambda b: b["messages"][1]["content"][0]["toolUse"].update(input=[])),
]


def check(api: str, body: dict[str, Any], headers: dict[str, str]) -> None:
    """The check of an API."""
    if api == "anthropic":
        checks.anthropic(body, headers)
    elif api == "openai":
        checks.openai(body, headers, True)
    else:
        checks.bedrock(body)


BODIES = {"anthropic": ANTHROPIC, "openai": OPENAI, "bedrock": BEDROCK}


@pytest.mark.parametrize("api", BODIES)
def test_a_request_that_is_right_passes(api: str) -> None:
    check(api, BODIES[api], HEADERS)


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_request_that_is_wrong_does_not(number: int) -> None:
    api, change = CHANGES[number]
    body = copy.deepcopy(BODIES[api])
    change(body)
    with pytest.raises((checks.Wrong, KeyError, TypeError)):
        check(api, body, HEADERS)


@pytest.mark.parametrize("api", ["anthropic", "openai"])
def test_a_wrong_key_does_not(api: str) -> None:
    with pytest.raises(checks.Wrong, match="KEY"):
        check(api, BODIES[api], {**HEADERS, "authorization": "Bearer other"})


def test_sampling_parameters_go_with_the_older_version_of_anthropic() -> None:
    body = {**ANTHROPIC, "temperature": 1.0}
    with pytest.raises(checks.Wrong, match="removed"):
        checks.anthropic(body, HEADERS)
    checks.anthropic(body, {**HEADERS, "anthropic-version": "2023-06-01"})


def test_a_signature_is_that_of_the_request() -> None:
    """A signature that botocore 1.44 made."""
    body = json.dumps({"messages": []}).encode()
    headers = {"host": "127.0.0.1:1234", "x-amz-date": "20260102T030405Z",
               "content-type": "application/json", "x-amz-security-token": checks.AWS_TOKEN,
               "authorization": RECORDED}
    path = "/model/us.x-y%3A0/converse-stream"
    checks.aws_signature(path, headers, body, checks.AWS_TOKEN)
    for other in ({"host": "127.0.0.1:1235"}, {"x-amz-date": "20260102T030406Z"},
                  {"x-amz-security-token": "other"}):
        with pytest.raises(checks.Wrong):
            checks.aws_signature(path, {**headers, **other}, body, checks.AWS_TOKEN)
    with pytest.raises(checks.Wrong):
        checks.aws_signature(path, headers, body + b" ", checks.AWS_TOKEN)


RECORDED = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-west-2/bedrock/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "
    "Signature=1865f9f1b14e39af36c9b8f17cc32f1f58d6991e3b4d319d307807e4e1fc18cf")
