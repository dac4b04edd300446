"""Where the agent stands still, and the proposal there as it is with everything the user decided.

Pure data and functions: a screen shows them, the debugger makes them anew after every decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum

import msgspec

from ..compaction.checking import look
from ..compaction.gate import Pending, Proposal
from ..compaction.pins import without
from ..compaction.policy import Edit, Situation
from ..context import Entry, EntryId


class Point(StrEnum):
    """Where in the agent's work it stands still."""

    SUMMARY = "summary"
    """A summary is about to be asked for."""
    EDIT = "edit"
    """An edit is about to be applied."""
    ROUND = "round"
    OUTPUT = "output"
    OVERFLOW = "overflow"
    FAILURE = "failure"
    PROGRAM = "program"
    """Another program waits before its compaction, for its hook."""


class Outside(msgspec.Struct, frozen=True):
    """What there is to decide where another program waits: less than with an agent of ours.

    `until` (seconds since the epoch) is when its hook lets it go on by itself. `skipping` says what
    not compacting would really come to; without `may_skip`, why that cannot be had. `told` is what
    its model would be asked to keep, made of the user's `focus` and the entries in `asked`.
    `cannot` names what no hook allows.
    """

    pass_id: str
    program: str
    trigger: str
    until: float
    may_skip: bool
    skipping: str
    may_focus: bool
    cannot: str
    focus: str = ""
    asked: tuple[EntryId, ...] = ()
    told: str = ""


class Stop(msgspec.Struct, frozen=True):
    """One stop. `breakpoint` is the one that was reached, or "step".

    `pending` is the request for a summary that would be sent (at SUMMARY). `proposal` is the edit
    that would be applied, pins held and dropped entries gone; at SUMMARY it is a sketch with a
    placeholder for the summary, or None where that cannot be foreseen. `drops` are the entries
    that the user lets go, `told` what was decided so far, as the card will say it.
    """

    point: Point
    breakpoint: str
    reason: str
    pending: Pending | None = None
    proposal: Proposal | None = None
    drops: tuple[EntryId, ...] = ()
    told: str = ""
    outside: Outside | None = None
    """Set where it is another program that waits; the proposal is then a forecast."""
    unseen: str = ""
    """Why there is no forecast, in words."""

    @property
    def pass_id(self) -> str:
        """The compaction that is held, or an empty text."""
        if self.pending is not None:
            return self.pending.pass_id
        if self.proposal is not None:
            return self.proposal.pass_id
        return self.outside.pass_id if self.outside is not None else ""

    @property
    def situation(self) -> Situation | None:
        """What the policy was asked about; None where no compaction is held."""
        if self.pending is not None:
            return self.pending.situation
        return self.proposal.situation if self.proposal is not None else None

    @property
    def objections(self) -> tuple[str, ...]:
        """Why the edit cannot be applied as it stands, or its summary not be asked for, since it
        would be in vain; empty when it can."""
        proposal = self.proposal
        if proposal is None or not proposal.enforced:
            return ()
        if self.point is Point.SUMMARY:
            return (proposal.pinned_out,) if proposal.pinned_out else ()
        return proposal.faults if self.point is Point.EDIT else ()


class Fate(StrEnum):
    """What a proposal does to an entry."""

    KEEP = "keep"
    REMOVE = "remove"
    REPLACE = "replace"
    """It leaves, and the row after it stands in its place."""
    REPLACEMENT = "replacement"
    INSERT = "insert"


class Line(msgspec.Struct, frozen=True):
    """One entry of a proposal. `by` says who decided: the policy, a pin, the user's drop, or that
    another program's model is asked to keep it.
    `stands_for` counts the entries that an inserted one speaks for."""

    entry: Entry
    fate: Fate
    tokens: int
    by: str = "policy"
    stands_for: int = 0


def lines(proposal: Proposal, pins: Collection[EntryId], drops: Collection[EntryId]) -> list[Line]:
    """Every entry of the context before and after, in the order after; what goes stands where it
    stood, before the first entry behind it that stays."""
    return list(_lines(proposal, set(pins), set(drops)))


def _lines(proposal: Proposal, pins: set[EntryId], drops: set[EntryId]) -> Iterator[Line]:
    before, change = proposal.context, proposal.change
    situation = proposal.situation
    removed, became = set(change.removed), dict(change.replaced)
    replaced = {new: old for old, new in became.items()}
    inserted = set(change.inserted)

    def line(entry: Entry, fate: Fate, by: str = "policy") -> Line:
        tokens = situation.measure.item(entry.item) if situation is not None else 0
        stands_for = len(entry.origin) if fate is Fate.INSERT else 0
        return Line(entry, fate, tokens, by, stands_for)

    at = 0

    def going(until: int) -> Iterator[Line]:
        nonlocal at
        for entry in before.entries[at:until]:
            if entry.id in removed:
                yield line(entry, Fate.REMOVE, "user" if entry.id in drops else "policy")
        at = max(at, until)

    for entry in change.after:
        if entry.id in inserted:
            yield line(entry, Fate.INSERT)
            continue
        old = replaced.get(entry.id, entry.id)
        place = before.place(old)
        if place is not None:
            yield from going(place)
            at = max(at, place + 1)
        if entry.id not in replaced:
            yield line(entry, Fate.KEEP, "pin" if entry.id in pins else "policy")
            continue
        if place is not None:
            yield line(before.entries[place], Fate.REPLACE)
        yield line(entry, Fate.REPLACEMENT)
    yield from going(len(before))


def chosen(proposal: Proposal, drops: Collection[EntryId]) -> Edit:
    """The policy's own edit without the entries that the user lets go. Raises SegmentError."""
    raw = proposal.raw or proposal.edit
    if not drops:
        return raw
    segments = without(proposal.context, raw.segments, drops)
    return msgspec.structs.replace(raw, segments=segments)


def revised(proposal: Proposal, pins: Collection[EntryId], drops: Collection[EntryId]) -> Proposal:
    """The proposal with these pins and drops, and what speaks against it then. Raises ValueError
    where it does not fit the context."""
    if proposal.situation is None:
        return proposal
    looked = look(
        proposal.context,
        chosen(proposal, drops),
        pins=pins,
        dialect=proposal.dialect,
        measure=proposal.situation.measure,
        line=proposal.line,
        ordinal=proposal.ordinal,
    )
    return msgspec.structs.replace(
        proposal,
        edit=looked.edit,
        change=looked.change,
        before=looked.before,
        after=looked.after,
        faults=tuple(fault.words for fault in looked.faults),
        saved=looked.saved,
        pinned_out=looked.pinned_out,
    )
