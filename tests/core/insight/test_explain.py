from __future__ import annotations

import pytest
from hypothesis import given

from thresher.core import events as e
from thresher.core.compaction.policies.registry import make, policies
from thresher.core.compaction.policy import Moment, Plan, Situation, Skip, SkipKind
from thresher.core.compaction.whatif import rulings, situation_at
from thresher.core.insight.explain import outlooks, why_not, why_not_at, why_now
from thresher.core.insight.moments import moments
from thresher.core.items import assistant, system, user

from .sessions import RANDOM, Writer, random_history


def _turn(w: Writer, text: str, totals: list[int]) -> None:
    """A turn of rounds with a call each, and these reported totals."""
    turn = w.history.state.turn + 1
    w.emit(e.TurnStarted(turn=turn))
    w.item(user(text), turn=turn)
    for total in totals:
        w.emit(e.RequestSent(request=w.history.state.requests + 1, turn=turn))
        w.usage(total)
        w.call("bash", '{"command": "ls"}', "listing " * 20)
    w.emit(e.TurnFinished(turn=turn, outcome="completed"))


def test_a_compaction_is_explained_with_all_numbers_and_their_sources() -> None:
    w = Writer()
    head = w.item(system("rules"))
    _turn(w, "go", [3_000, 9_000])
    w.emit(e.CompactionStarted(pass_id="p", policy="teaching", reason="due"))
    w.emit(e.UsageReported(usage=w.history.state.usage, purpose=e.Purpose.COMPACTION))
    w.summarise([head], "all of it", pass_id="p")
    why = why_now(w.history, w.history.state.cards[0])
    numbers = {number.name: (number.value, number.source) for number in why.numbers}
    assert numbers["window"] == (12_000, "the settings file")
    assert numbers["max output"] == (2_000, "the endpoint")
    assert numbers["reserve"] == (None, "nobody says so")
    assert numbers["limit"][0] == 10_000
    assert numbers["usage"][0] == 9_000
    assert "reported by the provider at #" in numbers["usage"][1]
    assert numbers["threshold"][0] == 8_000
    assert why.words == "Reported token usage 9,000 reached the compaction threshold 8,000."
    (miss,) = why.misses
    assert (miss.missing, miss.words) == (
        -1_000,
        "threshold 8,000: reached by 1,000 (9,000 reported)",
    )


def test_other_policies_say_what_they_would_have_said() -> None:
    w = Writer()
    head = w.item(system("rules"))
    _turn(w, "go", [9_000])
    w.summarise([head], "all of it")
    others = {other.policy: other for other in why_now(w.history, w.history.state.cards[0]).others}
    assert others.keys() == policies().keys() - {"teaching"}
    assert all(other.rulings for other in others.values())
    assert not others["keep-all"].due


def test_a_moment_without_a_compaction_is_explained_by_the_rule_run_again() -> None:
    w = Writer()
    w.item(system("rules"))
    _turn(w, "go", [3_000, 4_000])
    after = [each for each in moments(w.history) if each.moment is Moment.AFTER_ROUND]
    assert [each.outcome for each in after] == [""]
    why = why_not(w.history, after[0])
    assert why.words == "Reported token usage 3,000 is below the compaction threshold 8,000."
    assert why.misses[0].missing == 5_000
    last = why_not_at(w.history, len(w.history))
    assert last is not None
    assert last.words == "teaching is not asked at the end of a turn, only: after a round, by hand"


def test_an_open_breaker_or_an_unknown_policy_is_the_reason() -> None:
    w = Writer()
    _turn(w, "go", [3_000])
    w.emit(e.BreakerOpened(failures=3, reason="timeouts"))
    _turn(w, "on", [3_000])
    assert "automatic compaction was off" in why_not(w.history, moments(w.history)[-1]).words
    other = Writer(policy="somebody-elses")
    _turn(other, "go", [3_000])
    assert "somebody-elses is not one" in why_not(other.history, moments(other.history)[0]).words


def test_the_rule_of_a_foreign_agent_is_told_by_our_rebuilding_of_it() -> None:
    w = Writer(policy="", agent="codex")
    _turn(w, "go", [3_000, 4_000])
    (after,) = (each for each in moments(w.history) if each.moment is Moment.AFTER_ROUND)
    why = why_not(w.history, after)
    assert why.words.startswith("the rule of codex is not on record. Codex")
    assert "are below the limit 10,800" in why.words


def test_moments_are_those_of_the_loop_and_know_what_happened_there() -> None:
    w = Writer()
    head = w.item(system("rules"))
    w.emit(e.TurnStarted(turn=1))
    w.item(user("go"))
    w.emit(e.RequestSent(request=1))
    w.usage(9_000)
    w.call("bash", "{}", "x")
    w.summarise([head], "all of it")
    w.emit(e.RequestSent(request=2))
    w.emit(e.ContextOverflowed(message="too long"))
    w.summarise([head], "again", moment=Moment.OVERFLOW)
    w.item(assistant("done"))
    w.emit(e.TurnFinished(turn=1, outcome="completed"))
    assert [(each.moment, each.ordinal) for each in moments(w.history)] == [
        (Moment.TURN_START, 0),
        (Moment.BEFORE_REQUEST, 0),
        (Moment.AFTER_ROUND, 1),
        (Moment.BEFORE_REQUEST, 0),
        (Moment.OVERFLOW, 2),
        (Moment.TURN_END, 0),
    ]


@given(RANDOM["steps"](most=25))
def test_every_moment_and_every_compaction_of_any_session_is_explained(
    script: list[object],
) -> None:
    history = random_history(script)
    found = moments(history)
    assert all(0 <= each.position <= len(history) for each in found)
    for offered in found[:4]:
        assert why_not(history, offered).words
    for card in history.state.cards[:2]:
        assert why_now(history, card, others=False).numbers


def test_the_forecast_is_told_for_every_policy_with_its_uncertainty() -> None:
    w = Writer()
    _turn(w, "go", [1_000, 2_000, 2_500, 4_500])
    told = outlooks(w.history.state)
    assert [each.policy for each in told if each.in_force] == ["teaching"]
    assert {each.policy for each in told} == policies().keys()
    mine = told[0].forecast
    assert (mine.rounds, mine.soonest, mine.latest) == (4, 2, 7)
    rounds = [each.forecast.rounds for each in told[1:]]
    known = [each for each in rounds if each is not None]
    assert rounds == [*sorted(known), *[None] * (len(rounds) - len(known))]


@pytest.mark.parametrize("name", list(policies()))
def test_asking_a_policy_again_changes_nothing(name: str) -> None:
    w = Writer()
    w.item(system("rules"))
    _turn(w, "go", [9_000, 11_000])
    state = w.history.state
    before = state.context.digest()
    policy = make(name)
    for moment in Moment:
        if moment in policy.moments and moment is not Moment.TOOL_OUTPUT:
            once = rulings(policy, situation_at(state, moment))
            assert once == rulings(policy, situation_at(state, moment))
            assert once
    assert state.context.digest() == before


def test_a_policy_that_fails_is_told_in_words() -> None:
    class Broken:
        name = "broken"

        def plan(self, situation: Situation) -> Plan:
            yield Skip(SkipKind.NOT_DUE, "not yet", "one")
            raise RuntimeError("no such thing")

    w = Writer()
    said = rulings(Broken(), situation_at(w.history.state, Moment.AFTER_ROUND))
    assert [ruling.due for ruling in said] == [False, False]
    assert "RuntimeError: no such thing" in said[-1].reason
