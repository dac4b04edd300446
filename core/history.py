"""A session's records with a state for any position: live, rewound and replayed are one code."""

from __future__ import annotations

from collections.abc import Iterable

from . import events as e
from .bodies import Bodies
from .costs import ItemCost, estimate_item
from .state import Changed, SessionState
from .tokens import Basis

CHECKPOINT_EVERY = 4000
"""Records between two kept states at first; the distance doubles when there are too many."""
MAX_CHECKPOINTS = 16


class History:
    """Records in order, the state after the last of them, and checkpoints on the way.

    Positions count records: position k is the state after the first k records. Ephemeral records
    change the live state only and are not kept.
    """

    def __init__(self, cost: ItemCost = estimate_item, basis: Basis = Basis.ESTIMATED) -> None:
        self.records: list[e.Record] = []
        self.state = SessionState(cost, basis)
        self._every = self._next = CHECKPOINT_EVERY
        self._checkpoints: list[tuple[int, SessionState]] = [(0, self.state.copy())]

    def __len__(self) -> int:
        return len(self.records)

    def append(self, record: e.Record) -> Changed:
        """Take one record into the live state, and keep it unless it is ephemeral."""
        changed = self.state.apply(record)
        if record.n >= 0:
            self.records.append(record)
            if len(self.records) >= self._next:
                self._keep_state()
        return changed

    def extend(self, records: Iterable[e.Record]) -> Changed:
        """Take several records; returns what they touched together."""
        rest, changed = iter(records), Changed.NOTHING
        while True:
            changed |= self.state.apply_all(rest, self.records, self._next)
            if len(self.records) < self._next:
                return changed
            self._keep_state()

    def _keep_state(self) -> None:
        self._checkpoints.append((len(self.records), self.state.settled()))
        if len(self._checkpoints) > MAX_CHECKPOINTS:
            self._checkpoints = self._checkpoints[::2]
            self._every *= 2
        self._next = self._checkpoints[-1][0] + self._every

    def become(self, other: History) -> None:
        """Take over what another one has: the same session, of which more was read meanwhile.

        Both must have the same cost; the other one must not be used any more.
        """
        self.records, self.state = other.records, other.state
        self._every, self._checkpoints = other._every, other._checkpoints
        self._next = other._next

    def read_from(self, bodies: Bodies) -> None:
        """Where the whole of items is, of which only heads are held; at every position."""
        for state in (self.state, *(state for _, state in self._checkpoints)):
            state.bodies = bodies

    def at(self, position: int) -> SessionState:
        """A new state after the first `position` records (clamped to what there is)."""
        position = max(0, min(position, len(self.records)))
        start, base = next(
            (at, state) for at, state in reversed(self._checkpoints) if at <= position
        )
        state = base.copy()
        for record in self.records[start:position]:
            state.apply(record)
        return state

    def position_of(self, line: int) -> int:
        """The position just after the last record with journal line <= `line`."""
        low, high = 0, len(self.records)
        while low < high:
            middle = (low + high) // 2
            if self.records[middle].n <= line:
                low = middle + 1
            else:
                high = middle
        return low

    def recount(self, cost: ItemCost, basis: Basis) -> None:
        """Exchange the item cost at every position: all states share one table."""
        self.state.recount(cost, basis)
