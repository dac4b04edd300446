"""How a dialog can be left, one line: each way is a key, and a place to click."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events

from ..spans import Line, Tone, clip, span, width
from .lines import Lines

_GAP = "   "


class Choice(NamedTuple):
    """The key in words, what it does, and the action of the screen that does it."""

    keys: str
    does: str
    action: str

    def line(self) -> Line:
        """As it is shown."""
        return [span(f"{self.keys} ", Tone.STRONG), span(self.does, Tone.MUTED)]


class Choices(Lines):
    """The ways out of a dialog, side by side."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Choices { height: 1; pointer: pointer; }
    """

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__(classes="hint")
        self._choices = tuple(choices)

    def draw(self, cells: int, height: int) -> list[Line]:
        """All of them, as far as there is room."""
        line: Line = []
        for choice in self._choices:
            line += [*([span(_GAP)] if line else []), *choice.line()]
        return [clip(line, cells)]

    async def on_click(self, event: events.Click) -> None:
        """A click on a way takes it."""
        event.stop()
        at = 0
        for choice in self._choices:
            end = at + width(choice.line())
            if at <= event.x < end:
                await self.screen.run_action(choice.action)
                return
            at = end + len(_GAP)
