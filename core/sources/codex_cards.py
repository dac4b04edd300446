"""What a compacted line of Codex did, entry by entry, and when and why it probably ran.

The line holds the new history and nothing else: what was kept, cut, removed and inserted follows
from comparing it with the history before, by the ids of the items (by equality where old files
have none). Phase and reason are not stored; they are inferred from the lines around, and marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from ..compaction.policies.codex.due import Cause, Phase
from ..compaction.policy import Moment, Trigger
from ..context import Change, Context, Entry, Inserted, Replaced, Segment
from ..items import CompactionSummary, Item
from .base import WireItem
from .codex_items import (
    CALLS,
    COMPACTIONS,
    METADATA,
    Stored,
    is_model_made,
    item_of,
    text_of,
    type_of,
    whole_wire,
)
from .codex_replay import Held


class Variety(StrEnum):
    """The three ways in which Codex shortens its history."""

    LOCAL = "local"
    """The same model writes a summary."""
    REMOTE = "remote"
    """The provider gives back one sealed item."""
    TOKEN_BUDGET = "token-budget"
    """No summary: a new window with the harness's own messages only."""


class Setup(msgspec.Struct, frozen=True):
    """The settings of a turn that can set off a compaction."""

    model: str = ""
    comp_hash: str = ""
    window: int | None = None


Shortened = Callable[[Item, WireItem, int], Item]
"""Cuts the wire form of an item in place and gives the short form of the item; the number is its
place among those of the line."""


class Edit(msgspec.Struct, frozen=True):
    """A new history as an edit of the one before; `held` is the history after it."""

    segments: tuple[Segment, ...]
    change: Change
    held: tuple[Held, ...]
    removed_ids: str


def variety_of(message: str, replacement: Sequence[WireItem]) -> Variety:
    """Tell the three kinds of compacted lines apart."""
    if message:
        return Variety.LOCAL
    if any(type_of(raw) in COMPACTIONS for raw in replacement):
        return Variety.REMOTE
    return Variety.TOKEN_BUDGET


def compaction_edit(
    before: Sequence[Held],
    replacement: Sequence[WireItem],
    message: str,
    line: int,
    ordinal: int,
    shortened: Shortened | None = None,
) -> Edit:
    """The edit that makes `replacement` out of `before`; the summary stands for all that left.

    `message` is the text of the compacted line: the item that holds it is the summary.
    `shortened` makes the forms that are kept, where not everything is.
    """
    places = _matches(before, _comparable(replacement, message, shortened))
    items: list[Item] = []
    kept: set[int] = set()
    for n, (raw, at) in enumerate(zip(replacement, places, strict=True)):
        same = at is not None and _same(before[at].raw, raw)
        if at is not None and same:
            # Nearly all of them are as they were.
            item = before[at].item
        else:
            item = _item(raw, message)
            item = item if shortened is None else shortened(item, raw, n)
            # What is long was cut just now, as it had been before.
            same = at is not None and shortened is not None and _same(before[at].raw, raw)
        items.append(item)
        if same:
            kept.add(n)
    used = {at for at in places if at is not None}
    context = context_of(before)
    removed = context.span(each.id for at, each in enumerate(before) if at not in used)
    speaker = max(
        (
            n
            for n, item in enumerate(items)
            if places[n] is None and isinstance(item, CompactionSummary)
        ),
        default=None,
    )
    segments = _Segments(context)
    raws: list[WireItem] = []
    for n, (raw, item, at) in enumerate(zip(replacement, items, places, strict=True)):
        if at is None:
            segments.add(Inserted(item, removed if n == speaker else ""))
        elif n in kept:
            segments.keep(at)
            raw = before[at].raw
        else:
            segments.add(Replaced(before[at].id.bare, item))
        raws.append(raw)
    return _applied(context, segments.all(), raws, removed, line, ordinal)


def rollback_edit(before: Sequence[Held], after: Sequence[Held], line: int) -> Edit:
    """The edit of a rollback: what is still there is kept, what comes back is inserted."""
    context = context_of(before)
    here = {each.id: at for at, each in enumerate(before)}
    left = here.keys() - {each.id for each in after}
    segments = _Segments(context)
    for each in after:
        if each.id in here:
            segments.keep(here[each.id])
        else:
            segments.add(Inserted(each.item))
    removed = context.span(left)
    return _applied(context, segments.all(), [each.raw for each in after], removed, line, 0)


def context_of(held: Sequence[Held]) -> Context:
    """Our context for a history."""
    return Context([Entry(id, item, (id,)) for id, _, item, _ in held])


def moment_of(phase: Phase | None, cause: Cause) -> Moment | None:
    """Our moment for a phase: None while that is not known."""
    if cause in (Cause.MODEL_DOWNSHIFT, Cause.COMP_HASH):
        return Moment.MODEL_CHANGE
    match phase:
        case Phase.PRE_TURN:
            return Moment.TURN_START
        case Phase.MID_TURN:
            return Moment.AFTER_ROUND
        case Phase.POST_TURN:
            return Moment.TURN_END
        case Phase.STANDALONE:
            return Moment.MANUAL
        case None:
            return None


def trigger_of(phase: Phase | None) -> Trigger:
    """Codex knows two triggers: the user asked, or it did so itself."""
    return Trigger.MANUAL if phase is Phase.STANDALONE else Trigger.AUTO


def possible_phases(before: Sequence[Held], *, own_items: bool) -> tuple[Phase, ...]:
    """The phases that fit: one, or two between which the next lines decide.

    `own_items` says whether the running task has recorded anything yet.
    """
    if not own_items or not before:
        return (Phase.PRE_TURN, Phase.STANDALONE)
    last = before[-1].raw
    if is_model_made(last) and type_of(last) not in CALLS:
        return (Phase.MID_TURN, Phase.POST_TURN)
    return (Phase.MID_TURN,)


def cause_of(phase: Phase | None, before: Setup, after: Setup, *, asked: bool = False) -> Cause:
    """The likely cause. `after` are the settings that follow the compaction; `asked` says that the
    model called the tool that opens a new window."""
    if asked:
        return Cause.NEW_CONTEXT
    if phase is Phase.STANDALONE:
        return Cause.USER_REQUESTED
    if phase is Phase.PRE_TURN and after.model:
        if before.comp_hash and after.comp_hash and before.comp_hash != after.comp_hash:
            return Cause.COMP_HASH
        smaller = before.window and after.window and after.window < before.window
        if before.model and before.model != after.model and smaller:
            return Cause.MODEL_DOWNSHIFT
    return Cause.CONTEXT_LIMIT


def reason_text(cause: Cause, before: Setup, after: Setup, arithmetic: str) -> str:
    """The cause in words, with the numbers that the file has."""
    match cause:
        case Cause.USER_REQUESTED:
            return f"{cause}: the user asked for it at {arithmetic}"
        case Cause.NEW_CONTEXT:
            return f"{cause}: the model asked for a new window at {arithmetic}"
        case Cause.MODEL_DOWNSHIFT:
            return (
                f"{cause}: {before.model} ({before.window:,}) gives way to {after.model} "
                f"({after.window:,}) at {arithmetic}"
            )
        case Cause.COMP_HASH:
            return (
                f"{cause}: {before.model} and {after.model} differ in their compaction hash "
                f"({before.comp_hash}, {after.comp_hash}), at {arithmetic}"
            )
        case Cause.CONTEXT_LIMIT:
            return f"{cause}: {arithmetic}; the limit itself is not in the file"


def _applied(
    context: Context,
    segments: tuple[Segment, ...],
    raws: Sequence[WireItem],
    removed: str,
    line: int,
    ordinal: int,
) -> Edit:
    change = context.apply(segments, line, ordinal)
    held = tuple(
        Held(entry.id, raw, entry.item) for entry, raw in zip(change.after, raws, strict=True)
    )
    return Edit(segments, change, held, removed)


class _Segments:
    """Segments in order, with neighbouring runs of kept entries as one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._made: list[Segment] = []
        self._run: list[int] = []

    def keep(self, place: int) -> None:
        """The entry at this place stays."""
        self._run.append(place)

    def add(self, segment: Segment) -> None:
        """Anything else."""
        self._made += self._context.keep(self._run)
        self._run = []
        self._made.append(segment)

    def all(self) -> tuple[Segment, ...]:
        """All of them."""
        return (*self._made, *self._context.keep(self._run))


def _comparable(
    replacement: Sequence[WireItem], message: str, shortened: Shortened | None
) -> Sequence[WireItem]:
    """The new items as they are compared with the old ones: those without an id are compared by
    all that they say, which is cut in the old ones."""
    if shortened is None or all(raw.get("id") for raw in replacement):
        return replacement
    found: list[WireItem] = []
    for n, raw in enumerate(replacement):
        own = raw if raw.get("id") else dict(raw)
        if own is not raw:
            shortened(_item(raw, message), own, n)
        found.append(own)
    return found


def _matches(before: Sequence[Held], replacement: Sequence[WireItem]) -> list[int | None]:
    """For each new item the place of the old one it is, or None. No old one is used twice."""
    by_id: dict[object, int] = {}
    bare: list[int] = []
    for at, each in enumerate(before):
        id = each.raw.get("id")
        if not id or type(id) is not str or by_id.setdefault(id, at) != at:
            bare.append(at)
    found: list[int | None] = []
    for raw in replacement:
        if text_of(id := raw.get("id")):
            found.append(by_id.pop(id, None))
            continue
        place = next((at for at in bare if _same(before[at].raw, raw)), None)
        if place is not None:
            bare.remove(place)
        found.append(place)
    return found


def _same(one: WireItem, other: WireItem) -> bool:
    """Whether two items are sent alike."""
    if one is other:
        return True
    if isinstance(one, Stored) or isinstance(other, Stored):
        if type_of(one) != type_of(other) or one.get("call_id") != other.get("call_id"):
            return False
        one, other = whole_wire(one), whole_wire(other)
    # A compaction compares hundreds of items: copies and comparisons of whole dicts cost least.
    one, other = one.copy(), other.copy()
    one.pop(METADATA, None)
    other.pop(METADATA, None)
    return one == other


def _item(raw: WireItem, message: str) -> Item:
    """Our item; the user message that holds the text of the compacted line is the summary."""
    item = item_of(raw)
    said = type_of(raw) == "message" and raw.get("role") == "user"
    return item_of(raw, summary=True) if message and said and item.text == message else item
