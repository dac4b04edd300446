"""The compactions of a rollout as events: those that happened, and those that failed.

A compaction that happened is a line of the file. Its phase and its cause are not stored, so the
record is held back until the lines behind it have told them. A compaction that failed has no line:
it is inferred from an error that ended a turn and from what stands, or does not stand, before it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from .. import events as e
from ..compaction.policies.codex.due import Cause, Phase
from ..compaction.policy import Trigger
from ..context import EntryId
from ..tokens import Basis, Scope, Tokens, Usage
from .codex_cards import (
    Setup,
    Variety,
    cause_of,
    compaction_edit,
    moment_of,
    possible_phases,
    reason_text,
    rollback_edit,
    trigger_of,
    variety_of,
)
from .codex_items import (
    int_of,
    is_model_made,
    is_real_user,
    split_summary,
    text_of,
    texts_of,
    type_of,
)
from .codex_meter import Meter
from .codex_reading import Reading
from .codex_replay import Held, rebuilt
from .codex_requests import Sent
from .codex_tokens import estimate_items, tokens_of_bytes
from .cutting import Cut
from .outbox import Slot

OVERFLOW: Final = "context_window_exceeded"


class _Waiting(NamedTuple):
    """A compaction between two phases, or before its new settings are known."""

    slot: Slot
    phases: tuple[Phase, ...]
    before: Setup
    arithmetic: str
    asked: bool
    used: int


class _Suspect(NamedTuple):
    """A request that an error ended, and which may have been a compaction's."""

    sent: Sent
    used: int
    error: str
    kind: str


class Compactions:
    """The fold over compacted lines, errors and rollbacks."""

    def __init__(self, reading: Reading, meter: Meter) -> None:
        self._r = reading
        self._meter = meter
        self._waiting: _Waiting | None = None
        self._suspect: _Suspect | None = None
        self._made: list[int] = []
        self._count = 0

    def begin_at(self, count: int) -> None:
        """As many compactions lie before the part of the file that is read."""
        self._count = count

    # -- what happened -----------------------------------------------------------------------------

    def compacted(self, n: int, payload: dict[str, Any]) -> None:
        """A compacted line."""
        self.resolve()
        r = self._r
        message = text_of(payload.get("message"))
        before = r.visible()
        listed = payload.get("replacement_history")
        recorded = isinstance(listed, list)
        replacement = (
            [raw for raw in listed if isinstance(raw, dict)]
            if isinstance(listed, list)
            else rebuilt([r.whole(held) for held in before], message)
        )
        variety = variety_of(message, replacement)
        unmarked = _ends_in_answer(before, message)
        announced = r.requests.answering is not None or unmarked
        remote = variety is Variety.REMOTE
        sent = r.requests.compacted(remote=remote, own_answer=unmarked)
        if sent is not None and not announced:
            r.request(sent)
        if sent is not None and not unmarked:
            response = text_of(payload.get("compaction_response_id"))
            cost = self._meter.usage_of_response(response)
            self._meter.summary_usage(n, cost, response)
        else:
            cost = self._meter.last_record if unmarked else None
        reported = self._meter.before_last if unmarked else r.usage
        counted = [held.raw for held in (before[:-1] if unmarked else before)]
        used, arithmetic = r.used(counted, reported)
        after = tokens_of_bytes(len(r.head.instructions.encode("utf-8", "replace")))
        after += estimate_items(replacement, r.version_numbers)
        self._count += 1
        shortened = r.shortened(recorded=recorded)
        edit = compaction_edit(before, replacement, message, n, self._count, shortened)
        event = e.HistoryCompacted(
            ordinal=self._count,
            pass_id=f"codex-{n}",
            policy=f"codex-{variety}",
            stage=str(variety),
            moment=None,
            trigger=Trigger.AUTO,
            reason="",
            segments=edit.segments,
            items_before=len(before),
            items_after=len(replacement),
            kept=len(edit.change.kept),
            removed=len(edit.change.removed),
            replaced=len(edit.change.replaced),
            inserted=len(edit.change.inserted),
            removed_ids=edit.removed_ids,
            before=Tokens(used, Basis.ESTIMATED, Scope.REQUEST),
            after=Tokens(after, Basis.ESTIMATED, Scope.REQUEST),
            usage=reported,
            summary=_summary(message) if variety is Variety.LOCAL else None,
            opaque=remote,
            summariser=self._summariser(variety, sent, cost),
            window=_window_number(payload, self._count),
            marks=_marks(variety, message),
            evidence="recorded" if recorded else "derived",
            reason_evidence="inferred",
            seconds=max(0.0, r.out.at - self._meter.tried_at) if sent and sent.repeats else 0.0,
        )
        asked = variety is Variety.TOKEN_BUDGET and r.model_asked_for_window()
        phases = self._phases(before)
        slot = r.out.emit(n, event, hold=True)
        self._waiting = _Waiting(slot, phases, r.settings, arithmetic, asked, used)
        r.history.replace(edit.held, n)
        self._made.append(self._count)
        self._meter.compacted(after)
        if len(phases) == 1 and phases[0] is not Phase.PRE_TURN:
            self.resolve()

    def roll_back(self, n: int, turns: int) -> None:
        """A thread_rolled_back line."""
        self.resolve()
        r = self._r
        before, made = r.visible(), r.history.compactions
        done = r.history.roll_back(turns)
        if not done:
            text = f"rollback of {turns} turns: the file holds none to take back"
            r.out.add(n, e.Note(kind="rollback", text=text))
            return
        undone = tuple(self._made[r.history.compactions :]) if r.history.compactions < made else ()
        self._made = self._made[: r.history.compactions]
        edit = rollback_edit(before, [held for held in r.history.held if not held.answer], n)
        r.history.keep(edit.held)
        r.usage = None
        r.out.add(
            n,
            e.HistoryRolledBack(
                turns=done,
                segments=edit.segments,
                items_before=len(before),
                items_after=len(edit.held),
                removed=len(edit.change.removed),
                removed_ids=edit.removed_ids,
                inserted=len(edit.change.inserted),
                undone=undone,
            ),
        )

    # -- what the next lines tell ------------------------------------------------------------------

    def settings(self, new: Setup) -> None:
        """New settings of a turn: they tell the cause of a compaction before the turn."""
        waiting = self._waiting
        if waiting is not None and Phase.PRE_TURN in waiting.phases:
            cause = cause_of(Phase.PRE_TURN, waiting.before, new)
            if len(waiting.phases) == 1 or cause is not Cause.CONTEXT_LIMIT:
                self._close(Phase.PRE_TURN, new)

    def went_on(self) -> None:
        """The turn goes on with an item: nothing was over, and nobody had asked."""
        waiting = self._waiting
        if waiting is not None:
            pre = Phase.PRE_TURN in waiting.phases
            self._close(Phase.PRE_TURN if pre else Phase.MID_TURN, waiting.before)

    def ended(self) -> None:
        """The task is over, with nothing behind the compaction."""
        waiting = self._waiting
        if waiting is not None:
            self._close(waiting.phases[-1], waiting.before)

    def resolve(self) -> None:
        """Nothing more will tell: the first possible phase, marked as a guess if there are two."""
        waiting = self._waiting
        if waiting is not None:
            self._close(waiting.phases[0], waiting.before, sure=len(waiting.phases) == 1)

    def _close(self, phase: Phase, after: Setup, *, sure: bool = True) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None or not isinstance(waiting.slot.event, e.HistoryCompacted):
            return
        cause = cause_of(phase, waiting.before, after, asked=waiting.asked)
        guess = () if sure else (f"phase is a guess between {' and '.join(waiting.phases)}",)
        waiting.slot.exchange(
            msgspec.structs.replace(
                waiting.slot.event,
                phase=str(phase),
                moment=moment_of(phase, cause),
                trigger=trigger_of(phase),
                reason=reason_text(cause, waiting.before, after, waiting.arithmetic),
                marks=(*waiting.slot.event.marks, *guess),
            )
        )
        waiting.slot.held = False
        self._judge_suspect(waiting.used, phase, cause, waiting.slot)

    def _phases(self, before: list[Held]) -> tuple[Phase, ...]:
        r = self._r
        own = r.task is not None and r.task.own_items
        phases = possible_phases(before, own_items=own)
        if Phase.STANDALONE in phases and r.task is not None and r.tasks_are_attributed:
            return (Phase.PRE_TURN,) if r.task.attributed else (Phase.STANDALONE,)
        return phases

    def _summariser(
        self, variety: Variety, sent: Sent | None, usage: Usage | None
    ) -> e.Summariser | None:
        if variety is Variety.TOKEN_BUDGET:
            return None
        attempts = sent.attempts if sent else 1
        return e.Summariser(model=self._r.settings.model, usage=usage, attempts=attempts)

    # -- what failed -------------------------------------------------------------------------------

    def error(self, n: int, message: str, kind: str) -> None:
        """An error ended the turn: a turn's request, or a compaction's?"""
        r = self._r
        if r.requests.open:
            self._raise(n, message, kind, e.Purpose.TURN)
            return
        early = r.task is not None and not r.task.settings and r.modern
        tries = r.requests.repeats
        overflow = kind == OVERFLOW
        used, _ = r.used([held.raw for held in r.visible()], r.usage)
        certain = (early and (tries > 0 or self._repeats_suspect(used))) or "compact" in message
        if certain or (overflow and r.modern and tries > 1):
            sent = r.requests.failed(n, e.Purpose.COMPACTION, kind)
            r.request(sent)
            phase = Phase.PRE_TURN if early else Phase.MID_TURN
            self._judge_suspect(used, phase, Cause.CONTEXT_LIMIT, None, n)
            self.failed(n, sent, phase, message, kind)
            self._raise(n, message, kind, e.Purpose.COMPACTION)
            return
        sent = r.requests.failed(n, e.Purpose.TURN, kind)
        if overflow:
            r.request(sent)
        else:
            self._suspect = _Suspect(sent, used, message, kind)
        self._raise(n, message, kind, e.Purpose.TURN)

    def failed(self, n: int, sent: Sent, phase: Phase | None, reason: str, kind: str) -> None:
        """A compaction failed; the history is what it was."""
        self._r.out.add(n, _failure(n, sent, phase, reason, kind))

    def settle_answer(self, n: int) -> None:
        """The answer of a compaction that was never applied stays in Codex's history."""
        r = self._r
        sent = r.requests.abandoned()
        if sent is None:
            return
        self._meter.summary_usage(n, self._meter.last_record)
        kept = [held for held in r.history.held if not held.answer]
        answers = [held for held in r.history.held if held.answer]
        r.history.keep(kept)
        note = "answer of a compaction that was not applied: Codex goes on with it"
        for part, held in enumerate(answers, 1):
            again = Held(EntryId(n, part), held.raw, held.item)
            r.append(n, again, note, said=is_real_user(held.raw))
        self.failed(n, sent, None, "no compacted line followed the answer", "aborted")

    def _repeats_suspect(self, used: int) -> bool:
        return self._suspect is not None and self._suspect.used == used

    def _judge_suspect(
        self, used: int, phase: Phase, cause: Cause, slot: Slot | None, n: int = 0
    ) -> None:
        """A compaction at the start of a turn, at the very fill at which an error had ended the
        turn before: the limit was reached then already, so what failed was a compaction."""
        suspect, self._suspect = self._suspect, None
        same = suspect is not None and suspect.used == used
        if suspect is None or not same or (phase, cause) != (Phase.PRE_TURN, Cause.CONTEXT_LIMIT):
            return
        suspect.sent.kind = e.Purpose.COMPACTION
        where = f"{suspect.error} (at line {suspect.sent.line}, seen only now)"
        failure = _failure(suspect.sent.line, suspect.sent, Phase.MID_TURN, where, suspect.kind)
        if slot is not None:
            slot.put_first(failure)
        else:
            self._r.out.add(n, failure)

    def _raise(self, n: int, message: str, kind: str, purpose: e.Purpose) -> None:
        if kind == OVERFLOW:
            limit = self._r.window
            event: e.Event = e.ContextOverflowed(message=message, limit=limit, purpose=purpose)
        else:
            event = e.ErrorRaised(kind=kind or "error", message=message, where="codex")
        self._r.out.add(n, event)


def _failure(n: int, sent: Sent, phase: Phase | None, reason: str, kind: str) -> e.CompactionFailed:
    return e.CompactionFailed(
        pass_id=f"codex-failed-{n}",
        policy="codex-local" if not sent.remote else "codex-remote",
        stage="remote" if sent.remote else "local",
        phase=str(phase or ""),
        moment=moment_of(phase, Cause.CONTEXT_LIMIT),
        trigger=Trigger.AUTO,
        outcome=e.Outcome.ABORTED if kind == "aborted" else e.Outcome.FAILED,
        reason=reason,
        kind=kind,
        attempts=sent.attempts,
        evidence="inferred",
    )


def _ends_in_answer(before: list[Held], message: str) -> bool:
    """Older files do not mark the answer of the compaction request: it is the last message."""
    if not before or not message or not is_model_made(before[-1].raw):
        return False
    if type_of(before[-1].raw) != "message":
        return False
    texts = texts_of(before[-1].raw.get("content"))
    if len(texts) == 1 and isinstance(texts[0], Cut):
        return texts[0].ends(message)
    text = "".join(texts)
    return bool(text) and message.endswith(text)


def _summary(message: str) -> str:
    parts = split_summary(message)
    return parts[1] if parts else message


def _marks(variety: Variety, message: str) -> tuple[str, ...]:
    if variety is Variety.LOCAL and not _summary(message).strip():
        return ("the answer of the summary request was empty",)
    return ()


def _window_number(payload: dict[str, Any], count: int) -> int:
    """The number of the new window; old files put it where the id is now, or nowhere."""
    number = int_of(payload.get("window_number"))
    if number is None:
        number = int_of(payload.get("window_id"))
    return count if number is None else number
