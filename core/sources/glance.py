"""A session file of JSON lines, looked at cheaply: its beginning is read, and the whole is only
searched for compactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from re import Pattern
from typing import Final, TypeAlias

import msgspec

from .found import FoundSession, count_matches, reason_of
from .lines import Line, LineReader, open_bytes
from .packed import beginning

HEAD: Final = 1 << 18
"""Bytes read for project, model and title."""
SEARCH_LIMIT: Final = 64 << 20
"""Larger files are not searched for compactions: their number is then unknown."""

Described: TypeAlias = Callable[[FoundSession, Iterator[Line]], FoundSession]
"""What is known of a session with its first lines."""


def glance(found: FoundSession, described: Described, compaction: Pattern[bytes]) -> FoundSession:
    """The session as its file shows it. Raises FileNotFoundError; all else is a `problem`."""
    try:
        with open_bytes(found.path) as file:
            found = described(found, LineReader().feed(beginning(file, HEAD)))
            file.seek(0)
            if found.size <= SEARCH_LIMIT:
                found = msgspec.structs.replace(found, compactions=count_matches(file, compaction))
    except FileNotFoundError:
        raise
    except (OSError, EOFError) as error:
        return msgspec.structs.replace(found, problem=f"cannot be read: {reason_of(error)}")
    return found


def told_by(
    found: FoundSession,
    lines: Iterable[Line],
    take: Callable[[FoundSession, Line], FoundSession],
) -> FoundSession:
    """The session with what the lines say of it, up to the one that completes it; its problem is
    that they are not those of a session."""
    for line in lines:
        found = take(found, line)
        if found.title and found.model:
            break
    if not found.version and not found.title:
        return msgspec.structs.replace(found, problem="its beginning is not that of a session")
    return found
