"""What is on the screen before there is anything to show."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.screen import Screen

from ..plain import PlainStatic


class OpeningScreen(Screen[None]):
    """The first paint: a name and a word."""

    DEFAULT_CSS = """
    OpeningScreen { align: center middle; }
    OpeningScreen PlainStatic { width: auto; color: $muted; }
    """

    def compose(self) -> ComposeResult:
        """One line."""
        yield PlainStatic("thresher is opening the session ...")
