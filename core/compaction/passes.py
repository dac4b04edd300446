"""One pass: the policy is asked once, its asks are answered, its edits checked and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from .. import events as e
from ..context import Change, SegmentError
from ..errors import ThresherError
from ..events import Outcome
from ..items import FunctionCallOutput, Item
from ..tokens import Tokens
from .breaker import Breaker
from .fallback import Chain
from .gate import Amend, Gate, Proposal, Refuse
from .guards import Fault, FaultKind, check
from .policy import (
    Answer,
    Applied,
    Ask,
    CompactRemotely,
    Edit,
    Failure,
    FailureKind,
    Files,
    Follow,
    Moment,
    Persist,
    Policy,
    Refused,
    Reread,
    Situation,
    Skip,
    SkipKind,
    Start,
    Step,
    Stored,
    Summarise,
    Summary,
    Trigger,
)
from .progress import Progress
from .recorder import Recorder
from .settings import EngineSettings, Guard, Verdict
from .store import Store

Rereading = Callable[[Reread], Awaitable[Files]]
"""Reads files of the workspace. Raises OSError or ThresherError when it cannot."""
RemoteCompaction = Callable[[tuple[Item, ...]], Awaitable[Summary | Failure]]
"""Lets the provider compact; the summary then has `encrypted`."""


@dataclass(frozen=True)
class Effects:
    """What the engine lends to its passes. `said` holds what was said in this turn already."""

    recorder: Recorder
    settings: EngineSettings
    chain: Chain
    store: Store | None
    gate: Gate | None
    reread: Rereading | None
    remote: RemoteCompaction | None
    breaker: Breaker
    progress: Progress
    clock: Callable[[], float]
    said: set[tuple[str, Outcome]] = field(default_factory=set)


class _Checked(msgspec.Struct, frozen=True):
    """An edit with what it does, counted and looked at; ids of new entries are those of `line`."""

    edit: Edit
    line: int
    change: Change
    before: Tokens
    after: Tokens
    faults: tuple[Fault, ...]
    marks: tuple[str, ...] = ()


class Pass:
    """One run of a policy over one situation."""

    def __init__(self, policy: Policy, situation: Situation, effects: Effects) -> None:
        self.policy = policy
        self.situation = situation
        self.effects = effects
        self.pass_id = ""
        self._recorder = effects.recorder
        self._context = situation.context
        self._began = effects.clock()
        self._pending: Start | None = None
        self._stage = ""
        self._open = False
        self._over = False
        self._paid = False
        self._failure: Failure | None = None
        self._repeat_mark = ""
        self._verdict = Verdict()

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
                    name = type(fault).__name__
                    self._fail(Outcome.FAILED, f"the policy raised {name}: {fault}", "policy")
                    break
                answer = await self._answer(step)
            if self._open:
                self._unfinished()
        except asyncio.CancelledError:
            if self._open:
                self._fail(Outcome.ABORTED, "cancelled", "cancelled")
            raise
        finally:
            with suppress(Exception):
                plan.close()
        return self._verdict

    async def _answer(self, step: Step) -> Answer:
        match step:
            case Start():
                self._pending, self._stage = step, step.stage
                return None
            case Skip():
                self._skip(step)
                return None
            case Edit():
                return await self._edit(step)
            case _:
                return await self._ask(step)

    # -- asks ----------------------------------------------------------------------------------

    async def _ask(self, ask: Ask) -> Answer:
        answer: Answer
        match ask:
            case Summarise() | CompactRemotely():
                if refusal := self._closed_by_progress():
                    return refusal
                self._begin()
                answer = await self._summary(ask)
                self._paid = self._paid or not isinstance(answer, Failure)
            case Persist():
                answer = await self._persist(ask)
            case Reread():
                answer = await self._reread(ask)
        self._failure = answer if isinstance(answer, Failure) else None
        return answer

    def _closed_by_progress(self) -> Failure | None:
        closed = self.effects.progress.closed(self.situation.trigger)
        if not closed:
            return None
        if self.effects.settings.guard is Guard.REPORT:
            self._repeat_mark = f"repeated although {closed}"
            return None
        self._skipped(Outcome.NO_OP, closed)
        return Failure(FailureKind.REFUSED, closed)

    async def _summary(self, ask: Summarise | CompactRemotely) -> Summary | Failure:
        if isinstance(ask, Summarise):
            return await self.effects.chain.write(ask, self.pass_id)
        if self.effects.remote is None:
            return Failure(FailureKind.UNSUPPORTED, "This endpoint does not compact by itself.")
        return await self.effects.remote(ask.items)

    async def _persist(self, ask: Persist) -> Stored | Failure:
        store = self.effects.store
        if store is None:
            return Failure(FailureKind.UNSUPPORTED, "There is no folder to keep texts in.")
        try:
            return Stored(await asyncio.to_thread(store.save, ask.name, ask.text))
        except OSError as error:
            why = error.strerror or str(error)
            return Failure(FailureKind.STORAGE, f"The text {ask.name} could not be kept: {why}.")

    async def _reread(self, ask: Reread) -> Files | Failure:
        if self.effects.reread is None:
            return Failure(FailureKind.UNSUPPORTED, "Files cannot be read again here.")
        try:
            return await self.effects.reread(ask)
        except OSError as error:
            return Failure(FailureKind.STORAGE, error.strerror or str(error))
        except ThresherError as error:
            return Failure(FailureKind.STORAGE, error.msg)

    # -- edits ---------------------------------------------------------------------------------

    async def _edit(self, edit: Edit) -> Answer:
        self._stage = edit.stage
        if edit.output is not None:
            return self._output(edit, edit.output)
        if self._superseded():
            return self._refused("superseded")
        checked = self._check(edit)
        if isinstance(checked, Refused):
            return checked
        self._propose(checked)
        if self.effects.gate is not None:
            passed = await self._through(self.effects.gate, checked)
            if isinstance(passed, Refused):
                return passed
            checked = passed
        return self._commit(checked)

    def _output(self, edit: Edit, output: FunctionCallOutput) -> Answer:
        """The fresh output is not in the context yet, so this is no compaction but a note."""
        fresh = self.situation.fresh_output
        if fresh is None or fresh.call_id != output.call_id or edit.segments:
            words = "an edit of the fresh output must leave the context alone and keep its call id"
            self._fail(Outcome.FAILED, words, "refused")
            return self._refused(words)
        text = f"{self.policy.name}, {edit.stage}: {edit.reason}"
        self._recorder.emit(e.Note(kind="entry_cap", text=text))
        self._failure, self._pending = None, None
        if self._open:
            self._skipped(Outcome.NO_OP, edit.reason)
        self._verdict = msgspec.structs.replace(
            self._verdict, outcome=Outcome.DONE, output=output, reason=edit.reason
        )
        return Applied(self._context)

    def _check(self, edit: Edit, marks: tuple[str, ...] = ()) -> _Checked | Refused:
        # One line further: the proposal itself comes first.
        line = self._recorder.next_line + 1
        measure = self.situation.measure
        ordinal = self._recorder.state.compactions + 1
        try:
            change = self._context.apply(edit.segments, line, ordinal)
        except (SegmentError, ValueError) as error:
            words = f"the edit does not fit the context: {error}"
            self._fail(Outcome.FAILED, words, "refused")
            return self._refused(words)
        before, after = measure.context(self._context), measure.context(change.after)
        settings = self.effects.settings
        faults = tuple(check(self._context, change, edit, settings.dialect, before, after))
        if faults and settings.guard is Guard.ENFORCE:
            return self._guarded(faults, before, after)
        if self._repeat_mark:
            marks = (*marks, self._repeat_mark)
        return _Checked(edit, line, change, before, after, faults, marks)

    def _guarded(self, faults: tuple[Fault, ...], before: Tokens, after: Tokens) -> Refused:
        words = "; ".join(fault.words for fault in faults)
        kinds = {fault.kind for fault in faults}
        if self._paid:
            self.effects.progress.spent(self.situation.trigger, words)
            self._paid = False
        if kinds == {FaultKind.NOTHING}:
            self._skipped(Outcome.NO_OP, words, before, after)
        elif kinds == {FaultKind.GREW}:
            self._skipped(Outcome.GREW, words, before, after)
        else:
            self._fail(Outcome.FAILED, f"refused: {words}", "refused")
        return self._refused(words)

    def _propose(self, checked: _Checked) -> None:
        self._begin(announce=self._pending is not None)
        self._name()
        change = checked.change
        self._open = True
        self._recorder.emit(
            e.CompactionProposed(
                pass_id=self.pass_id,
                policy=self.policy.name,
                stage=checked.edit.stage,
                reason=checked.edit.reason,
                removed=len(change.removed),
                kept=len(change.kept),
                replaced=len(change.replaced),
                inserted=len(change.inserted),
                before=checked.before,
                after=checked.after,
            )
        )

    async def _through(self, gate: Gate, checked: _Checked) -> _Checked | Refused:
        situation = self.situation
        decision = await gate.decide(
            Proposal(
                pass_id=self.pass_id,
                policy=self.policy.name,
                moment=situation.moment,
                trigger=situation.trigger,
                context=self._context,
                edit=checked.edit,
                change=checked.change,
                before=checked.before,
                after=checked.after,
                faults=tuple(fault.words for fault in checked.faults),
            )
        )
        if self._superseded():
            return self._refused("superseded")
        match decision:
            case Refuse(reason=reason):
                self._fail(Outcome.ABORTED, reason, "refused")
                return self._refused(reason)
            case Amend(edit=edit, marks=marks):
                amended = self._check(edit, marks)
                if not isinstance(amended, Refused):
                    self._propose(amended)
                return amended
            case _:
                return checked

    def _commit(self, checked: _Checked) -> Applied:
        recorder, situation, edit = self._recorder, self.situation, checked.edit
        line, ordinal = recorder.next_line, recorder.state.compactions + 1
        change = checked.change
        if line != checked.line:
            change = self._context.apply(edit.segments, line, ordinal)
        summary = edit.summary
        recorder.emit(
            e.HistoryCompacted(
                ordinal=ordinal,
                pass_id=self.pass_id,
                policy=self.policy.name,
                stage=edit.stage,
                moment=situation.moment,
                trigger=situation.trigger,
                reason=edit.reason,
                segments=tuple(edit.segments),
                items_before=len(self._context),
                items_after=len(change.after),
                kept=len(change.kept),
                removed=len(change.removed),
                replaced=len(change.replaced),
                inserted=len(change.inserted),
                removed_ids=self._context.span(change.removed),
                before=checked.before,
                after=checked.after,
                usage=situation.usage,
                summary=None if summary is None or summary.encrypted else summary.text,
                opaque=summary is not None and bool(summary.encrypted),
                summariser=_summariser(summary),
                focus=situation.focus,
                window=situation.window + 1,
                digest=change.after.digest(),
                memory=dict(edit.memory),
                marks=(*checked.marks, *(fault.words for fault in checked.faults)),
                seconds=self.effects.clock() - self._began,
            )
        )
        self._open = False
        self._repeat_mark, self._failure = "", None
        if (closed := self.effects.breaker.closed(recorder.state)) is not None:
            recorder.emit(closed)
        if self._paid:
            self._paid = False
            entering = situation.moment is Moment.TURN_START
            self.effects.progress.compacted(
                situation.trigger,
                ordinal,
                checked.before,
                checked.after,
                None if entering else situation.usage,
            )
        self._context = recorder.state.context
        self._verdict = msgspec.structs.replace(
            self._verdict,
            outcome=Outcome.DONE,
            compacted=True,
            reason=edit.reason,
            follow=self._verdict.follow if edit.follow is Follow.GO_ON else edit.follow,
        )
        return Applied(self._context)

    # -- endings -------------------------------------------------------------------------------

    def _superseded(self) -> bool:
        if self._recorder.state.context == self._context:
            return False
        self._over = True
        words = "the history changed while this was being prepared, so the result was discarded"
        self._skipped(Outcome.SUPERSEDED, words)
        return True

    def _skip(self, skip: Skip) -> None:
        self._stage = skip.stage or self._stage
        failure = skip.failure or self._failure
        if failure is not None and failure.kind is FailureKind.REFUSED and not self._open:
            # The engine refused the ask itself, and has said so.
            return
        match skip.kind:
            case SkipKind.NOT_DUE if not self._open:
                self._pending = None
                if self._verdict.outcome is None:
                    self._verdict = msgspec.structs.replace(self._verdict, reason=skip.reason)
            case SkipKind.NOT_DUE | SkipKind.NO_OP:
                self._skipped(Outcome.NO_OP, skip.reason)
            case SkipKind.FAILED:
                self._failed(skip.reason, failure)

    def _unfinished(self) -> None:
        """The plan ended with its card open: it said nothing, so the engine does."""
        if self._failure is not None:
            self._failed(self._failure.message, self._failure)
        else:
            self._skipped(Outcome.NO_OP, "the policy ended without an edit")

    def _failed(self, reason: str, failure: Failure | None) -> None:
        kind = failure.kind.value if failure else ""
        empty = failure is not None and failure.kind is FailureKind.EMPTY
        self._fail(
            Outcome.EMPTY if empty else Outcome.FAILED,
            reason,
            kind,
            failure.attempts if failure else 1,
        )

    def _skipped(
        self,
        outcome: Outcome,
        reason: str,
        before: Tokens | None = None,
        after: Tokens | None = None,
    ) -> None:
        """Say that nothing changed: by hand always, of itself once a turn for each stage."""
        once = (f"{self.policy.name}/{self._stage}", outcome)
        new = once not in self.effects.said or self.situation.trigger is Trigger.MANUAL
        self.effects.said.add(once)
        if self._open or new:
            self._begin(announce=False)
            self._recorder.emit(
                e.CompactionSkipped(
                    pass_id=self.pass_id,
                    policy=self.policy.name,
                    moment=self.situation.moment,
                    trigger=self.situation.trigger,
                    outcome=outcome,
                    reason=reason,
                    stage=self._stage,
                    before=before,
                    after=after,
                )
            )
            self._ended(outcome, reason)
        else:
            self._pending = None
            if self._verdict.outcome is None:
                self._verdict = msgspec.structs.replace(self._verdict, reason=reason)

    def _fail(self, outcome: Outcome, reason: str, kind: str, attempts: int = 1) -> None:
        self._begin(announce=False)
        state, breaker = self._recorder.state, self.effects.breaker
        failures = state.failures + (outcome is not Outcome.ABORTED)
        self._recorder.emit(
            e.CompactionFailed(
                pass_id=self.pass_id,
                policy=self.policy.name,
                moment=self.situation.moment,
                trigger=self.situation.trigger,
                outcome=outcome,
                reason=reason,
                kind=kind,
                stage=self._stage,
                attempts=attempts,
                failures=failures,
                next_step=(
                    "the history is unchanged"
                    if outcome is Outcome.ABORTED
                    else breaker.next_step(failures)
                ),
            )
        )
        self._ended(outcome, reason)
        if outcome is not Outcome.ABORTED and (opened := breaker.opened(state, reason)) is not None:
            self._recorder.emit(opened)

    def _ended(self, outcome: Outcome, reason: str) -> None:
        self._open = False
        self._pending, self._failure = None, None
        if self._verdict.outcome is not Outcome.DONE:
            self._verdict = msgspec.structs.replace(self._verdict, outcome=outcome, reason=reason)

    def _refused(self, reason: str) -> Refused:
        return Refused(reason, self._recorder.state.context)

    # -- the card ------------------------------------------------------------------------------

    def _name(self) -> None:
        """The pass id is the line of its first event: deterministic, and never given twice."""
        self.pass_id = self.pass_id or f"p{self._recorder.next_line}"

    def _begin(self, announce: bool = True) -> None:
        """Open a card by telling why the rule fired, once."""
        self._name()
        if self._open or not announce:
            return
        start = self._pending or Start(self._stage, "")
        self._pending, self._open = None, True
        self._recorder.emit(
            e.CompactionStarted(
                pass_id=self.pass_id,
                policy=self.policy.name,
                stage=start.stage,
                moment=self.situation.moment,
                trigger=self.situation.trigger,
                reason=start.reason,
                focus=self.situation.focus,
            )
        )


def _summariser(summary: Summary | None) -> e.Summariser | None:
    if summary is None:
        return None
    return e.Summariser(summary.model, summary.usage, summary.attempts, summary.seconds)
