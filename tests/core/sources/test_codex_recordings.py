from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from thresher.core import events as e
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_items import METADATA
from thresher.core.sources.codex_tail import CodexTail
from thresher.core.sources.report import compaction_records, context_at, state_at

MORE = Path(__file__).parents[2] / "fixtures" / "codex" / "more"
groups = pytest.mark.parametrize("group", sorted(path.name for path in MORE.iterdir()))


class Row(NamedTuple):
    """A card: its line, its window, items before and after, tokens before, phase and cause."""

    line: int
    window: int
    before: int
    after: int
    tokens_before: int
    phase: str
    cause: str
    evidence: str = "recorded"


class Failed(NamedTuple):
    """A card of a compaction that was not applied."""

    line: int
    phase: str
    trigger: str
    outcome: str
    policy: str


MID, PRE, POST, MANUAL = "mid_turn", "pre_turn", "post_turn", "standalone_turn"
LIMIT, ASKED = "context_limit", "user_requested"
CARDS = {
    "compaction_cut_short": [Row(34, 1, 9, 5, 5271, PRE, LIMIT)],
    "compaction_cut_short_in_a_turn": [Row(32, 1, 10, 4, 5810, PRE, LIMIT)],
    "cut_short": [],
    "forks": [Row(24, 1, 6, 4, 6100, PRE, LIMIT), Row(16, 2, 10, 7, 743, MANUAL, ASKED)],
    "goal": [Row(42, 1, 11, 5, 2285, MANUAL, ASKED)],
    "images": [Row(38, 1, 10, 5, 6150, PRE, LIMIT), Row(65, 2, 9, 7, 6250, PRE, LIMIT)],
    "other_hash_refused": [Row(31, 1, 7, 5, 3052, PRE, "comp_hash_changed")],
    "post_turn": [Row(26, 1, 8, 4, 5503, POST, LIMIT), Row(60, 2, 10, 6, 6050, POST, LIMIT)],
    "remote_failures": [],
    "remote_v1": [
        Row(15, 1, 7, 4, 14602, MID, LIMIT),
        Row(25, 2, 5, 3, 12150, PRE, LIMIT),
        Row(48, 3, 9, 7, 12250, PRE, LIMIT),
    ],
    "reverts": [Row(38, 1, 10, 5, 6100, PRE, LIMIT), Row(7, 1, 10, 5, 6100, PRE, LIMIT)],
    "steered": [],
    "trims": [Row(39, 1, 10, 5, 703, MANUAL, ASKED), Row(61, 2, 7, 6, 649, MANUAL, ASKED)],
    "turn_errors": [],
    "v063": [
        Row(28, 1, 12, 4, 14626, MID, LIMIT, "derived"),
        Row(39, 2, 5, 4, 12150, MID, LIMIT, "derived"),
        Row(57, 3, 7, 5, 12250, MID, LIMIT, "derived"),
    ],
    "v098": [
        Row(24, 1, 11, 5, 13595, MID, LIMIT, "derived"),
        Row(35, 2, 7, 5, 14586, MID, LIMIT, "derived"),
        Row(49, 3, 9, 5, 13182, PRE, LIMIT, "derived"),
        Row(75, 4, 15, 7, 13282, PRE, LIMIT, "derived"),
    ],
    "v142": [Row(18, 1, 9, 4, 8606, MID, LIMIT), Row(30, 2, 6, 2, 6150, PRE, LIMIT)],
    "v151_rollbacks": [
        Row(30, 1, 11, 3, 12060, PRE, LIMIT),
        Row(65, 1, 7, 3, 12060, PRE, LIMIT),
    ],
}
FAILED = {
    "compaction_cut_short": [
        Failed(24, PRE, "auto", "aborted", "codex-local"),
        Failed(28, MANUAL, "manual", "aborted", "codex-local"),
    ],
    "compaction_cut_short_in_a_turn": [Failed(26, MID, "auto", "aborted", "codex-local")],
    "other_hash_refused": [Failed(24, PRE, "auto", "failed", "codex-local")],
    "remote_failures": [
        Failed(line, PRE, "auto", "failed", "codex-remote") for line in (29, 35, 40, 45)
    ],
}


def files(group: str) -> list[Path]:
    return sorted((MORE / group).glob("rollout-*"))


def sent(group: str) -> list[dict[str, Any]]:
    with gzip.open(MORE / group / "requests.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    inputs = {row["n"]: row["input"] for row in rows if "input" in row}
    return [{**row, "input": inputs[row.get("same_input_as", row["n"])]} for row in rows]


def rebuilt(group: str) -> list[RebuiltRequest]:
    return [request for path in files(group) for request in CodexSource(path).requests()]


def key(kind: str, items: list[dict[str, Any]]) -> str:
    plain = [{name: value for name, value in item.items() if name != METADATA} for item in items]
    return f"{kind} {json.dumps(plain, sort_keys=True)}"


def sent_key(row: dict[str, Any]) -> str:
    # The prompt of a local compaction, its last item, is not in the file.
    local = row["kind"] == "compaction" and not row["remote"]
    return key(row["kind"], row["input"][:-1] if local else row["input"])


@groups
def test_every_request_is_rebuilt_and_none_is_made_up(group: str) -> None:
    mine = [key(str(request.kind), request.input) for request in rebuilt(group)]
    theirs = {row["n"]: sent_key(row) for row in sent(group)}
    assert {n for n, wanted in theirs.items() if wanted not in mine} == set()
    assert [each for each in mine if each not in theirs.values()] == []


@groups
def test_requests_come_in_the_order_in_which_they_were_sent(group: str) -> None:
    order = {sent_key(row): row["n"] for row in reversed(sent(group))}
    for path in files(group):
        found = [order[key(str(each.kind), each.input)] for each in CodexSource(path).requests()]
        assert found == sorted(found)


@groups
def test_each_compaction_is_a_card_with_its_counts_phase_and_cause(group: str) -> None:
    found = [
        Row(
            card.line,
            card.window,
            card.items.before,
            card.items.after,
            card.tokens_before.value,
            card.phase,
            card.reason.split(":")[0],
            card.evidence,
        )
        for path in files(group)
        for card in compaction_records(CodexSource(path).read())
        if card.items and card.tokens_before
    ]
    assert found == CARDS[group]


@groups
def test_a_compaction_that_was_not_applied_is_a_card_too(group: str) -> None:
    found = [
        Failed(card.line, card.phase, str(card.trigger), card.outcome, card.policy)
        for path in files(group)
        for card in compaction_records(CodexSource(path).read(), unsuccessful=True)
        if card.outcome != "done"
    ]
    assert found == FAILED.get(group, [])


@groups
def test_phase_and_cause_are_those_that_the_program_told_the_provider(group: str) -> None:
    told = {
        (each["trigger"], each["reason"], each["phase"])
        for row in sent(group)
        if (each := row.get("compaction"))
    }
    cards = [*CARDS[group], *FAILED.get(group, [])]
    phases = {card.phase for card in cards}
    if told:
        assert {phase for _, _, phase in told} == phases
        assert {cause for _, cause, _ in told} >= {row.cause for row in CARDS[group]}
        manual = {phase for trigger, _, phase in told if trigger == "manual"}
        assert manual <= {MANUAL}


@groups
def test_the_slim_reading_tells_the_same(group: str, tmp_path: Path) -> None:
    for path in files(group):
        (tmp_path / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    for path in files(group):
        plain = tmp_path / path.stem
        whole = compaction_records(CodexSource(path).read(), unsuccessful=True)
        slim = list(CodexTail(plain, slim=True).more())
        assert compaction_records(slim, unsuccessful=True) == whole
        assert [record.n for record in slim] == [record.n for record in CodexSource(path).read()]


@groups
def test_nothing_in_a_recording_is_unknown(group: str) -> None:
    for path in files(group):
        state = state_at(list(CodexSource(path).read()))
        assert state.unknown == {}


# -- files that go on from one another -------------------------------------------------------------


def test_a_fork_shows_the_history_that_it_goes_on_from() -> None:
    _, fork, *_ = files("forks")
    records = list(CodexSource(fork).read())
    started = records[0].event
    assert isinstance(started, e.SessionStarted)
    assert started.parent.endswith("38858cf5f31c")
    assert (started.title, started.model) == ("first", "toy-medium")
    assert len(context_at(records, 0)) == 8
    (note,) = [each.event for each in records if isinstance(each.event, e.Note)]
    assert "goes on from" in note.text
    assert "1 compactions" in note.text


def test_a_fork_whose_beginning_is_not_at_hand_says_so(tmp_path: Path) -> None:
    fork = files("forks")[1]
    alone = tmp_path / fork.name
    alone.write_bytes(fork.read_bytes())
    (error,) = [
        each.event for each in CodexSource(alone).read() if isinstance(each.event, e.ErrorRaised)
    ]
    assert "not here" in error.message
    assert "ordinal 45" in error.message


def test_the_beginning_is_found_in_the_whole_codex_home(tmp_path: Path) -> None:
    base, fork, *_ = files("forks")
    away = tmp_path / "archived_sessions"
    day = tmp_path / "sessions" / "2026" / "11" / "30"
    away.mkdir(parents=True)
    day.mkdir(parents=True)
    (away / base.name).write_bytes(base.read_bytes())
    (day / fork.name).write_bytes(fork.read_bytes())
    assert len(context_at(list(CodexSource(day / fork.name).read()), 0)) == 8


def test_a_beginning_that_cannot_be_read_does_not_stop_the_rest(tmp_path: Path) -> None:
    base, fork, *_ = files("forks")
    (tmp_path / fork.name).write_bytes(fork.read_bytes())
    damaged = tmp_path / f"{base.stem}.zst"
    damaged.write_bytes(b"\x28\xb5\x2f\xfd\x00\x00")
    records = list(CodexSource(tmp_path / fork.name).read())
    (error,) = [each.event for each in records if isinstance(each.event, e.ErrorRaised)]
    assert "cannot be read" in error.message
    assert len(records) > 5


def test_files_that_go_on_from_one_another_in_a_circle_end(tmp_path: Path) -> None:
    for own, other in (("a1", "b2"), ("b2", "a1")):
        base = {"thread_id": other, "end_ordinal_exclusive": 5, "end_byte_offset": 9999}
        meta = {"id": own, "cli_version": "0.171.0", "history_base": base}
        line = {"timestamp": "2026-01-01T10:00:00Z", "ordinal": 0, "type": "session_meta"}
        text = json.dumps({**line, "payload": meta})
        (tmp_path / f"rollout-2026-01-01T10-00-00-{own}.jsonl").write_text(text + "\n")
    records = list(CodexSource(tmp_path / "rollout-2026-01-01T10-00-00-a1.jsonl").read())
    assert records


def test_what_a_revert_took_back_is_not_in_the_context() -> None:
    first, second, third, *_ = files("reverts")
    texts = [str(item.get("content")) for item in CodexSource(second).context_raw()]
    assert not any("'third'" in text for text in texts)
    assert any("other third" in text for text in texts)
    assert any("'third'" in str(item) for item in CodexSource(first).context_raw())
    assert any("other fourth" in str(item) for item in CodexSource(third).context_raw())


# -- tries -----------------------------------------------------------------------------------------


def test_tries_that_followed_at_once_are_trimmed_one_by_one() -> None:
    tries = [each for each in rebuilt("trims") if each.kind is e.Purpose.COMPACTION]
    assert [len(each.input) for each in tries] == [11, 10, 9, 8, 8, 7]
    assert [each.evidence for each in tries] == [
        "derived",
        *["inferred"] * 3,
        "derived",
        "inferred",
    ]
    assert {each.attempts for each in tries} == {1}


def test_tries_with_time_for_another_cause_between_them_stay_one_request(tmp_path: Path) -> None:
    (path,) = files("trims")
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    # The mark of the second of four tries.
    assert lines[33]["payload"]["type"] == "token_count"
    lines[33]["timestamp"] = lines[33]["timestamp"].replace("T08", "T07")
    slow = tmp_path / "slow.jsonl"
    slow.write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, *_ = [each for each in CodexSource(slow).requests() if each.kind is e.Purpose.COMPACTION]
    assert (first.attempts, len(first.input)) == (4, 11)
    assert "not in the file" in first.left_out


def test_a_request_that_was_cut_short_is_inferred() -> None:
    cut = [each for each in rebuilt("cut_short") if each.failed]
    assert [(each.failed, each.evidence, each.kind) for each in cut] == [
        ("interrupted", "inferred", e.Purpose.TURN)
    ]
