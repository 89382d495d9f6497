# SPDX-License-Identifier: Apache-2.0
"""What is given to a function is checked before anything is done with it: TypeError for what is
something else, ValueError for what is out of range, and both name the parameter.

The extension checks what it is given itself; here is the rest. A bool is no number here, and only a
bool is a flag: what is neither is most often an argument in the wrong place.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar, Union

StrPath = Union[str, os.PathLike[str]]
E = TypeVar("E", bound=Enum)

#: What the types of C have room for.
INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX = 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1


def _refuse(name: str, wanted: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def expect(name: str, value: Any, kind: type) -> None:
    """Something of this type."""
    if not isinstance(value, kind):
        raise _refuse(name, f"of type {kind.__name__}", value)


# ---- text ----

def text(name: str, value: Any) -> str:
    """A str that C can have: with no NUL, and no half of a surrogate pair."""
    if not isinstance(value, str):
        raise _refuse(name, "a str", value)
    if "\0" in value:
        raise ValueError(f"{name} must not contain a NUL byte")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} holds a character that has no bytes (a surrogate)") from None
    return value


def texts(**values: Any) -> None:
    """Several of them; each may be None."""
    for name, value in values.items():
        if value is not None:
            text(name, value)


def strings(name: str, values: Any) -> list[str]:
    """A list of texts."""
    return [text(name, one) for one in iterable(name, values, "a list of strings")]


def environment(env: Mapping[str, str] | None, name: str = "env") -> list[str] | None:
    """Variables, or labels, as the library wants them."""
    if env is None:
        return None
    expect(name, env, Mapping)
    for key, value in env.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{name} must be of str and str, not of {type(key).__name__} and "
                            f"{type(value).__name__}")
        if not key or "=" in key:
            raise ValueError(f"{name}: {key!r} is no name of a variable")
    return [f"{key}={value}" for key, value in env.items()]


def path(name: str, value: Any) -> str | bytes:
    """A path of the host."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise _refuse(name, "a path (str, bytes or os.PathLike)", value)
    found: str | bytes = os.fspath(value)
    try:
        if b"\0" in os.fsencode(found):
            raise ValueError(f"{name} must not contain a NUL byte")
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds a character that has no bytes (a surrogate)") from None
    return found


# ---- numbers ----

def whole(name: str, value: Any, least: int = 1, most: int = UINT64_MAX) -> int:
    """An int within these bounds."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _refuse(name, "an int", value)
    number = operator.index(value)
    if not least <= number <= most:
        shown = f", not {number}" if -UINT64_MAX <= number <= UINT64_MAX else ""
        raise ValueError(f"{name} must be from {least} to {most}{shown}")
    return number


def count(name: str, value: int | None, most: int = INT64_MAX) -> int:
    """How many at the most. None, the default, is 0 in C."""
    return 0 if value is None else whole(name, value, 1, most)


def number(name: str, value: Any) -> float:
    """A number, which may be a fraction."""
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise _refuse(name, "a number", value)
    try:
        found = float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large") from None
    if found != found:
        raise ValueError(f"{name} is not a number (nan)")
    return found


def positive(name: str, value: Any) -> float:
    """A number that must not be 0, which in C stands for the default."""
    found = number(name, value)
    if not found > 0:
        raise ValueError(f"{name} must be more than 0, not {found!r}")
    return found


def wait(name: str, value: float | None) -> float:
    """For how long to wait; None is for ever."""
    if value is None:
        return -1.0
    found = number(name, value)
    if found < 0:
        raise ValueError(f"{name} must be at least 0, not {found!r}")
    return found


# ---- others ----

def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise _refuse(name, "a bool", value)
    return value


def function(name: str, value: Any) -> None:
    """Something that can be called."""
    if not callable(value):
        raise _refuse(name, "a function", value)


def plain(name: str, value: Any) -> None:
    """A function that has done its work when it returns: what it returns is not awaited."""
    function(name, value)
    if any(inspect.iscoroutinefunction(one) for one in (value, getattr(value, "__call__", None))):
        raise TypeError(f"{name} must be a plain function, not a coroutine function, which nobody "
                        f"would await")


def choice(name: str, kind: type[E], value: Any) -> E:
    """A member of an enum, or its value."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(one.value) for one in kind)
        raise (ValueError if isinstance(value, str) else TypeError)(
            f"{name} must be one of {known}, not {value!r}") from None


def iterable(name: str, values: Any, wanted: str = "a list") -> Iterable[Any]:
    """Several of something. One text is none, though it can be iterated over."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} must be {wanted}, not one string")
    if isinstance(values, Mapping) or not hasattr(type(values), "__iter__"):
        raise _refuse(name, wanted, values)
    return values  # type: ignore[no-any-return]


def called(name: str, value: Any, functions: Iterable[str], wanted: str) -> None:
    """An object with these methods, not a class."""
    if isinstance(value, type) or not all(callable(getattr(value, one, None)) for one in functions):
        raise TypeError(f"{name}: {wanted} is required, not {value!r}")
