"""Taking a compaction back, and bringing single entries back: computed before anything is done.

Nothing that was recorded changes. What comes of a preview is one new journal line, whose segments
name the entries that return; they keep the ids they always had. Both functions are pure.

Undone is the newest compaction that still holds. The context is then what it was before it, and
behind it what has come since. A restored entry goes to its old place, or as near to it as a
provider's rules allow, and a call and its outputs come back together; where turns must alternate it
brings its whole exchange, if it cannot come alone. Where a rewritten form of it is in the context,
it takes that one's place. What a provider would refuse is not done, and the reason says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import msgspec

from .. import events as e
from ..compaction.placing import faults, legal_gap, new_fault, old_gap, units
from ..context import Context, EntryId, Restored, Segment
from ..errors import ThresherError
from ..items import Item, Kind
from ..state import SessionState
from ..tokens import Scope, Tokens
from ..validate import Dialect, groups
from ..views import Card, CardStatus


class Preview(msgspec.Struct, frozen=True):
    """What would come back, what would go for it, and the size of all entries before and after."""

    segments: tuple[Segment, ...]
    restored: tuple[EntryId, ...]
    removed: tuple[EntryId, ...]
    before: Tokens
    after: Tokens
    items_before: int
    items_after: int
    digest: str
    undone: int = 0
    memory: dict[str, Any] | None = None

    @property
    def tokens(self) -> int:
        """How much larger the context would be; it may be negative."""
        return self.after - self.before

    def event(self) -> e.HistoryRestored:
        """The journal line that does it, over the same context."""
        return e.HistoryRestored(
            segments=self.segments,
            items_before=self.items_before,
            items_after=self.items_after,
            restored=len(self.restored),
            removed=len(self.removed),
            undone=self.undone,
            entries="" if self.undone else ",".join(id.bare for id in self.restored),
            before=self.before,
            after=self.after,
            digest=self.digest,
            memory=self.memory,
        )


def preview_undo(state: SessionState, dialect: Dialect = Dialect.CHAT) -> Preview:
    """What undoing the newest compaction would do. Raises ThresherError where none can be, and
    where what came since could not follow what was before it."""
    card = last_compaction(state)
    if card is None or card.context_before is None or card.context_after is None:
        raise ThresherError("Nothing to undo", "there is no compaction that could be taken back.")
    now, gone = state.context, set(card.context_after.ids)
    slots: list[int | EntryId] = []
    for id in card.context_before.ids:
        at = now.place(id)
        slots.append(id if at is None else at)
    slots += [
        at
        for at, id in enumerate(now.ids)
        if id not in gone and card.context_before.place(id) is None
    ]
    # Faults that both sides bring with them were there before; only the seam may not add one.
    allowed = faults(now.items, dialect) | faults(card.context_before.items, dialect)
    fault = new_fault(_items(state, slots), dialect, allowed)
    if fault:
        raise ThresherError(
            "Not undone",
            f"what came after compaction {card.ordinal} cannot follow what was before it "
            f"({dialect} protocol: {fault}); restore single entries instead.",
        )
    # What the policy in force knew then; another policy knows nothing of it.
    memory = card.memory_before if card.policy == state.policy else None
    return msgspec.structs.replace(_preview(state, slots), undone=card.ordinal, memory=memory)


def last_compaction(state: SessionState) -> Card | None:
    """The newest compaction that was applied and not undone."""
    for card in reversed(state.cards):
        if card.status is CardStatus.DONE and card.ordinal and not card.undone:
            return card
    return None


def preview_restore(state: SessionState, id: EntryId, dialect: Dialect = Dialect.CHAT) -> Preview:
    """What bringing one entry back would do. Raises ThresherError where it is in the context, was
    never in it, or has no legal place there."""
    now = state.context
    if now.place(id) is not None:
        raise _not_restored(id, "it is in the context")
    fate = state.fate(id)
    if id not in state.known or fate.outside:
        raise _not_restored(id, "it was never in the context")
    slots: list[int | EntryId] = list(range(len(now)))
    form = present_form(state, id) or _same_of_old(state, id)
    if form is not None:
        slots[_at(now, form)] = id
        if not _legal(state, slots, dialect):
            raise _not_restored(id, "it has no legal place there")
        return _preview(state, slots)
    base = _last_seen_in(state, id)
    if base is None:
        raise _not_restored(id, "it is not known where it stood")
    blocks = _sets(base, _at(base, id))
    if dialect is Dialect.STRICT:
        blocks += _exchange(state, base, _at(base, id))
    # More of it in its old place is better than less of it elsewhere: a question that stands alone
    # at the end would be asked again. Out of its order it only comes where turns may do that.
    nears = [_Near.OLD_PLACE, _Near.IN_ORDER]
    for near in nears if dialect is Dialect.STRICT else [*nears, _Near.ANYWHERE]:
        for places in blocks:
            blocked = _with(state, base, places, dialect, near)
            if blocked is not None:
                return _preview(state, blocked)
    raise _not_restored(id, f"the rules of the {dialect} protocol leave no place for it")


class _Near(Enum):
    """How near to its old place an entry is to come back."""

    OLD_PLACE = auto()
    IN_ORDER = auto()
    """Behind what was before it and before what was behind it."""
    ANYWHERE = auto()


def present_form(state: SessionState, id: EntryId) -> EntryId | None:
    """The form in which an entry is in the context now: itself, or what it was rewritten into (or
    from); None when it is not there in any form."""
    seen: set[EntryId] = set()
    here: EntryId | None = id
    while here is not None and here not in seen:
        if state.context.place(here) is not None:
            return here
        seen.add(here)
        fate = state.fate(here)
        here = fate.became or fate.gave_way or fate.back
    return None


def _same_of_old(state: SessionState, id: EntryId) -> EntryId | None:
    """The entry of the context that descends from the same line and is of the same kind: one that
    came back while a form of it that was written later stayed away, or the other way round."""
    lost = state.known[id]
    if len(lost.origin) != 1:
        return None
    same = (e.id for e in state.context if e.origin == lost.origin and e.kind is lost.kind)
    return next(same, None)


def _last_seen_in(state: SessionState, id: EntryId) -> Context | None:
    for card in reversed(state.cards):
        for context in (card.context_after, card.context_before):
            if context is not None and context.place(id) is not None:
                return context
    return None


def _sets(base: Context, at: int) -> list[tuple[int, ...]]:
    """What to bring back: the entry with what cannot be without it, else its whole group."""
    pair = next(block for block in units(base.items, (at,)) if at in block)
    whole = next(group.places for group in groups(base.items) if at in group.places)
    return [pair] if pair == whole else [pair, whole]


def _exchange(state: SessionState, base: Context, at: int) -> list[tuple[int, ...]]:
    """What somebody said to the model and all that came of it, with the entry at `at` in it; none
    where the entry stands before all of that, or a part of it is there."""
    begins = [place for place, entry in enumerate(base) if entry.kind in (Kind.USER, Kind.SUMMARY)]
    first = max((place for place in begins if place <= at), default=None)
    if first is None:
        return []
    whole = range(first, min((place for place in begins if place > at), default=len(base)))
    there = any(present_form(state, base.ids[place]) is not None for place in whole)
    return [] if there else [tuple(whole)]


def _with(
    state: SessionState, base: Context, places: Sequence[int], dialect: Dialect, near: _Near
) -> list[int | EntryId] | None:
    """The order with these entries of `base` in it, as near to their old place as is legal; None
    where there is no such order."""
    now = state.context
    forms = {at: form for at, id in enumerate(base.ids) if (form := present_form(state, id))}
    missing = [at for at in places if at not in forms]
    back = [base.ids[at] for at in missing]
    slots: list[int | EntryId] = list(range(len(now)))
    if len(missing) < len(places):
        # A part of it is there: the rest goes beside that part.
        first = missing[0]
        earlier = [_at(now, forms[at]) for at in places if at < first and at in forms]
        later = [_at(now, forms[at]) for at in places if at > first and at in forms]
        gap = max(earlier) + 1 if earlier else min(later)
        slots[gap:gap] = back
        return slots if _legal(state, slots, dialect) else None
    seats = {at: _at(now, form) for at, form in forms.items()}
    written = {at for at, entry in enumerate(now) if entry.kind is Kind.SUMMARY}
    head = 0
    while head < len(base) and base.entries[head].kind is Kind.SYSTEM:
        head += 1
    wanted = old_gap(missing[0], seats, written, head, len(now))
    block = [state.known[id].item for id in back]
    gaps = range(len(now) + 1)
    if near is _Near.OLD_PLACE:
        gaps = range(wanted, wanted + 1)
    elif near is _Near.IN_ORDER:
        earlier_seats = [seat for place, seat in seats.items() if place < missing[0]]
        later_seats = [seat for place, seat in seats.items() if place > missing[-1]]
        gaps = range(max(earlier_seats, default=-1) + 1, min(later_seats, default=len(now)) + 1)
    found = legal_gap(now.items, block, wanted, dialect, gaps)
    if found is None:
        return None
    slots[found:found] = back
    return slots


def _legal(state: SessionState, slots: Sequence[int | EntryId], dialect: Dialect) -> bool:
    """Whether a new order breaks no rule that is kept now."""
    return faults(_items(state, slots), dialect) <= faults(state.context.items, dialect)


def _items(state: SessionState, slots: Sequence[int | EntryId]) -> list[Item]:
    now = state.context
    return [
        now.entries[slot].item if isinstance(slot, int) else state.known[slot].item
        for slot in slots
    ]


def _preview(state: SessionState, slots: Sequence[int | EntryId]) -> Preview:
    """The preview of a new order: numbers are positions now, ids come back."""
    now = state.context
    segments: list[Segment] = []
    run: list[int] = []
    for slot in slots:
        if isinstance(slot, int):
            run.append(slot)
            continue
        segments += now.keep(run)
        segments.append(Restored(slot.bare))
        run = []
    segments += now.keep(run)
    change = now.apply(segments, 0, 0, state.known)
    before = state.messages_tokens
    size = sum(state.costs.of(entry) for entry in change.after)
    return Preview(
        segments=tuple(segments),
        restored=change.restored,
        removed=change.removed,
        before=before,
        after=Tokens(size, before.basis, Scope.MESSAGES),
        items_before=len(now),
        items_after=len(change.after),
        digest=change.after.digest(),
    )


def _at(context: Context, id: EntryId) -> int:
    at = context.place(id)
    if at is None:
        raise KeyError(id)
    return at


def _not_restored(id: EntryId, why: str) -> ThresherError:
    return ThresherError("Not restored", f"{id} cannot be restored: {why}.")
