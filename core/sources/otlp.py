"""Compactions of the Microsoft Agent Framework, .NET and Python, from an OpenTelemetry export.

An export says when a strategy compacted and how large the conversation was before and after. It
holds the conversation itself only where a program was set up to export it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..events import ErrorRaised, Note, Purpose, Record
from .base import RebuiltRequest, WireItem
from .follow import Appended, FileEvent, Tail
from .following import follow_tail
from .lines import LineReader, is_packed
from .otlp_events import AGENT, APPLIED, COMPACT, Spans
from .otlp_read import Signal, export_lines, recognised, signals, whole_document
from .sample import Sample


def recognise(sample: Sample) -> str:
    """An export is known by its beginning, or by any of its first lines."""
    return "" if sample.folder else recognised(sample)


class OtlpSource:
    """One export. Every method reads it anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[Record]:
        """All events. `Record.n` counts spans and log records, from 0."""
        spans = Spans(self.path.name)
        for line in export_lines(self.path):
            yield from spans.feed(line)

    def tail(self) -> OtlpTail:
        """The same as `follow`, for a thread."""
        return OtlpTail(self.path)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the export, then those of what is appended, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """The requests whose messages were exported with their spans; others are not known.

        A span holds the messages it began with. Where a compaction ran inside it, the model got
        fewer, and which is not known.
        """
        compacted: set[str] = set()
        for n, signal in self._signals():
            if signal.is_log and APPLIED in signal.attributes:
                compacted.add(signal.id)
            elif signal.name == COMPACT and signal.attributes.get("compaction.compacted") is True:
                compacted.add(signal.parent)
            elif (sent := _messages(signal)) is not None:
                yield RebuiltRequest(
                    position=n,
                    kind=Purpose.TURN,
                    input=sent,
                    instructions=signal.text("gen_ai.system_instructions"),
                    failed=signal.failed,
                    evidence="recorded",
                    left_out=_COMPACTED if signal.id in compacted else "",
                )

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """What the last request up to this position carried, where that was exported."""
        last: list[WireItem] = []
        for request in self.requests():
            if position is not None and request.position > position:
                break
            last = request.input
        return last

    def _signals(self) -> Iterator[tuple[int, Signal]]:
        n = -1
        for line in export_lines(self.path):
            try:
                found = signals(line.value or {})
            except RecursionError:
                continue
            for signal in found:
                n += 1
                yield n, signal


_COMPACTED = "a compaction ran inside this request: these are the messages before it"
SOURCE = OtlpSource


class OtlpTail:
    """An export that may still grow; one that is a single document is read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._spans = Spans(path.name)
        self._whole = is_packed(path) or whole_document(path) is not None
        self._done = False
        self._tail = Tail(path)
        self._reader = LineReader()

    def more(self) -> Iterator[Record]:
        """The records since the last call."""
        if self._whole:
            if not self._done:
                self._done = True
                yield from OtlpSource(self.path).read()
            return
        quiet = True
        while not self._tail.ended and (change := self._tail.look()) is not None:
            quiet = False
            match change:
                case Appended(data=data):
                    for line in self._reader.feed(data):
                        yield from self._spans.feed(line)
                case FileEvent(text=text, at=at, lost=lost):
                    event = ErrorRaised(kind="file", message=text) if lost else None
                    yield Record(self._reader.number, at, event or Note(kind="file", text=text))
        if quiet or not self._done:
            self._done = True
            for line in self._reader.whole():
                yield from self._spans.feed(line)


def _messages(signal: Signal) -> list[WireItem] | None:
    """The messages of a request: JSON in one attribute, by the conventions for such spans."""
    if signal.text("gen_ai.operation.name") != "chat":
        return None
    try:
        value: Any = msgspec.json.decode(signal.text("gen_ai.input.messages"))
    except (ValueError, RecursionError):
        return None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else None
