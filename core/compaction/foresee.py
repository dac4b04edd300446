"""What a policy would do next if its summary were there: a plan, run to its edit with a stand-in.

A policy is pure, so its plan can be run as often as one likes. The answers that were really given
are given again; what is not answered yet gets a placeholder, and nothing is sent or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from .policy import (
    Answer,
    Append,
    Applied,
    CompactRemotely,
    Edit,
    Files,
    Persist,
    Plan,
    Policy,
    Reread,
    Situation,
    Skip,
    Step,
    Stored,
    Summarise,
    Summary,
)

PLACEHOLDER = "(The summary is not written yet.)"
"""Stands where the text of a summary will be."""

_MOST_STEPS = 100


class Foreseen(msgspec.Struct, frozen=True):
    """The first edit that comes, or why there is none; and the first summary that is asked for
    on the way, if one is."""

    edit: Edit | None = None
    ask: Summarise | CompactRemotely | None = None
    reason: str = ""


def foresee(
    policy: Policy,
    situation: Situation,
    answers: Sequence[Answer] = (),
    *,
    write: Callable[[Summarise], Summary] = lambda ask: Summary(PLACEHOLDER, ""),
) -> Foreseen:
    """Run a plan to its next edit. `answers` are those it was given so far, in order; `write` gives
    what stands for a summary. Never raises: a policy that fails is told as the reason why there is
    no edit."""
    ask: Summarise | CompactRemotely | None = None
    reason = f"{policy.name} has nothing to do here"
    plan: Plan | None = None
    try:
        plan = policy.plan(situation)
        step = rerun(plan, answers)
        for _ in range(_MOST_STEPS):
            match step:
                case Edit(output=None):
                    return Foreseen(step, ask)
                case Skip():
                    reason = step.reason
                case Summarise() | CompactRemotely():
                    ask = ask or step
                case _:
                    pass
            step = plan.send(_stand_in(step, situation, write))
    except StopIteration:
        pass
    except Exception as fault:
        # A policy may be a user's own file.
        reason = f"{policy.name} raised {type(fault).__name__}: {fault}"
    finally:
        with suppress(Exception):
            if plan is not None:
                plan.close()
    return Foreseen(None, ask, reason)


def rerun(plan: Plan, answers: Sequence[Answer]) -> Step:
    """Bring a fresh plan to where an earlier one of the same situation was, and give its step.
    Raises StopIteration where the plan ends before, and whatever the policy raises."""
    step = plan.send(None)
    for answer in answers:
        step = plan.send(answer)
    return step


def _stand_in(step: Step, situation: Situation, write: Callable[[Summarise], Summary]) -> Answer:
    match step:
        case Summarise():
            return write(step)
        case CompactRemotely():
            return Summary("", "", encrypted=PLACEHOLDER)
        case Persist(name=name):
            return Stored(name)
        case Reread():
            return Files(())
        case Append():
            return Applied(situation.context)
        case _:
            return None
