"""The footer: the keys that matter here, and help always within sight."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Footer


class KeyFooter(Footer):
    """Keys that have no room are cut at the right; the help key stays, so that they are found."""

    DEFAULT_CSS = """
    KeyFooter .-always { dock: right; background: $background; padding: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)

    def compose(self) -> ComposeResult:
        """The keys, with help at the right edge."""
        for widget in super().compose():
            if getattr(widget, "action", "") in ("help", "app.help"):
                widget.add_class("-always")
            yield widget
