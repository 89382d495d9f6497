# SPDX-License-Identifier: Apache-2.0
"""What is written about the measurements is about those: each promise has its row, what falls short
its reason, and no reason is left of what is promised no more."""

import re
import sys

import pytest

from manual import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from promises import PROMISES, Ledger, Promise  # noqa: E402  # pylint: disable=wrong-import-position
from report import Measured  # noqa: E402  # pylint: disable=wrong-import-position

RESULTS = (ROOT / "bench/results.md").read_text()
NOTES = (ROOT / "bench/notes.md").read_text()
EXPLAINED = re.findall(r"^## (\S+)$", NOTES, re.MULTILINE)
NAMES = {promise.key: promise for promise in PROMISES}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows() -> dict[str, list[str]]:
    """The table of promises, in its order."""
    text = RESULTS.split("\n## Promises\n")[1].split("\n## ")[0]
    found = [cells(line) for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(found) == len(PROMISES)
    return {promise.key: row for promise, row in zip(PROMISES, found)}


ROWS = rows()


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.key)
def test_a_promise_is_in_the_results_as_it_was_made(promise: Promise) -> None:
    what, goal = (text.replace("|", "\\|") for text in (promise.what, promise.goal_shown))
    assert ROWS[promise.key][:2] == [what, goal]


def shows(promise: Promise, text: str) -> bool:
    """Whether a promise is met by what was shown, at the worst of its rounding."""
    number = float(text.split()[0].replace(",", ""))
    return promise.is_met(1 / number if promise.unit == "speed" else number)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.key)
def test_what_falls_short_is_said_and_explained(promise: Promise) -> None:
    measured, met = ROWS[promise.key][2], ROWS[promise.key][4]
    assert re.match(r"yes|\*\*no\*\*", met)
    assert shows(promise, measured) == met.startswith("yes")
    assert met.startswith("yes") or promise.key in EXPLAINED
    link = f"[why](notes.md#{promise.key})"
    assert (link in met) == (promise.key in EXPLAINED)


def test_every_reason_is_of_a_promise() -> None:
    assert len(EXPLAINED) == len(set(EXPLAINED))
    assert set(EXPLAINED) <= set(NAMES)


def test_a_table_points_to_the_reasons() -> None:
    ledger = Ledger()
    ledger.note([("isolated-start", Measured(9.0)), ("flush-copy", Measured(0.1)),
                 ("daytona-seed", Measured(1.0))])
    said = [cells(line)[4] for line in list(ledger.lines())[2:5]]
    assert said == ["**no**, [why](notes.md#isolated-start)", "yes, [why](notes.md#flush-copy)",
                    "yes"]
