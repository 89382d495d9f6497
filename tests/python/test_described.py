# SPDX-License-Identifier: Apache-2.0
"""Everything public says what it is, and of which types it is made."""

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any, Callable, Iterator

import elsai
import elsai_tools
import pinfold
import pytest

EMPTY = inspect.Parameter.empty


def modules() -> Iterator[ModuleType]:
    for package in pinfold, elsai, elsai_tools:
        yield package
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if found.name.startswith("pinfold.integrations.") or "._" in found.name:
                continue  # the first need what is rarely there
            yield importlib.import_module(found.name)


def public() -> dict[str, Any]:
    """Each once, by the first of its names."""
    found: dict[int, tuple[str, Any]] = {}
    for module in modules():
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return dict(found.values())


def members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        if not name.startswith("_"):
            yield name, value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def untyped(function: Callable[..., Any]) -> list[str]:
    signature = inspect.signature(function)
    lacks = [name for name, parameter in signature.parameters.items()
             if parameter.annotation is EMPTY and name not in ("self", "cls")]
    return lacks + (["its result"] if signature.return_annotation is EMPTY else [])


def test_modules_say_what_they_are() -> None:
    assert [module.__name__ for module in modules() if not inspect.getdoc(module)] == []


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_say_what_they_are(name: str) -> None:
    value = PUBLIC[name]
    if inspect.isfunction(value):
        assert inspect.getdoc(value) and not untyped(value), untyped(value)
    if not inspect.isclass(value):
        return
    assert inspect.getdoc(value)
    for member, what in members(value):
        if isinstance(what, property):
            what = what.fget
        if inspect.isfunction(what):
            # What a base class has said holds for what overrides it.
            assert inspect.getdoc(getattr(value, member)), member
            assert not untyped(what), (member, untyped(what))


def test_there_are_some() -> None:
    assert len(PUBLIC) > 80 and inspect.isclass(PUBLIC["pinfold.ExecutionBackend"])
