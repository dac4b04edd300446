"""A long text on a whole screen: one virtual widget, whatever the length.

The text is cleaned once and wrapped once for a width; a line is made when it is looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Any

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from thresher.core.text import clean

from ..keys import Where, bindings
from ..spans import Line, Tone, wrap
from .lines import Toned

WORDS_UP_TO = 4_000
"""Longer lines are cut at the width, without looking for spaces: they are data, not prose."""


class Wrapped:
    """A clean text in rows of at most `cells`. `len` is the number of rows."""

    def __init__(self, lines: list[str], cells: int) -> None:
        self._lines = lines
        self._cells = max(1, cells)
        self._ends = list(accumulate(map(self._height, lines)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def row(self, at: int) -> tuple[int, int, str]:
        """(number of the line from 0, row within the line, text) of a row."""
        line = bisect_right(self._ends, at)
        within = at - (self._ends[line - 1] if line else 0)
        text = self._lines[line]
        if self._short(text):
            return line, within, text
        if len(text) > WORDS_UP_TO and text.isascii():
            return line, within, text[within * self._cells : (within + 1) * self._cells]
        return line, within, self._parts(text)[within]

    def _short(self, text: str) -> bool:
        return len(text) <= self._cells and text.isascii()

    def _height(self, text: str) -> int:
        if self._short(text):
            return 1
        if len(text) > WORDS_UP_TO and text.isascii():
            return -(-len(text) // self._cells)
        return len(self._parts(text))

    def _parts(self, text: str) -> list[str]:
        if len(text) <= WORDS_UP_TO:
            return wrap(text, self._cells)
        # Half the width in characters always fits, also where every one of them is two cells wide.
        step = max(1, self._cells // 2)
        return [text[at : at + step] for at in range(0, len(text), step)]


class Reader(Toned, ScrollView, can_focus=True, inherit_bindings=False):
    """Shows a text with line numbers; scrolls by keys and wheel."""

    BINDINGS = bindings(Where.ROWS)

    DEFAULT_CSS = """
    Reader { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: scroll; }
    """

    def __init__(self, text: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines = clean(text).removesuffix("\n").split("\n")
        self._gutter = len(f"{len(self._lines):,}") + 1
        self._wrapped = Wrapped([], 1)

    @property
    def line_count(self) -> int:
        """The number of lines of the text."""
        return len(self._lines)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        cells = self.scrollable_content_region.width - self._gutter - 2
        self._wrapped = Wrapped(self._lines, cells)
        self.virtual_size = Size(self.size.width, len(self._wrapped))

    def render_line(self, y: int) -> Strip:
        """The row at this height of the view."""
        width, at = self.size.width, y + self.scroll_offset.y
        if at >= len(self._wrapped):
            return Strip.blank(width, self.rich_style)
        number, within, text = self._wrapped.row(at)
        name = f"{number + 1:,}" if not within else ""
        line: Line = [(name.rjust(self._gutter), Tone.FAINT), ("  ", Tone.PLAIN)]
        return self.strip([*line, (text, Tone.PLAIN)], width)

    def render(self) -> Any:
        """Unused: `render_line` draws."""
        return ""

    def action_cursor_up(self) -> None:
        """One row up."""
        self.scroll_up(animate=False)

    def action_cursor_down(self) -> None:
        """One row down."""
        self.scroll_down(animate=False)

    def action_page_up(self) -> None:
        """One page up."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """One page down."""
        self.scroll_page_down(animate=False)
