"""Codex sessions: the rollout files of OpenAI's Codex CLI (recorded with 0.171.0).

A rollout is append-only JSON lines. What it says of the context is exact: the history at a line is
what Codex sent from there. What it leaves out (why a compaction ran, and when in its turn) is
inferred and marked so. Nothing is ever written, and no path found inside a file is opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import chain, islice
from pathlib import Path

import msgspec

from ..events import ErrorRaised, Note, Purpose, Record
from .base import RebuiltRequest, WireItem
from .codex_compactions import OVERFLOW
from .codex_events import AGENT, Translator
from .codex_newest import newest
from .codex_replay import descent
from .codex_requests import Sent
from .codex_tail import CodexTail
from .cutting import is_large
from .follow import Appended, FileEvent, follow_file
from .lines import LineReader, is_packed, read_lines
from .sample import Sample

BATCH = 512
"""Records handed over at a time while a file is followed."""

_TYPES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
)
_TRIGGER: list[WireItem] = [{"type": "compaction_trigger"}]
"""What ends the request of a remote compaction."""
_PROMPT_MISSING = "the compaction prompt, the last item: it is not in the file"


def recognise(sample: Sample) -> str:
    """A rollout is known by any of its first lines."""
    return sample.line_like(
        lambda value: value.get("type") in _TYPES and isinstance(value.get("payload"), dict)
    )


class CodexSource:
    """One rollout file. Every method reads the file anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[Record]:
        """All events of the file. `Record.n` is the line, from 0: the ordinal of the line."""
        translator = Translator()
        for line in read_lines(self.path):
            yield from translator.feed(line)
        yield from translator.flush()

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the file, then those of what is appended, in batches, until `stop`.

        What becomes of the file itself (shorter, replaced, gone, back) is a record too. Ends by
        itself when the file can no longer be the one that was being read.
        """
        if is_packed(self.path):
            for records in _batched(self.read()):
                yield records
                await asyncio.sleep(0)
            return
        translator, reader = Translator(), LineReader()
        async with aclosing(follow_file(self.path, stop)) as changes:
            async for change in changes:
                batch: list[Record] = []
                match change:
                    case Appended(data=data):
                        for line in reader.feed(data):
                            batch.extend(translator.feed(line))
                            if len(batch) >= BATCH:
                                yield batch
                                batch = []
                                await asyncio.sleep(0)
                    case FileEvent():
                        if change.quiet:
                            whole = [translator.feed(line) for line in reader.whole()]
                            batch = [*chain(*whole), *translator.flush()]
                        else:
                            batch = [*translator.flush(), self._told(reader.number, change)]
                if batch:
                    yield batch

    def tail(self) -> CodexTail:
        """The same as `follow`, for a thread; a large file is read in the slim way."""
        return CodexTail(self.path, slim=is_large(self.path))

    def newest(self) -> Iterator[Record] | None:
        """The end of a large file, told at once (see codex_newest); None for any other."""
        return newest(self.path) if is_large(self.path) else None

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request that can be rebuilt, in order, with its input as it was sent.

        Tries of one compaction request are one request with `attempts`, since what each of them
        left out is not in the file; only where the whole way down to nothing failed are they
        given one by one. The prompt of a local compaction is not in the file either.
        """
        translator = Translator()
        for line in read_lines(self.path):
            translator.feed(line)
        translator.flush()
        head = translator.reading.head
        wanted = sorted(translator.reading.requests.sent, key=lambda sent: sent.position)
        raws = self._histories(sent.position for sent in wanted)
        for sent, history in zip(wanted, raws, strict=True):
            retries = _retries(sent, history)
            request = RebuiltRequest(
                position=sent.position,
                kind=sent.kind,
                input=[*head.request(history), *(_TRIGGER if sent.remote else [])],
                missing=_PROMPT_MISSING if _is_local_compaction(sent) else "",
                instructions="" if head.in_input else head.instructions,
                attempts=1 if retries else sent.attempts,
                failed=sent.failed,
                evidence=sent.evidence,
            )
            yield request
            for shorter in retries:
                yield msgspec.structs.replace(
                    request, input=head.request(shorter), evidence="inferred"
                )

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """Codex's history after line `position`, by the replay rule of the format.

        Between the answer of a compaction request and its compacted line the answer is in it.
        """
        return next(self._histories([-1 if position is None else position]))

    def _histories(self, positions: Iterator[int] | list[int]) -> Iterator[list[WireItem]]:
        """The history at each of these lines, which are in order; -1 is the end of the file."""
        translator = Translator()
        lines = read_lines(self.path)
        line = next(lines, None)
        for position in positions:
            while line is not None and (position < 0 or line.number <= position):
                translator.feed(line)
                line = next(lines, None)
            yield translator.reading.history.raw

    def _told(self, line: int, change: FileEvent) -> Record:
        if change.lost:
            return Record(line, change.at, ErrorRaised(kind="file", message=change.text))
        return Record(line, change.at, Note(kind="file", text=change.text))


SOURCE = CodexSource


def _batched(records: Iterator[Record]) -> Iterator[list[Record]]:
    while batch := list(islice(records, BATCH)):
        yield batch


def _is_local_compaction(sent: Sent) -> bool:
    return sent.kind is Purpose.COMPACTION and not sent.remote


def _retries(sent: Sent, history: list[WireItem]) -> list[list[WireItem]]:
    """The histories of the retries, when every one of them is known to have been sent."""
    if not _is_local_compaction(sent) or sent.failed != OVERFLOW:
        return []
    steps = descent(history)
    return steps if len(steps) + 1 == sent.attempts else []
