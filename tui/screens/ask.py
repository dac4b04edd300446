"""A dialog for one line of text: a focus, a path."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from thresher.core.text import clean_line

from ..plain import PlainStatic
from ..theme import keyed
from .dialog import Dialog

ACCEPTS = "Enter accepts, <modal.close> closes."


class AskScreen(Dialog[str]):
    """Asks for one line. Answers None when it is closed, else the line, which may be empty."""

    def __init__(self, title: str, placeholder: str, hint: str = "", value: str = "") -> None:
        super().__init__()
        self._title = clean_line(title, 200)
        self._hint = clean_line(hint, 200)
        self._input = Input(value, placeholder=placeholder, compact=True)
        self._input.cursor_blink = False

    def compose(self) -> ComposeResult:
        """A title, the line, and what may be said about it."""
        with Vertical(classes="dialog"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield self._input
            yield PlainStatic(f"{self._hint}  {keyed(self.app, ACCEPTS)}".strip(), classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter is the answer."""
        self.dismiss(event.value.strip())
