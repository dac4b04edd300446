"""What would become of an edit, or of an ask: what a pass looks at before it acts, and what it lays
before its gate. Nothing here changes or tells anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..context import Context
from .checking import Looked, look
from .foresee import foresee
from .gate import Pending, Proposal
from .policy import Answer, CompactRemotely, Edit, Policy, Situation, Summarise
from .recorder import Recorder
from .settings import EngineSettings, Guard
from .telling import Checked, Telling


@dataclass(frozen=True)
class Prospect:
    """The view from where a pass stands: `context` is what its plan knows."""

    policy: Policy
    situation: Situation
    context: Context
    recorder: Recorder
    settings: EngineSettings
    tell: Telling

    @property
    def line(self) -> int:
        """The line that an edit would be on."""
        # One line further: the proposal itself comes first.
        return self.recorder.next_line + 1

    def look(self, edit: Edit) -> Looked:
        """What the edit does here. Raises ValueError for one that does not fit the context."""
        state = self.recorder.state
        return look(
            self.context,
            edit,
            pins=state.pins,
            dialect=self.settings.dialect,
            measure=self.situation.measure,
            line=self.line,
            ordinal=state.compactions + 1,
        )

    def checked(self, raw: Edit, looked: Looked, marks: tuple[str, ...]) -> Checked:
        """The edit as it may be told."""
        return Checked(
            edit=looked.edit,
            line=self.line,
            change=looked.change,
            before=looked.before,
            after=looked.after,
            faults=tuple(fault.words for fault in looked.faults),
            marks=marks,
            raw=raw,
            saved=looked.saved,
        )

    def proposal(self, raw: Edit, looked: Looked) -> Proposal:
        """The edit as the gate is shown it."""
        return Proposal(
            pass_id=self.tell.pass_id,
            policy=self.policy.name,
            moment=self.situation.moment,
            trigger=self.situation.told_trigger,
            context=self.context,
            edit=looked.edit,
            change=looked.change,
            before=looked.before,
            after=looked.after,
            faults=tuple(fault.words for fault in looked.faults),
            raw=raw,
            saved=looked.saved,
            pinned_out=looked.pinned_out,
            situation=self.situation,
            dialect=self.settings.dialect,
            enforced=self.settings.guard is Guard.ENFORCE,
            line=self.line,
            ordinal=self.recorder.state.compactions + 1,
        )

    def pending(self, ask: Summarise | CompactRemotely, answers: Sequence[Answer]) -> Pending:
        """The ask as the gate is shown it, with a sketch of the edit that would follow; `answers`
        is what the plan was answered so far."""
        seen = foresee(self.policy, self.situation, answers)
        sketch, unseen = None, seen.reason
        if seen.edit is not None:
            try:
                looked = self.look(seen.edit)
            except ValueError as fault:
                unseen = f"the edit would not fit the context: {fault}"
            else:
                sketch = self.proposal(seen.edit, looked)
        return Pending(
            pass_id=self.tell.pass_id,
            policy=self.policy.name,
            stage=self.tell.stage,
            reason=self.tell.reason,
            situation=self.situation,
            ask=ask,
            sketch=sketch,
            unseen=unseen,
        )

    def pinned_out(self, answers: Sequence[Answer]) -> str:
        """That the pins leave the edit that would follow nothing to free; empty otherwise."""
        pins = self.recorder.state.pins
        if all(self.context.place(id) is None for id in pins):
            return ""
        edit = foresee(self.policy, self.situation, answers).edit
        try:
            return self.look(edit).pinned_out if edit is not None else ""
        except ValueError:
            return ""
