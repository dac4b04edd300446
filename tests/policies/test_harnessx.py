from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core.compaction.rig import Rig, Scripted
from tests.policies.demo_run import demo, told
from thresher.core import events as e
from thresher.core.agent.loop import TurnOutcome
from thresher.core.compaction.policies.harnessx import HarnessX, HarnessXParams
from thresher.core.compaction.policies.harnessx_layers.chat import chat_messages
from thresher.core.compaction.policies.harnessx_layers.history import cut, size
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import FailureKind, Moment
from thresher.core.compaction.store import FileStore
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.events import Outcome
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    Role,
    assistant,
    system,
    user,
)
from thresher.core.validate import Dialect, validate

SYSTEM = system("You are an agent.")
TASK = user("Fix the parser. Never touch the tests.")
LONG = "a line of output\n" * 20


def rounds(count: int, text: str = LONG, first: int = 0) -> list[Item]:
    """Rounds of one call each: two messages of Chat Completions a round."""
    return [
        item
        for n in range(first, first + count)
        for item in (
            FunctionCall(f"c{n}", "bash", f'{{"command": "step {n}"}}'),
            FunctionCallOutput(f"c{n}", text, "bash"),
        )
    ]


def batch(outputs: Iterable[str], id: str = "p") -> list[Item]:
    """Parallel calls and their results."""
    texts = list(outputs)
    calls = [FunctionCall(f"{id}{n}", "bash", "{}") for n in range(len(texts))]
    return [*calls, *(FunctionCallOutput(f"{id}{n}", text) for n, text in enumerate(texts))]


def rig(items: Iterable[Item], folder: Path, **params: Any) -> Rig:
    answers = params.pop("answers", ("the summary",))
    settings = params.pop("settings", {})
    return Rig(
        items,
        HarnessX(HarnessXParams(**params)),
        summarisers=[Scripted(*answers)],
        store=FileStore(folder),
        **settings,
    )


def stages(of: Rig) -> list[str]:
    return [event.stage for event in of.told(e.HistoryCompacted)]


def legal(of: Rig) -> bool:
    return not validate(of.state.context.items, Dialect.CHAT)


def outputs(of: Rig) -> list[FunctionCallOutput]:
    return [i for i in of.state.context.items if isinstance(i, FunctionCallOutput)]


def markers(of: Rig) -> list[str]:
    return [i.text for i in of.state.context.items if isinstance(i, Message) and i.synthetic]


# -- constants and order ---------------------------------------------------------------------------


def test_the_constants_are_those_of_the_specification() -> None:
    p = HarnessXParams()
    assert (p.large_result, p.batch_budget, p.preview) == (30_000, 200_000, 2_000)
    assert (p.snip_above, p.snip_head, p.snip_tail) == (50, 3, 46)
    assert (p.keep_results, p.micro_above, p.threshold) == (3, 120, 50_000)
    assert (p.summary_head, p.summary_tail, p.summary_max_output) == (20_000, 60_000, 2_000)
    assert (p.reactive_tail, p.reactive_retries) == (5, 1)


@pytest.mark.parametrize("wrong", [{"threshold": 0}, {"preview": -1}, {"snip_head": -3}])
def test_constants_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, HarnessXParams)


async def test_the_four_layers_run_in_their_order_in_one_pass_each_with_its_own_event(
    tmp_path: Path,
) -> None:
    items = [SYSTEM, TASK, *rounds(30), *batch(["x" * 90_000, "y" * 80_000, "z" * 70_000])]
    of = rig(items, tmp_path, threshold=1_000)
    verdict = await of.offer(Moment.BEFORE_REQUEST)
    assert verdict.compacted
    assert stages(of) == ["tool result budget", "snip", "micro", "history"]
    done = of.told(e.HistoryCompacted)
    assert len({event.pass_id for event in done}) == 1
    assert all(event.before > event.after for event in [_Sizes(event) for event in done])
    assert legal(of)


class _Sizes:
    def __init__(self, event: e.HistoryCompacted) -> None:
        assert event.before is not None
        assert event.after is not None
        self.before, self.after = event.before.value, event.after.value


async def test_a_small_history_is_left_alone_and_the_reason_has_the_numbers(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(2)], tmp_path)
    verdict = await of.offer(Moment.BEFORE_REQUEST)
    assert not of.story
    assert "the history threshold is 50,000" in verdict.reason


async def test_each_event_names_ids_and_sizes(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *rounds(30), *batch(["x" * 90_000] * 3)]
    of = rig(items, tmp_path, threshold=10**7)
    await of.offer(Moment.BEFORE_REQUEST)
    budget, snipped, micro = of.told(e.HistoryCompacted)
    assert "3 results of 270,000 characters are above 200,000: #66 90,000 -> " in budget.reason
    assert "are above 50: " in snipped.reason
    assert "(#5 to #" in snipped.reason
    assert "results: " in micro.reason
    assert "characters become a line each (#" in micro.reason


# -- 3.1 tool result budget ------------------------------------------------------------------------


async def test_budget_persists_the_largest_first_until_the_batch_fits(tmp_path: Path) -> None:
    texts = ["a" * 60_000, "b" * 100_000, "c" * 50_000]
    of = rig([SYSTEM, TASK, *batch(texts)], tmp_path, threshold=10**7)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["tool result budget"]
    first, second, third = outputs(of)
    assert (first.output, third.output) == (texts[0], texts[2])
    path = tmp_path / "p1.txt"
    assert second.output == (
        f"<persisted-output>\nFull output saved to: {path}\nOriginal length: 100000 chars\n"
        f"Preview:\n{'b' * 2_000}\n</persisted-output>"
    )
    assert second.saved == str(path)
    assert path.read_text() == texts[1]


async def test_budget_never_persists_results_of_up_to_the_large_size(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *batch(["a" * 30_000] * 7)], tmp_path, threshold=10**7)
    await of.offer(Moment.BEFORE_REQUEST)
    assert [event.reason for event in of.told(e.CompactionSkipped)] == [
        "7 results of 210,000 characters are above 200,000, but none is larger than 30,000."
    ]
    assert not any(tmp_path.iterdir())


async def test_budget_counts_only_the_newest_batch_and_exactly_the_budget_is_within(
    tmp_path: Path,
) -> None:
    large = batch(["a" * 100_000] * 2)
    of = rig([SYSTEM, TASK, *large], tmp_path, threshold=10**7)
    await of.offer(Moment.BEFORE_REQUEST)
    later = rig(
        [SYSTEM, TASK, *batch(["a" * 150_000] * 2), user("go on")], tmp_path, threshold=10**7
    )
    await later.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == stages(later) == []


async def test_an_output_that_only_looks_persisted_is_persisted_all_the_same(
    tmp_path: Path,
) -> None:
    fake = "<persisted-output>\n" + "x" * 250_000 + "\n</persisted-output>"
    of = rig([SYSTEM, TASK, *batch([fake])], tmp_path, threshold=10**7)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["tool result budget"]
    assert len(outputs(of)[0].output) < 3_000


async def test_without_a_folder_the_result_stays_and_the_failure_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    of = rig([SYSTEM, TASK, *batch(["a" * 250_000])], tmp_path / "file", threshold=10**7)
    await of.offer(Moment.BEFORE_REQUEST)
    (failed,) = of.told(e.CompactionFailed)
    assert (failed.stage, failed.kind) == ("tool result budget", FailureKind.STORAGE)
    assert outputs(of)[0].output == "a" * 250_000


# -- 3.2 snip --------------------------------------------------------------------------------------


async def test_snip_keeps_head_and_tail_with_a_marker_between(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, assistant("Looking."), *[user(f"note {n}") for n in range(60)]]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    after = of.state.context.items
    assert len(after) == 50
    assert after[:3] == tuple(items[:3])
    assert after[3] == Message(
        Role.USER, "[snipped 14 messages from conversation middle]", synthetic=True
    )
    assert after[4:] == tuple(items[-46:])


async def test_fifty_messages_are_not_above_fifty_and_parallel_calls_are_one(
    tmp_path: Path,
) -> None:
    items = [SYSTEM, TASK, *[user(f"note {n}") for n in range(45)], *batch(["a", "b"])]
    assert len(chat_messages(items)) == 50
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert not stages(of)


def test_reasoning_text_and_calls_of_one_go_are_one_message() -> None:
    items = [user("x"), Reasoning("hm"), assistant("So."), *batch(["a", "b"]), assistant("Done.")]
    assert [list(m.places) for m in chat_messages(items)] == [[0], [1, 2, 3, 4], [5], [6], [7]]


async def test_a_the_head_is_extended_over_the_results_of_its_calls(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *batch(["one", "two", "three"]), *[user(f"{n}") for n in range(60)]]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert of.state.context.items[:8] == tuple(items[:8])
    assert markers(of) == ["[snipped 14 messages from conversation middle]"]
    assert legal(of)


async def test_b_fault_of_the_ancestor_a_parallel_batch_is_not_cut_in_two(tmp_path: Path) -> None:
    # The tail of 46 messages would begin with the third result of the batch.
    items = [
        SYSTEM,
        TASK,
        *[user(f"an earlier remark, number {n}") for n in range(10)],
        *batch(["one", "two", "three", "four"]),
        *[user(f"later {n}") for n in range(44)],
    ]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert markers(of) == ["[snipped 9 messages from conversation middle]"]
    assert legal(of)
    assert len(outputs(of)) == 4


async def test_c_where_head_and_tail_meet_nothing_happens(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *batch([f"{n}" for n in range(60)])]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert not stages(of)


async def test_d_the_system_message_stays_wherever_it_is(tmp_path: Path) -> None:
    items = [user("hello")] * 10 + [SYSTEM] + [user(f"{n}") for n in range(60)]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert SYSTEM in of.state.context.items
    bare = rig([SYSTEM, *[user(f"{n}") for n in range(60)]], tmp_path, snip_head=0)
    await bare.offer(Moment.BEFORE_REQUEST)
    assert bare.state.context.items[0] == SYSTEM


async def test_e_a_snip_that_would_tear_a_pair_is_undone(tmp_path: Path) -> None:
    # The result comes late: its call is in the middle, it is in the tail.
    late = [FunctionCall("late", "bash", "{}"), user("meanwhile")]
    items = [
        SYSTEM,
        TASK,
        user("first"),
        *late,
        *[user(f"{n}") for n in range(50)],
        FunctionCallOutput("late", "at last"),
        user("thanks"),
    ]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert not stages(of)
    assert of.state.context.items == tuple(items)


async def test_fault_of_the_ancestor_snip_does_not_fire_again_on_its_own_marker(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, *[user(f"{n}") for n in range(70)]], tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["snip"]


async def test_fault_of_the_ancestor_a_later_snip_keeps_the_true_count(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *[user(f"{n}") for n in range(70)]], tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    of.say(user("a"), user("b"), user("c"))
    await of.offer(Moment.BEFORE_REQUEST)
    assert markers(of) == ["[snipped 26 messages from conversation middle]"]
    reason = of.told(e.HistoryCompacted)[-1].reason
    assert "3 from the middle go, 26 with earlier ones" in reason


async def test_a_snip_that_loses_the_users_newest_message_says_so(tmp_path: Path) -> None:
    of = rig([SYSTEM, user("old"), assistant("ok"), TASK, *rounds(30, "short")], tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    (event,) = of.told(e.HistoryCompacted)
    assert "and with them the user's newest message #4." in event.reason


# -- 3.3 micro -------------------------------------------------------------------------------------


async def test_micro_replaces_all_but_the_newest_three_longer_results(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *rounds(3), *rounds(1, "x" * 120, 3), *rounds(3, LONG, 4)]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["micro"]
    found = outputs(of)
    line = (
        "[Earlier tool result compacted. tool_call_id={}. Re-run the tool if the full output is "
        "needed.]"
    )
    assert [o.output for o in found[:3]] == [line.format(f"c{n}") for n in range(3)]
    assert found[3].output == "x" * 120
    assert [o.output for o in found[4:]] == [LONG] * 3
    assert legal(of)


async def test_micro_is_idempotent(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(8)], tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["micro"]


async def test_fault_of_the_ancestor_a_placeholder_with_a_long_id_is_not_compacted_again(
    tmp_path: Path,
) -> None:
    id = "call_" + "0123456789" * 12
    items = [SYSTEM, TASK, FunctionCall(id, "bash", "{}"), FunctionCallOutput(id, LONG), *rounds(3)]
    of = rig(items, tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert len(outputs(of)[0].output) > 120
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["micro"]


async def test_fault_of_the_ancestor_results_the_model_has_not_seen_are_spared(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, *batch([LONG] * 6)], tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert not stages(of)
    of.say(assistant("I see."))
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["micro"]
    assert [o.output == LONG for o in outputs(of)] == [False] * 3 + [True] * 3


async def test_fault_of_the_ancestor_the_path_of_a_persisted_result_survives_micro(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, FunctionCall("big", "bash", "{}")], tmp_path)
    verdict = await of.offer(
        Moment.TOOL_OUTPUT, fresh_output=FunctionCallOutput("big", "y" * 42_255)
    )
    assert verdict.output is not None
    of.say(verdict.output, *rounds(4))
    await of.offer(Moment.BEFORE_REQUEST)
    old = outputs(of)[0]
    assert f"tool_call_id=big. Full output: {tmp_path / 'big.txt'}. Re-run" in old.output
    assert old.saved == str(tmp_path / "big.txt")
    assert len(old.output) < 2_000


# -- 3.4 fresh output ------------------------------------------------------------------------------


async def test_a_large_fresh_output_goes_to_a_file_at_once(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, FunctionCall("c", "bash", "{}")], tmp_path)
    verdict = await of.offer(Moment.TOOL_OUTPUT, fresh_output=FunctionCallOutput("c", "y" * 42_255))
    assert verdict.output is not None
    assert verdict.output.output.startswith(
        f"<persisted-output>\nFull output saved to: {tmp_path / 'c.txt'}\n"
        "Original length: 42255 chars\nPreview:\nyyy"
    )
    assert (tmp_path / "c.txt").read_text() == "y" * 42_255
    (note,) = of.told(e.Note)
    assert "42,255 characters, above 30,000" in note.text


async def test_exactly_the_large_size_stays_and_so_does_a_persisted_text(tmp_path: Path) -> None:
    of = rig(
        [SYSTEM, TASK, FunctionCall("c", "bash", "{}")], tmp_path, large_result=500, preview=400
    )
    for text in ("y" * 500, "<persisted-output>\n" + "y" * 600 + "\n</persisted-output>"):
        verdict = await of.offer(Moment.TOOL_OUTPUT, fresh_output=FunctionCallOutput("c", text))
        assert verdict.output is None
    assert not any(tmp_path.iterdir())


async def test_fault_of_the_ancestor_a_call_id_cannot_lead_out_of_the_folder(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "results"
    id = "../../etc/passwd\n" + "x" * 300
    of = rig([SYSTEM, TASK, FunctionCall(id, "bash", "{}")], folder)
    verdict = await of.offer(Moment.TOOL_OUTPUT, fresh_output=FunctionCallOutput(id, "y" * 40_000))
    assert verdict.output is not None
    (file,) = folder.iterdir()
    assert Path(verdict.output.saved) == file
    assert file.suffix == ".txt"


# -- 3.5 to 3.7 summaries --------------------------------------------------------------------------


async def test_history_becomes_the_system_message_and_the_summary(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(6, "z" * 9_000)], tmp_path, keep_results=6)
    await of.offer(Moment.BEFORE_REQUEST)
    head, summary = of.state.context.items
    assert head == SYSTEM
    assert isinstance(summary, CompactionSummary)
    path = tmp_path / "transcript-1.jsonl"
    assert summary.text == (
        f"[Conversation compacted by HarnessX. reason=auto]\nTranscript archive: {path}\n\n"
        "Continuity summary:\nthe summary"
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 14
    assert lines[1]["content"] == TASK.content
    asked = of.engine._effects.asks.chain.summarisers[0].asks[0]
    assert asked.max_output == 2_000
    assert "the next step" in asked.items[0].text


async def test_the_threshold_is_exceeded_only_above_it(tmp_path: Path) -> None:
    exact = size((SYSTEM, TASK))
    at = rig([SYSTEM, TASK], tmp_path, threshold=exact)
    await at.offer(Moment.BEFORE_REQUEST)
    assert not at.story
    above = rig([SYSTEM, TASK], tmp_path, threshold=exact - 1)
    await above.offer(Moment.BEFORE_REQUEST)
    assert above.story


def test_a_long_history_is_cut_in_the_middle_with_a_note() -> None:
    assert cut("x" * 80, 20, 60) == "x" * 80
    text = cut("a" * 30 + "b" * 100, 20, 60)
    assert text.startswith("a" * 20 + "\n\n[... 50 characters")
    assert text.endswith("b" * 60)
    assert cut("abc", 2, 0).startswith("ab\n\n[... 1 char")


async def test_fault_of_the_ancestor_compact_comes_after_the_batch_and_its_focus_counts(
    tmp_path: Path,
) -> None:
    calls = [
        FunctionCall("a", "compact", '{"focus": "the parser"}'),
        FunctionCall("b", "bash", "{}"),
        FunctionCallOutput("a", "The conversation will be compacted after this round."),
        FunctionCallOutput("b", LONG),
    ]
    of = rig([SYSTEM, TASK, *rounds(4), *calls], tmp_path)
    verdict = await of.offer(Moment.MANUAL, focus="the parser")
    assert verdict.compacted
    assert legal(of)
    asked = of.engine._effects.asks.chain.summarisers[0].asks[0]
    assert asked.items[0].text.endswith("the parser")
    assert "reason=manual" in of.state.context.items[-1].text
    assert LONG.splitlines()[0] in asked.items[1].text
    of.say(*rounds(1, "after", 90))
    assert legal(of)


async def test_fault_of_the_ancestor_transcripts_never_overwrite_each_other(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for _ in range(2):
        of = Rig([SYSTEM, TASK, *rounds(4)], HarnessX(), summarisers=[Scripted("s")], store=store)
        await of.offer(Moment.MANUAL)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["transcript-1-2.jsonl", "transcript-1.jsonl"]


async def test_an_empty_summary_leaves_the_history_as_it_is(tmp_path: Path) -> None:
    empty = SummaryFailed(FailureKind.EMPTY, "The model answered with an empty summary.")
    of = rig([SYSTEM, TASK, *rounds(4)], tmp_path, answers=(empty,), settings={"retries": 0})
    await of.offer(Moment.MANUAL)
    (failed,) = of.told(e.CompactionFailed)
    assert failed.outcome is Outcome.EMPTY
    assert len(of.state.context) == 10


async def test_three_failures_in_a_row_stop_the_automatic_summary(tmp_path: Path) -> None:
    down = SummaryFailed(FailureKind.PROVIDER, "down")
    of = rig([SYSTEM, TASK, *rounds(3)], tmp_path, threshold=1, answers=(down,),
             settings={"retries": 0})  # fmt: skip
    for _ in range(4):
        of.engine.new_turn()
        await of.offer(Moment.BEFORE_REQUEST)
    assert len(of.told(e.CompactionFailed)) == 3
    assert len(of.told(e.BreakerOpened)) == 1


async def test_with_repeat_request_the_newest_message_stays_behind_the_summary(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, *rounds(4)], tmp_path, repeat_request=True)
    await of.offer(Moment.MANUAL)
    assert [type(i) for i in of.state.context.items] == [Message, CompactionSummary, Message]
    assert of.state.context.items[-1] == TASK


async def test_reactive_keeps_the_last_five_messages_and_sends_again(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(6)], tmp_path)
    verdict = await of.offer(Moment.OVERFLOW)
    assert (verdict.compacted, verdict.follow) == (True, "retry")
    after = of.state.context.items
    assert after[0] == SYSTEM
    assert "reason=reactive" in after[1].text
    # Five messages would begin with a result, so the call before it stays as well.
    assert after[2:] == tuple(rounds(3, LONG, 3))
    assert legal(of)


async def test_fault_of_the_ancestor_the_reactive_summary_does_not_repeat_its_tail(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, *rounds(6)], tmp_path)
    await of.offer(Moment.OVERFLOW)
    asked = of.engine._effects.asks.chain.summarisers[0].asks[0].items[1].text
    assert "step 2" in asked
    assert "step 3" not in asked


async def test_a_second_refusal_of_the_same_request_is_given_up_and_a_later_one_is_not(
    tmp_path: Path,
) -> None:
    def sent(of: Rig, number: int) -> None:
        of.to.emit(e.RequestSent(request=number, purpose=e.Purpose.TURN, model="m", turn=1,
                                 round=1))  # fmt: skip

    of = rig([SYSTEM, TASK, *rounds(9)], tmp_path)
    sent(of, 1)
    assert (await of.offer(Moment.OVERFLOW)).compacted
    sent(of, 2)
    again = await of.offer(Moment.OVERFLOW)
    assert not again.compacted
    assert "again, after 1 reactive compaction(s): given up" in again.reason
    sent(of, 3)
    of.say(*rounds(6, LONG, 40))
    sent(of, 4)
    of.engine.new_turn()
    assert (await of.offer(Moment.OVERFLOW)).compacted


async def test_where_five_messages_are_all_there_is_they_are_summarised_too(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *batch([LONG * 20])], tmp_path)
    assert (await of.offer(Moment.OVERFLOW)).compacted
    assert [type(i) for i in of.state.context.items] == [Message, CompactionSummary]


async def test_with_nothing_but_a_system_message_there_is_nothing_to_do(tmp_path: Path) -> None:
    of = rig([SYSTEM], tmp_path)
    verdict = await of.offer(Moment.MANUAL)
    assert verdict.outcome is Outcome.NO_OP


def test_the_mark_is_the_threshold_in_tokens_roughly() -> None:
    of = Rig([SYSTEM], HarnessX())
    (mark,) = HarnessX().marks(of.state.budget)
    assert (mark.name, mark.tokens) == ("threshold", 12_500)
    assert "50,000 characters" in mark.source


def test_it_is_in_the_registry_with_its_rule_in_words() -> None:
    policy = make("harnessx", {"threshold": "1234"})
    assert policy.params == HarnessXParams(threshold=1234)
    rule = inspect.getdoc(inspect.getmodule(type(policy)))
    assert rule is not None
    assert "tool result budget" in rule


# -- the demo --------------------------------------------------------------------------------------


async def test_the_demo_shows_its_stages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", str(tmp_path))
    session, outcomes = await demo("harnessx")
    assert set(outcomes) == {TurnOutcome.COMPLETED}
    done = told(session, e.HistoryCompacted)
    assert {event.stage for event in done} == {"snip", "micro", "history"}
    triggers = {str(event.trigger) for event in done if event.stage == "history"}
    assert triggers == {"auto", "manual"}
    assert any("harnessx, fresh output" in note.text for note in told(session, e.Note))
    assert not session.state.problems


async def test_the_demo_recovers_from_a_refused_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", str(tmp_path))
    never = {"threshold": 10**6, "keep_results": 99, "snip_above": 999}
    session, outcomes = await demo("harnessx", **never)
    assert TurnOutcome.FAILED not in outcomes
    assert "reactive" in {event.stage for event in told(session, e.HistoryCompacted)}
