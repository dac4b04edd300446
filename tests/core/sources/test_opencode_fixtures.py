from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from thresher.core import events as e
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
)
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.opencode import OpenCodeSource
from thresher.core.sources.report import CompactionReport, compaction_records, context_at, state_at
from thresher.core.tokens import Basis, Scope

from .opencode_rig import NAMES, changed, database, sent

every_session = pytest.mark.parametrize("name", NAMES)


class Row(NamedTuple):
    line: int
    policy: str
    stage: str
    trigger: str
    moment: str
    before: int
    after: int
    kept: int
    removed: int
    replaced: int
    inserted: int
    summary: int
    evidence: str
    reason_evidence: str


V1, V2 = "opencode-v1", "opencode-v2"
STORED, DERIVED, INFERRED = "recorded", "derived", "inferred"
TAKEN, BEFORE = "compaction", "before_request"
COMPACTIONS: dict[str, list[Row]] = {
    "v1-one-summary": [
        Row(136, V1, TAKEN, "auto", "turn_end", 30, 5, 3, 27, 0, 2, 637, STORED, DERIVED)
    ],
    "v1-two-summaries": [
        Row(130, V1, TAKEN, "auto", "after_round", 27, 8, 6, 21, 0, 2, 637, STORED, DERIVED),
        Row(216, V1, TAKEN, "auto", "after_round", 25, 11, 9, 16, 0, 2, 527, STORED, DERIVED),
    ],
    "v1-prune": [
        Row(122, V1, "prune", "auto", "turn_end", 27, 27, 23, 0, 4, 0, 0, STORED, DERIVED)
    ],
    "v1-overflow-recovered": [
        Row(79, V1, TAKEN, "overflow", "overflow", 18, 2, 0, 18, 0, 2, 637, STORED, STORED)
    ],
    "v1-overflow-failed": [],
    "v1-tool-output": [],
    "v2-two-summaries": [
        Row(71, V2, TAKEN, "auto", BEFORE, 24, 1, 0, 24, 0, 1, 637, STORED, INFERRED),
        Row(115, V2, TAKEN, "auto", BEFORE, 15, 1, 0, 15, 0, 1, 527, STORED, INFERRED),
    ],
    "v2-overflow-recovered": [
        Row(33, V2, TAKEN, "auto", BEFORE, 12, 1, 0, 12, 0, 1, 637, STORED, INFERRED)
    ],
    "v2-never-compacts": [],
    "v2-tool-output": [],
}  # fmt: skip
REFUSED_WITHOUT_A_TRACE = {("v2-overflow-recovered", 4)}
"""V2 stores nothing of a request that the provider refuses: it is rebuilt from the compaction after
it, and told as one that may have been sent."""


@pytest.fixture
def source(name: str, tmp_path: Path) -> OpenCodeSource:
    return OpenCodeSource(database(name, tmp_path))


def reports(source: OpenCodeSource) -> list[CompactionReport]:
    return compaction_records(source.read(), unsuccessful=True)


def row(report: CompactionReport) -> Row:
    items = report.items
    assert items is not None
    return Row(
        report.line,
        report.policy,
        report.stage,
        report.trigger.value,
        str(report.moment),
        items.before,
        items.after,
        items.kept,
        items.removed,
        items.replaced,
        items.inserted,
        len(report.summary or ""),
        report.evidence,
        report.reason_evidence,
    )


def test_every_recorded_session_is_in_the_table() -> None:
    assert set(NAMES) == set(COMPACTIONS)


@every_session
def test_compactions_have_their_place_counts_cause_and_evidence(
    source: OpenCodeSource, name: str
) -> None:
    assert [row(each) for each in compaction_records(source.read())] == COMPACTIONS[name]


@every_session
def test_figures_of_a_compaction_are_comparable_estimates_of_the_messages(
    source: OpenCodeSource,
) -> None:
    for number, report in enumerate(compaction_records(source.read()), 1):
        assert report.ordinal == number
        assert report.tokens_before is not None
        assert report.tokens_after is not None
        assert report.tokens_after - report.tokens_before < 0
        assert report.tokens_before.basis is Basis.ESTIMATED
        assert report.tokens_before.scope is Scope.MESSAGES


@every_session
def test_the_fold_finds_no_fault_in_the_records(source: OpenCodeSource, name: str) -> None:
    state = state_at(source.read())
    assert state.problems == []
    assert state.unknown == {}
    assert state.compactions == len(COMPACTIONS[name])
    assert state.agent == "opencode"
    assert state.model
    assert not state.streams


@every_session
def test_records_are_in_the_order_of_the_changes(source: OpenCodeSource) -> None:
    numbers = [record.n for record in source.read()]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0


@every_session
def test_every_request_is_rebuilt_message_for_message(source: OpenCodeSource, name: str) -> None:
    rebuilt = [each.input for each in source.requests() if each.kind is e.Purpose.TURN]
    for recorded in sent(name):
        if recorded["kind"] == "main":
            assert recorded["messages"] in rebuilt, recorded["n"]


@every_session
def test_the_conversation_of_every_summary_request_is_rebuilt(
    source: OpenCodeSource, name: str
) -> None:
    rebuilt = [each for each in source.requests() if each.kind is e.Purpose.COMPACTION]
    recorded = [each for each in sent(name) if each["kind"] == "summary"]
    assert len(rebuilt) == len(recorded)
    for mine, theirs in zip(rebuilt, recorded, strict=True):
        (message,), (told,) = mine.input, theirs["messages"]
        whole, shown = message["content"], told["content"]
        end = shown.index("</conversation>")
        assert whole.startswith(shown[: end + len("</conversation>")])
        assert ("<prior-summary>" in whole) == ("<prior-summary>" in shown)
        assert "instruction" in mine.missing
        assert bool(mine.failed) == (theirs["status"] >= 400)


@every_session
def test_requests_that_were_refused_are_told_as_failed(source: OpenCodeSource, name: str) -> None:
    refused = {
        recorded["n"]
        for recorded in sent(name)
        if recorded["kind"] == "main" and recorded["status"] >= 400
    } - {n for session, n in REFUSED_WITHOUT_A_TRACE if session == name}
    failed = [each for each in source.requests() if each.failed and each.kind is e.Purpose.TURN]
    assert [each.failed for each in failed] == ["ContextOverflowError"] * len(refused)


@every_session
def test_the_folded_context_at_a_request_is_what_the_request_carried(
    source: OpenCodeSource,
) -> None:
    records = list(source.read())
    for request in source.requests():
        if request.kind is e.Purpose.TURN:
            told = list(said(entry.item for entry in context_at(records, request.position)))
            assert sorted(told) == sorted(carried(request)), request.position


@every_session
def test_the_context_in_wire_form_at_a_request_is_its_input(source: OpenCodeSource) -> None:
    requests = [each for each in source.requests() if each.kind is e.Purpose.TURN]
    for request in (requests[0], requests[len(requests) // 2], requests[-1]):
        assert source.context_raw(request.position) == request.input


@every_session
def test_a_session_whose_events_are_gone_is_read_from_its_rows(name: str, tmp_path: Path) -> None:
    path = database(name, tmp_path)
    whole, requests = reports(OpenCodeSource(path)), list(OpenCodeSource(path).requests())
    changed(path, "DELETE FROM event")
    bare = OpenCodeSource(path)
    assert [facts(each) for each in reports(bare)] == [facts(each) for each in whole]
    assert [each.input for each in bare.requests()] == [each.input for each in requests]
    assert [each.failed for each in bare.requests()] == [each.failed for each in requests]


@pytest.mark.parametrize("name", ["v1-overflow-failed"])
def test_failed_compactions_leave_their_question_and_are_told(source: OpenCodeSource) -> None:
    failed = [each for each in reports(source) if each.outcome == "failed"]
    assert [(each.line, each.trigger.value, each.evidence) for each in failed] == [
        (48, "overflow", "recorded"),
        (59, "overflow", "recorded"),
    ]
    assert all("too large to compact" in each.reason for each in failed)
    records = list(source.read())
    state = state_at(records)
    assert state.failures == 2
    questions = [entry.item for entry in state.context if entry.item == _question()]
    assert len(questions) == 2
    overflows = [each for each in records if isinstance(each.event, e.ContextOverflowed)]
    assert len(overflows) == 4
    (ends,) = [each.event for each in records if isinstance(each.event, e.TurnFinished)][-1:]
    assert ends.outcome == "failed"


@pytest.mark.parametrize("name", ["v1-overflow-recovered"])
def test_the_turn_that_was_refused_is_said_again_and_is_no_new_turn(source: OpenCodeSource) -> None:
    records = list(source.read())
    again = [
        each.event
        for each in records
        if isinstance(each.event, e.ItemAppended) and "again" in each.event.note
    ]
    assert [each.item.text for each in again] == ["Now logs/small-3.log and logs/small-4.log."]
    assert state_at(records).turn == 4


@pytest.mark.parametrize("name", ["v1-prune"])
def test_pruned_outputs_are_rewritten_and_nothing_else(source: OpenCodeSource) -> None:
    (report,) = reports(source)
    assert "41,454 tokens" in report.reason
    # Numbers that are equal are no change to tell.
    assert report.reason.endswith("; still 24 messages")
    assert "become" not in report.reason
    state = state_at(source.read())
    (card,) = state.cards
    for old, new in card.replaced_ids:
        before, after = state.known[old].item, state.known[new].item
        assert isinstance(before, FunctionCallOutput)
        assert isinstance(after, FunctionCallOutput)
        assert len(before.output) > 10_000
        assert after.output == "[Old tool result content cleared]"
        assert before.call_id == after.call_id


@pytest.mark.parametrize("name", ["v1-two-summaries"])
def test_usage_is_of_one_request_and_counts_cached_tokens_as_input(source: OpenCodeSource) -> None:
    records = list(source.read())
    usages = [each.event for each in records if isinstance(each.event, e.UsageReported)]
    told = {
        (each["usage"]["prompt"], each["usage"]["completion"], each["usage"]["cached"])
        for each in sent("v1-two-summaries")
    }
    found = {
        (each.usage.input_tokens, each.usage.output_tokens, each.usage.cached_tokens)
        for each in usages
    }
    assert told <= found
    assert sum(each.purpose is e.Purpose.COMPACTION for each in usages) == 2
    first = reports(source)[0]
    assert "19,940 tokens reported" in first.reason
    assert "msg_22aa6f2b3001eS0bLXzzbo3Hep" in first.reason


@pytest.mark.parametrize("name", ["v1-tool-output"])
def test_a_cut_output_names_the_file_of_the_whole_and_nobody_opens_it(
    source: OpenCodeSource,
) -> None:
    finished = [each.event for each in source.read() if isinstance(each.event, e.ToolFinished)]
    assert any("tool-output" in each.saved for each in finished)


def facts(report: CompactionReport) -> tuple[Any, ...]:
    return (
        report.outcome,
        report.policy,
        report.stage,
        report.trigger,
        report.moment,
        report.items,
        report.tokens_before,
        report.tokens_after,
        report.summary,
        report.evidence,
    )


def said(items: Iterator[Item]) -> Iterator[tuple[str, str]]:
    for item in items:
        match item:
            case FunctionCall(call_id=id):
                yield f"call {id}", item.arguments
            case FunctionCallOutput(call_id=id):
                yield f"output {id}", item.output
            case CompactionSummary(role=role):
                yield role.value, item.text
            case Message(role=role):
                yield role.value, item.text
            case _:
                yield item.__class__.__name__, item.text


def carried(request: RebuiltRequest) -> Iterator[tuple[str, str]]:
    for message in request.input:
        if message["role"] == "tool":
            yield f"output {message['tool_call_id']}", message["content"]
            continue
        if message["content"]:
            yield message["role"], message["content"]
        for call in message.get("tool_calls", ()):
            yield f"call {call['id']}", call["function"]["arguments"]


def _question() -> Message:
    return Message(Role.USER, "What did we do so far?", synthetic=True)
