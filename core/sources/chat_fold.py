"""The fold over the requests of a log: each is compared with the one before.

Where the next request does not begin with what the last one carried, what is missing, what reads
differently and what is new are found item by item, and told as a compaction or as an edit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from .. import events as e
from ..amounts import count
from ..compaction.policy import Trigger
from ..costs import estimate_item
from ..items import Item, Message, Role
from ..tokens import Basis, Scope, Tokens
from .compare import as_summary, is_system, match_items, new_from, summary_of
from .conversations import Conversations, Request
from .lines import Line
from .log_items import items_of
from .opencode_v1 import Piece
from .outbox import Outbox
from .request_log import Logged, logged
from .shown import Edit, Shown

AGENT: Final = "request log"
POLICY: Final = "(unknown program)"
STAGE: Final = "compared"


class Comparer:
    """The fold over the rows. Requests of other conversations than the one with this number are
    told in one note before the next request of this one: it shows whether one of them asked for
    the summary that stands in it."""

    def __init__(self, title: str = "", conversation: int = 1) -> None:
        self._title = title
        self._conversations = Conversations()
        self._wanted = conversation
        self._beside: list[tuple[int, Request]] = []
        self._told: Request | None = None
        self._out = Outbox()
        self._shown = Shown(self._out)
        self._numbers: dict[str, Logged] = {}
        self._begun = False
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
                    self._request(Request(found, items_of(found)))
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
        """Nothing more comes for now: what is beside this conversation is told."""
        self._tell_beside()
        return self._out.ready()

    # -- one request after the other -------------------------------------------------------------

    def _request(self, request: Request) -> None:
        number = self._conversations.assign(request).number
        if number != self._wanted:
            self._beside.append((number, request))
            return
        waiting = [each for _, each in self._beside] or ([self._told] if self._told else [])
        asked = next((each for each in reversed(waiting) if _told_in(each, request)), None)
        self._tell_beside(asked)
        self._told = None
        if asked is not None:
            self._summary(asked.logged)
        self._next(request, asked.logged.answer.strip() if asked is not None else "")

    def _tell_beside(self, asked: Request | None = None) -> None:
        """One note for the requests since the last one of this conversation, but for the one that
        asked for a summary."""
        beside = [(number, each) for number, each in self._beside if each is not asked]
        if self._beside:
            self._told = self._beside[-1][1]
        self._beside.clear()
        if not beside:
            return
        rows = [each.logged.row + 1 for _, each in beside]
        numbers = sorted({number for number, _ in beside})
        many = len(rows) > 1
        told = f"{len(rows):,} requests" if many else "a request"
        where = f"rows {rows[0]:,} to {rows[-1]:,}" if many else f"row {rows[0]:,}"
        which = ", ".join(str(number) for number in numbers[:8])
        text = (
            f"{told} beside this one ({where}), of another conversation: --session "
            f"{which} shows {'them' if many else 'it'}"
        )
        last = beside[-1][1].logged
        self._out.at = last.at or self._out.at
        self._out.emit(self._out.not_before(last.row), e.Note(kind="beside", text=text))

    def _summary(self, found: Logged) -> None:
        """The request whose answer is the summary in the next one."""
        self._out.at = found.at or self._out.at
        n = self._out.not_before(found.row)
        text = (
            f"a request of {count(len(found.sent), 'message')} beside this one: the summary that "
            "follows was its answer"
        )
        self._out.emit(n, e.Note(kind="beside", text=text))
        self._sent += 1
        purpose = e.Purpose.COMPACTION
        self._out.emit(n, e.RequestSent(request=self._sent, purpose=purpose, model=found.model))
        if found.usage is not None:
            event = e.UsageReported(usage=found.usage, purpose=purpose, model=found.model)
            self._out.emit(n, event)

    def _next(self, request: Request, answer: str) -> None:
        found, items = request.logged, request.items
        self._out.at = found.at or self._out.at
        if not self._begun:
            self._begin(found)
        n = self._out.not_before(found.row)
        if found.model and found.model != self._model:
            if self._model:
                self._out.emit(n, e.ModelChanged(model=found.model, previous=self._model))
            self._model = found.model
        new = items if found.goes_on else self._compare(found, items, answer)
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

    def _compare(self, found: Logged, items: Sequence[Item], answer: str) -> Sequence[Item]:
        """Tell what was taken out or rewritten; gives the items that are simply new."""
        held = self._shown.held
        before = [each.item for each in held]
        matches = match_items(before, items)
        kept = {at for at, _ in matches.values()}
        last = max(matches, default=-1)
        ends_alike = bool(before) and len(before) - 1 in kept
        taken_back = _is_prefix(matches, len(before)) and (
            summary_of(items, matches, len(items), answer) is None
        )
        at_once = ends_alike or not before or taken_back
        start = last + 1 if at_once else new_from(items, last + 1)
        target = list(items[:start])
        pieces: list[Piece] = []
        speaker = ""
        spoken = summary_of(items, matches, start, answer) if len(kept) < len(before) else None
        for at, item in enumerate(target):
            if at in matches:
                place, same = matches[at]
                pieces.append(Piece(held[place].key, held[place].item if same else item, found.row))
                continue
            self._key += 1
            key = str(self._key)
            if at == spoken:
                speaker, item = key, as_summary(item)
            pieces.append(Piece(key, item, found.row))
        unchanged = len(pieces) == len(held) and all(
            piece.key == each.key and piece.item == each.item
            for piece, each in zip(pieces, held, strict=True)
        )
        if not unchanged:
            self._edit(found, before, pieces, speaker, taken_back=taken_back)
        return items[start:]

    def _edit(
        self, found: Logged, before: Sequence[Item], pieces: Sequence[Piece], speaker: str,
        *, taken_back: bool,
    ) -> None:  # fmt: skip
        self._ordinal += 1
        edit = self._shown.edit(found.row, pieces, self._ordinal, speaker)
        change = edit.change
        rewritten = [old for old, _ in change.replaced]
        by_id = {each.id: each for each in edit.before_entries}
        only_system = not change.removed and all(is_system(by_id[old].item) for old in rewritten)
        if only_system:
            self._ordinal -= 1
            self._rolled_back(edit, "the system text reads differently from here on")
            return
        if taken_back:
            # A turn that was taken back, or a request that went beside on the same beginning.
            self._ordinal -= 1
            self._rolled_back(edit, "the end of the request before is not there")
            return
        counts = (
            f"of {count(len(before), 'item')} {len(change.kept):,} carried on, "
            f"{len(change.removed):,} gone, {len(rewritten):,} with another text"
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
        self._out.emit(edit.n, edit.taken_back(reason=edit.told(why)))


def _is_prefix(matches: dict[int, tuple[int, bool]], before: int) -> bool:
    """What is kept is the beginning as it was, and at least half of all."""
    kept = len(matches)
    alike = all(matches.get(at) == (at, True) for at in range(kept))
    return alike and kept < before <= 2 * kept


def _told_in(asked: Request, request: Request) -> bool:
    text = asked.logged.answer.strip()
    return len(text) > 20 and any(text in item.text for item in request.items)


def _estimated(items: Sequence[Item]) -> Tokens:
    return Tokens(sum(estimate_item(item) for item in items), Basis.ESTIMATED, Scope.MESSAGES)
