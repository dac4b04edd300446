"""What a policy would say at a position: its rule, run again from the record alone.

That a rule was evaluated and did not fire happens every round and is not in the journal. It need
not be: a policy is pure, so the same situation gives the same answer. The plan runs until its rule
is decided (the first Start, Edit or Ask), and nothing it wants is done.

The record does not hold the tool schemas of a request, so a policy that counts them sees a smaller
request here than it saw then, unless the caller brings the `RequestShape`.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from ..context import Context
from ..items import Item, user
from ..models import Budget, Fact
from ..state import SessionState
from ..tokens import Basis, Tokens
from .policy import (
    Account,
    Edit,
    Measure,
    Moment,
    Plan,
    Policy,
    RequestShape,
    Situation,
    Skip,
    SkipKind,
    Start,
    Trigger,
)

MOST_STEPS = 100
"""Skips of one plan that are listened to."""


class Ruling(msgspec.Struct, frozen=True):
    """What one rule or stage says. `due` is true where it fired; a rule that fired and found
    nothing to do is `NO_OP`. `reason` is the policy's own arithmetic."""

    policy: str
    stage: str
    due: bool
    reason: str
    kind: SkipKind | None = None


class StateMeasure:
    """A `Measure` that counts with the item cost of a state, so nothing is counted twice."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    @property
    def basis(self) -> Basis:
        """How the figures come about."""
        return self._state.basis

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self._state.costs.cost(user(text)) if text else 0

    def item(self, item: Item) -> int:
        """Tokens of one item."""
        return self._state.costs.cost(item)

    def context(self, context: Context) -> Tokens:
        """Tokens of all entries, messages only."""
        costs = self._state.costs
        total = self._state.messages_tokens
        return msgspec.structs.replace(total, value=sum(costs.of(entry) for entry in context))


def situation_at(
    state: SessionState,
    moment: Moment,
    *,
    trigger: Trigger = Trigger.AUTO,
    shape: RequestShape | None = None,
    measure: Measure | None = None,
    focus: str = "",
    own_memory: bool = True,
) -> Situation:
    """The situation that a policy was in, as far as the record tells it.

    `own_memory` is false for a policy that was not in force: the state kept is not its own.
    """
    refused = state.overflow if moment is Moment.OVERFLOW else None
    summaries = state.summariser_usage
    return Situation(
        moment=moment,
        trigger=trigger,
        context=state.context,
        shape=shape or RequestShape(instructions=state.instructions),
        budget=state.budget or _UNKNOWN,
        measure=measure or StateMeasure(state),
        usage=None if state.usage_estimated else state.usage,
        since_usage=state.since_usage,
        model=state.model,
        turn=state.turn,
        round=state.rounds,
        window=state.compactions,
        focus=focus,
        refused_size=refused.used if refused else None,
        refused_limit=refused.limit if refused else None,
        memory=state.memory if own_memory else {},
        account=Account(
            turns=state.turns_total,
            summaries=summaries.total if summaries else 0,
            overflows=state.overflows,
            refused=state.refused,
            first=state.first_usage,
        ),
    )


def rulings(policy: Policy, situation: Situation) -> tuple[Ruling, ...]:
    """What each rule of the policy says, in its order; the one that fired is the last.

    Never raises: a policy that fails here is told as a ruling that is not due.
    """
    found: list[Ruling] = []
    plan: Plan | None = None
    stage = ""
    try:
        plan = policy.plan(situation)
        for _ in range(MOST_STEPS):
            step = plan.send(None)
            match step:
                case Skip(kind=kind, reason=reason):
                    stage = step.stage or stage
                    due = kind is not SkipKind.NOT_DUE
                    found.append(Ruling(policy.name, stage, due, reason, kind))
                case Start(stage=name, reason=reason) | Edit(stage=name, reason=reason):
                    found.append(Ruling(policy.name, name, True, reason))
                    break
                case _:
                    words = f"it asked for {type(step).__name__.lower()}, so the rule had fired"
                    found.append(Ruling(policy.name, stage, True, words))
                    break
    except StopIteration:
        pass
    except Exception as fault:
        # A policy may be a user's own file, and the record may not hold what it wants.
        words = f"cannot be said: {type(fault).__name__}: {fault}"
        found.append(Ruling(policy.name, stage, False, words))
    finally:
        with suppress(Exception):
            if plan is not None:
                plan.close()
    return tuple(found)


_NOT_SAID = Fact(None, "the session names no limits")
_UNKNOWN = Budget(_NOT_SAID, _NOT_SAID, _NOT_SAID, _NOT_SAID)
