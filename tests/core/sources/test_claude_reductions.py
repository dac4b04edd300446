from __future__ import annotations

from typing import Any

from thresher.core import events as e
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
