"""Where the engine puts what happens: a session, or a record in memory for a what-if."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..bus import EventBus
from ..events import EPHEMERAL, Event, Record
from ..history import History
from ..state import ItemCost, SessionState, estimate_item
from ..tokens import Basis


class Recorder(Protocol):
    """The one writer of a record. `sessions.session.Session` is one."""

    @property
    def state(self) -> SessionState:
        """The fold of everything emitted so far."""
        ...

    @property
    def next_line(self) -> int:
        """The journal line that the next lasting event gets. New entries of a compaction have ids
        made of it, so the digest of the context after can be written into the event itself."""
        ...

    def emit(self, event: Event) -> Record:
        """Write, fold and publish an event. Ephemeral events get line -1 and no place."""
        ...


class MemoryRecorder:
    """A recorder without a file: for what-if comparisons and tests.

    `clock` gives the time of each record in seconds since the epoch.
    """

    def __init__(
        self,
        cost: ItemCost = estimate_item,
        basis: Basis = Basis.ESTIMATED,
        *,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.history = History(cost, basis)
        self.bus = EventBus()
        self._clock = clock
        self._lasting = 0

    @property
    def state(self) -> SessionState:
        """The fold of everything emitted so far."""
        return self.history.state

    @property
    def next_line(self) -> int:
        """The line of the next lasting event."""
        return self._lasting

    def emit(self, event: Event) -> Record:
        """Fold and publish an event."""
        record = Record(-1, self._clock(), event)
        if not isinstance(event, EPHEMERAL):
            record = Record(self._lasting, record.at, event)
            self._lasting += 1
        self.history.append(record)
        self.bus.publish(record)
        return record
