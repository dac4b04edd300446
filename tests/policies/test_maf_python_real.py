from __future__ import annotations

import asyncio
from typing import Any

import agent_framework as af
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policies.maf_driver import message
from tests.policies.test_maf_python_rules import ids, play, strategy
from thresher.core.compaction.policies.maf.python_messages import MessageList

THEIRS: dict[str, Any] = {
    "truncation": af.TruncationStrategy,
    "sliding_window": af.SlidingWindowStrategy,
    "selective_tool_call": af.SelectiveToolCallCompactionStrategy,
    "tool_result": af.ToolResultCompactionStrategy,
    "context_window": af.ContextWindowCompactionStrategy,
}


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages as a program may hold them: whole exchanges, calls without results, late results."""
    made: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for at in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(("system", "user", "assistant", "call", "result", "late")))
        text = draw(st.sampled_from(("", "ok", "a line of words " * 6, "x" * 300)))
        if kind in ("system", "user", "assistant"):
            made.append({"role": kind, "text": text or "said"})
        elif kind == "call":
            new = [f"c{at}.{k}" for k in range(draw(st.integers(1, 2)))]
            calls = [{"id": id, "name": "read", "arguments": {"n": 1}} for id in new]
            made.append({"role": "assistant", "tool_calls": calls})
            open_calls += new
        elif open_calls:
            place = 0 if kind == "result" else -1
            made.append({"role": "tool", "tool_call_id": open_calls.pop(place), "text": text})
    return [{**each, "id": f"m{at}"} for at, each in enumerate(made)]


@st.composite
def rules(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    name = draw(st.sampled_from(sorted(THEIRS)))
    few = draw(st.integers(1, 4))
    match name:
        case "truncation":
            most = draw(st.integers(1, 300))
            params = {"max_n": most, "compact_to": draw(st.integers(1, most))}
            return name, {**params, "preserve_system": draw(st.booleans())}
        case "sliding_window":
            return name, {"keep_last_groups": few, "preserve_system": draw(st.booleans())}
        case "context_window":
            window = draw(st.integers(20, 900))
            return name, {"max_context_window_tokens": window, "max_output_tokens": window // 5}
        case _:
            return name, {"keep_last_tool_call_groups": draw(st.integers(0, 3))}


def real(each: dict[str, Any]) -> Any:
    if "tool_calls" in each:
        contents = [
            af.Content.from_function_call(call["id"], call["name"], arguments=call["arguments"])
            for call in each["tool_calls"]
        ]
    elif each["role"] == "tool":
        contents = [af.Content.from_function_result(each["tool_call_id"], result=each["text"])]
    else:
        contents = [af.Content.from_text(each["text"])]
    return af.Message(role=each["role"], contents=contents, message_id=each["id"])


def kept_by_theirs(name: str, params: dict[str, Any], history: list[dict[str, Any]]) -> list[str]:
    arguments = dict(params)
    if name == "truncation":
        arguments["tokenizer"] = af.CharacterEstimatorTokenizer()
    messages = [real(each) for each in history]
    left = asyncio.run(af.apply_compaction(messages, strategy=THEIRS[name](**arguments)))
    return [each.message_id for each in left]


@settings(max_examples=150, deadline=None)
@given(histories(), rules())
def test_what_stays_is_what_the_real_framework_keeps(
    history: list[dict[str, Any]], rule: tuple[str, dict[str, Any]]
) -> None:
    name, params = rule
    ours = MessageList.of([message(each, named=True) for each in history])
    told = {**params, "tokenizer": "char_estimator"} if name == "truncation" else params
    play(strategy(name, **told), ours)
    summaries = {each for each in ids(ours) if not each.startswith("m")}
    theirs = kept_by_theirs(name, params, history)
    assert [each for each in ids(ours) if each not in summaries] == [
        each for each in theirs if each.startswith("m")
    ]
    assert len(summaries) == sum(not each.startswith("m") for each in theirs)


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_every_compared_strategy_changes_something(name: str) -> None:
    asks = [{"role": "user", "text": "a line of words " * 20}]
    calls = [{"id": "c", "name": "read", "arguments": {}}]
    exchange = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "text": "x" * 300},
    ]
    history = [{**each, "id": f"m{at}"} for at, each in enumerate([*asks, *exchange, *asks, *asks])]
    params: dict[str, dict[str, Any]] = {
        "truncation": {"max_n": 20, "compact_to": 10},
        "sliding_window": {"keep_last_groups": 1},
        "selective_tool_call": {"keep_last_tool_call_groups": 0},
        "tool_result": {"keep_last_tool_call_groups": 0},
        "context_window": {"max_context_window_tokens": 50, "max_output_tokens": 10},
    }
    assert kept_by_theirs(name, params[name], history) != [each["id"] for each in history]
