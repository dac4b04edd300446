"""The detail pane: all of the selected row, scrolled virtually."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from thresher.core.state import SessionState
from thresher.core.views import Row, RowKind

from ..keys import Where, bindings
from ..spans import Line
from .detail_lines import detail_lines
from .lines import Toned


class Detail(Toned, ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of one row. Another row starts at its top; the same row keeps its place."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.ROWS)

    DEFAULT_CSS = """
    Detail {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        padding: 0 0 0 1;
    }
    """

    class FocusMoved(Message):
        """The pane got or lost the focus."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._row: Row | None = None
        self._lines: list[Line] = []
        self._shown: tuple[Any, ...] = ()

    def show_row(self, state: SessionState, row: Row | None) -> None:
        """Show this row of this state; costs nothing when neither changed."""
        cells = self._cells
        if not self.display or cells <= 0:
            self._state, self._row = state, row
            return
        fresh = self._version(state, row, cells)
        if fresh == self._shown:
            return
        same_row = self._row is not None and row is not None and row.n == self._row.n
        self._state, self._row, self._shown = state, row, fresh
        self._lines = detail_lines(state, row, cells)
        self.virtual_size = Size(cells, len(self._lines))
        if not same_row:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.refresh()

    def again(self) -> None:
        """Show the row that was given while the pane was hidden."""
        self.show_row(self._state, self._row)

    @property
    def _cells(self) -> int:
        return self.scrollable_content_region.width - 1

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
        return (at, id(state), moving, state.compactions, state.basis, cells)

    def on_resize(self) -> None:
        """Another width wraps anew."""
        self.again()

    def on_show(self) -> None:
        """A hidden pane did nothing; now it catches up."""
        self.again()

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if at >= len(self._lines):
            return self.strip([], width)
        return self.strip(self._lines[at], width)

    def action_cursor_up(self) -> None:
        """Scroll by a line."""
        self.scroll_relative(y=-1, animate=False)

    def action_cursor_down(self) -> None:
        """Scroll by a line."""
        self.scroll_relative(y=1, animate=False)

    def action_page_up(self) -> None:
        """Scroll by a screen."""
        self.scroll_relative(y=1 - self.scrollable_content_region.height, animate=False)

    def action_page_down(self) -> None:
        """Scroll by a screen."""
        self.scroll_relative(y=self.scrollable_content_region.height - 1, animate=False)

    def action_scroll_home(self) -> None:
        """Go to the top."""
        self.scroll_to(y=0, animate=False)

    def action_scroll_end(self) -> None:
        """Go to the end."""
        self.scroll_to(y=len(self._lines), animate=False)

    def on_focus(self, event: events.Focus) -> None:
        """Tell who draws the title."""
        self.post_message(self.FocusMoved())

    def on_blur(self, event: events.Blur) -> None:
        """Tell who draws the title."""
        self.post_message(self.FocusMoved())
