"""The holds of a session, on record in a journal of ours, and how they come back into its views.

The other program's file is never touched. When its session is read again, what is in our journal is
told among its records by time, and the compaction that followed a hold says so on its card.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .. import events as e
from ..debug.decisions import words
from ..errors import ThresherError
from ..sessions.journal import JOURNAL_NAME, scan
from ..sources.base import Tail
from .place import folder_of
from .programs import program_of

GO_ON, SKIPPED = "let go by the user", "not compacted, by the user"
TIME_OVER, GONE = "the hook's time was over", "the program did not wait"
CLOSED, FAILED = "the console was closed", "something here went wrong"
"""How a hold ended, as a DebuggerContinued says it."""

LATEST = 1_800.0
"""Seconds after a hold in which a compaction is still the one that was held: a summary takes time,
and the file has no word that links the two."""


def told(
    began: e.Record, decisions: Sequence[e.CompactionDecided], ended: float, how: str
) -> str:  # fmt: skip
    """ "held 12 s, focus given by the user"."""
    time = f"held {max(0, round(ended - began.at))} s"
    said = words(decisions) if how == GO_ON else ""
    return f"{time}, {said or how}"


def on_record(transcript: Path) -> list[e.Record]:
    """The records of our journal for a transcript; empty where it was never held. A hold whose end
    was not written ended with its console."""
    try:
        file = folder_of(str(transcript)) / JOURNAL_NAME
        if not file.is_file():
            return []
        records = [one.found for one in scan(file) if isinstance(one.found, e.Record)]
    except (ThresherError, OSError, ValueError):
        # What we noted beside a session is no reason not to show it.
        return []
    found: list[e.Record] = []
    open_pass = ""
    for record in records:
        match record.event:
            case e.DebuggerStopped(pass_id=pass_id):
                open_pass = pass_id
            case e.DebuggerContinued():
                open_pass = ""
            case e.BreakpointSet() | e.BreakpointCleared() | e.CompactionDecided():
                pass
            case _:
                continue
        found.append(record)
    if open_pass:
        at = found[-1].at
        found.append(e.Record(0, at, e.DebuggerContinued(how=CLOSED, pass_id=open_pass)))
    return found


class Among:
    """Puts the records of holds among those of the session they belong to, and marks the cards.

    `pending` are those of earlier days, by time. What happens now is told with `happened`.
    """

    def __init__(self, pending: Iterable[e.Record] = ()) -> None:
        self._pending = list(pending)
        self._line = 0
        self._began: e.Record | None = None
        self._decisions: list[e.CompactionDecided] = []
        self._mark: tuple[float, str] | None = None

    @property
    def line(self) -> int:
        """The line of the session that was read last."""
        return self._line

    @property
    def waiting(self) -> bool:
        """Whether something of earlier days is still to be told."""
        return bool(self._pending)

    def read_to(self, line: int) -> None:
        """The session was read up to this line by somebody else."""
        self._line = max(self._line, line)

    def happened(self, record: e.Record) -> None:
        """Something of a hold, in its order."""
        match record.event:
            case e.DebuggerStopped():
                self._began, self._decisions, self._mark = record, [], None
            case e.CompactionDecided() as decision:
                self._decisions.append(decision)
            case e.DebuggerContinued(how=how) if self._began is not None:
                if how not in (SKIPPED, GONE):
                    self._mark = record.at, told(self._began, self._decisions, record.at, how)
                self._began = None
            case _:
                pass

    def feed(self, record: e.Record) -> Iterator[e.Record]:
        """A record of the session, after whatever of ours was before it."""
        while self._pending and self._pending[0].at <= record.at:
            yield self._placed(self._pending.pop(0))
        if record.n >= 0:
            self._line = record.n
        yield self._marked(record) if self._mark is not None else record

    def rest(self) -> Iterator[e.Record]:
        """What came after all that there is of the session."""
        while self._pending:
            yield self._placed(self._pending.pop(0))

    def _placed(self, record: e.Record) -> e.Record:
        self.happened(record)
        return e.Record(self._line, record.at, record.event)

    def _marked(self, record: e.Record) -> e.Record:
        assert self._mark is not None  # asked for only where there is one
        at, mark = self._mark
        match record.event:
            case e.HistoryCompacted(marks=marks) as event if at - 1 <= record.at <= at + LATEST:
                self._mark = None
                event = msgspec.structs.replace(event, marks=(mark, *marks))
                return e.Record(record.n, record.at, event)
            case e.CompactionFailed() if record.at >= at:
                self._mark = None
        return record


class AmongTail:
    """A tail with the records of holds among its own."""

    def __init__(self, tail: Tail, among: Among) -> None:
        self._tail, self._among = tail, among

    def __getattr__(self, name: str) -> Any:
        # What some tails have besides (`bodies`, `read`) stays theirs.
        return getattr(self._tail, name)

    def more(self) -> Iterator[e.Record]:
        """The records since the last call; blocking."""
        yield from _among(self._tail.more(), self._among)


def with_holds(path: Path, agent: str, records: Iterable[e.Record]) -> Iterable[e.Record]:
    """The records of a session of this agent with those of its holds among them."""
    held = on_record(path) if program_of(agent) is not None else []
    if not held:
        return records
    among = Among(held)
    return _among(records, among)


def _among(records: Iterable[e.Record], among: Among) -> Iterator[e.Record]:
    for record in records:
        yield from among.feed(record)
    yield from among.rest()
