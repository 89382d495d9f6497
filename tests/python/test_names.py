# SPDX-License-Identifier: Apache-2.0
"""Every name in the specification is there, as its tables say."""

import ast
import dataclasses
import importlib
import inspect
import json
import re
import typing
from pathlib import Path
from typing import Any

import pinfold
import pytest
from elsai import agent, execution
from elsai.plugins import sandbox as helpers

from support import SPEC, local, run

if not SPEC.is_dir():
    pytest.skip("the specification is not here", allow_module_level=True)

API = (SPEC / "sandbox-api.txt").read_text(encoding="utf-8")
BACKENDS = (SPEC / "sandbox-backends.txt").read_text(encoding="utf-8")

# A title stands alone between blank lines.
TITLES = ("Sandbox", "Sandbox.__init__", "Properties", "Sandbox.start", "Sandbox.stop",
          "Sandbox.add_files", "Sandbox.download_files", "Sandbox.delete_files",
          "Sandbox.move_file", "Sandbox.read_file", "Sandbox.flush", "Sandbox.attach",
          "Sandbox.detach", "Sandbox.ref", "Context manager", "SandboxManager", "Methods",
          "LocalSandboxBackend", "SandboxPlugin", "WorkspaceSyncPolicy",
          "SandboxOutputOffloadPolicy", "ExecuteResult", "FileInfo", "FileTransferResult",
          "WorkspaceSeedResult", "WorkspaceSyncResult", "SandboxRef", "ManagedSandboxSession",
          "Protocols", "ExecutionBackend", "SandboxBackend", "Exceptions", "Observability",
          "DEFAULT_SANDBOX_SEED_EXCLUDES", "DEFAULT_SANDBOX_SYNC_INCLUDE",
          "HOST_EXECUTION_TOOL_NAMES", "SandboxAttachMode", "Workspace helpers", "Tools",
          "Custom tool helpers", "AgentConfig sandbox fields", "SandboxMode",
          "Workspace ID helpers", "Result types", "execute", "read_file", "write_file", "list_dir")


def section(title: str) -> str:
    """The text from a title to the next one."""
    found = re.search(rf"(?:\A|\n\n){re.escape(title)}\n\n(.*?)(?=\n\n(?:"
                      rf"{'|'.join(re.escape(other) for other in TITLES)})\n\n|\n---\n|\Z)",
                      API, re.DOTALL)
    assert found, f"the specification has no {title}"
    return found[1]


def table(title: str, first: str) -> list[dict[str, str]]:
    """The rows of the table whose first column is called first."""
    lines = section(title).splitlines()
    head = next((i for i, line in enumerate(lines) if line.split("\t")[0] == first), None)
    assert head is not None, f"{title} has no table of {first}"
    columns = lines[head].split("\t")
    rows = []
    for line in lines[head + 1:]:
        if "\t" not in line:
            break
        rows.append(dict(zip(columns, line.split("\t"))))
    assert rows
    return rows


def default_of(text: str) -> Any:
    return inspect.Parameter.empty if text == "—" else ast.literal_eval(text)


def imported() -> set[str]:
    names: set[str] = set()
    for text in API, BACKENDS:
        for many, one in re.findall(
                r"from elsai\.execution import (?:\(([^)]*)\)|([^\n]*))", text):
            names |= {name.strip() for name in (many or one).split(",") if name.strip()}
    return names


def test_everything_that_is_imported_is_there() -> None:
    names = imported()
    assert {"Sandbox", "SandboxManager", "workspace_id_for_run"} < names
    for name in names:
        assert hasattr(execution, name) and name in execution.__all__, name


@pytest.mark.parametrize("title, function", [
    ("Sandbox.__init__", execution.Sandbox.__init__),
    ("Sandbox.stop", execution.Sandbox.stop),
    ("Sandbox.add_files", execution.Sandbox.add_files),
    ("Sandbox.download_files", execution.Sandbox.download_files),
    ("Sandbox.delete_files", execution.Sandbox.delete_files),
    ("Sandbox.move_file", execution.Sandbox.move_file),
    ("Sandbox.read_file", execution.Sandbox.read_file),
    ("Sandbox.attach", execution.Sandbox.attach),
    ("SandboxManager", execution.SandboxManager.__init__),
    ("LocalSandboxBackend", execution.LocalSandboxBackend.__init__),
])
def test_parameters_are_as_documented(title: str, function: Any) -> None:
    described = {"auto SandboxManager(ttl_seconds=...)": "None",
                 "default_sandbox_sync_policy()": "None", "seed_from": "None",
                 "READ_WRITE": None}
    parameters = [one for one in inspect.signature(function).parameters.values()
                  if one.name != "self" and one.kind is one.POSITIONAL_OR_KEYWORD]
    rows = table(title, "Parameter")
    assert [one.name for one in parameters] == [row["Parameter"] for row in rows]
    for parameter, row in zip(parameters, rows):
        assert (parameter.default is parameter.empty) == (row["Required"] == "Yes"), parameter
        text = row.get("Default", "—")
        text = described.get(text, text)
        if text is None:
            assert parameter.default is execution.SandboxAttachMode.READ_WRITE
        elif text != "—":
            assert parameter.default == default_of(text), parameter


def test_sandbox_methods_are_coroutines_where_they_are_awaited() -> None:
    awaited = set(re.findall(r"await sandbox\.(\w+)\(", API))
    assert {"start", "stop", "flush"} < awaited
    for name in awaited:
        assert inspect.iscoroutinefunction(getattr(execution.Sandbox, name)), name
    for name in "attach", "detach", "ref":
        assert not inspect.iscoroutinefunction(getattr(execution.Sandbox, name))
    for row in table("Properties", "Property"):
        assert isinstance(getattr(execution.Sandbox, row["Property"]), property)


def test_manager_methods_are_as_documented() -> None:
    for row in table("Methods", "Method"):
        name, wanted = re.fullmatch(r"(\w+)\((.*)\)", row["Method"]).groups()  # type: ignore
        method = getattr(execution.SandboxManager, name)
        parameters = [one for one in inspect.signature(method).parameters if one != "self"]
        words = [word.split("=") for word in wanted.split(", ") if word]
        assert parameters[:len(words)] == [word[0] for word in words], name
        for parameter, *default in words:
            if default and default[0] != "...":
                found = inspect.signature(method).parameters[parameter].default
                assert found == ast.literal_eval(default[0]), (name, parameter)


@pytest.mark.parametrize("name", ["ExecuteResult", "FileInfo", "FileTransferResult",
                                  "WorkspaceSeedResult", "WorkspaceSyncResult", "SandboxRef",
                                  "ManagedSandboxSession"])
def test_results_have_the_documented_fields(name: str) -> None:
    kind = getattr(execution, name)
    fields = [field.name for field in dataclasses.fields(kind)]
    documented = []
    for row in table(name, "Field"):
        if "(property)" in row["Type"]:
            assert isinstance(getattr(kind, row["Field"]), property)
        else:
            documented.append(row["Field"])
    assert fields[:len(documented)] == documented


def test_policy_has_the_documented_defaults() -> None:
    rows = {row["Field"]: row["Default"] for row in table("WorkspaceSyncPolicy", "Field")}
    policy = execution.WorkspaceSyncPolicy()
    assert list(policy.exclude_patterns) == rows["exclude_patterns"].split(", ")
    assert policy.sync_include_patterns is ast.literal_eval(rows["sync_include_patterns"])


def test_constants_are_as_documented() -> None:
    for name in "DEFAULT_SANDBOX_SEED_EXCLUDES", "DEFAULT_SANDBOX_SYNC_INCLUDE":
        assert list(getattr(execution, name)) == section(name).strip().split(", ")
    tools = re.search(r"sandbox_mode=sandbox: ([\w, ]+)\.", section("HOST_EXECUTION_TOOL_NAMES"))
    assert tools and execution.HOST_EXECUTION_TOOL_NAMES == set(tools[1].split(", "))
    policy = execution.default_sandbox_sync_policy()
    assert tuple(policy.exclude_patterns) == execution.DEFAULT_SANDBOX_SEED_EXCLUDES
    assert tuple(policy.sync_include_patterns or ()) == execution.DEFAULT_SANDBOX_SYNC_INCLUDE


def test_attach_modes_are_as_documented() -> None:
    values = [row["Value"] for row in table("SandboxAttachMode", "Value")]
    assert [mode.value for mode in execution.SandboxAttachMode] == values


def test_protocols_have_the_documented_methods() -> None:
    text = section("ExecutionBackend")
    names = re.search(r"operations: ([\w, ]+)\.", text)
    assert names
    members = set(names[1].split(", "))
    assert {"id", "read_file"} < members
    for kind in execution.ExecutionBackend, execution.LocalSandboxBackend:
        assert all(hasattr(kind, member) for member in members)
    wanted = re.search(r"execute\((.*?)\)", section("SandboxBackend"))
    assert wanted and wanted[1] == "command, timeout=None, cwd=None, **kwargs"
    found = inspect.signature(execution.SandboxBackend.execute).parameters
    assert found["kwargs"].kind is inspect.Parameter.VAR_KEYWORD
    assert found["timeout"].default is None and found["cwd"].default is None


def test_exceptions_are_as_documented() -> None:
    for row in table("Exceptions", "Exception"):
        assert issubclass(getattr(execution, row["Exception"]), Exception)


def test_tools_packages_have_what_is_documented() -> None:
    module = importlib.import_module("elsai_tools.sandbox")
    for name in re.findall(r"from elsai_tools\.sandbox import (\w+)", BACKENDS):
        assert hasattr(module, name)
    assert module.AgentCoreSandboxTemplate is not None
    parameters = inspect.signature(module.AgentCoreSandboxTemplate).parameters
    assert {"region", "session_timeout_seconds"} <= set(parameters)


# ---- agents ----

def names_after(module: str) -> set[str]:
    """What the specification imports from a module."""
    names: set[str] = set()
    for text in API, BACKENDS:
        for many, one in re.findall(
                rf"from {re.escape(module)} import (?:\(([^)]*)\)|([^\n]*))", text):
            names |= {name.strip() for name in (many or one).split(",") if name.strip()}
    assert names, module
    return names


@pytest.mark.parametrize("path", ["elsai", "elsai.agent", "elsai.plugins.sandbox"])
def test_agent_modules_have_what_is_imported(path: str) -> None:
    module = importlib.import_module(path)
    for name in names_after(path):
        assert hasattr(module, name) and name in module.__all__, name


def test_agent_configuration_is_as_documented() -> None:
    rows = table("AgentConfig sandbox fields", "Field")
    fields = {field.name for field in dataclasses.fields(agent.AgentConfig)}
    assert {row["Field"] for row in rows} <= fields and len(rows) == 8
    config = agent.AgentConfig()
    for row in rows:
        found, told = getattr(config, row["Field"]), row["Default"]
        if told == "defaults":
            assert found == agent.WorkspaceSyncPolicy()
        elif told == "None":
            assert found is None
        else:
            assert found.name == told
    hints = typing.get_type_hints(agent.AgentConfig)
    for row in rows:
        for word in row["Type"].split(" | "):
            found = str(hints[row["Field"]])
            assert word in found or (word == "None" and "Optional" in found), row


def test_invalid_combinations_are_as_documented() -> None:
    rows = table("AgentConfig sandbox fields", "Invalid combination")
    assert [row["Invalid combination"] for row in rows] == [
        "sandbox= + execution_backend", "sandbox= + workspace_root", "sandbox= + sandbox_manager",
        "sandbox_mode=SANDBOX without backend or sandbox="]  # test_agents.py has each


def test_modes_are_as_documented() -> None:
    values = [row["Value"] for row in table("SandboxMode", "Value")]
    assert [mode.value for mode in agent.SandboxMode] == values
    assert agent.SandboxAttachMode is execution.SandboxAttachMode


def test_offload_policy_is_as_documented() -> None:
    rows = table("SandboxOutputOffloadPolicy", "Field")
    fields = dataclasses.fields(agent.SandboxOutputOffloadPolicy)
    assert [field.name for field in fields] == [row["Field"] for row in rows]
    for name in re.findall(r"\w+Storage", rows[0]["Description"]):
        assert isinstance(getattr(pinfold, name), type)
    for field, row in zip(fields, rows):
        if row["Required"] == "Yes":
            assert field.default is dataclasses.MISSING
        elif row["Field"] == "tool_names":
            assert set(field.default) == set(row["Default"].split(", "))
        else:
            assert field.default == ast.literal_eval(row["Default"])


@pytest.mark.parametrize("name", ["execute", "read_file", "write_file", "list_dir"])
def test_workspace_tools_are_as_documented(name: str, root: Path) -> None:
    async def main() -> None:
        async with local(root) as sandbox:
            made = agent.Agent(agent.AgentConfig(sandbox=sandbox))
            specs.append(made.get_tool(name).input_schema)  # type: ignore[union-attr]

    specs: list[Any] = []
    run(main())
    rows = table(name, "Parameter")
    schema = specs[0]
    assert list(schema["properties"]) == [row["Parameter"] for row in rows]
    assert schema["required"] == [row["Parameter"] for row in rows if row["Required"] == "Yes"]
    kinds = {"str": "string", "int": "integer"}
    for row in rows:
        found = schema["properties"][row["Parameter"]]
        assert kinds[row["Type"]] in json.dumps(found), row
        if row.get("Default", "—") not in ("—", "None"):
            assert found["default"] == ast.literal_eval(row["Default"])


def test_helpers_are_as_documented() -> None:
    rows = table("Custom tool helpers", "Helper")
    assert len(rows) == 5
    for row in rows:
        name, wanted = re.fullmatch(r"(\w+)\((.*)\)", row["Helper"]).groups()  # type: ignore
        check_signature(getattr(helpers, name), wanted)
        assert inspect.iscoroutinefunction(getattr(helpers, name)) \
            == (name != "format_execute_result")


def test_workspace_helpers_are_as_documented() -> None:
    rows = table("Workspace helpers", "Symbol")
    assert len(rows) == 7
    for row in rows:
        found = re.fullmatch(r"(\w+)\((.*)\)", row["Symbol"])
        if found is None:
            assert hasattr(getattr(execution, row["Symbol"]), "register_hooks")
            continue
        function = getattr(execution, found[1])
        check_signature(function, found[2])
        assert inspect.iscoroutinefunction(function) == (not found[1].endswith(("active",
                                                                               "prepared")))


def check_signature(function: Any, wanted: str) -> None:
    parameters = inspect.signature(function).parameters
    words = [word.split("=") for word in wanted.split(", ")]
    assert list(parameters) == [word[0] for word in words], function
    for name, *default in words:
        told = ast.literal_eval(default[0]) if default else inspect.Parameter.empty
        assert parameters[name].default == told, (function, name)


def test_no_name_of_the_tables_is_missing() -> None:
    """Whatever looks like a name in the first column of any table, or before a bracket."""
    everything = {**vars(execution), **vars(agent), **vars(helpers),
                  **vars(importlib.import_module("elsai_tools.sandbox"))}
    for name in re.findall(r"^(\w+)\(", API, re.MULTILINE):
        assert name in everything or hasattr(execution.SandboxManager, name), name
    for name in re.findall(r"^([A-Z]\w+(?:Error|Policy|Mode|Result|Info|Ref|Session|Plugin))\b",
                           API, re.MULTILINE):
        assert name in everything, name
