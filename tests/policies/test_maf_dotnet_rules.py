from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.policies.maf_driver import message
from thresher.core.compaction.policies.maf.dotnet_compose import compose, keep_last, pipeline
from thresher.core.compaction.policies.maf.dotnet_groups import divide
from thresher.core.compaction.policies.maf.dotnet_index import MessageIndex
from thresher.core.compaction.policies.maf.dotnet_strategies import ChatReducer, Strategy
from thresher.core.compaction.policies.maf.dotnet_text import collapsed
from thresher.core.compaction.policies.maf.dotnet_triggers import Always, condition
from thresher.core.compaction.policies.maf.messages import ChatMessage, Media
from thresher.core.compaction.policies.maf.spec import Limits, StrategySpec
from thresher.core.compaction.policies.maf.steps import Changed, Log, Request, RunStep, Untouched
from thresher.core.compaction.policy import Answer, Failure, FailureKind, Refused, Summary
from thresher.core.context import Context

CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "name": "f", "arguments": {}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "text": "found"}


def chat(*given: str | dict[str, Any]) -> list[ChatMessage]:
    """Messages from "role: text" or from tables."""
    found = []
    for each in given:
        if isinstance(each, str):
            role, _, text = each.partition(": ")
            each = {"role": role, "text": text}
        found.append(message({"id": "", **each}, named=False))
    return found


def shape(messages: Sequence[ChatMessage]) -> list[tuple[str, int, int | None]]:
    return [(g.kind.value, len(g.messages), g.turn) for g in divide(messages)[0]]


def strategy(name: str, trigger: Any = "always", target: Any = None, **params: Any) -> Strategy:
    return compose(StrategySpec(name, params, trigger, target), Limits(None))


def texts(index: MessageIndex) -> list[str]:
    return [each.text for each in index.included]


def play(
    rule: Strategy, index: MessageIndex, *, summary: Answer = None, applied: Answer = None
) -> tuple[bool, list[RunStep]]:
    seen: list[RunStep] = []
    run, answer = rule.compact(index), None
    while True:
        try:
            step = run.send(answer)
        except StopIteration as end:
            return end.value, seen
        seen.append(step)
        answer = (
            summary
            if isinstance(step, Request)
            else (applied if isinstance(step, Changed) else None)
        )


# Groups -------------------------------------------------------------------------------------------


def test_a_message_without_contents_sticks_to_the_call_next_to_it() -> None:
    empty = {"role": "assistant"}
    assert shape(chat(empty, CALL, RESULT, empty)) == [("ToolCall", 4, 0)]
    assert shape(chat(empty)) == [("AssistantText", 1, 0)]


def test_reasoning_after_results_joins_the_earlier_group_though_it_introduces_the_next_call() -> (
    None
):
    thought = {"role": "assistant", "reasoning": "next"}
    assert shape(chat(CALL, RESULT, thought, CALL, RESULT)) == [
        ("ToolCall", 3, 0),
        ("ToolCall", 2, 0),
    ]


def test_reasoning_that_leads_to_no_call_stands_alone_one_by_one() -> None:
    thought = {"role": "assistant", "reasoning": "hm"}
    assert shape(chat(thought, thought, "user: hi")) == [
        ("AssistantText", 1, 0),
        ("AssistantText", 1, 0),
        ("User", 1, 1),
    ]


def test_a_result_that_comes_after_a_user_message_belongs_to_no_call() -> None:
    assert shape(chat(CALL, "user: still there?", RESULT)) == [
        ("ToolCall", 1, 0),
        ("User", 1, 1),
        ("AssistantText", 1, 1),
    ]


def test_the_mark_of_a_summary_counts_for_the_assistant_alone_and_not_for_a_call() -> None:
    assert shape(chat({"role": "assistant", "text": "S", "summary": True})) == [("Summary", 1, 0)]
    assert shape(chat({"role": "user", "text": "S", "summary": True})) == [("User", 1, 1)]
    assert shape(chat({**CALL, "summary": True})) == [("ToolCall", 1, 0)]
    assert shape(chat({"role": "assistant", "text": "S", "summary": "true"})) == [
        ("AssistantText", 1, 0)
    ]


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ({}, 0),
        ({"city": "Köln"}, 4 + 5),
        ({"n": 12, "on": True, "off": None}, 1 + 2 + 2 + 4 + 3),
        ({"list": [1, {"a": "b"}]}, 4 + len('[1,{"a":"b"}]')),
    ],
)
def test_arguments_weigh_their_keys_and_values_as_text(
    arguments: dict[str, Any], size: int
) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "id", "name": "f", "arguments": arguments}]}
    (group,), _ = divide(chat(call))
    assert group.size == 3 + size
    assert group.tokens == (3 + size) // 4


def test_arguments_that_are_json_text_weigh_the_same_as_the_object() -> None:
    call = {"id": "id", "name": "f", "arguments": '{"city": "Köln"}'}
    broken = {"id": "id", "name": "f", "arguments": '{"city'}
    sizes = [
        divide(chat({"role": "assistant", "tool_calls": [each]}))[0][0].size
        for each in (call, broken)
    ]
    assert sizes == [3 + 9, 3 + 6]


def test_a_picture_weighs_its_bytes_and_a_link_its_address() -> None:
    inside = ChatMessage("user", (Media("data:image/png;base64,AAAA", "image/png"),))
    outside = ChatMessage("user", (Media("https://x.y/z", "image/*"),))
    assert [g.size for g in divide([inside, outside])[0]] == [3 + 9, 13 + 7]


def test_with_a_tokenizer_texts_are_counted_and_the_rest_is_weighed() -> None:
    index = MessageIndex.of(chat("user: one two three", CALL), lambda text: len(text.split()))
    assert [each.tokens for each in index.groups] == [3, 3 // 4]


# Conditions ---------------------------------------------------------------------------------------


INDEX = MessageIndex.of(
    chat("system: be brief", "user: 123456789012", "assistant: 1234", CALL, RESULT)
)


@pytest.mark.parametrize(
    ("data", "met"),
    [
        ("always", True),
        ("never", False),
        ({"tokens_exceed": 7}, True),
        ({"tokens_exceed": 8}, False),
        ({"tokens_below": 8}, False),
        ({"tokens_below": 9}, True),
        ({"messages_exceed": 4}, True),
        ({"messages_exceed": 5}, False),
        ({"groups_exceed": 3}, True),
        ({"groups_exceed": 4}, False),
        ({"turns_exceed": 0}, True),
        ({"turns_exceed": 1}, False),
        ({"has_tool_calls": True}, True),
        ({"all": []}, True),
        ({"any": []}, False),
        ({"all": ["always", "never"]}, False),
        ({"any": ["always", "never"]}, True),
        ({"tokens_exceed_share": 0.79}, True),
        ({"tokens_exceed_share": 0.8}, False),
        ({"tokens_below_share": 0.9}, True),
        ({"tokens_below_share": 0.8}, False),
    ],
)
def test_conditions_are_strict_and_count_what_is_included(data: Any, met: bool) -> None:
    assert INDEX.included_tokens == 2 + 3 + 1 + 2
    found = condition(data, budget=10)
    assert found.met(INDEX) is met
    assert found.words(INDEX)


def test_a_share_of_an_unknown_window_never_holds_and_says_so() -> None:
    found = condition({"tokens_exceed_share": 0.1}, budget=None)
    assert not found.met(INDEX)
    assert "the window is" in found.words(INDEX)


@pytest.mark.parametrize(
    "data",
    [
        "sometimes",
        {"tokens_exceed": "7"},
        {"tokens_exceed": True},
        {"tokens_exceed": 1, "turns_exceed": 1},
        {"chars_exceed": 1},
        {"tokens": 1},
        {"has_tool_calls": False},
        {"tokens_exceed_share": 1.5},
        {"all": "always"},
        {},
        7,
    ],
)
def test_what_is_no_condition_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"condition|share"):
        condition(data, budget=10)


# Strategies ---------------------------------------------------------------------------------------


FIVE = ("user: q1", "assistant: a1", "user: q2", "assistant: a2", "user: q3")


def test_once_begun_one_unit_goes_although_the_target_holds_already() -> None:
    index = MessageIndex.of(chat(*FIVE))
    rule = strategy("truncation", target="always", minimum_preserved_groups=0)
    assert play(rule, index)[0]
    assert texts(index) == ["a1", "q2", "a2", "q3"]


def test_without_a_target_a_strategy_stops_as_soon_as_its_trigger_no_longer_holds() -> None:
    index = MessageIndex.of(chat(*FIVE))
    rule = strategy("truncation", {"messages_exceed": 3}, minimum_preserved_groups=0)
    play(rule, index)
    assert texts(index) == ["q2", "a2", "q3"]


@pytest.mark.parametrize("floor", [-3, 0])
def test_a_floor_below_zero_is_zero(floor: int) -> None:
    index = MessageIndex.of(chat(*FIVE))
    play(strategy("truncation", target="never", minimum_preserved_groups=floor), index)
    assert texts(index) == []


@pytest.mark.parametrize(
    ("name", "floor"), [("tool_result", 16), ("summarization", 8), ("truncation", 32)]
)
def test_the_floors_are_those_of_the_system_where_nothing_is_said(name: str, floor: int) -> None:
    for more, changes in ((0, False), (1, True)):
        index = MessageIndex.of(chat(CALL, RESULT, *["assistant: a"] * (floor - 1 + more)))
        changed, steps = play(strategy(name), index, summary=Summary("S", "m"))
        assert changed is changes
        if not changes:
            (only,) = steps
            assert isinstance(only, Untouched)
            assert only.due


def test_what_is_refused_is_taken_back() -> None:
    for name in ("tool_result", "summarization", "truncation"):
        index = MessageIndex.of(chat("system: s", CALL, RESULT, *FIVE))
        before = (texts(index), index.included_tokens, index.included_groups, index.included_turns)
        rule = strategy(name, target="never", minimum_preserved_groups=1)
        changed, _ = play(rule, index, summary=Summary("S", "m"), applied=Refused("no", Context()))
        after = (texts(index), index.included_tokens, index.included_groups, index.included_turns)
        assert not changed
        assert after == before


def test_a_collapse_keeps_full_results_and_loses_the_rest() -> None:
    said = {**CALL, "text": "let me look", "reasoning": "thinking"}
    unknown = {"role": "tool", "tool_call_id": "cX", "text": "lost"}
    long = {"role": "tool", "tool_call_id": "c1", "text": "one\ntwo"}
    assert collapsed(chat(said, unknown, long)) == "[Tool Calls]\nf:\n  - one\ntwo"


def test_a_call_without_a_result_of_its_own_takes_the_next_plain_text() -> None:
    calls = [{"id": f"c{n}", "name": "fg"[n % 2], "arguments": {}} for n in range(4)]
    messages = chat(
        {"role": "assistant", "tool_calls": calls},
        "tool: first",
        {"role": "tool", "tool_call_id": "c1", "text": "by id"},
        "tool: second",
    )
    assert collapsed(messages) == "[Tool Calls]\nf:\n  - first\n  - second\ng:\n  - by id"


def test_a_system_note_between_summarised_groups_ends_up_after_the_summary() -> None:
    index = MessageIndex.of(chat("user: q1", "system: note", "assistant: a1", "user: q2"))
    rule = strategy("summarization", minimum_preserved_groups=1)
    play(rule, index, summary=Summary("S", "m"))
    assert texts(index) == ["[Summary]\nS", "note", "q2"]


def test_a_summary_is_of_no_turn_survives_the_window_and_is_summarised_again() -> None:
    index = MessageIndex.of(chat(*FIVE))
    rule = strategy("summarization", {"messages_exceed": 3}, minimum_preserved_groups=1)
    play(rule, index, summary=Summary("S", "m"))
    assert [g.turn for g in index.groups if not g.excluded] == [None, 2, 2, 3]
    play(strategy("sliding_window", target="never"), index)
    assert texts(index) == ["[Summary]\nS", "q3"]
    again = strategy("summarization", minimum_preserved_groups=1)
    _, steps = play(again, index, summary=Summary("T", "m"))
    assert [r.about[0].text for r in steps if isinstance(r, Request)] == ["[Summary]\nS"]
    assert texts(index) == ["[Summary]\nT", "q3"]


@pytest.mark.parametrize("kind", [FailureKind.PROVIDER, FailureKind.TIMEOUT, FailureKind.CUT])
def test_a_failed_summary_undoes_the_exclusions_with_a_warning(kind: FailureKind) -> None:
    index = MessageIndex.of(chat(*FIVE))
    rule = strategy("summarization", minimum_preserved_groups=1)
    changed, steps = play(rule, index, summary=Failure(kind, "down"))
    assert not changed
    assert texts(index) == ["q1", "a1", "q2", "a2", "q3"]
    assert [(s.level, s.code) for s in steps if isinstance(s, Log)] == [
        ("warning", "summary-failed")
    ]


@pytest.mark.parametrize("answer", [Summary(" \n", "m"), Failure(FailureKind.EMPTY, "nothing")])
def test_a_blank_summary_becomes_a_placeholder(answer: Answer) -> None:
    index = MessageIndex.of(chat(*FIVE))
    changed, _ = play(strategy("summarization", minimum_preserved_groups=1), index, summary=answer)
    assert changed
    assert texts(index)[0] == "[Summary]\n[Summary unavailable]"


def test_a_collapsed_group_leaves_with_its_turn() -> None:
    index = MessageIndex.of(chat("user: q1", CALL, RESULT, "user: q2", "assistant: a2"))
    play(strategy("tool_result", minimum_preserved_groups=1), index)
    assert texts(index) == ["q1", "[Tool Calls]\nf:\n  - found", "q2", "a2"]
    play(strategy("sliding_window"), index)
    assert texts(index) == ["q2", "a2"]


def test_a_window_with_no_floor_can_take_every_user_message() -> None:
    index = MessageIndex.of(chat("assistant: welcome", *FIVE))
    rule = strategy("sliding_window", target="never", minimum_preserved_turns=0)
    play(rule, index)
    assert texts(index) == ["welcome"]


def test_a_pipeline_visits_every_strategy_though_the_first_one_was_enough() -> None:
    index = MessageIndex.of(chat(*FIVE))
    specs = [
        StrategySpec("truncation", {"minimum_preserved_groups": 1}, {"messages_exceed": 3}),
        StrategySpec("sliding_window", {}, {"turns_exceed": 5}),
        StrategySpec("truncation", {"minimum_preserved_groups": 1}, "always", "never"),
    ]
    changed, steps = play(pipeline(specs, Limits(None)), index)
    assert changed
    assert [type(step) for step in steps] == [Changed, Untouched, Changed]
    assert texts(index) == ["q3"]


def test_the_context_window_rounds_its_thresholds_down_and_has_a_floor_of_two() -> None:
    params = {"max_context_window_tokens": 21, "max_output_tokens": 10}
    rule = compose(StrategySpec("context_window", params), Limits(None))
    assert [limit.limit for _, limit in rule.limits()] == [5, 8]
    index = MessageIndex.of(chat(*[f"user: {'x' * 40}"] * 4))
    play(rule, index)
    assert len(index.included) == 2
    assert index.included_tokens == 20


@pytest.mark.parametrize(
    "params",
    [
        {"max_context_window_tokens": 0},
        {"max_context_window_tokens": 10, "max_output_tokens": -1},
        {"max_context_window_tokens": 10, "max_output_tokens": 10},
        {"max_context_window_tokens": 10, "tool_eviction_threshold": 0.0},
        {"max_context_window_tokens": 10, "truncation_threshold": 1.1},
        {
            "max_context_window_tokens": 10,
            "tool_eviction_threshold": 0.8,
            "truncation_threshold": 0.5,
        },
    ],
)
def test_a_context_window_that_cannot_be_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        compose(StrategySpec("context_window", params), Limits(None))


def test_a_reducer_that_leaves_as_many_changes_nothing() -> None:
    index = MessageIndex.of(chat(*FIVE))
    assert not play(ChatReducer(keep_last(9), Always()), index)[0]


def test_after_a_reducer_turns_and_exclusions_begin_anew() -> None:
    index = MessageIndex.of(chat(*FIVE))
    play(strategy("truncation", {"messages_exceed": 4}, minimum_preserved_groups=1), index)
    play(ChatReducer(keep_last(3), Always()), index)
    assert [(g.turn, g.excluded) for g in index.groups] == [(1, False), (1, False), (2, False)]


# The index over many calls ------------------------------------------------------------------------


def test_an_update_appends_what_is_new_and_goes_on_counting_turns() -> None:
    first = chat(*FIVE[:2])
    index = MessageIndex.of(first)
    index.exclude(index.groups[0], "because")
    index.update([*first, *chat(*FIVE[2:])])
    assert [(g.turn, g.excluded) for g in index.groups] == [
        (1, True),
        (1, False),
        (2, False),
        (2, False),
        (3, False),
    ]
    assert index.included_turns == 3


def test_an_update_with_nothing_new_or_nothing_at_all() -> None:
    index = MessageIndex.of(chat(*FIVE))
    index.exclude(index.groups[0], "because")
    index.update(chat(*FIVE))
    assert len(index.included) == 4
    index.update([])
    assert (index.groups, index.raw_messages, index.turn) == ([], 0, 0)


@pytest.mark.parametrize("given", [chat("user: other"), chat(*FIVE[1:], "assistant: a3")])
def test_an_update_that_does_not_go_on_where_it_was_rebuilds(given: list[ChatMessage]) -> None:
    index = MessageIndex.of(chat(*FIVE))
    index.exclude(index.groups[0], "because")
    index.update(given)
    assert index.included == given
    assert len(index.groups) == len(given)


def test_the_same_words_said_twice_without_ids_hide_what_came_between() -> None:
    index = MessageIndex.of(chat("user: go on"))
    index.update(chat("user: go on", "assistant: done", "user: go on"))
    assert texts(index) == ["go on"]


def test_messages_with_ids_are_told_apart_by_them_alone() -> None:
    def named(id: str, text: str) -> ChatMessage:
        return message({"id": id, "role": "user", "text": text}, named=True)

    index = MessageIndex.of([named("1", "go on")])
    index.update([named("1", "reworded"), named("2", "go on")])
    assert texts(index) == ["go on", "go on"]


# Plain data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (StrategySpec("truncate", {}, "always"), "there are: tool_result"),
        (StrategySpec("truncation"), "needs a trigger"),
        (StrategySpec("truncation", {"floor": 1}, "always"), "no argument floor"),
        (StrategySpec("truncation", {"minimum_preserved_groups": "1"}, "always"), "whole number"),
        (StrategySpec("pipeline", {}), "needs a list"),
        (StrategySpec("pipeline", {"strategies": [{"name": "x"}]}), "strategies of pipeline"),
        (StrategySpec("pipeline", {"strategies": []}, "always"), "no trigger"),
        (StrategySpec("chat_reducer", {}, "always"), "keep_last"),
        (StrategySpec("chat_reducer", {"keep_last": 1}, "always", "never"), "no target"),
    ],
)
def test_a_strategy_that_cannot_be_is_refused_in_words(spec: StrategySpec, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compose(spec, Limits(None))
