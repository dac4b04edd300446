"""OpenCode sessions (recorded with 1.18.33): its database, older JSON trees, exports, streams.

The database holds the sessions of both of its engines, usually many; a path that goes on into it
(`opencode.db/ses_1`) means one of them, and the bare file the newest. Nothing is ever written
beside it: see `opencode_store` for how it is read while OpenCode runs.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from ..errors import ThresherError
from ..events import ErrorRaised, Note, Record
from .base import RebuiltRequest, WireItem
from .following import REST, follow_tail
from .lines import open_bytes, unreadable
from .opencode_changes import BAD, Change
from .opencode_events import Translator
from .opencode_files import (
    Export,
    Stream,
    Tree,
    is_export,
    is_stream,
    tree_of,
    tree_root,
    tree_sessions,
)
from .opencode_fold import AGENT, SessionInfo
from .opencode_plain import plain
from .opencode_store import MAGIC, Database, Reader, sessions
from .opencode_stream import EventStream
from .registry import Choice
from .sample import Sample, contained

DATABASE = "opencode.db"
UNSETTLED = 1.0
"""Seconds after a change of its files in which a session is read at every look."""
SOON = 0.12
"""Seconds after such a change in which a look follows the other."""
TREE_REST = 1.0
"""Seconds between two looks at all files of a tree; its newest ones are asked much more often."""


class _Reader(Protocol):
    """Where changes come from."""

    @property
    def info(self) -> SessionInfo: ...

    def baseline(self) -> int: ...

    def signature(self) -> tuple[object, ...]: ...

    def more(self) -> Iterator[Change]: ...


def recognise(sample: Sample) -> str:
    """A database by its first bytes, a tree by its folders, an export and a stream by a line."""
    if sample.folder:
        known = tree_root(sample.path) is not None or (sample.path / DATABASE).is_file()
        return "the folder" if known else ""
    if sample.head.startswith(MAGIC):
        return "the database"
    if tree_of(sample.path) is not None or is_export(sample.head):
        return "the document"
    return sample.line_like(is_stream)


def choices(path: Path) -> Sequence[Choice]:
    """The sessions of a database or a tree, the one last active first; else none."""
    if path.is_dir() and (path / DATABASE).is_file():
        path = path / DATABASE
    if path.is_dir():
        root = tree_root(path)
        found = tree_sessions(root) if root else []
        return [Choice(info.id, where, info.title, info.last) for info, where in found]
    if not _head(path).startswith(MAGIC):
        return ()
    return [
        Choice(info.id, path / info.id, info.title, info.last) for info in sessions(Database(path))
    ]


class OpenCodeSource:
    """One session. Every method reads it anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[Record]:
        """All events. `Record.n` is the number of the change in OpenCode's own event log; where
        there is none, in the order in which the changes must have come."""
        reader = open_reader(self.path)
        translator = Translator(reader.info, baseline=reader.baseline())
        for change in _whole(reader):
            yield from translator.feed(change)
        yield from translator.flush()

    def tail(self) -> OpenCodeTail:
        """The same as `follow`, for a thread."""
        return OpenCodeTail(self.path)

    def tail_beside(self, server: str, *, remote: bool = False) -> OpenCodeTail:
        """Like `tail`, with what OpenCode's server at this address tells before it is stored."""
        return OpenCodeTail(self.path, server, remote=remote)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the session, then those of what is stored later, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request that left a trace, in order, with its messages as they were sent; the
        system text is not stored. Of summary requests the instruction is not either."""
        reader = open_reader(self.path)
        translator = Translator(reader.info, baseline=reader.baseline(), collect=True)
        for change in _whole(reader):
            translator.feed(change)
            yield from translator.drain()
        translator.flush()
        yield from translator.drain()

    def plain(self, messages: Iterable[WireItem]) -> list[WireItem]:
        """Messages without what depends on the configuration, for a comparison."""
        return plain(messages)

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """What a request after the change `position` carries, without the system text."""
        reader = open_reader(self.path)
        translator = Translator(reader.info, baseline=reader.baseline())
        for change in _whole(reader):
            if position is not None and change.n > position:
                break
            translator.feed(change)
        translator.flush()
        return translator.context()


SOURCE = OpenCodeSource


class OpenCodeTail:
    """A session that OpenCode may still be writing."""

    def __init__(self, path: Path, server: str = "", *, remote: bool = False) -> None:
        self.path = path
        self._reader = open_reader(path)
        self._stream: EventStream | None = None
        if server:
            self._stream = EventStream(server, self._reader.info.id, remote=remote)
            weakref.finalize(self, self._stream.stop)
            self._stream.start()
        self._translator = Translator(self._reader.info, baseline=self._reader.baseline())
        self._seen: tuple[object, ...] | None = None
        self._changed = 0.0
        self._last = 0
        self._blocked = ""

    @property
    def rest(self) -> float:
        """Seconds to leave between two looks: one at a tree goes over all of its files."""
        return TREE_REST if isinstance(self._reader, Tree) else REST

    def changed(self) -> bool:
        """There may be something new; cheap."""
        if self._stream is not None and self._stream.waiting:
            return True
        if time.monotonic() - self._changed < SOON:
            return True
        return isinstance(self._reader, Tree) and self._reader.changed()

    def more(self) -> Iterator[Record]:
        """The records since the last call; what waits for a later change when nothing is new."""
        if self._stream is not None:
            pieces, notes = self._stream.take()
            for text in notes:
                yield Record(self._last, time.time(), Note(kind="server", text=text))
            for piece in pieces if self._seen is not None else ():
                yield from self._translator.feed(piece)
        seen = self._reader.signature()
        now = time.monotonic()
        if seen != self._seen:
            self._changed = now
        # A database shows what was written a moment after its files have changed.
        if now - self._changed < UNSETTLED or not seen or self._blocked:
            fresh = False
            try:
                for change in self._reader.more():
                    fresh, self._last = True, change.n
                    yield from self._translator.feed(change)
                if self._blocked:
                    self._blocked = ""
                    note = Note(kind="file", text=f"{self.path.name} can be read again")
                    yield Record(self._last, time.time(), note)
            except ThresherError as error:
                if error.msg != self._blocked:
                    self._blocked = error.msg
                    yield self._told(error.msg)
                return
            first, self._seen = self._seen is None, seen
            if fresh and not first:
                return
        yield from self._translator.quiet()

    def _told(self, text: str) -> Record:
        return Record(self._last, time.time(), ErrorRaised(kind="file", message=text))


class _Stored:
    """A reader over the database, with the database's own signature."""

    def __init__(self, path: Path, session: str) -> None:
        self._reader = Reader(Database(path), session)
        self.info = self._reader.info

    def baseline(self) -> int:
        return self._reader.baseline()

    def signature(self) -> tuple[object, ...]:
        return self._reader.database.signature()

    def more(self) -> Iterator[Change]:
        return self._reader.more()


def open_reader(path: Path) -> _Reader:
    """The place that a path means. Raises ThresherError."""
    file, session = contained(path)
    if file.is_dir():
        if (file / DATABASE).is_file():
            return _Stored(file / DATABASE, session)
        root = tree_root(file)
        if root is None:
            raise ThresherError("Not a session", f"{file} holds no session of OpenCode.")
        return Tree(root, session)
    head = _head(file)
    if head.startswith(MAGIC):
        return _Stored(file, session)
    if (found := tree_of(file)) is not None:
        return Tree(*found)
    if is_export(head) and not is_stream_head(head):
        return Export(file)
    return Stream(file, session)


def is_stream_head(head: bytes) -> bool:
    """The first line is an event of a stream."""
    return bool(Sample(Path(), head).line_like(is_stream))


def _whole(reader: _Reader) -> Iterator[Change]:
    """All changes; what the file does not give is one more change, which says so."""
    last = 0
    try:
        for change in reader.more():
            last = change.n
            yield change
    except ThresherError as error:
        if not last:
            raise
        yield Change(last, 0.0, BAD, {}, f"reading ended here: {error.msg}")


def _head(path: Path) -> bytes:
    try:
        with open_bytes(path) as file:
            return file.read(1 << 16)
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error
