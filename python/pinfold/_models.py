# SPDX-License-Identifier: Apache-2.0
"""Models: the providers of the library, and models of your own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Union, runtime_checkable

from . import _check as check
from . import _pinfold
from ._check import StrPath
from ._messages import (STOP_REASONS, ContentBlock, Message, RawBlock, RawMessage, dump, message,
                        raw_blocks)

RawUsage = Union[tuple[int, int, int, int], None]
RawReply = tuple[list[RawBlock], int, Union[str, None], Union[str, None], RawUsage]

_STOP_NUMBERS = {name: number for number, name in STOP_REASONS.items()}


@dataclass
class ModelUsage:
    """Tokens, as the provider counted them. What came from a cache or went to one is not in
    input_tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass
class ModelRequest:
    """What a model is asked."""

    system: str | None
    messages: list[Message]
    #: Each has name, description and inputSchema.
    tools: list[dict[str, Any]]
    #: 0: the model's own.
    max_tokens: int
    temperature: float | None
    stop_sequences: list[str] | None
    _emit: Callable[[str], None] = field(repr=False, compare=False)

    def emit(self, text: str) -> None:
        """Tell of a piece of the reply's text while it arrives."""
        self._emit(text)


@dataclass
class ModelReply:
    """What a model answers."""

    #: Text, or blocks: {"text"}, {"toolUse"}, {"reasoningContent"}.
    content: str | Sequence[ContentBlock | str]
    #: None: "tool_use" if it calls tools, else "end_turn".
    stop_reason: str | None = None
    usage: ModelUsage | None = None
    stop_detail: str = ""
    request_id: str = ""


@runtime_checkable
class Model(Protocol):
    """A model of your own. converse() continues a conversation by one message; it may be a
    coroutine, and then runs on the event loop of the invocation."""

    def converse(self, request: ModelRequest) -> Any:
        """A ModelReply, or a text."""


class _LibraryModel:
    """A provider of the library."""

    _core: _pinfold.Model

    @property
    def provider(self) -> str:
        """For example "anthropic"."""
        return self._core.provider

    @property
    def model_id(self) -> str:
        """The provider's name of the model."""
        return self._core.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_id!r})"


def _open(spec: str, *, base_url: str | None = None, api_key: str | None = None,
          allow_plain_http: bool = False, max_tokens: int | None = None,
          temperature: float | None = None, extra: Mapping[str, Any] | None = None,
          connect_timeout: float | None = None, idle_timeout: float | None = None,
          timeout: float | None = None, attempts: int | None = None,
          backoff: float | None = None, max_reply_bytes: int | None = None,
          send_reasoning: bool = False, region: str | None = None, profile: str | None = None,
          access_key: str | None = None, secret_key: str | None = None,
          session_token: str | None = None) -> _pinfold.Model:
    check.texts(base_url=base_url, api_key=api_key, region=region, profile=profile,
                access_key=access_key, secret_key=secret_key, session_token=session_token)
    for name, value in {"connect_timeout": connect_timeout, "idle_timeout": idle_timeout,
                        "timeout": timeout, "backoff": backoff}.items():
        if value is not None:
            check.positive(name, value)
    if extra is not None:
        check.expect("extra", extra, Mapping)
    return _pinfold.model_open(
        spec, base_url, api_key, check.flag("allow_plain_http", allow_plain_http),
        check.count("max_tokens", max_tokens, check.UINT32_MAX),
        None if temperature is None else check.number("temperature", temperature),
        None if extra is None else dump(dict(extra)), connect_timeout or 0.0, idle_timeout or 0.0,
        timeout or 0.0, check.count("attempts", attempts, check.UINT32_MAX), backoff or 0.0,
        check.count("max_reply_bytes", max_reply_bytes),
        check.flag("send_reasoning", send_reasoning), region, profile, access_key, secret_key,
        session_token)


def _spec(provider: str, model_id: str) -> str:
    return f"{provider}:{check.text('model_id', model_id)}"


class BedrockModel(_LibraryModel):
    """A model of Amazon Bedrock: a name, an inference profile or an ARN. The key is
    AWS_BEARER_TOKEN_BEDROCK, or credentials are looked for where AWS's own tools do."""

    def __init__(self, model_id: str, *, region: str | None = None, profile: str | None = None,
                 access_key: str | None = None, secret_key: str | None = None,
                 session_token: str | None = None, api_key: str | None = None,
                 base_url: str | None = None, max_tokens: int | None = None,
                 temperature: float | None = None, extra: Mapping[str, Any] | None = None,
                 timeout: float | None = None, idle_timeout: float | None = None,
                 attempts: int | None = None, allow_plain_http: bool = False):
        self._core = _open(
            _spec("bedrock", model_id), region=region, profile=profile, access_key=access_key,
            secret_key=secret_key, session_token=session_token, api_key=api_key, base_url=base_url,
            max_tokens=max_tokens, temperature=temperature, extra=extra, timeout=timeout,
            idle_timeout=idle_timeout, attempts=attempts, allow_plain_http=allow_plain_http)


class AnthropicModel(_LibraryModel):
    """A model of Anthropic; the key is ANTHROPIC_API_KEY."""

    def __init__(self, model_id: str, *, api_key: str | None = None, base_url: str | None = None,
                 max_tokens: int | None = None, temperature: float | None = None,
                 extra: Mapping[str, Any] | None = None, timeout: float | None = None,
                 idle_timeout: float | None = None, attempts: int | None = None,
                 allow_plain_http: bool = False):
        self._core = _open(
            _spec("anthropic", model_id), api_key=api_key, base_url=base_url, max_tokens=max_tokens,
            temperature=temperature, extra=extra, timeout=timeout, idle_timeout=idle_timeout,
            attempts=attempts, allow_plain_http=allow_plain_http)


class OpenAIModel(_LibraryModel):
    """A model of any server of OpenAI's chat completions: base_url ends in the API's version, as in
    "http://127.0.0.1:11434/v1". The key is OPENAI_API_KEY; other servers than OpenAI's need none.
    """

    def __init__(self, model_id: str, *, base_url: str | None = None, api_key: str | None = None,
                 max_tokens: int | None = None, temperature: float | None = None,
                 extra: Mapping[str, Any] | None = None, timeout: float | None = None,
                 idle_timeout: float | None = None, attempts: int | None = None,
                 allow_plain_http: bool = False, send_reasoning: bool = False):
        self._core = _open(
            _spec("openai", model_id), api_key=api_key, base_url=base_url, max_tokens=max_tokens,
            temperature=temperature, extra=extra, timeout=timeout, idle_timeout=idle_timeout,
            attempts=attempts, allow_plain_http=allow_plain_http, send_reasoning=send_reasoning)


class ScriptedModel(_LibraryModel):
    """A model that says what a script tells it to, for tests: a file, or the same as a dict.
    docs/models.md has the form."""

    def __init__(self, script: StrPath | Mapping[str, Any]):
        if isinstance(script, Mapping):
            self._core = _pinfold.model_script(dump(dict(script)).encode())
        else:
            self._core = _open(f"scripted:{os.fsdecode(check.path('script', script))}")


class _NamedModel(_LibraryModel):
    """A model that was asked for as "PROVIDER:NAME"."""

    def __init__(self, spec: str):
        self._core = _open(check.text("model", spec))


def choose_model(given: Any) -> Any:
    """The model of a configuration: None is what PINFOLD_MODEL names, if it does."""
    if given is None:
        given = os.environ.get("PINFOLD_MODEL") or None
    if given is None or isinstance(given, _LibraryModel):
        return given
    if isinstance(given, str):
        return _NamedModel(given)
    if not isinstance(given, type) and callable(getattr(given, "converse", None)):
        return given
    raise TypeError(f"model: a model of pinfold, an object with converse(), or a text such as "
                    f"'anthropic:NAME' is required, not {given!r}")


def request_of(raw: tuple[Any, ...], emit: Callable[[str], None]) -> ModelRequest:
    """What the library asks a model of one's own."""
    system, messages, tools, max_tokens, temperature, stops = raw
    specs = [{"name": name, "description": text, "inputSchema": schema}
             for name, text, schema in tools]
    conversation: list[RawMessage] = messages
    return ModelRequest(system, [message(one) for one in conversation], specs, max_tokens,
                        temperature, stops, emit)


def raw_reply(given: Any) -> RawReply:
    """What a model of one's own answered."""
    if isinstance(given, str):
        given = ModelReply(given)
    if not isinstance(given, ModelReply):
        raise TypeError(f"converse returned {type(given).__name__}, not ModelReply")
    content = raw_blocks(given.content)
    calls = any(kind == 2 for kind, *_ in content)
    stop = given.stop_reason or ("tool_use" if calls else "end_turn")
    if stop not in _STOP_NUMBERS:
        raise ValueError(f"stop_reason is one of {', '.join(_STOP_NUMBERS)}, not {stop!r}")
    usage = given.usage
    check.texts(stop_detail=given.stop_detail, request_id=given.request_id)
    return (content, _STOP_NUMBERS[stop], given.stop_detail, given.request_id,
            None if usage is None else (_tokens(usage.input_tokens), _tokens(usage.output_tokens),
                                        _tokens(usage.cache_read_tokens),
                                        _tokens(usage.cache_write_tokens)))


def _tokens(value: Any) -> int:
    return check.whole("usage", value, 0)
