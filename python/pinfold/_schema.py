# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a function's parameters, from its type hints and its docstring, and the way
back: from what a model wrote to what the function expects."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean",
                           type(None): "null"}
_UNIONS = (typing.Union, types.UnionType)


def _json_type(value: Any) -> str:
    return _SIMPLE.get(type(value), "string")


def _enum_schema(values: Sequence[Any]) -> dict[str, Any]:
    kinds = {_json_type(value) for value in values}
    schema: dict[str, Any] = {"enum": list(values)}
    if len(kinds) == 1:
        schema["type"] = kinds.pop()
    return schema


def _fields(hint: Any) -> tuple[dict[str, Any], list[str]] | None:
    """The fields of a TypedDict or a dataclass, and which of them are required."""
    if typing.is_typeddict(hint):
        return typing.get_type_hints(hint, include_extras=True), sorted(hint.__required_keys__)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        needed = [one.name for one in dataclasses.fields(hint)
                  if one.default is dataclasses.MISSING
                  and one.default_factory is dataclasses.MISSING]
        return {one.name: hints[one.name] for one in dataclasses.fields(hint)}, needed
    return None


def _container(origin: Any, args: tuple[Any, ...]) -> dict[str, Any] | None:
    if origin is tuple and args and args[-1] is not Ellipsis:
        return {"type": "array", "minItems": len(args), "maxItems": len(args)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        inner = schema_of(args[1]) if len(args) == 2 else {}
        return {"type": "object", "additionalProperties": inner or True}
    if isinstance(origin, type) and issubclass(origin, (list, set, frozenset, tuple, Sequence)):
        inner = schema_of(args[0]) if args else {}
        return {"type": "array", **({"items": inner} if inner else {})}
    return None


def schema_of(hint: Any) -> dict[str, Any]:
    """The schema of a type; {} is anything."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = schema_of(args[0])
        words = [one for one in args[1:] if isinstance(one, str)]
        return {**schema, "description": words[0]} if words else schema
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin in _UNIONS:
        return {"anyOf": [schema_of(one) for one in args]}
    if origin is typing.Literal:
        return _enum_schema(args)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum_schema([one.value for one in hint])
    if isinstance(hint, type) and issubclass(hint, PurePath):
        return {"type": "string"}
    if hasattr(hint, "model_json_schema"):  # a model of pydantic
        return dict(hint.model_json_schema())
    fields = _fields(hint)
    if fields is not None:
        return {"type": "object", "properties": {name: schema_of(one)
                                                 for name, one in fields[0].items()},
                "required": fields[1]}
    return _container(origin or hint, args) or {}


# ---- docstrings ----

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|"
                      r"Notes?)\s*:?\s*$")
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each parameter."""
    description: list[str] = []
    parameters: dict[str, str] = {}
    section = name = ""
    indent = 0
    for line in (inspect.getdoc(function) or "").splitlines():
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        sphinx = _SPHINX.match(text)
        if _SECTION.match(text) and depth == 0:
            section, name = text.rstrip(": "), ""
        elif sphinx:
            section, name, indent = "Args", sphinx[1], depth
            parameters[name] = sphinx[2]
        elif text.startswith(":return") or text.startswith(":raise"):
            section, name = "Returns", ""
        elif not section:
            description.append(line)
        elif section.startswith(("Arg", "Param")):
            google = _GOOGLE.match(text) if not name or depth <= indent else None
            if google:
                name, indent = google[1], depth
                parameters[name] = google[2]
            elif name and text:
                parameters[name] = f"{parameters[name]} {text}".strip()
    return "\n".join(description).strip(), parameters


# ---- functions ----

def schema_for(function: Callable[..., Any], left_out: set[str],
               told: Mapping[str, str]) -> dict[str, Any]:
    """The schema of a function's parameters. left_out: those that a model does not give."""
    hints = hints_of(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    more = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
        if name in left_out or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        schema = schema_of(hints.get(name, Any))
        if name in told:
            schema.setdefault("description", told[name])
        if parameter.default is parameter.empty:
            required.append(name)
        elif isinstance(parameter.default, (str, int, float, bool)):
            schema.setdefault("default", getattr(parameter.default, "value", parameter.default))
        properties[name] = schema
    found: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        found["required"] = required
    if more:
        found["additionalProperties"] = True
    return found


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of a function. One that names what is not there, because it is imported for
    type checkers alone say, stays a text, and does not spoil the others."""
    found: dict[str, Any] = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        def one() -> None: ...
        one.__annotations__ = {name: hint}
        try:
            names = getattr(inspect.unwrap(function), "__globals__", {})
            found.update(typing.get_type_hints(one, names, include_extras=True))
        except Exception:  # pylint: disable=broad-except
            found[name] = hint
    return found


def convert(value: Any, hint: Any) -> Any:
    """A value of JSON, which fits the schema of a type, as that type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return convert(value, args[0])
    if origin in _UNIONS:
        return _convert_union(value, args)
    if hint is int and isinstance(value, float):
        return int(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and issubclass(hint, (enum.Enum, PurePath)):
        return hint(value)
    if hasattr(hint, "model_validate"):
        return hint.model_validate(value)
    fields = _fields(hint)
    if fields is not None and isinstance(value, dict):
        made = {name: convert(one, fields[0].get(name, Any)) for name, one in value.items()}
        return made if typing.is_typeddict(hint) else hint(**made)
    if isinstance(value, list):
        return _convert_list(value, origin or hint, args)
    if isinstance(value, dict) and len(args) == 2:
        return {name: convert(one, args[1]) for name, one in value.items()}
    return value


def _convert_union(value: Any, args: tuple[Any, ...]) -> Any:
    if value is None and type(None) in args:
        return None
    others = [one for one in args if one is not type(None)]
    exact = next((one for one in others if one in _SIMPLE and type(value) is one), None)
    return convert(value, others[0]) if len(others) == 1 and exact is None else value


def _convert_list(value: list[Any], kind: Any, args: tuple[Any, ...]) -> Any:
    if kind is tuple and args and args[-1] is not Ellipsis:
        return tuple(convert(one, hint) for one, hint in zip(value, args))
    items = [convert(one, args[0]) for one in value] if args else value
    return kind(items) if kind in (tuple, set, frozenset) else items
