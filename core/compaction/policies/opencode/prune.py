"""Pruning: outputs of older turns give way to a placeholder, without a model."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ....items import FunctionCall, FunctionCallOutput
from .estimate import tokens, units
from .messages import View, Who


class Pruned(msgspec.Struct, frozen=True):
    """The positions of the outputs to clear, newest first, their tokens, and those of all seen."""

    places: tuple[int, ...]
    tokens: int
    seen: int


def candidates(
    view: View, *, protect: int, turns: int, protected_tools: Collection[str], placeholder: str
) -> Pruned:
    """Walk the messages as they were stored, from the newest to the oldest.

    1. Everything after the second-newest user message (`turns`) is passed over.
    2. The walk ends at a summary, and at the first output that is a placeholder already.
    3. Failed calls and protected tools neither count nor go.
    4. The first `protect` tokens of outputs stay; the output that crosses that line, and every
       older one, is a candidate.
    """
    entries = view.context.entries
    names = {
        entry.item.call_id: entry.item.name
        for entry in entries
        if isinstance(entry.item, FunctionCall)
    }
    users = seen = cleared = 0
    places: list[int] = []
    for piece in reversed(view.stored):
        users += piece.who in (Who.USER, Who.MARKER)
        if users < turns:
            continue
        if piece.who is Who.SUMMARY:
            break
        for at in reversed(piece.places):
            output = entries[at].item
            if not isinstance(output, FunctionCallOutput) or output.is_error:
                continue
            if (output.name or names.get(output.call_id, "")) in protected_tools:
                continue
            if output.output == placeholder:
                return Pruned(tuple(places), cleared, seen)
            cost = tokens(units(output.output))
            seen += cost
            if seen > protect:
                places.append(at)
                cleared += cost
    return Pruned(tuple(places), cleared, seen)
