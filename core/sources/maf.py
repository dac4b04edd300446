"""Stored sessions of the Microsoft Agent Framework for Python (made with agent-framework-core
1.23.0; the .NET framework is only seen through its spans, see otlp.py).

What is stored is the conversation with marks, so compactions are derived from it. Compactions that
a program runs on the copy it sends, and not on what it stores, leave no marks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from ..errors import ThresherError
from ..events import ErrorRaised, Note, Record
from .base import RebuiltRequest, WireItem
from .following import follow_tail
from .maf_document import read_document, recognised
from .maf_events import AGENT, Fold
from .sample import Sample


def recognise(sample: Sample) -> str:
    """A session is known by its beginning, a history by its first messages."""
    return "" if sample.folder else recognised(sample)


class MafSource:
    """One file. Every method reads it anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[Record]:
        """All events. `Record.n` counts messages and compactions in their order."""
        yield from Fold().update(read_document(self.path))

    def tail(self) -> MafTail:
        """The same as `follow`, for a thread."""
        return MafTail(self.path)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the file, then those of each new state of it, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request that an answer or a summary was given to, in the framework's messages."""
        fold = Fold(requests=True)
        for _ in fold.update(read_document(self.path)):
            pass
        yield from fold.asked

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """The messages that are sent after this position."""
        fold = Fold()
        for _ in fold.update(read_document(self.path), until=position):
            pass
        return fold.context()


SOURCE = MafSource


class MafTail:
    """A session that may be written again. Each new state is compared with what was told; one that
    has lost messages is another session, and the end of this one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fold = Fold()
        self._seen: tuple[int, int, int] | None = None
        self._count = 0
        self._last = 0
        self._gone = self._ended = False

    def more(self) -> Iterator[Record]:
        """The records since the last call."""
        if self._ended:
            return
        try:
            stat = self.path.stat()
        except OSError:
            if self._seen is None:
                read_document(self.path)
            if not self._gone:
                self._gone = True
                text = f"{self.path.name} is gone; what was read stays, and it is waited for"
                yield self._told(ErrorRaised(kind="file", message=text))
            return
        back, self._gone = self._gone, False
        if back:
            yield self._told(Note(kind="file", text=f"{self.path.name} is back"))
        state = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        if state == self._seen:
            return
        first, self._seen = self._seen is None, state
        try:
            document = read_document(self.path)
        except ThresherError as error:
            if first:
                raise
            yield self._told(ErrorRaised(kind="file", message=str(error)))
            return
        if len(document.messages) < self._count:
            self._ended = True
            text = "the file holds fewer messages than had been read; open it again to see them"
            yield self._told(ErrorRaised(kind="file", message=text))
            return
        self._count = len(document.messages)
        for record in self._fold.update(document):
            self._last = record.n
            yield record

    def _told(self, event: ErrorRaised | Note) -> Record:
        return Record(self._last, time.time(), event)
