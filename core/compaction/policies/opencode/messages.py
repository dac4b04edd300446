"""A context as OpenCode's messages: what it takes away, keeps or cuts at are whole messages.

A user message is one message. What the model said in one step (reasoning, text, calls) is one
message together with the outputs of its calls, so no cut between messages tears a pair. A
compaction is two messages: the recap question and the summary that answers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from ....context import Context
from ....items import (
    CompactionSummary,
    Item,
    Kind,
    Message,
    OtherItem,
    Role,
    kind_of,
)
from ....validate import groups

MEMORY_TAIL, MEMORY_WINDOW = "tail", "window"
"""The policy's memory: how many entries the last compaction kept, and which compaction that was."""


class Who(StrEnum):
    """What a message is."""

    USER = "user"
    ASSISTANT = "assistant"
    MARKER = "marker"
    """The recap question: OpenCode's user message with a compaction part."""
    SUMMARY = "summary"
    OTHER = "other"
    """A system message further down, or an item of a foreign agent."""


class Piece(msgspec.Struct, frozen=True):
    """One message: what it is, and the positions of its items in the context, in order."""

    who: Who
    places: tuple[int, ...]


class View(msgspec.Struct, frozen=True):
    """A context, taken apart. `lead` is the number of system items at its head, which always stay.

    `pieces` is in the order in which the model sees them, `stored` in that in which they were
    written: OpenCode shows the newest summary before the tail it kept, but stores it after that.
    """

    context: Context
    lead: int
    pieces: tuple[Piece, ...]
    stored: tuple[Piece, ...]

    def items(self, pieces: Iterable[Piece]) -> tuple[Item, ...]:
        """The items of some messages."""
        entries = self.context.entries
        return tuple(entries[at].item for piece in pieces for at in piece.places)


def view(context: Context, recap: str, memory: Mapping[str, Any]) -> View:
    """Take a context apart. `recap` is the text by which a recap question is known."""
    items = context.items
    lead = 0
    while lead < len(items) and kind_of(items[lead]) is Kind.SYSTEM:
        lead += 1
    pieces = tuple(
        Piece(
            _who(items[lead + group.first], recap),
            tuple(lead + at for at in group.places),
        )
        for group in groups(items[lead:])
    )
    return View(context, lead, pieces, _as_stored(context, pieces, memory))


def completed(pieces: Sequence[Piece]) -> frozenset[int]:
    """The positions of finished compactions: each summary, and the question in front of it."""
    found: set[int] = set()
    for at, piece in enumerate(pieces):
        if piece.who is Who.SUMMARY:
            found.add(at)
            if at and pieces[at - 1].who is Who.MARKER:
                found.add(at - 1)
    return frozenset(found)


def _who(item: Item, recap: str) -> Who:
    match item:
        case Message(role=Role.USER, synthetic=True, content=content) if content == recap:
            return Who.MARKER
        case Message(role=Role.USER):
            return Who.USER
        case CompactionSummary():
            return Who.SUMMARY
        case Message(role=Role.SYSTEM | Role.DEVELOPER) | OtherItem():
            return Who.OTHER
        case _:
            return Who.ASSISTANT


def _as_stored(
    context: Context, pieces: tuple[Piece, ...], memory: Mapping[str, Any]
) -> tuple[Piece, ...]:
    """The newest compaction behind its tail, if this policy made it and nothing moved since."""
    if len(pieces) < 2 or (pieces[0].who, pieces[1].who) != (Who.MARKER, Who.SUMMARY):
        return pieces
    summary = pieces[1].places[0]
    tail = memory.get(MEMORY_TAIL, 0)
    if context.entries[summary].made_by != memory.get(MEMORY_WINDOW) or not isinstance(tail, int):
        return pieces
    end = next(
        (at for at in range(2, len(pieces)) if pieces[at].places[0] > summary + tail), len(pieces)
    )
    return (*pieces[2:end], *pieces[:2], *pieces[end:])
