"""The newest compactions of a large transcript, before all of it has been read.

What is in the context after a boundary stands behind it, and in the segment before it that it says
was preserved. So a reading may begin there: what the last but one boundary left is taken as what
was there, and everything behind it is read as always. The compaction after it is then shown with
all that it removed, long before the file has been read from its start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..events import ModelChanged, Note, Record, SessionStarted
from ..items import Message, Role
from .claude_events import Translator
from .claude_folder import Folder
from .claude_items import has_results, is_interruption, user_items
from .claude_slim import Slimmer, slim_reader
from .codex_items import dict_of, text_of
from .lines import CHUNK, parse, read_lines

LIMIT: Final = 48_000_000
"""Bytes at the end of the file that are read ahead; with more, reading all of it is as good."""
HEAD_LINES: Final = 200
"""Lines at the start in which the model and the title are looked for."""
NEAR: Final = 1_000
"""Bytes of a line in which it shows that the user wrote it, or that it holds a result."""

_SIGN: Final = b'compact_boundary"'
_FULL: Final = "compact_boundary"
_MICRO: Final = "microcompact_boundary"


class _Place(NamedTuple):
    """A boundary: its number, its first byte, its ordinal, the turns before it, and the first
    record of its preserved segment."""

    number: int
    offset: int
    ordinal: int
    turns: int
    head: str


def newest(path: Path) -> Iterator[Record] | None:
    """The records of the last windows; None where that would not be quicker than all of them.

    Numbers of lines, turns and compactions are those of the whole file; rounds begin anew.
    """
    size = path.stat().st_size
    found = _boundaries(path)
    if len(found) < 2 or size - found[-2].offset > min(LIMIT, size // 2):
        return None
    start = found[-2]
    began = _preserved(path, start, found[-3].offset if len(found) > 2 else 0)
    return None if began is None else _read(path, start, *began)


def _read(path: Path, start: _Place, number: int, offset: int) -> Iterator[Record]:
    folder = Folder(path)
    started = _started(path, folder)
    if started is None:
        return
    yield started
    yield from _from_there(_all(path, folder, started, start, number, offset))


def _all(
    path: Path, folder: Folder, started: Record, start: _Place, number: int, offset: int
) -> Iterator[Record]:
    translator = Translator(saved=folder.saved, slimmer=Slimmer(path))
    translator.begin_before(started.event, ordinal=start.ordinal)
    reader = slim_reader(number, offset)
    with path.open("rb") as file:
        file.seek(offset)
        ahead = file.read(start.offset - offset)
        translator.feed_all(reader.feed(ahead))
        yield from translator.begin_at(start.number, turns=start.turns)
        while data := file.read(CHUNK):
            yield from translator.feed_all(reader.feed(data))
    yield from translator.feed_all(reader.whole())
    yield from translator.flush()


def _from_there(records: Iterator[Record]) -> Iterator[Record]:
    """What a reading from the middle knows: the model, and everything since the boundary. Which
    records the file does not hold it cannot know."""
    begun = False
    for record in records:
        match record.event:
            case Note(kind="indexing"):
                begun = True
                yield record
            case Note(kind="chain"):
                pass
            case ModelChanged():
                yield record
            case _ if begun:
                yield record
            case _:
                pass


def _started(path: Path, folder: Folder) -> Record | None:
    """The start of the session."""
    translator = Translator(title=folder.title)
    records: list[Record] = []
    for line in islice(read_lines(path), HEAD_LINES):
        if records := translator.feed(line):
            break
    first = next(iter(records or translator.flush()), None)
    return first if first is not None and isinstance(first.event, SessionStarted) else None


def _preserved(path: Path, start: _Place, not_before: int) -> tuple[int, int] | None:
    """The line with which the preserved segment of a boundary begins, as number and first byte;
    that of the boundary when there is no segment, None when it is not near."""
    if not start.head:
        return start.number, start.offset
    begin = max(not_before, start.offset - LIMIT)
    with path.open("rb") as file:
        file.seek(begin)
        data = file.read(start.offset - begin)
    # The first to name a record is the record itself.
    at = data.find(f'"{start.head}"'.encode())
    if at < 0:
        return None
    at = data.rfind(b"\n", 0, at) + 1
    return start.number - data.count(b"\n", at), begin + at


def _boundaries(path: Path) -> list[_Place]:
    """The last three boundaries that have a summary."""
    found: deque[_Place] = deque(maxlen=3)
    turns = _Turns()
    offset = ordinal = 0
    seen: set[str] = set()
    with path.open("rb") as file:
        for number, raw in enumerate(file):
            if raw.find(_SIGN) >= 0:
                value = parse(raw)[0] or {}
                kind, uuid = text_of(value.get("subtype")), text_of(value.get("uuid"))
                if value.get("type") == "system" and kind in (_FULL, _MICRO) and uuid not in seen:
                    seen.add(uuid)
                    ordinal += 1
                    if kind == _FULL:
                        found.append(_Place(number, offset, ordinal, turns.count, _head(value)))
            elif raw.find(b'"user"', 0, NEAR) >= 0 and raw.find(b'"tool_result"', 0, NEAR) < 0:
                turns.line(parse(raw)[0] or {})
            offset += len(raw)
    return list(found)


def _head(boundary: dict[str, Any]) -> str:
    segment = dict_of(dict_of(boundary.get("compactMetadata")).get("preservedSegment"))
    return text_of(segment.get("headUuid"))


class _Turns:
    """Counts what the user said to the model in one conversation."""

    def __init__(self) -> None:
        self.count = 0
        self._side: tuple[bool, str] | None = None
        self._seen: set[str] = set()

    def line(self, value: dict[str, Any]) -> None:
        """One line that may be something that the user said."""
        side = (value.get("isSidechain") is True, text_of(value.get("agentId")))
        self._side = self._side or side
        uuid, content = text_of(value.get("uuid")), dict_of(value.get("message")).get("content")
        if (
            value.get("type") != "user"
            or value.get("isMeta") is True
            or value.get("isCompactSummary") is True
            or uuid in self._seen
            or side[0] != self._side[0]
            or (side[0] and side != self._side)
            or has_results(content)
            or is_interruption(content)
        ):
            return
        if uuid:
            self._seen.add(uuid)
        said = (item for item in user_items(content) if isinstance(item, Message))
        self.count += any(item.role is Role.USER and not item.synthetic for item in said)
