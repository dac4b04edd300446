"""What each policy would make of the compaction that is held, before one of them is chosen.

A policy is pure, so its plan can be run with a stand-in for the summary; nothing is asked, stored
or told. What is shown for a policy is therefore what choosing it comes to, without the words of a
summary that is not written yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from ..compaction.checking import look
from ..compaction.foresee import Foreseen, foresee
from ..compaction.policies import registry
from ..compaction.policy import Moment, Policy, Situation, Trigger
from ..context import Change, EntryId
from ..errors import ThresherError
from ..state import SessionState
from ..tokens import Tokens
from ..validate import Dialect
from .stop import Stop, chosen

Make = Callable[[str, Mapping[str, Any]], Policy]


class Candidate(msgspec.Struct, frozen=True):
    """A policy and what it would do. `after` is the size of all entries then, of the same basis and
    scope as `before`, and None where the policy proposes nothing or its edit cannot be foreseen.

    `asks` says that a summary would be asked for first. `reason` says why there is no edit, or what
    speaks against the one there is.
    """

    policy: str
    before: Tokens | None = None
    after: Tokens | None = None
    change: Change | None = None
    asks: bool = False
    reason: str = ""


def situation_for(policy: Policy, situation: Situation, state: SessionState) -> Situation:
    """The situation of the pass that is held, as another policy is asked about it: by hand its own
    rule of when does not matter; a refused request stays one."""
    overflow = Moment.OVERFLOW in policy.moments and situation.moment is Moment.OVERFLOW
    return msgspec.structs.replace(
        situation,
        moment=Moment.OVERFLOW if overflow else Moment.MANUAL,
        trigger=Trigger.OVERFLOW if overflow else Trigger.MANUAL,
        memory=state.memory if policy.name == state.policy else {},
    )


def candidate(
    name: str, stop: Stop, state: SessionState, *, make: Make = registry.make
) -> Candidate:
    """What a policy would do at a stop where a compaction is held, with the pins and drops there
    are. A policy that cannot be made, or that fails, is told as the reason."""
    situation = stop.situation
    if situation is None:
        return Candidate(name, reason="no compaction is held")
    try:
        policy = make(name, {})
    except ThresherError as error:
        return Candidate(name, reason=error.msg)
    seen = foresee(policy, situation_for(policy, situation, state))
    if seen.edit is None:
        return Candidate(name, asks=seen.ask is not None, reason=seen.reason)
    return _looked(name, seen, stop, situation, state.pins)


def _looked(
    name: str, seen: Foreseen, stop: Stop, situation: Situation, pins: Collection[EntryId]
) -> Candidate:
    asks, edit = seen.ask is not None, seen.edit
    assert edit is not None  # asked for only where there is one
    proposal = stop.proposal
    try:
        if proposal is not None and stop.drops:
            other = msgspec.structs.replace(proposal, edit=edit, raw=edit)
            edit = chosen(other, stop.drops)
        looked = look(
            situation.context,
            edit,
            pins=pins,
            dialect=proposal.dialect if proposal is not None else Dialect.CHAT,
            measure=situation.measure,
            line=proposal.line if proposal is not None else 0,
            ordinal=proposal.ordinal if proposal is not None else 0,
        )
    except ValueError as error:
        return Candidate(name, asks=asks, reason=str(error))
    return Candidate(
        name,
        before=looked.before,
        after=looked.after,
        change=looked.change,
        asks=asks,
        reason="; ".join(fault.words for fault in looked.faults),
    )
