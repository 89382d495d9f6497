# SPDX-License-Identifier: Apache-2.0
"""Conversations and results of tools: as people write them, and as the library has them.

The shapes are those that Bedrock's Converse API has, and the agents built on it:
    {"role": "user", "content": [{"text": "..."}]}
    {"toolUse": {"toolUseId": "...", "name": "...", "input": {...}}}
    {"toolResult": {"toolUseId": "...", "status": "success", "content": [{"text": "..."}]}}
    {"reasoningContent": {"reasoningText": {"text": "..."}}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Union

Message = dict[str, Any]
ContentBlock = dict[str, Any]
ToolUse = dict[str, Any]
ToolResult = dict[str, Any]

RawBlock = tuple[int, str, Union[str, None], Union[str, None], bool, Union[str, None]]
RawMessage = tuple[int, list[RawBlock]]
RawContent = tuple[int, Union[str, bytes], Union[str, None], Union[str, None]]
RawResult = tuple[bool, list[RawContent]]

_ROLES = {1: "user", 2: "assistant"}
_NUMBERS = {name: number for number, name in _ROLES.items()}
_TEXT, _TOOL_USE, _TOOL_RESULT, _REASONING = range(1, 5)  # enum pinfold_block_kind
_IS_TEXT, _IS_JSON, _IS_IMAGE, _IS_DOCUMENT = range(4)  # enum pinfold_tool_content_kind

#: enum pinfold_stop_reason, by the names that Anthropic gave them.
STOP_REASONS = {1: "end_turn", 2: "tool_use", 3: "max_tokens", 4: "refusal", 5: "stop_sequence",
                6: "pause_turn"}


def parse_input(text: str) -> Any:
    """The input of a tool call; what is no JSON stays text."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def dump(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# ---- from the library ----

def _block(raw: RawBlock) -> ContentBlock:
    kind, text, own_id, name, flag, opaque = raw
    if kind == _TOOL_USE:
        return {"toolUse": {"toolUseId": own_id, "name": name,
                            "input": parse_input(text) if flag else text}}
    if kind == _TOOL_RESULT:
        return {"toolResult": {"toolUseId": own_id, "status": "error" if flag else "success",
                               "content": [{"text": text}]}}
    if kind == _REASONING:
        thought: dict[str, Any] = {"text": text}
        if opaque is not None:
            thought["signature"] = opaque
        return {"reasoningContent": {"reasoningText": thought}}
    return {"text": text}


def blocks(raw: Iterable[RawBlock]) -> list[ContentBlock]:
    """The content of a message."""
    return [_block(block) for block in raw]


def message(raw: RawMessage) -> Message:
    """A message."""
    role, content = raw
    return {"role": _ROLES[role], "content": blocks(content)}


def result(raw: RawResult, tool_use_id: str) -> ToolResult:
    """The result of a tool."""
    is_error, items = raw
    return {"toolUseId": tool_use_id, "status": "error" if is_error else "success",
            "content": [_content(item) for item in items]}


def _content(raw: RawContent) -> ContentBlock:
    kind, data, form, name = raw
    if kind == _IS_TEXT:
        return {"text": data}
    if kind == _IS_JSON:
        return {"json": json.loads(data)}
    if kind == _IS_IMAGE:
        return {"image": {"format": form, "source": {"bytes": data}}}
    return {"document": {"format": form, "name": name or "document", "source": {"bytes": data}}}


# ---- to the library ----

def _raw_tool_result(given: Mapping[str, Any]) -> RawBlock:
    content = given.get("content", ())
    text = content if isinstance(content, str) else "\n".join(
        one["text"] if "text" in one else dump(one.get("json", one)) for one in content)
    return (_TOOL_RESULT, text, str(given["toolUseId"]), None, given.get("status") == "error", None)


def _raw_block(block: ContentBlock | str) -> RawBlock:
    if isinstance(block, str):
        return _TEXT, block, None, None, False, None
    if "text" in block:
        return _TEXT, str(block["text"]), None, None, False, None
    if "toolUse" in block:
        use = block["toolUse"]
        given = use.get("input", {})
        return (_TOOL_USE, given if isinstance(given, str) else dump(given), str(use["toolUseId"]),
                str(use["name"]), False, None)
    if "toolResult" in block:
        return _raw_tool_result(block["toolResult"])
    if "reasoningContent" in block:
        thought = block["reasoningContent"]["reasoningText"]
        return _REASONING, str(thought["text"]), None, None, False, thought.get("signature")
    raise ValueError(f"a block of a message has text, toolUse, toolResult or reasoningContent, "
                     f"not {', '.join(map(str, block))}")


def raw_blocks(content: str | Iterable[ContentBlock | str]) -> list[RawBlock]:
    """Content, as text or as a list of blocks."""
    return [_raw_block(block) for block in ([content] if isinstance(content, str) else content)]


def raw_messages(messages: Iterable[Message]) -> list[RawMessage]:
    """A conversation."""
    found = []
    for one in messages:
        if one.get("role") not in _NUMBERS:
            raise ValueError(f"the role of a message is user or assistant, not {one.get('role')!r}")
        found.append((_NUMBERS[one["role"]], raw_blocks(one["content"])))
    return found


def _raw_content(block: ContentBlock | str) -> RawContent:
    if isinstance(block, str):
        return _IS_TEXT, block, None, None
    if "text" in block:
        return _IS_TEXT, str(block["text"]), None, None
    if "json" in block:
        return _IS_JSON, dump(block["json"]), None, None
    for kind, name in (_IS_IMAGE, "image"), (_IS_DOCUMENT, "document"):
        if name in block:
            given = block[name]
            return kind, bytes(given["source"]["bytes"]), str(given["format"]), given.get("name")
    raise ValueError(f"a block of a result has text, json, image or document, "
                     f"not {', '.join(map(str, block))}")


def raw_result(given: Mapping[str, Any]) -> RawResult:
    """The result of a tool, a dict with status and content."""
    content = given["content"]
    return given["status"] == "error", [
        _raw_content(block) for block in ([content] if isinstance(content, str) else content)]


def raw_value(value: Any) -> RawResult:
    """Whatever a tool returned."""
    if isinstance(value, Mapping) and "status" in value and "content" in value:
        return raw_result(value)
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "replace")
    elif not isinstance(value, str):
        try:
            value = dump(value)
        except (TypeError, ValueError):
            value = str(value)
    return False, [(_IS_TEXT, value, None, None)]


def raw_failure(error: BaseException) -> RawResult:
    """What the model is told of an exception."""
    text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return True, [(_IS_TEXT, text, None, None)]
