"""Claude Code sessions: the transcripts of Anthropic's Claude Code (recorded with 1.0.128, 2.0.76,
2.1.70 and 2.1.197).

A transcript holds the messages and the compactions, but neither the system prompt nor tools nor
what microcompaction clears; what is inferred is marked so. Nothing is ever written, and of the
paths inside a file none is followed but the name of a persisted output, which is looked for in the
session's own folder beside the file.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from ..events import Record
from .base import RebuiltRequest, WireItem
from .claude_events import Translator
from .claude_folder import Folder
from .claude_messages import messages_of
from .claude_newest import newest
from .claude_plain import plain
from .claude_reading import AGENT
from .claude_tail import ClaudeTail
from .cutting import is_large
from .follow_lines import follow_lines
from .lines import read_lines
from .sample import Sample

_CHAIN_TYPES = frozenset({"user", "assistant", "system", "attachment"})
_OWN_TYPES = frozenset({"queue-operation", "last-prompt", "file-history-snapshot"})


def recognise(sample: Sample) -> str:
    """A transcript is known by any of its first lines."""
    return sample.line_like(is_own)


def is_own(value: dict[str, object]) -> bool:
    """Whether a decoded line is one of a transcript."""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    if kind in _CHAIN_TYPES:
        return "parentUuid" in value and isinstance(value.get("uuid"), str)
    if kind == "summary":
        return "leafUuid" in value
    return kind in _OWN_TYPES and ("sessionId" in value or "snapshot" in value)


class ClaudeSource:
    """One transcript. Every method reads the file anew; see base.Source for what they give."""

    agent = AGENT
    plain = staticmethod(plain)

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = Folder(path)

    def read(self) -> Iterator[Record]:
        """All events of the file. `Record.n` is the line, from 0."""
        translator = self._translator()
        line = None
        for line in read_lines(self.path):
            yield from translator.feed(line)
        yield from translator.flush()
        if line is not None:
            yield from self._folder.news(line.number, translator)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the file, then those of what is appended, in batches, until `stop`.

        What becomes of the file itself (shorter, replaced, gone, back) is a record too, and so is a
        subagent that joins. Ends by itself when the file can no longer be the one that was read.
        """
        translator, folder = self._translator(), Folder(self.path)

        def joined(line: int) -> Iterator[Record]:
            return folder.news(max(0, line - 1), translator)

        feed, flush = translator.feed, translator.flush
        async for batch in follow_lines(
            self.path, feed, flush, whole=self.read, stop=stop, rest=joined
        ):
            yield batch

    def tail(self) -> ClaudeTail:
        """The same as `follow`, for a thread; a large file is read in the slim way."""
        return ClaudeTail(self.path, slim=is_large(self.path))

    def newest(self) -> Iterator[Record] | None:
        """The end of a large file, told at once (see claude_newest); None for any other."""
        return newest(self.path) if is_large(self.path) else None

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request that left a trace: those that were answered, those that ended in an error
        record, and for each boundary the last one for its summary. `input` is `messages`."""
        found: deque[RebuiltRequest] = deque()
        translator = Translator(on_request=found.append)
        for line in read_lines(self.path):
            translator.feed(line)
            while found:
                yield found.popleft()
        translator.flush()
        yield from found

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """The messages that the model would be sent after the line `position`."""
        translator = Translator(keep_raw=True)
        for line in read_lines(self.path):
            if position is not None and line.number > position:
                break
            translator.feed(line)
        translator.flush()
        reading = translator.reading
        return messages_of(reading.view.nodes, reading.cleared)

    def _translator(self) -> Translator:
        return Translator(saved=self._folder.saved, title=self._folder.title)


SOURCE = ClaudeSource
