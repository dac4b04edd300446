"""A list of one-line rows with a cursor, drawn virtually: however long, only what is visible costs.

Whoever fills it says how many rows there are and how one is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..keys import Where, bindings
from ..spans import Line, Tone, span
from .lines import Toned

DrawRow = Callable[[int, int], Line]
"""(index, cells) -> the line."""


def _nothing(at: int, cells: int) -> Line:
    return []


class RowList(Toned, ScrollView, can_focus=True, inherit_bindings=False):
    """Rows by index. `cursor` is the selected one, -1 when there is none."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.ROWS, Where.LIST)

    class Selected(Message):
        """Another row is selected."""

        def __init__(self, rows: RowList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> RowList:
            """The list."""
            return self.rows

    class Opened(Selected):
        """Enter, or a second click: the selected row is wanted."""

    class JumpWanted(Selected):
        """The next or the previous place of interest is wanted (`step` 1 or -1)."""

        def __init__(self, rows: RowList, step: int) -> None:
            super().__init__(rows)
            self.step = step

    class FocusMoved(Selected):
        """The list got or lost the focus."""

    def __init__(self, *, id: str | None = None, empty: str = "nothing here") -> None:
        super().__init__(id=id)
        self._count = 0
        self._cursor = 0
        self._draw: DrawRow = _nothing
        self.empty = empty
        """What is said where there are no rows."""

    def __len__(self) -> int:
        return self._count

    @property
    def cursor(self) -> int:
        """The index of the selected row; -1 when there is none."""
        return min(self._cursor, self._count - 1)

    def fill(self, count: int, draw: DrawRow, *, cursor: int = 0) -> None:
        """Show this many rows; `draw` makes the line of one, without the bar at its left."""
        self._count, self._draw = count, draw
        self.virtual_size = Size(self._width, count)
        self.select(cursor)

    def again(self) -> None:
        """Draw the same rows anew."""
        self.refresh()

    def select(self, at: int, *, centre: bool = False) -> None:
        """Select a row and bring it into view; with `centre` away from the edges."""
        self._cursor = max(0, min(at, self._count - 1))
        self._into_view(centre)
        self.refresh()
        self.post_message(self.Selected(self))

    def reveal(self, rows: int) -> None:
        """Bring as many rows behind the selected one into view as there is room for."""
        top, page, at = int(self.scroll_offset.y), self._page, max(0, self.cursor)
        wanted = min(at, at + rows - page + 1)
        if wanted > top:
            self.scroll_to(y=wanted, animate=False, force=True, immediate=True)

    @property
    def cells(self) -> int:
        """The width that the line of a row is made for."""
        return self._width - 2

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    @property
    def _page(self) -> int:
        return max(1, self.scrollable_content_region.height)

    def _into_view(self, centre: bool = False) -> None:
        top, page, at = int(self.scroll_offset.y), self._page, max(0, self.cursor)
        if top <= at < top + page:
            return
        wanted = at - page // 2 if centre else at if at < top else at - page + 1
        self.scroll_to(y=max(0, wanted), animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Keep the selected row in view."""
        self.virtual_size = Size(self._width, self._count)
        self._into_view()

    def render_line(self, y: int) -> Strip:
        """One visible row."""
        at, width = y + int(self.scroll_offset.y), self._width
        if at >= self._count:
            empty = not self._count and y == 1
            return self.strip([span(f"  {self.empty}", Tone.FAINT)] if empty else [], width)
        selected = at == self.cursor
        edge = Tone.ACCENT if self.has_focus else Tone.FAINT
        bar = span("▌" if selected else " ", edge)
        under = self.behind("cursor-row") if selected else None
        return self.strip([bar, *self._draw(at, width - 2)], width, under)

    def render(self) -> Any:
        """Unused: `render_line` draws."""
        return ""

    def action_cursor_up(self) -> None:
        """Select the row above."""
        self.select(self.cursor - 1)

    def action_cursor_down(self) -> None:
        """Select the row below."""
        self.select(self.cursor + 1)

    def action_page_up(self) -> None:
        """Select the row one screen above."""
        self.select(self.cursor - self._page)

    def action_page_down(self) -> None:
        """Select the row one screen below."""
        self.select(self.cursor + self._page)

    def action_scroll_home(self) -> None:
        """Select the first row."""
        self.select(0)

    def action_scroll_end(self) -> None:
        """Select the last row."""
        self.select(self._count - 1)

    def action_select(self) -> None:
        """Open the selected row."""
        if self._count:
            self.post_message(self.Opened(self))

    def action_jump(self, step: int) -> None:
        """To the next place of interest, or the one before."""
        self.post_message(self.JumpWanted(self, step))

    def on_click(self, event: events.Click) -> None:
        """Select; a second click opens."""
        at = int(event.y + self.scroll_offset.y)
        if at >= self._count:
            return
        again = at == self.cursor
        self.select(at)
        if again:
            self.action_select()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """No rule asks for the focus of a list: it has no other styles."""

    def on_focus(self) -> None:
        """The edge of the selected row shows where the keys go."""
        self.refresh()
        self.post_message(self.FocusMoved(self))

    def on_blur(self) -> None:
        """The edge of the selected row is quiet again."""
        self.on_focus()
