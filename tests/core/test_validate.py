from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import histories
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    OtherItem,
    Reasoning,
    assistant,
    system,
    user,
)
from thresher.core.validate import Dialect, ViolationKind, groups, safe_cuts, validate

ANY = pytest.mark.parametrize("dialect", list(Dialect))
PLAIN = pytest.mark.parametrize("dialect", [Dialect.RESPONSES, Dialect.CHAT])


def call(id: str) -> FunctionCall:
    return FunctionCall(id, "read_file", "{}")


def out(id: str) -> FunctionCallOutput:
    return FunctionCallOutput(id, "text")


def kinds(items: list[Item], dialect: Dialect) -> list[ViolationKind]:
    return [violation.kind for violation in validate(items, dialect)]


def places(items: list[Item]) -> list[tuple[int, ...]]:
    return [group.places for group in groups(items)]


def test_ten_parallel_calls_and_their_outputs_are_one_group() -> None:
    ids = [f"c{n}" for n in range(10)]
    items = [user("go"), assistant("on it"), *map(call, ids), *map(out, ids), assistant("done")]
    assert places(items) == [(0,), tuple(range(1, 22)), (22,)]
    assert safe_cuts(items) == (0, 1, 22, 23)


def test_two_callers_before_both_outputs_stay_together() -> None:
    items = [user("go"), call("a"), assistant("and"), call("b"), out("a"), out("b")]
    assert safe_cuts(items) == (0, 1, 6)


def test_an_output_that_comes_late_belongs_to_its_call_across_what_lies_between() -> None:
    items = [call("a"), user("meanwhile"), CompactionSummary("s"), out("a"), user("next")]
    assert places(items) == [(0, 3), (1,), (2,), (4,)]
    assert safe_cuts(items) == (0, 4, 5)


def test_an_output_in_front_of_its_call_is_in_the_group_too() -> None:
    assert places([out("a"), user("x"), call("a")]) == [(0, 2), (1,)]


def test_reasoning_goes_with_what_it_led_to() -> None:
    items = [Reasoning("r"), assistant("a"), assistant("b"), user("u"), Reasoning("s")]
    assert places(items) == [(0, 1), (2,), (3,), (4,)]
    assert places([Reasoning("r"), call("a"), Reasoning("s"), call("b"), out("b")]) == [
        (0, 1, 2, 3, 4)
    ]


@given(histories(orphans=True))
def test_every_item_is_in_exactly_one_group(items: tuple[Item, ...]) -> None:
    found = groups(items)
    assert sorted(at for group in found for at in group.places) == list(range(len(items)))
    assert [group.first for group in found] == sorted(group.first for group in found)


@given(histories(orphans=True), st.data())
def test_a_safe_cut_tears_no_pair(items: tuple[Item, ...], data: st.DataObject) -> None:
    cut = data.draw(st.sampled_from(safe_cuts(items)))
    before, after = items[:cut], items[cut:]
    torn = {i.call_id for i in before if isinstance(i, FunctionCall | FunctionCallOutput)} & {
        i.call_id for i in after if isinstance(i, FunctionCall | FunctionCallOutput)
    }
    assert torn == set()


@given(histories(), st.sampled_from([Dialect.RESPONSES, Dialect.CHAT]))
def test_what_an_agent_produces_is_legal(items: tuple[Item, ...], dialect: Dialect) -> None:
    assert validate(items, dialect) == []


@given(histories(), st.sampled_from([Dialect.RESPONSES, Dialect.CHAT]), st.data())
def test_taking_away_half_a_pair_is_always_seen(
    items: tuple[Item, ...], dialect: Dialect, data: st.DataObject
) -> None:
    halves = [at for at, i in enumerate(items) if isinstance(i, FunctionCall | FunctionCallOutput)]
    if not halves:
        return
    gone = data.draw(st.sampled_from(halves))
    torn = items[gone]
    assert isinstance(torn, FunctionCall | FunctionCallOutput)
    found = validate(items[:gone] + items[gone + 1 :], dialect)
    expected = (
        ViolationKind.OUTPUT_WITHOUT_CALL
        if isinstance(torn, FunctionCall)
        else ViolationKind.CALL_WITHOUT_OUTPUT
    )
    assert (expected, torn.call_id) in {(v.kind, v.call_id) for v in found}


@ANY
def test_each_fault_of_pairing_names_its_call(dialect: Dialect) -> None:
    cases = {
        ViolationKind.CALL_WITHOUT_OUTPUT: [user("u"), call("lost")],
        ViolationKind.OUTPUT_WITHOUT_CALL: [user("u"), out("lost")],
        ViolationKind.OUTPUT_BEFORE_CALL: [user("u"), out("lost"), call("lost")],
        ViolationKind.CALL_TWICE: [user("u"), call("lost"), call("lost"), out("lost")],
        ViolationKind.OUTPUT_TWICE: [user("u"), call("lost"), out("lost"), out("lost")],
    }
    for kind, items in cases.items():
        found = [v for v in validate(items, dialect) if v.kind is kind]
        assert [v.call_id for v in found] == ["lost"], kind
        assert "lost" in found[0].words


@PLAIN
def test_a_call_id_may_be_used_again_after_its_output(dialect: Dialect) -> None:
    assert kinds([user("u"), call("0"), out("0"), call("0"), out("0")], dialect) == []


@pytest.mark.parametrize(
    "between", [user("x"), assistant("x"), CompactionSummary("x"), system("x")]
)
def test_only_responses_lets_something_stand_between_a_call_and_its_output(between: Item) -> None:
    items = [user("u"), call("a"), between, out("a")]
    assert kinds(items, Dialect.RESPONSES) == []
    assert kinds(items, Dialect.CHAT) == [ViolationKind.NOT_ADJACENT]


def test_a_second_batch_may_not_begin_before_the_first_is_answered() -> None:
    items = [user("u"), call("a"), call("b"), out("a"), call("c"), out("b"), out("c")]
    assert kinds(items, Dialect.CHAT) == [ViolationKind.NOT_ADJACENT]


def test_chat_does_not_see_reasoning_and_foreign_items_between() -> None:
    items = [user("u"), call("a"), Reasoning("r"), OtherItem("x", "{}"), out("a")]
    assert kinds(items, Dialect.CHAT) == []


def test_sealed_reasoning_must_lead_to_something_in_responses() -> None:
    sealed = Reasoning(encrypted="c2Vh")
    assert kinds([user("u"), sealed, user("v")], Dialect.RESPONSES) == [
        ViolationKind.REASONING_ALONE
    ]
    assert kinds([user("u"), sealed], Dialect.RESPONSES) == [ViolationKind.REASONING_ALONE]
    assert kinds([user("u"), sealed, Reasoning("r"), assistant("a")], Dialect.RESPONSES) == []
    assert kinds([user("u"), sealed, user("v")], Dialect.CHAT) == []


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([system("s"), user("u"), assistant("a"), user("v")], []),
        ([user("u"), assistant("a"), call("c"), call("d"), out("c"), out("d"), assistant("b")], []),
        ([assistant("a"), user("u")], [ViolationKind.FIRST_NOT_USER]),
        ([call("c"), out("c")], [ViolationKind.FIRST_NOT_USER]),
        ([user("u"), user("v")], [ViolationKind.TWO_IN_A_ROW]),
        ([CompactionSummary("s"), user("v")], [ViolationKind.TWO_IN_A_ROW]),
        ([user("u"), assistant("a"), assistant("b")], [ViolationKind.TWO_IN_A_ROW]),
        ([user("u"), call("c"), out("c"), user("v")], [ViolationKind.TWO_IN_A_ROW]),
        ([user("u"), system("s"), assistant("a")], [ViolationKind.SYSTEM_NOT_FIRST]),
    ],
)
def test_strict_alternation(items: list[Item], expected: list[ViolationKind]) -> None:
    assert kinds(items, Dialect.STRICT) == expected


@ANY
@pytest.mark.parametrize("items", [[], [system("s")]])
def test_a_request_needs_something_to_answer(items: list[Item], dialect: Dialect) -> None:
    assert kinds(items, dialect) == [ViolationKind.NOTHING_TO_ANSWER]
