"""Our own journals as a source, so that everything that reads sessions reads ours like any other.

It stands with the sessions and not with the sources, because the wire form of our requests is that
of the gateways, which no source knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from .. import events as e
from ..history import History
from ..sources.base import RebuiltRequest, WireItem
from ..sources.follow import FileEvent, Tail
from ..sources.following import follow_tail
from ..sources.sample import Sample
from .journal import JOURNAL_NAME, BadLine, located, scan
from .requests import rebuilt_requests, wire_context
from .resume import read

AGENT = "thresher"


def recognise(sample: Sample) -> str:
    """A journal is known by any of its first lines, and its folder by the journal in it."""
    if sample.folder:
        return "the folder" if (sample.path / JOURNAL_NAME).is_file() else ""
    return sample.line_like(_is_record)


class ThresherSource:
    """One journal, or the folder it is in. Every method reads it anew."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[e.Record]:
        """All records; a line that cannot be read is an error in its place."""
        yield from read(self.path).records

    def tail(self) -> JournalTail:
        """The same as `follow`, for a thread."""
        return JournalTail(self.path)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[e.Record]]:
        """The records of the journal, then those that are appended, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request for a turn, in order; see sessions.requests."""
        return rebuilt_requests(self._history())

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """The context after the line `position` in the wire form of the session."""
        history = self._history()
        at = len(history) if position is None else history.position_of(position)
        return wire_context(history.at(at))

    def _history(self) -> History:
        history = History()
        history.extend(self.read())
        return history


SOURCE = ThresherSource


class JournalTail:
    """A journal which another process may still be writing. What becomes of the file is told."""

    def __init__(self, path: Path) -> None:
        self.path = located(path)
        self._file = Tail(self.path)
        self._offset = 0
        self._line = 0
        self._after = -1

    def more(self) -> Iterator[e.Record]:
        """The whole lines since the last call; one that is still being written waits."""
        if self._offset:
            while not self._file.ended and (event := self._file.fate()) is not None:
                yield self._told(event)
            if self._file.ended or self._file.absent or self._file.blocked:
                return
        at = 0.0
        found = scan(self.path, offset=self._offset, line=self._line, after=self._after)
        for scanned in found:
            if scanned.torn:
                break
            record = scanned.found
            if isinstance(record, BadLine):
                record = e.Record(self._after + 1, at, record.problem())
            self._offset, self._line, self._after = scanned.end, scanned.line + 1, record.n
            at = record.at
            yield record
        self._file.passed(self._offset)

    def _told(self, event: FileEvent) -> e.Record:
        problem = e.ErrorRaised(kind="file", message=event.text) if event.lost else None
        return e.Record(self._after, event.at, problem or e.Note(kind="file", text=event.text))


def _is_record(value: dict[str, object]) -> bool:
    event = value.get("event")
    return isinstance(value.get("n"), int) and isinstance(event, dict) and "event" in event
