"""The detail pane: all of the selected row, with links to where it came from and went to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.message import Message

from thresher.core.state import SessionState
from thresher.core.views import Row, RowKind

from ..insights import Insights
from ..spans import Line, text_of
from .detail_lines import detail_sheet
from .marking import mark_words, pattern_of
from .page import Page


class Detail(Page):
    """Lines of one row. Another row starts at its top; the same row keeps its place.

    Words that are searched for are marked, and brought into view with another row.
    """

    class Incomplete(Message):
        """Something about the row has to be worked out first; then call `again`."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.insights: Insights | None = None
        self._state = SessionState()
        self._row: Row | None = None
        self._words: tuple[str, ...] = ()
        self._shown: tuple[Any, ...] = ()

    def show_row(self, state: SessionState, row: Row | None) -> None:
        """Show this row of this state; costs nothing when neither changed."""
        cells = self.cells
        if not self.display or cells <= 0:
            self._state, self._row = state, row
            return
        fresh = self._version(state, row, cells)
        if fresh == self._shown:
            return
        same_row = self._row is not None and row is not None and row.n == self._row.n
        same_words = bool(self._shown) and self._shown[0] == self._words
        self._state, self._row, self._shown = state, row, fresh
        sheet = detail_sheet(state, row, cells, self.insights)
        lines, found = _marked(sheet.lines, self._words)
        self.fill(lines, sheet.links, keep=same_row)
        if found >= 0 and not (same_row and same_words):
            self._show_line(found)
        if row is not None and self.insights is not None and self.insights.missing(row):
            self.post_message(self.Incomplete(row))

    def mark(self, words: Sequence[str]) -> None:
        """Mark these words from now on, in any case."""
        self._words = tuple(words)
        self.again()

    def again(self) -> None:
        """Show the row that was given while the pane was hidden, or what was found out of it."""
        self.show_row(self._state, self._row)

    def _show_line(self, line: int) -> None:
        """Bring a line into view, low: what stands above it says what became of it."""
        height = max(1, self.scrollable_content_region.height)
        self.scroll_to(
            y=max(0, line - height + 3),
            animate=False, force=True, immediate=True,
        )  # fmt: skip

    def _version(self, state: SessionState, row: Row | None, cells: int) -> tuple[Any, ...]:
        """What the lines depend on, cheaply: frozen values are compared by identity."""
        moving: object = None
        if row is not None and row.kind is RowKind.COMPACTION:
            moving = id(state.cards[row.card])
        elif row is not None and row.kind is RowKind.TOOL:
            moving = id(state.tools.get(row.call_id))
        elif row is not None and row.kind is RowKind.ROUND:
            streamed = sum(map(len, state.streams.values()))
            moving = (len(state.points), streamed if row.number == state.rounds else 0)
        at = (row.n, row.kind, row.id) if row is not None else None
        known = self.insights.version(row) if self.insights is not None else None
        return (self._words, at, id(state), moving, state.compactions, state.basis, cells, known)

    def on_resize(self) -> None:
        """Another width wraps anew."""
        self.again()

    def on_show(self) -> None:
        """A hidden pane did nothing; now it catches up."""
        self.again()


def _marked(lines: list[Line], words: Sequence[str]) -> tuple[list[Line], int]:
    """The lines with the words marked, and the first line that has one, or -1."""
    pattern = pattern_of(words)
    if pattern is None:
        return lines, -1
    found, first, best = [], -1, 0
    for at, line in enumerate(lines):
        whole = text_of(line)
        hits = {match[0].lower() for match in pattern.finditer(whole)}
        found.append(mark_words(line, pattern) if hits else line)
        # The line with the most of the words: short ones alone are everywhere.
        if len(hits) > best:
            first, best = at, len(hits)
    return found, first
