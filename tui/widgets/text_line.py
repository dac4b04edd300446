"""A line to write in. What it says while it is empty ends in an ellipsis where it has no room."""

from __future__ import annotations

from textual.widgets import Input

from ..spans import cut


class TextLine(Input):
    """One line of input; `words` stand in it while it is empty."""

    def __init__(
        self, value: str = "", *, words: str = "", select_on_focus: bool = True,
        compact: bool = True, id: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            value, placeholder=words, select_on_focus=select_on_focus, compact=compact, id=id
        )
        self.cursor_blink = False
        self._words = words

    def say(self, words: str) -> None:
        """Other words for an empty line, clean."""
        self._words = words
        self._fit()

    def on_resize(self) -> None:
        """As much of them as there is room for."""
        self._fit()

    def _fit(self) -> None:
        cells = self.content_size.width
        self.placeholder = cut(self._words, cells) if cells > 0 else self._words
