#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Print which tests each row of the semantics table has. Fails when a row has neither a test nor a
reason in README.md, when it has both, when a test is written but not registered, or when a test
that is left out on a backend (capabilities.c) is none."""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROWS = [*range(1, 126)]
# The tables about agents in the specification's API, and their rows, as test_tables_agents.c has them.
TABLES = {
    "config": ("AgentConfig sandbox fields", """sandbox sandbox_attach_mode sandbox_mode
               sandbox_output_offload execution_backend workspace_root workspace_sync_policy
               sandbox_manager"""),
    "config_error": ("Validation errors", """sandbox_and_execution_backend
                     sandbox_and_workspace_root sandbox_and_sandbox_manager
                     mode_sandbox_without_a_backend"""),
    "mode": ("SandboxMode", "off sandbox local_dev"),
    "attach_mode": ("SandboxAttachMode", "read_write read_only"),
    "offload": ("SandboxOutputOffloadPolicy", """storage max_result_tokens preview_tokens
                include_retrieval_tool tool_names"""),
    "helper": ("Workspace helpers", """prepare_workspace sync_workspace_artifacts
               close_sandbox_workspace sync_workspace_for_sandbox sandbox_is_active
               workspace_is_prepared workspace_orchestrator"""),
    "tool": ("SandboxPlugin tools", "execute read_file write_file list_dir"),
    "custom": ("Custom tool helpers", """run_command read_workspace_file write_workspace_file
               list_workspace_dir format_execute_result"""),
    "exception": ("Exceptions", """SandboxStartError SandboxAttachError AgentSandboxDetachedError
                  SandboxMutationDeniedError WorkspacePrepareError"""),
}


def tests_by_row():
    """Row number -> names of its tests, and the names that no table of tests has."""
    rows, unregistered = {}, []
    for path in sorted(HERE.glob("test_rows_*.c")):
        text = path.read_text(encoding="utf-8")
        for row, rest in re.findall(r"^static void row_(\d{3})_(\w+)\(void \*\*state\)", text, re.M):
            rows.setdefault(int(row), []).append(rest)
            if not re.search(rf"SPEC_TEST\(row_{row}_{rest}\)", text):
                unregistered.append(f"{path.name}: row_{row}_{rest}")
    return rows, unregistered


def show_tables():
    """Print the tests of each table's rows; what is missing."""
    text = (HERE / "test_tables_agents.c").read_text(encoding="utf-8")
    tests = set(re.findall(r"SPEC_TEST\(table_(\w+)\)", text))
    wanted = {f"{table}__{row}" for table, (_, rows) in TABLES.items() for row in rows.split()}
    for table, (title, rows) in TABLES.items():
        for row in rows.split():
            print(f"{title}: {row}")
    return ([f"no test of {name}" for name in sorted(wanted - tests)] +
            [f"no table has {name}" for name in sorted(tests - wanted)])


def excused_rows():
    """The rows in the table of README.md that says which have no test."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    table = text.split("## Rows without a test here")[1].split("\n## ")[0]
    return {int(row): why for row, why in re.findall(r"^\| (\d+) \| (.*) \|$", table, re.M)}


def inapplicable():
    """(backend, capability, reason, tests) of capabilities.c."""
    text = (HERE / "capabilities.c").read_text(encoding="utf-8")
    reasons = dict(re.findall(r'^#define (\w+) "(.*)"$', text, re.M))
    lacking, tests_of = text.split("} lacking[] = {")[1].split("} tests_of[] = {")
    tests = re.findall(r'\{ "([^"]+)",\s*"(\w+)" \}', tests_of.split("};")[0])
    for backend, capability, reason in re.findall(
            r'\{ "([^"]+)", "([^"]+)",\s*(\w+|"[^"]+") \}', lacking):
        found = [test for name, test in tests if name == capability]
        yield backend, capability, reasons.get(reason, reason).strip('"'), found


def show_inapplicable(rows):
    """Print them; what is wrong with the table."""
    known = {f"row_{row:03}_{name}" for row, names in rows.items() for name in names}
    wrong, used = [], set()
    for backend, capability, reason, tests in inapplicable():
        print(f"{backend}: not applicable: no {capability}: {reason}")
        for test in tests:
            print(f"      {test}")
        used.update(tests)
    text = (HERE / "capabilities.c").read_text(encoding="utf-8")
    for test in re.findall(r'"(row_\w+)"', text):
        if test not in known:
            wrong.append(f"capabilities.c names {test}, which is no test")
        if test not in used:
            wrong.append(f"capabilities.c leaves {test} out for no backend")
    return wrong


def main():
    rows, wrong = tests_by_row()
    excused = excused_rows()
    for row in ROWS:
        for name in rows.get(row, []):
            print(f"{row:>4}  {name.replace('_', ' ')}")
        if row in excused:
            print(f"{row:>4}  -- no test: {excused[row]}")
        if (row in rows) == (row in excused):
            wrong.append(f"row {row} has {'a test and an excuse' if row in rows else 'nothing'}")
    wrong += show_inapplicable(rows)
    wrong += show_tables()
    wrong += [f"row {row} is not in the table" for row in rows if row not in ROWS]
    tests = sum(len(names) for names in rows.values())
    print(f"{len(rows)} of {len(ROWS)} rows have {tests} tests, {len(excused)} have a reason")
    for what in wrong:
        print("wrong:", what, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
