"""A dialog that shows what would happen before it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from ..keys import Where, bindings
from ..plain import PlainStatic
from ..spans import Line, clip
from ..theme import key_words
from ..widgets.lines import Lines
from .dialog import Dialog


class _Told(Lines):
    """Ready-made lines."""

    def __init__(self, lines: Sequence[Line]) -> None:
        super().__init__()
        self._told = lines
        self.styles.height = len(lines)

    def draw(self, width: int, height: int) -> list[Line]:
        return [clip(line, width) for line in self._told]


class ConfirmScreen(Dialog[bool]):
    """Answers True for yes; closed, it answers None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CONFIRM)

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__()
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        """A title, what would happen, and how to say so."""
        yes, no = key_words(self.app, "confirm.yes"), key_words(self.app, "modal.close")
        with Vertical(classes="dialog"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield _Told(self._lines)
            yield PlainStatic(f"{yes} does it, {no} leaves everything as it is.", classes="hint")

    def action_yes(self) -> None:
        """Do it."""
        self.dismiss(True)
