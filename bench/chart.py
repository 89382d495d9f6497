# SPDX-License-Identifier: Apache-2.0
"""The picture of a run: what was promised beside what was measured, and the growth curves, as one
SVG for pages that are light or dark. All scales are logarithmic."""
import math
from html import escape
from typing import Iterator, NamedTuple

from promises import Promise
from report import Curve, Measured, duration

WIDTH, MARGIN, ROW, LABELS, VALUES = 980, 20, 24, 400, 190
PLOT = (MARGIN + LABELS, WIDTH - MARGIN - VALUES)
PANEL = (465, 260)  # of one curve
LEGEND_ROW = 17
SHORTEST = 1 / 64  # what is below is drawn as that
LIGHT = {"paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "grid": "#d8dee4",
         "met": "#2f81c7", "missed": "#d9730d", "goal": "#1f2328",
         "series": ["#0a69b7", "#c2571a", "#2a8c55", "#a4479b", "#8a6d00", "#5e6b78"]}
DARK = {"paper": "#0d1117", "ink": "#e6edf3", "faint": "#9aa4af", "grid": "#30363d",
        "met": "#4da3ea", "missed": "#f0953f", "goal": "#f0f6fc",
        "series": ["#58b0ff", "#ff9d5c", "#52c98a", "#e08bd8", "#e3c14f", "#a9b5c1"]}
MARKERS = ("circle", "square", "diamond", "triangle")


class Scale(NamedTuple):
    """A logarithmic axis, from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.start + min(share, 1) * (self.end - self.start)

    def ticks(self, base: int) -> Iterator[float]:
        power = round(math.log(self.low, base))
        while base ** power <= self.high * 1.0001:
            yield float(base) ** power
            power += 1


def scale(values: list[float], base: int, start: float, end: float) -> Scale:
    """From the power of a base below them to the one above."""
    low = math.floor(math.log(min(values), base) + 1e-9)
    high = math.ceil(math.log(max(values), base) - 1e-9)
    return Scale(float(base) ** low, float(base) ** max(high, low + 1), start, end)


def style(colors: dict) -> str:
    rules = [f".paper{{fill:{colors['paper']}}}", f"text{{fill:{colors['ink']}}}",
             f".faint{{fill:{colors['faint']}}}", f".grid{{stroke:{colors['grid']}}}",
             f".met{{fill:{colors['met']}}}", f".missed{{fill:{colors['missed']}}}",
             f".goal{{stroke:{colors['goal']}}}", f".peer{{stroke:{colors['faint']}}}"]
    for number, color in enumerate(colors["series"]):
        rules += [f".line{number}{{stroke:{color}}}", f".dot{number}{{fill:{color}}}"]
    return "".join(rules)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start",
         size: int = 12) -> str:
    named = f' class="{kind}"' if kind else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{named}>'
            f"{escape(words)}</text>")


def line(x1: float, y1: float, x2: float, y2: float, kind: str, width: float = 1,
         dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"'
            f' stroke-width="{width}"{dashed}/>')


# ---- promises ----

class Bar(NamedTuple):
    label: str
    shown: str
    value: float
    goal: float

    @property
    def kind(self) -> str:
        return "met" if self.value <= self.goal else "missed"


def bars(title: str, found: list[Bar], unit: str, peer: bool,
         top: float) -> tuple[list[str], float]:
    """Rows of bars that should end left of their marks. Returns what to draw and where it ends."""
    axis = scale([max(size, SHORTEST) for bar in found for size in (bar.value, bar.goal, 1)], 2,
                 *PLOT)
    axis = axis._replace(low=axis.low / 2)  # so that the shortest is seen
    bottom = top + 40 + ROW * len(found)
    drawn = [text(MARGIN, top + 8, title, size=15)]
    for tick in axis.ticks(2):
        drawn.append(line(axis.at(tick), top + 34, axis.at(tick), bottom, "grid"))
        shown = f"{tick:g}" if tick >= 1 else f"1/{1 / tick:g}"
        drawn.append(text(axis.at(tick), top + 28, f"{shown}{unit}", "faint", "middle", 10))
    if peer:
        drawn.append(line(axis.at(1), top + 34, axis.at(1), bottom, "peer", 1.5, "4 3"))
    for number, bar in enumerate(found):
        y = top + 42 + ROW * number
        drawn += [text(PLOT[0] - 10, y + 11, bar.label, anchor="end"),
                  f'<rect x="{PLOT[0]}" y="{y:.1f}" height="14" rx="2" class="{bar.kind}"'
                  f' width="{max(axis.at(bar.value) - PLOT[0], 2):.1f}"/>',
                  line(axis.at(bar.goal), y - 4, axis.at(bar.goal), y + 18, "goal", 2.5),
                  text(PLOT[1] + 12, y + 11, bar.shown, "" if bar.kind == "met" else "missed")]
    return drawn, bottom + 26


def plain(words: str) -> str:
    return words.replace("`", "")


def ratio_bars(outcomes: list[tuple[Promise, Measured]]) -> list[Bar]:
    return [Bar(plain(promise.what), f"{one.value:.2f} x {plain(promise.peer)}", one.value,
                promise.limit) for promise, one in outcomes if promise.is_ratio]


def limit_bars(outcomes: list[tuple[Promise, Measured]]) -> list[Bar]:
    found = []
    for promise, one in outcomes:
        if promise.is_ratio:
            continue
        shown = f"{promise.shown(one.value)} of {promise.goal:,g}"
        if promise.limit == 0:  # nothing may be left, and a share of nothing cannot be drawn
            found.append(Bar(plain(promise.what), shown, 1 if one.value <= 0 else 2, 1))
        else:
            found.append(Bar(plain(promise.what), shown, one.value / promise.limit, 1))
    return found


# ---- curves ----

def marker(shape: str, x: float, y: float, kind: str) -> str:
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" class="{kind}"/>'
    corners = {"square": [(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)],
               "diamond": [(0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0)],
               "triangle": [(0, -4.4), (4.2, 3.4), (-4.2, 3.4)]}[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" class="{kind}"/>'


def amount(value: float) -> str:
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def axes(curve: Curve, left: float, top: float) -> tuple[list[str], Scale, Scale]:
    points = [point for series in curve.series.values() for point in series]
    right, bottom = left + PANEL[0] - 70, top + PANEL[1] - 50
    across = scale([x for x, _ in points], 10, left, right)
    up = scale([y for _, y in points], 10, bottom, top)
    drawn = []
    for tick in across.ticks(10):
        drawn += [line(across.at(tick), top, across.at(tick), bottom, "grid"),
                  text(across.at(tick), bottom + 15, amount(tick), "faint", "middle", 10)]
    for tick in up.ticks(10):
        shown = duration_tick(tick) if curve.unit_y == "seconds" else amount(tick)
        drawn += [line(left, up.at(tick), right, up.at(tick), "grid"),
                  text(left - 6, up.at(tick) + 4, shown, "faint", "end", 10)]
    drawn.append(text((left + right) / 2, bottom + 31, curve.unit_x, "faint", "middle", 11))
    return drawn, across, up


def duration_tick(seconds: float) -> str:
    for unit, letter in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit * 0.999:
            return f"{round(seconds / unit):g} {letter}"
    return duration(seconds)


def panel(curve: Curve, left: float, top: float) -> list[str]:
    drawn, across, up = axes(curve, left + 52, top + 26)
    drawn.append(text(left, top + 8, curve.title, size=13))
    for number, (name, points) in enumerate(curve.series.items()):
        color, shape = number % len(LIGHT["series"]), MARKERS[number % len(MARKERS)]
        placed = [(across.at(x), up.at(y)) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        dash = "" if name in curve.ours else ' stroke-dasharray="5 3"'
        drawn.append(f'<polyline points="{path}" fill="none" stroke-width="2"'
                     f' class="line{color}"{dash}/>')
        drawn += [marker(shape, x, y, f"dot{color}") for x, y in placed]
        row = top + PANEL[1] + 30 + LEGEND_ROW * number
        drawn += [marker(shape, left + 58, row - 4, f"dot{color}"),
                  text(left + 70, row, f"{name} (slope {curve.slope(name):.2f},"
                       f" at its end {curve.tail(name):.2f})", size=11)]
    return drawn


def panels(curves: list[Curve], top: float) -> tuple[list[str], float]:
    drawn = [text(MARGIN, top + 8, "Growth: slope 1 is proportional, 2 is quadratic;"
                  " others than ours are dashed", size=15)]
    top += 36
    for row in range(0, len(curves), 2):
        pair = curves[row:row + 2]
        for column, curve in enumerate(pair):
            drawn += panel(curve, MARGIN + column * (PANEL[0] + 10), top)
        top += PANEL[1] + 50 + LEGEND_ROW * max(len(curve.series) for curve in pair)
    return drawn, top


# ---- the whole ----

def svg(outcomes: list[tuple[Promise, Measured]], curves: list[Curve], machine: str) -> str:
    drawn, top = [text(MARGIN, 32, "What was promised of Pinfold, and what was measured", size=19),
                  text(MARGIN, 52, machine, "faint", size=12)], 84.0
    for title, found, unit, peer in (
            ("Time beside a peer's (dashed); each bar should end left of its mark, the goal",
             ratio_bars(outcomes), " x", True),
            ("Share of what is allowed; each bar should end left of its mark",
             limit_bars(outcomes), "", False)):
        if found:
            more, top = bars(title, found, unit, peer, top)
            drawn += more
    if curves:
        more, top = panels(curves, top)
        drawn += more
    dark = f"@media (prefers-color-scheme: dark){{{style(DARK)}}}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top:.0f}"'
            f' viewBox="0 0 {WIDTH} {top:.0f}" font-family="system-ui, sans-serif" role="img">\n'
            f"<title>What was promised of Pinfold, and what was measured</title>\n"
            f"<style>{style(LIGHT)}{dark}</style>\n"
            f'<rect width="100%" height="100%" class="paper"/>\n' + "\n".join(drawn) + "\n</svg>\n")
