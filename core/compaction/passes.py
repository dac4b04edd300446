"""One pass: the policy is asked once, its asks are answered, its edits checked and applied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from ..context import SegmentError
from ..events import ItemAppended, Outcome
from ..items import FunctionCallOutput
from ..tokens import Tokens
from .asks import Asks, Question, is_paid
from .breaker import Breaker
from .gate import Amend, Gate, Proposal, Refuse
from .guards import Fault, FaultKind, check
from .policy import (
    Answer,
    Append,
    Applied,
    Edit,
    Failure,
    FailureKind,
    Moment,
    Policy,
    Refused,
    Situation,
    Skip,
    SkipKind,
    Start,
    Step,
)
from .progress import Progress
from .recorder import Recorder
from .settings import EngineSettings, Guard, Verdict
from .telling import Checked, Telling


@dataclass(frozen=True)
class Effects:
    """What the engine lends to its passes."""

    recorder: Recorder
    settings: EngineSettings
    asks: Asks
    gate: Gate | None
    breaker: Breaker
    progress: Progress
    clock: Callable[[], float]
    said: set[tuple[str, Outcome]] = field(default_factory=set)
    """What was said in this turn already."""


class Pass:
    """One run of a policy over one situation."""

    def __init__(self, policy: Policy, situation: Situation, effects: Effects) -> None:
        self.policy = policy
        self.situation = situation
        self.effects = effects
        self._recorder = effects.recorder
        self._tell = Telling(
            effects.recorder, policy.name, situation, effects.breaker, effects.said
        )
        self._context = situation.context
        self._began = effects.clock()
        self._over = False
        self._paid = False
        self._failure: Failure | None = None
        self._repeat_mark = ""

    async def run(self) -> Verdict:
        """Drive the plan to its end. A cancellation is recorded and goes on."""
        plan = self.policy.plan(self.situation)
        answer: Answer = None
        try:
            while not self._over:
                try:
                    step = plan.send(answer)
                except StopIteration:
                    break
                except Exception as fault:
                    # A policy may be a user's own file: its error must not end the agent.
                    words = f"the policy raised {type(fault).__name__}: {fault}"
                    self._tell.failed(Outcome.FAILED, words, "policy")
                    break
                answer = await self._answer(step)
            if self._tell.open:
                self._unfinished()
        except asyncio.CancelledError:
            if self._tell.open:
                self._tell.failed(Outcome.ABORTED, "cancelled", "cancelled")
            raise
        finally:
            with suppress(Exception):
                plan.close()
        return self._tell.verdict

    async def _answer(self, step: Step) -> Answer:
        match step:
            case Start():
                self._tell.start(step)
                return None
            case Skip():
                self._skip(step)
                return None
            case Edit(output=FunctionCallOutput() as output):
                return self._cap(step, output)
            case Edit():
                return await self._edit(step)
            case Append():
                return self._append(step)
            case _:
                return await self._ask(step)

    # -- asks and skips ------------------------------------------------------------------------

    def _append(self, append: Append) -> Answer:
        if self._superseded():
            return self._refused("superseded")
        state = self._recorder.state
        self._recorder.emit(
            ItemAppended(item=append.item, turn=state.turn, round=state.rounds, note=append.reason)
        )
        self._context = self._recorder.state.context
        return Applied(self._context)

    async def _ask(self, ask: Question) -> Answer:
        if is_paid(ask):
            if refusal := self._closed_by_progress():
                return refusal
            self._tell.announce()
        answer = await self.effects.asks.answer(ask, self._tell.pass_id)
        self._failure = answer if isinstance(answer, Failure) else None
        self._paid = self._paid or (is_paid(ask) and self._failure is None)
        return answer

    def _closed_by_progress(self) -> Failure | None:
        closed = self.effects.progress.closed(self.situation.trigger)
        if not closed:
            return None
        if self.effects.settings.guard is Guard.REPORT:
            self._repeat_mark = f"repeated although {closed}"
            return None
        self._tell.skipped(Outcome.NO_OP, closed)
        return Failure(FailureKind.REFUSED, closed)

    def _skip(self, skip: Skip) -> None:
        tell = self._tell
        tell.stage = skip.stage or tell.stage
        failure = skip.failure or self._failure
        if failure is not None and failure.kind is FailureKind.REFUSED and not tell.open:
            # The engine refused the ask itself, and has said so.
            return
        tell.follow(skip.follow)
        match skip.kind:
            case SkipKind.NOT_DUE if not tell.open:
                tell.not_due(skip.reason)
            case SkipKind.NOT_DUE | SkipKind.NO_OP:
                tell.skipped(Outcome.NO_OP, skip.reason)
            case SkipKind.FAILED:
                self._failed(skip.reason, failure)

    def _unfinished(self) -> None:
        """The plan ended with its card open: it said nothing, so the engine does."""
        if self._failure is not None:
            self._failed(self._failure.message, self._failure)
        else:
            self._tell.skipped(Outcome.NO_OP, "the policy ended without an edit")

    def _failed(self, reason: str, failure: Failure | None) -> None:
        if failure is None:
            self._tell.failed(Outcome.FAILED, reason, "")
            return
        outcome = Outcome.EMPTY if failure.kind is FailureKind.EMPTY else Outcome.FAILED
        self._tell.failed(outcome, reason, failure.kind.value, failure.attempts)
        self._failure = None

    # -- edits ---------------------------------------------------------------------------------

    def _cap(self, edit: Edit, output: FunctionCallOutput) -> Answer:
        self._tell.stage = edit.stage
        fresh = self.situation.fresh_output
        if fresh is None or fresh.call_id != output.call_id or edit.segments:
            words = "an edit of the fresh output must leave the context alone and keep its call id"
            return self._misfit(words)
        self._failure = None
        self._tell.capped(edit, output)
        return Applied(self._context)

    async def _edit(self, edit: Edit) -> Answer:
        self._tell.stage = edit.stage
        if self._superseded():
            return self._refused("superseded")
        checked = self._check(edit)
        if isinstance(checked, Refused):
            return checked
        self._tell.propose(checked)
        if self.effects.gate is not None:
            checked = await self._through(self.effects.gate, checked)
            if isinstance(checked, Refused):
                return checked
        return self._commit(checked)

    def _superseded(self) -> bool:
        if self._recorder.state.context == self._context:
            return False
        self._over = True
        words = "the history changed while this was being prepared, so the result was discarded"
        self._tell.skipped(Outcome.SUPERSEDED, words)
        return True

    def _check(self, edit: Edit, marks: tuple[str, ...] = ()) -> Checked | Refused:
        # One line further: the proposal itself comes first.
        line = self._recorder.next_line + 1
        try:
            change = self._context.apply(edit.segments, line, self._recorder.state.compactions + 1)
        except (SegmentError, ValueError) as error:
            return self._misfit(f"the edit does not fit the context: {error}")
        measure, settings = self.situation.measure, self.effects.settings
        before, after = measure.context(self._context), measure.context(change.after)
        faults = check(self._context, change, edit, settings.dialect, before, after)
        if faults and settings.guard is Guard.ENFORCE:
            return self._guarded(faults, before, after)
        if self._repeat_mark:
            marks = (*marks, self._repeat_mark)
        words = tuple(fault.words for fault in faults)
        if edit.summary is not None and edit.summary.note:
            marks = (*marks, edit.summary.note)
        return Checked(edit, line, change, before, after, words, marks)

    def _guarded(self, faults: list[Fault], before: Tokens, after: Tokens) -> Refused:
        words = "; ".join(fault.words for fault in faults)
        kinds = {fault.kind for fault in faults}
        if self._paid:
            self.effects.progress.spent(self.situation.trigger, words)
            self._paid = False
        if kinds == {FaultKind.NOTHING}:
            self._tell.skipped(Outcome.NO_OP, words, before, after)
        elif FaultKind.FAITHFUL in kinds:
            # The system's failure itself has been told; leaving its consequence out is none.
            self._tell.skipped(Outcome.NO_OP, f"refused: {words}", before, after)
        elif kinds == {FaultKind.GREW}:
            self._tell.skipped(Outcome.GREW, words, before, after)
        else:
            self._tell.failed(Outcome.FAILED, f"refused: {words}", "refused")
        return self._refused(words)

    async def _through(self, gate: Gate, checked: Checked) -> Checked | Refused:
        decision = await gate.decide(
            Proposal(
                pass_id=self._tell.pass_id,
                policy=self.policy.name,
                moment=self.situation.moment,
                trigger=self.situation.trigger,
                context=self._context,
                edit=checked.edit,
                change=checked.change,
                before=checked.before,
                after=checked.after,
                faults=checked.faults,
            )
        )
        if self._superseded():
            return self._refused("superseded")
        match decision:
            case Refuse(reason=reason):
                self._tell.failed(Outcome.ABORTED, reason, "refused")
                return self._refused(reason)
            case Amend(edit=edit, marks=marks):
                amended = self._check(edit, marks)
                if isinstance(amended, Checked):
                    self._tell.propose(amended)
                return amended
            case _:
                return checked

    def _commit(self, checked: Checked) -> Applied:
        recorder, edit = self._recorder, checked.edit
        line, ordinal = recorder.next_line, recorder.state.compactions + 1
        if line != checked.line:
            change = self._context.apply(edit.segments, line, ordinal)
            checked = msgspec.structs.replace(checked, change=change, line=line)
        seconds = self.effects.clock() - self._began
        self._tell.compacted(ordinal, self._context, checked, seconds)
        if self._paid:
            # What enters at the start of a turn is in the next report as well.
            entering = self.situation.moment is Moment.TURN_START
            usage = None if entering else self.situation.usage
            self.effects.progress.compacted(
                self.situation.trigger, ordinal, checked.before, checked.after, usage
            )
        self._paid, self._repeat_mark, self._failure = False, "", None
        self._context = recorder.state.context
        return Applied(self._context)

    def _misfit(self, words: str) -> Refused:
        self._tell.failed(Outcome.FAILED, words, "refused")
        return self._refused(words)

    def _refused(self, reason: str) -> Refused:
        return Refused(reason, self._recorder.state.context)
