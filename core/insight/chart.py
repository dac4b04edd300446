"""The chart of a report: reported tokens over the requests, with a mark at each compaction.

A drawing in SVG without a script. Everything that is written in it is a number of ours or clean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..text import clean_line
from .report import ChartPoint

WIDTH, HEIGHT = 1000, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 26, 26
MOST_LABELS = 40
"""Compactions that get a number; of more, only the lines are drawn."""


def chart(points: Sequence[ChartPoint], thresholds: Sequence[tuple[str, int]]) -> str:
    """The drawing; empty when nothing was reported."""
    totals = [point.tokens for point in points if point.tokens is not None]
    if not totals:
        return ""
    near = [(name, tokens) for name, tokens in thresholds if 0 < tokens <= 3 * max(totals)]
    top = _round_up(max([*totals, *(tokens for _, tokens in near)]))
    plot = _Plot(len(points), top)
    parts = [*_grid(plot), *_lines(plot, points), *_limits(plot, near), *_cuts(plot, points)]
    label = "Reported tokens of each request, and the compactions"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        + "".join(parts)
        + "</svg>"
    )


class _Plot:
    def __init__(self, points: int, top: int) -> None:
        self.points, self.top = points, top

    def x(self, at: float) -> float:
        width = WIDTH - LEFT - RIGHT
        return round(LEFT + width * (at + 0.5) / self.points, 1)

    def y(self, tokens: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tokens / self.top, 1)


def _grid(plot: _Plot) -> list[str]:
    found: list[str] = []
    for step in range(5):
        tokens = plot.top * step // 4
        y = plot.y(tokens)
        found.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        found.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{_short(tokens)}</text>')
    return found


def _lines(plot: _Plot, points: Sequence[ChartPoint]) -> list[str]:
    """A line for each run of reports between compactions, with what lies under it."""
    runs: list[list[tuple[float, float]]] = [[]]
    for at, point in enumerate(points):
        if point.tokens is None:
            runs.append([])
        else:
            runs[-1].append((plot.x(at), plot.y(point.tokens)))
    found: list[str] = []
    floor = plot.y(0)
    for run in filter(None, runs):
        drawn = " ".join(f"{x},{y}" for x, y in run)
        under = f"{run[0][0]},{floor} {drawn} {run[-1][0]},{floor}"
        found.append(f'<polygon class="area" points="{under}"/>')
        found.append(f'<polyline class="line" points="{drawn}"/>')
        if len(run) == 1 or plot.points <= 120:
            found += [f'<circle class="dot" cx="{x}" cy="{y}" r="2.2"/>' for x, y in run]
    return found


def _limits(plot: _Plot, thresholds: Sequence[tuple[str, int]]) -> list[str]:
    found: list[str] = []
    for name, tokens in thresholds:
        y = plot.y(tokens)
        said = escape(clean_line(name, 40))
        found.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        found.append(
            f'<text class="limit-name" x="{WIDTH - RIGHT}" y="{y - 5}" text-anchor="end">'
            f"{said} {tokens:,}</text>"
        )
    return found


def _cuts(plot: _Plot, points: Sequence[ChartPoint]) -> list[str]:
    cuts = [(at, point.ordinal) for at, point in enumerate(points) if point.tokens is None]
    found: list[str] = []
    for at, ordinal in cuts:
        x = plot.x(at)
        found.append(f'<line class="cut" x1="{x}" x2="{x}" y1="{TOP}" y2="{plot.y(0)}"/>')
        if ordinal and len(cuts) <= MOST_LABELS:
            found.append(f'<circle class="cut-mark" cx="{x}" cy="{TOP - 10}" r="9"/>')
            found.append(
                f'<text class="cut-name" x="{x}" y="{TOP - 6}" text-anchor="middle">'
                f"{ordinal}</text>"
            )
    return found


def _round_up(tokens: int) -> int:
    """The next number whose quarters are round."""
    step = 4 * int(10 ** max(0, math.floor(math.log10(max(1, tokens))) - 1))
    return max(4, math.ceil(tokens * 1.04 / step) * step)


def _short(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:g}M"
    if tokens >= 1_000:
        return f"{tokens / 1_000:g}k"
    return str(tokens)
