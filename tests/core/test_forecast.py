from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.compaction.policy import Mark
from thresher.core.compaction.recorder import MemoryRecorder
from thresher.core.forecast import forecast, forecast_of
from thresher.core.tokens import Basis, Scope, Tokens, Usage

MARK = Mark("threshold", 8_000, "threshold")


def used(value: int) -> Tokens:
    return Tokens(value, Basis.REPORTED, Scope.REQUEST)


def test_rounds_are_what_is_missing_by_the_median_growth() -> None:
    found = forecast(used(5_000), [400, 1_000, 800], MARK)
    assert (found.rounds, found.growth, found.soonest, found.latest) == (4, 800.0, 3, 8)
    assert found.words == (
        "about 4 rounds: (8,000 - 5,000) / 800 tokens a round (median of the last 3, reported)"
    )


def test_a_mark_that_is_reached_is_due() -> None:
    assert forecast(used(8_000), [1], MARK).rounds == 0
    assert forecast(used(8_000), [], MARK).words == "due: 8,000 of 8,000 tokens (reported)"


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    cases = {
        "this policy has no threshold": forecast(used(1), [1], None),
        "nothing was reported since the last compaction": forecast(None, [1], MARK),
        "7,000 tokens to go, growth not known": forecast(used(1_000), [], MARK),
        "the last rounds did not grow": forecast(used(1_000), [5, -1, -1], MARK),
    }
    for words, found in cases.items():
        assert found.rounds is None
        assert found.words.startswith("unknown: ")
        assert words in found.words


def test_a_round_without_growth_leaves_the_latest_open() -> None:
    assert forecast(used(7_000), [0, 100, 100], MARK).latest is None


def test_a_session_is_forecast_from_its_own_reports_and_the_nearest_mark_ahead() -> None:
    to = MemoryRecorder()
    marks = (MARK, Mark("warning", 3_000, "w"), Mark("note", 1_000, "n"))
    for total in (1_000, 1_500, 2_000):
        to.emit(e.UsageReported(usage=Usage(total)))
    found = forecast_of(to.state, marks)
    assert (found.rounds, found.mark, found.samples) == (2, marks[1], (500, 500))
    to.emit(e.UsageReported(usage=Usage(9_000)))
    assert (forecast_of(to.state, marks).rounds, forecast_of(to.state, marks).mark) == (0, MARK)
    assert forecast_of(to.state, ()).rounds is None


@given(
    st.integers(0, 10_000), st.lists(st.integers(-100, 2_000), max_size=8), st.integers(1, 20_000)
)
def test_after_the_forecast_rounds_the_mark_is_reached_and_not_before(
    value: int, samples: list[int], tokens: int
) -> None:
    found = forecast(used(value), samples, Mark("m", tokens, "s"))
    if found.rounds is None or found.growth is None:
        return
    assert value + found.rounds * found.growth >= tokens
    assert value + (found.rounds - 1) * found.growth < tokens
    assert found.soonest is not None
    assert found.soonest <= found.rounds <= (found.latest or found.rounds)
