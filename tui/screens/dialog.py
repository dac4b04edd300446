"""What all dialogs share: they lie over a screen, and Esc closes them."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.binding import BindingType
from textual.screen import ModalScreen

from ..keys import Where, bindings

Answer = TypeVar("Answer")


class Dialog(ModalScreen[Answer]):
    """A modal screen that Esc closes without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.MODAL)
    CSS_PATH = "../styles/dialog.tcss"

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)
