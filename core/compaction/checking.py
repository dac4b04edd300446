"""Looking at an edit before it happens: what it does, with the pins held, and what speaks against
it. Pure, so that a debugger can look at any edit as often as it likes."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ..context import Change, Context, EntryId
from ..tokens import Tokens
from ..validate import Dialect
from .guards import Fault, check
from .pins import hold
from .policy import Edit, Measure


class Looked(msgspec.Struct, frozen=True):
    """An edit as it would be applied, and what it does. `saved` says what the pins held."""

    edit: Edit
    change: Change
    before: Tokens
    after: Tokens
    faults: tuple[Fault, ...]
    saved: str = ""


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
    if held.saved:
        edit = msgspec.structs.replace(edit, segments=held.segments)
    change = context.apply(edit.segments, line, ordinal)
    before, after = measure.context(context), measure.context(change.after)
    faults = tuple(check(context, change, edit, dialect, before, after))
    return Looked(edit, change, before, after, faults, held.mark())
