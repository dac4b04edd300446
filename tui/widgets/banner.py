"""The line that says that the view is not live, and how to get back."""

from __future__ import annotations

from thresher.core.state import SessionState

from ..spans import Line, Tone, span, spread
from ..theme import key_words
from .lines import Lines


def banner_line(
    state: SessionState,
    position: int,
    length: int,
    width: int,
    live: tuple[str, str] = ("End", "L"),
) -> Line:
    """The line for a rewound position; `live` are the keys that go back."""
    left: Line = [
        span("◂ REWOUND ", Tone.THRESHOLD),
        span(f"to #{max(0, state.position)}", Tone.STRONG),
        span(f"   record {position:,} of {length:,}", Tone.MUTED),
    ]
    right: Line = [
        span(live[0], Tone.STRONG),
        span(" or ", Tone.MUTED),
        span(live[1], Tone.STRONG),
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
        live = key_words(self.app, "rows.bottom"), key_words(self.app, "console.live")
        return [banner_line(self._state, self._position, self._length, width, live)]
