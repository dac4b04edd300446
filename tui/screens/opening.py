"""What is on the screen before there is anything to show."""

from __future__ import annotations

from textual.app import ComposeResult

from ..plain import PlainStatic
from .base import FullScreen


class OpeningScreen(FullScreen[None]):
    """The first paint: a name and a word."""

    DEFAULT_CSS = """
    OpeningScreen { align: center middle; }
    OpeningScreen PlainStatic { width: auto; color: $muted; }
    """

    def compose(self) -> ComposeResult:
        """One line."""
        yield PlainStatic("thresher is opening the session ...")
