"""When the next compaction is due at the present rate, as a sentence for the meter."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.compaction.policy import Mark
from thresher.core.forecast import forecast_of
from thresher.core.state import SessionState, Status
from thresher.core.text import clean_line

from .figures import count


def outlook(state: SessionState, marks: Sequence[Mark]) -> tuple[str, ...]:
    """The sentence, the longest form first; empty when the policy has no threshold."""
    if not marks or state.finished:
        return ()
    if state.status is Status.COMPACTING:
        return ("compacting now",)
    found = forecast_of(state, marks)
    if found.rounds == 0:
        name = clean_line(found.mark.name, 20) if found.mark is not None else "threshold"
        return (f"{name} reached, compaction is due", "compaction is due")
    if found.rounds is None or found.growth is None:
        return (f"next compaction {clean_line(found.words, 80)}", "next compaction unknown")
    rounds = count(found.rounds, "round")
    told = f"compaction in ~{rounds}"
    return (f"{told} at ~{found.growth:,.0f} a round", told, f"~{rounds} left")
