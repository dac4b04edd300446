"""A plain log of the requests of any program: what happened between two requests is compared.

Nothing in such a log announces a compaction. The context is what the last request carried; where
the next one does not begin with it, what is missing, what reads differently and what is new are
found by comparing both, item by item. So every card from here is derived, and its cause unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from .. import events as e
from .. import jsontext
from ..compaction.policy import Trigger
from ..costs import estimate_item
from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Kind,
    Message,
    Role,
    kind_of,
)
from ..tokens import Basis, Scope, Tokens
from .base import RebuiltRequest, WireItem
from .follow import Appended, FileEvent, Tail
from .following import follow_tail
from .lines import Line, LineReader, is_packed
from .log_items import items_of
from .opencode_v1 import Piece
from .outbox import Outbox
from .request_log import Logged, logged, logged_requests, read_document, recognised, rows
from .sample import Sample
from .shown import Edit, Shown

AGENT: Final = "request log"
POLICY: Final = "(unknown program)"
STAGE: Final = "compared"
_SUMMARY: Final = 120
"""Characters from which an inserted message can be a summary of what left."""


def recognise(sample: Sample) -> str:
    """A log is known by any of its first rows."""
    return "" if sample.folder else recognised(sample)


class ChatSource:
    """One log. Every method reads it anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[e.Record]:
        """All events. `Record.n` is the row of the request, from 0."""
        comparer = Comparer(self.path.stem)
        for line in rows(self.path):
            yield from comparer.feed(line)
        yield from comparer.flush()

    def tail(self) -> ChatTail:
        """The same as `follow`, for a thread."""
        return ChatTail(self.path)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[e.Record]]:
        """The events of the log, then those of what is appended, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request as it is logged; its position is its own row."""
        for found in logged_requests(self.path):
            yield RebuiltRequest(
                position=found.row,
                kind=e.Purpose.TURN,
                input=found.sent,
                instructions=found.system,
                failed=f"HTTP {found.status}" if found.status >= 400 else "",
                evidence="recorded",
            )

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """What the last request up to this row carried, in its own form."""
        last: list[WireItem] = []
        for found in logged_requests(self.path):
            if position is not None and found.row > position:
                break
            last = found.sent
        return last


SOURCE = ChatSource


class ChatTail:
    """A log that may still grow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._comparer = Comparer(path.stem)
        self._whole = is_packed(path) or read_document(path) is not None
        self._done = False
        self._tail = Tail(path)
        self._reader = LineReader()

    def more(self) -> Iterator[e.Record]:
        """The records since the last call."""
        if self._whole:
            if not self._done:
                self._done = True
                for line in rows(self.path):
                    yield from self._comparer.feed(line)
                yield from self._comparer.flush()
            return
        quiet = True
        while not self._tail.ended and (change := self._tail.look()) is not None:
            quiet = False
            match change:
                case Appended(data=data):
                    for line in self._reader.feed(data):
                        yield from self._comparer.feed(line)
                case FileEvent(text=text, at=at, lost=lost):
                    event = e.ErrorRaised(kind="file", message=text) if lost else None
                    told = event or e.Note(kind="file", text=text)
                    yield e.Record(self._reader.number, at, told)
        if quiet or not self._done:
            self._done = True
            for line in self._reader.whole():
                yield from self._comparer.feed(line)
            yield from self._comparer.flush()


class _Request(NamedTuple):
    logged: Logged
    items: tuple[Item, ...]


class Comparer:
    """The fold over the rows. A request that has nothing in common with the one before waits for
    the next: that one shows whether it was another conversation beside this one."""

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._out = Outbox()
        self._shown = Shown(self._out)
        self._numbers: dict[str, Logged] = {}
        self._begun = False
        self._apart: _Request | None = None
        self._key = 0
        self._sent = 0
        self._turn = 0
        self._ordinal = 0
        self._model = ""

    def feed(self, line: Line) -> list[e.Record]:
        """Take one row."""
        found: Logged | None = None
        if line.value is not None:
            try:
                found = logged(line.number, line.value, self._numbers)
                if found is not None:
                    self._request(_Request(found, items_of(found)))
            except RecursionError:
                line = msgspec.structs.replace(line, value=None, fault="it is nested too deeply")
        if line.value is None or (found is None and line.fault):
            message = f"row {line.number + 1} is left out: {line.fault}"
            event = e.ErrorRaised(kind="bad_line", message=message, line=line.number)
            self._out.emit(self._out.not_before(line.number), event)
        elif found is None:
            kind = str(line.value.get("type") or line.value.get("kind") or "row without a request")
            unknown = e.UnknownRecord(type=kind[:60], line=line.number, size=line.size)
            self._out.emit(self._out.not_before(line.number), unknown)
        return self._out.ready()

    def flush(self) -> list[e.Record]:
        """Nothing more comes for now: what waited was a compaction of everything."""
        apart, self._apart = self._apart, None
        if apart is not None:
            self._next(apart)
        return self._out.ready()

    # -- one request after the other -------------------------------------------------------------

    def _request(self, request: _Request) -> None:
        apart = self._apart
        if apart is not None:
            self._apart = None
            if self._has_common(request) or _told_in(apart.logged.answer, request):
                self._beside(apart, _told_in(apart.logged.answer, request))
            else:
                self._next(apart)
        if self._shown.held and not self._has_common(request) and apart is None:
            self._apart = request
            return
        self._next(request, apart.logged if apart is not None else None)

    def _has_common(self, request: _Request) -> bool:
        """Something said is in both: system texts are shared by unrelated requests too."""
        shown = {_sign(held.item) for held in self._shown.held if not _is_system(held.item)}
        return any(_sign(item) in shown for item in request.items)

    def _beside(self, request: _Request, compaction: bool) -> None:
        found = request.logged
        what = (
            "the summary that follows was its answer" if compaction else "of another conversation"
        )
        text = f"a request of {len(found.sent)} messages beside this one: {what}"
        self._out.at = found.at or self._out.at
        n = self._out.not_before(found.row)
        self._out.emit(n, e.Note(kind="beside", text=text))
        if compaction:
            self._sent += 1
            purpose = e.Purpose.COMPACTION
            self._out.emit(n, e.RequestSent(request=self._sent, purpose=purpose, model=found.model))
            if found.usage is not None:
                event = e.UsageReported(usage=found.usage, purpose=purpose, model=found.model)
                self._out.emit(n, event)

    def _next(self, request: _Request, summary: Logged | None = None) -> None:
        found, items = request
        self._out.at = found.at or self._out.at
        if not self._begun:
            self._begin(found)
        n = self._out.not_before(found.row)
        if found.model and found.model != self._model:
            if self._model:
                self._out.emit(n, e.ModelChanged(model=found.model, previous=self._model))
            self._model = found.model
        new = items if found.goes_on else self._compare(found, items, summary)
        for item in new:
            if isinstance(item, Message) and item.role is Role.USER:
                self._turn += 1
                self._out.emit(self._out.not_before(n), e.TurnStarted(turn=self._turn))
            self._key += 1
            self._shown.append(Piece(str(self._key), item, n), turn=self._turn, round=self._sent)
        self._sent += 1
        n = self._out.not_before(n)
        self._out.emit(
            n,
            e.RequestSent(request=self._sent, model=found.model, turn=self._turn, round=self._sent),
        )
        if found.status >= 400:
            text = f"the request ended with HTTP status {found.status}"
            self._out.emit(n, e.ErrorRaised(kind="http", message=text, where="log"))
        if found.usage is not None:
            event = e.UsageReported(usage=found.usage, model=found.model, request=self._sent)
            self._out.emit(n, event)

    def _begin(self, found: Logged) -> None:
        self._begun = True
        started = e.SessionStarted(
            session_id=self._title,
            agent=AGENT,
            model=found.model,
            wire=found.wire,
            title=self._title,
            instructions=found.system,
        )
        self._out.emit(found.row, started)

    # -- what differs ----------------------------------------------------------------------------

    def _compare(
        self, found: Logged, items: Sequence[Item], summary: Logged | None
    ) -> Sequence[Item]:
        """Tell what was taken out or rewritten; gives the items that are simply new."""
        held = self._shown.held
        before = [each.item for each in held]
        matches = match_items(before, items)
        kept = {at for at, _ in matches.values()}
        last = max(matches, default=-1)
        ends_alike = bool(before) and len(before) - 1 in kept
        new_from = last + 1 if ends_alike or not before else _new_from(items, last + 1)
        target = list(items[:new_from])
        pieces: list[Piece] = []
        speaker = ""
        spoken = _summary_of(items, matches, new_from, summary) if len(kept) < len(before) else None
        for at, item in enumerate(target):
            if at in matches:
                place, same = matches[at]
                pieces.append(Piece(held[place].key, held[place].item if same else item, found.row))
                continue
            self._key += 1
            key = str(self._key)
            if at == spoken:
                speaker, item = key, _as_summary(item)
            pieces.append(Piece(key, item, found.row))
        unchanged = len(pieces) == len(held) and all(
            piece.key == each.key and piece.item == each.item
            for piece, each in zip(pieces, held, strict=True)
        )
        if not unchanged:
            self._edit(found, before, pieces, speaker)
        return items[new_from:]

    def _edit(
        self, found: Logged, before: Sequence[Item], pieces: Sequence[Piece], speaker: str
    ) -> None:
        self._ordinal += 1
        edit = self._shown.edit(found.row, pieces, self._ordinal, speaker)
        change = edit.change
        rewritten = [old for old, _ in change.replaced]
        by_id = {each.id: each for each in edit.before_entries}
        only_system = not change.removed and all(_is_system(by_id[old].item) for old in rewritten)
        if only_system:
            self._ordinal -= 1
            self._rolled_back(edit, "the system text reads differently from here on")
            return
        counts = (
            f"{len(change.kept)} of {len(before)} items are carried on, {len(change.removed)} are "
            f"gone, {len(rewritten)} read differently"
        )
        summary = next((piece.item.text for piece in pieces if piece.key == speaker), None)
        event = e.HistoryCompacted(
            ordinal=self._ordinal,
            pass_id=f"compared-{found.row}",
            policy=POLICY,
            stage=STAGE,
            moment=None,
            trigger=Trigger.AUTO,
            reason=f"found by comparing requests: {counts}; why is not in the log",
            segments=edit.segments,
            items_before=edit.before,
            items_after=len(change.after),
            kept=len(change.kept),
            removed=len(change.removed),
            replaced=len(rewritten),
            inserted=len(change.inserted),
            removed_ids=edit.removed_ids,
            before=_estimated(before),
            after=_estimated([entry.item for entry in change.after]),
            summary=summary,
            window=self._ordinal,
            evidence="derived",
            reason_evidence="unknown",
            marks=("which message is the summary is inferred",) if speaker else (),
        )
        self._out.emit(edit.n, event)

    def _rolled_back(self, edit: Edit, why: str) -> None:
        change = edit.change
        self._out.emit(edit.n, e.Note(kind="edit", text=why))
        event = e.HistoryRolledBack(
            turns=0,
            segments=edit.segments,
            items_before=edit.before,
            items_after=len(change.after),
            removed=len(change.removed),
            removed_ids=edit.removed_ids,
            inserted=len(change.inserted),
        )
        self._out.emit(edit.n, event)


def match_items(before: Sequence[Item], after: Sequence[Item]) -> dict[int, tuple[int, bool]]:
    """For places in `after` the place in `before` of the same item, and whether it reads the same.

    First what is equal, in order; then a result of the same call, and system texts, which may have
    been rewritten. No old item is used twice.
    """
    old, new = [_sign(item) for item in before], [_sign(item) for item in after]
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    found = {at: (at, True) for at in range(same)}
    matcher = SequenceMatcher(None, old[same:], new[same:], autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        found.update({same + b + k: (same + a + k, True) for k in range(size)})
    used = {at for at, _ in found.values()}
    free: dict[str, list[int]] = {}
    for at, item in enumerate(before):
        if at not in used and (name := _name(item)):
            free.setdefault(name, []).append(at)
    for at, item in enumerate(after):
        if at not in found and (name := _name(item)) and free.get(name):
            found[at] = (free[name].pop(0), False)
    return found


def _is_system(item: Item) -> bool:
    return kind_of(item) is Kind.SYSTEM


def _name(item: Item) -> str:
    """What an item is known by when it reads differently; empty when by nothing."""
    match item:
        case FunctionCallOutput(call_id=id):
            return f"output {id}"
        case FunctionCall(call_id=id):
            return f"call {id}"
        case Message(role=Role.SYSTEM | Role.DEVELOPER):
            return "system"
        case _:
            return ""


def _sign(item: Item) -> bytes:
    """Equal for equal content. A summary counts as the message that it was sent as."""
    if isinstance(item, CompactionSummary):
        item = Message(item.role, item.text)
    return jsontext.encode(item, deterministic=True)


def _new_from(items: Sequence[Item], start: int) -> int:
    """Where the new turn begins behind what a compaction put in: at the last message of the user,
    when something else stands before it."""
    for at in range(len(items) - 1, start, -1):
        item = items[at]
        if isinstance(item, Message) and item.role is Role.USER:
            return at
    return len(items)


def _summary_of(
    items: Sequence[Item],
    matches: dict[int, tuple[int, bool]],
    end: int,
    told: Logged | None,
) -> int | None:
    """The place of the message that stands for what left: the answer of the request before, if
    there was one, else the longest new text."""
    places = [
        at
        for at in range(end)
        if at not in matches and isinstance(items[at], Message) and items[at].text
    ]
    answer = told.answer.strip() if told is not None else ""
    for at in places:
        if answer and answer in items[at].text:
            return at
    longest = max(places, key=lambda at: len(items[at].text), default=None)
    return longest if longest is not None and len(items[longest].text) >= _SUMMARY else None


def _as_summary(item: Item) -> Item:
    if isinstance(item, Message) and isinstance(item.content, str):
        return CompactionSummary(item.content, role=item.role)
    return item


def _told_in(answer: str, request: _Request) -> bool:
    text = answer.strip()
    return len(text) > 20 and any(text in item.text for item in request.items)


def _estimated(items: Sequence[Item]) -> Tokens:
    return Tokens(sum(estimate_item(item) for item in items), Basis.ESTIMATED, Scope.MESSAGES)
