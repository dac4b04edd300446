from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.policies.claude_chain import (
    Shape,
    boundaries,
    chain,
    context_before,
    context_of,
    records,
    requests,
    shape_of_items,
    shape_of_request,
    usage_before,
    usage_of,
)
from thresher.core.compaction.policies.claude_code import ClaudeCode, ClaudeCodeParams
from thresher.core.compaction.policies.claude_code_parts.limits import figure
from thresher.core.compaction.policies.claude_code_parts.micro import CLEARED
from thresher.core.compaction.policies.claude_code_parts.texts import persisted
from thresher.core.compaction.policy import (
    Edit,
    Failure,
    FailureKind,
    Files,
    Follow,
    Moment,
    Persist,
    RequestShape,
    Reread,
    Situation,
    Skip,
    SkipKind,
    Stored,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import FunctionCall, FunctionCallOutput, assistant, user
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact
from thresher.core.tokens import CharClassCounter

NONE = Fact(None, "not said")
WINDOW = Budget(Fact(200_000, "the recording"), NONE, NONE, NONE)
NOW = {"auto_compact_window": 150_000}
HALF = {**NOW, "pct_override": 50.0}
OLD: dict[str, Any] = {
    "summary_reserve": 32_000,
    "count_after": "none",
    "micro": False,
    "keep_last_turn": False,
    "keep_analysis": True,
    "files_first": True,
    "cat_is_reading": False,
    "thrash_refills": 0,
    "continue_after_manual": False,
}
FILE = "line of a log status=ok value=1\n" * 150
LARGE = "line of a log status=ok value=1\n" * 560


class Recorded(NamedTuple):
    name: str
    params: dict[str, Any]
    resumed: frozenset[int] = frozenset()
    """The compactions before which a new process had begun."""


RECORDED = [
    Recorded("v2_1_197_auto_twice", NOW),
    Recorded("v2_1_197_auto_thrash", HALF, frozenset({3})),
    Recorded("v2_1_197_manual_hooks", NOW, frozenset({1})),
    Recorded("v2_1_197_reactive", NOW),
    Recorded("v2_0_76_auto_manual", OLD, frozenset({2})),
    Recorded("v1_0_128_auto_manual", OLD, frozenset({9, 10, 11, 12})),
]
ALL = [(each, n) for each in RECORDED for n in range(len(boundaries(each.name)))]
IDS = [f"{each.name}-{n + 1}" for each, n in ALL]


def situation(context: Context, **more: Any) -> Situation:
    given = {
        "moment": Moment.BEFORE_REQUEST,
        "trigger": Trigger.AUTO,
        "context": context,
        "shape": RequestShape(),
        "budget": WINDOW,
        "measure": Ledger(CharClassCounter()),
        "turn": 1,
    }
    return Situation(**{**given, **more})


def at_boundary(each: Recorded, number: int, memory: dict[str, Any]) -> Situation:
    """The situation in which the recorded program compacted."""
    line = boundaries(each.name)[number]
    context = context_before(each.name, line)
    if records(each.name)[line]["compactMetadata"]["trigger"] == "manual":
        return situation(context, moment=Moment.MANUAL, trigger=Trigger.MANUAL, memory=memory)
    if each.name == "v2_1_197_reactive":
        return situation(
            context,
            moment=Moment.OVERFLOW,
            trigger=Trigger.OVERFLOW,
            refused_size=15_876,
            refused_limit=14_500,
        )
    return situation(context, usage=usage_before(each.name, line), memory=memory)


class Run(NamedTuple):
    asked: list[Summarise]
    edits: list[Edit]
    skips: list[Skip]


def run(policy: ClaudeCode, at: Situation, *replies: str | Failure, file: str = FILE) -> Run:
    """Drive one pass; the last reply is given for ever."""
    plan, answer, waiting = policy.plan(at), None, list(replies)
    done = Run([], [], [])
    while True:
        try:
            step = plan.send(answer)
        except StopIteration:
            return done
        answer = None
        match step:
            case Summarise():
                done.asked.append(step)
                reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                answer = Summary(reply, "m") if isinstance(reply, str) else reply
            case Persist():
                answer = Stored(f"/kept/{step.name}")
            case Reread():
                answer = Files(tuple((path, file) for path in step.paths))
            case Edit():
                done.edits.append(step)
            case Skip():
                done.skips.append(step)


def compact_requests(name: str) -> list[dict[str, Any]]:
    return [r for r in requests(name) if r["kind"] == "compact"]


def reply_of(request: dict[str, Any]) -> str:
    return "".join(b["text"] for b in request["reply"]["blocks"] if b["type"] == "text")


def next_request(name: str, after: int) -> Shape:
    found = next(r for r in requests(name) if r["kind"] == "main" and r["n"] > after)
    return shape_of_request(found["messages"])


def replayed(each: Recorded, number: int) -> tuple[Run, Situation]:
    """Every compaction of one process up to this one, so that the policy's memory is right."""
    memory: dict[str, Any] = {}
    for n in range(number + 1):
        if n in each.resumed:
            memory = {}
        at = at_boundary(each, n, memory)
        done = run(
            ClaudeCode(ClaudeCodeParams(**each.params)),
            at,
            reply_of(compact_requests(each.name)[n]),
        )
        memory = dict(done.edits[0].memory) if done.edits else {}
    return done, at


@pytest.mark.parametrize(("each", "number"), ALL, ids=IDS)
def test_given_the_recorded_summary_the_next_request_has_the_recorded_structure(
    each: Recorded, number: int
) -> None:
    done, at = replayed(each, number)
    (edit,) = done.edits
    ours = shape_of_items(at.context.apply(edit.segments, 10**6, 1).after.items)
    request = compact_requests(each.name)[number]
    recorded = next_request(each.name, request["n"])
    assert ours == recorded[: len(ours)]
    assert ours[0][0] in ("summary", "file")
    assert (edit.follow is Follow.RETRY) == (each.name == "v2_1_197_reactive")


@pytest.mark.parametrize(("each", "number"), ALL, ids=IDS)
def test_the_summary_request_holds_what_the_recorded_one_held(each: Recorded, number: int) -> None:
    done, _ = replayed(each, number)
    (asked,) = done.asked
    recorded = shape_of_request(compact_requests(each.name)[number]["messages"])
    if each.params is OLD:  # Its transcripts do not hold the files that came back.
        recorded = [part for part in recorded if part[0] != "file"]
    assert shape_of_items(asked.items[:-1]) == recorded


# Where a resume made up an answer, the last report belongs to an earlier one.
MADE_UP = {("v2_1_197_auto_thrash", 3), ("v2_1_197_manual_hooks", 0)}
FIGURES = [(each, n) for each, n in ALL if (each.name, n) not in MADE_UP]


@pytest.mark.parametrize(("each", "number"), FIGURES, ids=[f"{e.name}-{n + 1}" for e, n in FIGURES])
def test_the_size_is_the_recorded_one(each: Recorded, number: int) -> None:
    line = boundaries(each.name)[number]
    after = ClaudeCodeParams(**each.params).count_after
    ours = figure(context_before(each.name, line).items, usage_before(each.name, line), after)
    recorded = records(each.name)[line]["compactMetadata"]["preTokens"]
    # The recordings' folder was given a shorter name afterwards, which costs up to 5 tokens.
    assert 0 <= recorded - ours.tokens <= 5


def test_2_1_70_counts_what_follows_the_response_and_only_names_large_files() -> None:
    name = "v2_1_70_resume_drops_parallel"
    line = boundaries(name)[0]
    context, usage = context_before(name, line), usage_before(name, line)
    assert figure(context.items, usage, "last").tokens == 171_641
    policy = ClaudeCode(
        ClaudeCodeParams(
            count_after="last",
            micro=False,
            keep_last_turn=False,
            files_first=True,
            cat_is_reading=False,
        )
    )
    recorded = shape_of_request(requests(name)[0]["messages"])
    body = next(text for kind, *rest in recorded if kind == "summary" for text in rest)
    reply = f"<analysis>\nthoughts\n</analysis>\n\n<summary>\n{body}\n</summary>"
    done = run(policy, situation(context, usage=usage), reply, file=LARGE)
    (edit,) = done.edits
    ours = shape_of_items(context.apply(edit.segments, 10**6, 1).after.items)
    assert [kind for kind, *_ in ours] == ["note", "note", "note", "summary"]
    assert ours == recorded[:4]
    assert "thoughts" not in context.apply(edit.segments, 10**6, 1).after.items[3].text


def test_full_again_three_times_in_a_row_ends_the_turn_where_it_did_in_the_recording() -> None:
    each = RECORDED[1]
    done, at = replayed(each, 2)
    after = at.context.apply(done.edits[0].segments, 44, 3).after
    said = [
        assistant("Checking log 1 from the end."),
        FunctionCall("t1", "Bash", '{"command":"tac log1.txt"}'),
        FunctionCallOutput("t1", "x" * 5_453),
    ]
    entries = (Entry(EntryId(50 + n), item) for n, item in enumerate(said))
    full = situation(
        after.appended(*entries),
        usage=usage_before(each.name, 53),
        memory=dict(done.edits[0].memory),
    )
    ended = run(ClaudeCode(ClaudeCodeParams(**HALF)), full, "never asked")
    assert not ended.asked
    (skip,) = ended.skips
    assert (skip.kind, skip.follow) == (SkipKind.FAILED, Follow.WAIT)
    assert "within 3 rounds of the previous compaction, 3 times in a row" in skip.reason
    never = run(ClaudeCode(ClaudeCodeParams(**HALF, thrash_refills=0)), full, "a summary")
    assert never.edits


REFUSED = Failure(FailureKind.OVERFLOW, "prompt is too long", used=210_000, limit=200_000)


@pytest.mark.parametrize(("refused", "sizes"), [(34, [13, 7, 3]), (41, [11, 5, 3])])
def test_a_refused_summary_request_gets_smaller_as_it_did_in_the_recording(
    refused: int, sizes: list[int]
) -> None:
    name = "v2_1_197_compact_fails"
    sent = [r for r in requests(name) if r["kind"] == "compact"]
    recorded = [shape_of_request(r["messages"]) for r in sent if len(r["messages"]) in sizes]
    leaf = records(name)[refused]["parentUuid"]
    context = context_of(chain(records(name)[:refused], leaf))
    at = situation(
        context,
        moment=Moment.OVERFLOW,
        trigger=Trigger.OVERFLOW,
        refused_size=15_876 if refused == 34 else 15_932,
        refused_limit=14_500,
    )
    done = run(ClaudeCode(), at, REFUSED)
    ours = [shape_of_items(asked.items[:-1]) for asked in done.asked]
    assert all(each in recorded for each in ours)
    assert [len(each) for each in ours] == sorted((len(each) for each in ours), reverse=True)
    assert len(ours) == 3
    assert not done.edits
    assert done.skips[0].failure == REFUSED
    assert [asked.own_retry for asked in done.asked] == [True, True, False]


def test_microcompact_clears_what_the_recording_cleared_and_when_it_did() -> None:
    name = "v2_0_76_microcompact"
    before, after = (r for r in requests(name) if r["n"] in (26, 28))
    policy = ClaudeCode(ClaudeCodeParams(summary_reserve=32_000, count_after="none"))
    # What request 28 was made of: request 26, its answer, and the result of that.
    context = _plain(before, after)
    usage = usage_of(before["reply"]["usage"])
    (edit,) = run(policy, situation(context, usage=usage), "never asked").edits
    made = context.apply(edit.segments, 10**6, 1).after.items
    recorded = shape_of_request(after["messages"])
    assert edit.stage == "microcompact"
    assert shape_of_items(made) == recorded
    cleared = [i.call_id for i in made if isinstance(i, FunctionCallOutput) and i.output == CLEARED]
    assert cleared == [f"toolu_mock0000{n}_0" for n in range(1, 7)]
    assert f"{usage.total:,} reported tokens reached the warning level 135,000" in edit.reason


def test_microcompact_leaves_alone_what_the_recording_left_alone() -> None:
    name = "v2_0_76_microcompact"
    before = next(r for r in requests(name) if r["n"] == 26)
    policy = ClaudeCode(ClaudeCodeParams(summary_reserve=32_000, count_after="none"))
    context = _plain(before)
    earlier = usage_of({**before["reply"]["usage"], "input_tokens": 12_994,
                        "cache_read_input_tokens": 116_958})  # fmt: skip
    done = run(policy, situation(context, usage=earlier), "never asked")
    assert not done.edits


def _plain(*sent: dict[str, Any]) -> Context:
    """A context of the first request; with a second one, of its last two messages as well."""
    messages = list(sent[0]["messages"])
    if len(sent) > 1:
        messages += sent[1]["messages"][-2:]
    items = []
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match block["type"]:
                case "tool_use":
                    items.append(FunctionCall(block["id"], block["name"], "{}"))
                case "tool_result":
                    items.append(FunctionCallOutput(block["tool_use_id"], block["content"]))
                case _ if message["role"] == "user":
                    items.append(user(block["text"]))
                case _:
                    items.append(assistant(block["text"]))
    return Context(Entry(EntryId(n), item, (EntryId(n),)) for n, item in enumerate(items))


def test_a_large_output_leaves_the_preview_that_the_recording_left() -> None:
    name = "v2_1_197_persisted_output"
    seen = 0
    for record in records(name):
        result = record.get("toolUseResult")
        if not isinstance(result, dict) or "persistedOutputSize" not in result:
            continue
        (block,) = record["message"]["content"]
        recorded = block["content"]
        # The recording holds the first 29,999 characters; the rest only counts.
        whole = result["stdout"].ljust(result["persistedOutputSize"], "x")
        ours = persisted(whole, "/kept/it.txt", 2_000)
        assert ours.partition("Preview")[2] == recorded.partition("Preview")[2]
        assert recorded.partition("(")[2].partition(")")[0] in ours
        seen += 1
    assert seen == 3
