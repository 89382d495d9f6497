# SPDX-License-Identifier: Apache-2.0
"""How the three parts of the service write JSON, moments and errors."""

import json
import re
import time
from datetime import datetime, timezone
from http import HTTPStatus

from .web import Reply

JSON = "application/json; charset=utf-8"
CODES = {400: "BAD_REQUEST", 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND",
         408: "REQUEST_TIMEOUT", 409: "CONFLICT", 410: "GONE", 422: "UNPROCESSABLE_ENTITY",
         500: "INTERNAL_SERVER_ERROR"}
PREFIXES = {400: "bad request", 404: "not found", 408: "request timeout", 409: "conflict",
            410: "gone", 500: "internal server error"}


class ApiError(Exception):
    """What the control plane refuses with."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


class ToolboxError(Exception):
    """What the daemon refuses with: its error body, or with no message an empty one."""

    def __init__(self, status: int, message: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code or CODES.get(status, "INTERNAL_SERVER_ERROR")


class ProxyError(Exception):
    """What is said before the daemon is reached; with no message the body is empty."""

    def __init__(self, status: int, message: str | None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def compact(value: object) -> bytes:
    """JSON as the control plane writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def go_json(value: object) -> bytes:
    """JSON as the daemon writes it: what HTML minds and bytes that are no UTF-8 are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for one in "<>&" if text.isascii() else "<>&\u2028\u2029":
        text = text.replace(one, f"\\u{ord(one):04x}")
    return (text if text.isascii() else re.sub("[\ud800-\udfff]", r"\\ufffd", text)).encode()


def go_time(nanoseconds: int | None = None) -> str:
    """RFC 3339 with as many digits as it takes."""
    now = time.time_ns() if nanoseconds is None else nanoseconds
    seconds, rest = divmod(now, 10 ** 9)
    moment = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return moment + (f".{rest:09}".rstrip("0") if rest else "") + "Z"


def js_time(seconds: float | None = None) -> str:
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def api_reply(value: object, status: int = 200) -> Reply:
    return Reply(status, [("content-type", JSON)], compact(value))


def go_reply(value: object, status: int = 200) -> Reply:
    return Reply(status, [("Content-Type", JSON)], go_json(value))


def empty(status: int) -> Reply:
    return Reply(status, [])


def api_error(error: ApiError, path: str) -> Reply:
    reason = HTTPStatus(error.status).phrase
    reply = api_reply({"path": path, "timestamp": js_time(), "statusCode": error.status,
                       "error": reason, "message": str(error)}, error.status)
    reply.headers += error.headers.items()
    return reply


def toolbox_error(error: ToolboxError, path: str, method: str) -> Reply:
    if error.message is None:
        return empty(error.status)
    body = {"statusCode": error.status, "message": error.message, "code": error.code,
            "timestamp": go_time(), "path": path, "method": method}
    return Reply(error.status, [("Content-Type", "application/json")], go_json(body))


def proxy_error(error: ProxyError, path: str, method: str) -> Reply:
    if error.message is None:
        return empty(error.status)
    body = {"statusCode": error.status, "message": error.message,
            "code": CODES.get(error.status, "BAD_GATEWAY"), "timestamp": js_time(), "path": path,
            "method": method}
    return Reply(error.status, [("content-type", JSON)], compact(body))


def not_found_page() -> Reply:
    return Reply(404, [("Content-Type", "text/plain")], b"404 page not found")


def daemon_error(status: int, message: str, code: str | None = None) -> ToolboxError:
    """With the words that the daemon puts in front of a message of this status."""
    return ToolboxError(status, f"{PREFIXES[status]}: {message}", code)


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])
