from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from thresher.core import events as e
from thresher.core.insight.outline import outline
from thresher.core.items import system, user

from .sessions import RANDOM, Writer, random_history


@given(RANDOM["steps"](most=30))
def test_phases_follow_one_another_and_hold_every_compaction(script: list[object]) -> None:
    history = random_history(script)
    phases = outline(history)
    assert [n for phase in phases for n in phase.ended_by] == list(
        range(1, history.state.compactions + 1)
    )
    assert phases[0].first == 0
    for one, next in pairwise(phases):
        assert next.first == one.last + 1
    assert sum(phase.calls for phase in phases) == history.state.tool_calls
    assert sum(phase.rounds for phase in phases) == history.state.rounds


def test_a_turn_that_a_compaction_cuts_goes_on_in_the_next_phase() -> None:
    w = Writer()
    head = w.item(system("rules"))
    w.emit(e.TurnStarted(turn=1))
    w.item(user("Find the outage\nplease"))
    w.emit(e.RequestSent(request=1))
    w.usage(9_000)
    w.call("read_file", '{"path": "a.log"}', "x")
    w.summarise([head], "one")
    w.emit(e.RequestSent(request=2))
    w.usage(2_000)
    w.call("write_file", '{"path": "a.log"}', "x")
    w.emit(e.TurnFinished(turn=1, outcome="completed"))
    first, second = outline(w.history)
    assert [(turn.title, turn.continued) for turn in first.turns] == [("Find the outage", False)]
    assert [(turn.title, turn.continued) for turn in second.turns] == [("Find the outage", True)]
    assert second.turns[0].outcome == "completed"
    assert (first.start, first.end, second.end) == (9_000, 9_000, 2_000)
    assert [(file.path, file.reads, file.writes) for file in second.files] == [("/w/a.log", 0, 1)]
    assert (first.ended_by, second.ended_by) == ((1,), ())
