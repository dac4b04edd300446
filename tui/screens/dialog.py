"""What all dialogs share: they lie over a screen, and Esc closes them."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual import events
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widget import Widget

from ..keys import Where, bindings, shown
from ..theme import STYLES
from .base import StyledScreen

Answer = TypeVar("Answer")

ENTER = shown("enter")
"""The key that every line of text takes as its end; it is Textual's and not in the table."""


class Dialog(ModalScreen[Answer], StyledScreen[Answer]):
    """A modal screen that Esc, and a click beside it, closes without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.MODAL)
    CSS_PATH = STYLES / "dialog.tcss"

    _covered: tuple[Widget, ...] = ()

    def on_mount(self) -> None:
        """The toasts are shown here, and not behind it a second time."""
        below = (screen for screen in self.app.screen_stack if screen is not self)
        racks = [rack for screen in below for rack in screen.query("ToastRack") if rack.display]
        for rack in racks:
            rack.display = False
        self._covered = tuple(racks)

    def on_unmount(self) -> None:
        """They are seen below again."""
        for rack in self._covered:
            rack.display = True

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    async def on_click(self, event: events.Click) -> None:
        """A click beside it closes it, as Esc does."""
        if event.widget is self:
            await self.run_action("close")
