# SPDX-License-Identifier: Apache-2.0
"""Models written in Python, and those of the library as Python has them."""

import asyncio
import gc
import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from pinfold import (Agent, AgentConfig, AnthropicModel, BedrockModel, ModelReply, ModelRequest,
                     ModelUsage, OpenAIModel, ScriptedModel, tool)

from support import run, until

FAKE = Path(__file__).resolve().parents[1] / "models/fake.py"
sys.path.append(str(FAKE.parent))
import checks  # noqa: E402  # pylint: disable=wrong-import-position


@tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


class Echo:
    """Calls a tool once, then says what it answered."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    def converse(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        last = request.messages[-1]["content"][0]
        if "toolResult" not in last:
            return ModelReply(["I ask.", {"toolUse": {"toolUseId": "c1", "name": "double",
                                                      "input": {"x": 21}}}],
                              usage=ModelUsage(1, 2, 3, 4))
        return ModelReply([{"reasoningContent": {"reasoningText": {"text": "Hm.",
                                                                   "signature": "s"}}},
                           {"text": last["toolResult"]["content"][0]["text"]}],
                          usage=ModelUsage(10, 20, 30, 40))


def test_plain_models_converse() -> None:
    model = Echo()
    agent = Agent(AgentConfig(model=model, tools=[double], system_prompt="Be kind.",
                              max_tokens=100))
    result = agent("go")
    assert (result.text, result.stop_reason, result.usage) \
        == ("42", "end_turn", ModelUsage(11, 22, 33, 44))
    first, second = model.requests
    assert (first.system, first.max_tokens, first.temperature) == ("Be kind.", 100, None)
    assert first.messages == [{"role": "user", "content": [{"text": "go"}]}]
    assert [one["name"] for one in first.tools] == ["double"]
    assert json.loads(first.tools[0]["inputSchema"])["required"] == ["x"]
    assert second.messages[1]["content"][1]["toolUse"]["input"] == {"x": 21}
    assert agent.messages[-1]["content"][0]["reasoningContent"]["reasoningText"]["signature"] == "s"


def test_coroutines_converse_on_the_loop_and_stream() -> None:
    class Model:
        async def converse(self, request: ModelRequest) -> str:
            assert threading.current_thread() is threading.main_thread()
            for word in "one ", "two":
                request.emit(word)
                await asyncio.sleep(0)
            return "one two"

    async def main() -> None:
        agent = Agent(AgentConfig(model=Model()))
        events = [event async for event in agent.stream_async("go")]
        assert [event["data"] for event in events if "data" in event] == ["one ", "two"]
        assert events[-1]["result"].text == "one two"
    run(main())


def test_cancelling_reaches_a_model() -> None:
    heard: list[str] = []

    class Model:
        async def converse(self, request: ModelRequest) -> str:
            heard.append("asked")
            try:
                await asyncio.sleep(1000)
            finally:
                heard.append("ended")
            return ""

    async def main() -> None:
        task = asyncio.ensure_future(Agent(AgentConfig(model=Model())).invoke_async("go"))
        await until(lambda: heard)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert heard == ["asked", "ended"]
    run(main())


@pytest.mark.parametrize("answer, error, words", [
    (None, KeyError, "no key"), (7, TypeError, "not ModelReply"),
    (ModelReply("x", stop_reason="tired"), ValueError, "stop_reason"),
    (ModelReply([{"image": {}}]), ValueError, "not image"),
])
def test_what_is_no_reply_is_said(answer: Any, error: Any, words: str) -> None:
    class Model:
        def converse(self, request: ModelRequest) -> Any:
            if answer is None:
                raise KeyError("no key")
            return answer

    with pytest.raises(error, match=words):
        Agent(AgentConfig(model=Model()))("go")


def test_models_and_agents_that_know_each_other_are_collected() -> None:
    def make() -> Any:
        model = Echo()
        agent = Agent(AgentConfig(model=model, tools=[double]))
        model.agent = agent  # type: ignore[attr-defined]
        agent("go")
        return weakref.ref(agent), weakref.ref(model)

    refs = make()
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


# ---- of the library ----

@pytest.fixture(name="endpoint", scope="module")
def fake_endpoint() -> Any:
    """Three services of models in one."""
    with subprocess.Popen([sys.executable, FAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        assert child.stdout and child.stdin
        yield json.loads(child.stdout.readline())["endpoint"]
        child.stdin.close()


@pytest.mark.parametrize("make", [
    lambda url: AnthropicModel("text", base_url=url, api_key=checks.KEY),
    lambda url: OpenAIModel("text", base_url=f"{url}/v1", api_key=checks.KEY),
    lambda url: BedrockModel("text", base_url=url, region=checks.AWS_REGION,
                             access_key=checks.AWS_KEY, secret_key=checks.AWS_SECRET,
                             session_token=checks.AWS_TOKEN),
], ids=["anthropic", "openai", "bedrock"])
def test_providers_answer(make: Any, endpoint: str) -> None:
    model = make(endpoint)
    result = Agent(AgentConfig(model=model))("Hello")
    assert result.text == "Hello, wörld! \U0001f600 Bye." and result.stop_reason == "end_turn"
    assert result.usage and result.usage.output_tokens
    assert repr(model) == f"{type(model).__name__}('text')"
    assert model.provider == type(model).__name__.removesuffix("Model").lower()


def test_providers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ValueError, match="key"):
        AnthropicModel("claude")
    with pytest.raises(ValueError, match="attempts"):
        AnthropicModel("claude", api_key="k" * 20, attempts=0)
    with pytest.raises(ValueError, match="provider"):
        Agent(AgentConfig(model="nobody:x"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert Agent(AgentConfig(model="openai:x")).model.model_id == "x"
    with pytest.raises(ValueError, match="turns"):
        ScriptedModel({"turns": 7})
    with pytest.raises(FileNotFoundError):
        ScriptedModel(tmp_path / "none.json")
