"""The line between two panes, which the mouse can drag."""

from __future__ import annotations

from textual import events
from textual.message import Message

from ..spans import Line, Tone, span
from .lines import Lines

GRIP = 3
"""Cells that show, while nothing is dragged, that something could be."""


class Divider(Lines):
    """One cell wide. Quiet until the pointer is on it."""

    DEFAULT_CSS = """
    Divider { width: 1; height: 1fr; }
    """

    class Dragged(Message):
        """The line is wanted at this column of the screen; `done` when it was let go there."""

        def __init__(self, x: int, done: bool) -> None:
            super().__init__()
            self.x, self.done = x, done

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lit = self._held = False
        self.tooltip = "Drag to give one of the panes more room"

    def draw(self, width: int, height: int) -> list[Line]:
        if self._lit or self._held:
            return [[span("┃", Tone.ACCENT)]] * height
        top = (height - GRIP) // 2
        return [[span("┊" if 0 <= y - top < GRIP else " ", Tone.FAINT)] for y in range(height)]

    def on_enter(self) -> None:
        """Light up."""
        self._lit = True
        self.show()

    def on_leave(self) -> None:
        """Go dark."""
        self._lit = False
        self.show()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold."""
        self._held = True
        self.capture_mouse()
        event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag."""
        if self._held:
            self.post_message(self.Dragged(event.screen_x, False))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        if self._held:
            self._held = False
            self.release_mouse()
            self.show()
            self.post_message(self.Dragged(event.screen_x, True))
