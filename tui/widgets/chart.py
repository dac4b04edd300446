"""The token chart: the size of every request, the threshold, and how far each compaction fell.

Eighth blocks, one column group for each figure. The top of the scale is the limit, where it is
known and the figures come near it; a session far below its limit gets a scale that fits its own
figures, and the title says what share of the limit its highest has. Figures that are not a
provider's report (after a compaction, until the next report) are drawn faint, since they have
another basis and often another scope.
"""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.compaction.policy import Mark
from thresher.core.state import SessionState
from thresher.core.views import Point

from ..figures import compact, percent
from ..spans import Line, Tone, span, text_of
from .lines import Lines

BLOCKS = " ▁▂▃▄▅▆▇█"
GUTTER = 6
"""Cells for the labels of the scale."""


def column_width(points: int, cells: int) -> int:
    """Cells for one figure: 3 while there is room, then 2, then 1."""
    return next((size for size in (3, 2) if points * size <= cells), 1)


NEAR = 3
"""A session whose highest figure is below the limit's n-th part has a scale of its own."""


def top_of(points: Sequence[Point], limit: int | None, fires: int | None = None) -> int:
    """The value at the top of the scale: the limit, or what has room for all figures.

    `fires` is the lowest threshold. As long as nothing has been reported the limit is the scale.
    """
    most = max((point.total or 0 for point in points), default=0)
    high = max(most, fires or 0)
    if limit and (not most or high * NEAR >= limit):
        return limit
    step = int(10 ** max(2, len(str(high)) - 1))
    return max(1000, -(-high // step) * step)


def caption(state: SessionState) -> Line:
    """The highest report of the session and its share of the limit, for the title."""
    reports = [
        point.total
        for point in state.points
        if point.total is not None and point.card < 0 and not point.estimated
    ]
    if not reports:
        return []
    most = max(reports)
    told: Line = [span("most ", Tone.MUTED), span(f"{most:,}")]
    limit = state.budget.limit if state.budget is not None else None
    if limit:
        told.append(span(f", {percent(most, limit)} of the limit", Tone.MUTED))
    return told


def blocks(value: int, top: int, rows: int) -> list[str]:
    """One column, top row first: what is there at all shows at least one eighth."""
    eighths = min(rows * 8, round(value * rows * 8 / top))
    if value > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    column = "█" * full + (BLOCKS[rest] if rest else "")
    return list(column.ljust(rows))[::-1]


def row_of(value: int, top: int, rows: int) -> int:
    """The row, from the top, that a value lies in."""
    return min(rows - 1, max(0, rows - 1 - int(value * rows / top)))


def chart_lines(state: SessionState, marks: Sequence[Mark], cells: int, height: int) -> list[Line]:
    """The chart for this size; its last line holds rounds and a tick for every compaction."""
    rows, room = height - 1, cells - GUTTER
    if rows < 1 or room < 4:
        return []
    limit = state.budget.limit if state.budget is not None else None
    size = column_width(len(state.points), room)
    points = state.points[-(room // size) :]
    fires = min((item.tokens for item in marks), default=None)
    top = top_of(points, limit, fires)
    grid = [[(" ", Tone.PLAIN)] * room for _ in range(rows)]
    for item in marks:
        if 0 < item.tokens <= top:
            grid[row_of(item.tokens, top, rows)] = [("╌", Tone.THRESHOLD)] * room
    for at, point in enumerate(points):
        if point.total is None:
            continue
        tone = _tone(point, fires, limit)
        for row, char in enumerate(blocks(point.total, top, rows)):
            if char != " ":
                for cell in range(at * size, at * size + max(1, size - 1)):
                    grid[row][cell] = (char, tone)
    labels = {0: (compact(top), Tone.MUTED)}
    for item in marks:
        if 0 < item.tokens <= top:
            labels[row_of(item.tokens, top, rows)] = (compact(item.tokens), Tone.THRESHOLD)
    if rows >= 3:
        labels.setdefault(rows - 1, ("0", Tone.MUTED))
    lines = []
    for row in range(rows):
        label, tone = labels.get(row, ("", Tone.MUTED))
        lines.append([span(f"{label:>{GUTTER - 1}} ", tone), *_runs(grid[row])])
    if not points:
        middle = rows // 2
        lines[middle] = [span(" " * GUTTER), span("no request yet", Tone.FAINT)]
    return [*lines, _axis(state, points, size, room)]


def _tone(point: Point, fires: int | None, limit: int | None) -> Tone:
    total = point.total or 0
    if point.estimated or point.card >= 0:
        return Tone.FAINT
    if limit is not None and total > limit:
        return Tone.FAILED
    if fires is not None and total >= fires:
        return Tone.THRESHOLD
    return Tone.PART_ASSISTANT


def _axis(state: SessionState, points: Sequence[Point], size: int, room: int) -> Line:
    cells = [(" ", Tone.PLAIN)] * room

    def put(text: str, at: int, tone: Tone) -> None:
        for offset, char in enumerate(text[: max(0, room - at)]):
            cells[at + offset] = (char, tone)

    for at, point in enumerate(points):
        if point.card < 0:
            continue
        ordinal = state.cards[point.card].ordinal if point.card < len(state.cards) else 0
        short = ordinal and len(str(ordinal)) < size
        put(f"▲{ordinal}" if short else "▲", at * size, Tone.SUMMARY)
    if points:
        for point, at in ((points[0], 0), (points[-1], (len(points) - 1) * size)):
            label = str(point.round)
            if all(char == " " for char, _ in cells[at : at + len(label) + 1]):
                put(label, at, Tone.MUTED)
    return [span("round ".rjust(GUTTER), Tone.MUTED), *_runs(cells)]


def _runs(cells: Sequence[tuple[str, Tone]]) -> Line:
    line: Line = []
    for char, tone in cells:
        if line and line[-1][1] is tone:
            line[-1] = (line[-1][0] + char, tone)
        else:
            line.append((char, tone))
    return line


def chart_text(state: SessionState, marks: Sequence[Mark], cells: int, height: int) -> str:
    """The chart as plain text, for tests and exports."""
    return "\n".join(text_of(line).rstrip() for line in chart_lines(state, marks, cells, height))


def chart_tip(state: SessionState, cells: int, x: int) -> str:
    """About the column at a cell; empty beside the columns."""
    room = cells - GUTTER
    if room < 4 or x < GUTTER:
        return ""
    size = column_width(len(state.points), room)
    points = state.points[-(room // size) :]
    at = (x - GUTTER) // size
    if at >= len(points):
        return ""
    point = points[at]
    told = "not known"
    if point.total is not None:
        told = f"{'~' if point.estimated else ''}{point.total:,} tokens"
        told += " estimated" if point.estimated else " reported"
        limit = state.budget.limit if state.budget is not None else None
        told += f", {percent(point.total, limit)} of the limit" if limit else ""
    if 0 <= point.card < len(state.cards):
        return f"after compaction {state.cards[point.card].ordinal}: {told}"
    return f"round {point.round}: {told}"


class TokenChart(Lines):
    """Tokens by round."""

    DEFAULT_CSS = """
    TokenChart { height: 8; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._marks: tuple[Mark, ...] = ()

    def show_state(self, state: SessionState, marks: tuple[Mark, ...]) -> None:
        """Show this state."""
        self._state, self._marks = state, marks
        self.show()

    def tip_at(self, x: int, y: int) -> str:
        """The figure of the column under the pointer."""
        return chart_tip(self._state, self.size.width, x)

    def draw(self, width: int, height: int) -> list[Line]:
        return chart_lines(self._state, self._marks, width, height)
