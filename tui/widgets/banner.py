"""The line that says that the view is not live, and how to get back."""

from __future__ import annotations

from thresher.core.state import SessionState

from ..spans import Line, Tone, span, spread
from .lines import Lines


def banner_line(state: SessionState, position: int, length: int, width: int) -> Line:
    """The line for a rewound position."""
    left: Line = [
        span("◂ REWOUND ", Tone.THRESHOLD),
        span(f"to #{max(0, state.position)}", Tone.STRONG),
        span(f"   record {position:,} of {length:,}", Tone.MUTED),
    ]
    right: Line = [
        span("End", Tone.STRONG),
        span(" or ", Tone.MUTED),
        span("L", Tone.STRONG),
        span(" for live", Tone.MUTED),
    ]
    return spread(left, right, width)


class RewoundBanner(Lines):
    """Visible only while an earlier position is in view."""

    DEFAULT_CSS = """
    RewoundBanner { padding: 0 1; background: $cursor-row; display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._position = 0
        self._length = 0

    def show_position(self, state: SessionState, position: int | None, length: int) -> None:
        """Show a rewound position; None hides the line."""
        self.display = position is not None
        self._state, self._position, self._length = state, position or 0, length
        self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        return [banner_line(self._state, self._position, self._length, width)]
