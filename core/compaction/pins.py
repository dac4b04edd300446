"""Pinned entries: whatever a policy decides, these stay in the context, as they are.

An edit is amended before it is checked: a pinned entry that it removes is put back in its old
place, one that it rewrites stays as it was, and a call always stays with its outputs. Everything
else of the edit is left as the policy has it, and the guards look at the result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

import msgspec

from ..context import Context, EntryId, Inserted, Kept, Replaced, Restored, Segment, SegmentError
from ..items import Item, Kind
from ..validate import Dialect
from .placing import legal_gap, old_gap, units

_Slot: TypeAlias = int | Replaced | Inserted
"""One entry after an edit; a number is the position before of an entry that stays."""


class Pinned(msgspec.Struct, frozen=True):
    """An edit's segments with the pins held. `saved` are the pinned entries that it would have
    removed or rewritten, `along` those that came with them."""

    segments: tuple[Segment, ...]
    saved: tuple[EntryId, ...] = ()
    along: tuple[EntryId, ...] = ()

    def mark(self) -> str:
        """What a card says about it; empty when nothing had to be saved."""
        if not self.saved:
            return ""
        many = "entry" if len(self.saved) == 1 else "entries"
        more = f", and {len(self.along):,} of the same pairs" if self.along else ""
        return f"kept {len(self.saved):,} pinned {many}{more}"


def hold(
    context: Context, segments: Sequence[Segment], pins: Collection[EntryId], dialect: Dialect
) -> Pinned:
    """Amend an edit so that the pins that are in the context stay. Raises SegmentError for
    segments that do not fit the context."""
    wanted = {at for id in pins if (at := context.place(id)) is not None}
    if not wanted:
        return Pinned(tuple(segments))
    items, slots = context.items, _slots(context, segments)
    blocks = units(items, wanted)
    staying = {place for block in blocks for place in block}
    rewritten: set[int] = set()
    for at, slot in enumerate(slots):
        if isinstance(slot, Replaced) and (place := _place(context, slot.old)) in staying:
            slots[at] = place
            rewritten.add(place)
    missing = staying - {slot for slot in slots if isinstance(slot, int)}
    for block in blocks:
        gone = [place for place in block if place in missing]
        if gone:
            _put_back(context, slots, block, gone, dialect)
    touched = missing | rewritten
    if not touched:
        return Pinned(tuple(segments))
    ids = {context.entries[place].id for place in touched}
    return Pinned(
        _joined(context, [_speaking(context, slot, ids) for slot in slots]),
        tuple(context.entries[place].id for place in sorted(touched & wanted)),
        tuple(context.entries[place].id for place in sorted(touched - wanted)),
    )


def without(
    context: Context, segments: Sequence[Segment], ids: Collection[EntryId]
) -> tuple[Segment, ...]:
    """An edit under which these entries go as well, each with what cannot stay without it. Raises
    SegmentError for segments that do not fit the context."""
    wanted = {at for id in ids if (at := context.place(id)) is not None}
    gone = {place for block in units(context.items, wanted) for place in block}

    def stays(slot: _Slot) -> bool:
        if isinstance(slot, Replaced):
            return _place(context, slot.old) not in gone
        return slot not in gone

    return _joined(context, [slot for slot in _slots(context, segments) if stays(slot)])


def _put_back(
    context: Context,
    slots: list[_Slot],
    block: Sequence[int],
    gone: Sequence[int],
    dialect: Dialect,
) -> None:
    seats = {slot: at for at, slot in enumerate(slots) if isinstance(slot, int)}
    there = [seats[place] for place in block if place in seats]
    items = [_item(context, slot) for slot in slots]
    if there:
        # Half of it stays: the rest goes beside that half, in the order of old.
        for place in gone:
            before = [slots.index(other) for other in block if other < place and other in slots]
            after = [slots.index(other) for other in block if other > place and other in slots]
            slots.insert(max(before) + 1 if before else min(after), place)
        return
    written = {at for at, slot in enumerate(slots) if isinstance(slot, Inserted)}
    head = 0
    while head < len(context) and context.entries[head].kind is Kind.SYSTEM:
        head += 1
    wanted = old_gap(block[0], seats, written, head, len(slots))
    new = [context.entries[place].item for place in gone]
    gap = legal_gap(items, new, wanted, dialect)
    at = wanted if gap is None else gap
    slots[at:at] = gone


def _slots(context: Context, segments: Sequence[Segment]) -> list[_Slot]:
    slots: list[_Slot] = []
    for segment in segments:
        match segment:
            case Kept(first=first, last=last):
                slots += range(_place(context, first), _place(context, last) + 1)
            case Replaced() | Inserted():
                slots.append(segment)
            case Restored():
                raise SegmentError("a compaction brings nothing back")
    return slots


def _joined(context: Context, slots: Sequence[_Slot]) -> tuple[Segment, ...]:
    segments: list[Segment] = []
    run: list[int] = []
    for slot in slots:
        if isinstance(slot, int):
            run.append(slot)
            continue
        segments += context.keep(run)
        segments.append(slot)
        run = []
    return (*segments, *context.keep(run))


def _speaking(context: Context, slot: _Slot, staying: Collection[EntryId]) -> _Slot:
    """A summary speaks for what is gone, so not for what was saved."""
    if not isinstance(slot, Inserted) or not slot.stands_for:
        return slot
    ids = context.unspan(slot.stands_for)
    left = [id for id in ids if id not in staying]
    if len(left) == len(ids):
        return slot
    return Inserted(slot.item, context.span(left))


def _item(context: Context, slot: _Slot) -> Item:
    return context.entries[slot].item if isinstance(slot, int) else slot.item


def _place(context: Context, id: str) -> int:
    at = context.place(EntryId.parse(id))
    if at is None:
        raise SegmentError(f"#{id} is not in the context")
    return at
