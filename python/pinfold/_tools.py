# SPDX-License-Identifier: Apache-2.0
"""Tools: functions that a model may call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Union, overload

from . import _check as check
from . import _pinfold
from ._bridge import finish
from ._messages import ToolUse, dump, parse_input
from ._schema import convert, hints_of, read_docstring, schema_for

if TYPE_CHECKING:
    from ._agent import Agent

P = ParamSpec("P")
R = TypeVar("R")


class ToolContext:
    """What a tool may know of its call: a parameter of this type gets it."""

    def __init__(self, agent: Agent, tool_use: ToolUse):
        self.agent = agent
        #: toolUseId, name and input.
        self.tool_use = tool_use

    @property
    def cancelled(self) -> bool:
        """Whether the call is to be given up. For plain functions, which nothing interrupts."""
        return _pinfold.cancelled()


class AgentTool:
    """What an agent can be given as a tool; @tool makes them of functions."""

    tool_name: str
    description: str
    #: A JSON Schema, of type "object".
    input_schema: dict[str, Any]

    @property
    def tool_spec(self) -> dict[str, Any]:
        """Name, description and inputSchema."""
        return {"name": self.tool_name, "description": self.description,
                "inputSchema": self.input_schema}

    def run(self, context: ToolContext) -> Any:
        """Do it, with context.tool_use["input"], which fits the schema. May be a coroutine."""
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'tool_name', None)!r}>"


class LibraryTool(AgentTool):
    """A tool of the library; agents run it."""

    def __init__(self, core: _pinfold.Tool):
        self._core = core
        self.tool_name, self.description = core.name, core.description
        self.input_schema = parse_input(core.schema)


def _check_options(name: Any, description: Any, input_schema: Any, context: Any) -> None:
    check.texts(name=name, description=description)
    if input_schema is not None:
        check.expect("input_schema", input_schema, Mapping)
    if not isinstance(context, (bool, str)):
        raise TypeError(f"context must be a bool or a str, not {type(context).__name__}")


def _yields(function: Any) -> bool:
    """Whether calling it gives a generator, of which nothing has run."""
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    return inspect.isasyncgenfunction(function) or (
        inspect.isgeneratorfunction(function) and not flags & inspect.CO_ITERABLE_COROUTINE)


class FunctionTool(AgentTool, Generic[P, R]):
    """A function as a tool. It can still be called as the function that it is."""

    def __init__(self, function: Callable[P, R], name: str | None = None,
                 description: str | None = None, input_schema: Mapping[str, Any] | None = None,
                 context: bool | str = False):
        check.function("function", function)
        if _yields(function):
            raise TypeError(f"a tool returns its result, and {function!r} yields")
        _check_options(name, description, input_schema, context)
        functools.update_wrapper(self, function)
        self._function: Callable[..., Any] = function
        self._hints = hints_of(function)
        self._given = self._find_given(context)
        told, parameters = read_docstring(function)
        self.tool_name = name or str(getattr(function, "__name__", type(function).__name__))
        self.description = description or told or self.tool_name
        self.input_schema = dict(input_schema) if input_schema is not None \
            else schema_for(function, set(self._given), parameters)

    def _find_given(self, context: bool | str) -> dict[str, str]:
        """Parameters that are not the model's to give: what each is."""
        found: dict[str, str] = {}
        for index, name in enumerate(inspect.signature(self._function).parameters):
            if index == 0 and name in ("self", "cls"):
                found[name] = "self"
            elif name == "agent":
                found[name] = "agent"
            elif self._hints.get(name) in (ToolContext, "ToolContext") or name == context \
                    or (context is True and name == "tool_context"):
                found[name] = "context"
        return found

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = self._function(*args, **kwargs)
        return value

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method: the tool of this object."""
        if instance is None:
            return self
        bound = FunctionTool.__new__(FunctionTool)
        bound.__dict__.update(self.__dict__)
        bound._function = self._function.__get__(instance, owner)
        bound._given = {name: what for name, what in self._given.items() if what != "self"}
        return bound

    def run(self, context: ToolContext) -> Any:
        given: Any = context.tool_use["input"]
        known = inspect.signature(self._function).parameters
        arguments = {name: convert(value, self._hints.get(name, Any)) if name in known else value
                     for name, value in given.items()}
        for name, what in self._given.items():
            arguments[name] = context.agent if what == "agent" else context
        return self._function(**arguments)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(function: None = None, /, *, name: str | None = None, description: str | None = None,
         input_schema: Mapping[str, Any] | None = None,
         context: bool | str = False) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(function: Any = None, /, *, name: str | None = None, description: str | None = None,
         input_schema: Mapping[str, Any] | None = None, context: bool | str = False) -> Any:
    """Make a tool of a function: its name, its docstring and its type hints tell the model what it
    is for and what to give. Coroutines run on the event loop of the invocation, plain functions on
    a thread. A parameter called agent gets the agent, one of type ToolContext all that there is to
    know; models see neither. What it returns is told to the model as text, or as JSON; what it
    raises as a failure."""
    if function is not None:
        return FunctionTool(function)
    _check_options(name, description, input_schema, context)
    return lambda function: FunctionTool(function, name, description, input_schema, context)


AnyTool = Union[AgentTool, Callable[..., Any]]


def as_tool(given: Any) -> AgentTool:
    """What somebody gave as a tool."""
    if isinstance(given, AgentTool):
        return given
    if inspect.isroutine(given):
        return FunctionTool(given)
    raise TypeError(f"a given tool is a function or an AgentTool, not {given!r}")


ConsentAsker = Callable[[str, str], Any]


def host_tools(ask: ConsentAsker | None = None) -> list[AgentTool]:
    """One set of the tools shell, python_repl, file_read, file_write and environment. They work on
    the host, as this user, without any isolation; sandbox mode blocks them.

    ask: called with the name of a tool and a question, for consent: "y" is that, any other text the
    reason of a refusal, None no answer. Without it, what needs consent is refused unless
    BYPASS_TOOL_CONSENT is "true" in the environment."""
    if ask is not None:
        check.function("ask", ask)

    def asked(tool_name: str, question: str) -> str | None:
        answer = finish(ask(tool_name, question)) if ask is not None else None
        if isinstance(answer, bool):
            return "y" if answer else "no"
        return None if answer is None else str(answer)

    return [LibraryTool(core) for core in _pinfold.host_tools(None if ask is None else asked)]


def describe_tool(given: AgentTool, run: Callable[[str, str], Any]) -> Any:
    """A tool as the library wants it."""
    if isinstance(given, LibraryTool):
        return given._core
    kind = type(given).__name__
    for name in "tool_name", "description", "input_schema":
        if not hasattr(given, name):
            raise TypeError(f"{kind} has no {name}: a tool has tool_name, description and "
                            "input_schema")
    if not callable(getattr(given, "run", None)):
        raise TypeError(f"{kind}.run is no method")
    check.expect(f"{kind}.input_schema", given.input_schema, Mapping)
    return (check.text(f"{kind}.tool_name", given.tool_name),
            check.text(f"{kind}.description", given.description),
            dump(dict(given.input_schema)), run)
