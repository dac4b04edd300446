from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from thresher.core import events as e
from thresher.core.compaction.policies.opencode.estimate import tokens
from thresher.core.compaction.policies.opencode.limits import Limits, count
from thresher.core.compaction.policies.opencode_v1 import OpenCodeV1, OpenCodeV1Params
from thresher.core.compaction.policies.opencode_v2 import OpenCodeV2, OpenCodeV2Params
from thresher.core.compaction.policy import FailureKind, Follow, Moment, RequestShape
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.gateways.usage import chat_usage
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    OpaquePart,
    Role,
    TextPart,
    assistant,
    user,
)
from thresher.core.models import Budget, Fact
from thresher.core.tokens import Usage

from .opencode_db import block
from .opencode_drive import Driven, overflow

K = 1_000
RECAP = OpenCodeV1Params().recap


def budget(window: int | None, output: int | None = None, max_input: int | None = None) -> Budget:
    return Budget(
        Fact(window, "test"), Fact(max_input, "test"), Fact(output, "test"), Fact(None, "test")
    )


# The histories of these cases are far smaller than their summaries, which only report mode allows.


def v1(*items: Item, summaries: tuple[Any, ...] = ("the summary",), **params: Any) -> Driven:
    policy = OpenCodeV1(OpenCodeV1Params(**params))
    driven = Driven(policy, budget(100 * K, 32 * K), *summaries, lead=(), guard=Guard.REPORT)
    driven.say("", *items)
    return driven


def v2(*items: Item, summaries: tuple[Any, ...] = ("the summary",), **params: Any) -> Driven:
    policy = OpenCodeV2(OpenCodeV2Params(**params))
    shape = RequestShape()
    driven = Driven(
        policy, budget(30 * K, 2 * K), *summaries, lead=(), shape=shape, guard=Guard.REPORT
    )
    driven.say("", *items)
    return driven


async def compacted(driven: Driven, moment: Moment = Moment.MANUAL) -> Any:
    """Compact, with a usage that is over any limit."""
    driven.report(Usage(99 * K))
    return await driven.offer(moment)


def texts(driven: Driven) -> list[str]:
    return [item.text for item in driven.state.context.items]


def asked(driven: Driven, number: int = -1) -> str:
    (item,) = driven.scripted.asks[number].items
    return str(item.text)


def picture(name: str, size: int) -> Message:
    file = {"type": "file", "file": {"filename": name, "file_data": "data:image/png;base64,"}}
    file["file"]["file_data"] += "A" * size  # type: ignore[index] # it is the mapping above
    part = OpaquePart("file", msgspec.json.encode(file).decode())
    return Message(Role.USER, (TextPart("look at this"), part))


OVERFLOWS = [
    (1, (100, None, 32), Usage(75 * K, 5 * K), True),
    (2, (200, None, 32), Usage(100 * K, 10 * K), False),
    (3, (100, None, 32), Usage(60 * K + 10 * K, 10 * K, cached_tokens=10 * K), True),
    (4, (400, 272, 128), Usage(273 * K, 1 * K, cached_tokens=2 * K), True),
    (5, (400, 272, 128), Usage(210 * K, 20 * K, cached_tokens=10 * K), False),
    (6, (200, 120, 10), Usage(50 * K, 9_999), False),
    (7, (200, 200, 32), Usage(183 * K, 15 * K, cached_tokens=3 * K), True),
    (8, (200, None, 32), Usage(183 * K, 15 * K, cached_tokens=3 * K), True),
    (9, (200, None, 32), Usage(171 * K, 10 * K, cached_tokens=5 * K), True),
    (9, (200, 200, 32), Usage(171 * K, 10 * K, cached_tokens=5 * K), True),
    (10, (0, None, 32), Usage(500 * K), False),
]


@pytest.mark.parametrize(("number", "limits", "usage", "expected"), OVERFLOWS)
def test_what_the_provider_reports_is_compared_with_the_usable(
    number: int, limits: tuple[int, int | None, int], usage: Usage, expected: bool
) -> None:
    window, max_input, output = limits
    of = Limits(window * K, (max_input or 0) * K, output * K)
    assert OpenCodeV1().overflows(of, count(usage)) is expected


def test_11_nothing_overflows_when_it_does_not_compact_by_itself() -> None:
    policy = OpenCodeV1(OpenCodeV1Params(auto=False))
    assert not policy.overflows(Limits(100 * K, 0, 32 * K), 900 * K)


@pytest.mark.parametrize(("tool", "cleared"), [("bash", True), ("skill", False)])
async def test_12_and_13_a_huge_old_result_is_cleared_unless_its_tool_is_protected(
    tool: str, cleared: bool
) -> None:
    driven = v1(
        user("one"),
        FunctionCall("c", tool, "{}"),
        FunctionCallOutput("c", "x" * 200 * K, tool),
        assistant("done"),
        user("two"),
        assistant("yes"),
        user("three"),
        assistant("yes"),
        prune=True,
    )
    await driven.offer(Moment.TURN_END)
    assert (texts(driven)[2] == OpenCodeV1Params().placeholder) is cleared


async def test_15_a_summary_that_is_itself_too_large_ends_the_run() -> None:
    driven = v1(user("one"), assistant("a"), summaries=(overflow(),))
    verdict = await compacted(driven, Moment.TURN_END)
    (failed,) = driven.told(e.CompactionFailed)
    assert "the session is too large to be summarised" in failed.reason
    assert verdict.follow is Follow.WAIT


async def test_16_after_a_summary_by_itself_the_model_is_told_to_go_on() -> None:
    driven = v1(user("one"), assistant("a"))
    verdict = await compacted(driven, Moment.TURN_END)
    last = driven.state.context.items[-1]
    assert (last.role, last.synthetic) == (Role.USER, True)
    assert verdict.follow is Follow.RUN_AGAIN


async def test_17_and_if_that_is_vetoed_the_summary_is_the_last_word() -> None:
    driven = v1(user("one"), assistant("a"), autocontinue=False)
    verdict = await compacted(driven, Moment.TURN_END)
    assert texts(driven) == [RECAP, "the summary"]
    assert verdict.follow is Follow.GO_ON


async def test_18_the_tail_reaches_back_as_many_turns_as_are_set() -> None:
    driven = v1(
        user("first"), user("second"), user("third"), tail_turns=2, preserve_recent_tokens=10 * K
    )
    await compacted(driven)
    assert texts(driven) == [RECAP, "the summary", "second", "third"]


async def test_19_a_turn_that_does_not_fit_ends_the_tail() -> None:
    driven = v1(
        user("first"), user("x" * 2000), user("tiny"), tail_turns=2, preserve_recent_tokens=100
    )
    await compacted(driven)
    assert texts(driven) == [RECAP, "the summary", "tiny"]


async def test_20_without_a_tail_everything_is_summarised() -> None:
    driven = v1(user("first"), user("y" * 2000), tail_turns=1, preserve_recent_tokens=20)
    await compacted(driven)
    assert texts(driven) == [RECAP, "the summary"]
    assert block(asked(driven), "conversation") == f"[User]: first\n\n[User]: {'y' * 2000}"


async def test_21_a_picture_counts_with_all_its_data_and_is_summarised_by_name() -> None:
    driven = v1(user("older"), picture("big.png", 4000), preserve_recent_tokens=100)
    await compacted(driven)
    assert texts(driven) == [RECAP, "the summary"]
    expected = "[User]: older\n\n[User]: look at this\n[Attached image/png: big.png]"
    assert block(asked(driven), "conversation") == expected


async def test_22_the_end_of_a_turn_may_stay_without_its_beginning() -> None:
    driven = v1(
        user("older"),
        user("recent"),
        assistant("z" * 2000),
        assistant("keep tail"),
        tail_turns=1,
        preserve_recent_tokens=100,
    )
    await compacted(driven)
    assert texts(driven) == [RECAP, "the summary", "keep tail"]


async def test_23_after_an_overflow_the_turn_is_said_again_with_its_pictures_in_words() -> None:
    driven = v1(user("root"), picture("big.png", 4000), assistant("half done"))
    verdict = await driven.offer(Moment.OVERFLOW)
    again = "look at this\n[Attached image/png: big.png]"
    assert texts(driven) == [RECAP, "the summary", again]
    assert block(asked(driven), "conversation") == "[User]: root"
    assert verdict.follow is Follow.RETRY


async def test_24_with_only_one_user_message_the_model_is_told_what_was_removed() -> None:
    driven = v1(picture("big.png", 40_000))
    await driven.offer(Moment.OVERFLOW)
    assert texts(driven)[:2] == [RECAP, "the summary"]
    assert "pictures and other attachments were taken out" in texts(driven)[2]


async def test_25_a_tool_call_in_place_of_a_summary_fails() -> None:
    refused = SummaryFailed(FailureKind.TOOL_CALL, "The model called bash.")
    driven = v1(user("one"), assistant("a"), summaries=(refused,))
    await compacted(driven)
    (failed,) = driven.told(e.CompactionFailed)
    assert failed.kind == "tool_call"
    assert texts(driven) == ["one", "a", RECAP]


async def test_26_a_second_summary_merges_the_first() -> None:
    driven = v1(user("one"), assistant("a"), summaries=("first notes", "second notes"))
    await compacted(driven)
    driven.say("", user("two"), assistant("b" * 100_000))
    await compacted(driven)
    assert asked(driven).count("first notes") == 1
    assert block(asked(driven), "prior-summary") == "first notes"
    assert texts(driven)[:2] == [RECAP, "second notes"]


async def test_27_a_tail_across_an_earlier_compaction_holds_the_turns_that_are_set() -> None:
    driven = v1(user("u1"), user("u2"), user("u3"), tail_turns=2, preserve_recent_tokens=10 * K)
    await compacted(driven)
    driven.say("", user("u4"))
    await compacted(driven)
    seen = texts(driven)
    assert [text for text in seen if text.startswith("u")] == ["u3", "u4"]
    # As it was stored between the two, the earlier compaction is seen again.
    assert seen == [RECAP, "the summary", "u3", RECAP, "the summary", "u4"]


async def test_28_the_previous_summary_does_not_count_against_the_tail() -> None:
    driven = v1(
        user("one"),
        assistant("a" * 4000),
        summaries=("p" * 6400, "new"),
        tail_turns=2,
        preserve_recent_tokens=500,
    )
    await compacted(driven)
    driven.say("", user("middle"), user("two"), user("three"))
    await compacted(driven)
    assert texts(driven) == [RECAP, "new", "two", "three"]
    assert block(asked(driven), "prior-summary") == "p" * 6400


async def cancelled(driven: Driven, begun: asyncio.Event) -> None:
    task = asyncio.create_task(compacted(driven))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def never(begun: asyncio.Event) -> Callable[[], Awaitable[str]]:
    async def answer() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    return answer


async def test_29_and_30_an_interrupt_leaves_no_summary() -> None:
    begun = asyncio.Event()
    driven = v1(user("one"), assistant("a"), summaries=(never(begun),))
    await cancelled(driven, begun)
    (failed,) = driven.told(e.CompactionFailed)
    assert failed.outcome is e.Outcome.ABORTED
    assert texts(driven) == ["one", "a"]


@pytest.mark.parametrize(("size", "expected"), [(4000, 1000), (20_000, 5000), (0, 0), (6, 2)])
def test_31_four_characters_are_a_token(size: int, expected: int) -> None:
    assert tokens(size) == expected


def test_32_the_total_counts_or_what_it_would_be_without_reasoning() -> None:
    usage = chat_usage(
        {
            "prompt_tokens": 1000,
            "completion_tokens": 500,
            "total_tokens": 1500,
            "prompt_tokens_details": {"cached_tokens": 200},
            "completion_tokens_details": {"reasoning_tokens": 100},
        }
    )
    assert usage is not None
    assert count(usage) == 1500
    assert count(msgspec.structs.replace(usage, total_tokens=None)) == 1400
    assert count(msgspec.structs.replace(usage, total_tokens=0)) == 1400


# V2 ----------------------------------------------------------------------------------------------

LONG = "long earlier turn. " * 2000
PROMPT = "new prompt " * 1000


async def test_v2_1_a_request_that_is_too_large_becomes_a_summary_and_the_new_prompt() -> None:
    driven = v2(user(LONG), assistant("done"), user(PROMPT))
    verdict = await driven.offer(Moment.BEFORE_REQUEST)
    (only,) = driven.state.context.items
    assert isinstance(only, CompactionSummary)
    assert block(only.text, "summary") == "the summary"
    assert block(only.text, "recent-context") == f"[Assistant]: done\n\n[User]: {PROMPT}"
    assert verdict.follow is Follow.GO_ON
    assert len(driven.scripted.asks) == 1


async def test_v2_2_the_next_summary_holds_the_last_one_and_its_recent_text() -> None:
    driven = v2(user(LONG), assistant("done"), user(PROMPT), summaries=("first", "second"))
    await driven.offer(Moment.BEFORE_REQUEST)
    driven.say("", assistant("b" * 30_000), user("c" * 30_000))
    await driven.offer(Moment.BEFORE_REQUEST)
    assert block(asked(driven), "prior-summary") == "first"
    told = block(asked(driven), "conversation")
    assert told is not None
    assert told.startswith(f"[Assistant]: done\n\n[User]: {PROMPT}")
    assert asked(driven).count(PROMPT) == 1


async def test_v2_3_and_5_a_refused_request_is_made_again_from_the_checkpoint() -> None:
    driven = v2(user(LONG), assistant("done"), user("and?"), keep=10)
    verdict = await driven.offer(Moment.OVERFLOW)
    assert (verdict.compacted, verdict.follow) == (True, Follow.RETRY)
    assert len(driven.state.context) == 1


async def test_v2_4_and_a_second_refusal_finds_nothing_to_write_out() -> None:
    driven = v2(user(LONG), assistant("done"), user("and?"), keep=10)
    await driven.offer(Moment.OVERFLOW)
    verdict = await driven.offer(Moment.OVERFLOW)
    assert not verdict.compacted
    assert "nothing to write out since the last compaction" in verdict.reason


async def test_v2_6_a_failed_summary_leaves_no_compaction() -> None:
    driven = v2(user(LONG), assistant("done"), user("and?"), summaries=(overflow(),))
    verdict = await driven.offer(Moment.OVERFLOW)
    assert not verdict.compacted
    assert not driven.told(e.HistoryCompacted)
    assert len(driven.state.context) == 3


async def test_v2_7_media_is_written_out_by_its_name() -> None:
    driven = v2(picture("pixel.png", 40), user(LONG), keep=1)
    await driven.offer(Moment.OVERFLOW)
    assert "look at this\n[Attached image/png: pixel.png]\n" in asked(driven)
    assert "base64" not in asked(driven)


async def test_v2_8_by_hand_where_that_is_allowed_everything_is_summarised() -> None:
    items = (user("short " * 200), assistant("yes " * 200))
    driven = v2(*items, manual=True)
    assert (await driven.offer(Moment.MANUAL)).compacted
    assert block(texts(driven)[0], "recent-context") == ""
    driven = v2(*items)
    verdict = await driven.offer(Moment.MANUAL)
    assert not verdict.compacted
    assert "no compaction by hand" in verdict.reason
