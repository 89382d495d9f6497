# SPDX-License-Identifier: Apache-2.0
"""What each API would refuse in a request, read from its documentation and from nothing of ours."""

import hashlib
import hmac
import re
from typing import Any
from urllib.parse import quote

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
KEY = "sk-test-0123456789"
AWS_KEY, AWS_SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
AWS_TOKEN, AWS_REGION = "session/token==", "us-west-2"


class Wrong(Exception):
    """The request is wrong; the text says why."""


def demand(holds: Any, why: str) -> None:
    """Refuse the request unless it holds."""
    if not holds:
        raise Wrong(why)


def only(value: dict[str, Any], *names: str) -> None:
    """No members but these."""
    demand(isinstance(value, dict), "not an object")
    demand(set(value) <= set(names), f"unknown members {sorted(set(value) - set(names))}")


def nonblank(text: Any) -> None:
    """Text blocks hold more than white space."""
    demand(isinstance(text, str) and text.strip(), "text content blocks must be non-empty")


def alternate(messages: Any) -> None:
    """Roles alternate, beginning with the user."""
    demand(isinstance(messages, list) and messages, "messages: at least one is needed")
    for number, message in enumerate(messages):
        only(message, "role", "content")
        demand(message["role"] == ("user", "assistant")[number % 2], "roles must alternate")
        demand(isinstance(message["content"], list) and message["content"], "empty content")


def pair(calls: list[str], results: list[str], after: bool) -> None:
    """Every call has its result in the next message, and every result its call."""
    demand(sorted(calls) == sorted(results) or (not after and not results),
           f"calls {calls} and results {results} do not match")


# ---- Anthropic ----

def anthropic_block(block: dict[str, Any], role: str) -> None:
    """One block of a message."""
    kind = block["type"]
    if kind == "text":
        only(block, "type", "text")
        nonblank(block["text"])
    elif kind == "tool_use":
        only(block, "type", "id", "name", "input")
        demand(role == "assistant" and isinstance(block["input"], dict), "tool_use is wrong")
        demand(re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), "tool_use.id")
        demand(NAME.fullmatch(block["name"]), "tool_use.name")
    elif kind == "tool_result":
        only(block, "type", "tool_use_id", "content", "is_error")
        demand(role == "user", "tool_result of an assistant")
        demand(isinstance(block.get("content", ""), str), "tool_result.content")
    elif kind == "thinking":
        only(block, "type", "thinking", "signature")
        demand(isinstance(block["thinking"], str) and block["signature"], "thinking.signature")
    else:
        demand(kind == "redacted_thinking", f"unknown type {kind}")
        only(block, "type", "data")


def anthropic(body: dict[str, Any], headers: dict[str, str]) -> None:
    """A request of the Messages API."""
    demand(headers.get("authorization") == f"Bearer {KEY}", "KEY")
    demand(headers.get("anthropic-version") in ("2023-06-01", "2026-10-21"), "anthropic-version")
    demand(headers["anthropic-version"] == "2023-06-01" or
           not {"temperature", "top_p", "top_k"} & set(body), "sampling parameters are removed")
    demand(headers.get("content-type") == "application/json", "content-type")
    only(body, "model", "max_tokens", "messages", "system", "tools", "temperature", "stream",
         "stop_sequences", "thinking")
    demand(isinstance(body["max_tokens"], int) and body["max_tokens"] > 0, "max_tokens")
    demand(body.get("stream") is True, "stream")
    demand(isinstance(body.get("system", "x"), str) and body.get("system", "x"), "system")
    for tool in body.get("tools", []):
        only(tool, "name", "description", "input_schema")
        demand(NAME.fullmatch(tool["name"]), "tools.name")
        demand(tool["input_schema"].get("type") == "object", "tools.input_schema.type")
    alternate(body["messages"])
    calls: list[str] = []
    for message in body["messages"]:
        for block in message["content"]:
            anthropic_block(block, message["role"])
        kinds = [block["type"] for block in message["content"]]
        results = [block["tool_use_id"] for block in message["content"]
                   if block["type"] == "tool_result"]
        demand(kinds[:len(results)] == ["tool_result"] * len(results), "tool_result must be first")
        if message["role"] == "user":
            pair(calls, results, True)
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]


# ---- OpenAI ----

def openai(body: dict[str, Any], headers: dict[str, str], key: bool) -> None:
    """A request of chat completions."""
    wanted = f"Bearer {KEY}" if key else None
    demand(headers.get("authorization") == wanted, "KEY")
    only(body, "model", "messages", "stream", "stream_options", "tools", "temperature", "stop",
         "max_tokens", "max_completion_tokens")
    demand(body.get("stream") is True, "stream")
    demand(body["messages"], "messages")
    for tool in body.get("tools", []):
        only(tool, "type", "function")
        only(tool["function"], "name", "description", "parameters")
        demand(NAME.fullmatch(tool["function"]["name"]), "tools.function.name")
    open_calls: list[str] = []
    for number, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            only(message, "role", "tool_call_id", "content")
            demand(message["tool_call_id"] in open_calls, "a tool message without its call")
            open_calls.remove(message["tool_call_id"])
            continue
        demand(not open_calls, f"calls without results: {open_calls}")
        if role == "assistant":
            only(message, "role", "content", "tool_calls", "reasoning_content")
            demand(message.get("tool_calls") or message["content"], "an empty assistant")
            for call in message.get("tool_calls", []):
                only(call, "id", "type", "function")
                only(call["function"], "name", "arguments")
                demand(isinstance(call["function"]["arguments"], str), "arguments")
                open_calls.append(call["id"])
        else:
            demand(role == "user" or (role == "system" and number == 0), f"role {role}")
            only(message, "role", "content")
            nonblank(message["content"])
    demand(not open_calls, f"calls without results: {open_calls}")


# ---- Bedrock ----

def bedrock_block(block: dict[str, Any], role: str) -> None:
    """One block of a message: a union, of which one member is set."""
    demand(len(block) == 1, "a union has one member")
    kind, value = next(iter(block.items()))
    if kind == "text":
        nonblank(value)
    elif kind == "toolUse":
        only(value, "toolUseId", "name", "input")
        demand(role == "assistant" and isinstance(value["input"], dict), "toolUse")
        demand(NAME.fullmatch(value["name"]), "toolUse.name")
        demand(re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", value["toolUseId"]), "toolUse.toolUseId")
    elif kind == "toolResult":
        only(value, "toolUseId", "content", "status")
        demand(role == "user" and value.get("status", "error") in ("error", "success"),
               "toolResult")
        for part in value["content"]:
            only(part, "text")
            nonblank(part["text"])
    else:
        demand(kind == "reasoningContent" and role == "assistant", f"unknown member {kind}")
        demand(len(value) == 1, "a union has one member")
        only(value, "reasoningText", "redactedContent")
        if "reasoningText" in value:
            only(value["reasoningText"], "text", "signature")


def bedrock(body: dict[str, Any]) -> None:
    """A request of ConverseStream."""
    only(body, "messages", "system", "inferenceConfig", "toolConfig",
         "additionalModelRequestFields")
    only(body.get("inferenceConfig", {}), "maxTokens", "temperature", "stopSequences")
    for part in body.get("system", []):
        nonblank(part["text"])
    if "toolConfig" in body:
        demand(body["toolConfig"]["tools"], "toolConfig.tools: at least one is needed")
        for tool in body["toolConfig"]["tools"]:
            only(tool["toolSpec"], "name", "description", "inputSchema")
            demand(NAME.fullmatch(tool["toolSpec"]["name"]), "toolSpec.name")
            demand(tool["toolSpec"].get("description", "x"), "toolSpec.description")
            demand(isinstance(tool["toolSpec"]["inputSchema"]["json"], dict), "inputSchema")
    alternate(body["messages"])
    calls: list[str] = []
    for message in body["messages"]:
        for block in message["content"]:
            bedrock_block(block, message["role"])
            demand("toolConfig" in body or not {"toolUse", "toolResult"} & set(block),
                   "The toolConfig field must be defined when using toolUse and toolResult")
        results = [block["toolResult"]["toolUseId"] for block in message["content"]
                   if "toolResult" in block]
        if message["role"] == "user":
            pair(calls, results, True)
        calls = [block["toolUse"]["toolUseId"] for block in message["content"]
                 if "toolUse" in block]


def aws_signature(path: str, headers: dict[str, str], body: bytes, token: str | None) -> None:
    """Signature Version 4, as AWS's general reference describes it."""
    given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request,"
                         r" ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                         headers.get("authorization", ""))
    demand(given, "no signature")
    assert given
    key, day, region, service, names, signature = given.groups()
    demand((key, region, service) == (AWS_KEY, AWS_REGION, "bedrock"), "KEY")
    demand(headers.get("x-amz-security-token") == token, "the token")
    signed = names.split(";")
    demand({"host", "x-amz-date"} <= set(signed) and signed == sorted(signed), "signed headers")
    canonical = "\n".join(["POST", quote(path, safe="/-_.~"), "",
                           *(f"{name}:{headers[name].strip()}" for name in signed), "", names,
                           hashlib.sha256(body).hexdigest()])
    scope = f"{day}/{region}/{service}/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope,
                         hashlib.sha256(canonical.encode()).hexdigest()])
    secret = f"AWS4{AWS_SECRET}".encode()
    for part in (day, region, service, "aws4_request", to_sign):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    demand(hmac.compare_digest(secret.hex(), signature), "the signature does not match")
