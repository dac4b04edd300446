"""The context meter as a widget: as many of its lines as there is height for, and its tips."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.compaction.policy import Mark
from thresher.core.state import SessionState

from ..spans import Line
from .lines import Lines
from .meter_lines import bar_line, figure_line, legend_at, legend_line, ruler_line
from .meter_tips import part_tip, tip


class ContextMeter(Lines):
    """Figures, bar, ruler, legend: as many of them as there is height for."""

    DEFAULT_CSS = """
    ContextMeter { height: 4; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._marks: tuple[Mark, ...] = ()
        self._forecast: Sequence[str] = ()

    def show_state(
        self, state: SessionState, marks: tuple[Mark, ...], forecast: Sequence[str]
    ) -> None:
        """Show this state; `forecast` tells of the next compaction, the longest form first."""
        self._state, self._marks, self._forecast = state, marks, forecast
        self.show()

    def tip_at(self, x: int, y: int) -> str:
        """What the part of the meter under the pointer means."""
        width, height = self.size
        if y == height - 1 and y >= 2:
            name = legend_at(self._state, x, width)
            return part_tip(self._state, name) if name else ""
        return tip(self._state, self._marks, x, y, (width, height))

    def draw(self, width: int, height: int) -> list[Line]:
        state, marks = self._state, self._marks
        lines = [figure_line(state, marks, self._forecast, width), bar_line(state, marks, width)]
        if height >= 4:
            lines.append(ruler_line(state, marks, width))
        lines.append(legend_line(state, width))
        return lines[:height]
