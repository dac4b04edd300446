"""A growing Codex rollout for a caller with a thread of its own: asked for news, never waiting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..bodies import Bodies, NoBodies
from ..events import ErrorRaised, Note, Record
from .codex_events import Translator
from .codex_slim import Slimmer, slim_reader
from .follow import Appended, FileEvent, Tail
from .lines import LineReader


class CodexTail:
    """The same records as `CodexSource.follow`. Nothing more is said of a file that has ended.

    A slim one keeps of long texts only their heads (see `cutting`); `bodies` has the rest.
    """

    def __init__(self, path: Path, *, slim: bool = False) -> None:
        self._tail = Tail(path)
        slimmer = Slimmer(path) if slim else None
        self.bodies: Bodies = slimmer.bodies if slimmer else NoBodies()
        self._translator = Translator(slimmer)
        self._reader = slim_reader() if slim else LineReader()
        self._asked = False

    @property
    def read(self) -> int:
        """Bytes of the file that have been read."""
        return self._tail.offset

    def more(self) -> Iterator[Record]:
        """The records since the last call, up to the end of the file as it is now.

        What waits for a later line is given when there was nothing new, and at the first end.
        """
        quiet = True
        while not self._tail.ended and (change := self._tail.look()) is not None:
            quiet = False
            match change:
                case Appended(data=data):
                    yield from self._translator.feed_all(self._reader.feed(data))
                case FileEvent(text=text, at=at, lost=lost):
                    yield from self._translator.flush()
                    event = ErrorRaised(kind="file", message=text) if lost else None
                    yield Record(self._reader.number, at, event or Note(kind="file", text=text))
        if quiet or not self._asked:
            yield from self._translator.feed_all(self._reader.whole())
            yield from self._translator.flush()
        self._asked = True
