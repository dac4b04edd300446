"""Codex's rules on our own items: what is in front of a history, what is half of a pair, and where
the initial context goes."""

from __future__ import annotations

from ....items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    OtherItem,
    Role,
    TextPart,
)
from .estimate import is_real_user
from .history import NO_OUTPUT, Half, context_place, normalised

AGENT_MESSAGE = "agent_message"
"""A message of another agent; our own agent makes none."""


def divided(items: tuple[Item, ...]) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """The system message at the head, if there is one, and the history behind it."""
    head = 1 if items and _is_system(items[0]) else 0
    return items[:head], items[head:]


def as_sent(history: tuple[Item, ...]) -> list[Item]:
    """A history as a request carries it: every pair whole."""
    return normalised(history, half_of, aborted)


def half_of(item: Item) -> Half | None:
    """What half of a pair an item is."""
    match item:
        case FunctionCall():
            return Half(item.call_id, False)
        case FunctionCallOutput():
            return Half(item.call_id, True)
        case _:
            return None


def aborted(call: Item) -> Item:
    """The output of a call that has none."""
    call_id = call.call_id if isinstance(call, FunctionCall) else ""
    return FunctionCallOutput(call_id, NO_OUTPUT)


def placed(items: tuple[Item, ...]) -> int:
    """Where the initial context goes among the items of a new history."""

    def is_summary(at: int, sealed: bool) -> bool:
        item = items[at]
        return isinstance(item, CompactionSummary) and item.opaque is sealed

    return context_place(
        len(items),
        is_user=lambda at: is_real_user(items[at]) or is_agent_message(items[at]),
        is_summary=lambda at: is_summary(at, False),
        is_sealed=lambda at: is_summary(at, True),
    )


def is_agent_message(item: Item) -> bool:
    """A message of another agent."""
    return isinstance(item, OtherItem) and item.type == AGENT_MESSAGE


def is_text(item: Item) -> bool:
    """A message of text alone."""
    return isinstance(item, Message) and (
        isinstance(item.content, str) or all(isinstance(p, TextPart) for p in item.content)
    )


def joined(item: Item) -> str:
    """The text of a message, its parts without anything between them."""
    if not isinstance(item, Message):
        return ""
    if isinstance(item.content, str):
        return item.content
    return "".join(part.text for part in item.content if isinstance(part, TextPart))


def _is_system(item: Item) -> bool:
    return isinstance(item, Message) and item.role is Role.SYSTEM
