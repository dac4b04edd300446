"""A conversation as rounds: what the model said and called in one go, and all that follows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....context import Context
from ....items import (
    CompactionSummary,
    FunctionCall,
    Item,
    Kind,
    Message,
    Reasoning,
    Role,
    kind_of,
)
from ....validate import safe_cuts


class Rounds(NamedTuple):
    """Positions: where the system messages at the head end, and where each round begins. A round
    reaches to the next one, the last to the end; what lies before the first is the opening."""

    head: int
    starts: tuple[int, ...]


def rounds(items: Sequence[Item]) -> Rounds:
    """Take a conversation apart. A round whose results come in a later one is no round of its own:
    a cut before the later one would tear the pair."""
    head = 0
    while head < len(items) and kind_of(items[head]) is Kind.SYSTEM:
        head += 1
    starts = [
        at
        for at in range(head, len(items))
        if by_model(items[at]) and (at == head or not by_model(items[at - 1]))
    ]
    whole = set(safe_cuts(items))
    return Rounds(head, tuple(at for at in starts if at in whole))


def by_model(item: Item) -> bool:
    """Whether the model wrote this."""
    return isinstance(item, FunctionCall | Reasoning) or (
        isinstance(item, Message) and item.role is Role.ASSISTANT
    )


def boundary(context: Context) -> int:
    """The journal line of the newest summary; what came after it has a higher one. -1: none."""
    lines = (e.id.line for e in context if isinstance(e.item, CompactionSummary))
    return max(lines, default=-1)


def rounds_since(context: Context, line: int) -> int:
    """How many rounds began after a journal line."""
    items = context.items
    return sum(context.entries[at].id.line > line for at in rounds(items).starts)


def tokens(text: str) -> int:
    """The program's own estimate: a quarter of the characters, rounded."""
    return (2 * len(text) + 4) // 8


def estimate(items: Iterable[Item]) -> int:
    """The estimate of some items together, each rounded."""
    return sum(map(_item_tokens, items))


def _item_tokens(item: Item) -> int:
    if isinstance(item, FunctionCall):
        return tokens(item.name + item.arguments)
    return tokens(item.text)
