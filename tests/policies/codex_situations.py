"""Situations for Codex's rules, and plans that are answered without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thresher.core.compaction.policy import (
    Account,
    Answer,
    Edit,
    Moment,
    Policy,
    RequestShape,
    Situation,
    Step,
    Trigger,
)
from thresher.core.context import Change
from thresher.core.items import FunctionCall, FunctionCallOutput, Item, Message, Role
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact, Origin
from thresher.core.tokens import CharClassCounter, Usage

from ..strategies import context_of

UNKNOWN = Fact(None, "nobody says")


def budget(window: int | None) -> Budget:
    fact = UNKNOWN if window is None else Fact(window, "a test", Origin.USER)
    return Budget(fact, UNKNOWN, UNKNOWN, UNKNOWN)


def situation(
    items: Sequence[Item] = (),
    *,
    used: int | None = None,
    first: int | None = None,
    window: int | None = 20_000,
    moment: Moment = Moment.AFTER_ROUND,
    trigger: Trigger = Trigger.AUTO,
    account: Account | None = None,
    **more: Any,
) -> Situation:
    """`used` is the reported total, `first` the first reported input of the window."""
    known = account or Account(first=None if first is None else Usage(first))
    return Situation(
        moment=moment,
        trigger=trigger,
        context=context_of(items),
        shape=more.pop("shape", RequestShape()),
        budget=budget(window),
        measure=Ledger(CharClassCounter()),
        usage=None if used is None else Usage(used),
        account=known,
        **more,
    )


def run(policy: Policy, at: Situation, *answers: Answer) -> list[Step]:
    """The steps of a plan; each gets the next answer."""
    plan = policy.plan(at)
    waiting = list(answers)
    steps: list[Step] = []
    answer: Answer = None
    while True:
        try:
            step = plan.send(answer)
        except StopIteration:
            return steps
        steps.append(step)
        asks = type(step).__name__ in ("Summarise", "CompactRemotely")
        answer = waiting.pop(0) if asks and waiting else None


def applied(at: Situation, step: Step) -> Change:
    """What an edit makes of the situation's context."""
    assert isinstance(step, Edit)
    return at.context.apply(step.segments, 1_000, 1)


def harness(text: str, role: Role = Role.USER) -> Message:
    """A message that the harness wrote."""
    return Message(role, text, synthetic=True)


def work(id: str, output: str = "done", name: str = "bash") -> list[Item]:
    """A call and its output."""
    return [FunctionCall(id, name, "{}"), FunctionCallOutput(id, output)]
