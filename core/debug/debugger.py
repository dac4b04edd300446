"""The debugger: holds a session at its breakpoints, and carries out what the user decides there.

It is the engine's gate (before a summary is asked for, before an edit is applied); the pause points
of the loop are in `pauses`. Every decision is an event, and what comes of it is in the edit that is
recorded, so a replay needs none of this.

A decision either changes the proposal at once (pin, drop), or lets the pass make it anew (focus,
another policy, a fresh summary, a text of the user's own); the stop is then reached again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .. import events as e
from ..compaction.foresee import foresee
from ..compaction.gate import (
    Again,
    Amend,
    Apply,
    BeforeAsk,
    Decision,
    Pending,
    Proposal,
    Refuse,
    Write,
)
from ..compaction.policies import registry
from ..compaction.policy import Policy, Summarise
from ..compaction.recorder import Recorder
from ..context import EntryId
from ..errors import ThresherError
from ..tokens import Tokens
from . import breakpoints as b
from .candidates import situation_for
from .decisions import words
from .held import written
from .pauses import STEP, Pauses
from .stop import Point, Stop, chosen, revised

SKIPPED = "skipped by the user"


@dataclass
class _Work:
    """What the user did to the pass that is held."""

    pass_id: str
    decisions: list[e.CompactionDecided] = field(default_factory=list)
    drops: tuple[EntryId, ...] = ()
    through: bool = False
    """No more stops before its next edit is applied."""
    ask_now: bool = False
    """The user has just wished for another summary: it is asked for without another stop."""


class Debugger(Pauses):
    """The debugger of one session. All calls come from its event loop; those of the user return
    at once, and raise ThresherError with a sentence for what cannot be done.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        size: Callable[[], Tokens] | None = None,
        make_policy: Callable[[str, Mapping[str, Any]], Policy] = registry.make,
    ) -> None:
        super().__init__(recorder, size=size)
        self._make_policy = make_policy
        self._work: _Work | None = None

    # -- the gate ------------------------------------------------------------------------------

    def holds(self, pass_id: str, policy: str, stage: str) -> bool:
        """Whether this compaction is to be held."""
        if not self.attended:
            return False
        work = self._work_of(pass_id)
        if work is not None:
            return not work.through
        return b.before_compaction(self.breakpoints, policy, stage) is not None

    async def before_ask(self, pending: Pending) -> BeforeAsk:
        """Hold before a summary is asked for."""
        work = self._work_for(pending.pass_id)
        if work.ask_now:
            work.ask_now = False
            return Apply()
        hit = b.before_compaction(self.breakpoints, pending.policy, pending.stage)
        decision = await self._hold_pass(
            Stop(
                Point.SUMMARY,
                breakpoint=str(hit) if hit else "compaction",
                reason=pending.reason,
                pending=pending,
                proposal=pending.sketch,
            )
        )
        if isinstance(decision, Refuse):
            self._work = None
        # There is no edit yet that could be amended.
        return Apply() if isinstance(decision, Amend) else decision

    async def decide(self, proposal: Proposal) -> Decision:
        """Hold before an edit is applied."""
        hit = b.before_compaction(self.breakpoints, proposal.policy, proposal.edit.stage)
        held = self.holds(proposal.pass_id, proposal.policy, proposal.edit.stage)
        decision: Decision
        if held:
            self._work_for(proposal.pass_id)
            decision = await self._hold_pass(
                Stop(
                    Point.EDIT,
                    breakpoint=str(hit) if hit else "compaction",
                    reason=proposal.edit.reason,
                    proposal=proposal,
                )
            )
        else:
            decision = self._final(proposal)
        if isinstance(decision, Apply | Amend | Refuse):
            self._work = None
        return decision

    def _final(self, proposal: Proposal) -> Decision:
        """The edit as the user left it."""
        work = self._work_of(proposal.pass_id)
        if work is None or not (told := words(work.decisions)):
            return Apply()
        return Amend(chosen(proposal, work.drops), (told,))

    def _work_of(self, pass_id: str) -> _Work | None:
        return self._work if self._work is not None and self._work.pass_id == pass_id else None

    def _work_for(self, pass_id: str) -> _Work:
        found = self._work_of(pass_id)
        if found is None:
            found = self._work = _Work(pass_id)
        return found

    async def _hold_pass(self, stop: Stop) -> Decision:
        try:
            return await self._hold(self._revised(stop))
        except asyncio.CancelledError:
            self._work = None
            raise

    def _revised(self, stop: Stop) -> Stop:
        """The stop with its proposal made anew, with the pins and drops there are now."""
        work, proposal = self._work_of(stop.pass_id), stop.proposal
        if work is None:
            return stop
        if proposal is not None:
            proposal = revised(proposal, self._recorder.state.pins, work.drops)
        return msgspec.structs.replace(
            stop, proposal=proposal, drops=work.drops, told=words(work.decisions)
        )

    # -- going on ------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Go on to the next breakpoint; a compaction that is held is applied as it stands."""
        self._leave("continue")

    def step(self) -> None:
        """Stop after the next round; from a stop, go on until then."""
        if self.stop is not None:
            self._ready()
        self._stepping = True
        if self.stop is not None:
            self._leave(STEP)

    def apply(self) -> None:
        """Ask for the summary as shown (at SUMMARY), or apply the edit as shown (at EDIT)."""
        stop, work = self._held()
        self._ready()
        self._note(work, e.Choice.APPLY)
        if stop.point is Point.SUMMARY:
            self._open("apply", Apply())
        elif stop.proposal is not None:
            self._open("apply", self._final(stop.proposal))

    def skip(self) -> None:
        """Not this time."""
        _, work = self._held()
        self._note(work, e.Choice.SKIP)
        self._open("skip", Refuse(SKIPPED))

    def context_changed(self) -> None:
        """Something came back into the context: a proposal that is held is made anew."""
        if self.stop is not None and self.stop.pass_id:
            self._open("again", Again())

    def _leave(self, how: str) -> None:
        stop = self.stop
        if stop is None:
            raise ThresherError("Not stopped", "the agent stands at no breakpoint.")
        if not stop.pass_id:
            self._open(how, Apply())
            return
        _, work = self._held()
        self._ready()
        self._note(work, e.Choice.APPLY)
        if stop.point is Point.SUMMARY:
            work.through = True
            self._open(how, Apply())
        elif stop.proposal is not None:
            self._open(how, self._final(stop.proposal))

    def _ready(self) -> None:
        if self.stop is not None and (objections := self.stop.objections):
            raise ThresherError("Not applied", f"{'; '.join(objections)}: change it, or skip it.")

    # -- changing the proposal -----------------------------------------------------------------

    def pin(self, ids: Iterable[EntryId]) -> None:
        """These entries survive every compaction from here on."""
        context = self._recorder.state.context
        new = tuple(id for id in ids if id not in self._recorder.state.pins)
        for id in new:
            if context.place(id) is None:
                raise ThresherError("Not pinned", f"{id} is not in the context: restore it first.")
        if not new:
            return
        self._recorder.emit(e.EntriesPinned(entries=written(new), pass_id=self._pass_id))
        if (work := self._current) is not None:
            work.drops = tuple(id for id in work.drops if id not in new)
        self._changed(e.Choice.PIN, new)

    def unpin(self, ids: Iterable[EntryId]) -> None:
        """These entries may go again."""
        gone = tuple(id for id in ids if id in self._recorder.state.pins)
        if gone:
            self._recorder.emit(e.EntriesUnpinned(entries=written(gone), pass_id=self._pass_id))
            self._changed(e.Choice.UNPIN, gone)

    def drop(self, ids: Iterable[EntryId]) -> None:
        """These entries go with the edit that is held, whatever the policy says of them."""
        stop, work = self._held()
        new = tuple(id for id in ids if id not in work.drops)
        for id in new:
            if id in self._recorder.state.pins:
                raise ThresherError("Not dropped", f"{id} is pinned: unpin it first.")
            if stop.situation is None or stop.situation.context.place(id) is None:
                raise ThresherError("Not dropped", f"{id} is not in the context.")
        if new:
            work.drops = (*work.drops, *new)
            self._changed(e.Choice.DROP, new)

    def keep(self, ids: Iterable[EntryId]) -> None:
        """Take drops back: the policy decides about these entries again."""
        _, work = self._held()
        back = tuple(id for id in ids if id in work.drops)
        if back:
            work.drops = tuple(id for id in work.drops if id not in back)
            self._changed(e.Choice.KEEP, back)

    def focus(self, text: str) -> None:
        """What the summary must keep above all: it is asked for anew with this."""
        stop, work = self._held()
        situation = stop.situation
        if situation is None or not self._summarises(stop):
            raise ThresherError(
                "No summary", "this compaction asks for none, so a focus has no use."
            )
        work.ask_now = stop.point is Point.EDIT
        self._note(work, e.Choice.FOCUS, text=text.strip())
        self._open("again", Again(situation=msgspec.structs.replace(situation, focus=text.strip())))

    def fresh_summary(self) -> None:
        """Ask for another summary in place of the one that is there."""
        stop, work = self._held()
        if stop.point is not Point.EDIT or not self._summarises(stop):
            raise ThresherError("No summary", "there is none yet that could be asked for anew.")
        work.ask_now = True
        self._note(work, e.Choice.FRESH)
        self._open("again", Again())

    def write_summary(self, text: str) -> None:
        """This text is the summary: in place of asking for one, or of the one that is there."""
        stop, work = self._held()
        if not text.strip():
            raise ThresherError("No summary", "an empty text cannot stand for what goes.")
        if stop.pending is not None:
            if not isinstance(stop.pending.ask, Summarise):
                raise ThresherError(
                    "Not written", "the provider compacts here by itself, and seals what it writes."
                )
            self._note(work, e.Choice.WRITTEN, text=text)
        else:
            summary = stop.proposal.edit.summary if stop.proposal is not None else None
            if summary is None or summary.encrypted:
                raise ThresherError("Not written", "this compaction has no summary to edit.")
            self._note(work, e.Choice.SUMMARY, text=text)
        self._open("write", Write(text))

    def choose_policy(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Another policy makes the proposal of this pass; the one in force stays in force."""
        stop, work = self._held()
        state, situation = self._recorder.state, stop.situation
        policy = self._make_policy(name, params or {})
        if situation is None:
            raise ThresherError("Not chosen", "no compaction is held.")
        situation = situation_for(policy, situation, state)
        seen = foresee(policy, situation)
        if seen.edit is None and seen.ask is None:
            raise ThresherError("Nothing proposed", f"{name} would do nothing here: {seen.reason}")
        self._note(work, e.Choice.POLICY, text=name)
        self._open("again", Again(policy, situation))

    # -- small things --------------------------------------------------------------------------

    @property
    def _pass_id(self) -> str:
        return self.stop.pass_id if self.stop is not None else ""

    @property
    def _current(self) -> _Work | None:
        return self._work_of(self._pass_id) if self._pass_id else None

    def _held(self) -> tuple[Stop, _Work]:
        if self.stop is None or not self.stop.pass_id or self._door is None or self._door.done():
            raise ThresherError("Not stopped", "no compaction is held here.")
        return self.stop, self._work_for(self.stop.pass_id)

    def _summarises(self, stop: Stop) -> bool:
        if stop.pending is not None:
            return True
        return stop.proposal is not None and stop.proposal.edit.summary is not None

    def _changed(self, choice: e.Choice, ids: tuple[EntryId, ...]) -> None:
        if (work := self._current) is not None:
            self._note(work, choice, entries=written(ids))
            if self.stop is not None:
                self.stop = self._revised(self.stop)

    def _note(self, work: _Work, choice: e.Choice, *, entries: str = "", text: str = "") -> None:
        event = e.CompactionDecided(pass_id=work.pass_id, choice=choice, entries=entries, text=text)
        work.decisions.append(event)
        self._recorder.emit(event)
