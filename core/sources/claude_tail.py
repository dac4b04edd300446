"""A growing transcript for a caller with a thread of its own: asked for news, never waiting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..events import ErrorRaised, Note, Record
from .claude_events import Translator
from .claude_folder import Folder
from .follow import Appended, FileEvent, Tail
from .lines import LineReader, is_packed, read_lines


class ClaudeTail:
    """The same records as `ClaudeSource.follow`. Nothing is said of a file that has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tail = Tail(path)
        self._folder = Folder(path)
        self._translator = Translator(saved=self._folder.saved, title=self._folder.title)
        self._reader = LineReader()
        self._asked = False
        self._packed = is_packed(path)

    def more(self) -> Iterator[Record]:
        """The records since the last call, up to the end of the file as it is now.

        What waits for a later line is given when there was nothing new, and at the first end.
        """
        if self._packed:
            yield from self._whole()
            return
        quiet = True
        while not self._tail.ended and (change := self._tail.look()) is not None:
            quiet = False
            match change:
                case Appended(data=data):
                    for line in self._reader.feed(data):
                        yield from self._translator.feed(line)
                case FileEvent(text=text, at=at, lost=lost):
                    yield from self._translator.flush()
                    event = ErrorRaised(kind="file", message=text) if lost else None
                    yield Record(self._reader.number, at, event or Note(kind="file", text=text))
        if quiet or not self._asked:
            for line in self._reader.whole():
                yield from self._translator.feed(line)
            yield from self._translator.flush()
            yield from self._folder.news(max(0, self._reader.number - 1), self._translator)
        self._asked = True

    def _whole(self) -> Iterator[Record]:
        """A packed file, which does not grow."""
        if not self._asked:
            self._asked = True
            for line in read_lines(self._path):
                yield from self._translator.feed(line)
            yield from self._translator.flush()
