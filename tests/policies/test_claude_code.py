from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core.compaction.rig import Rig, Scripted
from tests.policies.demo_run import demo, told
from thresher.core import events as e
from thresher.core.agent.loop import TurnOutcome
from thresher.core.agent.rereading import rereading
from thresher.core.agent.tools.workspace import Workspace
from thresher.core.compaction.policies.claude_code import ClaudeCode, ClaudeCodeParams
from thresher.core.compaction.policies.claude_code_parts.limits import figure, limits
from thresher.core.compaction.policies.claude_code_parts.micro import CLEARED
from thresher.core.compaction.policies.claude_code_parts.reads import read_path
from thresher.core.compaction.policies.claude_code_parts.texts import RESTORED, summary_of
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import FailureKind, Follow, Moment, Reread
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.store import FileStore
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.events import Outcome
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    assistant,
    system,
    user,
)
from thresher.core.models import Budget, Fact
from thresher.core.tokens import Usage
from thresher.core.validate import Dialect, validate

SYSTEM = system("You are an agent.")
TASK = user("Fix the parser. Never touch the tests.")
LONG = "a line of output\n" * 60
REPLY = "<analysis>\nWhat I thought.\n</analysis>\n\n<summary>\n1. Primary Request: x\n</summary>"
NONE = Fact(None, "not said")
SMALL: dict[str, Any] = {"auto_compact_window": 1_000, "summary_reserve": 0, "buffer": 0}


def rounds(count: int, text: str = LONG, first: int = 0) -> list[Item]:
    return [
        item
        for n in range(first, first + count)
        for item in (
            FunctionCall(f"c{n}", "bash", f'{{"command":"step {n}"}}'),
            FunctionCallOutput(f"c{n}", text, "bash"),
        )
    ]


def read(path: str, id: str, ok: bool = True) -> list[Item]:
    return [
        FunctionCall(id, "read_file", f'{{"path":"{path}"}}'),
        FunctionCallOutput(id, LONG, "read_file", is_error=not ok),
    ]


def rig(items: Iterable[Item], folder: Path, *answers: Any, **params: Any) -> Rig:
    engine = params.pop("engine", {})
    return Rig(
        items,
        ClaudeCode(ClaudeCodeParams(**params)),
        summarisers=[Scripted(*(answers or (REPLY,)))],
        store=FileStore(folder / "outputs"),
        reread=rereading(Workspace(folder)),
        **engine,
    )


def asked(of: Rig) -> list[Any]:
    return of.engine._effects.asks.chain.summarisers[0].asks


def legal(of: Rig) -> bool:
    return not validate(of.state.context.items, Dialect.CHAT)


def stages(of: Rig) -> list[str]:
    return [event.stage for event in of.told(e.HistoryCompacted)]


def restored(of: Rig) -> list[str]:
    texts = [i.text for i in of.state.context.items if isinstance(i, Message) and i.synthetic]
    return [text.partition("here: " if "here: " in text else "now: ")[2].splitlines()[0]
            for text in texts]  # fmt: skip


def given(window: int | None, **more: Any) -> Any:
    values = {"override": None, "reserve": 20_000, "buffer": 13_000, "percent": None}
    return limits(window, **{**values, "warning": 20_000, **more})


# -- the arithmetic --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "more", "threshold"),
    [
        (200_000, {}, 167_000),
        (200_000, {"reserve": 32_000}, 155_000),
        (200_000, {"override": 150_000}, 117_000),
        (200_000, {"override": 150_000, "percent": 50.0}, 65_000),
        (200_000, {"percent": 50.0}, 90_000),
        (200_000, {"percent": 99.0}, 167_000),
        (200_000, {"override": 400_000}, 167_000),
        (None, {"override": 150_000}, 117_000),
        (1_000_000, {}, 967_000),
    ],
)
def test_the_threshold_is_the_measured_one(
    window: int | None, more: dict[str, Any], threshold: int
) -> None:
    found = given(window, **more)
    assert found.threshold == threshold
    assert found.warning == threshold - 20_000


def test_without_a_window_or_without_room_there_is_no_threshold() -> None:
    assert given(None) is None
    assert given(30_000) is None


def test_marks_are_warning_threshold_and_reserve() -> None:
    budget = Budget(Fact(200_000, "test"), NONE, NONE, NONE)
    assert [(m.name, m.tokens) for m in ClaudeCode().marks(budget)] == [
        ("warning", 147_000),
        ("threshold", 167_000),
        ("reserve", 180_000),
    ]
    assert ClaudeCode().marks(Budget(NONE, NONE, NONE, NONE)) == ()
    assert ClaudeCode(ClaudeCodeParams(proactive=False)).marks(budget) == ()


def test_the_size_is_the_report_and_what_it_does_not_cover() -> None:
    items = (TASK, assistant("a" * 40), FunctionCall("c", "bash", "x" * 36),
             FunctionCallOutput("c", "y" * 400))  # fmt: skip
    assert figure(items, Usage(1_000, 50), "first").tokens == 1_050 + 10 + 100
    assert figure(items, Usage(1_000, 50), "last").tokens == 1_050 + 100
    assert figure(items, Usage(1_000, 50), "none").tokens == 1_050
    alone = figure(items, None, "first")
    assert alone.reported is None
    assert alone.tokens == 10 + 10 + 10 + 100


@pytest.mark.parametrize(
    "wrong", [{"pct_override": 0}, {"pct_override": 101}, {"buffer": -1}, {"summary_attempts": 0}]
)
def test_constants_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, ClaudeCodeParams)


async def test_exactly_the_threshold_fires_and_one_below_does_not(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *rounds(4)]
    below, at = (rig(items, tmp_path, micro=False, **SMALL) for _ in range(2))
    below.report(999)
    at.report(1_000)
    below.say(assistant("done"))
    at.say(assistant("done"))
    quiet = await below.offer(Moment.BEFORE_REQUEST)
    assert "999 reported = 999 tokens is below the threshold 1,000" in quiet.reason
    assert (await at.offer(Moment.BEFORE_REQUEST)).compacted


async def test_it_can_be_switched_to_refusals_alone(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(4)], tmp_path, proactive=False, **SMALL)
    of.report(10**6)
    assert not (await of.offer(Moment.BEFORE_REQUEST)).compacted
    assert (await of.offer(Moment.OVERFLOW)).follow is Follow.RETRY


# -- full ------------------------------------------------------------------------------------------


async def test_full_leaves_system_summary_last_turn_and_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    last = [assistant("Now the tests."), *rounds(1, "ok", 9)]
    of = rig([SYSTEM, TASK, *read("a.py", "r"), *rounds(2), *last], tmp_path)
    await of.offer(Moment.MANUAL)
    head, summary, *rest = of.state.context.items
    assert head == SYSTEM
    assert isinstance(summary, CompactionSummary)
    transcript = tmp_path / "outputs" / "transcript-1.txt"
    assert "Summary:\n1. Primary Request: x\n\n# From here on\n" in summary.content
    assert "What I thought" not in summary.content
    assert (
        f"read the whole transcript at: {transcript}\nGo on with the last task" in summary.content
    )
    assert "[user] Fix the parser." in transcript.read_text()
    assert rest[:3] == last
    assert rest[3] == Message(
        "user",
        f"<system-reminder>\n{RESTORED}a.py\n1\tone\n2\ttwo\n3\t\n</system-reminder>",
        synthetic=True,
    )
    assert len(rest) == 4
    assert legal(of)
    (event,) = of.told(e.HistoryCompacted)
    assert event.summary == REPLY
    assert "6 items are summarised" not in event.reason
    assert "7 items are summarised, 3 stay, 1 file put in again: a.py" in event.reason


async def test_the_summary_request_is_the_conversation_and_then_the_nine_sections(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, *rounds(3)], tmp_path)
    await of.offer(Moment.MANUAL, focus="keep the line counts")
    (ask,) = asked(of)
    assert ask.items[:-1] == (SYSTEM, TASK, *rounds(2))
    prompt = ask.items[-1].text
    assert [f"\n{n}. " in prompt for n in range(1, 10)] == [True] * 9
    assert "10. " not in prompt
    assert prompt.endswith("Additional instructions from the user:\nkeep the line counts")
    assert ask.max_output == 32_000


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        (REPLY, "Summary:\n1. Primary Request: x"),
        ("<summary>only</summary>", "Summary:\nonly"),
        ("<analysis>a</analysis>plain text", "Summary:\nplain text"),
        ("no tags at all", "Summary:\nno tags at all"),
        (
            "<analysis>has <summary>fake</summary></analysis><summary>real</summary>",
            "Summary:\nreal",
        ),
        ("<summary>never closed", "Summary:\nnever closed"),
        ("<analysis>only thought</analysis>", ""),
        ("<summary> </summary>", ""),
    ],
)
def test_the_summary_is_taken_out_of_the_reply(reply: str, kept: str) -> None:
    assert summary_of(reply, keep_analysis=False) == kept


def test_older_versions_kept_the_analysis() -> None:
    expected = "Analysis:\nWhat I thought.\n\nSummary:\n1. Primary Request: x"
    assert summary_of(REPLY, keep_analysis=True) == expected


async def test_a_reply_without_a_summary_is_a_failure_and_nothing_is_lost(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *rounds(3)]
    of = rig(items, tmp_path, "<analysis>only thought</analysis>")
    await of.offer(Moment.MANUAL)
    (failed,) = of.told(e.CompactionFailed)
    assert failed.outcome is Outcome.EMPTY
    assert of.state.context.items == tuple(items)


async def test_what_the_user_typed_last_stays_behind_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    of = rig(
        [SYSTEM, TASK, *read("a.py", "r"), *rounds(2), assistant("Done."), user("And now?")],
        tmp_path, micro=False, **SMALL,
    )  # fmt: skip
    of.report(5_000)
    await of.offer(Moment.BEFORE_REQUEST)
    after = of.state.context.items
    assert after[-1] == user("And now?")
    assert after[2] == assistant("Done.")
    assert restored(of) == ["a.py"]


async def test_near_the_beginning_there_is_not_enough_to_compact(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, assistant("Hello.")], tmp_path)
    verdict = await of.offer(Moment.MANUAL)
    assert verdict.outcome is Outcome.NO_OP
    assert verdict.reason.endswith("Not enough messages to compact.")


async def test_after_a_refusal_even_a_single_round_is_summarised(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(1, LONG * 9)], tmp_path)
    assert (await of.offer(Moment.OVERFLOW)).follow is Follow.RETRY
    assert [type(i) for i in of.state.context.items] == [Message, CompactionSummary]


async def test_a_late_result_is_never_cut_from_its_call(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *rounds(1), FunctionCall("late", "bash", "{}"), user("meanwhile"),
             assistant("Waiting."), FunctionCallOutput("late", LONG), user("go on")]  # fmt: skip
    of = rig(items, tmp_path, engine={"guard": Guard.REPORT, "dialect": Dialect.RESPONSES})
    await of.offer(Moment.MANUAL)
    assert not validate(of.state.context.items, Dialect.RESPONSES)


async def test_after_a_refusal_as_many_rounds_stay_as_it_was_too_long_by(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(6)], tmp_path)
    # A round is about 260 tokens by the program's own estimate.
    of.to.emit(e.ContextOverflowed(message="too long", used=10_600, limit=10_000))
    await of.offer(Moment.OVERFLOW)
    kept = [i.call_id for i in of.state.context.items if isinstance(i, FunctionCall)]
    assert kept == ["c3", "c4", "c5"]
    assert "600 tokens above its limit" in of.told(e.HistoryCompacted)[0].reason


def refused(used: int | None = None, limit: int | None = None) -> SummaryFailed:
    return SummaryFailed(FailureKind.OVERFLOW, "too long", used=used, limit=limit)


async def test_a_refused_summary_request_is_asked_again_with_a_smaller_part(
    tmp_path: Path,
) -> None:
    of = rig([SYSTEM, TASK, *rounds(9)], tmp_path, refused(10_300, 10_000), refused(), REPLY)
    await of.offer(Moment.MANUAL)
    sizes = [sum(isinstance(i, FunctionCall) for i in ask.items) for ask in asked(of)]
    # The last turn is kept; 300 tokens are two rounds; where nothing is said half of them go.
    assert sizes == [8, 6, 3]
    kept = [i.call_id for i in of.state.context.items if isinstance(i, FunctionCall)]
    assert kept == [f"c{n}" for n in range(3, 9)]
    assert of.told(e.SummaryAttemptFailed)[0].next_step == "the policy asks with less"
    assert legal(of)


async def test_after_three_refusals_it_gives_up_and_nothing_is_lost(tmp_path: Path) -> None:
    items = [SYSTEM, TASK, *rounds(9)]
    of = rig(items, tmp_path, refused())
    verdict = await of.offer(Moment.MANUAL)
    assert verdict.outcome is Outcome.FAILED
    assert len(asked(of)) == 3
    assert of.state.context.items == tuple(items)


# -- restored files --------------------------------------------------------------------------------


async def test_five_files_come_back_newest_first_and_failed_reads_do_not(tmp_path: Path) -> None:
    for name in "abcdefg":
        (tmp_path / f"{name}.py").write_text(name)
    reads = [item for name in "abcdefga" for item in read(f"{name}.py", f"r{name}{len(name)}")]
    items = [SYSTEM, TASK, *reads[:-2], *read("gone.py", "x", ok=False), *rounds(2)]
    of = rig(items, tmp_path)
    await of.offer(Moment.MANUAL)
    assert restored(of) == ["g.py", "f.py", "e.py", "d.py", "c.py"]
    assert of.told(e.HistoryCompacted)[0].memory["claude_code_files"] == restored(of)


async def test_large_files_are_only_named_and_all_together_have_a_limit(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("word and word\n" * 4_000)
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("word and word\n" * 30)
    items = [
        SYSTEM,
        TASK,
        *read("a.py", "1"),
        *read("b.py", "2"),
        *read("large.py", "3"),
        *rounds(2),
    ]
    of = rig(items, tmp_path, restore_total_tokens=150)
    await of.offer(Moment.MANUAL)
    texts = [i.text for i in of.state.context.items if isinstance(i, Message) and i.synthetic]
    assert ["too large" in text for text in texts] == [True, False, True]
    assert restored(of) == ["large.py", "b.py", "a.py"]


async def test_what_the_kept_turn_reads_anyway_does_not_come_back(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one")
    of = rig([SYSTEM, TASK, *rounds(2), *read("./a.py", "r")], tmp_path)
    await of.offer(Moment.MANUAL)
    assert restored(of) == []


async def test_a_second_compaction_brings_back_new_files_and_the_old_ones(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name)
    of = rig([SYSTEM, TASK, *read("a.py", "1"), *rounds(4)], tmp_path)
    await of.offer(Moment.MANUAL)
    of.say(*read("b.py", "2"), *rounds(4, LONG, 20))
    await of.offer(Moment.MANUAL)
    assert restored(of) == ["b.py", "a.py"]


async def test_a_file_outside_the_workspace_or_a_binary_one_does_not_come_back(
    tmp_path: Path,
) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    (tmp_path / "secret").write_text("s")
    (inside / "b.bin").write_bytes(b"\x00\x01" * 50)
    (inside / "ok.py").write_bytes("größer".encode() * 10)
    (inside / "link").symlink_to(tmp_path / "secret")
    handler = rereading(Workspace(inside))
    paths = ("../secret", str(tmp_path / "secret"), "link", "b.bin", "missing", ".", "", "ok.py")
    found = await handler(Reread(paths, 9))
    assert found.contents == (("ok.py", "größergrö"),)


@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("read_file", '{"path":"src/../a.py"}', "a.py"),
        ("Read", '{"file_path":"/w/a.py"}', "/w/a.py"),
        ("bash", '{"command":"cat log1.txt"}', "log1.txt"),
        ("bash", '{"command":"cat \\"my log\\""}', "my log"),
        ("bash", '{"command":"cat log1.txt | tac"}', ""),
        ("bash", '{"command":"cat -n log1.txt"}', ""),
        ("bash", '{"command":"cat a b"}', ""),
        ("bash", '{"command":"cat \'"}', ""),
        ("bash", '{"command":"tac log1.txt"}', ""),
        ("read_file", '{"path":5}', ""),
        ("read_file", "[not json", ""),
        ("write_file", '{"path":"a.py"}', ""),
    ],
)
def test_what_counts_as_reading_a_file(name: str, arguments: str, path: str) -> None:
    assert read_path(FunctionCall("c", name, arguments), cat=True) == path


# -- micro, persisted outputs, thrash breaker ------------------------------------------------------


def near(tmp_path: Path, **params: Any) -> Rig:
    """Above the warning level, below the threshold; a result is about 255 tokens."""
    given = {"auto_compact_window": 5_000, "summary_reserve": 0, "buffer": 0,
             "warning_margin": 1_000, "micro_keep": 600, "micro_min_saving": 500}  # fmt: skip
    of = rig([SYSTEM, TASK, *rounds(6), assistant("Next.")], tmp_path, **{**given, **params})
    of.report(4_000)
    return of


async def test_micro_clears_old_results_and_keeps_the_newest_that_fit(tmp_path: Path) -> None:
    of = near(tmp_path)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["microcompact"]
    texts = [i.output for i in of.state.context.items if isinstance(i, FunctionCallOutput)]
    assert texts == [CLEARED] * 4 + [LONG] * 2
    assert legal(of)
    reason = of.told(e.HistoryCompacted)[0].reason
    assert "4,000 reported tokens reached the warning level 4,000" in reason


async def test_micro_does_nothing_below_the_level_or_for_too_little(tmp_path: Path) -> None:
    below = near(tmp_path, warning_margin=999)
    too_little = near(tmp_path, micro_min_saving=1_100)
    for of in (below, too_little, near(tmp_path, micro=False)):
        await of.offer(Moment.BEFORE_REQUEST)
        assert not stages(of)


async def test_micro_to_files_leaves_paths_and_is_not_repeated(tmp_path: Path) -> None:
    of = near(tmp_path, micro_to_file=True)
    await of.offer(Moment.BEFORE_REQUEST)
    first = next(i for i in of.state.context.items if isinstance(i, FunctionCallOutput))
    path = tmp_path / "outputs" / "c0.txt"
    assert first.output.startswith(f"<persisted-output>\nTool result saved to: {path}\n")
    assert first.saved == str(path)
    assert path.read_text() == LONG
    of.report(4_000)
    await of.offer(Moment.BEFORE_REQUEST)
    assert stages(of) == ["microcompact"]


async def test_micro_never_clears_what_the_model_has_not_seen(tmp_path: Path) -> None:
    of = near(tmp_path, micro_keep=0, auto_compact_window=10_000, warning_margin=9_000)
    of.say(*rounds(1, LONG, 50))
    await of.offer(Moment.BEFORE_REQUEST)
    texts = [i.output for i in of.state.context.items if isinstance(i, FunctionCallOutput)]
    assert texts == [CLEARED] * 6 + [LONG]


async def test_what_micro_cleared_counts_when_full_is_checked(tmp_path: Path) -> None:
    enough = near(tmp_path, auto_compact_window=3_900)
    await enough.offer(Moment.BEFORE_REQUEST)
    assert stages(enough) == ["microcompact"]
    not_enough = near(tmp_path, auto_compact_window=2_900)
    await not_enough.offer(Moment.BEFORE_REQUEST)
    assert stages(not_enough) == ["microcompact", "compact"]
    assert "just cleared reached the threshold" in not_enough.told(e.HistoryCompacted)[1].reason


async def test_a_large_output_goes_to_a_file_with_a_preview(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, FunctionCall("c", "bash", "{}")], tmp_path)
    text = "line of it\n" * 3_000
    verdict = await of.offer(Moment.TOOL_OUTPUT, fresh_output=FunctionCallOutput("c", text))
    assert verdict.output is not None
    path = tmp_path / "outputs" / "c.txt"
    assert verdict.output.output.startswith(
        f"<persisted-output>\nToo large to stay here (32.2KB). Full output saved to: {path}\n\n"
        "Preview (first 2KB):\nline of it\n"
    )
    assert verdict.output.output.endswith("\nline of it\n...\n</persisted-output>")
    assert path.read_text() == text
    small = FunctionCallOutput("d", "x" * 30_000)
    assert (await of.offer(Moment.TOOL_OUTPUT, fresh_output=small)).output is None


async def thrash(of: Rig, times: int) -> list[Any]:
    verdicts = []
    for n in range(times):
        of.report(5_000)
        of.say(*rounds(1, LONG, 100 + n))
        verdicts.append(await of.offer(Moment.BEFORE_REQUEST))
    return verdicts


async def test_full_again_three_times_in_a_row_ends_the_turn(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(9)], tmp_path, micro=False, **SMALL,
             engine={"min_progress": 0.0})  # fmt: skip
    *before, last = await thrash(of, 4)
    assert [v.compacted for v in before] == [True] * 3
    assert (last.compacted, last.follow) == (False, Follow.WAIT)
    (failed,) = of.told(e.CompactionFailed)
    assert "within 3 rounds of the previous compaction, 3 times in a row" in failed.reason


async def test_a_new_turn_and_a_round_in_between_reset_the_thrash_count(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(9)], tmp_path, micro=False, **SMALL,
             engine={"min_progress": 0.0})  # fmt: skip
    await thrash(of, 3)
    of.to.emit(e.TurnStarted(turn=2))
    assert (await thrash(of, 1))[0].compacted
    of.say(*rounds(2, "ok", 300))
    assert (await thrash(of, 1))[0].compacted
    assert of.told(e.HistoryCompacted)[-1].memory["claude_code_refills"][1] == 0


async def test_the_endless_loop_of_the_old_version_shows_in_report_mode(tmp_path: Path) -> None:
    of = rig([SYSTEM, TASK, *rounds(9)], tmp_path, micro=False, thrash_refills=0, **SMALL,
             engine={"guard": Guard.REPORT, "min_progress": 0.9})  # fmt: skip
    assert all(v.compacted for v in await thrash(of, 6))
    marked = [event for event in of.told(e.HistoryCompacted) if event.marks]
    assert len(marked) >= 2
    assert "repeated although" in marked[0].marks[0]


async def test_a_thrashing_agent_ends_its_turn_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", str(tmp_path))
    tight = {"auto_compact_window": 3_000, "summary_reserve": 1_000, "buffer": 500, "micro": False}
    session, outcomes = await demo("claude-code", **tight, thrash_refills=1)
    assert TurnOutcome.FAILED in outcomes
    messages = [event.message for event in told(session, e.TurnFinished)]
    assert any("compacting again would not help" in message for message in messages)


# -- the registry and the demo ---------------------------------------------------------------------


def test_it_is_in_the_registry_with_its_rule_in_words() -> None:
    policy = make("claude-code", {"pct_override": "50", "micro": "false"})
    assert policy.params == ClaudeCodeParams(pct_override=50.0, micro=False)
    rule = inspect.getdoc(inspect.getmodule(type(policy)))
    assert rule is not None
    assert "thrash breaker" in rule


async def test_the_demo_shows_its_stages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", str(tmp_path))
    session, outcomes = await demo("claude-code")
    assert set(outcomes) == {TurnOutcome.COMPLETED}
    done = told(session, e.HistoryCompacted)
    assert {event.stage for event in done} == {"microcompact", "compact"}
    assert {str(event.trigger) for event in done} == {"auto", "manual"}
    assert any("put in again: " in event.reason for event in done)
    assert any("claude-code, persisted output" in note.text for note in told(session, e.Note))
    assert not session.state.problems


async def test_the_demo_recovers_from_a_refused_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", str(tmp_path))
    session, _ = await demo("claude-code", proactive=False)
    done = told(session, e.HistoryCompacted)
    assert "overflow" in {str(event.trigger) for event in done}
