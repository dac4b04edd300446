"""A whole session as one line: where the view is, and what lies before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..spans import Line, Tone

SHORTEST = 12
"""Cells below which a track says nothing."""


class Track(NamedTuple):
    """What is drawn on a track, as positions: compactions, errors and bookmarks, all ascending."""

    length: int = 0
    compactions: Sequence[int] = ()
    errors: Sequence[int] = ()
    bookmarks: Sequence[int] = ()


NO_TRACK = Track()


def track_line(track: Track, position: int, cells: int) -> Line:
    """One cell for each part of the session; the strongest sign of a part is shown."""
    if cells < SHORTEST or not track.length:
        return []
    here = cell_of(position, track.length, cells)
    marks = _cells(track.bookmarks, track.length, cells)
    compactions = _cells(track.compactions, track.length, cells)
    errors = _cells(track.errors, track.length, cells)
    line: Line = []
    for cell in range(cells):
        if cell == here:
            line.append(("●", Tone.ACCENT))
        elif cell in compactions:
            line.append(("▲", Tone.SUMMARY))
        elif cell in marks:
            line.append(("◆", Tone.STRONG))
        elif cell in errors:
            line.append(("!", Tone.REMOVED))
        else:
            line.append(("━", Tone.MUTED) if cell < here else ("─", Tone.RULE))
    return line


def cell_of(position: int, length: int, cells: int) -> int:
    """The cell of a position."""
    return min(cells - 1, max(0, position * cells // max(1, length)))


def position_of(cell: int, length: int, cells: int) -> int:
    """The position in the middle of what a cell stands for."""
    return min(length, max(0, (2 * cell + 1) * length // (2 * max(1, cells))))


def _cells(positions: Iterable[int], length: int, cells: int) -> set[int]:
    return {cell_of(position, length, cells) for position in positions}
