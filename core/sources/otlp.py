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

from ..events import Purpose, Record
from .base import RebuiltRequest, WireItem
from .following import follow_tail
from .line_tail import LineTail, one_by_one
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


class OtlpTail(LineTail):
    """An export that may still grow; one that is a single document is read once."""

    def __init__(self, path: Path) -> None:
        document = whole_document(path) is not None
        whole = OtlpSource(path).read if document else None
        super().__init__(path, one_by_one(Spans(path.name).feed), whole=whole)


def _messages(signal: Signal) -> list[WireItem] | None:
    """The messages of a request: JSON in one attribute, by the conventions for such spans."""
    if signal.text("gen_ai.operation.name") != "chat":
        return None
    try:
        value: Any = msgspec.json.decode(signal.text("gen_ai.input.messages"))
    except (ValueError, RecursionError):
        return None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else None
