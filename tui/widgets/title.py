"""A pane's title on a thin rule; the rule takes colour while the pane has the focus."""

from __future__ import annotations

from ..spans import Line, Tone, clip, span, width
from .lines import Lines


class Title(Lines):
    """`name ───────── remark`."""

    DEFAULT_CSS = """
    Title { height: 1; padding: 0 1; }
    """

    def __init__(self, name: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._name = name
        self._remark: Line = []
        self._active = False

    def set(self, *, remark: Line | None = None, active: bool = False, name: str = "") -> None:
        """Exchange remark, name and focus."""
        self._name = name or self._name
        self._remark, self._active = remark or [], active
        self.show()

    @property
    def remark(self) -> Line:
        """What stands at the right."""
        return self._remark

    def draw(self, width_: int, height: int) -> list[Line]:
        tone = Tone.ACCENT if self._active else Tone.RULE
        left: Line = [span(f"{self._name} ", Tone.ACCENT if self._active else Tone.MUTED)]
        right = clip([span(" "), *self._remark], max(0, width_ - 12)) if self._remark else []
        rule = "─" * max(0, width_ - width(left) - width(right))
        return [[*left, span(rule, tone), *right]]
