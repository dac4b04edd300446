"""A growing file of lines for a caller with a thread of its own: asked for news, never waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from ..events import ErrorRaised, Note, Record
from .follow import Appended, FileEvent, Tail
from .lines import Line, LineReader, is_packed, read_lines

Feed: TypeAlias = Callable[[Iterable[Line]], Iterable[Record]]
"""Takes lines and gives the records that are ready."""


class LineTail:
    """The records of a session file. Nothing more is said of a file that has ended.

    `feed` takes its lines, and `flush` gives what it holds back for a later one. A packed file does
    not grow; nor does one that is one document, for which `whole` gives the records.
    """

    def __init__(
        self,
        path: Path,
        feed: Feed,
        flush: Callable[[], Iterable[Record]] = tuple,
        *,
        reader: LineReader | None = None,
        whole: Callable[[], Iterable[Record]] | None = None,
    ) -> None:
        self.path = path
        self._feed = feed
        self._flush = flush
        self._reader = reader or LineReader()
        self._tail = Tail(path)
        self._whole = whole or (self._packed if is_packed(path) else None)
        self._asked = False

    @property
    def read(self) -> int:
        """Bytes of the file that have been read."""
        return self._tail.offset

    def more(self) -> Iterator[Record]:
        """The records since the last call, up to the end of the file as it is now.

        What waits for a later line is given when there was nothing new, and at the first end.
        """
        if self._whole is not None:
            if not self._asked:
                self._asked = True
                yield from self._whole()
            return
        quiet = True
        while not self._tail.ended and (change := self._tail.look()) is not None:
            quiet = False
            match change:
                case Appended(data=data):
                    yield from self._feed(self._reader.feed(data))
                case FileEvent(text=text, at=at, lost=lost):
                    yield from self._flush()
                    event = ErrorRaised(kind="file", message=text) if lost else None
                    yield Record(self._reader.number, at, event or Note(kind="file", text=text))
        if quiet or not self._asked:
            yield from self._feed(self._reader.whole())
            yield from self._flush()
            yield from self._rest(self._reader.number)
        self._asked = True

    def _rest(self, line: int) -> Iterable[Record]:
        """What else there is to say at an end; `line` is the next one."""
        return ()

    def _packed(self) -> Iterator[Record]:
        yield from self._feed(read_lines(self.path))
        yield from self._flush()


def one_by_one(feed: Callable[[Line], Iterable[Record]]) -> Feed:
    """What takes several lines, from what takes one."""
    return lambda lines: (record for line in lines for record in feed(line))
