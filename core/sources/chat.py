"""A plain log of the requests of any program: its conversations, read and followed.

Nothing in such a log announces a compaction; what `chat_fold` finds by comparing one request with
the next is derived, and its cause unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from .. import events as e
from ..errors import ThresherError
from .base import RebuiltRequest, WireItem
from .chat_fold import AGENT, Comparer
from .conversations import Conversations, Request
from .follow import Appended, FileEvent, Tail
from .following import follow_tail
from .lines import LineReader, is_packed
from .log_items import items_of
from .registry import Choice
from .request_log import Logged, logged_requests, read_document, recognised, rows
from .sample import Sample, contained


def recognise(sample: Sample) -> str:
    """A log is known by any of its first rows."""
    return "" if sample.folder else recognised(sample)


def choices(path: Path) -> Sequence[Choice]:
    """The conversations of a log, the longest first; none where there is only one."""
    known = conversations_in(path)
    if len(known.known) < 2:
        return ()
    ranked = sorted(known.known, key=lambda each: (-each.requests, each.number))
    return [
        Choice(
            str(each.number), path / str(each.number), " ".join(each.title[:400].split()),
            each.last_at,
        )
        for each in ranked
    ]  # fmt: skip


def conversations_in(path: Path) -> Conversations:
    """The conversations of a log. A file that cannot be read is a ThresherError."""
    known = Conversations()
    for found in logged_requests(path):
        with suppress(RecursionError):
            known.assign(Request(found, items_of(found)))
    return known


class ChatSource:
    """One conversation of a log: `log.jsonl/2` is the second, else the one with most requests.
    Every method reads it anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file, self._named = contained(path)

    def _conversation(self) -> int:
        """The number of the conversation. One that is not there is a ThresherError."""
        if not self._named:
            main = conversations_in(self._file).main
            return main.number if main is not None else 1
        known = conversations_in(self._file).known
        if not self._named.isdecimal() or not 1 <= int(self._named) <= len(known):
            raise ThresherError(
                "No such session",
                f"{self._file} holds the conversations 1 to {len(known)}, and no "
                f"{self._named[:40]!r}.",
            )
        return int(self._named)

    def read(self) -> Iterator[e.Record]:
        """All events. `Record.n` is the row of the request, from 0."""
        comparer = Comparer(self._file.stem, self._conversation())
        for line in rows(self._file):
            yield from comparer.feed(line)
        yield from comparer.flush()

    def tail(self) -> ChatTail:
        """The same as `follow`, for a thread."""
        return ChatTail(self._file, self._conversation())

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[e.Record]]:
        """The events of the log, then those of what is appended, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request as it is logged, of all conversations unless one is named; its position is
        its own row."""
        for found in self._logged():
            yield RebuiltRequest(
                position=found.row,
                kind=e.Purpose.TURN,
                input=found.sent,
                instructions=found.system,
                failed=f"HTTP {found.status}" if found.status >= 400 else "",
                evidence="recorded",
            )

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """What the last request up to this row carried, in its own form."""
        last: list[WireItem] = []
        wanted, known = self._conversation(), Conversations()
        for found in logged_requests(self._file):
            if position is not None and found.row > position:
                break
            if known.assign(Request(found, items_of(found))).number == wanted:
                last = found.sent
        return last

    def _logged(self) -> Iterator[Logged]:
        if not self._named:
            yield from logged_requests(self._file)
            return
        wanted, known = self._conversation(), Conversations()
        for found in logged_requests(self._file):
            if known.assign(Request(found, items_of(found))).number == wanted:
                yield found


SOURCE = ChatSource


class ChatTail:
    """A log that may still grow."""

    def __init__(self, path: Path, conversation: int = 1) -> None:
        self.path = path
        self._comparer = Comparer(path.stem, conversation)
        self._whole = is_packed(path) or read_document(path) is not None
        self._done = False
        self._tail = Tail(path)
        self._reader = LineReader()

    def more(self) -> Iterator[e.Record]:
        """The records since the last call."""
        if self._whole:
            if not self._done:
                self._done = True
                for line in rows(self.path):
                    yield from self._comparer.feed(line)
                yield from self._comparer.flush()
            return
        quiet = True
        while not self._tail.ended and (change := self._tail.look()) is not None:
            quiet = False
            match change:
                case Appended(data=data):
                    for line in self._reader.feed(data):
                        yield from self._comparer.feed(line)
                case FileEvent(text=text, at=at, lost=lost):
                    event = e.ErrorRaised(kind="file", message=text) if lost else None
                    told = event or e.Note(kind="file", text=text)
                    yield e.Record(self._reader.number, at, told)
        if quiet or not self._done:
            self._done = True
            for line in self._reader.whole():
                yield from self._comparer.feed(line)
            yield from self._comparer.flush()
