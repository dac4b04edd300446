"""How long ago something was, in words that do not jump about."""

from __future__ import annotations

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def age(at: float, now: float) -> str:
    """`just now`, `5 min ago`, `3 h ago`, `2 days ago`, else the date (UTC); times are seconds
    since the epoch, 0 is unknown."""
    if not at:
        return "?"
    passed = now - at
    if passed < _MINUTE:
        return "just now"
    if passed < _HOUR:
        return f"{passed // _MINUTE:.0f} min ago"
    if passed < _DAY:
        return f"{passed // _HOUR:.0f} h ago"
    if passed < 2 * _DAY:
        return "1 day ago"
    if passed < 14 * _DAY:
        return f"{passed // _DAY:.0f} days ago"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
