from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core.compaction.policies.codex.estimate import estimate, estimate_all, unreported
from thresher.core.compaction.policies.codex.history import descent, newest_within
from thresher.core.compaction.policies.codex.local import compacted
from thresher.core.compaction.policies.codex.pieces import as_sent, half_of, placed
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
    assistant,
    system,
    user,
)
from thresher.core.sources.codex_items import item_of, split_summary
from thresher.core.sources.codex_tokens import estimate_item

from ..strategies import context_of
from .codex_replay import lines
from .codex_situations import harness, work

PICTURE = ImagePart("data:image/png;base64,AAAA")
SUMMARY = CompactionSummary("done", "Before:\n")
CONTEXT = harness("<environment_context>")


def new_history(
    items: list[Item], *, budget: int = 20_000, fresh: tuple[Item, ...] = ()
) -> tuple[Item, ...]:
    context = context_of(items)
    segments, size = compacted(context, fresh, SUMMARY, budget)
    after = context.apply(segments, 1_000, 1).after.items
    assert size == estimate_all(item for item in after if item not in items[:1] or _stays(item))
    return after


def _stays(item: Item) -> bool:
    return not (isinstance(item, Message) and item.role is Role.SYSTEM)


def test_only_what_the_user_said_stays_and_the_summary_is_last() -> None:
    items = [assistant("hm"), user("first"), OtherItem("unknown", "{}"), *work("c")]
    assert new_history(items) == (user("first"), SUMMARY)


def test_harness_text_and_earlier_summaries_are_nothing_that_the_user_said() -> None:
    items = [
        harness("# AGENTS.md instructions"),
        harness("<environment_context>"),
        CompactionSummary("earlier", "Before:\n"),
        user("real"),
    ]
    assert new_history(items) == (user("real"), SUMMARY)


def test_our_own_system_message_stays_at_the_head() -> None:
    assert new_history([system("s"), user("u"), system("later")]) == (
        system("s"),
        user("u"),
        SUMMARY,
    )


def test_a_message_over_the_budget_is_kept_in_three_parts() -> None:
    cut, last = new_history([user("x" * 1_000)], budget=16)
    assert last == SUMMARY
    assert cut == Message(
        Role.USER,
        (TextPart("x" * 32), TextPart("…234 tokens truncated…"), TextPart("x" * 32)),
    )


def test_the_newest_fit_first_the_next_is_cut_and_the_oldest_goes() -> None:
    items: list[Item] = [user("a" * 40), user("b" * 40), user("c" * 40)]
    cut, newest, _ = new_history(items, budget=15)
    assert newest == user("c" * 40)
    assert isinstance(cut, Message)
    assert [part.text for part in cut.content if isinstance(part, TextPart)] == [
        "b" * 10,
        "…5 tokens truncated…",
        "b" * 10,
    ]


def test_a_budget_that_is_used_up_exactly_cuts_nothing() -> None:
    assert newest_within([4, 10, 10], 20) == [(1, None), (2, None)]
    assert newest_within([4, 10, 10], 21) == [(0, 1), (1, None), (2, None)]
    assert newest_within([], 20) == []


def test_a_cut_or_rebuilt_message_descends_from_the_one_it_was() -> None:
    pictured = Message(Role.USER, (TextPart("see "), PICTURE, TextPart("this")))
    context = context_of([user("o" * 400), pictured])
    segments, _ = compacted(context, (), SUMMARY, 50)
    after = context.apply(segments, 1_000, 1).after.entries
    assert [entry.origin for entry in after[:2]] == [
        (context.entries[0].id,),
        (context.entries[1].id,),
    ]
    assert after[1].item == user("see this")


def test_the_summary_stands_for_all_that_left() -> None:
    context = context_of([harness("env"), user("u"), *work("c"), assistant("a")])
    segments, _ = compacted(context, (), SUMMARY, 100)
    change = context.apply(segments, 1_000, 1)
    assert change.after.entries[-1].origin == tuple(change.removed)
    assert len(change.removed) == 4


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ((user("1"), user("2"), SUMMARY), 1),
        ((SUMMARY,), 0),
        ((CompactionSummary(encrypted="x"),), 0),
        ((), 0),
        ((user("1"), CompactionSummary(encrypted="x")), 0),
        ((user("1"), OtherItem("agent_message", "{}", "hi"), SUMMARY), 1),
        ((harness("hook"), SUMMARY), 1),
    ],
)
def test_the_initial_context_goes_before_the_last_thing_the_user_said(
    items: tuple[Item, ...], place: int
) -> None:
    assert placed(items) == place


def test_the_fresh_context_is_put_in_as_one_run() -> None:
    fresh = (harness("permissions", Role.DEVELOPER), CONTEXT)
    after = new_history([user("1"), assistant("a"), user("2")], fresh=fresh)
    assert after == (user("1"), *fresh, user("2"), SUMMARY)


def test_every_smaller_request_lacks_the_oldest_item_and_its_partner() -> None:
    items = [user("u"), *work("a"), assistant("x"), *work("b")]
    left = [len(rest) for rest in descent(items, half_of)]
    assert left == [5, 3, 2, 0]


def test_a_partner_that_stands_further_on_goes_too() -> None:
    items: list[Item] = [
        FunctionCall("a", "t", "{}"),
        FunctionCall("b", "t", "{}"),
        FunctionCallOutput("b", "1"),
        FunctionCallOutput("a", "2"),
    ]
    assert next(descent(items, half_of)) == items[1:3]


def test_a_request_has_no_half_of_a_pair() -> None:
    items = (FunctionCallOutput("x", "lost"), FunctionCall("y", "t", "{}"), user("u"))
    sent = as_sent(items)
    assert sent == [items[1], FunctionCallOutput("y", "aborted"), items[2]]


def test_a_summary_is_known_by_the_prefix_and_its_line_end() -> None:
    fixture = _recorded_prefix()
    assert split_summary(f"{fixture}\nx") == (f"{fixture}\n", "x")
    assert split_summary(fixture) is None
    assert split_summary(f"x{fixture}\n") is None


def _recorded_prefix() -> str:
    path = Path(__file__).parents[1] / "fixtures" / "codex" / "mid_turn.jsonl.gz"
    (text,) = (line["payload"]["message"] for line in lines(path) if line["type"] == "compacted")
    return str(text).partition("\n")[0]


def test_the_weight_of_each_kind_of_item() -> None:
    assert estimate(user("abcde")) == 2
    assert estimate(user("ä" * 4)) == 2
    assert estimate(Message(Role.USER, (PICTURE,))) == 1_844
    assert estimate(FunctionCall("id", "ab", "{}")) == -(-(2 + len("functions") + 2) // 4)
    assert estimate(FunctionCall("id", "ab", "{}", "mcp")) == 2
    assert estimate(FunctionCallOutput("call", "1234")) == 2
    assert estimate(Reasoning("read me", "")) == 0
    assert estimate(Reasoning("", "x" * 2_400)) == 288
    assert estimate(Reasoning("", "x" * 100)) == 0
    assert estimate(CompactionSummary(encrypted="x" * 480)) == 40
    assert estimate(CompactionSummary("abc", "de")) == 2
    assert estimate(OtherItem("web_search_call", '{"type":"web_search_call"}')) == 7
    assert estimate(OtherItem("image_generation_call", "{}")) == 1_844
    assert estimate(OtherItem("agent_message", "{}", "text")) == 0


def test_both_readers_weigh_an_item_alike() -> None:
    for raw in (
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "t", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "text" * 9},
        {"type": "reasoning", "encrypted_content": "x" * 2_400},
        {"type": "compaction", "encrypted_content": "x" * 960},
        {"type": "web_search_call", "action": {"query": "q"}},
    ):
        assert estimate(item_of(raw)) == estimate_item(raw)


def test_what_came_after_the_model_is_not_reported_yet() -> None:
    items = [user("u" * 400), assistant("a"), *work("c", "o" * 36)]
    assert unreported(items) == 10
    assert unreported([user("u" * 400)]) == 0


def test_sealed_reasoning_counts_once_when_the_user_has_spoken_since() -> None:
    sealed = Reasoning("", "x" * 2_400)
    assert unreported([user("a"), sealed, assistant("b"), user("cccc")]) == 1 + 288
    assert unreported([user("a"), sealed, assistant("b")]) == 0
