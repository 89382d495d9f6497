# SPDX-License-Identifier: Apache-2.0
"""
Faults: which request gets one, and what it does to the reply. ../fake.py describes every kind.
"""

import copy
import json
import re
import zlib

from faked import Waiting, check_fault

from . import frames
from .errors import STATUS, ServiceError, too_large
from .web import Delivery, Reply

EVENT_STREAM = "application/vnd.amazon.eventstream"
MEMBERS = {
    "http": {"status", "error", "message", "retry_after", "x_amz_retry_after", "html", "body"},
    "exception": {"exception", "message", "empty", "after_result"},
    "error_message": {"code", "message"},
    "close": {"body_byte", "wire_byte", "then"},
    "stall": {"body_byte", "wire_byte"},
    "slow": {"delay", "piece", "pause"},
    "crc": {"of"},
    "garbage": {"payload"},
    "missing": {"members"},
    "rewrite": {"pattern", "by"},
    "unknown_event": {"event", "message_type"},
    "no_message_type": set(),
    "split_result": set(),
    "empty": set(),
    "oversize": {"refuse", "bytes", "announce"},
    "drop_header": {"header"},
    "expire": set(),
}
COMMON = {"operation", "tool", "skip", "count", "kind", "when"}
# What can be done only to a reply that is an event stream.
STREAM_ONLY = ("exception", "error_message", "crc", "unknown_event", "no_message_type",
               "split_result", "empty")
# These can do without the reply, and come before the tool runs unless told otherwise.
INSTEAD = ("http", "exception", "error_message", "close", "stall", "oversize")


def check(fault: dict) -> dict:
    return check_fault(fault, MEMBERS, COMMON)


class Faults(Waiting):
    def __init__(self) -> None:
        super().__init__(check)

    def take(self, operation: str, tool: str | None) -> dict | None:
        """The first fault that waits for such a request."""
        return self.first(lambda fault: (
            fault.get("operation", operation) == operation and fault.get("tool", tool) == tool
            and (fault["kind"] not in STREAM_ONLY or operation == "InvokeCodeInterpreter")))


def is_before(fault: dict | None) -> bool:
    """Whether nothing runs for this request."""
    if fault is None or fault["kind"] not in INSTEAD:
        return False
    natural = "before"
    if fault.get("after_result") or fault["kind"] == "stall":
        natural = "after"
    if {"body_byte", "wire_byte", "bytes", "announce"} & fault.keys():
        natural = "after"
    return fault.get("when", natural) == "before"


def without(value: dict, member: str) -> None:
    """Remove one member, named with dots."""
    *above, last = member.split(".")
    for name in above:
        value = value.get(name, {})
    value.pop(last, None)


def http_reply(fault: dict, headers: list[tuple[str, str]]) -> Reply:
    name = fault.get("error", "InternalServerException")
    status = fault.get("status") or STATUS.get(name, 500)
    headers = list(headers)
    if "retry_after" in fault:
        headers.append(("retry-after", str(fault["retry_after"])))
    if "x_amz_retry_after" in fault:
        headers.append(("x-amz-retry-after", str(fault["x_amz_retry_after"])))
    if fault.get("html"):
        body = f"<html><body><h1>{status} Service Unavailable</h1></body></html>\n".encode()
        return Reply(status, [*headers, ("content-type", "text/html")], body)
    headers += [("content-type", "application/json"), ("x-amzn-errortype", name)]
    body = frames.compact({"message": fault.get("message", name)})
    return Reply(status, headers, fault["body"].encode() if "body" in fault else body)


def exception_frame(fault: dict) -> bytes:
    payload = frames.compact({"message": fault.get("message", "the fault that was asked for")})
    return frames.exception(fault.get("exception", "throttlingException"),
                            b"" if fault.get("empty") else payload)


def huge(result: dict, size: int) -> dict:
    result = copy.deepcopy(result)
    result.setdefault("structuredContent", {})["stdout"] = "x" * size
    return result


def split_result(result: dict) -> list[dict]:
    """One result in two events: what was printed in halves, the scalars with the second."""
    told = result.get("structuredContent", {})
    first, second = copy.deepcopy(result), copy.deepcopy(result)
    for name in ("stdout", "stderr"):
        if name in told:
            half = len(told[name]) // 2
            first["structuredContent"][name] = told[name][:half]
            second["structuredContent"][name] = told[name][half:]
    for name in ("exitCode", "executionTime"):
        without(first, f"structuredContent.{name}")
    return [first, second]


def stream(fault: dict | None, result: dict) -> list[bytes]:
    """The messages of a reply that is an event stream."""
    payload = frames.compact(result)
    honest = frames.event("result", payload)
    kind = fault["kind"] if fault else None
    if kind == "exception":
        broken = exception_frame(fault)
        return [honest, broken] if fault.get("after_result") else [broken]
    if kind == "error_message":
        headers = [(":message-type", "error"), (":error-code", fault.get("code", "InternalError")),
                   (":error-message", fault.get("message", "the fault that was asked for"))]
        return [frames.message(headers, b"")]
    if kind == "unknown_event":
        strange = frames.event(fault.get("event", "progress"), b'{"pct":10}',
                               message_type=fault.get("message_type", "event"))
        return [strange, honest]
    if kind == "split_result":
        return [frames.event("result", frames.compact(half)) for half in split_result(result)]
    if kind == "oversize" and "bytes" in fault:
        return [frames.event("result", frames.compact(huge(result, fault["bytes"])))]
    if kind == "oversize":
        # The length is a lie, its checksum is not: only a limit helps the client.
        return [announced(honest, fault["announce"])]
    if kind == "crc":
        return [frames.event("result", payload, spoil=fault.get("of", "message"))]
    if kind == "garbage":
        return [frames.event("result", fault.get("payload", "{not json").encode())]
    if kind == "no_message_type":
        return [frames.event("result", payload, message_type=None)]
    return [] if kind == "empty" else [honest]


def announced(frame: bytes, length: int) -> bytes:
    prelude = length.to_bytes(4, "big") + frame[4:8]
    return prelude + zlib.crc32(prelude).to_bytes(4, "big") + frame[12:]


def delivery(fault: dict | None) -> Delivery:
    if fault is None or fault["kind"] not in ("close", "stall", "slow"):
        return Delivery()
    told = {name: fault[name] for name in MEMBERS[fault["kind"]] if name in fault}
    if fault["kind"] == "stall":
        told["then"] = "stall"
    if fault["kind"] != "slow" and not {"body_byte", "wire_byte"} & fault.keys():
        told["wire_byte"] = 0
    return Delivery(**told)


def shape(fault: dict | None, value: dict, headers: list[tuple[str, str]], streams: bool) -> Reply:
    """The reply to a request that went well, or that a fault keeps from going anywhere."""
    kind = fault["kind"] if fault else None
    if kind == "http":
        return http_reply(fault, headers)
    if kind == "oversize" and not {"bytes", "announce"} & fault.keys():
        raise too_large()
    if kind == "missing":
        value = copy.deepcopy(value)
        for member in fault["members"]:
            without(value, member)
    if kind == "rewrite":
        value = json.loads(re.sub(fault["pattern"], fault["by"], frames.compact(value).decode()))
    headers = [*headers, ("content-type", EVENT_STREAM if streams else "application/json")]
    if kind == "drop_header":
        headers = [pair for pair in headers if pair[0] != fault["header"]]
    if streams:
        return Reply(200, headers, stream(fault, value), delivery(fault))
    body = frames.compact(value)
    if kind == "garbage":
        body = fault.get("payload", "{not json").encode()
    return Reply(200, headers, body, delivery(fault))


def error_reply(error: ServiceError, headers: list[tuple[str, str]]) -> Reply:
    return Reply(error.status, [*headers, ("content-type", "application/json"),
                                ("x-amzn-errortype", error.name)], frames.compact(error.body))
