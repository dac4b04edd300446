"""What a pass says on the record: one card from the firing of the rule to its outcome.

A pass with several edits opens a card for each. Whatever was opened is closed.
"""

from __future__ import annotations

import msgspec

from .. import events as e
from ..context import Change, Context
from ..events import Outcome
from ..items import FunctionCallOutput
from ..tokens import Tokens
from .breaker import Breaker
from .policy import Edit, Follow, Situation, Start, Summary, Trigger
from .recorder import Recorder
from .settings import Verdict


class Checked(msgspec.Struct, frozen=True):
    """An edit with what it does, counted and looked at; ids of new entries are those of `line`.
    `marks` are warnings for its card; `raw` is the edit as it was given, before pins were held."""

    edit: Edit
    line: int
    change: Change
    before: Tokens
    after: Tokens
    faults: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    raw: Edit | None = None
    saved: str = ""


class Telling:
    """Emits the events of one pass and keeps its verdict.

    `said` holds what was said in this turn already: a skip of itself is told once for each stage
    and outcome, else it would be told every round.
    """

    def __init__(
        self,
        recorder: Recorder,
        policy: str,
        situation: Situation,
        breaker: Breaker,
        said: set[tuple[str, Outcome]],
    ) -> None:
        self._recorder = recorder
        self._policy = policy
        self._situation = situation
        self._breaker = breaker
        self._said = said
        self._pending: Start | None = None
        self.pass_id = ""
        self.stage = ""
        self.reason = ""
        self.open = False
        self.verdict = Verdict()

    def turn_to(self, policy: str, situation: Situation) -> None:
        """From here on the pass is made by another policy, or in another situation."""
        self._policy, self._situation = policy, situation

    def start(self, start: Start) -> None:
        """The rule fired. It is told with the first step that follows, unless that is a skip."""
        self._pending, self.stage, self.reason = start, start.stage, start.reason

    def not_due(self, reason: str) -> None:
        """Nothing happens, and nothing is told but to the caller."""
        self._pending = None
        if self.verdict.outcome is None:
            self._verdict(reason=reason)

    def announce(self) -> None:
        """Open a card, if none is open."""
        self._name()
        if self.open:
            return
        start = self._pending or Start(self.stage, "")
        self._pending, self.open = None, True
        self._recorder.emit(
            e.CompactionStarted(
                pass_id=self.pass_id,
                policy=self._policy,
                stage=start.stage,
                moment=self._situation.moment,
                trigger=self._situation.told_trigger,
                reason=self._situation.told(start.reason),
                focus=self._situation.focus,
            )
        )

    def propose(self, checked: Checked) -> None:
        """An edit is ready; this opens a card where a cheap stage did not announce one."""
        if self._pending is not None:
            self.announce()
        self._name()
        self.open = True
        change = checked.change
        self._recorder.emit(
            e.CompactionProposed(
                pass_id=self.pass_id,
                policy=self._policy,
                stage=checked.edit.stage,
                reason=self._situation.told(checked.edit.reason),
                removed=len(change.removed),
                kept=len(change.kept),
                replaced=len(change.replaced),
                inserted=len(change.inserted),
                before=checked.before,
                after=checked.after,
            )
        )

    def compacted(self, ordinal: int, context: Context, checked: Checked, seconds: float) -> None:
        """The edit is the case. `context` is the one before; `checked` has its final ids."""
        situation, edit, change = self._situation, checked.edit, checked.change
        summary = edit.summary
        opaque = summary is not None and bool(summary.encrypted)
        self._recorder.emit(
            e.HistoryCompacted(
                ordinal=ordinal,
                pass_id=self.pass_id,
                policy=self._policy,
                stage=edit.stage,
                moment=situation.moment,
                trigger=situation.told_trigger,
                reason=situation.told(edit.reason),
                segments=tuple(edit.segments),
                items_before=len(context),
                items_after=len(change.after),
                kept=len(change.kept),
                removed=len(change.removed),
                replaced=len(change.replaced),
                inserted=len(change.inserted),
                removed_ids=context.span(change.removed),
                before=checked.before,
                after=checked.after,
                usage=situation.usage,
                summary=None if summary is None or opaque else summary.text,
                opaque=opaque,
                summariser=_summariser(summary),
                focus=situation.focus,
                window=ordinal,
                digest=change.after.digest(),
                memory=dict(edit.memory),
                phase=edit.phase,
                marks=(*checked.marks, *filter(None, (checked.saved,)), *checked.faults),
                seconds=seconds,
            )
        )
        self.open = False
        if (closed := self._breaker.closed(self._recorder.state)) is not None:
            self._recorder.emit(closed)
        self._verdict(outcome=Outcome.DONE, compacted=True, reason=edit.reason)
        self.follow(edit.follow)

    def follow(self, follow: Follow) -> None:
        """What the loop does next; going on takes back nothing that an earlier step asked for."""
        if follow is not Follow.GO_ON:
            self._verdict(follow=follow)

    def capped(self, edit: Edit, output: FunctionCallOutput) -> None:
        """The fresh output is replaced. It is not in the context yet, so this is no compaction."""
        if self.open:
            self.skipped(Outcome.NO_OP, edit.reason)
        text = f"{self._policy}, {edit.stage}: {edit.reason}"
        self._recorder.emit(e.Note(kind="entry_cap", text=text))
        self._pending = None
        self._verdict(outcome=Outcome.DONE, output=output, reason=edit.reason)

    def skipped(
        self,
        outcome: Outcome,
        reason: str,
        before: Tokens | None = None,
        after: Tokens | None = None,
    ) -> None:
        """Nothing changed, and that is no fault."""
        once = (f"{self._policy}/{self.stage}", outcome)
        told = once in self._said and self._situation.told_trigger is not Trigger.MANUAL
        self._said.add(once)
        if told and not self.open:
            self.not_due(reason)
            return
        self._name()
        self._recorder.emit(
            e.CompactionSkipped(
                pass_id=self.pass_id,
                policy=self._policy,
                moment=self._situation.moment,
                trigger=self._situation.told_trigger,
                outcome=outcome,
                reason=reason,
                stage=self.stage,
                before=before,
                after=after,
            )
        )
        self._ended(outcome, reason)

    def failed(self, outcome: Outcome, reason: str, kind: str, attempts: int = 1) -> None:
        """Nothing changed, and that is a fault, or (ABORTED) somebody's wish."""
        self._name()
        fault = outcome is not Outcome.ABORTED
        failures = self._recorder.state.failures + fault
        self._recorder.emit(
            e.CompactionFailed(
                pass_id=self.pass_id,
                policy=self._policy,
                moment=self._situation.moment,
                trigger=self._situation.told_trigger,
                outcome=outcome,
                reason=reason,
                kind=kind,
                stage=self.stage,
                attempts=attempts,
                failures=failures,
                next_step=(
                    self._breaker.next_step(failures) if fault else "the history is unchanged"
                ),
            )
        )
        self._ended(outcome, reason)
        if fault and (opened := self._breaker.opened(self._recorder.state, reason)) is not None:
            self._recorder.emit(opened)

    def _name(self) -> None:
        """The pass id is the line of its first event: deterministic, and never given twice."""
        self.pass_id = self.pass_id or f"p{self._recorder.next_line}"

    def _ended(self, outcome: Outcome, reason: str) -> None:
        self.open, self._pending = False, None
        if self.verdict.outcome is not Outcome.DONE:
            self._verdict(outcome=outcome, reason=reason)

    def _verdict(self, **changes: object) -> None:
        self.verdict = msgspec.structs.replace(self.verdict, **changes)


def _summariser(summary: Summary | None) -> e.Summariser | None:
    if summary is None:
        return None
    return e.Summariser(summary.model, summary.usage, summary.attempts, summary.seconds)
