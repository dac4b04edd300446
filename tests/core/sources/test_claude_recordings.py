"""More recordings of the real program, each with everything that was sent: see the README there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.items import FunctionCall, ImagePart, Message, Reasoning
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.claude_messages import GO_ON
from thresher.core.sources.claude_plain import plain
from thresher.core.sources.report import compaction_records, context_at, state_at
from thresher.core.sources.request_log import logged_requests
from thresher.core.sources.verify import Grade, verify

from .claude_rig import FIXTURES, PROMPT

MORE = FIXTURES / "more"
NAMES = sorted(
    path.name.removesuffix(".jsonl.gz")
    for path in MORE.glob("*.jsonl.gz")
    if ".requests." not in path.name
)
KINDS = {
    "main": e.Purpose.TURN,
    "compact": e.Purpose.COMPACTION,
    "sub": e.Purpose.SUBAGENT,
}
FORKED = "v2_0_76_fork"
CUT = {"v2_0_76_killed": {6}, "v2_1_197_killed": {2, 6}}
"""Requests whose answer the killed program never got: they left no trace."""

every_recording = pytest.mark.parametrize("name", NAMES)


def source(name: str) -> ClaudeSource:
    return ClaudeSource(MORE / f"{name}.jsonl.gz")


def records(name: str) -> list[e.Record]:
    return list(source(name).read())


def events(name: str, kind: type[e.Event]) -> list[Any]:
    return [each.event for each in records(name) if isinstance(each.event, kind)]


def sent(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(MORE / f"{name}.requests.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def answered(name: str) -> list[dict[str, Any]]:
    gone = CUT.get(name, set())
    return [each for each in sent(name) if not each["reply"]["error"] and each["n"] not in gone]


def form(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What both sides hold, without the prompt for the summary."""
    kept = plain(messages)
    for message in kept:
        message["content"] = [
            block for block in message["content"] if not block.get("text", "").startswith(PROMPT)
        ]
    return [message for message in kept if message["content"]]


@every_recording
def test_every_answered_request_is_rebuilt_as_it_was_sent(name: str) -> None:
    rebuilt = [(each.kind, form(each.input)) for each in source(name).requests()]
    missed = [
        each["n"]
        for each in answered(name)
        if (KINDS[each["kind"]], form(each["messages"])) not in rebuilt
    ]
    assert missed == []


@every_recording
def test_no_request_is_rebuilt_that_was_not_sent(name: str) -> None:
    logged = [form(each["messages"]) for each in sent(name)]
    rebuilt: list[RebuiltRequest] = list(source(name).requests())
    if name == FORKED:
        rebuilt = rebuilt[2:]
    assert [each.position for each in rebuilt if form(each.input) not in logged] == []


@every_recording
def test_the_fold_finds_no_fault_in_the_records(name: str) -> None:
    state = state_at(records(name))
    assert [each for each in state.problems if "API Error" not in str(each)] == []
    assert state.unknown == {}


@every_recording
def test_a_capture_is_verified(name: str) -> None:
    log = list(logged_requests(MORE / f"{name}.requests.jsonl.gz"))
    verdict = verify(source(name).requests(), log, ClaudeSource.plain)
    answers = {str(each["n"]) for each in answered(name)}
    worse = [each.label for each in verdict.requests if each.grade is Grade.DIFFERS]
    assert answers.isdisjoint(worse)


@every_recording
def test_what_responses_cost_is_what_the_endpoint_counted(name: str) -> None:
    usage = {each.response_id: each.usage for each in events(name, e.UsageReported)}
    told = {
        f"msg_mock{each['n']:05d}": each["reply"]["usage"]
        for each in answered(name)
        if each["kind"] == "main"
    }
    if name == FORKED:
        usage = {id: each for id, each in usage.items() if id in told}
    assert usage.keys() == told.keys()
    for id, each in usage.items():
        counted = told[id]["input_tokens"] + told[id]["cache_read_input_tokens"]
        assert each.input_tokens == counted
    if name != FORKED:
        assert state_at(records(name)).requests >= len(told)


COMPACTIONS = {
    FORKED: [("auto", 163226, 0)],
    "v2_1_332_manual_focus": [("manual", 61663, 26), ("manual", 54253, 22)],
}


@every_recording
def test_compactions_are_found_with_their_trigger_tokens_and_counts(name: str) -> None:
    found = [
        (each.trigger.value, each.tokens_before.value, each.items.before)
        for each in compaction_records(records(name))
        if each.items and each.tokens_before
    ]
    assert found == COMPACTIONS.get(name, [])


def test_a_response_that_was_written_down_again_is_in_the_context_once() -> None:
    for name in ("v1_0_128_api_errors", "v2_0_76_api_errors"):
        items = context_at(records(name)).items
        calls = [item.call_id for item in items if isinstance(item, FunctionCall)]
        assert len(calls) == len(set(calls)) == 2
        assert sum(isinstance(item, Reasoning) for item in items) == 2


def test_an_error_goes_on_being_sent_by_the_oldest_versions_only() -> None:
    def errors(name: str) -> int:
        items = context_at(records(name)).items
        return sum(item.text.startswith("API Error") for item in items)

    assert (errors("v1_0_128_api_errors"), errors("v2_0_76_api_errors")) == (3, 0)


@pytest.mark.parametrize("name", ["v2_0_76_killed", "v2_1_197_killed"])
def test_a_call_that_was_stopped_leaves_before_the_next_request(name: str) -> None:
    (left,) = events(name, e.HistoryRolledBack)
    assert left.removed == 1
    assert "stopped while tools ran" in left.reason


def test_a_model_is_sent_its_own_thinking_only() -> None:
    name = "v2_1_197_models"
    moves = events(name, e.HistoryRolledBack)
    assert [(each.removed, each.inserted) for each in moves] == [(1, 0), (1, 1), (2, 0)]
    thoughts = [item for item in context_at(records(name)).items if isinstance(item, Reasoning)]
    assert [item.text for item in thoughts] == ["I should look at log 4."]


def test_subagents_inside_the_file_have_requests_and_are_not_in_the_context() -> None:
    name = "v1_0_128_subagents"
    kinds = [each.kind for each in source(name).requests()]
    assert kinds.count(e.Purpose.SUBAGENT) == 6
    assert not any("SUBTASK" in item.text for item in context_at(records(name)).items[:1])
    assert state_at(records(name)).requests == 5


def test_small_parallel_results_that_a_resume_loses_are_noticed() -> None:
    kinds = {
        name: [each.kind for each in events(name, e.UnannouncedReduction)]
        for name in ("v2_1_20_subagents", "v2_1_12_parallel")
    }
    assert kinds == {
        "v2_1_20_subagents": ["lost-results"],
        "v2_1_12_parallel": ["lost-results", "lost-results"],
    }


def test_a_picture_beside_a_prompt_is_one_in_the_context() -> None:
    parts = [
        part
        for item in context_at(records("v2_1_197_images")).items
        if isinstance(item, Message) and isinstance(item.content, tuple)
        for part in item.content
    ]
    assert sum(isinstance(part, ImagePart) for part in parts) == 1


def test_a_fork_says_where_its_own_part_begins_and_what_it_does_not_know() -> None:
    (note,) = [each for each in events(FORKED, e.Note) if each.kind == "fork"]
    assert note.text.startswith("lines 2 to 8 are a copy")
    (report,) = compaction_records(records(FORKED))
    assert any("unknown here" in mark for mark in report.marks)


def test_nothing_is_put_in_that_was_in_the_file() -> None:
    for name in NAMES:
        for request in source(name).requests():
            assert GO_ON not in str(request.input)


def test_the_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in MORE.iterdir()) < 250_000


def test_nothing_of_the_machine_is_in_them() -> None:
    for path in sorted(MORE.glob("*.gz")):
        data = gzip.decompress(path.read_bytes())
        assert b"/root" not in data
        assert b"/tmp/" not in data


def test_every_recording_has_its_log() -> None:
    assert NAMES
    assert all(Path(MORE / f"{name}.requests.jsonl.gz").exists() for name in NAMES)
