"""The detail pane: all of the selected row, with links to where it came from and went to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.message import Message

from thresher.core.context import EntryId
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
        self._meant: EntryId | None = None
        self._shown: tuple[Any, ...] = ()
        self._brought = -1
        """Where a match was brought into view; -1 where none was."""

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
        same_words = bool(self._shown) and self._shown[:2] == (self._words, self._meant)
        self._state, self._row, self._shown = state, row, fresh
        sheet = detail_sheet(state, row, cells, self.insights, self._meant)
        lines, found = _marked(sheet.lines, self._words, sheet.meant)
        self.fill(lines, sheet.links, keep=same_row)
        # What is found out later stands above the match: it stays in view unless the reader left.
        left = same_row and same_words and self.scroll_offset.y != self._brought
        if found >= 0 and not left:
            self._show_line(found)
            self._brought = self.scroll_offset.y
        elif not same_row or not same_words:
            self._brought = -1
        if row is not None and self.insights is not None and self.insights.missing(row):
            self.post_message(self.Incomplete(row))

    def mark(self, words: Sequence[str]) -> None:
        """Mark these words from now on, in any case."""
        self._words, self._meant = tuple(words), None
        self.again()

    def look_for(self, id: EntryId | None) -> None:
        """Of all the marks, those in this entry are meant, wherever it is shown."""
        self._meant = id
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
        return (
            self._words,
            self._meant,
            at,
            id(state),
            moving,
            state.compactions,
            state.basis,
            cells,
            known,
        )

    def on_resize(self) -> None:
        """Another width wraps anew."""
        self.again()

    def on_show(self) -> None:
        """A hidden pane did nothing; now it catches up."""
        self.again()


def _marked(lines: list[Line], words: Sequence[str], meant: int = 0) -> tuple[list[Line], int]:
    """The lines with the words marked, and the first line from `meant` on that has the most of
    them, else the first of all; -1 where none has any."""
    pattern = pattern_of(words)
    if pattern is None:
        return lines, -1
    found, first, best = [], -1, (False, 0)
    for at, line in enumerate(lines):
        whole = text_of(line)
        hits = {match[0].lower() for match in pattern.finditer(whole)}
        found.append(mark_words(line, pattern) if hits else line)
        # The line with the most of the words: short ones alone are everywhere.
        if hits and (at >= meant, len(hits)) > best:
            first, best = at, (at >= meant, len(hits))
    return found, first
