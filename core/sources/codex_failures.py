"""Requests of a rollout that ended in nothing: which were a compaction's, and what is told of them.

Codex writes the error that ended a turn, and not which request it was of. A request before the
settings of its turn were written can only be a compaction's; so is one with nothing to answer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .. import events as e
from ..compaction.policies.codex.due import Cause, Phase
from ..context import EntryId
from .codex_cards import moment_of, trigger_of
from .codex_items import half_of, is_real_user
from .codex_meter import Meter
from .codex_reading import Reading
from .codex_replay import Held
from .codex_requests import INTERRUPTED, OVERFLOW, Sent
from .outbox import Slot

AT_ONCE: Final = 0.1
"""Seconds between the cut of a turn's request and the end of the turn, at most."""


class _Suspect(NamedTuple):
    """A request that an error ended, and which may have been a compaction's."""

    sent: Sent
    used: int
    error: str
    kind: str


class Failures:
    """The fold over errors and interruptions. `remote` says that the provider compacts."""

    def __init__(self, reading: Reading, meter: Meter) -> None:
        self._r = reading
        self._meter = meter
        self._suspect: _Suspect | None = None
        self.remote = False

    def error(self, n: int, message: str, kind: str) -> None:
        """An error ended the turn: a turn's request, or a compaction's?"""
        r = self._r
        if self.report_unapplied(n, message, kind):
            self._raise(n, message, kind, e.Purpose.COMPACTION)
            return
        if r.requests.open:
            self._raise(n, message, kind, e.Purpose.TURN)
            return
        tries, overflow = r.requests.repeats, kind == OVERFLOW
        used, _ = r.used([held.raw for held in r.visible()], r.usage)
        if r.is_early or "compact" in message or (overflow and not r.requests.headed and tries > 1):
            sent = r.requests.failed(n, e.Purpose.COMPACTION, kind or "error", self._early_line())
            sent.remote = self._is_remote(message)
            r.request(sent)
            phase = self._early_phase() or Phase.MID_TURN
            self.judge_suspect(used, phase, Cause.CONTEXT_LIMIT, None, n)
            self._tell(n, sent, phase, message, kind)
            self._raise(n, message, kind, e.Purpose.COMPACTION)
            return
        sent = r.requests.failed(n, e.Purpose.TURN, kind)
        if overflow:
            r.request(sent)
        else:
            self._suspect = _Suspect(sent, used, message, kind)
        self._raise(n, message, kind, e.Purpose.TURN)

    def interrupted(self, n: int) -> None:
        """The turn was broken off. What had begun and given nothing by then was a request: of a
        compaction if it left its mark some time before, since a turn's leaves it when it is cut."""
        r = self._r
        self._meter.settle(sure=True)
        if not r.requests.repeats or r.requests.headed or r.requests.answering is not None:
            return
        compacting = r.is_early or r.out.at - r.requests.last_try > AT_ONCE
        kind = e.Purpose.COMPACTION if compacting else e.Purpose.TURN
        sent = r.requests.failed(n, kind, INTERRUPTED)
        r.request(sent)
        if compacting:
            phase = self._early_phase() or Phase.MID_TURN
            self._tell(n, sent, phase, "it was interrupted", "aborted")

    def lost(self, n: int) -> None:
        """The file holds no end of the turn before line `n`: its program was killed. What the model
        was to answer then had been sent."""
        r = self._r
        if r.task is None or not r.task.settings or not r.task.own_items or r.requests.headed:
            return
        raws = [held.raw for held in r.visible()]
        said = max((at for at, raw in enumerate(raws) if is_real_user(raw)), default=0)
        halves = [half for raw in raws[said:] if (half := half_of(raw))]
        answered = {half.call_id for half in halves if half.is_output}
        running = any(half.call_id not in answered for half in halves)
        if not r.requests.open and not running and not r.nothing_is_asked():
            r.request(r.requests.failed(n, e.Purpose.TURN, INTERRUPTED))

    def _early_phase(self) -> Phase | None:
        """The phase of a compaction before anything of its task was written; None for a later
        one."""
        r = self._r
        if not r.is_early or r.task is None:
            return None
        asked = r.tasks_are_attributed and not r.task.attributed
        return Phase.STANDALONE if asked else Phase.PRE_TURN

    def _early_line(self) -> int | None:
        r = self._r
        return r.task.line + 1 if r.is_early and r.task is not None else None

    def _is_remote(self, message: str) -> bool:
        """The provider compacts: the error says so, or the compactions so far."""
        return "remote compact" in message or (self.remote and "compact" not in message)

    def report_unapplied(self, n: int, reason: str, kind: str) -> bool:
        """A compaction was answered, and the answer could not be applied. Returns if so."""
        sent, self._meter.unapplied = self._meter.unapplied, None
        if sent is None:
            return False
        sent.failed = kind or "not applied"
        sent.remote = self._is_remote(reason if kind else "")
        phase = self._early_phase() or Phase.POST_TURN
        self._tell(n, sent, phase, reason, kind)
        return True

    def _tell(self, n: int, sent: Sent, phase: Phase | None, reason: str, kind: str) -> None:
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
        early = self._early_phase()
        self._tell(n, sent, early, "no compacted line followed the answer", "aborted")

    def judge_suspect(
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
        trigger=trigger_of(phase),
        outcome=e.Outcome.ABORTED if kind == "aborted" else e.Outcome.FAILED,
        reason=reason,
        kind=kind,
        attempts=sent.attempts,
        evidence="inferred",
    )
