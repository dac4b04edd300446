"""A dialog for one line of text: a focus, a path."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from thresher.core.text import clean_line

from ..plain import PlainStatic
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from ..widgets.text_line import TextLine
from .dialog import ENTER, Dialog


class AskScreen(Dialog[str]):
    """Asks for one line. Answers None when it is closed, else the line, which may be empty."""

    def __init__(self, title: str, placeholder: str, hint: str = "", value: str = "") -> None:
        super().__init__()
        self._title = clean_line(title, 200)
        self._hint = clean_line(hint, 200)
        self._input = TextLine(value, words=placeholder)

    def compose(self) -> ComposeResult:
        """A title, the line, what may be said about it, and the ways out."""
        with Vertical(classes="dialog"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield self._input
            if self._hint:
                yield PlainStatic(self._hint, classes="hint")
            yield Choices(
                [
                    Choice(ENTER, "accepts", "accept"),
                    Choice(key_words(self.app, "modal.close"), "closes", "close"),
                ]
            )

    def on_input_submitted(self) -> None:
        """Enter is the answer."""
        self.action_accept()

    def action_accept(self) -> None:
        """What stands in the line is the answer."""
        self.dismiss(self._input.value.strip())
