from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.items import CompactionSummary, FunctionCallOutput
from thresher.core.sources.chat import ChatSource, Comparer, choices
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.lines import LineReader
from thresher.core.sources.report import CompactionReport, compaction_records, state_at

FIXTURES = Path(__file__).parents[2] / "fixtures"
SUMMARY = "Summary of the work so far: " + "the parser reads every line of the log. " * 5

Messages = list[dict[str, Any]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def called(id: str, name: str = "read") -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "function": function}]}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


SYSTEM = {"role": "system", "content": "Be brief."}
WORK: Messages = [SYSTEM, user("go"), called("c1"), result("c1", "x" * 900), said("read it")]


def log(path: Path, *requests: Messages, **more: Any) -> Path:
    rows = [{"model": "m", "messages": messages, **more} for messages in requests]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def only(path: Path) -> CompactionReport:
    (report,) = compaction_records(ChatSource(path).read())
    return report


def counts(report: CompactionReport) -> tuple[int, int, int, int, int, int]:
    items = report.items
    assert items is not None
    return (
        items.before, items.after, items.kept, items.removed, items.replaced, items.inserted,
    )  # fmt: skip


def test_requests_that_only_grow_hold_no_compaction(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", WORK[:2], WORK[:4], [*WORK, user("more")])
    state = state_at(ChatSource(path).read())
    assert (state.compactions, state.turn, state.requests) == (0, 2, 3)
    assert [entry.item.text for entry in state.context][-1] == "more"


def test_a_summary_in_place_of_the_beginning_is_found_with_its_text(tmp_path: Path) -> None:
    after = [SYSTEM, user(SUMMARY), *WORK[4:], user("next")]
    report = only(log(tmp_path / "log.jsonl", WORK, after))
    assert counts(report) == (5, 3, 2, 3, 0, 1)
    assert report.summary == SUMMARY
    assert (report.evidence, report.reason_evidence) == ("derived", "unknown")
    assert "found by comparing requests" in report.reason
    assert report.tokens_before is not None
    assert report.tokens_after is not None
    assert report.tokens_after - report.tokens_before < 0


def test_a_summary_of_everything_is_found_and_the_next_message_is_new(tmp_path: Path) -> None:
    after = [SYSTEM, user(SUMMARY), user("next")]
    path = log(tmp_path / "log.jsonl", WORK, after, [*after, said("done"), user("last")])
    report = only(path)
    assert counts(report) == (5, 2, 1, 4, 0, 1)
    items = [entry.item for entry in state_at(ChatSource(path).read()).context]
    assert isinstance(items[1], CompactionSummary)
    assert [item.text for item in items[2:]] == ["next", "done", "last"]


def test_outputs_that_read_differently_are_rewritten(tmp_path: Path) -> None:
    cleared = [*WORK[:3], result("c1", "[cleared]"), WORK[4], user("next")]
    path = log(tmp_path / "log.jsonl", WORK, cleared)
    assert counts(only(path)) == (5, 5, 4, 0, 1, 0)
    (card,) = state_at(ChatSource(path).read()).cards
    ((old, new),) = card.replaced_ids
    known = state_at(ChatSource(path).read()).known
    assert isinstance(known[old].item, FunctionCallOutput)
    assert known[new].item.text == "[cleared]"


def test_messages_that_are_silently_dropped_are_found(tmp_path: Path) -> None:
    report = only(log(tmp_path / "log.jsonl", WORK, [SYSTEM, *WORK[4:], user("next")]))
    assert counts(report) == (5, 2, 2, 3, 0, 0)
    assert report.summary is None


def test_another_system_text_is_an_edit_and_no_compaction(tmp_path: Path) -> None:
    other = [{"role": "system", "content": "Today is Tuesday."}, *WORK[1:], user("next")]
    path = log(tmp_path / "log.jsonl", WORK, other)
    state = state_at(ChatSource(path).read())
    assert state.compactions == 0
    assert state.context.entries[0].item.text == "Today is Tuesday."
    assert len(state.context) == 6


def test_a_request_beside_the_conversation_does_not_touch_it(tmp_path: Path) -> None:
    title = [{"role": "system", "content": "Name it."}, user("a title, please")]
    path = log(tmp_path / "log.jsonl", WORK[:4], title, WORK)
    records = list(ChatSource(path).read())
    assert compaction_records(records) == []
    notes = [each.event.text for each in records if isinstance(each.event, e.Note)]
    assert ["another conversation" in note for note in notes] == [True]


def test_the_request_whose_answer_is_the_summary_is_the_summary_s(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    asked = {
        "request": {"model": "small", "messages": [user("summarise: " + "y" * 50)]},
        "reply": {"text": SUMMARY},
        "usage": {"prompt_tokens": 70, "completion_tokens": 40},
    }
    rows = [{"messages": WORK}, asked, {"messages": [SYSTEM, user(SUMMARY), user("next")]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = list(ChatSource(path).read())
    (report,) = compaction_records(records)
    assert report.summary == SUMMARY
    state = state_at(records)
    assert state.summariser_usage is not None
    assert state.summariser_usage.total == 110


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda body: body,
        lambda body: {"body": body},
        lambda body: {"request": body, "response": {"usage": {}}},
        lambda body: {"request": {"body": json.dumps(body)}, "time": "2026-01-01T00:00:00Z"},
    ],
)
def test_wrapped_bodies_are_found(wrapped: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    bodies = [{"model": "m", "messages": WORK}, {"model": "m", "messages": [SYSTEM, user(SUMMARY)]}]
    path.write_text("".join(json.dumps(wrapped(body)) + "\n" for body in bodies))
    assert detect(path).format is Format.CHAT
    assert counts(only(path))[3] == 4
    assert [each.input for each in ChatSource(path).requests()] == [b["messages"] for b in bodies]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_array_of_requests_is_read(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    bodies = [{"model": "m", "messages": WORK}, {"model": "m", "messages": [SYSTEM, user(SUMMARY)]}]
    path.write_text(json.dumps(bodies, indent=indent))
    assert detect(path).format is Format.CHAT
    assert counts(only(path))[3] == 4
    assert len(compaction_records(ChatSource(path).tail().more())) == 1


def test_one_pretty_printed_request_is_read(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"model": "m", "messages": WORK}, indent=2))
    assert len(state_at(ChatSource(path).read()).context) == 5


def test_anthropic_requests_count_cached_tokens_as_input(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"a": 1}}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": "long " * 100}
    messages: Messages = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [back]},
    ]
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3}
    first = {"model": "claude", "system": "Be brief.", "messages": messages, "usage": usage}
    cleared = [*messages[:2], {"role": "user", "content": [{**back, "content": "[cleared]"}]}]
    path.write_text(
        json.dumps({"body": first, "usage": usage})
        + "\n"
        + json.dumps({**first, "messages": cleared})
    )
    records = list(ChatSource(path).read())
    (used, *_) = [each.event.usage for each in records if isinstance(each.event, e.UsageReported)]
    assert (used.input_tokens, used.cached_tokens, used.cache_write_tokens) == (98, 90, 3)
    (report,) = compaction_records(records)
    assert counts(report) == (4, 4, 3, 0, 1, 0)
    assert state_at(records).wire == "anthropic"


def test_responses_that_build_on_the_last_one_only_add(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    rows = [
        {"model": "m", "input": [item]},
        {"model": "m", "input": "and on", "previous_response_id": "r1"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    state = state_at(ChatSource(path).read())
    assert [entry.item.text for entry in state.context] == ["go", "and on"]
    assert state.compactions == 0


def test_a_growing_log_is_followed(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", WORK)
    tail = ChatSource(path).tail()
    found = list(tail.more())
    with path.open("a") as file:
        file.write(json.dumps({"messages": [SYSTEM, user(SUMMARY), user("next")]}) + "\n")
    found += tail.more()
    found += tail.more()
    assert len(compaction_records(found)) == 1


def test_bad_rows_are_named_and_the_others_are_kept(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", WORK)
    with path.open("a") as file:
        file.write('{"cut\n17\n{"event":"started"}\n')
        file.write(json.dumps({"messages": [*WORK, user("next")]}) + "\n")
    state = state_at(ChatSource(path).read())
    assert [each.line for each in state.problems] == [1, 2]
    assert state.unknown == {"row without a request": 1}
    assert len(state.context) == 6


RECORDED = sorted(FIXTURES.glob("*/*requests.jsonl.gz")) + sorted(
    FIXTURES.glob("opencode/*/requests.jsonl.gz")
)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_recorded_log_ends_in_the_context_of_its_last_request(path: Path) -> None:
    if path.name.startswith("index"):
        return
    records = list(ChatSource(path).read())
    state = state_at(records)
    assert not [each for each in state.problems if each.kind in ("record", "bad_line")]
    numbers = [record.n for record in records]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("name", "removed"),
    [("v1-two-summaries", [21, 15]), ("v1-prune", [0]), ("v2-two-summaries", [22, 13])],
)
def test_compactions_of_a_real_program_are_found_in_its_requests_alone(
    name: str, removed: list[int]
) -> None:
    path = FIXTURES / "opencode" / name / "requests.jsonl.gz"
    reports = compaction_records(ChatSource(path).read())
    assert [each.items.removed for each in reports if each.items] == removed


@given(st.data())
def test_mutated_logs_end_without_an_exception(data: st.DataObject) -> None:
    path = FIXTURES / "opencode" / "v1-overflow-recovered" / "requests.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        cut = data.draw(st.integers(0, len(lines[at])))
        match data.draw(st.sampled_from(["cut", "double", "swap", "word", "nul"])):
            case "cut":
                lines[at] = lines[at][:cut]
            case "double":
                lines.insert(at, lines[at])
            case "swap":
                lines.append(lines.pop(at))
            case "word":
                word = data.draw(
                    st.sampled_from([b"null", b"[]", b"{}", b"7", b"1e400", b'"\\ud800"'])
                )
                lines[at] = lines[at].replace(b'"user"', word).replace(b'"tool"', word)
            case "nul":
                lines[at] = b"\x00" + lines[at] + b"\xff"
    comparer, reader = Comparer(), LineReader()
    found = [record for line in reader.feed(b"".join(lines)) for record in comparer.feed(line)]
    found += [record for line in reader.finish() for record in comparer.feed(line)]
    found += comparer.flush()
    assert not [each for each in state_at(found).problems if each.kind == "record"]
    for record in found:
        e.encode(record)


SUB = [{"role": "system", "content": "You search files."}, user("find the parser")]
SUBS: list[Messages] = [
    SUB,
    [*SUB, called("s1", "grep"), result("s1", "core/parser.py:1")],
    [*SUB, called("s1", "grep"), result("s1", "core/parser.py:1"), said("in core"), user("sure?")],
]


def test_a_subagent_between_two_requests_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", WORK[:2], WORK[:4], *SUBS, WORK, [*WORK, user("more")])
    records = list(ChatSource(path).read())
    assert compaction_records(records) == []
    (note,) = [each.event.text for each in records if isinstance(each.event, e.Note)]
    assert "3 requests beside this one (rows 3 to 5)" in note
    assert "--session 2" in note
    assert [each.id for each in choices(path)] == ["1", "2"]
    sub = ChatSource(path / "2")
    state = state_at(sub.read())
    assert (state.compactions, state.requests) == (0, 3)
    assert [entry.item.text for entry in state.context][-1] == "sure?"
    assert sub.context_raw() == SUBS[-1]
    assert [each.input for each in sub.requests()] == SUBS
    assert detect(path / "2").format is Format.CHAT


def test_one_task_after_the_other_under_the_same_system_text_is_no_compaction(
    tmp_path: Path,
) -> None:
    tasks = [[SYSTEM, user(f"task {n}: mend the {name}")] for n, name in enumerate("abc")]
    requests = []
    for at, task in enumerate(tasks):
        requests += [task, [*task, called(f"t{at}"), result(f"t{at}", "text " * at)]]
    path = log(tmp_path / "log.jsonl", *requests)
    assert [each.title for each in choices(path)] == [task[1]["content"] for task in tasks]
    for at in range(3):
        records = list(ChatSource(path / str(at + 1)).read())
        assert compaction_records(records) == []
        assert state_at(records).requests == 2


def test_tasks_that_begin_with_the_same_notes_are_kept_apart(tmp_path: Path) -> None:
    notes = user("AGENTS.md says: be brief")
    first = [SYSTEM, notes, user("which files are there?")]
    grown = [*first, called("c1"), result("c1", "a.py"), said("one")]
    path = log(tmp_path / "log.jsonl", first, grown, [SYSTEM, notes, user("what time is it?")])
    assert compaction_records(ChatSource(path).read()) == []
    assert [each.id for each in choices(path)] == ["1", "2"]


def test_a_title_that_is_asked_for_first_is_beside_the_conversation(tmp_path: Path) -> None:
    title = [{"role": "system", "content": "Name this session."}, user("go")]
    path = log(tmp_path / "log.jsonl", title, WORK[:2], WORK[:4], WORK)
    records = list(ChatSource(path).read())
    assert compaction_records(records) == []
    assert state_at(records).requests == 3
    assert [each.id for each in choices(path)] == ["2", "1"]


def test_a_summary_in_the_conversation_s_own_words_is_a_compaction(tmp_path: Path) -> None:
    asked = [user("Please repair the calendar parser, it refuses February without a year")]
    grown = [SYSTEM, *asked, said("The calendar parser refuses February dates"), user("go on")]
    words = "The calendar parser refuses February without year; repair is going on. " * 3
    report = only(log(tmp_path / "log.jsonl", [SYSTEM, *asked], grown, [SYSTEM, user(words)]))
    assert report.summary == words


def test_a_conversation_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", WORK[:2], WORK)
    for name in ("2", "0", "x", "²"):
        with pytest.raises(ThresherError, match="conversations 1 to 1"):
            list(ChatSource(path / name).read())
    assert choices(path) == ()
    assert state_at(ChatSource(path / "1").read()).requests == 2


def test_a_followed_log_tells_what_is_beside_once(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", WORK[:2], WORK[:4], SUBS[0])
    tail = ChatSource(path).tail()
    records = list(tail.more())
    with path.open("a") as file:
        file.write(json.dumps({"messages": WORK}) + "\n")
    records += [*tail.more(), *tail.more()]
    notes = [each.event.text for each in records if isinstance(each.event, e.Note)]
    assert len(notes) == 1
    assert state_at(records).requests == 3
    assert compaction_records(records) == []


def test_what_a_request_asked_at_the_end_and_the_next_one_lacks_is_no_compaction(
    tmp_path: Path,
) -> None:
    asked = [*WORK, user("How long is this conversation? Answer with a number.")]
    path = log(tmp_path / "log.jsonl", WORK, asked, [*WORK, user("more")])
    records = list(ChatSource(path).read())
    assert compaction_records(records) == []
    assert [entry.item.text for entry in state_at(records).context][-2:] == ["read it", "more"]
    assert sum(isinstance(each.event, e.HistoryRolledBack) for each in records) == 1
