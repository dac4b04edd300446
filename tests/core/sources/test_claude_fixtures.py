from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.items import CompactionSummary, FunctionCallOutput, Message
from thresher.core.sources.claude_chain import Tree
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.claude_events import Translator
from thresher.core.sources.claude_items import CLEARED
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.lines import LineReader, read_lines
from thresher.core.sources.report import compaction_records, context_at, state_at
from thresher.core.sources.request_log import logged_requests
from thresher.core.sources.verify import verify
from thresher.core.tokens import Basis, Scope
from thresher.core.views import CardStatus

from .claude_rig import (
    AGENT,
    FIXTURES,
    NAMES,
    by_the_rules,
    first_lines,
    lines,
    sent,
    source,
    structure,
)


class Row(NamedTuple):
    line: int
    trigger: str
    before: int
    tokens_before: int
    tokens_after: int | None
    kept: int
    removed: int
    inserted: int


def old(line: int, tokens: int, items: int, trigger: str = "auto", inserted: int = 1) -> Row:
    return Row(line, trigger, items, tokens, None, 0, items, inserted)


COMPACTIONS = {
    "v1_0_128_auto_manual": [
        old(4, 198661, 4),
        old(9, 201196, 4),
        old(14, 225623, 4),
        old(19, 225623, 4),
        old(24, 249894, 4),
        old(29, 249894, 4),
        old(36, 274191, 6),
        old(43, 274191, 6),
        old(50, 274191, 6),
        old(61, 274191, 3),
        old(68, 201209, 4),
        old(74, 201209, 2, "manual", 4),
        old(84, 202990, 9),
    ],
    "v2_0_76_auto_manual": [
        old(20, 163678, 19),
        old(37, 172115, 16),
        old(47, 60029, 7, "manual", 4),
    ],
    "v2_0_76_microcompact": [],
    "v2_1_197_auto_thrash": [
        Row(21, "auto", 17, 67498, 6491, 4, 13, 4),
        Row(32, "auto", 12, 82444, 7927, 4, 8, 5),
        Row(44, "auto", 13, 92952, 8054, 4, 9, 5),
        Row(64, "auto", 17, 94024, 1884, 2, 15, 2),
        Row(86, "auto", 19, 70223, 3294, 5, 14, 2),
        Row(103, "auto", 17, 69896, 3296, 5, 12, 2),
    ],
    "v2_1_197_auto_twice": [
        Row(45, "auto", 40, 123546, 9522, 5, 35, 6),
        Row(69, "auto", 26, 126708, 9527, 5, 21, 6),
    ],
    "v2_1_197_compact_fails": [],
    "v2_1_197_manual_hooks": [
        Row(29, "manual", 14, 41446, 3431, 1, 13, 7),
        Row(52, "manual", 15, 51850, 1894, 1, 14, 6),
    ],
    "v2_1_197_persisted_output": [],
    "v2_1_197_reactive": [Row(35, "auto", 30, 15783, 9504, 5, 25, 6)],
    "v2_1_197_subagent": [],
    AGENT: [],
    "v2_1_70_resume_drops_parallel": [
        old(27, 171641, 24),
        old(66, 126012, 22, "manual", 4),
    ],
}

NO_RECORD = "the file holds no record of this request"
UNMATCHED = {
    ("v2_1_197_reactive", 8): NO_RECORD,
    **{("v2_1_197_compact_fails", n): NO_RECORD for n in (9, 10, 11, 13, 14, 15)},
}

USAGE = {
    "v2_1_197_auto_twice": (156002, 1404655, 1020),
    "v2_1_197_auto_thrash": (93457, 841680, 900),
    "v2_1_197_manual_hooks": (19675, 177255, 300),
    "v2_1_197_reactive": (17809, 160353, 780),
    "v2_1_197_compact_fails": (6623, 59656, 420),
    "v2_1_197_persisted_output": (4834, 43535, 420),
    "v2_1_197_subagent": (1884, 16976, 180),
    "v2_0_76_auto_manual": (148187, 1334346, 840),
    "v1_0_128_auto_manual": (325260, 2928172, 840),
    "v2_1_70_resume_drops_parallel": (175845, 1582866, 1020),
    "v2_0_76_microcompact": (116682, 1050309, 840),
}
"""Fresh input, cached input and output of all responses, each counted once."""

SEEN_LATER = {
    ("v2_1_70_resume_drops_parallel", 58),
    ("v2_0_76_microcompact", 34),
    ("v2_0_76_microcompact", 40),
}
"""That results were lost, cleared or came back shows only in the figures of the response."""

every_session = pytest.mark.parametrize("name", NAMES)


def records(name: str) -> list[e.Record]:
    return list(source(name).read())


def events(name: str, kind: type[e.Event]) -> list[Any]:
    return [each.event for each in records(name) if isinstance(each.event, kind)]


def test_every_recorded_session_is_in_the_table() -> None:
    assert set(NAMES) == set(COMPACTIONS)


@every_session
def test_a_recording_is_known_as_a_transcript(name: str) -> None:
    assert detect(FIXTURES / f"{name}.jsonl.gz").format is Format.CLAUDE_CODE


@every_session
def test_compactions_have_their_place_trigger_tokens_and_counts(name: str) -> None:
    found = [
        Row(
            report.line,
            report.trigger.value,
            report.items.before,
            report.tokens_before.value,
            report.tokens_after.value if report.tokens_after else None,
            report.items.kept,
            report.items.removed,
            report.items.inserted,
        )
        for report in compaction_records(records(name))
        if report.items and report.tokens_before
    ]
    assert found == COMPACTIONS[name]


@every_session
def test_a_compaction_is_recorded_and_its_figures_have_their_own_scope(name: str) -> None:
    for number, report in enumerate(compaction_records(records(name)), 1):
        assert report.ordinal == number
        assert report.evidence == "recorded"
        manual = report.trigger is Trigger.MANUAL
        assert report.reason_evidence == ("recorded" if manual else "unknown")
        assert report.tokens_before is not None
        assert report.tokens_before.scope is Scope.REQUEST
        if report.tokens_after is not None:
            assert not report.tokens_before.comparable(report.tokens_after)
            assert report.tokens_after.scope is Scope.MESSAGES
        assert report.summary is not None
        assert report.summary.startswith("1. Primary Request and Intent:")
    assert state_at(records(name)).removed_tokens == {}


@every_session
def test_requests_are_rebuilt_as_they_were_sent(name: str) -> None:
    rebuilt = list(source(name).requests())
    first = first_lines(name)
    for request in sent(name):
        wanted = structure(request["messages"])
        kind = e.Purpose.TURN if request["kind"] == "main" else e.Purpose.COMPACTION
        position = first.get(request["n"], -1) - 1
        found = [
            structure(each.input)
            for each in rebuilt
            if each.kind is kind and (kind is e.Purpose.COMPACTION or each.position == position)
        ]
        assert (wanted in found) == ((name, request["n"]) not in UNMATCHED), request["n"]


@pytest.mark.parametrize("name", sorted(USAGE))
def test_verifying_a_capture_finds_what_the_recordings_notes_say(name: str) -> None:
    log = list(logged_requests(FIXTURES / f"{name}.requests.jsonl.gz"))
    verdict = verify(source(name).requests(), log, ClaudeSource.plain)
    traceless = 6 if name == "v2_1_197_compact_fails" else 0
    assert (verdict.logged, verdict.differs) == (len(sent(name)), traceless)
    assert verdict.structure == len(sent(name)) - traceless


def test_the_rate_of_rebuilt_requests_is_the_one_that_is_claimed() -> None:
    stored = Counter(request["kind"] for name in NAMES for request in sent(name))
    kinds = {(name, request["n"]): request["kind"] for name in NAMES for request in sent(name)}
    missed = Counter(kinds[each] for each in UNMATCHED)
    assert (stored["main"] - missed["main"], stored["main"]) == (67, 68)
    assert (stored["compact"] - missed["compact"], stored["compact"]) == (27, 33)


@every_session
def test_the_folded_context_is_the_rebuilt_way_at_every_request(name: str) -> None:
    read, stored = records(name), lines(name)
    requests = [each for each in source(name).requests() if each.kind is e.Purpose.TURN]
    assert requests
    for request in requests:
        parent = stored[request.position + 1]["parentUuid"]
        tree = tree_at(name, request.position)
        gone = lost_lines(read, request.position)
        way = [node for node in tree.view(tree.nodes[parent]) if node.line not in gone]
        folded = context_at(read, request.position).items
        assert folded == tuple(item for node in way for item in node.items)


def tree_at(name: str, position: int) -> Tree:
    translator = Translator()
    for line in read_lines(FIXTURES / f"{name}.jsonl.gz"):
        if line.number <= position:
            translator.feed(line)
    return translator.reading.tree


def lost_lines(read: list[e.Record], position: int) -> set[int]:
    found: set[int] = set()
    for at, record in enumerate(read):
        if isinstance(record.event, e.UnannouncedReduction) and record.n <= position:
            before = context_at(read[:at])
            found |= {id.line for id in before.unspan(record.event.removed_ids)}
    return found


@every_session
def test_the_tree_gives_what_the_rules_give_when_written_down_again(name: str) -> None:
    stored, read = lines(name), records(name)
    for request in source(name).requests():
        if request.kind is e.Purpose.TURN:
            parent = stored[request.position + 1]["parentUuid"]
            tree = tree_at(name, request.position)
            leaf = tree.nodes[parent]
            found = {node.line for node in (*tree.way(leaf), *tree.view(leaf))}
            gone = lost_lines(read, request.position)
            assert found - gone == set(by_the_rules(stored, parent, request.position + 1)) - gone


@every_session
def test_context_raw_is_the_input_of_the_request_at_its_position(name: str) -> None:
    for request in source(name).requests():
        if request.kind is e.Purpose.TURN and (name, request.position) not in SEEN_LATER:
            assert source(name).context_raw(request.position) == request.input


@every_session
def test_the_fold_finds_no_fault_in_the_records(name: str) -> None:
    state = state_at(records(name))
    assert state.problems == []
    assert state.unknown == {}
    assert state.compactions == len(COMPACTIONS[name])


@every_session
def test_records_are_in_the_order_of_the_file(name: str) -> None:
    numbers = [record.n for record in records(name)]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0


@pytest.mark.parametrize("name", sorted(USAGE))
def test_every_response_is_counted_once_with_its_last_figures(name: str) -> None:
    last: dict[str, e.UsageReported] = {}
    for usage in events(name, e.UsageReported):
        last[usage.response_id] = usage
    fresh = sum(u.usage.input_tokens - (u.usage.cached_tokens or 0) for u in last.values())
    cached = sum(u.usage.cached_tokens or 0 for u in last.values())
    output = sum(u.usage.output_tokens for u in last.values())
    assert (fresh, cached, output) == USAGE[name]
    state = state_at(records(name))
    assert state.turns_total == fresh + cached + output
    assert len([point for point in state.points if point.card < 0]) == len(last)


def test_what_a_manual_compaction_was_asked_for_is_its_focus() -> None:
    first, second = compaction_records(records("v2_1_197_manual_hooks"))
    assert (first.focus, second.focus) == ("focus on log2", "")


def test_restored_files_and_the_summary_are_inserted_and_the_tail_is_kept_in_between() -> None:
    read = records("v2_1_197_auto_twice")
    after = context_at(read, 45).entries
    assert isinstance(after[0].item, CompactionSummary)
    assert len(after[0].origin) == 35
    assert [entry.id.line for entry in after[1:6]] == [39, 40, 41, 43, 44]
    files = [entry.item for entry in after[6:]]
    assert [item.text.split("\n")[0] for item in files] == [
        f"file: /home/user/project/log{n}.txt" for n in (6, 5, 4, 3, 2)
    ]
    assert all(isinstance(item, Message) and item.synthetic for item in files)


def test_versions_that_do_not_record_restored_files_are_marked() -> None:
    for name, marked in (("v2_0_76_auto_manual", True), ("v2_1_197_auto_twice", False)):
        for report in compaction_records(records(name)):
            assert any("does not record the files" in mark for mark in report.marks) == marked


def test_session_titles_are_no_compactions() -> None:
    notes = [note for note in events("v1_0_128_auto_manual", e.Note) if note.kind == "title"]
    assert len(notes) == 12
    assert notes[0].text == "title of a session: Scripted title (not a compaction)"


def test_a_silent_microcompaction_is_seen_by_two_signals_and_its_return_is_an_alarm() -> None:
    name = "v2_0_76_microcompact"
    (reduction,) = events(name, e.UnannouncedReduction)
    assert (reduction.before.value, reduction.after.value) == (145241, 76193)
    assert reduction.before.basis is Basis.REPORTED
    assert (reduction.kind, reduction.evidence) == ("microcompact", "inferred from two signals")
    assert len(reduction.signals) == 2
    (alarm,) = events(name, e.ContentReturned)
    assert (alarm.before.value, alarm.after.value) == (91524, 172443)
    state = state_at(records(name))
    (card,) = state.cards
    assert (card.status, card.ordinal, card.evidence) == (
        CardStatus.UNANNOUNCED,
        0,
        "inferred from two signals",
    )
    assert state.compactions == 0
    told = [(each.position, each.evidence, each.left_out) for each in source(name).requests()]
    assert told[-4:] == [
        (31, "derived", ""),
        (34, "inferred", ""),
        (37, "inferred", ""),
        (40, "derived", ""),
    ]


def test_which_results_a_silent_microcompaction_cleared_follows_from_its_rule() -> None:
    read = records("v2_0_76_microcompact")
    before, between, after = (context_at(read, line).items for line in (34, 37, 41))
    cleared = [
        at
        for at, item in enumerate(between)
        if isinstance(item, FunctionCallOutput) and item.output == CLEARED
    ]
    assert len(cleared) == 6
    assert [before[at].text for at in cleared] == [after[at].text for at in cleared]
    assert all(len(before[at].text) > len(CLEARED) for at in cleared)
    (card,) = state_at(read).cards
    assert (card.removed, card.replaced) == (0, 6)


def test_parallel_results_that_a_resume_loses_leave_the_context() -> None:
    name = "v2_1_70_resume_drops_parallel"
    (reduction,) = events(name, e.UnannouncedReduction)
    assert reduction.kind == "lost-results"
    assert reduction.evidence == "inferred from two signals"
    state = state_at(records(name), 58)
    results = [i.call_id for i in state.context.items if isinstance(i, FunctionCallOutput)]
    assert [each[-6:] for each in results] == ["0008_0", "0009_0", "0010_1", "0011_0", "0012_0"]
    gone = [id for id, fate in state.fates.items() if fate.unannounced]
    assert len(gone) == reduction.removed == 10


def test_restored_files_that_a_resume_no_longer_sends_are_seen_too() -> None:
    (reduction,) = events("v2_0_76_auto_manual", e.UnannouncedReduction)
    assert (reduction.kind, reduction.removed) == ("restored-files", 0)


def test_a_refused_request_is_an_overflow_and_never_enters_the_context() -> None:
    name = "v2_1_197_compact_fails"
    first, second = events(name, e.ContextOverflowed)
    assert (first.used, first.limit, second.used) == (15876, 14500, 15932)
    assert all("too long" not in item.text for item in context_at(records(name)).items)
    failed = [each for each in source(name).requests() if each.failed]
    assert [each.position for each in failed] == [33, 40]
    assert [end.outcome for end in events(name, e.TurnFinished)] == ["failed", "failed"]


def test_thrashing_opens_the_breaker_until_the_next_prompt() -> None:
    name = "v2_1_197_auto_thrash"
    (opened,) = events(name, e.BreakerOpened)
    assert opened.failures == 3
    assert state_at(records(name), 55).breaker_open
    assert not state_at(records(name), 63).breaker_open


def test_a_subagent_is_a_row_of_its_parent_and_a_session_of_its_own() -> None:
    (row,) = [n for n in events("v2_1_197_subagent", e.Note) if n.kind == "subagent"]
    assert "a7470dfd9d74177ee (general-purpose): completed, 2 tool calls, 8,426 tokens" in row.text
    started = records(AGENT)[0].event
    assert isinstance(started, e.SessionStarted)
    assert started.session_id == "a7470dfd9d74177ee"
    assert started.parent == "04cbf1f5-9dfb-4db7-a19e-06dcceba91d8"
    assert len(context_at(records(AGENT))) == 8


def test_a_subagent_is_called_what_it_was_asked_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "S" / "subagents"
    folder.mkdir(parents=True)
    path = folder / "agent-a7470dfd9d74177ee.jsonl"
    path.write_bytes(gzip.decompress((FIXTURES / f"{AGENT}.jsonl.gz").read_bytes()))
    path.with_suffix(".meta.json").write_bytes((FIXTURES / f"{AGENT}.meta.json").read_bytes())
    started = next(ClaudeSource(path).read()).event
    assert isinstance(started, e.SessionStarted)
    assert started.title == "general-purpose: Count lines"


def test_the_session_is_described_in_its_first_record() -> None:
    first = records("v2_1_197_auto_twice")[0].event
    assert isinstance(first, e.SessionStarted)
    assert (first.agent, first.version, first.model) == (
        "claude-code",
        "2.1.197",
        "claude-sonnet-4-5",
    )
    assert first.title.startswith("Read log1.txt to log6.txt")
    assert first.budget is not None
    assert first.budget.window.source


def test_a_persisted_output_is_found_beside_the_transcript_only(tmp_path: Path) -> None:
    session = tmp_path / "project" / "S.jsonl"
    outputs = tmp_path / "project" / "S" / "tool-results"
    outputs.mkdir(parents=True)
    packed = (FIXTURES / "v2_1_197_persisted_output.jsonl.gz").read_bytes()
    session.write_bytes(gzip.decompress(packed))
    (outputs / "bedfkgwzb.txt").write_text("the whole of it")
    saved = [
        item.saved
        for item in context_at(list(ClaudeSource(session).read())).items
        if isinstance(item, FunctionCallOutput)
    ]
    assert saved[0] == str(outputs / "bedfkgwzb.txt")
    assert not any(saved[1:])


def test_a_link_out_of_the_folder_is_no_persisted_output(tmp_path: Path) -> None:
    session = tmp_path / "S.jsonl"
    outputs = tmp_path / "S" / "tool-results"
    outputs.mkdir(parents=True)
    (tmp_path / "secret").write_text("not beside the transcript")
    (outputs / "bedfkgwzb.txt").symlink_to(tmp_path / "secret")
    packed = (FIXTURES / "v2_1_197_persisted_output.jsonl.gz").read_bytes()
    session.write_bytes(gzip.decompress(packed))
    items = context_at(list(ClaudeSource(session).read())).items
    assert not any(item.saved for item in items if isinstance(item, FunctionCallOutput))


@every_session
def test_reading_in_pieces_gives_what_reading_at_once_gives(name: str) -> None:
    data = gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())
    translator, reader = Translator(), LineReader()
    found: list[e.Record] = []
    for start in range(0, len(data), 9973):
        for line in reader.feed(data[start : start + 9973]):
            found += translator.feed(line)
    found += translator.flush()
    assert found == records(name)


def test_the_packed_recordings_stay_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.iterdir()) < 800_000
