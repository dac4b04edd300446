from __future__ import annotations

from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.compaction.policies.codex.local import Codex, CodexLocalParams
from thresher.core.compaction.policy import (
    Edit,
    Failure,
    FailureKind,
    Follow,
    Moment,
    Skip,
    SkipKind,
    Start,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.items import CompactionSummary, Item, Message, assistant, system, user
from thresher.core.models import Budget

from ..core.compaction.rig import Rig, Scripted
from .codex_situations import applied, budget, run, situation, work

TOO_LONG = Failure(FailureKind.OVERFLOW, "too long")
BROKEN = Failure(FailureKind.PROVIDER, "the server failed")
ITEMS: list[Item] = [
    system("You are an agent."),
    user("Fix it. " * 40),
    *work("a", "x" * 400),
    *work("b", "y" * 400),
]


def asked(steps: list[Any]) -> list[Summarise]:
    return [step for step in steps if isinstance(step, Summarise)]


def test_the_request_is_the_history_and_the_prompt_without_tools() -> None:
    steps = run(Codex(), situation(ITEMS, used=18_000), Summary("s", "m"))
    assert isinstance(steps[0], Start)
    (ask,) = asked(steps)
    assert ask.items[:-1] == tuple(ITEMS)
    assert isinstance(ask.items[-1], Message)
    assert ask.own_retry
    assert not ask.model


def test_a_prompt_and_a_prefix_of_ones_own_are_used() -> None:
    policy = Codex(CodexLocalParams(prompt="Sum up.", summary_prefix="So far:"))
    at = situation(ITEMS, used=18_000, focus="prices")
    _, ask, edit = run(policy, at, Summary("s", "m"))
    assert isinstance(ask, Summarise)
    assert ask.items[-1].text.startswith("Sum up.\n\n")
    assert ask.items[-1].text.endswith("prices")
    assert applied(at, edit).after.items[-1] == CompactionSummary("s", "So far:\n")


def test_a_request_that_is_too_long_loses_its_oldest_item_until_it_fits() -> None:
    at = situation(ITEMS, used=18_000)
    steps = run(Codex(), at, TOO_LONG, TOO_LONG, Summary("s", "m"))
    # The system message is what Codex calls base instructions: never removed.
    assert [len(ask.items) for ask in asked(steps)] == [7, 6, 4]
    assert all(ask.items[0] == ITEMS[0] for ask in asked(steps))
    edit = steps[-1]
    assert isinstance(edit, Edit)
    assert "The 3 oldest items were left out" in edit.reason
    assert applied(at, edit).after.items[1] == ITEMS[1]


def test_when_only_the_prompt_is_left_the_turn_is_given_up() -> None:
    steps = run(Codex(), situation(ITEMS, used=18_000), *[TOO_LONG] * 9)
    assert [len(ask.items) for ask in asked(steps)] == [7, 6, 4, 2]
    skip = steps[-1]
    assert isinstance(skip, Skip)
    assert (skip.kind, skip.follow, skip.failure) == (SkipKind.FAILED, Follow.WAIT, TOO_LONG)


@pytest.mark.parametrize(
    ("moment", "more", "follow"),
    [
        (Moment.TURN_START, {}, Follow.WAIT),
        (Moment.AFTER_ROUND, {}, Follow.WAIT),
        (Moment.TURN_END, {}, Follow.GO_ON),
    ],
)
def test_another_failure_ends_the_turn_unless_it_is_over(
    moment: Moment, more: dict[str, Any], follow: Follow
) -> None:
    policy = Codex(CodexLocalParams(post_turn_percent=50))
    skip = run(policy, situation(ITEMS, used=18_000, moment=moment, **more), BROKEN)[-1]
    assert isinstance(skip, Skip)
    assert (skip.kind, skip.follow) == (SkipKind.FAILED, follow)


def test_an_empty_answer_leaves_the_prefix_alone() -> None:
    at = situation(ITEMS, used=18_000)
    edit = run(Codex(), at, Failure(FailureKind.EMPTY, "nothing"))[-1]
    last = applied(at, edit).after.items[-1]
    assert isinstance(last, CompactionSummary)
    assert (last.content, last.text) == ("", last.prefix)
    assert last.prefix.endswith("\n")


def test_an_empty_answer_after_a_turn_is_a_failure() -> None:
    policy = Codex(CodexLocalParams(post_turn_percent=50))
    at = situation(ITEMS, used=18_000, moment=Moment.TURN_END)
    skip = run(policy, at, Failure(FailureKind.EMPTY, "nothing"))[-1]
    assert isinstance(skip, Skip)
    assert skip.kind is SkipKind.FAILED


def smaller(**more: Any) -> Any:
    return situation(
        ITEMS,
        used=30_000,
        moment=Moment.MODEL_CHANGE,
        trigger=Trigger.MODEL_CHANGE,
        model="small",
        previous_model="large",
        previous_budget=budget(64_000),
        **more,
    )


def test_a_smaller_model_has_the_summary_written_by_the_one_before() -> None:
    steps = run(Codex(), smaller(), Summary("s", "large"))
    assert [ask.model for ask in asked(steps)] == ["large"]
    assert isinstance(steps[-1], Edit)


def test_where_the_model_before_fails_the_new_one_is_asked_once() -> None:
    steps = run(Codex(), smaller(), BROKEN, Summary("s", "small"))
    assert [ask.model for ask in asked(steps)] == ["large", ""]
    assert isinstance(steps[-1], Edit)
    steps = run(Codex(), smaller(), BROKEN, BROKEN)
    assert len(asked(steps)) == 2
    assert isinstance(steps[-1], Skip)


def test_a_refused_request_is_not_followed_by_a_compaction() -> None:
    at = situation(ITEMS, used=10, moment=Moment.OVERFLOW, trigger=Trigger.OVERFLOW)
    (skip,) = run(Codex(), at)
    assert isinstance(skip, Skip)
    assert skip.kind is SkipKind.NO_OP


def test_the_windows_form_a_chain() -> None:
    first = run(Codex(), situation(ITEMS, used=18_000), Summary("s", "m"))[-1]
    assert isinstance(first, Edit)
    second = run(Codex(), situation(ITEMS, used=18_000, memory=first.memory), Summary("s", "m"))[-1]
    assert isinstance(second, Edit)
    assert (first.memory["window_number"], second.memory["window_number"]) == (1, 2)
    assert first.memory["previous_window_id"] == first.memory["first_window_id"] == "w0"
    assert second.memory["previous_window_id"] == first.memory["window_id"]
    assert second.memory["first_window_id"] == "w0"


# Through the engine ---------------------------------------------------------------------------


def rig(*answers: Any, params: dict[str, Any] | None = None, **settings: Any) -> Rig:
    found = Rig(
        ITEMS,
        Codex(CodexLocalParams(**(params or {}))),
        summarisers=[Scripted(*answers)],
        retries=0,
        **settings,
    )
    window: Budget = budget(20_000)
    found.to.emit(e.ModelChanged(model="m", budget=window))
    return found


async def test_two_compactions_by_hand_keep_what_was_said_and_the_second_summary() -> None:
    session = rig("first", "second", guard=Guard.REPORT)
    assert (await session.offer(Moment.MANUAL)).compacted
    session.say(user("more"), assistant("yes"))
    assert (await session.offer(Moment.MANUAL)).compacted
    items = session.state.context.items
    assert items[1:3] == (ITEMS[1], user("more"))
    assert [i.content for i in items if isinstance(i, CompactionSummary)] == ["second"]


async def test_an_empty_thread_is_summarised_by_hand_all_the_same() -> None:
    session = Rig((), Codex(), summarisers=[Scripted("s")], guard=Guard.REPORT)
    assert (await session.offer(Moment.MANUAL)).compacted
    assert len(session.state.context) == 1


async def test_there_is_one_compaction_after_the_other_as_long_as_the_limit_is_reached() -> None:
    session = rig("s", guard=Guard.REPORT)
    for number in range(1, 4):
        session.report(18_000)
        assert (await session.offer()).compacted
        assert session.state.memory["window_number"] == number
        session.work(number)


async def test_the_engine_stops_that_in_enforce_mode() -> None:
    session = rig("s" * 8_000, min_progress=0.9)
    session.report(18_000)
    await session.offer()
    session.work(1, 400)
    session.report(18_000)
    verdict = await session.offer()
    assert (verdict.compacted, verdict.follow) == (False, Follow.GO_ON)


async def test_usage_from_before_a_compaction_sets_off_nothing() -> None:
    session = rig("s")
    session.report(18_000)
    assert (await session.offer()).compacted
    assert (await session.offer()).outcome is None


async def test_a_failed_compaction_leaves_the_history_and_fills_the_count() -> None:
    session = rig(SummaryFailed(FailureKind.OVERFLOW, "too long"))
    session.report(18_000)
    before = session.state.context
    verdict = await session.offer(Moment.TURN_START)
    assert (verdict.compacted, verdict.follow) == (False, Follow.WAIT)
    assert session.state.context == before
    assert session.state.refused
    # 19,000 usable less the 18,000 that were spent: below the limit, as in Codex.
    assert (await session.offer(Moment.TURN_START)).outcome is None


async def test_the_phase_is_on_the_record() -> None:
    session = rig("s")
    session.report(18_000)
    await session.offer(Moment.TURN_START)
    (event,) = session.told(e.HistoryCompacted)
    assert (event.phase, event.stage, event.summary) == ("pre_turn", "local", "s")
