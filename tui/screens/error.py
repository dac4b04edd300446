"""Something that should not happen did: what it was, that nothing is lost, and the traceback."""

from __future__ import annotations

import traceback
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from thresher.core.text import clean_line

from ..copying import copy_text
from ..keys import Where, bindings
from ..plain import PlainStatic
from ..theme import STYLES, keyed
from ..widgets.footer import KeyFooter
from ..widgets.reader import Reader
from .base import FullScreen


def told(error: BaseException, path: str = "") -> str:
    """What the user needs to know, in words."""
    kept = (
        f"The session file is safe: {clean_line(path, 300)} holds everything up to here."
        if path
        else "No session file was being written."
    )
    return (
        f"This is a fault of thresher, not of yours. {kept}\n"
        "<reader.close> goes back; what was running has stopped. The text below helps to find "
        "the fault."
    )


class ErrorScreen(FullScreen[None]):
    """An unexpected error with its traceback."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.READER)
    CSS_PATH = STYLES / "text.tcss"

    def __init__(self, error: BaseException, path: str = "") -> None:
        super().__init__()
        self._error = error
        self._path = path
        self._text = "".join(traceback.format_exception(error))
        self._reader = Reader(self._text)

    def compose(self) -> ComposeResult:
        """The kind of error, what it means, and where it came from."""
        kind = f"Unexpected error: {type(self._error).__name__}"
        yield PlainStatic(kind, classes="error-title")
        yield PlainStatic(keyed(self.app, told(self._error, self._path)), classes="error-told")
        yield self._reader
        yield KeyFooter()

    def on_mount(self) -> None:
        """The end of a traceback says the most."""
        self.call_after_refresh(self._reader.scroll_end, animate=False)

    def action_copy(self) -> None:
        """Copy the traceback."""
        copy_text(self.app, self._text, "the traceback")

    def action_page(self) -> None:
        """One page down, as pagers do."""
        self.query_one(Reader).action_page_down()

    def action_close(self) -> None:
        """Back to the screen that was there."""
        self.dismiss()
