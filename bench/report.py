# SPDX-License-Identifier: Apache-2.0
"""What a section of the bench yields: tables and growth curves, as Markdown and as plain data.

Each of them may keep promises (promises.py): it names them by their keys, and says what it measured
by measured(), as pairs of a key and a Measured.
"""
import math
import statistics
from typing import Iterable, Iterator, NamedTuple

Series = dict[str, list[tuple[float, float]]]


class Measured(NamedTuple):
    """value: of medians. Of times beside a peer's it is the ratio of the two, ours first."""

    value: float
    fastest: float | None = None  # the same of the fastest runs


class Table:
    """Seconds of several contenders; the first is ours, the second what it is measured against."""

    def __init__(self, title: str, goal: str | None, times: dict[str, list[float]],
                 promise: str | None = None) -> None:
        self.title, self.goal, self.times, self.promise = title, goal, times, promise

    def measured(self) -> Iterator[tuple[str, Measured]]:
        if self.promise and len(self.times) > 1:
            ours, second = list(self.times.values())[:2]
            yield self.promise, Measured(statistics.median(ours) / statistics.median(second),
                                         min(ours) / min(second))

    def lines(self) -> Iterator[str]:
        second = list(self.times.values())[1] if len(self.times) > 1 else None
        yield from heading(self.title, self.goal)
        yield "| | median | fastest | slowest | runs | speed against the second | of the fastest |"
        yield "|---|---|---|---|---|---|---|"
        for name, times in self.times.items():
            median = statistics.median(times)
            beside = (f"{statistics.median(second) / median:.2f} x",
                      f"{min(second) / min(times):.2f} x") if second else ("-", "-")
            yield row(name, duration(median), duration(min(times)), duration(max(times)),
                      len(times), *beside)
        yield ""

    def data(self) -> dict:
        rows = {name: {"median": statistics.median(times), "fastest": min(times),
                       "slowest": max(times), "runs": len(times)}
                for name, times in self.times.items()}
        return {"title": self.title, "goal": self.goal, "seconds": rows}


class Facts:
    """Numbers that are no times. promises: key -> what was measured."""

    def __init__(self, title: str, goal: str | None, facts: dict[str, object],
                 promises: dict[str, float] | None = None) -> None:
        self.title, self.goal, self.facts, self.promises = title, goal, facts, promises or {}

    def measured(self) -> Iterator[tuple[str, Measured]]:
        for key, value in self.promises.items():
            yield key, Measured(value)

    def lines(self) -> Iterator[str]:
        yield from heading(self.title, self.goal)
        yield from ("| | |", "|---|---|")
        for name, value in self.facts.items():
            yield row(name, value)
        yield ""

    def data(self) -> dict:
        return {"title": self.title, "goal": self.goal, "facts": self.facts}


class Grid:
    """Rows of cells under names, the first of each row what it is about."""

    def __init__(self, title: str, goal: str | None, names: Iterable[str],
                 rows: Iterable[Iterable[object]],
                 promises: dict[str, float] | None = None) -> None:
        self.title, self.goal, self.promises = title, goal, promises or {}
        self.names, self.rows = list(names), [list(cells) for cells in rows]

    def measured(self) -> Iterator[tuple[str, Measured]]:
        for key, value in self.promises.items():
            yield key, Measured(value)

    def lines(self) -> Iterator[str]:
        yield from heading(self.title, self.goal)
        yield row(*self.names)
        yield "|---" * len(self.names) + "|"
        for cells in self.rows:
            yield row(*cells)
        yield ""

    def data(self) -> dict:
        return {"title": self.title, "goal": self.goal, "names": self.names, "rows": self.rows}


class Curve:
    """Seconds against the amount of work: name -> points (x, seconds). Those named in ours, else
    the first, are ours, and promise not to grow faster than their work does; the others are there
    to compare."""

    def __init__(self, title: str, unit_x: str, unit_y: str, series: Series,
                 ours: Iterable[str] | None = None) -> None:
        self.title, self.unit_x, self.unit_y = title, unit_x, unit_y
        self.series = {name: sorted(points) for name, points in series.items()}
        self.ours = list(series)[:1] if ours is None else list(ours)

    def slope(self, name: str) -> float:
        """Of the line that fits the logarithms best: 1 is proportional, 2 is quadratic."""
        return fitted_slope(self.series[name])

    def tail(self, name: str) -> float:
        """The slope between the last two points, where what is fixed counts least."""
        return fitted_slope(self.series[name][-2:])

    def measured(self) -> Iterator[tuple[str, Measured]]:
        for name in self.ours:
            yield "growth", Measured(max(self.slope(name), self.tail(name)))

    def lines(self) -> Iterator[str]:
        yield from heading(self.title, None)
        amounts = sorted({x for points in self.series.values() for x, _ in points})
        yield row(self.unit_x, *(f"{x:,g}" for x in amounts), "slope", "at its end")
        yield "|---" * (len(amounts) + 3) + "|"
        for name, points in self.series.items():
            found = dict(points)
            yield row(name, *(self.cell(found.get(x)) for x in amounts),
                      f"{self.slope(name):.2f}", f"{self.tail(name):.2f}")
        yield ""

    def cell(self, y: float | None) -> str:
        if y is None:
            return "-"
        return duration(y) if self.unit_y == "seconds" else f"{y:,g}"

    def data(self) -> dict:
        return {"title": self.title, "unit_x": self.unit_x, "unit_y": self.unit_y,
                "series": {name: [list(point) for point in points]
                           for name, points in self.series.items()},
                "slopes": {name: self.slope(name) for name in self.series}}


def fitted_slope(points: list[tuple[float, float]]) -> float:
    if len(points) < 2 or min(min(point) for point in points) <= 0:
        raise ValueError(f"a curve needs two points or more, all above zero: {points}")
    return statistics.linear_regression([math.log(x) for x, _ in points],
                                        [math.log(y) for _, y in points]).slope


def heading(title: str, goal: str | None) -> Iterator[str]:
    yield from (f"### {title}", "")
    if goal:
        yield from (f"Goal: {goal}.", "")


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def duration(seconds: float) -> str:
    places = 0 if seconds >= 0.1 else 2 if seconds >= 0.001 else 4
    return f"{seconds * 1000:,.{places}f} ms"
