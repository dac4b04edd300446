"""Errors that pi keeps of its providers: was the request too long, and by how much?

A session file has only the words of an error, and every provider has its own.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOO_LONG: Final = re.compile(
    r"context[_ ]length[_ ]exceeded|maximum context length|maximum prompt length"
    r"|(?:prompt|input|request|conversation|messages?)\b.{0,60}\btoo (?:long|large|many tokens)"
    r"|exceed\w*\b.{0,60}\b(?:context|token (?:limit|count)|number of tokens)"
    r"|(?:context|input|prompt|token count)\b.{0,80}\bexceed"
    r"|context window .{0,30}(?:full|limit)|request_too_large",
    re.IGNORECASE | re.DOTALL,
)
_BUSY: Final = re.compile(r"rate.?limit|too many requests|throttl|overloaded|quota", re.IGNORECASE)
_NUMBER: Final = r"(\d[\d,_]{2,12})"
_LIMIT: Final = re.compile(
    rf"(?:maximum|max|limit|window)[\w ]{{0,30}}?(?:is|of|:|=)\s*{_NUMBER}"
    rf"|>\s*{_NUMBER}\s*maximum",
    re.IGNORECASE,
)
_USED: Final = re.compile(
    rf"(?:resulted in|requested|contains?|has|have|too long:)\s*(?:about |at least )?{_NUMBER}",
    re.IGNORECASE,
)


class Overflow(NamedTuple):
    """A refusal as too long, with the tokens it names."""

    used: int | None
    limit: int | None


def overflow_of(message: str) -> Overflow | None:
    """What an error says of the request's length; None where it is about something else."""
    if _BUSY.search(message) or not _TOO_LONG.search(message):
        return None
    return Overflow(_found(_USED, message), _found(_LIMIT, message))


def _found(pattern: re.Pattern[str], message: str) -> int | None:
    match = pattern.search(message)
    number = next((group for group in match.groups() if group), "") if match else ""
    return int(re.sub(r"[,_]", "", number)) if number else None
