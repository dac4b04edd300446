"""What can be done in a dialog: each way is a key, and a place to click."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual import events
from textual.geometry import Size

from ..spans import Line, Tone, clip, span, width
from .lines import Lines

_GAP = "   "


class Choice(NamedTuple):
    """The key in words, what it does, and the action of the screen that does it."""

    keys: str
    does: str
    action: str

    def line(self, over: bool = False) -> Line:
        """As it is shown, under the pointer too."""
        return [
            span(f"{self.keys} ", Tone.KEY),
            span(self.does, Tone.STRONG if over else Tone.MUTED),
        ]


class _Place(NamedTuple):
    """Where a choice stands."""

    row: int
    start: int
    end: int
    choice: Choice


def places(choices: Sequence[Choice], cells: int, lead: int = 0) -> Iterator[_Place]:
    """Where each choice stands: side by side behind `lead` cells, and on another line where there
    is no room."""
    row, at = 0, lead
    for choice in choices:
        size = width(choice.line())
        if at + size > cells and at:
            row, at = row + 1, 0
        yield _Place(row, at, at + size, choice)
        at += size + len(_GAP)


class Choices(Lines):
    """The ways on and out of a dialog, side by side. A click on a way takes it."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Choices { height: auto; pointer: pointer; }
    """

    def __init__(
        self, choices: Sequence[Choice], *, lead: Line | None = None, classes: str = "hint"
    ) -> None:
        super().__init__(classes=classes)
        self._choices = tuple(choices)
        self._lead = lead or []
        self._over: Choice | None = None

    def set(self, choices: Sequence[Choice], lead: Line | None = None) -> None:
        """Others, and other words before them."""
        told = (tuple(choices), self._lead if lead is None else lead)
        if told == (self._choices, self._lead):
            return
        rows = self._rows(self.size.width)
        (self._choices, self._lead), self._over = told, None
        self._lines = None
        self.refresh(layout=self._rows(self.size.width) != rows)

    def _places(self, cells: int) -> list[_Place]:
        return list(places(self._choices, cells, width(self._lead)))

    def _rows(self, cells: int) -> int:
        return max((place.row for place in self._places(cells)), default=0) + 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as they take."""
        return self._rows(width)

    def draw(self, cells: int, height: int) -> list[Line]:
        """All of them."""
        lines: list[Line] = [[*self._lead]]
        for row, start, _, choice in self._places(cells):
            if row == len(lines):
                lines.append([])
            line = lines[row]
            line += [span(" " * (start - width(line))), *choice.line(choice == self._over)]
        return [clip(line, cells) for line in lines]

    def _at(self, x: int, y: int) -> Choice | None:
        found = (p for p in self._places(self.size.width) if p.row == y and p.start <= x < p.end)
        return next((place.choice for place in found), None)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The way under the pointer is lit."""
        self._light(self._at(event.x, event.y))

    def on_leave(self) -> None:
        """None is."""
        self._light(None)

    def _light(self, choice: Choice | None) -> None:
        if choice != self._over:
            self._over = choice
            self.show()

    async def on_click(self, event: events.Click) -> None:
        """A click on a way takes it."""
        event.stop()
        choice = self._at(event.x, event.y)
        if choice is not None:
            await self.screen.run_action(choice.action)
