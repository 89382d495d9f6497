# SPDX-License-Identifier: Apache-2.0
"""
Which members a request may have: types, lengths and patterns as documented. A rule takes the name
of a member and its value, and raises ValidationException.
"""

import base64
import binascii
import re
from typing import Callable

from .errors import ServiceError, invalid

Rule = Callable[[str, object], None]
TEXT_LIMIT = 100_000_000
TOOLS = ("executeCode", "executeCommand", "readFiles", "listFiles", "removeFiles", "writeFiles",
         "startCommandExecution", "getTask", "stopTask")


def string(low: int = 0, high: int = TEXT_LIMIT, pattern: str | None = None) -> Rule:
    def check(name: str, value: object) -> None:
        if not isinstance(value, str):
            raise invalid(name, "must be a string")
        if not low <= len(value) <= high:
            raise invalid(name, f"must have a length between {low} and {high}")
        if pattern is not None and not re.fullmatch(pattern, value):
            raise invalid(name, f"must satisfy regular expression pattern: {pattern}")
    return check


def one_of(*values: str) -> Rule:
    def check(name: str, value: object) -> None:
        if value not in values:
            raise invalid(name, f"must satisfy enum value set: [{', '.join(values)}]")
    return check


def number(low: int, high: int) -> Rule:
    def check(name: str, value: object) -> None:
        # JSON's true is an int in Python.
        if type(value) is not int or not low <= value <= high:
            raise invalid(name, f"must be an integer between {low} and {high}")
    return check


def boolean(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise invalid(name, "must be true or false")


def blob(name: str, value: object) -> None:
    string(high=TEXT_LIMIT * 4 // 3 + 4)(name, value)
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(name, "must be base64") from None


def listing(rule: Rule, low: int = 0, high: int | None = None) -> Rule:
    def check(name: str, value: object) -> None:
        if not isinstance(value, list):
            raise invalid(name, "must be a list")
        if len(value) < low or (high is not None and len(value) > high):
            raise invalid(name, f"must have between {low} and {high} members")
        for at, member in enumerate(value):
            rule(f"{name}.{at}", member)
    return check


def structure(members: dict[str, Rule], required: tuple[str, ...] = (),
              union: bool = False) -> Rule:
    def check(name: str, value: object) -> None:
        dot = name + "." if name else ""
        if not isinstance(value, dict):
            raise invalid(name or "body", "must be an object")
        for key, member in value.items():
            if key not in members:
                raise invalid(dot + key, "is not a member that the operation has")
            members[key](dot + key, member)
        for key in required:
            if key not in value:
                raise invalid(dot + key, "must not be null")
        if union and len(value) != 1:
            raise invalid(name, f"must have exactly one of {', '.join(members)}")
    return check


def content(name: str, value: object) -> None:
    structure({"path": string(1), "text": string(), "blob": blob}, ("path",))(name, value)
    if ("text" in value) == ("blob" in value):
        raise invalid(name, "must have exactly one of text and blob")


ARN = string(1, 2048, r"arn:[a-z0-9-]+:[a-z0-9-]+:\S+")
MOUNT = structure({"accessPointArn": ARN, "fileSystemArn": ARN,
                   "mountPath": string(6, 200, r"/mnt/[a-zA-Z0-9._-]+/?")})
TOKEN = string(33, 256, r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,256}")
SESSION = string(1, 40, r"[0-9a-zA-Z]{1,40}")
TRACE = string(0, 1024)
SECRET = structure({"secretArn": ARN}, ("secretArn",))
CERTIFICATE = structure({"location": structure({"secretsManager": SECRET}, union=True)},
                        ("location",))
START = structure({
    "name": string(1, 100),
    "sessionTimeoutSeconds": number(1, 28800),
    "clientToken": TOKEN,
    "certificates": listing(CERTIFICATE, 1, 200),
    "filesystemConfigurations": listing(structure(
        {"s3FilesConfiguration": MOUNT, "efsConfiguration": MOUNT}, union=True), 0, 10),
})
STOP = structure({"clientToken": TOKEN})
LIST = structure({"maxResults": number(1, 100), "nextToken": string(1, 2048, r"\S*"),
                  "status": one_of("READY", "TERMINATED")})
ARGUMENTS = structure({
    "code": string(), "language": one_of("python", "javascript", "typescript"),
    "clearContext": boolean, "runtime": one_of("nodejs", "deno", "python"), "command": string(),
    "path": string(), "paths": listing(string()), "content": listing(content),
    "directoryPath": string(), "taskId": string(),
})
INVOKE = structure({"name": one_of(*TOOLS), "arguments": ARGUMENTS}, ("name",))
# The model leaves the bag of arguments open; these the tools cannot do without.
NEEDED = {"executeCode": ("code", "language"), "executeCommand": ("command",),
          "startCommandExecution": ("command",), "getTask": ("taskId",), "stopTask": ("taskId",),
          "writeFiles": ("content",), "readFiles": ("paths",), "removeFiles": ("paths",),
          "listFiles": ()}


def check_identifier(value: str) -> None:
    if value == "aws.codeinterpreter.v1":
        return
    if not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]{0,47}-[a-zA-Z0-9]{10}", value):
        raise ServiceError("ValidationException", f"Invalid code interpreter identifier: {value}",
                           reason="FieldValidationFailed",
                           fieldList=[{"name": "codeInterpreterIdentifier", "message": "invalid"}])
