"""Where one can go in a session: the stops on the way, and the row that shows a place.

Stops are positions, as `History` counts them. They are found in one pass over the records and kept
until there are more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from thresher.core import events as e
from thresher.core.context import EntryId
from thresher.core.history import History
from thresher.core.items import FunctionCall, FunctionCallOutput
from thresher.core.state import SessionState
from thresher.core.views import Row, RowKind


class Place(NamedTuple):
    """A place in a session: a journal line, and the entry that is meant, where one is."""

    line: int
    id: EntryId | None = None


class Stops:
    """The positions just after every request of a turn, compaction and error, ascending."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._read = 0
        self._rounds: list[int] = []
        self._compactions: list[int] = []
        self._errors: list[int] = []

    @property
    def rounds(self) -> Sequence[int]:
        """Where a request of a turn has just gone out: the context is what the model saw."""
        self._catch_up()
        return self._rounds

    @property
    def compactions(self) -> Sequence[int]:
        """Where a compaction has just happened."""
        self._catch_up()
        return self._compactions

    @property
    def errors(self) -> Sequence[int]:
        """Where something has just failed: an error, an overflow, a tool, a compaction."""
        self._catch_up()
        return self._errors

    def _catch_up(self) -> None:
        records = self._history.records
        for at in range(self._read, len(records)):
            match records[at].event:
                case e.RequestSent(purpose=e.Purpose.TURN):
                    self._rounds.append(at + 1)
                case e.HistoryCompacted():
                    self._compactions.append(at + 1)
                case (
                    e.ErrorRaised()
                    | e.ContextOverflowed()
                    | e.CompactionFailed()
                    | e.BreakerOpened()
                    | e.ToolFinished(ok=False)
                ):
                    self._errors.append(at + 1)
                case _:
                    pass
        self._read = len(records)


def stop_before(stops: Sequence[int], position: int) -> int | None:
    """The last stop before a position."""
    at = bisect_left(stops, position)
    return stops[at - 1] if at else None


def stop_after(stops: Sequence[int], position: int) -> int | None:
    """The first stop after a position."""
    at = bisect_right(stops, position)
    return stops[at] if at < len(stops) else None


def row_of(state: SessionState, place: Place) -> int | None:
    """The index of the row that shows a place: its entry, the tool call of an output, the card of
    what a compaction made; else the last row at or before the line. None without rows."""
    rows = state.rows
    if not rows:
        return None
    # A card keeps the place where its pass began, whatever happened in the meantime.
    for card, shown in enumerate(state.cards):
        if shown.n == place.line and (place.id is None or place.id.line == place.line):
            cards = {row.card: at for at, row in enumerate(rows) if row.kind is RowKind.COMPACTION}
            return cards.get(card)
    entry = state.known.get(place.id) if place.id is not None else None
    if entry is not None:
        if isinstance(entry.item, FunctionCall | FunctionCallOutput):
            call_id = entry.item.call_id
            found = _last(
                rows[: _upto(rows, entry.id.line)],
                lambda row: row.kind is RowKind.TOOL and row.call_id == call_id,
            )
            if found is not None:
                return found
        found = _last(rows[: _upto(rows, entry.id.line)], lambda row: row.id == entry.id)
        if found is not None:
            return found
    return max(0, _upto(rows, place.line) - 1)


POSITIONS = "#120, or c2 for after compaction 2, or c2- for before it."


def named_position(history: History, text: str) -> int | None:
    """The position that a user names: "#120" or "120" (after that journal line), "c2" (after
    compaction 2), "c2-" (before it). None where there is none."""
    told = text.strip().lower().lstrip("#")
    if told.startswith("c"):
        number = told.removeprefix("compaction").removeprefix("c").strip()
        before = number.endswith("-")
        number = number.rstrip("-").strip()
        card = history.state.card_of(int(number)) if number.isdecimal() else None
        if card is None:
            return None
        return history.position_of(card.n) - before
    if not told.isdecimal():
        return None
    last = history.records[-1].n if len(history) else -1
    return history.position_of(int(told)) if int(told) <= last else None


def _upto(rows: Sequence[Row], line: int) -> int:
    """How many rows there are up to a line."""
    return bisect_right(rows, line, key=lambda row: row.n)


def _last(rows: Sequence[Row], fits: Callable[[Row], bool]) -> int | None:
    """The index of the last row that fits."""
    return next((at for at in range(len(rows) - 1, -1, -1) if fits(rows[at])), None)
