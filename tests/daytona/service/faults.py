# SPDX-License-Identifier: Apache-2.0
"""
Faults: which request gets one, and what becomes of it. ../fake.py describes every kind.
"""

from faked import Waiting, check_fault

from .errors import ApiError, ToolboxError, api_error, daemon_error, empty, toolbox_error
from .web import Delivery, Reply

MEMBERS = {
    "http": {"status", "message", "code", "headers", "empty", "html", "body", "throttler",
             "seconds"},
    "close": {"body_byte", "wire_byte", "read_byte", "then"},
    "stall": {"body_byte", "wire_byte", "read_byte"},
    "slow": {"delay", "piece", "pause"},
    "stop": {"state"},
    "lose_sessions": set(),
    "die": {"after"},
    "garbage": {"payload"},
    "missing": {"members"},
    "null": {"members"},
}
COMMON = {"operation", "skip", "count", "kind", "when", "sandbox"}
CUTS = ("body_byte", "wire_byte", "read_byte")


def check(fault: dict) -> dict:
    return check_fault(fault, MEMBERS, COMMON)


class Faults(Waiting):
    def __init__(self) -> None:
        super().__init__(check)

    def take(self, operation: str, sandbox: str) -> dict | None:
        """The first fault that waits for such a request; "session.*" is one for all of those."""
        def fits(fault: dict) -> bool:
            wanted = fault.get("operation", operation)
            family = wanted.endswith("*") and operation.startswith(wanted[:-1])
            return (wanted == operation or family) and fault.get("sandbox", sandbox) == sandbox
        return self.first(fits)


def is_before(fault: dict | None) -> bool:
    """Whether the operation is not done at all."""
    if fault is None:
        return False
    if fault["kind"] == "close" and not set(CUTS) & set(fault):
        return fault.get("when", "before") == "before"
    return fault["kind"] == "http" and fault.get("when", "before") == "before"


def delivery(fault: dict | None) -> Delivery:
    if fault is None or fault["kind"] not in ("close", "stall", "slow"):
        return Delivery()
    told = {name: fault[name] for name in MEMBERS[fault["kind"]] if name in fault}
    if fault["kind"] == "stall":
        told["then"] = "stall"
    if fault["kind"] != "slow" and not set(CUTS) & set(fault):
        told["wire_byte"] = 0
    return Delivery(**told)


def throttled(fault: dict) -> dict[str, str]:
    """The headers of a throttler; the one of failed logins names itself nowhere."""
    name, seconds = fault["throttler"], str(fault.get("seconds", 7))
    limits = {f"X-RateLimit-Limit-{name}": "300", f"X-RateLimit-Remaining-{name}": "0",
              f"X-RateLimit-Reset-{name}": seconds}
    after = "Retry-After" if name == "failed-auth" else f"Retry-After-{name}"
    return {**limits, after: seconds}


def http_reply(fault: dict, path: str, method: str, toolbox: bool) -> Reply:
    status = fault.get("status", 429 if "throttler" in fault else 500)
    headers = dict(fault.get("headers", {}))
    if "throttler" in fault:
        headers.update(throttled(fault))
    if fault.get("html"):
        body = f"<html><body><h1>{status} Bad Gateway</h1></body></html>\n".encode()
        reply = Reply(status, [("Content-Type", "text/html")], body)
    elif "body" in fault:
        reply = Reply(status, [("Content-Type", "text/plain")], fault["body"].encode())
    elif fault.get("empty"):
        reply = empty(status)
    elif toolbox:
        try:
            error = daemon_error(status, fault.get("message", "the fault that was asked for"),
                                 fault.get("code"))
        except KeyError:  # of the statuses that the daemon has no words for
            error = ToolboxError(status, fault.get("message", "the fault that was asked for"),
                                 fault.get("code"))
        reply = toolbox_error(error, path, method)
    else:
        told = "ThrottlerException: Too Many Requests" if status == 429 else \
            "the fault that was asked for"
        reply = api_error(ApiError(status, fault.get("message", told)), path)
    reply.headers += headers.items()
    return reply


def without(value: object, member: str, fault: dict) -> None:
    """Remove one member, named with dots, or make it null; a list stands for all in it."""
    name, _, rest = member.partition(".")
    if isinstance(value, list):
        for one in value:
            without(one, member, fault)
    elif isinstance(value, dict) and name in value:
        if rest:
            without(value[name], rest, fault)
        elif fault["kind"] == "null":
            value[name] = None
        else:
            del value[name]
