"""Outside text in ready-made widgets: always clean, never markup."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from thresher.core.text import clean


def plain(text: str) -> Content:
    """Clean text that no markup parser will read."""
    return Content(clean(text))


class PlainStatic(Static):
    """A Static for outside text: what it is given is cleaned and shown as it is."""

    def __init__(
        self, text: str = "", *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(plain(text), id=id, classes=classes, markup=False)

    def show(self, text: str) -> None:
        """Exchange the text."""
        self.update(plain(text))
