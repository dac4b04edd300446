"""Times in the files of other programs."""

from __future__ import annotations

from datetime import UTC, datetime

from .codex_items import text_of


def seconds_of(timestamp: object) -> float | None:
    """Seconds since the epoch of an ISO 8601 time, which is UTC where it names no zone; None for
    anything else."""
    try:
        moment = datetime.fromisoformat(text_of(timestamp))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
