"""Why now, and why not: the rules of the policies with their numbers, in words.

A compaction tells its reason itself. What the record leaves out (the rules that did not fire, the
policies that were not in force, all moments without a compaction) is asked again: policies are
pure, so `compaction/whatif.py` runs them on the state of that position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from .. import events as e
from ..amounts import count
from ..compaction.policies.registry import make, names, policies
from ..compaction.policy import Mark, Moment, Policy, Situation, SkipKind, Trigger
from ..compaction.whatif import Ruling, rulings, situation_at
from ..errors import ThresherError
from ..forecast import Forecast, forecast_of
from ..history import History
from ..state import SessionState
from ..tokens import Basis
from ..views import Card
from .moments import Offered, moments

_TRIGGERS = {
    Moment.MANUAL: Trigger.MANUAL,
    Moment.OVERFLOW: Trigger.OVERFLOW,
    Moment.MODEL_CHANGE: Trigger.MODEL_CHANGE,
}
_MODELLED = {"codex": "codex", "claude-code": "claude-code", "opencode": "opencode-v1"}
"""Which policy rebuilds the rule of which agent."""
_USUAL = (
    Moment.AFTER_ROUND, Moment.BEFORE_REQUEST, Moment.TURN_START, Moment.TURN_END,
    Moment.MANUAL, Moment.OVERFLOW,
)  # fmt: skip
"""Where a policy is asked in its place when it is not asked at the moment in question."""


class Number(msgspec.Struct, frozen=True):
    """A number of the decision, in tokens: its name, its value (None: unknown), and who says so."""

    name: str
    value: int | None
    source: str


class Miss(msgspec.Struct, frozen=True):
    """A threshold against the present size. `missing` is how many tokens lay between them, at most
    0 where it was reached, None where the size is unknown."""

    mark: Mark
    used: int | None
    basis: Basis | None
    missing: int | None
    words: str


class Other(msgspec.Struct, frozen=True):
    """What another policy would have said. `moment` is where it was asked: its own usual one where
    it is not asked at the moment in question (`elsewhere`)."""

    policy: str
    title: str
    due: bool
    misses: tuple[Miss, ...]
    rulings: tuple[Ruling, ...]
    moment: Moment
    elsewhere: bool


class WhyNow(msgspec.Struct, frozen=True):
    """Why a compaction ran. `rule` is policy and stage, `words` its own reason, `evidence` how the
    reason is known; `stages` are the rules of the same policy that were evaluated before it."""

    ordinal: int
    line: int
    rule: str
    words: str
    evidence: str
    trigger: Trigger
    moment: Moment | None
    numbers: tuple[Number, ...]
    stages: tuple[Ruling, ...]
    misses: tuple[Miss, ...]
    others: tuple[Other, ...]


class WhyNot(msgspec.Struct, frozen=True):
    """Why nothing happened at a moment; where something did, `words` says what."""

    offered: Offered
    words: str
    rulings: tuple[Ruling, ...]
    numbers: tuple[Number, ...]
    misses: tuple[Miss, ...]


class Outlook(msgspec.Struct, frozen=True):
    """When a policy's next compaction is due at the present growth."""

    policy: str
    title: str
    in_force: bool
    forecast: Forecast


# Why now and why not ----------------------------------------------------------------------------


def why_now(history: History, card: Card, *, others: bool = True) -> WhyNow:
    """The reason of a compaction with every number that was there, and what other rules said.

    `others` asks all other policies as well, which takes as long as their rules do.
    """
    before = history.at(_began(history, card))
    policy = policy_of(before) if card.policy == before.policy else None
    moment = card.moment or Moment.AFTER_ROUND
    said: tuple[Ruling, ...] = ()
    if policy is not None:
        said = rulings(policy, _situation(before, moment, card.trigger, card.focus))
    return WhyNow(
        ordinal=card.ordinal,
        line=card.n,
        rule=" ".join(part for part in (card.policy, card.stage) if part),
        words=card.reason or "no reason is on record",
        evidence=card.reason_evidence,
        trigger=card.trigger,
        moment=card.moment,
        numbers=numbers(before, card),
        stages=tuple(ruling for ruling in said if not ruling.due),
        misses=misses(before, policy),
        others=tuple(other_policies(before, moment)) if others else (),
    )


def why_not(
    history: History, offered: Offered, *, also_at: frozenset[Moment] = frozenset()
) -> WhyNot:
    """What the policy in force said at a moment (`moments`).

    `also_at` are the moments that the engine was set to ask at as well; the record has no word of
    them.
    """
    state = history.at(offered.position)
    policy = policy_of(state)
    said: tuple[Ruling, ...] = ()
    if offered.ordinal:
        words = f"compaction {offered.ordinal} happened here"
    elif policy is None:
        policy, said, words = _modelled(state, offered.moment)
    elif state.breaker_open:
        failures = count(state.failures, "failure")
        words = f"automatic compaction was off after {failures} in a row"
    elif offered.moment not in policy.moments | also_at:
        asked = ", ".join(moment.words for moment in Moment if moment in policy.moments)
        words = f"{policy.name} is not asked {offered.moment.words}, only: {asked}"
    else:
        trigger = _TRIGGERS.get(offered.moment, Trigger.AUTO)
        said = rulings(policy, _situation(state, offered.moment, trigger))
        words = " ".join(ruling.reason for ruling in said) or "the policy said nothing"
        if offered.outcome:
            words = f"a pass ended here without a change ({offered.outcome}). {words}"
        elif said and said[-1].due:
            words = f"by the record the rule was due, and nothing ran. {words}"
    return WhyNot(offered, words, said, numbers(state), misses(state, policy))


def why_not_at(history: History, position: int) -> WhyNot | None:
    """The same for the last moment at or before a position; None where there was none yet."""
    found = [offered for offered in moments(history) if offered.position <= position]
    return why_not(history, found[-1]) if found else None


def other_policies(state: SessionState, moment: Moment) -> Iterator[Other]:
    """What every policy but the one in force says of this state, with its usual constants."""
    for name, kind in policies().items():
        if name == state.policy:
            continue
        policy = make(name)
        # What is asked for by hand says nothing about the rule of another policy.
        here = moment in kind.moments and moment is not Moment.MANUAL
        at = moment if here else _usual(kind.moments)
        said = rulings(policy, _situation(state, at, _TRIGGERS.get(at, Trigger.AUTO), own=False))
        yield Other(
            policy=name,
            title=kind.title,
            due=bool(said) and said[-1].due and said[-1].kind is not SkipKind.NO_OP,
            misses=misses(state, policy),
            rulings=said,
            moment=at,
            elsewhere=at is not moment,
        )


def misses(state: SessionState, policy: Policy | None) -> tuple[Miss, ...]:
    """By how much the present size misses each threshold of a policy."""
    used = state.reported
    found: list[Miss] = []
    for mark in marks_of(state, policy):
        if used is None:
            words = f"{mark.name} {mark.tokens:,}: nothing was reported since the last compaction"
            found.append(Miss(mark, None, None, None, words))
            continue
        missing = mark.tokens - used.value
        reached = f"reached by {-missing:,}" if missing <= 0 else f"missed by {missing:,}"
        words = f"{mark.name} {mark.tokens:,}: {reached} ({used.value:,} {used.basis})"
        found.append(Miss(mark, used.value, used.basis, missing, words))
    return tuple(found)


# Forecast ---------------------------------------------------------------------------------------


def outlooks(state: SessionState) -> tuple[Outlook, ...]:
    """The forecast for the policy in force, first, and for the thresholds of all others, the
    soonest first. `Forecast` carries the uncertainty: soonest and latest."""
    mine = policy_of(state)
    found: list[Outlook] = []
    for name, kind in policies().items():
        if name == state.policy:
            continue
        forecast = forecast_of(state, marks_of(state, make(name)))
        found.append(Outlook(name, kind.title, False, forecast))
    found.sort(key=lambda each: (each.forecast.rounds is None, each.forecast.rounds or 0))
    if mine is not None:
        forecast = forecast_of(state, marks_of(state, mine))
        found.insert(0, Outlook(mine.name, mine.title, True, forecast))
    return tuple(found)


# What is known ----------------------------------------------------------------------------------


def numbers(state: SessionState, card: Card | None = None) -> tuple[Number, ...]:
    """Every number that a rule may look at, each with its source."""
    found: list[Number] = []
    if state.budget is None:
        found.append(Number("window", None, "the session names no limits"))
    else:
        budget = state.budget
        for name, fact in (
            ("window", budget.window),
            ("max input", budget.max_input),
            ("max output", budget.max_output),
            ("reserve", budget.reserve),
        ):
            found.append(Number(name, fact.value, fact.source))
        # The sources stand beside their numbers already; here only the arithmetic counts.
        found.append(Number("limit", budget.limit, budget.explain().partition(". ")[0]))
    usage = card.usage if card is not None and card.usage is not None else state.usage
    if usage is None:
        found.append(Number("usage", None, "nothing was reported since the last compaction"))
    else:
        found.append(Number("usage", usage.total, _usage_source(state)))
        if state.since_usage:
            words = f"{_basis(state)}, entries after that report"
            found.append(Number("since usage", state.since_usage, words))
    held = state.messages_tokens
    found.append(Number("context", held.value, f"{_basis(state)}, messages only"))
    found += [
        Number(mark.name, mark.tokens, mark.source) for mark in marks_of(state, policy_of(state))
    ]
    return tuple(found)


def policy_of(state: SessionState) -> Policy | None:
    """The policy in force with its constants; None where it is not one of ours."""
    if state.policy not in names():
        return None
    try:
        return make(state.policy, state.policy_params)
    except ThresherError:
        return None  # recorded by another version, whose constants are not ours


def marks_of(state: SessionState, policy: Policy | None) -> Sequence[Mark]:
    """The thresholds of a policy under the budget of a state."""
    if policy is None or state.budget is None:
        return ()
    return policy.marks(state.budget)


def _situation(
    state: SessionState,
    moment: Moment,
    trigger: Trigger = Trigger.AUTO,
    focus: str = "",
    own: bool = True,
) -> Situation:
    return situation_at(state, moment, trigger=trigger, focus=focus, own_memory=own)


def _began(history: History, card: Card) -> int:
    """The position before the first record of a pass: the state that its rule looked at."""
    position = max(0, history.position_of(card.n) - 1)
    for at in range(position, -1, -1):
        event = history.records[at].event
        if getattr(event, "pass_id", None) == card.pass_id and not isinstance(
            event, e.HistoryCompacted
        ):
            position = at
        elif isinstance(event, e.ItemAppended | e.TurnStarted | e.HistoryCompacted) and (
            history.records[at].n < card.n
        ):
            break
    return position


def _modelled(state: SessionState, moment: Moment) -> tuple[Policy | None, tuple[Ruling, ...], str]:
    """What our rebuilding of a foreign agent's rule says, where there is one."""
    name = _MODELLED.get(state.agent, "")
    if state.policy or name not in policies():
        own = state.policy or "the policy in force"
        return None, (), f"{own} is not one of thresher's, so what its rule said is not known"
    policy = make(name)
    head = f"the rule of {state.agent} is not on record. {policy.title} by its usual constants: "
    if moment not in policy.moments:
        return policy, (), f"{head}it is not asked {moment.words}"
    said = rulings(policy, _situation(state, moment, _TRIGGERS.get(moment, Trigger.AUTO)))
    return policy, said, head + (" ".join(ruling.reason for ruling in said) or "nothing")


def _usage_source(state: SessionState) -> str:
    last = next((point for point in reversed(state.points) if point.card < 0), None)
    where = f" at #{last.n}" if last is not None else ""
    if state.usage_estimated:
        return f"the program's own estimate{where}, whole request"
    return f"reported by the provider{where}, whole request"


def _basis(state: SessionState) -> str:
    """How our own figures come about, with the correction by the session's reports."""
    ratio = state.correction.ratio
    if state.basis is not Basis.ESTIMATED or ratio == 1:
        return state.basis.value
    return f"{state.basis} × {ratio:.2f} as the session's own reports suggest"


def _usual(own: frozenset[Moment]) -> Moment:
    return next((moment for moment in _USUAL if moment in own), Moment.AFTER_ROUND)
