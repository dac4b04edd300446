"""Snip: the middle of a long conversation goes, and a marker says how much that was."""

from __future__ import annotations

import re
from typing import NamedTuple

from ....context import Context, Inserted, Segment
from ....items import Item, Kind, Message, Role, kind_of
from .chat import chat_messages, tail_start, unpaired


class Snip(NamedTuple):
    """What to do: the new order, and how many messages it leaves out (`total` with those that
    earlier snips left out, `now` without them)."""

    segments: tuple[Segment, ...]
    gone: tuple[int, ...]
    now: int
    total: int


def snip(context: Context, *, most: int, head: int, tail: int) -> Snip | str:
    """The snip, or why there is none. `most`, `head` and `tail` are numbers of messages."""
    items = context.items
    messages = chat_messages(items)
    if len(messages) <= most:
        return f"{len(messages):,} messages are not above {most:,}"
    end = head
    while end < len(messages) and messages[end].is_result:  # rule a
        end += 1
    start = tail_start(messages, tail)
    if end >= start:  # rule c
        return f"{len(messages):,} messages, but head and tail meet"
    first_system = next((at for at, i in enumerate(items) if kind_of(i) is Kind.SYSTEM), -1)
    middle = [m for m in messages[end:start] if m.start != first_system]  # rule d
    markers = [_snipped(items[m.start]) for m in middle]
    if all(markers):
        return f"{len(messages):,} messages, but nothing between head and tail is left to snip"
    gone = tuple(at for message in middle for at in message.places)
    staying = sorted({*range(len(items))} - {*gone})
    if not unpaired([items[at] for at in staying]) <= unpaired(items):  # rule e
        return "it would tear a call from its result, so it is undone"
    total = sum(number or 1 for number in markers)
    cut = messages[start].start if start < len(messages) else len(items)
    before = [at for at in staying if at < cut]
    after = [at for at in staying if at >= cut]
    segments: list[Segment] = [*context.keep(before)]
    segments.append(Inserted(marker(total), context.span(context.entries[at].id for at in gone)))
    segments.extend(context.keep(after))
    return Snip(tuple(segments), gone, sum(not number for number in markers), total)


def marker(count: int) -> Message:
    """What stands for the messages that are gone."""
    text = f"[snipped {count} messages from conversation middle]"
    return Message(Role.USER, text, synthetic=True)


def _snipped(item: Item) -> int:
    """How many messages a marker stands for; 0 when the item is none."""
    if not (isinstance(item, Message) and item.synthetic):
        return 0
    found = _MARKER.fullmatch(item.text)
    return int(found[1]) if found else 0


_MARKER = re.compile(r"\[snipped (\d{1,9}) messages from conversation middle\]")
