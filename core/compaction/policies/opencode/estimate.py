"""Sizes as OpenCode reckons them: UTF-16 code units, and four of them to a token."""

from __future__ import annotations

import json
from typing import Any


def units(text: str) -> int:
    """The length of a text as JavaScript counts it, in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def tokens(size: int) -> int:
    """Estimated tokens of so many code units: floor(size / 4 + 0.5)."""
    return (size + 2) // 4


def clipped(text: str, limit: int) -> str:
    """A text of more than `limit` code units, cut there, with `[truncated]` on a line of its own.

    Half a surrogate pair at the cut is left out.
    """
    if units(text) <= limit:
        return text
    if text.isascii():
        return f"{text[:limit]}\n[truncated]"
    cut = text.encode("utf-16-le", "surrogatepass")[: 2 * limit].decode("utf-16-le", "ignore")
    return f"{cut}\n[truncated]"


def compact_json(value: Any) -> str:
    """JSON without spaces, no character escaped that need not be, as `JSON.stringify` writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def arguments_value(arguments: str) -> Any:
    """What the model wrote as a call's arguments, read; the text itself where it is no JSON."""
    try:
        return json.loads(arguments, parse_float=_number) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments


def _number(text: str) -> int | float:
    # JavaScript has one kind of number: 1.0 is written 1.
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
