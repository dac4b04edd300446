"""What a compaction of V1 leaves of a context: which messages are said again, stay, or are lost."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ....context import Context, Replaced, Segment
from ....items import Message, Role
from .messages import Piece, View, Who


def begins_turn(context: Context) -> bool:
    """Whether the newest entry is something that the user said."""
    newest = context.entries[-1].item if len(context) else None
    return isinstance(newest, Message) and newest.role is Role.USER and not newest.synthetic


def replayed(pieces: Sequence[Piece]) -> int | None:
    """The newest user message, unless nothing but compactions lies before it."""
    at = next((at for at in reversed(range(len(pieces))) if pieces[at].who is Who.USER), None)
    if at is None or all(p.who in (Who.MARKER, Who.SUMMARY) for p in pieces[:at]):
        return None
    return at


def tail_as_stored(
    seen: View, kept: Sequence[Piece], replay: int | None, refused_too: bool
) -> tuple[Piece, ...]:
    """What lies between the start of the tail and the compaction, in the order of storage.

    An earlier compaction that was stored in between is among it.
    """
    if not kept:
        return ()
    stored = seen.stored[seen.stored.index(kept[0]) :]
    if replay is None or refused_too:
        return stored
    return stored[: stored.index(seen.pieces[replay])]


def places_of(pieces: Sequence[Piece]) -> list[int]:
    """The positions of their items. A late output stays where it is, behind other messages."""
    places: list[int] = []
    run: list[int] = []
    for piece in pieces:
        if piece.who in (Who.MARKER, Who.SUMMARY):
            places += [*sorted(run), *piece.places]
            run = []
        else:
            run += piece.places
    return places + sorted(run)


def loses_newest_user(context: Context, stays: Collection[int]) -> bool:
    """Whether the newest message that the user typed is not at one of these positions."""
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        if isinstance(item, Message) and item.role is Role.USER and not item.synthetic:
            return at not in stays
    return False


def cleared(context: Context, places: Collection[int], placeholder: str) -> tuple[Segment, ...]:
    """The context with the outputs at these positions replaced."""
    segments: list[Segment] = []
    run: list[int] = []
    for at, entry in enumerate(context):
        if at not in places:
            run.append(at)
            continue
        segments += context.keep(run)
        run = []
        item = msgspec.structs.replace(entry.item, output=placeholder)
        segments.append(Replaced(entry.id.bare, item))
    return (*segments, *context.keep(run))
