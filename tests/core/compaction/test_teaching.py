from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.compaction.rig import SHAPE, WORK
from tests.strategies import context_of, contexts
from thresher.core.compaction.policies.teaching import (
    SUMMARY_PREFIX,
    Teaching,
    TeachingParams,
    compacted,
    summary_request,
    utf16_units,
)
from thresher.core.compaction.policy import (
    Edit,
    Failure,
    FailureKind,
    Follow,
    Moment,
    Situation,
    Skip,
    SkipKind,
    Start,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.compaction.summaries import written_out
from thresher.core.context import Context
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
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact
from thresher.core.tokens import CharClassCounter, Usage
from thresher.core.validate import Dialect, validate

NONE = Fact(None, "not said")


def budget(window: int | None = None) -> Budget:
    return Budget(Fact(window, "test"), NONE, NONE, NONE)


def situation(
    context: Context | tuple[Item, ...] = WORK, usage: int | None = None, **more: Any
) -> Situation:
    given = {
        "moment": Moment.AFTER_ROUND,
        "trigger": Trigger.AUTO,
        "context": context if isinstance(context, Context) else context_of(context),
        "shape": SHAPE,
        "budget": budget(),
        "measure": Ledger(CharClassCounter()),
        "usage": None if usage is None else Usage(usage),
    }
    return Situation(**{**given, **more})


def first(policy: Teaching, at: Situation) -> Any:
    return next(policy.plan(at))


def edit_of(at: Situation, summary: str = "the summary", **params: Any) -> Edit:
    plan = Teaching(TeachingParams(**params)).plan(at)
    assert isinstance(next(plan), Start)
    assert isinstance(plan.send(None), Summarise)
    edit = plan.send(Summary(summary, "m"))
    assert isinstance(edit, Edit)
    return edit


def after(items: tuple[Item, ...], budget: int = 20_000) -> tuple[Item, ...]:
    context = context_of(items)
    return context.apply(compacted(context, "sum", budget), 99, 1).after.items


def test_without_reported_usage_nothing_happens() -> None:
    step = first(Teaching(), situation(usage=None))
    assert (step.kind, step.stage) == (SkipKind.NOT_DUE, "compaction")
    assert step.reason == "No token usage was reported since the last compaction."


def test_below_the_threshold_nothing_happens() -> None:
    step = first(Teaching(), situation(usage=7_999))
    assert step.kind is SkipKind.NOT_DUE
    assert step.reason == "Reported token usage 7,999 is below the compaction threshold 8,000."


def test_exactly_the_threshold_fires_with_the_reason_of_the_seed() -> None:
    step = first(Teaching(), situation(usage=8_000))
    assert step == Start(
        "compaction", "Reported token usage 8,000 reached the compaction threshold 8,000."
    )


def test_the_usage_is_input_and_output_together() -> None:
    full = msgspec.structs.replace(situation(), usage=Usage(7_000, output_tokens=1_000))
    assert isinstance(first(Teaching(), full), Start)
    less = msgspec.structs.replace(situation(), usage=Usage(7_000, output_tokens=999))
    assert isinstance(first(Teaching(), less), Skip)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_history_of_fewer_than_four_items_is_too_short(count: int) -> None:
    step = first(Teaching(), situation(WORK[:count], usage=50_000))
    assert step.kind is SkipKind.NO_OP
    assert f"only {count} items" in step.reason


def test_four_items_of_any_kind_are_enough() -> None:
    four = (Reasoning("r"), CompactionSummary("s"), user("u"), assistant("a"))
    assert isinstance(first(Teaching(), situation(four, usage=8_000)), Start)


def test_the_checks_come_in_the_order_of_the_seed() -> None:
    assert "No token usage" in first(Teaching(), situation(WORK[:1])).reason
    assert "below" in first(Teaching(), situation(WORK[:1], usage=1)).reason


@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.OVERFLOW])
def test_by_hand_and_after_an_overflow_only_the_length_counts(trigger: Trigger) -> None:
    assert isinstance(first(Teaching(), situation(trigger=trigger)), Start)
    assert first(Teaching(), situation(WORK[:3], trigger=trigger)).kind is SkipKind.NO_OP


def test_a_refused_request_is_sent_again_and_others_go_on() -> None:
    overflow = situation(moment=Moment.OVERFLOW, trigger=Trigger.OVERFLOW)
    assert edit_of(overflow).follow is Follow.RETRY
    assert edit_of(situation(usage=9_000)).follow is Follow.GO_ON


def test_a_share_of_the_window_takes_the_place_of_the_number() -> None:
    policy = Teaching(TeachingParams(threshold_share=0.5))
    (mark,) = policy.marks(budget(1_000))
    assert (mark.name, mark.tokens, mark.source) == ("threshold", 500, "50% of the window 1,000")
    assert isinstance(first(policy, situation(usage=500, budget=budget(1_000))), Start)
    assert isinstance(first(policy, situation(usage=499, budget=budget(1_000))), Skip)


def test_without_a_known_window_the_number_stays_in_force_and_says_so() -> None:
    (mark,) = Teaching(TeachingParams(threshold_share=0.5)).marks(budget())
    assert mark.tokens == 8_000
    assert "the window is unknown (test)" in mark.source


def test_our_own_figure_may_stand_in_for_a_report_that_never_comes() -> None:
    fires = Teaching(TeachingParams(threshold=50, estimate_when_unreported=True))
    reason = first(fires, situation()).reason
    assert reason.startswith("Estimated token usage ")
    assert reason.endswith("The provider reported none.")
    waits = Teaching(TeachingParams(estimate_when_unreported=True))
    assert first(waits, situation()).kind is SkipKind.NOT_DUE


@pytest.mark.parametrize(
    "params",
    [{"threshold": 0}, {"threshold_share": 0.0}, {"threshold_share": 1.5}, {"user_budget": -1}],
)
def test_constants_that_make_no_sense_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        TeachingParams(**params)


def test_five_items_become_three() -> None:
    items = (system("s"), user("u"), WORK[3], WORK[4], assistant("a"))
    assert after(items) == (system("s"), CompactionSummary("sum", SUMMARY_PREFIX), user("u"))


def test_without_a_system_message_the_summary_comes_first() -> None:
    assert after((user("u"), assistant("a")))[0] == CompactionSummary("sum", SUMMARY_PREFIX)


def test_a_system_message_further_down_goes() -> None:
    assert after((user("u"), system("late"))) == (
        CompactionSummary("sum", SUMMARY_PREFIX),
        user("u"),
    )


def test_earlier_summaries_go() -> None:
    kept = after((CompactionSummary("old"), user("u"), CompactionSummary("older")))
    assert kept == (CompactionSummary("sum", SUMMARY_PREFIX), user("u"))


def test_a_history_can_grow_by_an_item() -> None:
    assert len(after((system("s"), user("u")))) == 3


def test_the_newest_user_message_stays_whatever_its_size() -> None:
    assert after((user("old"), user("x" * 30_000)))[1:] == (user("x" * 30_000),)


def test_the_walk_ends_at_the_first_message_that_does_not_fit() -> None:
    tiny, big, newest = user("tiny"), user("x" * 24_000), user("newest")
    assert after((tiny, big, newest))[1:] == (newest,)


def test_the_budget_is_met_exactly() -> None:
    exact = (user("a" * 12_000), user("b" * 8_000))
    assert after(exact)[1:] == exact
    over = (user("a" * 12_001), user("b" * 8_000))
    assert after(over)[1:] == over[1:]


def test_the_budget_counts_utf16_code_units() -> None:
    crab = user("🦀" * 5_001)
    assert utf16_units(crab.text) == 10_002
    assert after((crab, user("b" * 10_000)))[1:] == (user("b" * 10_000),)
    assert after((user("🦀" * 5_000), user("b" * 10_000)))[1:] == (
        user("🦀" * 5_000),
        user("b" * 10_000),
    )


def test_a_message_that_a_harness_wrote_is_not_kept() -> None:
    note = Message(Role.USER, "the environment", synthetic=True)
    assert after((user("u"), note))[1:] == (user("u"),)


def test_the_summary_stands_for_everything_that_went() -> None:
    context = context_of(WORK)
    change = context.apply(compacted(context, "sum", 20_000), 99, 1)
    (summary,) = (entry for entry in change.after if entry.made_by == 1)
    assert summary.origin == change.removed == context.ids[2:]


@given(contexts(orphans=True), st.integers(0, 200))
def test_what_always_holds_of_the_new_history(context: Context, budget: int) -> None:
    change = context.apply(compacted(context, "sum", budget), 999, 1)
    items = change.after.items
    assert not any(isinstance(item, FunctionCall | FunctionCallOutput) for item in items)
    assert sum(isinstance(item, CompactionSummary) for item in items) == 1
    head = context.items[0]
    if isinstance(head, Message) and head.role is Role.SYSTEM:
        assert items[0] is head
    said = [i for i in context.items if isinstance(i, Message) and i.role is Role.USER]
    typed = [message for message in said if not message.synthetic]
    kept = [i for i in items if isinstance(i, Message) and i.role is Role.USER]
    assert kept == typed[len(typed) - len(kept) :]
    assert len(kept) >= min(1, len(typed))
    if len(kept) > 1:
        assert sum(utf16_units(message.text) for message in kept) <= budget
    assert len(change.kept) + len(change.removed) == len(context)
    for dialect in (Dialect.RESPONSES, Dialect.CHAT):
        assert validate(items, dialect) == []


def test_every_kind_of_item_is_written_out_as_the_seed_does() -> None:
    text = written_out(
        (
            system("be brief"),
            user("fix it"),
            assistant("looking"),
            Reasoning("thinking"),
            FunctionCall("1", "bash", '{"command":"ls"}'),
            FunctionCallOutput("1", "a.py"),
            FunctionCallOutput("2", "no", "grep", is_error=True),
            CompactionSummary("before", "prefix "),
            OtherItem("web_search_call", "{}", "weather"),
            OtherItem("ghost_snapshot", "{}"),
            Message(Role.USER, (TextPart("see"), ImagePart("data:x"))),
        )
    )
    assert text.split("\n\n") == [
        "[system] be brief",
        "[user] fix it",
        "[assistant] looking",
        '[tool call bash] {"command":"ls"}',
        "[tool result bash] a.py",
        "[tool result grep (error)] no",
        "[earlier summary] before",
        "[web_search_call] weather",
        "[user] see\n[image]",
    ]


def test_the_summary_request_is_a_system_and_a_user_message() -> None:
    plan = Teaching().plan(situation(usage=9_000))
    next(plan)
    ask = plan.send(None)
    assert isinstance(ask, Summarise)
    assert [item.role for item in ask.items if isinstance(item, Message)] == ["system", "user"]
    assert ask.items[1].text == written_out(WORK)
    assert (ask.source, ask.max_output, ask.model) == (WORK, None, "")


def test_a_focus_is_put_to_the_summariser() -> None:
    plain, focused = summary_request(WORK), summary_request(WORK, "the parser")
    assert focused[0].text.startswith(plain[0].text)
    assert focused[0].text.endswith("the parser")
    assert focused[1] == plain[1]


def test_a_failed_summary_ends_the_plan_with_its_failure() -> None:
    plan = Teaching().plan(situation(usage=9_000))
    next(plan)
    plan.send(None)
    failure = Failure(FailureKind.CUT, "cut off")
    step = plan.send(failure)
    assert isinstance(step, Skip)
    assert (step.kind, step.failure) == (SkipKind.FAILED, failure)
    assert step.reason.endswith("No summary: cut off")
