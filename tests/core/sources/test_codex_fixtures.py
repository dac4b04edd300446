from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from thresher.core import events as e
from thresher.core.items import CompactionSummary, FunctionCall, Message
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_items import item_of
from thresher.core.sources.report import compaction_records, context_at, state_at
from thresher.core.tokens import Basis, Scope

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"


class Row(NamedTuple):
    line: int
    window: int
    before: int
    after: int
    tokens_before: int
    tokens_after: int
    phase: str
    cause: str
    policy: str = "codex-local"


MID, PRE, MANUAL = "mid_turn", "pre_turn", "standalone_turn"
LIMIT = "context_limit"
COMPACTIONS = {
    "mid_turn": [Row(33, 1, 12, 4, 6432, 384, MID, LIMIT)],
    "two_mid_turn": [
        Row(23, 1, 7, 4, 5414, 373, MID, LIMIT),
        Row(43, 2, 8, 4, 5344, 373, MID, LIMIT),
    ],
    "pre_turn_twice": [
        Row(25, 1, 6, 4, 6150, 371, PRE, LIMIT),
        Row(59, 2, 10, 6, 6450, 385, PRE, LIMIT),
    ],
    "default_limit_90pct": [Row(30, 1, 6, 5, 18000, 368, PRE, LIMIT)],
    "manual_appserver": [
        Row(24, 1, 6, 4, 3096, 365, MANUAL, "user_requested"),
        Row(45, 2, 6, 5, 639, 369, MANUAL, "user_requested"),
    ],
    "turn_overflow": [Row(23, 1, 5, 4, 21110, 367, PRE, LIMIT)],
    "compact_overflow_trim": [Row(26, 1, 7, 4, 5409, 367, MID, LIMIT)],
    "compact_overflow_all": [],
    "compact_http500": [Row(26, 1, 7, 4, 5409, 367, PRE, LIMIT)],
    "empty_summary": [Row(22, 1, 7, 4, 5409, 345, MID, LIMIT)],
    "model_downshift": [Row(21, 1, 4, 4, 30050, 423, PRE, "model_downshift")],
    "remote_v2": [
        Row(20, 1, 7, 4, 5409, 285, MID, LIMIT, "codex-remote"),
        Row(49, 2, 9, 5, 5250, 328, PRE, LIMIT, "codex-remote"),
    ],
    "token_budget": [
        Row(20, 1, 8, 3, 5507, 300, MID, LIMIT, "codex-token-budget"),
        Row(35, 2, 7, 3, 642, 300, MID, "new_context", "codex-token-budget"),
    ],
    "hooks_pre_post": [Row(23, 1, 7, 4, 5409, 367, MID, LIMIT)],
    "hook_stops_compaction": [],
}
every_session = pytest.mark.parametrize("name", sorted(COMPACTIONS))


def source(name: str) -> CodexSource:
    return CodexSource(FIXTURES / f"{name}.jsonl.gz")


def records(name: str) -> list[e.Record]:
    return list(source(name).read())


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(FIXTURES / f"{name}.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sent_requests(name: str) -> list[dict[str, Any]]:
    stored = lines(f"{name}.requests.jsonl")
    inputs = {each["n"]: each["input"] for each in stored if "input" in each}
    return [{**each, "input": inputs[each.get("same_input_as", each["n"])]} for each in stored]


def events(name: str, kind: type[e.Event]) -> list[Any]:
    return [each.event for each in records(name) if isinstance(each.event, kind)]


def test_every_recorded_session_is_in_the_table() -> None:
    names = {path.name.split(".")[0] for path in FIXTURES.glob("*.jsonl.gz")}
    assert names == set(COMPACTIONS)


@every_session
def test_compactions_have_their_place_counts_tokens_phase_and_cause(name: str) -> None:
    found = [
        Row(
            report.line,
            report.window,
            report.items.before,
            report.items.after,
            report.tokens_before.value,
            report.tokens_after.value,
            report.phase,
            report.reason.split(":")[0],
            report.policy,
        )
        for report in compaction_records(records(name))
        if report.items and report.tokens_before and report.tokens_after
    ]
    assert found == COMPACTIONS[name]


@every_session
def test_counts_of_a_compaction_add_up_and_its_basis_is_told(name: str) -> None:
    for number, report in enumerate(compaction_records(records(name)), 1):
        items = report.items
        assert items is not None
        assert report.ordinal == number
        assert items.kept + items.removed + items.replaced == items.before
        assert items.kept + items.replaced + items.inserted == items.after
        assert report.tokens_before is not None
        assert report.tokens_before.basis is Basis.ESTIMATED
        assert report.tokens_before.scope is Scope.REQUEST
        assert (report.evidence, report.reason_evidence) == ("recorded", "inferred")
        assert report.trigger.value == ("manual" if report.phase == MANUAL else "auto")


@every_session
def test_codex_s_own_estimate_after_a_compaction_is_the_one_computed(name: str) -> None:
    told = [
        usage.usage.total
        for usage in events(name, e.UsageReported)
        if usage.estimated and "compaction" in usage.note
    ]
    assert told == [row.tokens_after for row in COMPACTIONS[name]]
    assert not [note for note in events(name, e.Note) if note.kind == "estimate"]


@every_session
def test_the_folded_context_is_the_replayed_history_item_for_item(name: str) -> None:
    read = records(name)
    assert [entry.item for entry in context_at(read)] == [
        item_of(raw) for raw in source(name).context_raw()
    ]


@every_session
def test_the_fold_finds_no_fault_in_the_records(name: str) -> None:
    state = state_at(records(name))
    server_errors = [problem for problem in state.problems if problem.where == "codex"]
    assert state.problems == server_errors
    assert len(server_errors) == (1 if name == "compact_http500" else 0)
    assert state.unknown == {}
    assert state.compactions == len(COMPACTIONS[name])


@every_session
def test_records_are_in_the_order_of_the_file(name: str) -> None:
    numbers = [record.n for record in records(name)]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0


@every_session
def test_every_request_that_was_sent_is_rebuilt(name: str) -> None:
    rebuilt = [(each.kind, each.input, bool(each.missing)) for each in source(name).requests()]
    for sent in sent_requests(name):
        prompt_is_missing = sent["kind"] == "compaction" and name != "remote_v2"
        history = sent["input"][:-1] if prompt_is_missing else sent["input"]
        assert (sent["kind"], history, prompt_is_missing) in rebuilt, sent["n"]


@every_session
def test_requests_come_in_the_order_and_number_in_which_they_were_sent(name: str) -> None:
    rebuilt = list(source(name).requests())
    positions = [each.position for each in rebuilt]
    assert positions == sorted(positions)
    tries = sum(each.attempts for each in rebuilt)
    unseen = 3 if name == "compact_http500" else 0  # tries of one HTTP request leave no trace
    assert tries + unseen == sent_requests(name)[-1]["n"]


@every_session
def test_a_request_carries_the_history_at_its_position(name: str) -> None:
    session = source(name)
    for request in session.requests():
        if request.evidence == "inferred":
            continue
        history = [raw.get("id") for raw in session.context_raw(request.position)]
        carried = [
            raw.get("id") for raw in request.input[1:] if raw["type"] != "compaction_trigger"
        ]
        assert carried == history


def test_the_session_is_described_in_its_first_record() -> None:
    first = records("mid_turn")[0].event
    assert isinstance(first, e.SessionStarted)
    assert (first.agent, first.version, first.model) == ("codex", "0.171.0", "toy-medium")
    assert first.cwd == "/home/user/project"
    assert first.title.startswith("Count the ERROR lines")
    assert first.instructions.startswith("You are a scripted stand-in")
    assert first.budget is not None
    assert first.budget.limit == 19000
    assert "95%" in first.budget.window.source


def test_harness_text_is_marked_and_the_user_s_is_not() -> None:
    said = [
        event.item
        for event in events("mid_turn", e.ItemAppended)
        if isinstance(event.item, Message)
    ]
    assert [(item.role.value, item.synthetic) for item in said[:3]] == [
        ("developer", True),
        ("user", True),
        ("user", False),
    ]


def test_the_summary_stands_for_what_left_and_holds_no_prefix() -> None:
    (event,) = events("mid_turn", e.HistoryCompacted)
    assert event.summary.startswith("Summary 1:")
    summary = context_at(records("mid_turn"), 33).entries[-1]
    assert isinstance(summary.item, CompactionSummary)
    assert summary.item.content == event.summary
    assert summary.item.prefix.endswith("\n")
    assert len(summary.origin) == event.removed == 11


def test_the_answer_of_a_compaction_request_never_enters_the_context() -> None:
    answer = records("mid_turn")
    (outside,) = [
        each
        for each in answer
        if isinstance(each.event, e.ItemAppended) and not each.event.in_context
    ]
    assert outside.n == 30
    assert len(context_at(answer, 30)) == 12
    assert len(source("mid_turn").context_raw(30)) == 13


def test_an_opaque_summary_is_shown_as_opaque() -> None:
    for report in compaction_records(records("remote_v2")):
        assert report.opaque
        assert report.summary is None
    last = context_at(records("remote_v2"), 49).entries[-1].item
    assert isinstance(last, CompactionSummary)
    assert last.opaque


def test_a_new_window_without_a_summary_keeps_nothing() -> None:
    for report in compaction_records(records("token_budget")):
        assert report.items is not None
        assert report.items.kept == 0
        assert report.summary is None
        assert not report.opaque


def test_an_empty_summary_is_marked() -> None:
    (report,) = compaction_records(records("empty_summary"))
    assert report.summary == ""
    assert report.marks == ("the answer of the summary request was empty",)


def test_the_old_model_writes_the_summary_of_a_downshift() -> None:
    (report,) = compaction_records(records("model_downshift"))
    assert report.summariser is not None
    assert report.summariser.model == "toy-large"
    assert "60,800" in report.reason
    (change,) = events("model_downshift", e.ModelChanged)
    assert (change.previous, change.model, change.budget.limit) == (
        "toy-large",
        "toy-medium",
        19000,
    )


def test_the_cost_of_a_compaction_is_reported_apart_from_the_meter() -> None:
    costs = [
        usage
        for usage in events("mid_turn", e.UsageReported)
        if usage.purpose is e.Purpose.COMPACTION
    ]
    assert [(cost.usage.input_tokens, cost.response_id) for cost in costs] == [(6675, "resp_0004")]
    state = state_at(records("mid_turn"))
    assert state.usage is not None
    assert state.usage.total == 717
    assert state.summariser_usage is not None
    assert state.summariser_usage.input_tokens == 6675
    assert all(point.total != 6725 for point in state.points)


def test_cumulative_figures_never_reach_the_meter() -> None:
    for usage in events("pre_turn_twice", e.UsageReported):
        if usage.cumulative is not None:
            assert usage.usage.total <= 6500
    assert (
        max(u.cumulative.total for u in events("pre_turn_twice", e.UsageReported) if u.cumulative)
        > 6500
    )


def test_an_overflow_is_told_and_the_filled_count_is_no_report() -> None:
    (overflow,) = events("turn_overflow", e.ContextOverflowed)
    assert (overflow.purpose, overflow.limit) == (e.Purpose.TURN, 19000)
    (filled,) = [u for u in events("turn_overflow", e.UsageReported) if "overflow" in u.note]
    assert filled.estimated
    assert filled.usage.total == 18554
    assert not events("turn_overflow", e.CompactionFailed)


def test_compactions_that_overflowed_to_the_end_are_inferred() -> None:
    failed = [
        (report.line, report.phase, report.attempts, report.evidence)
        for report in compaction_records(records("compact_overflow_all"), unsuccessful=True)
    ]
    assert failed == [(26, MID, 6, "inferred"), (38, PRE, 6, "inferred")]
    overflows = events("compact_overflow_all", e.ContextOverflowed)
    assert {overflow.purpose for overflow in overflows} == {e.Purpose.COMPACTION}


def test_a_compaction_refused_by_the_server_is_seen_when_the_next_turn_compacts_at_once() -> None:
    first, second = compaction_records(records("compact_http500"), unsuccessful=True)
    assert (first.outcome, first.phase, first.evidence) == ("failed", MID, "inferred")
    assert "line 19" in first.reason
    assert second.outcome == "done"


def test_a_hook_that_stops_a_compaction_leaves_an_interrupted_turn() -> None:
    (end,) = events("hook_stops_compaction", e.TurnFinished)
    assert end.outcome == "interrupted"


def test_tool_runs_have_their_exit_code_and_size() -> None:
    state = state_at(records("mid_turn"))
    calls = [
        each.event.item.call_id
        for each in records("mid_turn")
        if isinstance(each.event, e.ItemAppended) and isinstance(each.event.item, FunctionCall)
    ]
    assert list(state.tools) == calls
    assert all(run.exit_code == 0 and run.size for run in state.tools.values())


@every_session
def test_reading_line_by_line_gives_what_reading_at_once_gives(name: str, tmp_path: Path) -> None:
    from thresher.core.sources.codex_events import Translator
    from thresher.core.sources.lines import LineReader

    data = gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())
    translator, reader = Translator(), LineReader()
    found: list[e.Record] = []
    for start in range(0, len(data), 997):
        for line in reader.feed(data[start : start + 997]):
            found += translator.feed(line)
    found += translator.flush()
    assert found == records(name)


def test_the_packed_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.iterdir()) < 1_500_000
