"""The items of a context as the messages of Chat Completions, which is what HarnessX counts.

There an assistant's text and its calls are one message, and every tool result is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....items import FunctionCall, FunctionCallOutput, Item, Kind, Message, Reasoning, kind_of


class ChatMessage(NamedTuple):
    """One message: the items from `start` up to, not including, `stop`."""

    start: int
    stop: int
    is_result: bool = False

    @property
    def places(self) -> range:
        """The positions of its items."""
        return range(self.start, self.stop)


def chat_messages(items: Sequence[Item]) -> list[ChatMessage]:
    """Every item in exactly one message, in order."""
    found: list[ChatMessage] = []
    open_for_text = open_for_calls = False
    for at, item in enumerate(items):
        match item:
            case FunctionCall():
                joins = open_for_calls
                open_for_text, open_for_calls = False, True
            case Reasoning():
                joins = open_for_text
                open_for_text = open_for_calls = True
            case Message() if kind_of(item) is Kind.ASSISTANT:
                joins = open_for_text
                open_for_text, open_for_calls = False, True
            case _:
                joins = open_for_text = open_for_calls = False
        if joins:
            found[-1] = ChatMessage(found[-1].start, at + 1)
        else:
            found.append(ChatMessage(at, at + 1, isinstance(item, FunctionCallOutput)))
    return found


def tail_start(messages: Sequence[ChatMessage], count: int) -> int:
    """Where the last `count` messages begin, moved back so far that no tool result stands at the
    beginning without the message that called for it (rule 3.2 b: a parallel batch needs a loop)."""
    start = max(0, len(messages) - count)
    while 0 < start < len(messages) and messages[start].is_result:
        start -= 1
    return start


def unpaired(items: Sequence[Item]) -> frozenset[str]:
    """The ids of calls without a result, and of results without a call."""
    calls = {item.call_id for item in items if isinstance(item, FunctionCall)}
    results = {item.call_id for item in items if isinstance(item, FunctionCallOutput)}
    return frozenset(calls ^ results)
