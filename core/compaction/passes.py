"""One pass: the policy is asked once, its asks are answered, its edits checked and applied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from ..events import ItemAppended, Outcome
from ..items import FunctionCallOutput
from .asks import Asks, Question, is_paid
from .breaker import Breaker
from .checking import Looked
from .foresee import rerun
from .gate import Again, Amend, Gate, HoldsAsks, Refuse, Write
from .guards import FaultKind
from .policy import (
    Answer,
    Append,
    Applied,
    Edit,
    Failure,
    FailureKind,
    Follow,
    Moment,
    Plan,
    Policy,
    Refused,
    Situation,
    Skip,
    SkipKind,
    Start,
    Step,
    Summary,
)
from .progress import Progress
from .prospect import Prospect
from .recorder import Recorder
from .settings import EngineSettings, Guard, Verdict
from .telling import Checked, Telling

BY_HAND = "the user"
"""What stands for a model's name where the user wrote the summary."""


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
        self._plan = policy.plan(situation)
        self._answers: list[Answer] = []
        """What the plan was answered so far: with these, a fresh one comes to the same place."""
        self._in_force = policy.name
        self._asked_at = situation.moment

    async def run(self) -> Verdict:
        """Drive the plan to its end. A cancellation is recorded and goes on."""
        try:
            step = self._to([])
            while step is not None:
                answer = await self._answer(step)
                if self._over:
                    break
                step = self._to([*self._answers, answer], self._plan)
            if self._tell.open:
                self._unfinished()
        except asyncio.CancelledError:
            if self._tell.open:
                self._tell.failed(Outcome.ABORTED, "cancelled", "cancelled")
            raise
        finally:
            with suppress(Exception):
                self._plan.close()
        return self._tell.verdict

    def _to(self, answers: list[Answer], plan: Plan | None = None) -> Step | None:
        """The step after these answers, of the plan that has had all but the last of them or of a
        fresh one; None when there is none."""
        try:
            if plan is not None:
                step = plan.send(answers[-1])
            else:
                with suppress(Exception):
                    self._plan.close()
                self._plan = self.policy.plan(self.situation)
                step = rerun(self._plan, answers)
        except StopIteration:
            self._over = True
            return None
        except Exception as fault:
            # A policy may be a user's own file: its error must not end the agent.
            self._over = True
            words = f"the policy raised {type(fault).__name__}: {fault}"
            self._tell.failed(Outcome.FAILED, words, "policy")
            return None
        self._answers = answers
        return step

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

    @property
    def _prospect(self) -> Prospect:
        """The view from here."""
        return Prospect(
            self.policy,
            self.situation,
            self._context,
            self._recorder,
            self.effects.settings,
            self._tell,
        )

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
            gate = self.effects.gate
            held = isinstance(gate, HoldsAsks) and gate.holds(
                self._tell.pass_id, self.policy.name, self._tell.stage
            )
            # At a stop the user sees why, and may unpin.
            if not held and (refusal := self._closed_by_pins()):
                return refusal
            self._tell.announce()
            if held and isinstance(gate, HoldsAsks):
                match await gate.before_ask(self._prospect.pending(ask, self._answers)):
                    case Refuse(reason=reason):
                        self._tell.failed(Outcome.ABORTED, reason, "refused")
                        return Failure(FailureKind.REFUSED, reason)
                    case Write(text=text):
                        return Summary(text, BY_HAND, attempts=0)
                    case Again() as again:
                        return await self._again(again)
                    case _:
                        pass
        answer = await self.effects.asks.answer(ask, self._tell.pass_id)
        self._failure = answer if isinstance(answer, Failure) else None
        self._paid = self._paid or (is_paid(ask) and self._failure is None)
        return answer

    async def _again(self, again: Again) -> Answer:
        """Make the plan anew; what it answers is answered here, so that the run goes on with it."""
        state = self._recorder.state
        situation = again.situation or self.situation
        if state.context != situation.context:
            usage = None if state.usage_estimated else state.usage
            situation = msgspec.structs.replace(
                situation, context=state.context, usage=usage, since_usage=state.since_usage
            )
        self._context = state.context
        if again.policy is not None:
            self.policy = again.policy
        self.situation = situation
        self._tell.turn_to(self.policy.name, situation)
        self._failure = None
        step = self._to([])
        return None if step is None else await self._answer(step)

    def _closed_by_progress(self) -> Failure | None:
        closed = self.effects.progress.closed(self.situation.told_trigger)
        if not closed:
            return None
        if self.effects.settings.guard is Guard.REPORT:
            self._repeat_mark = f"repeated although {closed}"
            return None
        self._tell.skipped(Outcome.NO_OP, closed)
        return Failure(FailureKind.REFUSED, closed)

    def _closed_by_pins(self) -> Failure | None:
        """A summary is not paid for when the pins leave its edit nothing to free."""
        if self.effects.settings.guard is Guard.REPORT:
            return None
        words = self._prospect.pinned_out(self._answers)
        if not words:
            return None
        self._tell.skipped(Outcome.GREW, words)
        return Failure(FailureKind.REFUSED, words)

    def _skip(self, skip: Skip) -> None:
        tell = self._tell
        tell.stage = skip.stage or tell.stage
        failure = skip.failure or self._failure
        if failure is not None and failure.kind is FailureKind.REFUSED and not tell.open:
            # The engine refused the ask itself, and has said so.
            return
        if not self._turned:
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
        if self._turned:
            # What follows is the affair of the policy in force, at the moment it was asked at.
            edit = msgspec.structs.replace(edit, follow=Follow.GO_ON)
        if self.policy.name != self._in_force:
            edit = msgspec.structs.replace(edit, memory={})
        checked = self._check(edit)
        if isinstance(checked, Refused):
            return checked
        self._tell.propose(checked)
        if self.effects.gate is not None:
            through = await self._through(self.effects.gate, checked)
            if not isinstance(through, Checked):
                return through
            checked = through
        return self._commit(checked)

    @property
    def _turned(self) -> bool:
        """The user chose another policy for this pass, or another moment came of that."""
        return self.policy.name != self._in_force or self.situation.moment is not self._asked_at

    def _superseded(self) -> bool:
        if self._recorder.state.context == self._context:
            return False
        self._over = True
        words = "the history changed while this was being prepared, so the result was discarded"
        self._tell.skipped(Outcome.SUPERSEDED, words)
        return True

    def _check(self, edit: Edit, marks: tuple[str, ...] = ()) -> Checked | Refused:
        try:
            looked = self._prospect.look(edit)
        except ValueError as error:
            return self._misfit(f"the edit does not fit the context: {error}")
        if looked.faults and self.effects.settings.guard is Guard.ENFORCE:
            return self._guarded(looked)
        if self._repeat_mark:
            marks = (*marks, self._repeat_mark)
        return self._prospect.checked(edit, looked, marks)

    def _guarded(self, looked: Looked) -> Refused:
        before, after = looked.before, looked.after
        words = "; ".join(fault.words for fault in looked.faults)
        if looked.saved and not looked.pinned_out:
            words = f"{words} ({looked.saved})"
        kinds = {fault.kind for fault in looked.faults}
        if self._paid:
            self.effects.progress.spent(self.situation.told_trigger, words)
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

    async def _through(self, gate: Gate, checked: Checked) -> Checked | Answer:
        """What the gate makes of it: the edit to commit, or an answer for the plan."""
        looked = Looked(checked.edit, checked.change, checked.before, checked.after, (), "")
        proposal = msgspec.structs.replace(
            self._prospect.proposal(checked.raw or checked.edit, looked),
            faults=checked.faults,
            saved=checked.saved,
        )
        decision = await gate.decide(proposal)
        if isinstance(decision, Again):
            return await self._again(decision)
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
            case Write(text=text):
                return await self._rewritten(text)
            case _:
                return checked

    async def _rewritten(self, text: str) -> Answer:
        """The same plan with another summary: the policy itself makes its edit of it."""
        answers = list(self._answers)
        for at in range(len(answers) - 1, -1, -1):
            if isinstance(old := answers[at], Summary):
                by = old.model if old.model in (BY_HAND, "") else f"{old.model}, edited by the user"
                answers[at] = msgspec.structs.replace(old, text=text, model=by, encrypted="")
                break
        step = self._to(answers)
        return None if step is None else await self._answer(step)

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
                self.situation.told_trigger, ordinal, checked.before, checked.after, usage
            )
        self._paid, self._repeat_mark, self._failure = False, "", None
        self._context = recorder.state.context
        return Applied(self._context)

    def _misfit(self, words: str) -> Refused:
        self._tell.failed(Outcome.FAILED, words, "refused")
        return self._refused(words)

    def _refused(self, reason: str) -> Refused:
        return Refused(reason, self._recorder.state.context)
