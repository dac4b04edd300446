"""A session up to a position, taken as it is at this moment, to be worked on elsewhere.

A report takes seconds on a long session, so a screen has it made in a thread while the session goes
on. What is taken here is not changed by anybody any more. Items of which only the head is held are
made whole: a report must not show less than there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from .. import events as e
from ..bodies import Bodies, NoBodies, whole_of
from ..context import EntryId, Inserted, Replaced, Segment
from ..costs import ItemCost
from ..history import History
from ..tokens import Basis


class Taken(NamedTuple):
    """Records up to a position, with what the session knew of their costs. `rewound` says that
    there are more, up to line `last`."""

    records: tuple[e.Record, ...]
    cost: ItemCost
    basis: Basis
    costs: Mapping[EntryId, int]
    bodies: Bodies
    rewound: bool = False
    last: int = -1

    @property
    def line(self) -> int:
        """The last journal line that was taken; -1 for none."""
        return self.records[-1].n if self.records else -1


def take(history: History, position: int | None = None) -> Taken:
    """Take a session as it is now, or its first `position` records; a matter of milliseconds."""
    count = len(history)
    upto = count if position is None else max(0, min(position, count))
    state = history.state
    return Taken(
        records=tuple(history.records[:upto]),
        cost=state.costs.cost,
        basis=state.basis,
        costs=state.costs.figures(),
        bodies=state.bodies,
        rewound=upto < count,
        last=history.records[-1].n if count else -1,
    )


def history_of(taken: Taken, only: int | None = None) -> History:
    """The session that was taken, with whole items: with `only`, those that the compaction of that
    ordinal had before it and after it. Blocking: it may read a file."""
    history = _folded(taken, taken.records)
    if isinstance(taken.bodies, NoBodies):
        return history
    lines: set[int] | None = None
    if only is not None and (card := history.state.card_of(only)) is not None:
        contexts = (card.context_before, card.context_after)
        lines = {card.n, *(id.line for each in contexts if each is not None for id in each.ids)}
    return _folded(
        taken,
        (
            record if lines is not None and record.n not in lines else _whole(record, taken.bodies)
            for record in taken.records
        ),
    )


def _folded(taken: Taken, records: Iterable[e.Record]) -> History:
    history = History(taken.cost, taken.basis)
    history.state.costs.adopt(taken.costs)
    history.extend(records)
    return history


def _whole(record: e.Record, bodies: Bodies) -> e.Record:
    match record.event:
        case e.ItemAppended(item=item) if item.body is not None:
            event: e.Event = msgspec.structs.replace(record.event, item=whole_of(item, bodies))
        case (
            e.HistoryCompacted(segments=segments)
            | e.HistoryRolledBack(segments=segments)
            | e.UnannouncedReduction(segments=segments)
        ) if any(map(_headed, segments)):
            whole = tuple(_whole_segment(segment, bodies) for segment in segments)
            event = msgspec.structs.replace(record.event, segments=whole)
        case _:
            return record
    return msgspec.structs.replace(record, event=event)


def _headed(segment: Segment) -> bool:
    return isinstance(segment, Inserted | Replaced) and segment.item.body is not None


def _whole_segment(segment: Segment, bodies: Bodies) -> Segment:
    if isinstance(segment, Inserted | Replaced) and segment.item.body is not None:
        return msgspec.structs.replace(segment, item=whole_of(segment.item, bodies))
    return segment
