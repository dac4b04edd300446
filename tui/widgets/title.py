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
        self._short: Line = []
        self._active = False

    def set(
        self, *, remark: Line | None = None, short: Line | None = None, active: bool = False,
        name: str = "",
    ) -> None:  # fmt: skip
        """Exchange remark, name and focus; `short` stands where the remark has no room."""
        self._name = name or self._name
        self._remark, self._short, self._active = remark or [], short or [], active
        self.show()

    @property
    def remark(self) -> Line:
        """What stands at the right."""
        return self._remark

    def draw(self, width_: int, height: int) -> list[Line]:
        tone = Tone.ACCENT if self._active else Tone.RULE
        left: Line = [span(f"{self._name} ", Tone.ACCENT if self._active else Tone.MUTED)]
        room = width_ - width(left) - 3
        told = self._short if self._short and width(self._remark) > room else self._remark
        right = clip([span(" "), *told], max(0, width_ - 12)) if told else []
        rule = "─" * max(0, width_ - width(left) - width(right))
        return [[*left, span(rule, tone), *right]]
