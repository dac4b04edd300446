from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.core.compaction.fitting import fitted
from thresher.core.compaction.policy import Summarise
from thresher.core.items import system, user
from thresher.core.ledger import Ledger
from thresher.core.tokens import CharClassCounter

MEASURE = Ledger(CharClassCounter())


def size(ask: Summarise) -> int:
    return MEASURE.text(ask.instructions) + sum(MEASURE.item(item) for item in ask.items)


def ask_of(*words: int, max_output: int | None = None, own_retry: bool = False) -> Summarise:
    texts = tuple(user(" ".join(f"word{n}" for n in range(count))) for count in words)
    return Summarise(
        items=(system("Summarise."), *texts), max_output=max_output, own_retry=own_retry
    )


def test_what_fits_is_left_alone() -> None:
    ask = ask_of(50)
    assert fitted(ask, 10_000, MEASURE) == (ask, "")


def test_an_unknown_window_changes_nothing() -> None:
    ask = ask_of(50_000)
    assert fitted(ask, None, MEASURE) == (ask, "")


def test_a_policy_that_shrinks_its_request_itself_is_left_alone() -> None:
    ask = ask_of(50_000, own_retry=True)
    assert fitted(ask, 1_000, MEASURE) == (ask, "")


def test_the_middle_goes_and_both_ends_and_a_word_about_it_stay() -> None:
    ask, note = fitted(ask_of(20_000), 8_000, MEASURE)
    text = ask.items[1].text
    assert size(ask) <= 8_000
    assert text.startswith("word0 word1 ")
    assert text.endswith(" word19999")
    assert "characters left out here" in text
    assert "left out of the summary request" in note


def test_room_is_left_for_the_answer() -> None:
    ask, _ = fitted(ask_of(20_000, max_output=4_000), 8_000, MEASURE)
    assert size(ask) <= 4_000


def test_instructions_larger_than_the_window_cannot_be_helped() -> None:
    ask = Summarise(items=(user("short"),), instructions="word " * 5_000)
    assert fitted(ask, 1_000, MEASURE) == (ask, "")


@given(
    st.lists(st.integers(0, 3_000), min_size=1, max_size=4),
    st.integers(500, 6_000),
)
def test_a_noted_ask_is_within_the_window_and_any_other_is_unchanged(
    words: list[int], window: int
) -> None:
    ask = ask_of(*words)
    after, note = fitted(ask, window, MEASURE)
    if note:
        assert size(after) <= window
        assert len(after.items) == len(ask.items)
    else:
        assert after == ask
