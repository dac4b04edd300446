"""What may not happen to a context, whatever the policy: checked before an edit is applied.

Only what the edit itself brings about counts. A history that came in with an orphan (a foreign
session, an older fault) can still be compacted.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..context import Change, Context, Entry
from ..items import Message, Role
from ..state import SessionState
from ..tokens import Tokens
from ..validate import Dialect, Violation, ViolationKind, validate
from .policy import Edit

_PAIRS = frozenset(
    {
        ViolationKind.CALL_WITHOUT_OUTPUT,
        ViolationKind.OUTPUT_WITHOUT_CALL,
        ViolationKind.OUTPUT_BEFORE_CALL,
        ViolationKind.CALL_TWICE,
        ViolationKind.OUTPUT_TWICE,
    }
)


class FaultKind(StrEnum):
    """Which guard an edit ran into."""

    PAIR_BROKEN = "pair_broken"
    ORDER = "order"
    SYSTEM_LOST = "system_lost"
    NEWEST_USER_LOST = "newest_user_lost"
    GREW = "grew"
    NOTHING = "nothing"
    FAITHFUL = "faithful"
    """The edit itself says that it reproduces a fault of its system."""


class Fault(msgspec.Struct, frozen=True):
    """One guard's objection, in words that a card can show."""

    kind: FaultKind
    words: str


def check(
    context: Context, change: Change, edit: Edit, dialect: Dialect, before: Tokens, after: Tokens
) -> list[Fault]:
    """Every objection to a change. `before` and `after` are figures of one basis and scope."""
    if not (change.removed or change.replaced or change.inserted) and change.after == context:
        return [Fault(FaultKind.NOTHING, "the edit changes nothing")]
    found = [_named(v, dialect) for v in _new_violations(context, change.after, dialect)]
    if _system_lost(context, change):
        words = f"the system message {context.entries[0].id} would be lost from the head"
        found.append(Fault(FaultKind.SYSTEM_LOST, words))
    if edit.fault:
        found.append(Fault(FaultKind.FAITHFUL, f"a fault of the system itself: {edit.fault}"))
    newest = _newest_user(context)
    if newest is not None and not edit.drops_newest_user and _gone(newest, change):
        words = f"the newest user message {newest.id} would be lost"
        found.append(Fault(FaultKind.NEWEST_USER_LOST, words))
    if after - before >= 0:
        words = (
            f"the context would not shrink: {before.value:,} -> {after.value:,} tokens"
            f" ({after.basis}, {after.scope})"
        )
        found.append(Fault(FaultKind.GREW, words))
    return found


def caused_by(violation: Violation, state: SessionState) -> int:
    """The ordinal of the compaction that took the other half of a torn pair; 0 when none did."""
    run = state.tools.get(violation.call_id)
    if run is None:
        return 0
    halves = (id for id in (run.call, run.output) if id is not None)
    return max((state.fate(id).removed_by for id in halves), default=0)


def _new_violations(before: Context, after: Context, dialect: Dialect) -> list[Violation]:
    def key(context: Context, violation: Violation) -> tuple[object, ...]:
        at = violation.index
        place = None if violation.call_id or at < 0 else context.entries[at].id
        return violation.kind, violation.call_id, place

    known = {key(before, violation) for violation in validate(before.items, dialect)}
    return [v for v in validate(after.items, dialect) if key(after, v) not in known]


def _named(violation: Violation, dialect: Dialect) -> Fault:
    if violation.kind in _PAIRS:
        return Fault(FaultKind.PAIR_BROKEN, violation.words)
    return Fault(FaultKind.ORDER, f"illegal for the {dialect} dialect: {violation.words}")


def _system_lost(context: Context, change: Change) -> bool:
    if not len(context) or not _is(context.entries[0], Role.SYSTEM):
        return False
    head = context.entries[0]
    first = change.after.entries[0] if len(change.after) else None
    return first is None or not _is(first, Role.SYSTEM) or not _descends(first, head)


def _newest_user(context: Context) -> Entry | None:
    return next(
        (
            entry
            for entry in reversed(context.entries)
            if _is(entry, Role.USER)
            and not (isinstance(entry.item, Message) and entry.item.synthetic)
        ),
        None,
    )


def _gone(newest: Entry, change: Change) -> bool:
    return not any(
        _is(entry, Role.USER) and _descends(entry, newest)
        for entry in reversed(change.after.entries)
    )


def _is(entry: Entry, role: Role) -> bool:
    return isinstance(entry.item, Message) and entry.item.role is role


def _descends(entry: Entry, source: Entry) -> bool:
    return (
        entry.id == source.id
        or source.id in entry.origin
        or (bool(source.origin) and set(source.origin) <= set(entry.origin))
    )
