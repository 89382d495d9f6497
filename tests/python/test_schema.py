# SPDX-License-Identifier: Apache-2.0
"""Tools of functions: what type hints and docstrings make, and what comes back."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from pinfold import Agent, AgentConfig, AgentTool, ToolContext, tool
from pinfold._schema import convert, schema_of


class Colour(enum.Enum):
    """Two of them."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A place."""

    x: int
    y: float = 0.0


class Entry(TypedDict):
    """A typed dict."""

    path: str
    size: Optional[int]


HINTS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}), (int, {"type": "integer"}), (float, {"type": "number"}),
    (bool, {"type": "boolean"}), (Any, {}), (Path, {"type": "string"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}), (list, {"type": "array"}),
    (tuple[int, str], {"type": "array", "minItems": 2, "maxItems": 2}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping, {"type": "object", "additionalProperties": True}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
    (Literal["a", 1], {"enum": ["a", 1]}),
    (Colour, {"enum": ["red", "blue"], "type": "string"}),
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
    (Point, {"type": "object", "required": ["x"],
             "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}}),
    (Entry, {"type": "object", "required": ["path", "size"],
             "properties": {"path": {"type": "string"},
                            "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}),
]


def test_hints_become_schemas() -> None:
    for hint, schema in HINTS:
        assert schema_of(hint) == schema, hint


VALUES: list[tuple[Any, Any, Any]] = [
    ("red", Colour, Colour.RED), ("a/b", Path, Path("a/b")), (3.0, int, 3),
    ({"x": 1, "y": 2}, Point, Point(1, 2.0)), ([1, 2], tuple[int, int], (1, 2)),
    ([{"x": 1}], list[Point], [Point(1)]), (None, Optional[Colour], None),
    ("blue", Optional[Colour], Colour.BLUE), (["a", "a"], set[str], {"a"}),
    ({"k": "red"}, dict[str, Colour], {"k": Colour.RED}), (1, Union[int, str], 1),
    ({"path": "p", "size": 3}, Entry, {"path": "p", "size": 3}), (True, float, True),
]


def test_values_become_what_was_hinted() -> None:
    for value, hint, made in VALUES:
        assert convert(value, hint) == made and isinstance(convert(value, hint), type(made)), hint


def test_docstrings_describe() -> None:
    @tool
    def google(path: str, limit: int = 10, *rest: Any, **more: Any) -> str:
        """Read it.

        In two paragraphs.

        Args:
            path: Which one,
                in two lines.
            limit (int): How much.

        Returns:
            path: not a parameter.
        """
        return f"{path} {limit} {rest} {more}"

    @tool(name="other", description="Said otherwise.")
    def sphinx(path: str) -> None:
        """Read it.

        :param str path: Which one.
        :return: nothing
        """

    assert google.description == "Read it.\n\nIn two paragraphs."
    assert google.input_schema == {
        "type": "object", "required": ["path"], "additionalProperties": True, "properties": {
            "path": {"type": "string", "description": "Which one, in two lines."},
            "limit": {"type": "integer", "description": "How much.", "default": 10}}}
    assert sphinx.tool_name == "other" and sphinx.description == "Said otherwise."
    assert sphinx.input_schema["properties"]["path"]["description"] == "Which one."
    agent = Agent(AgentConfig(tools=[google]))
    assert agent.tool.google(path="p", extra=1)["content"][0]["text"] == "p 10 () {'extra': 1}"


def test_hints_that_name_nothing_do_not_spoil_the_others() -> None:
    def some(agent: "NotImported", count: "int", context: "ToolContext",  # type: ignore # noqa
             other: "Unknown" = 0) -> "NotImported":  # type: ignore # noqa
        return count

    assert tool(some).input_schema == {"type": "object", "required": ["count"], "properties": {
        "count": {"type": "integer"}, "other": {"default": 0}}}


def test_functions_without_anything_are_tools() -> None:
    def plain(word):  # type: ignore[no-untyped-def]
        return {"word": word}

    agent = Agent(AgentConfig(tools=[plain]))
    assert agent.tool.plain(word=[1])["content"] == [{"text": '{"word": [1]}'}]
    found = agent.get_tool("plain")
    assert found and found.description == "plain" and found.input_schema["required"] == ["word"]


def test_results_of_all_kinds_pass() -> None:
    @tool
    def picture() -> dict[str, Any]:
        """Show it."""
        return {"status": "success", "content": [
            {"text": "Look:"}, {"json": {"a": [1, None]}},
            {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}},
            {"document": {"format": "txt", "name": "n", "source": {"bytes": b"d"}}}]}

    @tool
    def odd(kind: str) -> Any:
        """Return what is odd."""
        return {"bytes": b"\xffa", "object": Point(1), "nan": float("nan"), "none": None,
                "half": "\ud800"}[kind]

    agent = Agent(AgentConfig(tools=[picture, odd]))
    assert agent.tool.picture() == {"toolUseId": "direct", **picture()}
    said = {kind: agent.tool.odd(kind=kind)["content"][0]["text"]
            for kind in ("bytes", "object", "nan", "none", "half")}
    assert said == {"bytes": "\ufffda", "object": "Point(x=1, y=0.0)", "nan": "nan",
                    "none": "null", "half": "?"}


def test_tools_of_ones_own_kind() -> None:
    class Upper(AgentTool):
        tool_name, description = "upper", "Upper case."
        input_schema = {"type": "object", "properties": {"text": {"type": "string"}}}

        async def run(self, context: ToolContext) -> str:
            return str(context.tool_use["input"]["text"]).upper()

    agent = Agent(AgentConfig(tools=[Upper()]))
    assert agent.tool.upper(text="a")["content"] == [{"text": "A"}]
    assert agent.tool.upper(text=1)["status"] == "error"
    with pytest.raises(ValueError, match="name"):
        Agent(AgentConfig(tools=[tool(name="no name!")(lambda: None)]))
