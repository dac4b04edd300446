"""Records in the order of the file, some of them held back until a later line has told the rest.

A line is sometimes understood only with those behind it. Its record is then held, and all records
behind it wait too, so that a reader never sees them in another order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from ..events import Event, Record


class Slot:
    """The place of a record. While it is held, its event can be exchanged, or others put first."""

    def __init__(self, record: Record) -> None:
        self.records = [record]
        self.held = False

    @property
    def event(self) -> Event:
        """The event in this place."""
        return self.records[-1].event

    def exchange(self, event: Event) -> None:
        """Put another event in this place."""
        self.records[-1] = msgspec.structs.replace(self.records[-1], event=event)

    def exchange_all(self, events: Iterable[Event]) -> None:
        """Put any number of events of the same line and time in this place."""
        own = self.records[-1]
        self.records = [Record(own.n, own.at, event) for event in events]

    def put_first(self, event: Event) -> None:
        """Put a record of the same line and time in front of this one."""
        own = self.records[-1]
        self.records.insert(-1, Record(own.n, own.at, event))


class Outbox:
    """What is on its way to the reader. `at` is the time of the line that is being read."""

    def __init__(self) -> None:
        self.at = 0.0
        self._last = -1
        self._free: list[Record] = []
        """What nothing stands in the way of; in front of all slots."""
        self._slots: deque[Slot] = deque()

    def add(self, n: int, event: Event, at: float | None = None) -> None:
        """Add the event of line `n`; like `emit`, for an event that nobody wants to exchange."""
        self._last = n
        if at is None:
            at = self.at
        if self._slots:
            self._slots.append(Slot(Record(n, at, event)))
        else:
            self._free.append(Record(n, at, event))

    def emit(self, n: int, event: Event, at: float | None = None, *, hold: bool = False) -> Slot:
        """Add the event of line `n`; `hold` keeps it and all that follow from leaving."""
        self._last = n
        slot = Slot(Record(n, self.at if at is None else at, event))
        slot.held = hold
        self._slots.append(slot)
        return slot

    def emit_ephemeral(self, event: Event) -> None:
        """Add a piece of a stream: it has no line, and leaves with what is around it."""
        self._slots.append(Slot(Record(-1, self.at, event)))

    def not_before(self, n: int) -> int:
        """The line `n`, or the last one that has said something, if that is later.

        For an event that is understood late: records never go back in the file.
        """
        return max(n, self._last)

    def __len__(self) -> int:
        return len(self._free) + len(self._slots)

    def ready(self) -> list[Record]:
        """Take out everything in front of the first held record."""
        out, self._free = self._free, []
        while self._slots and not self._slots[0].held:
            out.extend(self._slots.popleft().records)
        return out

    def release(self) -> None:
        """Hold nothing any longer."""
        for slot in self._slots:
            slot.held = False
