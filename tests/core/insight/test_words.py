from __future__ import annotations

import re

import msgspec
import pytest

from thresher.core import events as e
from thresher.core.compaction.foresee import foresee
from thresher.core.compaction.policies.registry import make, names
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.compaction.whatif import rulings, situation_at
from thresher.core.insight.explain import misses, numbers
from thresher.core.items import assistant, system, user
from thresher.core.models import Budget, Fact, Origin
from thresher.core.state import SessionState

from .sessions import Writer

BARE = re.compile(r"(?<![\d,.#])\d{4,}")
"""A figure of four digits or more without a comma."""

TRIGGERS = {Moment.MANUAL: Trigger.MANUAL, Moment.OVERFLOW: Trigger.OVERFLOW}


def grown(reported: int, window: int, results: int) -> SessionState:
    """A long session with large results, and this last report."""
    w = Writer()
    w.item(system("rules " * 9_000))
    for turn in range(1, 4):
        w.emit(e.TurnStarted(turn=turn))
        w.item(user("go on " * 4_000), turn=turn)
        for _ in range(results):
            w.emit(e.RequestSent(request=w.history.state.requests + 1, turn=turn))
            w.usage(reported)
            w.item(assistant("looking " * 500))
            w.call("bash", '{"command": "ls"}', "listing of a folder\n" * 4_000)
    state = w.history.state
    known = Fact(window, "the settings file", Origin.USER)
    budget = Budget(known, known, Fact(16_384, "the endpoint"), Fact(None, "nobody says so"))
    state.budget = budget
    return state


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("reported", [12_345, 1_234_567])
def test_figures_in_the_words_of_a_policy_are_grouped(name: str, reported: int) -> None:
    state = grown(reported, 131_072, 4)
    policy = make(name)
    said = [miss.words for miss in misses(state, policy)]
    said += [number.source for number in numbers(state, None)]
    said += [mark.source for mark in policy.marks(state.budget)] if state.budget else []
    for moment in Moment:
        trigger = TRIGGERS.get(moment, Trigger.AUTO)
        here = situation_at(state, moment, trigger=trigger)
        refused = msgspec.structs.replace(here, refused_size=140_000, refused_limit=131_072)
        for situation in (here, refused):
            said += [ruling.reason for ruling in rulings(policy, situation)]
            seen = foresee(policy, situation)
            said += [seen.reason, seen.edit.reason if seen.edit is not None else ""]
    assert any("," in words for words in said) or name in ("keep-all", "harnessx")
    assert [words for words in said if BARE.search(words)] == []
