"""How Codex cuts a text: its two ends stay, and a marker between them says how much is gone.

The budget is divided between head and tail, whole characters only; the marker comes on top of it.
A tool's output gets two header lines besides. Checked byte for byte against recorded outputs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from .estimate import BYTES_PER_TOKEN, text_tokens, tokens_of_bytes


class Unit(StrEnum):
    """What a budget for text is counted in."""

    TOKENS = "tokens"
    """Four bytes each; the marker counts tokens."""
    BYTES = "bytes"
    """The marker counts characters."""


class Cut(NamedTuple):
    """The three parts of a text that was cut."""

    head: str
    marker: str
    tail: str

    @property
    def text(self) -> str:
        """The parts as one text."""
        return "".join(self)


def bytes_of(limit: int, unit: Unit) -> int:
    """A budget in bytes."""
    return limit * BYTES_PER_TOKEN if unit is Unit.TOKENS else limit


def cut(text: str, limit: int, unit: Unit = Unit.TOKENS) -> Cut | None:
    """The parts of `text` within `limit`, or None when it fits."""
    data = text.encode("utf-8", "replace")
    budget = bytes_of(limit, unit)
    if len(data) <= budget:
        return None
    left = budget // 2
    start = len(data) - (budget - left)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    head, tail = data[:left].decode("utf-8", "ignore"), data[start:].decode("utf-8")
    if unit is Unit.TOKENS:
        gone = f"{tokens_of_bytes(len(data) - budget)} tokens"
    else:
        gone = f"{len(text) - len(head) - len(tail)} chars"
    return Cut(head, f"\u2026{gone} truncated\u2026", tail)


def truncated(text: str, limit: int, unit: Unit = Unit.TOKENS) -> str:
    """`text`, cut to `limit` where it is longer."""
    parts = cut(text, limit, unit)
    return text if parts is None else parts.text


def tool_text(text: str, limit: int, unit: Unit = Unit.TOKENS) -> str:
    """The output of a tool within `limit`; what was cut says so in two lines above it."""
    parts = cut(text, limit, unit)
    if parts is None:
        return text
    lines = text.count("\n") + (not text.endswith("\n"))
    return (
        f"Warning: truncated output (original token count: {text_tokens(text)})\n"
        f"Total output lines: {lines}\n\n{parts.text}"
    )
