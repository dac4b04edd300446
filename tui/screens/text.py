"""A full text on a screen of its own: a summary, an output, an argument."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from thresher.core.text import clean_line

from .. import figures
from ..copying import copy_text
from ..keys import Where, bindings
from ..spans import Line, Tone, cut, span, spread
from ..theme import STYLES
from ..widgets.footer import KeyFooter
from ..widgets.lines import Lines
from ..widgets.reader import Reader
from .base import FullScreen


class TextHead(Lines):
    """What is shown, and how much of it there is."""

    def __init__(self, title: str, told: str) -> None:
        super().__init__(id="text-head")
        self._title = clean_line(title, 300)
        self._told = told

    def draw(self, width: int, height: int) -> list[Line]:
        """One line."""
        return [spread([span(self._title, Tone.STRONG)], [span(self._told, Tone.MUTED)], width)]


class TextScreen(FullScreen[None]):
    """Shows the whole of a text, however long. Neither title nor text needs to be clean."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.READER)
    CSS_PATH = STYLES / "text.tcss"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._text, self._named = text, title
        self._reader = Reader(text)
        lines = figures.count(self._reader.line_count, "line")
        self._head = TextHead(title, f"{lines}, {len(text):,} characters")

    def compose(self) -> ComposeResult:
        """A line about the text, and the text."""
        yield self._head
        yield self._reader
        yield KeyFooter()

    def action_copy(self) -> None:
        """Copy the text as it was given, not as it is shown."""
        copy_text(self.app, self._text, cut(self._named, 40) or "the text")

    def action_page(self) -> None:
        """One page down, as pagers do."""
        self.query_one(Reader).action_page_down()

    def action_close(self) -> None:
        """Back to where it was opened."""
        self.dismiss()
