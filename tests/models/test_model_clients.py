# SPDX-License-Identifier: Apache-2.0
"""The services' own clients understand the fake, and it understands them."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

import checks
import shapes

TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A fake of this file's own."""
    fake = subprocess.Popen([sys.executable, str(Path(__file__).with_name("fake.py"))],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert fake.stdin and fake.stdout
    try:
        yield json.loads(fake.stdout.readline())["endpoint"]
    finally:
        fake.stdin.close()
        assert fake.wait(60) == 0
        fake.stdout.close()


def client_of(name: str) -> Any:
    """A client's module, if it is there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name}, the client of a service of models, is not installed")


def said(name: str) -> tuple[str, list[dict[str, Any]]]:
    """What a reply of shapes.py says: all text, and the calls."""
    blocks, _ = shapes.REPLIES[name]
    return ("".join(block.get("text", "") for block in blocks),
            [{"id": block["id"], "name": block["tool"], "input": block["input"]}
             for block in blocks if "tool" in block])


@pytest.mark.parametrize("name", ["text", "tool", "parallel", "reasoning", "redacted"])
def test_anthropic_s_client_reads_the_fake(endpoint: str, name: str) -> None:
    anthropic = client_of("anthropic")
    client = anthropic.Anthropic(api_key=checks.KEY, base_url=endpoint, max_retries=0)
    with client.messages.stream(model=name, max_tokens=10, stop_sequences=["x"],
                                messages=[{"role": "user",
                                           "content": [{"type": "text", "text": "hi"}]}],
                                tools=[{"name": "read_file", "input_schema": TOOL}]) as stream:
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [{"id": block.id, "name": block.name, "input": block.input}
             for block in message.content if block.type == "tool_use"]
    assert (text, calls) == said(name)
    assert message.usage.output_tokens == shapes.USAGE["output"]
    if name == "reasoning":
        assert message.content[0].signature == "c2lnbmVk"


def test_anthropic_s_client_knows_its_errors(endpoint: str) -> None:
    anthropic = client_of("anthropic")
    client = anthropic.Anthropic(api_key=checks.KEY, base_url=f"{endpoint}/s/fail=529",
                                 max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(model="text", max_tokens=10, stream=True,
                               messages=[{"role": "user", "content": "hi"}])
    assert caught.value.status_code == 529


@pytest.mark.parametrize("name", ["text", "tool", "parallel"])
def test_openai_s_client_reads_the_fake(endpoint: str, name: str) -> None:
    openai = client_of("openai")
    client = openai.OpenAI(api_key=checks.KEY, base_url=f"{endpoint}/v1", max_retries=0)
    stream = client.chat.completions.create(
        model=name, stream=True, stream_options={"include_usage": True},
        messages=[{"role": "user", "content": "hi"}],
        tools=[{"type": "function", "function": {"name": "read_file", "parameters": TOOL}}])
    text, calls, usage = "", {}, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                kept = calls.setdefault(call.index, {"id": call.id, "name": call.function.name,
                                                     "input": ""})
                kept["input"] += call.function.arguments or ""
    found = [{**call, "input": json.loads(call["input"])} for call in calls.values()]
    assert (text, found) == said(name)
    assert usage.completion_tokens == shapes.USAGE["output"]


def bedrock(endpoint: str) -> Any:
    """A client of the Bedrock Runtime."""
    boto3 = client_of("boto3")
    if "bedrock-runtime" not in boto3.session.Session().get_available_services():
        pytest.skip("this botocore is older than the service")
    client = boto3.client("bedrock-runtime", endpoint_url=endpoint, region_name=checks.AWS_REGION,
                          aws_access_key_id=checks.AWS_KEY,
                          aws_secret_access_key=checks.AWS_SECRET,
                          aws_session_token=checks.AWS_TOKEN)
    if not hasattr(client, "converse_stream"):
        pytest.skip("this botocore is older than the service")
    return client


@pytest.mark.parametrize("name", ["text", "tool", "parallel", "reasoning"])
def test_boto3_reads_the_fake(endpoint: str, name: str) -> None:
    client = bedrock(endpoint)
    arn = f"arn:aws:bedrock:us-west-2:123456789012:inference-profile/{name}"
    stream = client.converse_stream(
        modelId=arn, messages=[{"role": "user", "content": [{"text": "hi"}]}],
        toolConfig={"tools": [{"toolSpec": {"name": "read_file", "inputSchema": {"json": TOOL}}}]})
    text, calls, usage = "", [], {}
    for event in stream["stream"]:
        if "contentBlockStart" in event:
            tool = event["contentBlockStart"]["start"]["toolUse"]
            calls.append({"id": tool["toolUseId"], "name": tool["name"], "input": ""})
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        text += delta.get("text", "")
        if "toolUse" in delta:
            calls[-1]["input"] += delta["toolUse"]["input"]
        usage = event.get("metadata", {}).get("usage", usage)
    found = [{**call, "input": json.loads(call["input"] or "{}")} for call in calls]
    assert (text, found) == said(name)
    assert usage["cacheReadInputTokens"] == shapes.USAGE["cache_read"]


def test_boto3_knows_errors_in_the_stream(endpoint: str) -> None:
    client = bedrock(f"{endpoint}/s/error_at=3,type=throttlingException")
    stream = client.converse_stream(modelId="text",
                                    messages=[{"role": "user", "content": [{"text": "hi"}]}])
    with pytest.raises(Exception, match="throttlingException"):
        list(stream["stream"])
