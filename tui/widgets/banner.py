"""The line that says that the view is not live: where it is in the session, and how to get back.

The session lies along it with its compactions, errors and bookmarks; a click goes to a place.
"""

from __future__ import annotations

from textual import events
from textual.message import Message

from thresher.core.state import SessionState

from ..spans import Line, Tone, clip, span, spread, width
from ..theme import key_words
from .lines import Lines
from .track import NO_TRACK, SHORTEST, Track, position_of, track_line


def banner_line(
    state: SessionState,
    position: int,
    length: int,
    cells: int,
    live: tuple[str, str] = ("End", "L"),
    track: Track = NO_TRACK,
    player: str = "",
) -> Line:
    """The line for a rewound position; `live` are the keys that go back, `player` says how it
    plays."""
    left, right = _ends(state, position, length, cells, live, player)
    room = cells - width(left) - width(right) - 4
    if room < SHORTEST or not track.length:
        return spread(left, right, cells)
    return clip([*left, span("  "), *track_line(track, position, room), span("  "), *right], cells)


def _ends(
    state: SessionState, position: int, length: int, cells: int, live: tuple[str, str], player: str
) -> tuple[Line, Line]:
    left: Line = [
        span("◂ REWOUND ", Tone.THRESHOLD),
        span(f"to #{max(0, state.position)}", Tone.STRONG),
    ]
    # The figures take the same room at every position, so that nothing moves while it plays.
    at = f"{position:,}".rjust(len(f"{length:,}"))
    right: Line = [span(f"{at} of {length:,}", Tone.MUTED)]
    if player:
        right.append(span(f"  {player}", Tone.ACCENT))
    right.append(span("  "))
    return left, [*right, *live_words(live, cells)]


def live_words(live: tuple[str, str], cells: int) -> Line:
    """How to get back, at the right end."""
    words: Line = [span(live[1], Tone.KEY), span(" for live", Tone.MUTED)]
    if cells >= 100:
        words = [span(live[0], Tone.KEY), span(" or ", Tone.MUTED), *words]
    return words


class RewoundBanner(Lines):
    """Visible only while an earlier position is in view."""

    DEFAULT_CSS = """
    RewoundBanner { padding: 0 1; background: $cursor-row; display: none; pointer: pointer; }
    """

    class Wanted(Message):
        """A click on the track: this position is wanted."""

        def __init__(self, position: int) -> None:
            super().__init__()
            self.position = position

    class LiveWanted(Message):
        """A click on the words at the right end: back to live."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._position = 0
        self._length = 0
        self._track = Track()
        self._player = ""

    def show_position(
        self,
        state: SessionState,
        position: int | None,
        length: int,
        track: Track = NO_TRACK,
        player: str = "",
    ) -> None:
        """Show a rewound position; None hides the line."""
        self.display = position is not None
        self._state, self._position, self._length = state, position or 0, length
        self._track, self._player = track, player
        self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        return [
            banner_line(
                self._state, self._position, self._length, width, self._live, self._track,
                self._player,
            )
        ]  # fmt: skip

    @property
    def _live(self) -> tuple[str, str]:
        return key_words(self.app, "rows.bottom"), key_words(self.app, "console.live")

    def tip_at(self, x: int, y: int) -> str:
        """What a click does there, and what the signs on the track are."""
        if x >= self._live_from:
            return "Back to the newest record"
        if self._cell(x) is None:
            return ""
        return "A click goes there. ▲ compaction, ! error, ◆ bookmark, ● the position in view"

    @property
    def _live_from(self) -> int:
        cells = self.content_size.width
        return cells - width(live_words(self._live, cells))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go there."""
        at = event.get_content_offset(self)
        if at is not None and at.x >= self._live_from:
            self.post_message(self.LiveWanted())
        else:
            self._go(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """With the button held the view follows the pointer."""
        if event.button:
            self._go(event)
        else:
            super().on_mouse_move(event)

    def _go(self, event: events.MouseEvent) -> None:
        offset = event.get_content_offset(self)
        cell = self._cell(offset.x) if offset is not None else None
        if cell is not None:
            self.post_message(self.Wanted(position_of(cell[0], self._length, cell[1])))

    def _cell(self, x: int) -> tuple[int, int] | None:
        """Which cell of the track it is, of how many; None beside it."""
        cells = self.content_size.width
        left, right = _ends(
            self._state, self._position, self._length, cells, self._live, self._player
        )
        start, room = width(left) + 2, cells - width(left) - width(right) - 4
        there = room >= SHORTEST and bool(self._track.length) and start <= x < start + room
        return (x - start, room) if there else None
