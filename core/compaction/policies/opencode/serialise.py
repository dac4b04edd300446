"""The history as text for the summariser: one labelled line for each part of a message.

Source: OpenCode 1.18.33. Both engines write the same form, V2 with three labels more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ....items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
)
from .estimate import arguments_value, clipped, compact_json
from .media import attached


class Writing(msgspec.Struct, frozen=True):
    """How messages are written out."""

    tool_chars: int
    """Code units of a tool's result that the summariser sees."""
    placeholder: str = ""
    """The text of a pruned result, which is never cut."""
    synthetic: bool = False
    """Messages that a harness wrote have a label of their own (V2)."""
    empty_tools: frozenset[str] = frozenset()
    """Tools whose results are written out as nothing (a fault of V2)."""


def written(items: Iterable[Item], how: Writing) -> str:
    """The items of one message, one line a part; empty when there is nothing to read in them.

    The result of a call stands directly behind it, whatever the order in which results came back.
    """
    every = tuple(items)
    outputs = {item.call_id: item for item in every if isinstance(item, FunctionCallOutput)}
    lines: list[str] = []
    for item in every:
        lines.extend(_lines(item, outputs, how))
    return "\n".join(lines)


def joined(texts: Iterable[str]) -> str:
    """Messages with a blank line between them; what is empty is left out."""
    return "\n\n".join(filter(None, texts))


def _lines(item: Item, outputs: dict[str, FunctionCallOutput], how: Writing) -> Iterator[str]:
    match item:
        case Message(role=Role.USER):
            yield from _user(item, how)
        case Message(role=Role.ASSISTANT):
            if item.text:
                yield f"[Assistant]: {item.text}"
        case Message():
            yield f"[System update]: {item.text}"
        case Reasoning(summary=text):
            if text:
                yield f"[Assistant reasoning]: {text}"
        case FunctionCall():
            yield (
                f"[Assistant tool call]: {item.name}"
                f"({compact_json(arguments_value(item.arguments))})"
            )
            output = outputs.pop(item.call_id, None)
            if output is not None:
                yield _output(output, item.name, how)
        case FunctionCallOutput():
            # Only one without a call is still there.
            if outputs.pop(item.call_id, None) is item:
                yield _output(item, item.name, how)
        case OtherItem(text=text):
            if text:
                yield f"[Synthetic context]: {text}"
        case CompactionSummary():
            pass


def _user(message: Message, how: Writing) -> Iterator[str]:
    if message.synthetic and how.synthetic:
        yield f"[Synthetic context]: {message.text}"
        return
    if isinstance(message.content, str):
        texts, media = [message.content], []
    else:
        texts = [part.text for part in message.content if isinstance(part, TextPart)]
        media = [part for part in message.content if not isinstance(part, TextPart)]
    text = "\n".join(filter(None, texts))
    if text:
        yield f"[User]: {text}"
    yield from map(attached, media)


def _output(output: FunctionCallOutput, name: str, how: Writing) -> str:
    if output.is_error:
        return f"[Tool error]: {output.output}"
    if name in how.empty_tools:
        return "[Tool result]: "
    if how.placeholder and output.output == how.placeholder:
        return f"[Tool result]: {output.output}"
    return f"[Tool result]: {clipped(output.output, how.tool_chars)}"
