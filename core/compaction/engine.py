"""The engine: offers moments to a policy and acts on what it decides.

A policy only says what it wants. Everything with an effect is here and in the files beside it:
`passes` drives one run of a policy, `asks` and `fallback` answer it, `guards` object to edits,
`progress` and `breaker` stop what repeats or fails, `gate` lets somebody hold an edit, `telling`
puts it on record. Every outcome is an event; only a rule that was evaluated and did not fire is
not, since that happens every round.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from .. import events as e
from ..items import FunctionCallOutput, Item
from ..models import Budget, Fact
from ..state import SessionState
from .asks import Asks, RemoteCompaction, Rereading
from .breaker import Breaker
from .fallback import Chain
from .gate import Gate
from .passes import Effects, Pass
from .policy import (
    Account,
    BringsTools,
    Measure,
    Moment,
    Policy,
    RequestShape,
    Situation,
    Trigger,
)
from .progress import Progress
from .recorder import Recorder
from .settings import EngineSettings, Guard, Verdict
from .store import Store
from .summariser import Summariser

_TRIGGERS = {
    Moment.MANUAL: Trigger.MANUAL,
    Moment.OVERFLOW: Trigger.OVERFLOW,
    Moment.MODEL_CHANGE: Trigger.MODEL_CHANGE,
}


_CHECKED = frozenset({Moment.TURN_START, Moment.BEFORE_REQUEST, Moment.AFTER_ROUND})
"""Moments at which the engine looks at its own threshold."""


class Engine:
    """Runs a policy on one record. Its methods are called from one event loop, one offer at a
    time; the agent keeps no call open while it offers, except at TOOL_OUTPUT.

    `clock` is in seconds and only measures durations; `sleep` waits between retries.
    """

    def __init__(
        self,
        recorder: Recorder,
        policy: Policy,
        *,
        summarisers: Sequence[Summariser],
        settings: EngineSettings,
        measure: Measure,
        store: Store | None,
        gate: Gate | None = None,
        reread: Rereading | None = None,
        remote: RemoteCompaction | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.recorder = recorder
        self.policy = policy
        self.settings = settings
        self.measure = measure
        self._effects = Effects(
            recorder=recorder,
            settings=settings,
            asks=Asks(
                Chain(
                    summarisers,
                    recorder=recorder,
                    measure=measure,
                    settings=settings,
                    clock=clock,
                    sleep=sleep,
                ),
                store=store,
                reread=reread,
                remote=remote,
            ),
            gate=gate,
            breaker=Breaker(settings.max_failures),
            progress=Progress(settings.min_progress),
            clock=clock,
        )

    async def offer(
        self,
        moment: Moment,
        *,
        shape: RequestShape,
        model: str,
        trigger: Trigger = Trigger.AUTO,
        focus: str = "",
        fresh_output: FunctionCallOutput | None = None,
        fresh: tuple[Item, ...] = (),
        previous_model: str = "",
        previous_budget: Budget | None = None,
    ) -> Verdict:
        """Ask the policy at a moment, and do what it says.

        A trigger of AUTO becomes that of the moment where the moment has one of its own. Raises
        only what the recorder raises, and CancelledError (recorded first).
        """
        if trigger is Trigger.AUTO:
            trigger = _TRIGGERS.get(moment, trigger)
        asked = moment in self.policy.moments or moment in self.settings.also_at
        if not asked and trigger is not Trigger.MANUAL:
            return Verdict(reason=f"{self.policy.name} is not asked {moment.words}")
        if blocked := self._effects.breaker.blocks(self.recorder.state, trigger):
            return Verdict(reason=blocked)
        situation = self._situation(
            moment, shape, model, trigger, focus, fresh_output, fresh, previous_model
        )
        if previous_budget is not None:
            situation = msgspec.structs.replace(situation, previous_budget=previous_budget)
        self._effects.progress.reported(situation.usage)
        verdict = await Pass(self.policy, situation, self._effects).run()
        if verdict.outcome is None and (words := self._over_share(situation)):
            verdict = await Pass(
                self.policy,
                msgspec.structs.replace(
                    situation, moment=Moment.MANUAL, trigger=Trigger.MANUAL, by_share=words
                ),
                self._effects,
            ).run()
        return verdict

    def _over_share(self, situation: Situation) -> str:
        """Why the engine's own threshold fires, or an empty text."""
        share, usage = self.settings.threshold_share, situation.usage
        window = situation.budget.window.value
        if share is None or usage is None or window is None or situation.moment not in _CHECKED:
            return ""
        limit = int(share * window)
        if usage.total < limit or self._effects.progress.closed(Trigger.AUTO):
            return ""
        return (
            f"Reported token usage {usage.total:,} reached {limit:,}, "
            f"{share:.0%} of the window {window:,}."
        )

    def serve(self, name: str, *, shape: RequestShape, model: str) -> str | None:
        """The output of a call of a tool that the policy brings; None when it brings no such."""
        policy = self.policy
        if not isinstance(policy, BringsTools) or all(tool.name != name for tool in policy.tools):
            return None
        situation = self._situation(
            Moment.TOOL_OUTPUT, shape, model, Trigger.AUTO, "", None, (), ""
        )
        return policy.serve(name, situation)

    def new_turn(self) -> None:
        """A user's message begins a turn: what was closed or said for the last one is open."""
        self._effects.progress.new_turn()
        self._effects.said.clear()

    def close_breaker(self) -> None:
        """The user wants automatic compaction back."""
        if self.recorder.state.breaker_open:
            self.recorder.emit(e.BreakerClosed(by="user"))
            self.new_turn()

    def set_gate(self, gate: Gate | None) -> None:
        """Who may hold a compaction, from the next offer on."""
        self._effects = dataclasses.replace(self._effects, gate=gate)

    def set_policy(self, policy: Policy) -> None:
        """Another policy from the next moment on; recorded with its constants."""
        self.policy = policy
        self.recorder.emit(
            e.PolicyChanged(policy=policy.name, policy_params=msgspec.to_builtins(policy.params))
        )
        self.new_turn()

    def _situation(
        self,
        moment: Moment,
        shape: RequestShape,
        model: str,
        trigger: Trigger,
        focus: str,
        fresh_output: FunctionCallOutput | None,
        fresh: tuple[Item, ...],
        previous_model: str,
    ) -> Situation:
        state = self.recorder.state
        refused = state.overflow if moment is Moment.OVERFLOW else None
        return Situation(
            moment=moment,
            trigger=trigger,
            context=state.context,
            shape=shape,
            budget=state.budget or _UNKNOWN,
            measure=self.measure,
            # A program's own estimate is no report: a rule that wants one must say so itself.
            usage=None if state.usage_estimated else state.usage,
            since_usage=state.since_usage,
            model=model,
            previous_model=previous_model,
            turn=state.turn,
            round=state.rounds,
            window=state.compactions,
            focus=focus,
            fresh=fresh,
            fresh_output=fresh_output,
            refused_size=refused.used if refused else None,
            refused_limit=refused.limit if refused else None,
            memory=state.memory,
            account=_account(state),
        )


def _account(state: SessionState) -> Account:
    summaries = state.summariser_usage
    return Account(
        turns=state.turns_total,
        summaries=summaries.total if summaries else 0,
        overflows=state.overflows,
        refused=state.refused,
        first=state.first_usage,
    )


_NOT_SAID = Fact(None, "the session names no limits")
_UNKNOWN = Budget(_NOT_SAID, _NOT_SAID, _NOT_SAID, _NOT_SAID)

__all__ = ["Engine", "EngineSettings", "Guard", "Recorder", "Verdict"]
