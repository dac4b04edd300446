"""Looking at an edit before it happens: what it does, with the pins held, and what speaks against
it. Pure, so that a debugger can look at any edit as often as it likes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ..context import Change, Context, EntryId, Segment
from ..tokens import Tokens
from ..validate import Dialect
from .guards import Fault, FaultKind, check
from .pins import Pinned, hold
from .policy import Edit, Measure


class Looked(msgspec.Struct, frozen=True):
    """An edit as it would be applied, and what it does. `saved` says what the pins held, and
    `pinned_out` that the pins alone leave it nothing to free (also among the faults)."""

    edit: Edit
    change: Change
    before: Tokens
    after: Tokens
    faults: tuple[Fault, ...]
    saved: str = ""
    pinned_out: str = ""


def look(
    context: Context,
    edit: Edit,
    *,
    pins: Collection[EntryId],
    dialect: Dialect,
    measure: Measure,
    line: int,
    ordinal: int,
) -> Looked:
    """What an edit does to a context; new entries get ids of `line`. Raises ValueError (of which
    SegmentError is one) for an edit that does not fit the context."""
    held = hold(context, edit.segments, pins, dialect)
    wanted = edit.segments
    if held.saved:
        edit = msgspec.structs.replace(edit, segments=held.segments)
    change = context.apply(edit.segments, line, ordinal)
    before, after = measure.context(context), measure.context(change.after)
    faults = tuple(check(context, change, edit, dialect, before, after))
    pinned_out = ""
    if held.saved and any(fault.kind is FaultKind.GREW for fault in faults):
        pinned_out = _pinned_out(context, wanted, held, measure, before, after)
    if pinned_out:
        faults = tuple(
            Fault(fault.kind, pinned_out) if fault.kind is FaultKind.GREW else fault
            for fault in faults
        )
    return Looked(edit, change, before, after, faults, held.mark(), pinned_out)


def _pinned_out(
    context: Context,
    wanted: Sequence[Segment],
    held: Pinned,
    measure: Measure,
    before: Tokens,
    after: Tokens,
) -> str:
    """That nothing would be freed because of the pins; empty where it is so without them too."""
    free = measure.context(context.apply(wanted, 0, 0).after)
    if free - before >= 0:
        return ""
    pinned = len(held.saved)
    many = "1 pinned entry keeps" if pinned == 1 else f"{pinned:,} pinned entries keep"
    return (
        f"{many} {after - free:,} tokens of what would go, so the context would not shrink: "
        f"{before.value:,} -> {after.value:,} ({after.basis}, {after.scope}); unpin something, or "
        "leave this compaction out"
    )
