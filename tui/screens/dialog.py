"""What all dialogs share: they lie over a screen, and Esc closes them."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual import events
from textual.binding import BindingType
from textual.screen import ModalScreen

from ..keys import Where, bindings

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A modal screen that Esc, and a click beside it, closes without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.MODAL)
    CSS_PATH = "../styles/dialog.tcss"

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    async def on_click(self, event: events.Click) -> None:
        """A click beside it closes it, as Esc does."""
        if event.widget is self:
            await self.run_action("close")
