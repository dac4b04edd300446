"""A dialog to write a text of many lines: a summary."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import TextArea

from thresher.core.text import clean

from ..keys import Where, bindings
from ..plain import PlainStatic
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from .dialog import Dialog


class Written(NamedTuple):
    """What was written; `done` when it is meant to be used, else it is a draft."""

    text: str
    done: bool


class WriteScreen(Dialog[Written]):
    """A text to change. Closing it without a word keeps the draft."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.WRITE)

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._area = TextArea(clean(text), soft_wrap=True, show_line_numbers=False, compact=True)
        self._area.cursor_blink = False

    def compose(self) -> ComposeResult:
        """A title, the text and how to leave it."""
        use, leave = key_words(self.app, "write.use"), key_words(self.app, "modal.close")
        with Vertical(classes="dialog writing"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield self._area
            yield Choices(
                [Choice(use, "uses it", "use"), Choice(leave, "keeps it as a draft", "close")]
            )

    def on_mount(self) -> None:
        """Begin to write."""
        self._area.focus()

    def action_use(self) -> None:
        """This is the text."""
        self.dismiss(Written(self._area.text, True))

    def action_close(self) -> None:
        """Not yet."""
        self.dismiss(Written(self._area.text, False))
