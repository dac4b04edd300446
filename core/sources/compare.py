"""Comparing the items of two requests: what is the same, what reads differently, what is new."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from .. import jsontext
from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Kind,
    Message,
    Role,
    kind_of,
)

SUMMARY: Final = 120
"""Characters from which an inserted message can be a summary of what left."""


def match_items(before: Sequence[Item], after: Sequence[Item]) -> dict[int, tuple[int, bool]]:
    """For places in `after` the place in `before` of the same item, and whether it reads the same.

    First what is equal, in order; then a result of the same call, and system texts, which may have
    been rewritten. No old item is used twice.
    """
    old, new = [sign(item) for item in before], [sign(item) for item in after]
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    found = {at: (at, True) for at in range(same)}
    matcher = SequenceMatcher(None, old[same:], new[same:], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        found.update({same + b + k: (same + a + k, True) for k in range(size)})
    used = {at for at, _ in found.values()}
    free: dict[str, list[int]] = {}
    for at, item in enumerate(before):
        if at not in used and (name := _name(item)):
            free.setdefault(name, []).append(at)
    for at, item in enumerate(after):
        if at not in found and (name := _name(item)) and free.get(name):
            found[at] = (free[name].pop(0), False)
    return found


def is_system(item: Item) -> bool:
    """A text of the system."""
    return kind_of(item) is Kind.SYSTEM


def _name(item: Item) -> str:
    """What an item is known by when it reads differently; empty when by nothing."""
    match item:
        case FunctionCallOutput(call_id=id):
            return f"output {id}"
        case FunctionCall(call_id=id):
            return f"call {id}"
        case Message(role=Role.SYSTEM | Role.DEVELOPER):
            return "system"
        case _:
            return ""


def sign(item: Item) -> bytes:
    """Equal for equal content. A summary counts as the message that it was sent as."""
    if isinstance(item, CompactionSummary):
        item = Message(item.role, item.text)
    return jsontext.encode(item, deterministic=True)


def new_from(items: Sequence[Item], start: int) -> int:
    """Where the new turn begins behind what a compaction put in: at the last message of the user,
    when something else stands before it."""
    for at in range(len(items) - 1, start, -1):
        item = items[at]
        if isinstance(item, Message) and item.role is Role.USER:
            return at
    return len(items)


def summary_of(
    items: Sequence[Item],
    matches: dict[int, tuple[int, bool]],
    end: int,
    answer: str,
) -> int | None:
    """The place of the message that stands for what left: the one with the `answer` of a request
    before it, else the longest new text."""
    places = [
        at
        for at in range(end)
        if at not in matches and isinstance(items[at], Message) and items[at].text
    ]
    for at in places:
        if answer and answer in items[at].text:
            return at
    longest = max(places, key=lambda at: len(items[at].text), default=None)
    return longest if longest is not None and len(items[longest].text) >= SUMMARY else None


def as_summary(item: Item) -> Item:
    """The message as a summary, where it is plain text."""
    if isinstance(item, Message) and isinstance(item.content, str):
        return CompactionSummary(item.content, role=item.role)
    return item
