# SPDX-License-Identifier: Apache-2.0
"""Read what the test programs report, and print it."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple, Optional

# The rows of the semantics table that this release implements, each covered by a named test.
ROWS = [*range(1, 106), 121, 122]
MIN_ATTACKS = 60
TAP = re.compile(r"^\s*(not ok|ok) \d+(?: - | )?(.*)$", re.MULTILINE)


class Case(NamedTuple):
    """One test: outcome is "passed", "failed" or "skipped"."""

    suite: str
    name: str
    outcome: str
    detail: str = ""


def said_after(output: str, title: str) -> str:
    """The lines of comment below the result of one test."""
    lines = output.partition(title)[2].splitlines()[1:]
    return "\n".join(itertools.takewhile(lambda line: line.startswith("#"), lines))


def from_tap(suite: str, program: str, result: dict[str, str]) -> list[Case]:
    """The cases of one test program, and one more when it failed without saying which."""
    output = result.get("stdout", "") + result.get("stderr", "")
    cases = []
    for verdict, title in TAP.findall(output):
        name, _, directive = title.partition("#")
        if directive.strip().upper().startswith("SKIP"):
            # cmocka writes the name behind the word, others a reason
            reason = directive.strip()[4:].strip()
            cases.append(Case(suite, f"{program}: {name.strip() or reason}", "skipped", reason))
        else:
            outcome = "passed" if verdict == "ok" else "failed"
            detail = "" if verdict == "ok" else said_after(output, title)
            cases.append(Case(suite, f"{program}: {name.strip()}", outcome, detail))
    good = result["result"] in ("OK", "SKIP", "EXPECTEDFAIL")
    if not cases or (not good and all(case.outcome != "failed" for case in cases)):
        # Programs that do not speak TAP have their exit status; meson fails a TAP one without tests
        outcome = "passed" if good else "failed"
        why = f"the program ended with {result['result']}, status {result.get('returncode')}"
        cases.append(Case(suite, program, outcome, f"{why}\n{output}"))
    return cases


def from_meson(suite: str, log: Path) -> list[Case]:
    """The cases of a whole meson run; its log has one JSON object a line."""
    cases = []
    for line in log.read_text(errors="replace").splitlines():
        result = json.loads(line)
        program = re.sub(r"^.*? / ", "", result["name"])
        cases += from_tap(suite, program, result)
    return cases


def from_junit(suite: str, path: Path, output: str) -> list[Case]:
    """The cases of a pytest run."""
    cases = []
    for test in ElementTree.parse(path).iter("testcase"):
        name = f"{test.get('classname')}: {test.get('name')}"
        outcome, detail = "passed", ""
        for child in test:
            if child.tag in ("failure", "error"):
                outcome, detail = "failed", f"{child.get('message')}\n{child.text}"
            elif child.tag == "skipped":
                outcome, detail = "skipped", child.get("message") or ""
        cases.append(Case(suite, name, outcome, detail))
    return cases or [Case(suite, "pytest finds tests", "failed", output)]


def reasons() -> dict[int, str]:
    """Why a row has no test, as the README of those tests says."""
    path = Path(__file__).resolve().parent.parent / "tests/spec/README.md"
    table = path.read_text().partition("## Rows without a test here")[2].partition("\n## ")[0]
    return {int(row): why for row, why in re.findall(r"^\| (\d+) \| (.*) \|$", table, re.M)}


def print_rows(cases: list[Case]) -> None:
    """Which rows of the semantics table have a test, and which have none."""
    excuses = reasons()
    tests: dict[int, set[str]] = {}
    for case in cases:
        for number, title in re.findall(r"row_(\d{3})_(\w+)", case.name):
            if case.outcome == "passed":
                tests.setdefault(int(number), set()).add(title.replace("_", " "))
    print("\nrows of the semantics table, and what tests them")
    for row in ROWS:
        missing = f"no test: {excuses.get(row, 'it is missing, or fails')}"
        print(f"  {row:3}  {'; '.join(sorted(tests[row])) if row in tests else missing}")
    print(f"  {len(tests.keys() & set(ROWS))} of {len(ROWS)} rows are covered")


def attacks(cases: list[Case]) -> dict[str, set[str]]:
    """What was tried in sandboxes, and for which owners it came to nothing."""
    found: dict[str, set[str]] = {}
    for case in cases:
        if case.suite == "attacks" and case.outcome == "passed":
            name = re.search(r"test_(\w+)\[(root|user|stranger)(?:-(.*))?\]", case.name, re.DOTALL)
            if name:
                detail = f": {name[3].splitlines()[0]}" if name[3] else ""
                found.setdefault(name[1].replace("_", " ") + detail, set()).add(name[2])
    return found


def count_attacks(cases: list[Case]) -> list[Case]:
    """There must be many, for each owner; nothing is said when the suite was not run."""
    owners = [owner for who in attacks(cases).values() for owner in who]
    return [Case("attacks", f"at least {MIN_ATTACKS} are contained for {owner}",
                 "passed" if owners.count(owner) >= MIN_ATTACKS else "failed",
                 f"there are {owners.count(owner)}")
            for owner in sorted(set(owners))]


def print_attacks(cases: list[Case]) -> None:
    """Every attack, and who owned the sandboxes that held."""
    found = attacks(cases)
    print("\nattacks on the isolated backend, and for which owners they are contained")
    for name, owners in sorted(found.items()):
        print(f"  {' and '.join(sorted(owners)):18}  {name}")
    print(f"  {len(found)} attacks are contained")


NEVER_RUN = """
never run against the real service, only beside a fake one, recordings and published clients:
  AgentCore (tests/agentcore), Daytona (tests/daytona), the models of Bedrock, Anthropic and
  OpenAI (tests/models); the fakes have not been compared with the services either"""


def show(cases: list[Case], allowed_skips: Optional[tuple[str, ...]]) -> int:
    """Print failures, skips, rows and the last line. With a list of allowed skips, any other
    skip is a failure."""
    if allowed_skips is not None:
        cases = [
            case._replace(outcome="failed", detail=f"skipped: {case.detail}")
            if case.outcome == "skipped" and not any(a in case.detail for a in allowed_skips)
            else case
            for case in cases
        ]
    for case in cases:
        if case.outcome == "failed":
            print(f"\nFAILED {case.suite}: {case.name}\n{case.detail.strip()}")
    for case in cases:
        if case.outcome == "skipped":
            print(f"skipped {case.suite}: {case.name}: {case.detail or 'no reason given'}")
    print_rows(cases)
    print_attacks(cases)
    print(NEVER_RUN)
    count = {name: sum(case.outcome == name for case in cases)
             for name in ("passed", "failed", "skipped")}
    print(f"\n{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0
