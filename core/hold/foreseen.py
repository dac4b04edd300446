"""A program that waits, as a stop: why it compacts now, what that would do, what can be decided.

What it would do is a forecast: the policy of ours that follows the program's rule is run over the
context as its file tells it, with an extractive summary in place of the one its model will write.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..compaction.checking import look
from ..compaction.foresee import foresee
from ..compaction.gate import Proposal
from ..compaction.offline_summary import extract
from ..compaction.policies.registry import make, names
from ..compaction.policy import Moment, Situation, Summarise, Summary, Trigger
from ..compaction.whatif import situation_at
from ..context import EntryId
from ..debug.stop import Outside, Point, Stop
from ..errors import ThresherError
from ..items import Item
from ..state import SessionState
from ..validate import Dialect
from .desk import BREAKPOINT, Held
from .programs import Program

STAND_IN = "offline stand-in, extractive"
"""Who wrote the summary of a forecast."""
FORECAST = (
    "A forecast: what this program would do by its specification, with an offline stand-in for the "
    "summary. What it reads or inserts afresh (files, its initial context) is not in it."
)
MOST_OF_ENTRY, MOST_ASKED = 2_000, 12_000
"""Characters of what a model is asked to keep word for word: of one entry, and of all."""


def situation_of(state: SessionState, program: Program, held: Held) -> Situation:
    """What the program's policy is asked about: to compact now, whatever its rule of when says."""
    trigger = Trigger.MANUAL if held.first.trigger == "manual" else Trigger.AUTO
    own = policy_of(state, program) == state.policy
    return situation_at(
        state,
        Moment.MANUAL,
        trigger=trigger,
        focus=held.first.instructions,
        own_memory=own,
    )


def policy_of(state: SessionState, program: Program) -> str:
    """Which policy of ours follows the rule of this session: its record may name a kind of it."""
    own = state.policy.startswith(program.policy) and state.policy in names()
    return state.policy if own else program.policy


def stop_of(state: SessionState, program: Program, version: str, held: Held) -> Stop:
    """The stop without its forecast, which takes longer."""
    trigger = held.first.trigger
    name = f"{program.title} {version}".strip()
    cannot = "drops, a summary of yours, another policy"
    return Stop(
        Point.PROGRAM,
        breakpoint=BREAKPOINT,
        reason=why_now(state, program, held),
        outside=Outside(
            pass_id=held.pass_id,
            program=name,
            trigger=trigger,
            until=held.first.until,
            may_skip=program.may_skip(version),
            skipping=program.consequence(trigger, version),
            may_focus=program.focus,
            cannot=f"pins, {cannot}" if program.focus else f"a focus, pins, {cannot}",
        ),
    )


def why_now(state: SessionState, program: Program, held: Held) -> str:
    """The trigger, the size, and the threshold, as far as the program's record tells them."""
    trigger, words = held.first.trigger, []
    if trigger == "manual":
        focus = held.first.instructions
        words.append(f"Asked for by hand{f', with: {focus}' if focus else ''}.")
    else:
        words.append(f"Trigger {trigger or 'not told'}.")
    if state.usage is not None and not state.usage_estimated:
        words.append(f"Last request: {state.usage.total:,} tokens reported.")
    if trigger == "manual":
        return " ".join(words)
    limit = _limit(state, program)
    words.append(
        f"Due at {limit} by its specification, if nothing else is set."
        if limit
        else "The threshold is not in its record."
    )
    return " ".join(words)


def _limit(state: SessionState, program: Program) -> str:
    if state.budget is None:
        return ""
    try:
        marks = make(policy_of(state, program), {}).marks(state.budget)
    except (ThresherError, ValueError):
        return ""
    due = [mark for mark in marks if mark.name in _DUE]
    if not due:
        return ""
    # Some policies name the figure in its source.
    number, source = f"{due[0].tokens:,}", due[0].source
    return source if number in source else f"{number} ({source})"


_DUE = ("threshold", "limit")
"""The marks at which a policy compacts; others warn, or say what is reserved."""


def foreseen(
    situation: Situation, policy_name: str, held: Held, line: int, ordinal: int
) -> Proposal | str:
    """The edit that the program's rule would make, or in words why it cannot be foreseen. May take
    a while, and touches nothing: a thread may run it."""
    policy = make(policy_name, {})
    seen = foresee(policy, situation, write=_written)
    if seen.edit is None and situation.trigger is not Trigger.MANUAL:
        # The program has decided that it is due: its limit may be another one than is known here.
        by_hand = msgspec.structs.replace(situation, trigger=Trigger.MANUAL)
        seen = foresee(policy, by_hand, write=_written)
    if seen.edit is None:
        return seen.reason
    try:
        looked = look(
            situation.context,
            seen.edit,
            pins=(),
            dialect=Dialect.CHAT,
            measure=situation.measure,
            line=line,
            ordinal=ordinal,
        )
    except ValueError as fault:
        return f"the edit does not fit the context as it was read: {fault}"
    return Proposal(
        pass_id=held.pass_id,
        policy=policy.name,
        moment=situation.moment,
        trigger=situation.trigger,
        context=situation.context,
        edit=looked.edit,
        change=looked.change,
        before=looked.before,
        after=looked.after,
        raw=seen.edit,
        situation=situation,
        enforced=False,
        line=line,
        ordinal=ordinal,
    )


def _written(ask: Summarise) -> Summary:
    text = extract(ask.source or ask.items, focus=ask.focus)
    return Summary(text, STAND_IN, attempts=0, note=FORECAST)


def asking(focus: str, texts: Iterable[str]) -> str:
    """What the program's model is asked: the focus, and the texts it should keep. It is a wish,
    which no program checks."""
    parts = [focus.strip()] if focus.strip() else []
    wanted = [f"- {text.strip()[:MOST_OF_ENTRY]}" for text in texts if text.strip()]
    if wanted:
        parts.append("\n".join(("Keep these texts word for word in the summary:", *wanted)))
    return "\n\n".join(parts)[:MOST_ASKED]


def _whole(state: SessionState, item: Item) -> str:
    """The text of an entry, of which a large session holds only the head."""
    try:
        return (state.bodies.whole(item) if item.body is not None else item).text
    except ThresherError:
        # The file has changed: the head alone has to do.
        return item.text


def with_wishes(stop: Stop, state: SessionState, focus: str, asked: tuple[EntryId, ...]) -> Stop:
    """The stop with what the user wants its model to keep."""
    if stop.outside is None:
        return stop
    texts = (_whole(state, state.known[id].item) for id in asked if id in state.known)
    told = asking(focus, texts)
    outside = msgspec.structs.replace(stop.outside, focus=focus, asked=asked, told=told)
    parts = [
        "focus given" if focus else "",
        f"asks its model to keep {len(asked)} word for word (a wish, no promise)" if asked else "",
    ]
    return msgspec.structs.replace(
        stop, outside=outside, told=", ".join(part for part in parts if part)
    )
