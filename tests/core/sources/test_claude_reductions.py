from __future__ import annotations

from typing import Any

from thresher.core import events as e
from thresher.core.items import FunctionCallOutput
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.claude_events import Translator
from thresher.core.sources.lines import LineReader
from thresher.core.tokens import Basis

from .claude_made import Made, call, text


def reductions(made: Made) -> list[e.UnannouncedReduction]:
    events = [record.event for record in made.records()]
    return [event for event in events if isinstance(event, e.UnannouncedReduction)]


def rounds(*inputs: int, size: int) -> Made:
    made = Made()
    made.user("go")
    for n, input in enumerate(inputs):
        made.says(f"m{n}", call(f"c{n}"), input=input)
        made.result(f"c{n}", "x" * size)
    return made


def test_a_fall_that_old_results_explain_is_a_reduction() -> None:
    (found,) = reductions(rounds(10_000, 20_000, 30_000, 12_000, size=40_000))
    assert (found.kind, found.before.value, found.after.value) == ("microcompact", 30_000, 12_000)
    assert found.before.basis is found.after.basis is Basis.REPORTED
    assert found.removed == 0
    assert not found.segments


def test_a_fall_that_nothing_in_the_record_explains_is_none() -> None:
    assert reductions(rounds(10_000, 20_000, 30_000, 12_000, size=40)) == []


def test_content_that_weighs_enough_is_nothing_without_a_fall() -> None:
    assert reductions(rounds(10_000, 20_000, 30_000, 40_000, size=40_000)) == []


def test_a_small_fall_is_none() -> None:
    assert reductions(rounds(10_000, 20_000, 30_000, 29_500, size=40_000)) == []


def test_the_newest_result_cannot_be_what_left() -> None:
    assert reductions(rounds(30_000, 12_000, size=100_000)) == []


def test_a_fall_behind_a_compaction_is_announced() -> None:
    made = rounds(10_000, 20_000, 30_000, size=40_000)
    made.boundary()
    made.user("Summary:\nshort", isCompactSummary=True)
    made.says("m9", text("on"), input=5_000)
    assert reductions(made) == []


def test_a_fall_to_another_model_is_none() -> None:
    made = rounds(10_000, 20_000, 30_000, size=40_000)
    made.says("m9", text("on"), input=12_000)
    made.lines[-1]["message"]["model"] = "claude-y"
    assert reductions(made) == []


def test_a_fall_behind_a_rewind_is_none() -> None:
    made = rounds(10_000, 20_000, 30_000, size=40_000)
    made.user("back to here", parent="u2")
    made.says("m9", text("on"), input=12_000)
    assert reductions(made) == []


def edits(tokens: int, uses: int) -> dict[str, Any]:
    applied = {
        "type": "clear_tool_uses_20250919",
        "cleared_tool_uses": uses,
        "cleared_input_tokens": tokens,
    }
    return {"context_management": {"applied_edits": [applied]}}


def test_context_editing_by_the_provider_is_told_when_it_clears_more_than_before() -> None:
    made = rounds(10_000, 20_000, size=40)
    made.says("m3", text("a"), input=12_000, **edits(9_000, 3))
    made.says("m4", text("b"), input=12_100, **edits(9_000, 3))
    made.says("m5", text("c"), input=8_000, **edits(14_000, 5))
    found = [each for each in reductions(made) if each.kind == "context-editing"]
    assert [(each.before.value, each.after.value) for each in found] == [
        (21_000, 12_000),
        (22_000, 8_000),
    ]
    assert "3 tool uses (9,000 input tokens)" in found[0].explanation
    assert "unannounced by the program" in found[0].evidence


def test_what_comes_back_is_an_alarm_once() -> None:
    made = rounds(10_000, 20_000, 30_000, 12_000, size=40_000)
    made.says("m8", text("ok"), input=23_000)
    made.user("and?")
    made.says("m9", text("yes"), input=60_000)
    made.user("again?")
    made.says("m10", text("yes"), input=60_100)
    events = [record.event for record in made.records()]
    (alarm,) = [event for event in events if isinstance(event, e.ContentReturned)]
    assert (alarm.before.value, alarm.after.value) == (23_000, 60_000)
    assert "after a new prompt" in alarm.explanation


def test_the_last_record_of_a_response_has_its_usage() -> None:
    made = Made()
    made.user("go")
    made.says("m1", text("a"), input=100)
    made.lines[-1]["message"]["usage"]["output_tokens"] = 1
    made.says("m1", call("c1"), input=100)
    made.lines[-1]["message"]["usage"]["output_tokens"] = 60
    made.result("c1", "out")
    state = made.state()
    assert state.usage is not None
    assert state.usage.output_tokens == 60
    assert (state.turns_total, state.requests, len(state.points)) == (160, 1, 1)


def test_a_response_whose_tools_run_while_it_streams_is_still_counted_once() -> None:
    made = Made()
    made.user("go")
    made.says("m1", call("c1"), input=100)
    made.result("c1", "out")
    made.says("m1", call("c2"), input=100)
    made.lines[-1]["message"]["usage"]["output_tokens"] = 90
    made.result("c2", "out")
    state = made.state()
    assert (state.turns_total, state.requests, len(state.points)) == (190, 1, 1)


def test_a_fall_that_is_too_small_for_microcompaction_is_none() -> None:
    assert reductions(rounds(20_000, 30_000, 40_000, 36_000, size=20_000)) == []


def resumed(version: str, prompt: str = "go", input: int = 29_900) -> Made:
    made = Made()
    made.user(prompt, version=version)
    first = made.says("m1", call("c1"), input=20_000)
    second = made.says("m1", call("c2"), input=20_000)
    made.result("c1", "x" * 400, parent=first)
    made.result("c2", "x" * 400, parent=second)
    made.says("m2", text("Read."), input=30_000)
    made.user("more")
    made.says("m3", text("ok"), input=input)
    for line in made.lines:
        line["version"] = version
    return made


def test_a_small_parallel_result_that_a_resume_loses_is_seen_in_versions_that_lose_it() -> None:
    (found,) = reductions(resumed("2.1.20"))
    assert (found.kind, found.removed) == ("lost-results", 2)
    assert reductions(resumed("2.1.197")) == []
    assert reductions(resumed("2.1.20", input=30_020)) == []


def test_a_named_file_that_is_not_sent_again_is_told_apart_from_microcompaction() -> None:
    made = Made()
    made.user("Look at @log1.txt")
    made.says("m1", text("Seen."), input=30_000)
    made.user("more")
    made.says("m2", text("ok"), input=26_000)
    (found,) = reductions(made)
    assert (found.kind, found.removed) == ("mentioned-files", 0)
    made.lines[0]["message"]["content"] = "Look at log1.txt, me@home"
    assert reductions(made) == []


def long_session(version: str) -> Made:
    made = rounds(10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 30_000, size=40_000)
    for line in made.lines:
        line["version"] = version
    return made


def outputs(made: Made) -> list[str]:
    items = made.state().context.items
    return [item.output[:20] for item in items if isinstance(item, FunctionCallOutput)]


def test_versions_with_a_known_rule_say_which_results_were_cleared() -> None:
    made = long_session("2.0.76")
    (found,) = reductions(made)
    assert (found.kind, found.removed, found.items_before) == ("microcompact", 0, 13)
    assert "the 2 oldest of 6 results went" in found.explanation
    assert outputs(made) == ["[Old tool result con"] * 2 + ["x" * 20] * 5
    assert outputs(long_session("2.1.12"))[:2] == ["<persisted-output>To"] * 2


def test_for_other_versions_it_stays_unknown_which_results_were_cleared() -> None:
    made = long_session("2.1.70")
    (found,) = reductions(made)
    assert "; which the model no longer saw is unknown" in found.explanation
    assert outputs(made) == ["x" * 20] * 7


def test_results_that_come_back_are_whole_again() -> None:
    made = long_session("2.0.76")
    made.user("again?")
    made.says("m10", text("yes"), input=90_000)
    assert outputs(made) == ["x" * 20] * 7
    assert made.state().problems == []
    events = [record.event for record in made.records()]
    assert any(isinstance(event, e.ContentReturned) for event in events)


def test_what_starts_a_compaction_has_cleared_results_first() -> None:
    found: list[RebuiltRequest] = []
    made = Made()
    made.user("go", version="2.0.76")
    for n in range(6):
        made.says(f"m{n}", call(f"c{n}"), input=10_000)
        made.result(f"c{n}", "x" * 40_000)
    made.boundary(trigger="auto", preTokens=160_000)
    made.user("Summary:\nshort", isCompactSummary=True)
    for line in made.lines:
        line["version"] = "2.0.76"
    translator = Translator(on_request=found.append)
    for line in LineReader().feed(made.data()):
        translator.feed(line)
    (request,) = [each for each in found if each.kind is e.Purpose.COMPACTION]
    told = [
        block["content"][:20]
        for message in request.input
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    assert told == ["[Old tool result con"] * 2 + ["x" * 20] * 4
    assert request.evidence == "inferred"
