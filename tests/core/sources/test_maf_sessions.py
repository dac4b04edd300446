from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.items import CompactionSummary, FunctionCall, FunctionCallOutput, Reasoning, Role
from thresher.core.sources.base import encode_request
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.maf import MafSource, MafTail
from thresher.core.sources.report import CompactionReport, compaction_records, state_at
from thresher.core.state import Status

FIXTURES = Path(__file__).parents[2] / "fixtures" / "maf"
EXACT = {"summarised": 23, "tool_results": 14, "sliding": 6, "truncated": 9, "in_run": 10}
"""How many of the requests are rebuilt exactly."""


def source(name: str) -> MafSource:
    return MafSource(FIXTURES / f"{name}.json.gz")


def rows(name: str) -> list[Any]:
    with gzip.open(FIXTURES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sent(name: str) -> list[list[dict[str, Any]]]:
    return [
        [
            {"role": each["role"], "contents": each["contents"]}
            for each in row["messages"]
            if each["role"] != "system"
        ]
        for row in rows(f"{name}.requests")
    ]


def session(messages: list[dict[str, Any]], **more: Any) -> bytes:
    state = {"in_memory": {"messages": messages}}
    return json.dumps({"type": "session", "session_id": "s", "state": state, **more}).encode()


def message(role: str, text: str, id: str = "", **marks: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "message",
        "role": role,
        "contents": [{"type": "text", "text": text}],
        "additional_properties": marks,
    }
    return {**found, "message_id": id} if id else found


def loaded(path: Path, data: bytes) -> tuple[list[e.Record], list[CompactionReport]]:
    path.write_bytes(data)
    records = list(MafSource(path).read())
    return records, compaction_records(records)


@pytest.mark.parametrize("name", EXACT)
def test_requests_are_rebuilt_as_far_as_the_marks_tell(name: str) -> None:
    rebuilt, recorded = list(source(name).requests()), sent(name)
    assert len(rebuilt) == len(recorded)
    right = 0
    for request, messages in zip(rebuilt, recorded, strict=True):
        encode_request(request)
        same = request.input == messages
        right += same
        # What is not exact says so.
        assert same or request.left_out
    assert right == EXACT[name]


@pytest.mark.parametrize("name", ["summarised", "tool_results"])
def test_where_summaries_tell_when_it_was_each_pass_is_a_card(name: str) -> None:
    found = compaction_records(source(name).read())
    assert len(found) == len(rows(f"{name}.passes"))
    assert [each.ordinal for each in found] == [1, 2, 3, 4, 5]
    assert {each.evidence for each in found} == {"derived"}
    assert all(each.summary for each in found)
    assert found[0].tokens_before is not None
    assert found[0].tokens_after is not None
    # The newest run has no counts yet, so the last sum is not known.
    assert found[-1].tokens_before is None


@pytest.mark.parametrize("name", ["sliding", "truncated"])
def test_what_left_no_trace_of_its_time_is_one_card_that_says_so(name: str) -> None:
    (card,) = compaction_records(source(name).read())
    assert "when it happened, and in how many steps, is not in the file" in card.marks
    assert card.items is not None
    assert card.items.inserted == 0
    assert card.stage in ("sliding_window", "truncation")


@pytest.mark.parametrize("name", ["sliding", "truncated"])
def test_followed_from_run_to_run_every_pass_is_seen_with_its_count(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "session.json"
    records: list[e.Record] = []
    tail = None
    for state in rows(f"{name}.states"):
        path.write_text(json.dumps(state))
        tail = tail or MafTail(path)
        records += tail.more()
    found = compaction_records(records)
    passes = rows(f"{name}.passes")
    assert len(found) == len(passes)
    assert not state_at(records).problems
    for card, told in zip(state_at(records).cards, passes, strict=True):
        assert card.context_before is not None
        gone = [card.context_before.get(id) for id in card.removed_ids]
        # A message with a thought and a call is two of our items.
        items = [each.item for each in gone if each is not None]
        messages = sum(not isinstance(item, Reasoning) for item in items)
        before, after = (f"compaction_included_messages_{when}" for when in ("before", "after"))
        assert messages == told[before] - told[after]
    assert state_at(records).context.items == state_at(source(name).read()).context.items


def test_compactions_of_the_copy_that_is_sent_are_noted_by_the_ids_they_left() -> None:
    records = list(source("in_run").read())
    assert compaction_records(records) == []
    (note,) = [each.event for each in records if isinstance(each.event, e.Note)]
    assert "1 more summaries" in note.text


def test_a_summary_of_summaries_stands_for_the_ones_before_it() -> None:
    state = state_at(source("summarised").read())
    summary = state.context.items[0]
    assert isinstance(summary, CompactionSummary)
    assert (summary.role, summary.text[:9]) == (Role.ASSISTANT, "Summary 5")
    last = state.cards[-1]
    assert {state.fate(id).summary for id in last.removed_ids} == {state.context.ids[0]}
    assert sum(state.known[id].kind.value == "summary" for id in last.removed_ids) == 1


def test_collapsed_tool_results_keep_the_order_of_the_file() -> None:
    items = state_at(source("tool_results").read()).context.items
    assert [item.text[:14] for item in items[:3]] == [
        "Read log 1 and",
        "[Tool results:",
        "Build 2 failed",
    ]
    assert sum(isinstance(item, FunctionCall) for item in items) == 1
    assert sum(isinstance(item, FunctionCallOutput) for item in items) == 1


def test_a_history_of_one_message_a_line_is_read_too(tmp_path: Path) -> None:
    path = FIXTURES / "history.jsonl.gz"
    assert detect(path).format is Format.MAF
    state = state_at(MafSource(path).read())
    assert (state.turn, len(state.problems)) == (3, 0)
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    records, _ = loaded(
        tmp_path / "h.jsonl", b"".join([*lines[:3], b"{oops\n", *lines[3:], b"{}\n"])
    )
    state = state_at(records)
    assert state.problems[0].message.startswith("line 4 (byte ")
    assert state.unknown == {"(no type)": 1}
    assert len(state.context) == len(state_at(MafSource(path).read()).context)


def test_an_array_of_messages_and_a_session_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps([message("user", "hi"), 7]))
    assert detect(path).format is Format.MAF
    assert state_at(MafSource(path).read()).unknown == {"int": 1}
    assert detect(FIXTURES / "sliding.json.gz").format is Format.MAF


def test_a_document_that_is_broken_off_still_gives_its_messages(tmp_path: Path) -> None:
    whole = gzip.decompress((FIXTURES / "sliding.json.gz").read_bytes())
    records, _ = loaded(tmp_path / "cut.json", whole[: len(whole) // 2])
    state = state_at(records)
    (problem,) = state.problems
    assert "messages of it could be read" in problem.message
    assert (state.session_id, state.turn > 2) == ("logs", True)


def test_a_summary_that_is_not_stored_is_named_not_invented(tmp_path: Path) -> None:
    group = {"id": "g", "_summarized_by_summary_id": "summary_9"}
    gone = message("user", "one", "m1", _excluded=True, _exclude_reason="summarized", _group=group)
    _, (card,) = loaded(tmp_path / "s.json", session([gone, message("assistant", "two")]))
    assert card.summary is None
    assert "the summary summary_9 that stands for them is not in the file" in card.marks


def test_a_reason_of_a_later_strategy_does_not_hide_the_summary(tmp_path: Path) -> None:
    group = {"id": "g", "_summarized_by_summary_id": "summary_1"}
    gone = message("user", "one", "m1", _excluded=True, _exclude_reason="truncation", _group=group)
    made = message("assistant", "S", "summary_1", _group={"_summary_of_message_ids": ["m1"]})
    _, (card,) = loaded(tmp_path / "s.json", session([made, gone]))
    assert (card.stage, card.summary) == ("truncation", "S")


def test_sessions_kept_by_the_service_and_other_lists_are_told(tmp_path: Path) -> None:
    state = {
        "a": {"messages": [message("user", "x")] * 2},
        "b": {"messages": [message("user", "y")]},
    }
    data = json.dumps(
        {"type": "session", "session_id": "s", "service_session_id": "r1", "state": state}
    )
    records, _ = loaded(tmp_path / "s.json", data.encode())
    notes = [each.event.text for each in records if isinstance(each.event, e.Note)]
    assert len(notes) == 2
    assert "of b" in notes[0]
    assert "service" in notes[1]


def test_a_file_that_loses_messages_or_vanishes_is_told_and_what_was_read_stays(
    tmp_path: Path,
) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(session([message("user", "one"), message("assistant", "two")]))
    tail = MafTail(path)
    records = list(tail.more())
    path.rename(tmp_path / "away")
    records += tail.more()
    (tmp_path / "away").rename(path)
    records += tail.more()
    path.write_bytes(session([message("user", "one")]))
    records += tail.more()
    state = state_at(records)
    texts = [problem.message for problem in state.problems]
    assert ["is gone" in texts[0], "fewer messages" in texts[1]] == [True, True]
    assert len(state.context) == 2
    assert list(tail.more()) == []


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="cannot be read"):
        list(MafSource(tmp_path / "none.json").read())
    with pytest.raises(ThresherError, match="cannot be read"):
        list(MafTail(tmp_path / "none.json").more())


def test_a_stored_run_is_over_and_one_that_asks_for_a_tool_is_not(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    asks = {**message("assistant", ""), "contents": [call]}
    said = [message("user", "one"), message("assistant", "done"), message("user", "two")]
    records, _ = loaded(path, session([*said, message("assistant", "done too")]))
    assert state_at(records).status is Status.IDLE
    ended = [each.event.turn for each in records if isinstance(each.event, e.TurnFinished)]
    assert ended == [1, 2]
    records, _ = loaded(path, session([*said, asks]))
    assert state_at(records).status is Status.THINKING
    ended = [each.event.turn for each in records if isinstance(each.event, e.TurnFinished)]
    assert ended == [1]
