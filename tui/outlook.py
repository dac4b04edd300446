"""When the next compaction is due at the present rate, as one sentence for the meter."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.compaction.policy import Mark
from thresher.core.state import SessionState, Status
from thresher.core.text import clean_line

from .figures import count
from .widgets.meter import expected


def outlook(state: SessionState, marks: Sequence[Mark]) -> tuple[str, ...]:
    """The sentence, the longest form first; empty when there is no threshold or nothing to
    extrapolate from."""
    if not marks or state.finished:
        return ()
    if state.status is Status.COMPACTING:
        return ("compacting now",)
    size, _ = expected(state)
    due = [item for item in marks if item.tokens > size]
    if not due:
        last = max(marks, key=lambda item: item.tokens)
        return (f"{clean_line(last.name, 20)} passed, compaction is due", "compaction is due")
    growth = [grown for grown in state.last_growth if grown > 0]
    if not growth:
        return ()
    rate = sum(growth) / len(growth)
    item = min(due, key=lambda item: item.tokens)
    rounds = max(1, -int(-(item.tokens - size) // rate))
    told = f"compaction in ~{count(rounds, 'round')}"
    return (f"{told} at ~{rate:,.0f} a round", told, f"~{count(rounds, 'round')} left")
