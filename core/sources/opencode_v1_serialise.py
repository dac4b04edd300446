"""A message of OpenCode V1 as text for the summariser: one labelled line for each of its parts.

Source: OpenCode 1.18.33, as its recorded summary requests show it. Unlike a request of a turn, it
names every file, those whose text stands in the message too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..compaction.policies.opencode.estimate import clipped
from .codex_items import text_of
from .opencode_v1 import (
    Stored,
    arguments_of,
    attached,
    attachments_of,
    is_pruned,
    left_out,
    tool_text,
)

TOOL_CHARS: Final = 2000
"""Code units of a result that the summariser sees."""


def written(message: Stored) -> str:
    """The message; empty when there is nothing to read in it."""
    if left_out(message):
        return ""
    return "\n".join(_user(message) if message.is_user else _answer(message))


def _user(message: Stored) -> Iterator[str]:
    parts = [part for _, part in message.ordered]
    text = "\n".join(
        text_of(part.get("text"))
        for part in parts
        if part.get("type") == "text" and part.get("ignored") is not True and part.get("text")
    )
    if text:
        yield f"[User]: {text}"
    yield from (attached(part) for part in parts if part.get("type") == "file")


def _answer(message: Stored) -> Iterator[str]:
    for _, part in message.ordered:
        text = text_of(part.get("text"))
        match part.get("type"):
            case "text" if text:
                yield f"[Assistant]: {text}"
            case "reasoning" if text:
                yield f"[Assistant reasoning]: {text}"
            case "tool":
                yield f"[Assistant tool call]: {text_of(part.get('tool'))}({arguments_of(part)})"
                yield from _result(part)
            case _:
                pass


def _result(part: dict[str, Any]) -> Iterator[str]:
    text, failed = tool_text(part)
    if failed:
        yield f"[Tool error]: {text}"
    elif is_pruned(part):
        yield f"[Tool result]: {text}"
    else:
        yield f"[Tool result]: {clipped(text, TOOL_CHARS)}"
        yield from map(attached, attachments_of(part))
