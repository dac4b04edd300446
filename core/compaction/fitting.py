"""Fitting a summary request into the window of the model that is to write it.

A summary is asked for just when the history is large, so the request for it is in danger of being
refused as the history itself was (langchain-ai/deepagents#5913). What does not fit is left out of
the middle of the longest text: the beginning holds the goal, the end the present state. The text
says what is missing, and so does the card.

A policy whose system shrinks its request by itself (`Summarise.own_retry`) is left alone.
"""

from __future__ import annotations

import msgspec

from ..items import FunctionCallOutput, Item, Message
from .policy import Measure, Summarise

HEAD_SHARE = 0.25
"""How much of what stays of a cut text is its beginning."""
MARGIN = 0.05
"""Room left for what a measure does not count: roles, framing, a tokenizer that differs."""
_ROUNDS = 8


def fitted(ask: Summarise, window: int | None, measure: Measure) -> tuple[Summarise, str]:
    """The ask within `window` tokens (its answer included), and a note on what was left out.

    The note is empty when the ask is unchanged, which it also is when the window is not known or
    when leaving out text cannot help.
    """
    if window is None or ask.own_retry:
        return ask, ""
    room = int((window - (ask.max_output or 0)) * (1 - MARGIN))
    size = _size(ask, measure)
    if size <= room:
        return ask, ""
    items, gone = list(ask.items), 0
    for _ in range(_ROUNDS):
        over = _size(msgspec.structs.replace(ask, items=tuple(items)), measure) - room
        if over <= 0:
            break
        at = max(range(len(items)), key=lambda at: len(_text(items[at])), default=None)
        text = "" if at is None else _text(items[at])
        tokens = measure.text(text)
        if at is None or tokens <= 1:
            return ask, ""
        # A little more than the share, so that few rounds are needed.
        keep = max(0, int(len(text) * (1 - min(1.0, 1.1 * over / tokens))) - 200)
        items[at], left_out = _cut(items[at], keep)
        gone += left_out
    else:
        return ask, ""
    left = _size(msgspec.structs.replace(ask, items=tuple(items)), measure)
    note = (
        f"{gone:,} characters of the history were left out of the summary request: it had about "
        f"{size:,} tokens, the window leaves room for {room:,}; now it has about {left:,}"
    )
    return msgspec.structs.replace(ask, items=tuple(items)), note


def _size(ask: Summarise, measure: Measure) -> int:
    return measure.text(ask.instructions) + sum(measure.item(item) for item in ask.items)


def _text(item: Item) -> str:
    match item:
        case Message(content=str(text)):
            return text
        case FunctionCallOutput(output=text):
            return text
        case _:
            return ""


def _cut(item: Item, keep: int) -> tuple[Item, int]:
    text = _text(item)
    head = int(keep * HEAD_SHARE)
    tail = keep - head
    gone = len(text) - keep
    marker = (
        f"\n\n[... {gone:,} characters left out here to fit the window of the summariser ...]\n\n"
    )
    short = text[:head] + marker + (text[-tail:] if tail else "")
    if isinstance(item, Message):
        return msgspec.structs.replace(item, content=short), gone
    return msgspec.structs.replace(item, output=short), gone
