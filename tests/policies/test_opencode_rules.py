from __future__ import annotations

from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.compaction.policies.opencode.checkpoint import Checkpoint, last_checkpoint
from thresher.core.compaction.policies.opencode.serialise import Writing
from thresher.core.compaction.policies.opencode.tool_output import Form
from thresher.core.compaction.policies.opencode_v1 import OpenCodeV1, OpenCodeV1Params
from thresher.core.compaction.policies.opencode_v2 import OpenCodeV2, OpenCodeV2Params
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import FailureKind, Follow, Moment
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summaries import prompt
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.errors import ThresherError
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Role,
    assistant,
    user,
)
from thresher.core.models import Budget, Fact
from thresher.core.tokens import Usage

from ..strategies import context_of
from .opencode_db import block
from .opencode_drive import Driven, step

K = 1_000
RECAP = OpenCodeV1Params().recap
PLACEHOLDER = OpenCodeV1Params().placeholder
SYSTEM = "the system prompt"
HOW = Writing(2_000, PLACEHOLDER)


def budget(window: int | None = 100 * K, output: int | None = 10 * K) -> Budget:
    unknown = Fact(None, "test")
    return Budget(Fact(window, "test"), unknown, Fact(output, "test"), unknown)


def v1(
    *items: Item,
    summaries: tuple[Any, ...] = ("the summary",),
    guard: Guard = Guard.ENFORCE,
    limits: Budget | None = None,
    **params: Any,
) -> Driven:
    driven = Driven(
        OpenCodeV1(OpenCodeV1Params(**params)), limits or budget(), *summaries, guard=guard
    )
    driven.say("", *items)
    return driven


def v2(
    *items: Item,
    summaries: tuple[Any, ...] = ("the summary",),
    limits: Budget | None = None,
    **params: Any,
) -> Driven:
    driven = Driven(OpenCodeV2(OpenCodeV2Params(**params)), limits or budget(), *summaries)
    driven.say("", *items)
    return driven


def texts(driven: Driven) -> list[str]:
    return [item.text for item in driven.state.context.items]


def told(driven: Driven, number: int = -1) -> str:
    (item,) = driven.scripted.asks[number].items
    return block(item.text, "conversation") or ""


WORK = (user("first " * 2000), *step("a", 9000), user("second"), *step("b", 40), assistant("done"))


# V1: when ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [Moment.AFTER_ROUND, Moment.TURN_END])
async def test_v1_fires_at_the_usable_and_not_below_it(moment: Moment) -> None:
    for used, fires in ((90 * K - 1, False), (90 * K, True)):
        driven = v1(*WORK, preserve_recent_tokens=500)
        driven.report(Usage(used))
        assert (await driven.offer(moment)).compacted is fires


async def test_v1_looks_once_more_before_the_first_request_of_a_turn() -> None:
    driven = v1(*WORK, preserve_recent_tokens=500)
    driven.report(Usage(90 * K))
    assert not (await driven.offer(Moment.BEFORE_REQUEST)).compacted
    driven.say("", user("third"))
    assert (await driven.offer(Moment.BEFORE_REQUEST)).compacted
    assert texts(driven)[-2] == "third"


async def test_v1_estimates_nothing_where_no_usage_is_reported() -> None:
    driven = v1(*WORK, user("x" * 900_000))
    assert "nothing is estimated" in (await driven.offer(Moment.BEFORE_REQUEST)).reason


async def test_v1_never_fires_where_the_window_is_unknown() -> None:
    driven = v1(*WORK, limits=budget(None, None))
    driven.report(Usage(10**9))
    assert not (await driven.offer(Moment.AFTER_ROUND)).compacted
    assert OpenCodeV1().marks(budget(None, None)) == ()


async def test_v1_leaves_an_overflow_alone_when_it_does_not_compact_by_itself() -> None:
    driven = v1(*WORK, auto=False)
    verdict = await driven.offer(Moment.OVERFLOW)
    assert not verdict.compacted
    assert driven.told(e.CompactionSkipped)


async def test_v1_compacts_by_hand_whatever_the_size_and_says_nothing_afterwards() -> None:
    driven = v1(*WORK, auto=False, preserve_recent_tokens=500)
    verdict = await driven.offer(Moment.MANUAL, focus="the rule about logs/")
    assert verdict.compacted
    assert texts(driven)[1:3] == [RECAP, "the summary"]
    assert driven.state.context.items[-1] == assistant("done")
    assert driven.scripted.asks[0].items[0].text.endswith("the rule about logs/")


async def test_v1_has_nothing_to_do_behind_a_summary() -> None:
    driven = v1(*WORK, autocontinue=False, preserve_recent_tokens=0)
    await driven.offer(Moment.MANUAL)
    verdict = await driven.offer(Moment.MANUAL)
    assert "nothing left to summarise" in verdict.reason


def test_v1_marks_its_threshold_with_the_arithmetic() -> None:
    (mark,) = OpenCodeV1().marks(budget(200 * K, 64 * K))
    assert (mark.name, mark.tokens) == ("threshold", 168 * K)
    assert mark.source == "window 200,000 - output 32,000"


# V1: what ----------------------------------------------------------------------------------------


async def test_v1_shows_question_summary_tail_and_a_word_to_go_on() -> None:
    driven = v1(*WORK, preserve_recent_tokens=500)
    driven.report(Usage(99 * K))
    verdict = await driven.offer(Moment.TURN_END)
    kinds = [type(item).__name__ for item in driven.state.context.items]
    assert kinds == [
        "Message", "Message", "CompactionSummary", "Message", "FunctionCall", "FunctionCallOutput",
        "Message", "Message",
    ]  # fmt: skip
    summary = driven.state.context.items[2]
    assert (summary.role, summary.content) == (Role.ASSISTANT, "the summary")
    assert texts(driven)[-1] == prompt("opencode_continue")
    assert verdict.follow is Follow.RUN_AGAIN


async def test_v1_goes_on_in_the_middle_of_a_turn() -> None:
    driven = v1(*WORK, preserve_recent_tokens=500)
    driven.report(Usage(99 * K))
    assert (await driven.offer(Moment.AFTER_ROUND)).follow is Follow.GO_ON


async def test_v1_asks_with_its_own_system_prompt_and_the_capped_output() -> None:
    driven = v1(*WORK, preserve_recent_tokens=500)
    await driven.offer(Moment.MANUAL)
    (ask,) = driven.scripted.asks
    assert ask.instructions == prompt("opencode_system")
    assert ask.max_output == 10 * K
    assert ask.source == tuple(WORK[:3])


def test_the_template_has_every_section_in_its_order() -> None:
    template = prompt("opencode_template")
    heads = [line for line in template.splitlines() if line.startswith("#")]
    assert heads == [
        "## Objective", "## Important Details", "## Work State", "### Completed", "### Active",
        "### Blocked", "## Next Move", "## Relevant Files",
    ]  # fmt: skip


async def test_v1_after_an_overflow_neither_sums_up_nor_keeps_the_refused_turn() -> None:
    driven = v1(*WORK, user("third"), *step("c", 9000), preserve_recent_tokens=500)
    verdict = await driven.offer(Moment.OVERFLOW)
    assert verdict.follow is Follow.RETRY
    assert texts(driven)[3:] == ["second", 'grep {"path": "a"}', "x" * 40, "done", "third"]
    assert "third" not in told(driven)


async def test_v1_keeps_the_refused_turn_if_that_is_asked_for() -> None:
    driven = v1(
        *WORK,
        user("third"),
        *step("c", 900),
        preserve_recent_tokens=500,
        keep_refused_turn=True,
    )
    await driven.offer(Moment.OVERFLOW)
    assert texts(driven)[-4:] == ["third", 'grep {"path": "a"}', "x" * 900, "third"]


async def test_v1_merges_the_summary_of_another_policy() -> None:
    driven = v1(CompactionSummary("their notes", "Earlier:\n\n"), *WORK, preserve_recent_tokens=500)
    await driven.offer(Moment.MANUAL)
    assert block(driven.scripted.asks[0].items[0].text, "prior-summary") == "their notes"
    assert "their notes" not in told(driven)


async def test_no_summary_of_another_policy_is_lost() -> None:
    foreign = (CompactionSummary("one"), user("hi"), CompactionSummary("two", "Earlier: "))
    for driven in (v1(*foreign, *WORK, preserve_recent_tokens=500), v2(*foreign, *WORK, keep=100)):
        await driven.offer(Moment.OVERFLOW)
        assert block(driven.scripted.asks[0].items[0].text, "prior-summary") == "one\n\ntwo"


async def test_v1_takes_the_last_summary_in_the_order_the_model_sees() -> None:
    driven = v1(
        user("u1 " * 3000), user("u2 " * 3000), user("u3"),
        summaries=("S1", "S2", "S3"), tail_turns=2, preserve_recent_tokens=9000,
        guard=Guard.REPORT,
    )  # fmt: skip
    await driven.offer(Moment.MANUAL)
    driven.say("", user("u4"))
    await driven.offer(Moment.MANUAL)
    assert texts(driven)[1:] == [RECAP, "S2", "u3", RECAP, "S1", "u4"]
    driven.say("", user("u5"), user("u6"))
    await driven.offer(Moment.MANUAL)
    # A fault of the system: the older of the two summaries is merged, since it is seen later.
    assert block(driven.scripted.asks[-1].items[0].text, "prior-summary") == "S1"
    assert texts(driven)[1:] == [RECAP, "S3", "u5", "u6"]


async def test_v1_uses_the_limits_of_the_model_that_summarises() -> None:
    driven = v1(*WORK, summary_model="gpt-4o-mini", preserve_recent_tokens=500)
    await driven.offer(Moment.MANUAL)
    (ask,) = driven.scripted.asks
    assert ask.model == "gpt-4o-mini"
    assert ask.max_output == 16_384


# V1: faults --------------------------------------------------------------------------------------

BROKEN = SummaryFailed(FailureKind.PROVIDER, "The endpoint broke.")


async def test_a_provider_error_drops_what_lies_before_the_tail_in_report_mode() -> None:
    driven = v1(*WORK, summaries=(BROKEN,), preserve_recent_tokens=500, guard=Guard.REPORT)
    driven.report(Usage(99 * K))
    verdict = await driven.offer(Moment.AFTER_ROUND)
    assert texts(driven)[:3] == [SYSTEM, RECAP, "second"]
    (event,) = driven.told(e.HistoryCompacted)
    assert "drops everything before its tail without a summary" in " ".join(event.marks)
    assert verdict.follow is Follow.WAIT


async def test_enforce_mode_refuses_that_and_the_history_is_whole() -> None:
    driven = v1(*WORK, summaries=(BROKEN,), preserve_recent_tokens=500)
    before = driven.state.context
    driven.report(Usage(99 * K))
    verdict = await driven.offer(Moment.AFTER_ROUND)
    assert driven.state.context == before
    assert [event.kind for event in driven.told(e.CompactionFailed)] == ["provider"]
    (skipped,) = driven.told(e.CompactionSkipped)
    assert "drops everything before its tail" in skipped.reason
    assert verdict.follow is Follow.WAIT
    assert driven.state.failures == 1


async def test_a_question_that_was_left_behind_is_no_turn_and_is_not_written_out() -> None:
    driven = v1(*WORK, summaries=(BROKEN, "fine"), guard=Guard.REPORT, preserve_recent_tokens=0)
    await driven.offer(Moment.MANUAL)
    assert texts(driven)[-1] == RECAP
    driven.say("", user("third " * 500))
    await driven.offer(Moment.MANUAL)
    assert RECAP not in told(driven)
    assert texts(driven) == [SYSTEM, RECAP, "fine"]


# V1: prune ---------------------------------------------------------------------------------------


def long_work(
    *more: Item, sizes: tuple[int, ...] = (100 * K, 100 * K, 100 * K)
) -> tuple[Item, ...]:
    old = [item for at, size in enumerate(sizes) for item in step(f"old{at}", size)]
    return (user("one"), *old, *more, user("two"), *step("new", 100 * K), user("three"))


async def pruned(driven: Driven) -> list[str]:
    await driven.offer(Moment.TURN_END)
    outputs = [i for i in driven.state.context.items if isinstance(i, FunctionCallOutput)]
    return [output.call_id for output in outputs if output.output == PLACEHOLDER]


async def test_prune_clears_from_the_output_on_that_crosses_the_line() -> None:
    driven = v1(*long_work(), assistant("done"), prune=True)
    # 25,000 tokens each: the second-newest old one crosses 40,000.
    assert await pruned(driven) == ["old0", "old1"]
    assert await pruned(driven) == ["old0", "old1"]
    assert len(driven.told(e.HistoryCompacted)) == 1


async def test_prune_leaves_alone_what_would_clear_too_little() -> None:
    driven = v1(*long_work(sizes=(80 * K, 160 * K)), prune=True)
    assert await pruned(driven) == []
    driven = v1(*long_work(sizes=(80 * K + 2, 160 * K)), prune=True)
    assert await pruned(driven) == ["old0"]


async def test_prune_stops_at_a_summary_that_is_not_among_the_newest_turns() -> None:
    old = step("old", 400 * K)
    summary = (CompactionSummary("notes"), user("half"))
    driven = v1(user("zero"), *old, *summary, user("two"), user("three"), prune=True)
    assert await pruned(driven) == []


async def test_prune_passes_over_failed_calls() -> None:
    failed = FunctionCallOutput("f", "x" * 400 * K, "grep", is_error=True)
    items = (user("one"), FunctionCall("f", "grep", "{}"), failed, user("two"), user("three"))
    assert await pruned(v1(*items, prune=True)) == []


# V2 ----------------------------------------------------------------------------------------------


async def test_v2_fires_above_what_it_sends_as_it_is() -> None:
    sizes = [60 * K, 340 * K]
    fired = []
    for length in sizes:
        driven = v2(user("x" * length), assistant("yes"), user("and?"))
        fired.append((await driven.offer(Moment.BEFORE_REQUEST)).compacted)
    assert fired == [False, True]
    (mark,) = OpenCodeV2().marks(budget())
    assert (mark.tokens, mark.source) == (
        80 * K,
        "window 100,000 - the larger of output 10,000 and buffer 20,000",
    )


REFUSALS: list[tuple[str, tuple[Item, ...], Budget, dict[str, Any]]] = [
    ("the window is unknown", WORK, budget(None, None), {}),
    ("nothing to write out", (), budget(), {}),
    ("nothing is left to summarise", (user("hi"),), budget(), {}),
    ("would not fit into", WORK, budget(5 * K, 4 * K), {"keep": 10}),
]


@pytest.mark.parametrize(("words", "items", "limits", "params"), REFUSALS)
async def test_v2_says_why_it_refuses(
    words: str, items: tuple[Item, ...], limits: Budget, params: dict[str, Any]
) -> None:
    driven = v2(*items, limits=limits, **params)
    verdict = await driven.offer(Moment.OVERFLOW)
    (event,) = driven.told(e.CompactionSkipped)
    assert words in event.reason
    assert not verdict.compacted
    assert not driven.scripted.asks


async def test_v2_recovers_from_an_overflow_even_when_auto_is_off() -> None:
    driven = v2(*WORK, auto=False, keep=100)
    assert not (await driven.offer(Moment.BEFORE_REQUEST)).compacted
    assert (await driven.offer(Moment.OVERFLOW)).compacted


async def test_v2_asks_without_system_prompt_for_at_most_its_summary_output() -> None:
    for output, expected in ((2 * K, 2 * K), (10 * K, 4096), (None, 4096)):
        driven = v2(*WORK, limits=budget(100 * K, output), keep=100)
        await driven.offer(Moment.OVERFLOW)
        (ask,) = driven.scripted.asks
        assert (ask.instructions, ask.max_output) == ("", expected)


async def test_v2_loses_the_newest_question_if_it_alone_is_too_large() -> None:
    driven = v2(*WORK, user("the question " * 100), keep=100)
    await driven.offer(Moment.OVERFLOW)
    checkpoint = last_checkpoint(driven.state.context)
    assert checkpoint is not None
    assert checkpoint.recent == ""
    assert len(driven.state.context) == 2


async def test_v2_takes_the_summary_of_another_policy_as_the_last_one() -> None:
    driven = v2(CompactionSummary("their notes", "Earlier:\n\n"), *WORK, keep=100)
    await driven.offer(Moment.OVERFLOW)
    assert block(driven.scripted.asks[0].items[0].text, "prior-summary") == "their notes"
    assert told(driven).startswith("[User]: first")


async def test_v2_cannot_sum_up_a_session_that_only_reads() -> None:
    reads = [item for n in range(9) for item in step(f"r{n}", 90 * K, "read")]
    items = (user("read it all"), *reads)
    driven = v2(*items)
    verdict = await driven.offer(Moment.BEFORE_REQUEST)
    assert "nothing is left to summarise" in verdict.reason
    driven = v2(*items, structured_tools="", keep=100)
    assert (await driven.offer(Moment.BEFORE_REQUEST)).compacted


def test_a_checkpoint_is_read_as_it_was_written() -> None:
    for summary, recent in (
        ("notes", "[User]: hi"),
        ("", ""),
        ("a\n\nb", "<summary>\nx\n</summary>"),
    ):
        item = Checkpoint(summary, recent).item("This is history.")
        assert last_checkpoint(context_of([user("x"), item])) == Checkpoint(summary, recent)
        assert item.text.startswith("<conversation-checkpoint>\nThis is history.\n\n<summary>\n")


# Bounds and constants ---------------------------------------------------------------------------

LINES = "\n".join(f"line {n}" for n in range(1, 101))


async def test_a_capped_output_that_has_its_file_already_names_that_one() -> None:
    driven = v1(*WORK, FunctionCall("c", "grep", "{}"), max_lines=2)
    fresh = FunctionCallOutput("c", LINES, "grep", saved="/there")
    verdict = await driven.offer(Moment.TOOL_OUTPUT, fresh_output=fresh)
    assert verdict.output is not None
    assert verdict.output.saved == "/there"
    assert "/there" in verdict.output.output


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("opencode-v1", {"tail_share": 0}),
        ("opencode-v1", {"tail_least": 9, "tail_most": 8}),
        ("opencode-v1", {"reserve": -1}),
        ("opencode-v1", {"max_lines": 0}),
        ("opencode-v1", {"recap": ""}),
        ("opencode-v1", {"output_form": "middle"}),
        ("opencode-v2", {"buffer": -1}),
        ("opencode-v2", {"summary_output": 0}),
    ],
)
def test_a_constant_that_cannot_be_is_refused(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(ThresherError):
        make(name, params)


def test_constants_come_as_text_from_the_command_line() -> None:
    policy = make("opencode-v1", {"prune": "true", "tail_turns": "2", "output_form": "tail"})
    assert policy.params == OpenCodeV1Params(prune=True, tail_turns=2, output_form=Form.TAIL)
