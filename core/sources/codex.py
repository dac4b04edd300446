"""Codex sessions: the rollout files of OpenAI's Codex CLI (recorded with 0.171.0).

A rollout is append-only JSON lines. What it says of the context is exact: the history at a line is
what Codex sent from there. What it leaves out (why a compaction ran, and when in its turn) is
inferred and marked so. Nothing is ever written, and no path found inside a file is opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from ..events import Purpose, Record
from .base import RebuiltRequest, WireItem
from .codex_events import Translator
from .codex_items import sent_form
from .codex_newest import newest
from .codex_reading import AGENT, Reading
from .codex_replay import descent
from .codex_requests import OVERFLOW, Sent
from .codex_tail import CodexTail
from .cutting import is_large
from .follow_lines import follow_lines
from .lines import read_lines
from .sample import Sample

_TYPES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
)
_TRIGGER: list[WireItem] = [{"type": "compaction_trigger"}]
"""What ends the request of a remote compaction."""
_TRIGGERED = (0, 140)
"""From this version on; the first remote kind had an address of its own for it."""
_BACKOFF = 0.18
"""Seconds that pass at least before a request is sent again after anything but an overflow: 200 ms
less a tenth for jitter. After an overflow it is sent again at once, without its oldest item."""
_TRIES_UNKNOWN = (
    "it was sent several times; whether later tries were trimmed, by one more of the oldest items "
    "each, is not in the file"
)
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
        translator = Translator(path=self.path)
        for line in read_lines(self.path):
            yield from translator.feed(line)
        yield from translator.flush()

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the file, then those of what is appended, in batches, until `stop`.

        What becomes of the file itself (shorter, replaced, gone, back) is a record too. Ends by
        itself when the file can no longer be the one that was being read.
        """
        translator = Translator(path=self.path)
        feed, flush = translator.feed, translator.flush
        async for batch in follow_lines(self.path, feed, flush, whole=self.read, stop=stop):
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
        translator = Translator(path=self.path)
        for line in read_lines(self.path):
            translator.feed(line)
        translator.flush()
        version = translator.reading.version_numbers
        wanted = sorted(translator.reading.requests.sent, key=lambda sent: sent.position)
        states = self._states(sent.position for sent in wanted)
        for sent, reading in zip(wanted, states, strict=True):
            head, history = reading.head, reading.history.raw
            retries = _retries(sent, history)
            request = RebuiltRequest(
                position=sent.position,
                kind=sent.kind,
                input=head.request(history),
                missing=_PROMPT_MISSING if _is_local_compaction(sent) else "",
                instructions="" if head.in_input else head.instructions,
                attempts=1 if retries else sent.attempts,
                failed=sent.failed,
                evidence=sent.evidence,
            )
            if sent.remote:
                request = _remote(request, reading, triggered=version >= _TRIGGERED)
            elif request.attempts > 1 and _is_local_compaction(sent):
                request = msgspec.structs.replace(request, left_out=_TRIES_UNKNOWN)
            yield request
            for shorter in retries:
                yield msgspec.structs.replace(
                    request, input=head.request(shorter), evidence="inferred"
                )

    def plain(self, messages: Iterable[WireItem]) -> list[WireItem]:
        """The items without the metadata that only some providers are sent."""
        return [sent_form(message) for message in messages]

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """Codex's history after line `position`, by the replay rule of the format.

        Between the answer of a compaction request and its compacted line the answer is in it.
        """
        (reading,) = self._states([-1 if position is None else position])
        return reading.history.raw

    def _states(self, positions: Iterable[int]) -> Iterator[Reading]:
        """What is known at each of these lines, which are in order; -1 is the end of the file."""
        translator = Translator(path=self.path)
        lines = read_lines(self.path)
        line = next(lines, None)
        for position in positions:
            while line is not None and (position < 0 or line.number <= position):
                translator.feed(line)
                line = next(lines, None)
            yield translator.reading


SOURCE = CodexSource


def _is_local_compaction(sent: Sent) -> bool:
    return sent.kind is Purpose.COMPACTION and not sent.remote


def _retries(sent: Sent, history: list[WireItem]) -> list[list[WireItem]]:
    """The histories of the retries, when every one of them is known to have been trimmed: either
    all the way down to nothing, or because each followed too soon for another cause."""
    if not _is_local_compaction(sent) or sent.attempts < 2:
        return []
    steps = descent(history)
    if sent.failed == OVERFLOW and len(steps) + 1 == sent.attempts:
        return steps
    soon = all(0 <= later - at < _BACKOFF for at, later in pairwise(sent.tried))
    return steps[: sent.attempts - 1] if soon and len(sent.tried) == sent.attempts else []


def _remote(request: RebuiltRequest, reading: Reading, *, triggered: bool) -> RebuiltRequest:
    """The request of a remote compaction: its end, and what was blanked for it to fit."""
    outputs = reading.blanked_outputs()
    left_out = (
        f"the text of the last {outputs:,} tool outputs, which was blanked for it to fit: "
        "what stood in its place is not in the file"
    )
    return msgspec.structs.replace(
        request,
        input=[*request.input, *(_TRIGGER if triggered else [])],
        left_out=left_out if outputs else "",
    )
