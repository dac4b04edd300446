from __future__ import annotations

from typing import Any

import pytest

from tests.policies.maf_driver import message
from thresher.core.compaction.policies.maf.messages import ChatMessage
from thresher.core.compaction.policies.maf.python_compose import compose
from thresher.core.compaction.policies.maf.python_messages import Marked, MessageList
from thresher.core.compaction.policies.maf.python_strategies import Strategy, apply
from thresher.core.compaction.policies.maf.python_text import (
    CharacterEstimator,
    collapsed,
    message_json,
    transcript,
)
from thresher.core.compaction.policies.maf.spec import Limits, StrategySpec
from thresher.core.compaction.policies.maf.steps import Changed, Log, Request, RunStep
from thresher.core.compaction.policy import Answer, Failure, FailureKind, Refused, Summary
from thresher.core.context import Context


def chat(*given: str | dict[str, Any]) -> list[ChatMessage]:
    found = []
    for at, each in enumerate(given):
        if isinstance(each, str):
            role, _, text = each.partition(": ")
            each = {"role": role, "text": text}
        found.append(message({"id": f"m{at}", **each}, named=True))
    return found


def call(*ids: str, name: str = "f") -> dict[str, Any]:
    calls = [{"id": id, "name": name, "arguments": {}} for id in ids]
    return {"role": "assistant", "tool_calls": calls}


def result(id: str, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "text": text}


def strategy(name: str, **params: Any) -> Strategy:
    return compose(StrategySpec(name, params), Limits(None))


def members(messages: MessageList) -> list[tuple[str, str]]:
    return [(g.kind.value, " ".join(each.id for each in g.members)) for g in messages.groups]


def ids(messages: MessageList) -> list[str]:
    return [each.id for each in messages.entries if not each.excluded]


def play(
    rule: Strategy, messages: MessageList, summary: Answer = None, applied: Answer = None
) -> tuple[bool, list[RunStep]]:
    seen: list[RunStep] = []
    run, answer = apply(messages, rule), None
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


def test_a_late_result_belongs_to_its_call_wherever_it_stands() -> None:
    messages = MessageList.of(chat(call("c1"), "user: well?", call("c2"), result("c1")))
    assert members(messages) == [("tool_call", "m0 m2 m3"), ("user", "m1")]


def test_a_result_before_its_call_and_one_of_nobody_are_groups_of_their_own() -> None:
    given = chat(result("c1"), result("cX"), "user: q", call("c1"), "user: r")
    assert members(MessageList.of(given)) == [
        ("tool_call", "m0 m1"),
        ("user", "m2"),
        ("tool_call", "m3"),
        ("user", "m4"),
    ]


def test_a_message_without_contents_is_no_reasoning() -> None:
    thought = {"role": "assistant", "reasoning": "so"}
    given = chat({"role": "assistant"}, thought, call("c1"), thought, result("c1"))
    assert members(MessageList.of(given)) == [
        ("assistant_text", "m0"),
        ("tool_call", "m1 m2 m3 m4"),
    ]


def test_one_included_message_of_a_scattered_group_brings_all_of_it_back() -> None:
    given = chat(call("c1"), "user: well?", result("c1"))
    messages = MessageList([Marked(each, excluded=at == 0) for at, each in enumerate(given)])
    assert ids(messages) == ["m0", "m1", "m2"]


def test_messages_without_ids_are_named_by_their_place_and_never_like_another_one() -> None:
    nameless = [ChatMessage("user"), ChatMessage("user", id="msg_0"), ChatMessage("user")]
    assert [each.id for each in MessageList.of(nameless).entries] == ["msg_3", "msg_0", "msg_2"]


# Texts --------------------------------------------------------------------------------------------


def test_ids_and_json_are_part_of_what_a_message_costs() -> None:
    (hello,) = chat("user: hi")
    assert CharacterEstimator().count(message_json(hello)) == 27
    assert CharacterEstimator().count("") == 1


def test_a_collapsed_group_is_exactly_4096_characters_when_cut() -> None:
    text = collapsed(chat(call("c1"), result("c1", "x" * 9000)))
    assert len(text) == 4096
    assert text.endswith("xx... [truncated]]")
    fits = collapsed(chat(call("c1"), result("c1", "x" * (4096 - len("[Tool results: f: ]")))))
    assert len(fits) == 4096
    assert fits.endswith("xx]")


def test_white_space_around_results_is_trimmed_also_where_the_cut_falls() -> None:
    cut = collapsed(chat(call("c1"), result("c1", "x" * 4000 + " " * 200 + "y" * 99)))
    assert cut.endswith("xxx... [truncated]]")
    assert len(cut) < 4096
    given = chat(call("c1", "c2"), result("c1", " a \n"), result("c2", ""), result("cX", " b "))
    assert collapsed(given) == "[Tool results: f:  a; f:; b]"


def test_a_transcript_tells_calls_and_results_and_names_what_has_no_text() -> None:
    given = chat(
        {"role": "assistant", "text": "so", **{k: v for k, v in call("c1").items() if k != "role"}},
        result("c1"),
        {"role": "assistant", "reasoning": "hm"},
        {"role": "assistant", "text": ""},
    )
    assert transcript(given) == (
        "1. [assistant] so; function_call f({}) [call_id=c1]\n"
        "2. [tool] function_result: found [call_id=c1]\n"
        "3. [assistant] text_reasoning\n"
        "4. [assistant] text"
    )


# Strategies ---------------------------------------------------------------------------------------


def test_truncation_overwrites_the_reason_of_what_was_excluded_before() -> None:
    given = chat("user: a", "user: b", "user: c", "user: d")
    messages = MessageList(
        [Marked(m, at == 0, "earlier" if at == 0 else None) for at, m in enumerate(given)]
    )
    play(strategy("truncation", max_n=2, compact_to=2), messages)
    assert [(each.id, each.reason) for each in messages.entries if each.excluded] == [
        ("m0", "truncation"),
        ("m1", "truncation"),
    ]


def test_truncation_keeps_the_newest_group_and_says_when_nothing_else_is_left() -> None:
    messages = MessageList.of(chat("system: s", "user: a"))
    changed, (only,) = play(strategy("truncation", max_n=1, compact_to=1), messages)
    assert not changed
    assert "only protected groups" in getattr(only, "reason", "")


def test_the_newest_group_stays_even_where_everything_is_system() -> None:
    messages = MessageList.of(chat("system: s", "system: t"))
    rule = strategy("truncation", max_n=1, compact_to=1, preserve_system=False)
    play(rule, messages)
    assert ids(messages) == ["m1"]


def test_selective_removes_and_puts_nothing_in_place() -> None:
    given = chat("user: q", call("c1"), result("c1"), call("c2"), result("c2"))
    messages = MessageList.of(given)
    play(strategy("selective_tool_call", keep_last_tool_call_groups=0), messages)
    assert ids(messages) == ["m0"]


def test_a_collapse_stands_before_the_first_message_of_a_scattered_group() -> None:
    messages = MessageList.of(chat("user: q", call("c1"), "user: r", result("c1"), "user: s"))
    play(strategy("tool_result", keep_last_tool_call_groups=0), messages)
    assert ids(messages) == ["m0", "tool_summary_group_m1", "m2", "m4"]
    assert {e.id: e.summarized_by for e in messages.entries if e.summarized_by} == {
        "m1": "tool_summary_group_m1",
        "m3": "tool_summary_group_m1",
    }


def test_a_threshold_of_none_is_none_at_all() -> None:
    messages = MessageList.of(chat(*["user: q"] * 3))
    rule = strategy("summarization", target_count=2, threshold=None)
    assert play(rule, messages, Summary("S", "m"))[0]


def test_the_error_comes_once_at_the_third_failure_and_again_after_a_success() -> None:
    def run(answer: Answer) -> list[str]:
        messages = MessageList.of(chat(*["user: q"] * 7))
        _, steps = play(rule, messages, answer)
        return [step.code for step in steps if isinstance(step, Log)]

    rule = strategy("summarization")
    down = Failure(FailureKind.PROVIDER, "down")
    blank = Failure(FailureKind.EMPTY, "nothing")
    assert run(down) == ["summary-failed"]
    assert run(blank) == ["summary-blank"]
    assert run(down) == ["summary-failed", "summary-failing-repeatedly"]
    assert run(down) == ["summary-failed"]
    assert run(Summary("S", "m")) == []
    assert [run(down) for _ in range(3)][-1] == ["summary-failed", "summary-failing-repeatedly"]


def test_a_group_that_does_not_fit_later_ends_the_choice() -> None:
    given = chat("user: a", "user: b", f"user: {'x' * 900}", "user: c", "user: d")
    messages = MessageList.of(given)
    rule = strategy(
        "summarization", target_count=1, threshold=0, prompt="p", max_summary_input_tokens=50
    )
    play(rule, messages, Summary("S", "m"))
    assert ids(messages) == ["summary_5", "m2", "m3", "m4"]


def test_above_the_budget_after_everything_system_groups_go_too() -> None:
    messages = MessageList.of(chat("system: s", "user: a", "user: b"))
    _, steps = play(strategy("token_budget", token_budget=1, strategies=[]), messages)
    assert [step.stage for step in steps if isinstance(step, Changed)] == [
        "token_budget_fallback",
        "token_budget_fallback_strict",
    ]
    assert ids(messages) == ["m2"]


def test_what_is_refused_is_taken_back() -> None:
    for name, params in (
        ("truncation", {"max_n": 1, "compact_to": 1}),
        ("sliding_window", {"keep_last_groups": 1}),
        ("tool_result", {"keep_last_tool_call_groups": 0}),
        ("summarization", {"target_count": 1, "threshold": 0}),
        ("token_budget", {"token_budget": 1, "strategies": []}),
    ):
        given = chat("system: s", "user: q", call("c1"), result("c1"), "user: r")
        messages = MessageList.of(given)
        rule = strategy(name, **params)
        changed, _ = play(rule, messages, Summary("S", "m"), Refused("no", Context()))
        assert not changed
        assert messages.included == given
        assert not any(each.excluded or each.summarized_by for each in messages.entries)


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("truncation", {"max_n": 0, "compact_to": 1}, "max_n must"),
        ("truncation", {"max_n": 2, "compact_to": 3}, "compact_to must"),
        ("truncation", {"max_n": 2}, "compact_to of truncation"),
        ("sliding_window", {"keep_last_groups": 0}, "must be above 0"),
        ("selective_tool_call", {"keep_last_tool_call_groups": -1}, "must not be negative"),
        ("tool_result", {"keep_last_tool_call_groups": -1}, "must not be negative"),
        ("summarization", {"target_count": 0}, "target_count"),
        ("summarization", {"threshold": -1}, "threshold"),
        ("summarization", {"max_summary_input_tokens": 0}, "max_summary_input_tokens"),
        ("summarization", {"tokenizer": "bpe"}, "no tokenizer 'bpe'"),
        ("token_budget", {"strategies": []}, "either token_budget or"),
        ("context_window", {"max_context_window_tokens": 0}, "must be above 0"),
        ("context_window", {"max_context_window_tokens": 9, "max_output_tokens": 9}, "below the"),
        ("context_window", {"max_context_window_tokens": 9, "truncation_threshold": 0.4}, "below"),
        ("pipeline", {"strategies": []}, "no strategy 'pipeline'"),
    ],
)
def test_arguments_that_cannot_be_are_refused(
    name: str, params: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        strategy(name, **params)


def test_conditions_belong_to_the_other_design() -> None:
    with pytest.raises(ValueError, match="no triggers"):
        compose(StrategySpec("tool_result", {}, "always"), Limits(None))
