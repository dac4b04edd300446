"""A growing Codex rollout for a caller with a thread of its own: asked for news, never waiting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..events import ErrorRaised, Note, Record
from .codex_events import Translator
from .follow import Appended, FileEvent, Tail
from .lines import LineReader


class CodexTail:
    """The same records as `CodexSource.follow`. Nothing more is said of a file that has ended."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._translator = Translator()
        self._reader = LineReader()
        self._asked = False

    def more(self) -> Iterator[Record]:
        """The records since the last call, up to the end of the file as it is now.

        What waits for a later line is given when there was nothing new, and at the first end.
        """
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
        self._asked = True
