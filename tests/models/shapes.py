# SPDX-License-Identifier: Apache-2.0
"""Replies of three APIs, in the shapes that their documentation shows.

Anthropic: platform.claude.com/docs, "Streaming messages". OpenAI: "Create chat completion",
"Streaming". Bedrock: API reference of the Bedrock Runtime, "ConverseStreamOutput".
"""

import json
import struct
import zlib
from typing import Any, Iterator

Block = dict[str, Any]
Switches = dict[str, str]

USAGE = {"input": 25, "output": 15, "cache_read": 7, "cache_write": 3}

# What a model says, whichever API it is behind: blocks, and why it stops.
REPLIES: dict[str, tuple[list[Block], str]] = {
    "text": ([{"text": "Hello, wörld! \U0001f600 Bye."}], "end"),
    "tool": ([{"text": "I look."},
              {"tool": "read_file", "id": "call_1", "input": {"path": "a b/ü.txt", "n": 1.5}}],
             "tool"),
    "parallel": ([{"tool": "read_file", "id": "call_1", "input": {"path": "a"}},
                  {"tool": "read_file", "id": "call_2", "input": {"path": "b"}},
                  {"tool": "list_dir", "id": "call_3", "input": {}}], "tool"),
    "refusal": ([{"text": "I cannot"}], "refusal"),
    "length": ([{"text": "It goes on and"}], "length"),
    "cut_tool": ([{"tool": "read_file", "id": "call_1", "raw": '{"path": "a'}], "length"),
    "broken_tool": ([{"tool": "read_file", "id": "call_1", "raw": '{"path": oops}'}], "tool"),
    "reasoning": ([{"reasoning": "Let me see.", "signature": "c2lnbmVk"}, {"text": "42"}], "end"),
    "redacted": ([{"redacted": "c2VjcmV0"}, {"text": "42"}], "end"),
    "sequence": ([{"text": "one, two, "}], "sequence"),
    "empty": ([], "end"),
    "pause": ([{"text": "Searching"}], "pause"),
    "long": ([{"text": "0123456789abcdef" * 65536}], "end"),
    "short": ([{"text": "Hi"}, {"tool": "t", "id": "call_1", "input": {"a": 1}}], "tool"),
}

STOPS = {
    "anthropic": {"end": "end_turn", "tool": "tool_use", "refusal": "refusal",
                  "length": "max_tokens", "sequence": "stop_sequence", "pause": "pause_turn"},
    "openai": {"end": "stop", "tool": "tool_calls", "refusal": "content_filter",
               "length": "length", "sequence": "stop", "pause": "stop"},
    "bedrock": {"end": "end_turn", "tool": "tool_use", "refusal": "guardrail_intervened",
                "length": "max_tokens", "sequence": "stop_sequence", "pause": "end_turn"},
}


def pieces(text: str, size: int = 5) -> list[str]:
    """A text as a model sends it: a few characters at a time."""
    return [text[at:at + size] for at in range(0, len(text), size)]


def raw_input(block: Block) -> str:
    """The input of a call as the model wrote it."""
    return block["raw"] if "raw" in block else json.dumps(block["input"], ensure_ascii=False)


# ---- server-sent events ----

def sse(data: Any, event: str | None = None, switches: Switches | None = None) -> bytes:
    """One event."""
    switches = switches or {}
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    lines = ([f"event: {event}"] if event else []) + [f"data: {text}", ""]
    end = {"crlf": "\r\n", "cr": "\r"}.get(switches.get("lines", ""), "\n")
    return "".join(line + end for line in lines).encode()


# ---- Anthropic ----

def anthropic_block(index: int, block: Block) -> Iterator[dict[str, Any]]:
    """The events of one block."""
    if "tool" in block:
        start = {"type": "tool_use", "id": block["id"], "name": block["tool"], "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": part}
                  for part in ["", *pieces(raw_input(block))]]
    elif "redacted" in block:
        start, deltas = {"type": "redacted_thinking", "data": block["redacted"]}, []
    elif "reasoning" in block:
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": part}
                  for part in pieces(block["reasoning"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        start = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": part}
                  for part in pieces(block["text"], 5 if len(block["text"]) < 99 else 4096)]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def anthropic(name: str, switches: Switches) -> Iterator[bytes]:
    """A stream of the Messages API."""
    blocks, stop = REPLIES[name]
    usage = {"input_tokens": USAGE["input"], "cache_creation_input_tokens": USAGE["cache_write"],
             "cache_read_input_tokens": USAGE["cache_read"], "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start",
         "message": {"id": "msg_01", "type": "message", "role": "assistant", "content": [],
                     "model": "claude-test", "stop_reason": None, "stop_sequence": None,
                     "usage": usage}},
        {"type": "ping"},
    ]
    for index, block in enumerate(blocks):
        events += anthropic_block(index, block)
    events.append({"type": "message_delta",
                   "delta": {"stop_reason": STOPS["anthropic"][stop],
                             "stop_sequence": "three" if stop == "sequence" else None,
                             "stop_details": {"type": "refusal", "category": "cyber",
                                              "explanation": "It could do harm."}
                             if stop == "refusal" else None},
                   "usage": {"output_tokens": USAGE["output"]}})
    events.append({"type": "message_stop"})
    for number, event in enumerate(events):
        if str(number) == switches.get("error_at"):
            yield sse({"type": "error", "error": {"type": switches.get("type", "overloaded_error"),
                                                  "message": "Overloaded"}}, "error", switches)
            return
        yield sse(event, event["type"], switches)


# ---- OpenAI and those who speak like it ----

def openai_call(position: int, block: Block, switches: Switches) -> Iterator[dict[str, Any]]:
    """The deltas of one call of a tool."""
    index = {"none": {}, "zero": {"index": 0}}.get(switches.get("index", ""), {"index": position})
    ids = {} if switches.get("ids") == "none" else {"id": block["id"]}
    arguments: Any = block["input"] if switches.get("args") == "object" else ""
    if switches.get("whole"):
        arguments = raw_input(block)
    yield {**index, **ids, "type": "function",
           "function": {"name": block["tool"], "arguments": arguments}}
    if arguments == "":
        for part in pieces(raw_input(block)):
            again = ids if switches.get("ids") == "every" else {}
            yield {**index, **again, "function": {"arguments": part}}


def openai_deltas(blocks: list[Block], switches: Switches) -> Iterator[dict[str, Any]]:
    """What the choices of the chunks hold."""
    yield {"role": "assistant", "content": None if any("tool" in b for b in blocks) else ""}
    calls = [block for block in blocks if "tool" in block]
    for block in blocks:
        if "reasoning" in block:
            for part in pieces(block["reasoning"]):
                yield {switches.get("thoughts", "reasoning_content"): part}
        elif "text" in block:
            size = 5 if len(block["text"]) < 99 else 4096
            for part in pieces(block["text"], size):
                yield {"content": part}
    for position, block in enumerate(calls):
        for call in openai_call(position, block, switches):
            yield {"tool_calls": [call]}


def openai_usage() -> dict[str, Any]:
    """Counts, as OpenAI has them: what came from the cache is in the prompt."""
    return {"prompt_tokens": USAGE["input"] + USAGE["cache_read"],
            "completion_tokens": USAGE["output"],
            "total_tokens": USAGE["input"] + USAGE["cache_read"] + USAGE["output"],
            "prompt_tokens_details": {"cached_tokens": USAGE["cache_read"]}}


def openai(name: str, switches: Switches) -> Iterator[bytes]:
    """A stream of chat completions."""
    blocks, stop = REPLIES[name]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000,
            "model": "gpt-test"}
    finish = switches.get("finish", STOPS["openai"][stop])
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in openai_deltas(blocks, switches)]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if switches.get("usage") != "none":
        chunks.append({**head, "choices": [], "usage": openai_usage()})
    for number, chunk in enumerate(chunks):
        if str(number) == switches.get("error_at"):
            error = {"error": {"message": "The server had an error", "type": "server_error",
                               "code": None}}
            if switches.get("type") == "llama":
                yield b'error: {"code":500,"message":"out of slots","type":"server_error"}\n\n'
            else:
                yield sse(error, None, switches)
            return
        if switches.get("comments"):
            yield b": keep-alive\n\n"
        yield sse(chunk, None, switches)
    if switches.get("done") != "none":
        yield sse("[DONE]", None, switches)


def openai_whole(name: str) -> bytes:
    """The reply of a server that does not stream."""
    blocks, stop = REPLIES[name]
    text = "".join(block.get("text", "") for block in blocks)
    calls = [{"id": block["id"], "type": "function",
              "function": {"name": block["tool"], "arguments": raw_input(block)}}
             for block in blocks if "tool" in block]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion",
                       "choices": [{"index": 0, "message": message,
                                    "finish_reason": STOPS["openai"][stop]}],
                       "usage": openai_usage()}).encode()


# ---- Bedrock ----

def event_message(headers: dict[str, str], payload: Any) -> bytes:
    """One message of application/vnd.amazon.eventstream."""
    body = json.dumps(payload, ensure_ascii=False).encode()
    packed = b"".join(bytes([len(name)]) + name.encode() + b"\x07" +
                      struct.pack(">H", len(value)) + value.encode()
                      for name, value in headers.items())
    prelude = struct.pack(">II", len(body) + len(packed) + 16, len(packed))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + packed + body
    return message + struct.pack(">I", zlib.crc32(message))


def bedrock_event(name: str, payload: Any) -> bytes:
    """An event; the service pads payloads with a member "p", which means nothing."""
    return event_message({":event-type": name, ":content-type": "application/json",
                          ":message-type": "event"}, {**payload, "p": "abcdefgh"})


def bedrock_block(index: int, block: Block) -> Iterator[tuple[str, Any]]:
    """The events of one block: text and reasoning have no start."""
    at = {"contentBlockIndex": index}
    if "tool" in block:
        yield "contentBlockStart", {**at, "start": {"toolUse": {"toolUseId": block["id"],
                                                                "name": block["tool"]}}}
        for part in pieces(raw_input(block)) if block.get("input") != {} else []:
            yield "contentBlockDelta", {**at, "delta": {"toolUse": {"input": part}}}
    elif "redacted" in block:
        yield "contentBlockDelta", {**at, "delta": {"reasoningContent":
                                                    {"redactedContent": block["redacted"]}}}
    elif "reasoning" in block:
        for part in pieces(block["reasoning"]):
            yield "contentBlockDelta", {**at, "delta": {"reasoningContent": {"text": part}}}
        yield "contentBlockDelta", {**at, "delta": {"reasoningContent":
                                                    {"signature": block["signature"]}}}
    else:
        for part in pieces(block["text"], 5 if len(block["text"]) < 99 else 4096):
            yield "contentBlockDelta", {**at, "delta": {"text": part}}
    yield "contentBlockStop", at


def bedrock(name: str, switches: Switches) -> Iterator[bytes]:
    """A stream of ConverseStream."""
    blocks, stop = REPLIES[name]
    events: list[tuple[str, Any]] = [("messageStart", {"role": "assistant"})]
    for index, block in enumerate(blocks):
        events += bedrock_block(index, block)
    reason = switches.get("finish", STOPS["bedrock"][stop])
    events.append(("messageStop", {"stopReason": reason}))
    if switches.get("usage") != "none":
        events.append(("metadata", {
            "usage": {"inputTokens": USAGE["input"], "outputTokens": USAGE["output"],
                      "totalTokens": USAGE["input"] + USAGE["output"],
                      "cacheReadInputTokens": USAGE["cache_read"],
                      "cacheWriteInputTokens": USAGE["cache_write"]},
            "metrics": {"latencyMs": 100}}))
    for number, (kind, payload) in enumerate(events):
        if str(number) == switches.get("error_at"):
            exception = switches.get("type", "modelStreamErrorException")
            yield event_message({":exception-type": exception, ":content-type": "application/json",
                                 ":message-type": "exception"}, {"message": "It failed"})
            return
        yield bedrock_event(kind, payload)
