"""A dialog that shows what would happen before it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from ..keys import Where, bindings
from ..plain import PlainStatic
from ..spans import Line, clip
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from ..widgets.lines import Lines
from .dialog import Dialog

Told = Callable[[int], list[Line]]
"""Makes the lines for a width; their number is the same for every width."""


class _Told(Lines):
    """The lines of a preview."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told
        self.styles.height = len(told(80))

    def draw(self, width: int, height: int) -> list[Line]:
        return [clip(line, width) for line in self._told(width)]


class ConfirmScreen(Dialog[bool]):
    """Answers True for yes; closed, it answers None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CONFIRM)

    def __init__(self, title: str, told: Told) -> None:
        super().__init__()
        self._title, self._told = title, told

    def compose(self) -> ComposeResult:
        """A title, what would happen, and how to say so."""
        yes, no = key_words(self.app, "confirm.yes"), key_words(self.app, "modal.close")
        with Vertical(classes="dialog"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield _Told(self._told)
            yield Choices(
                [
                    Choice(yes, "does it", "yes"),
                    Choice(no, "leaves everything as it is", "close"),
                ]
            )

    def action_yes(self) -> None:
        """Do it."""
        self.dismiss(True)
