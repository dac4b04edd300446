"""The compactions of a rollout as events: those that happened, and those that failed.

A compaction that happened is a line of the file. Its phase and its cause are not stored, so the
record is held back until the lines behind it have told them. A compaction that failed has no line:
it is inferred from an error that ended a turn and from what stands, or does not stand, before it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from .. import events as e
from ..amounts import count
from ..compaction.policies.codex.due import Cause, Phase
from ..compaction.policy import Trigger
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
from .codex_failures import Failures
from .codex_items import (
    CALLS,
    OUTPUTS,
    int_of,
    is_harness,
    is_model_made,
    split_summary,
    text_of,
    texts_of,
    type_of,
)
from .codex_meter import Meter
from .codex_reading import Reading
from .codex_replay import Held, rebuilt
from .codex_requests import Sent
from .codex_tokens import estimate_after
from .cutting import Cut
from .outbox import Slot

RESTORES: Final = (0, 152)
"""From this version on a rollback brings back what lay before a compaction that it undoes."""


class _Waiting(NamedTuple):
    """A compaction between two phases, or before its new settings are known."""

    slot: Slot
    phases: tuple[Phase, ...]
    before: Setup
    arithmetic: str
    asked: bool
    used: int


class Compactions:
    """The fold over compacted lines, errors and rollbacks."""

    def __init__(self, reading: Reading, meter: Meter) -> None:
        self._r = reading
        self._meter = meter
        self._waiting: _Waiting | None = None
        self.failures = Failures(reading, meter)
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
        unmarked = (
            not r.tasks_are_attributed
            and r.requests.doubtful is None
            and _ends_in_answer(before, message)
        )
        announced = r.requests.answering is not None or unmarked
        remote = self.failures.remote = variety is Variety.REMOTE
        sent = r.requests.compacted(remote=remote, own_answer=unmarked)
        if sent is None and variety is not Variety.TOKEN_BUDGET:
            # It leaves no other mark: the first remote kind, and some versions of the others.
            sent = r.requests.answered(n, remote=remote)
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
        rule = estimate_after(r.head.instructions, replacement, r.version_numbers)
        # The base instructions, which count too, are not in every old file.
        after = self._meter.told_already(rule)
        self._count += 1
        r.made += 1
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
            window=_window_number(payload, r.made),
            marks=_marks(variety, message),
            evidence="recorded" if recorded else "derived",
            reason_evidence="inferred",
            seconds=max(0.0, r.out.at - sent.tried[0]) if sent and sent.tried else 0.0,
        )
        asked = variety is Variety.TOKEN_BUDGET and r.model_asked_for_window()
        phases = self._phases(before[:-1] if unmarked else before, answered=unmarked)
        slot = r.out.emit(n, event, hold=True)
        self._waiting = _Waiting(slot, phases, r.settings, arithmetic, asked, used)
        r.history.replace(edit.held, n, recorded=recorded)
        self._made.append(self._count)
        self._meter.compacted(n, rule)
        if len(phases) == 1 and phases[0] is not Phase.PRE_TURN:
            self.resolve()

    def roll_back(self, n: int, turns: int) -> None:
        """A thread_rolled_back line."""
        self.resolve()
        r = self._r
        before, made = r.visible(), r.history.compactions
        done = r.history.roll_back(turns, restores=r.version_numbers >= RESTORES)
        if not done:
            text = f"rollback of {count(turns, 'turn')}: the file holds none to take back"
            r.out.add(n, e.Note(kind="rollback", text=text))
            return
        undone = tuple(self._made[r.history.compactions :]) if r.history.compactions < made else ()
        self._made = self._made[: r.history.compactions]
        edit = rollback_edit(before, [held for held in r.history.held if not held.answer], n)
        r.history.keep(edit.held)
        r.usage = None
        self._meter.remade(n, "a rollback")
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

    def went_on(self, *, made: bool = False) -> None:
        """The turn goes on with an item: nothing was over, and nobody had asked. `made` says that
        it is the model's."""
        waiting = self._waiting
        if waiting is None:
            return
        pre = Phase.PRE_TURN in waiting.phases
        if self._r.task is not None:
            self._close(Phase.PRE_TURN if pre else Phase.MID_TURN, waiting.before)
        elif made:
            # Files without tasks: no message of the user in between, so it is the same turn.
            self._close(Phase.MID_TURN, waiting.before)
        else:
            self._close(waiting.phases[0], waiting.before, sure=len(waiting.phases) == 1)

    def ended(self, n: int) -> None:
        """The task is over, with nothing behind the compaction."""
        self.failures.report_unapplied(n, "its answer held nothing to apply", "")
        self._close_last()

    def _close_last(self) -> None:
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
        self.failures.judge_suspect(waiting.used, phase, cause, waiting.slot)

    def _phases(self, before: list[Held], *, answered: bool) -> tuple[Phase, ...]:
        """`answered`: the answer is recorded like any item of the task."""
        r = self._r
        if r.task is None:
            last = next((each.raw for each in reversed(before) if not is_harness(each.raw)), {})
            between = type_of(last) in CALLS or type_of(last) in OUTPUTS
            return (Phase.MID_TURN,) if between else (Phase.PRE_TURN, Phase.STANDALONE)
        own = r.task.own_items > answered
        phases = possible_phases(before, own_items=own)
        if Phase.STANDALONE in phases and r.tasks_are_attributed:
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
        """An error ended the turn."""
        self._close_last()
        self.failures.error(n, message, kind)


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
