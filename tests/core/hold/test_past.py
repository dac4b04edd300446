from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.debug.stop import Stop
from thresher.core.hold import past
from thresher.core.hold.desk import Desk
from thresher.core.hold.foreseen import asking, foreseen, policy_of, situation_of, stop_of
from thresher.core.hold.messages import Request
from thresher.core.hold.programs import CLAUDE_CODE, CODEX, PROGRAMS
from thresher.core.sessions.journal import JOURNAL_NAME
from thresher.core.sources.opening import open_source
from thresher.core.state import SessionState

from ...command_line import codex_session
from ..sources.claude_made import Made, call
from .hooks import Waiting

RULE = "Prices stay integers in cents."


def transcript(path: Path, *, compacted: float | None = None) -> Path:
    """Two rounds, and a compaction at this time (seconds since the epoch) behind them."""
    made = Made()
    made.user(RULE, timestamp="2026-11-30T08:00:00Z")
    made.says("m1", call("t1"), input=150_000)
    made.result("t1", "a long list\n" * 400)
    made.says("m2", call("t2"), input=168_000)
    made.result("t2", "short")
    if compacted is not None:
        made.boundary()
        made.lines[-1]["timestamp"] = stamp(compacted)
        made.user("This session is being continued: sums it up.", isCompactSummary=True)
    return made.write(path)


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


class Hold:
    """A session with holds on record, by a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.at = 1_796_030_000.0
        self.desk = Desk(path, CLAUDE_CODE, version="2.1.197", clock=lambda: self.at)
        self.desk.set_break("compaction")

    def held(self, seconds: float, decide: str, focus: str = "") -> float:
        """Hold it so long, then decide; gives the time of the end."""
        self.desk._stop(Request(f"r{int(self.at)}", self.at, self.at + 600, "auto"))
        self.at += seconds
        if decide == "go on":
            self.desk.go_on(focus)
        elif decide == "skip":
            self.desk.skip()
        return self.at


def marks(path: Path) -> list[str]:
    """What the cards say of holds."""
    source = open_source(path)
    records = past.with_holds(path, source.agent, source.read())
    events = [each.event for each in records if isinstance(each.event, e.HistoryCompacted)]
    assert len(events) == 1
    return [mark for mark in events[0].marks if mark.startswith("held")]


@pytest.mark.parametrize(
    ("decide", "focus", "mark"),
    [
        ("go on", "keep the rules", "held 12 s, focus given by the user"),
        ("go on", "", "held 12 s, let go by the user"),
        ("close", "", "held 12 s, the console was closed"),
    ],
)
def test_the_card_of_the_compaction_that_follows_says_how_long_it_was_held(
    tmp_path: Path, decide: str, focus: str, mark: str
) -> None:
    path = tmp_path / "S.jsonl"
    hold = Hold(path)
    ended = hold.held(12, decide, focus)
    hold.desk.close()
    assert marks(transcript(path, compacted=ended + 3)) == [mark]


def test_a_compaction_that_was_skipped_or_is_long_after_is_not_marked(tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    hold = Hold(path)
    ended = hold.held(5, "skip")
    assert marks(transcript(path, compacted=ended + 3)) == []
    ended = hold.held(5, "go on")
    hold.desk.close()
    assert marks(transcript(path, compacted=ended + past.LATEST + 1)) == []


def test_what_was_decided_is_told_among_the_records_at_its_time(tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    hold = Hold(path)
    ended = hold.held(5, "go on", "keep the rules")
    hold.desk.close()
    transcript(path, compacted=ended + 3)
    source = open_source(path)
    told = [each.event for each in past.with_holds(path, source.agent, source.read())]
    kinds = [type(event) for event in told]
    stopped, compacted = kinds.index(e.DebuggerStopped), kinds.index(e.HistoryCompacted)
    assert kinds[stopped : stopped + 4] == [
        e.DebuggerStopped, e.CompactionDecided, e.CompactionDecided, e.DebuggerContinued,
    ]  # fmt: skip
    assert stopped < compacted


def test_a_hold_whose_console_died_ended_with_it_and_stops_nothing_later(tmp_path: Path) -> None:
    path = transcript(tmp_path / "S.jsonl")
    hold = Hold(path)
    hold.held(0, "nothing")
    records = past.on_record(path)
    assert isinstance(records[-1].event, e.DebuggerContinued)
    state = SessionState()
    source = open_source(path)
    for record in past.with_holds(path, source.agent, source.read()):
        state.apply(record)
    assert state.stopped is None
    hold.desk.close()


def test_a_journal_of_ours_that_is_damaged_is_no_reason_not_to_show_the_session(
    tmp_path: Path,
) -> None:
    waiting = Waiting(tmp_path)
    waiting.desk.close()
    file = waiting.desk._folder / JOURNAL_NAME
    file.write_bytes(b"\x00\n{]\n" + file.read_bytes()[:-20])
    assert past.on_record(waiting.transcript) == []
    file.unlink()
    file.mkdir()
    assert past.on_record(waiting.transcript) == []


def test_nothing_is_written_beside_the_session(tmp_path: Path) -> None:
    path = transcript(tmp_path / "S.jsonl")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    hold = Hold(path)
    hold.held(1, "go on", "keep it")
    hold.desk.close()
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


TIMES = st.lists(st.integers(0, 50), max_size=12)


@given(session=TIMES, holds=TIMES)
def test_every_record_of_a_session_and_of_its_holds_is_told_once_and_in_order(
    session: list[int], holds: list[int]
) -> None:
    ours = [e.Record(0, at, e.BreakpointSet(text=f"{at}")) for at in sorted(holds)]
    theirs = [e.Record(n, at, e.Note(kind="x", text=str(n))) for n, at in enumerate(session)]
    among = past.Among(ours)
    found = [each for record in theirs for each in among.feed(record)]
    found += among.rest()
    assert [each for each in found if isinstance(each.event, e.Note)] == theirs
    assert [each.event for each in found if isinstance(each.event, e.BreakpointSet)] == [
        each.event for each in ours
    ]
    lines = [each.n for each in found]
    assert lines == sorted(lines)


# -- the forecast --------------------------------------------------------------------------------


def forecast(path: Path, trigger: str = "auto") -> tuple[Stop, Any]:
    source, state = open_source(path), SessionState()
    for record in source.read():
        state.apply(record)
    program = PROGRAMS[state.agent]
    desk = Desk(path, program, version=state.version)
    desk._stop(Request("r1", 0.0, 1.0, trigger))
    held = desk.held
    assert held is not None
    situation = situation_of(state, program, held)
    found = foreseen(situation, policy_of(state, program), held, state.position + 1, 1)
    return stop_of(state, program, state.version, held), found


@pytest.mark.parametrize("trigger", ["auto", "manual", "", "something new"])
def test_claude_code_is_foreseen_by_its_policy_with_a_stand_in_for_the_summary(
    tmp_path: Path, trigger: str
) -> None:
    stop, found = forecast(transcript(tmp_path / "S.jsonl"), trigger)
    assert found.policy == "claude-code"
    assert len(found.change.removed) == 3
    assert "offline stand-in" in found.edit.summary.model
    assert RULE in found.edit.summary.text
    assert "168,010 tokens reported" in stop.reason
    assert stop.outside is not None
    assert stop.outside.may_focus
    assert "pins" in stop.outside.cannot


def test_codex_is_foreseen_also_where_its_limit_is_another_than_is_known_here(
    tmp_path: Path,
) -> None:
    stop, found = forecast(codex_session(tmp_path, "hook_stops_compaction"))
    assert found.policy == "codex"
    assert found.after.value < found.before.value
    assert stop.outside is not None
    assert not stop.outside.may_focus
    assert "interrupted" in stop.outside.skipping


def test_what_is_asked_of_a_model_holds_the_focus_and_the_texts_and_is_bounded() -> None:
    told = asking("the rules", [f"{number} " + "x" * 5_000 for number in range(20)])
    assert told.startswith("the rules\n\nKeep these texts word for word in the summary:\n- 0 xxx")
    assert len(told) <= 12_000
    assert asking("", []) == ""


def test_the_settings_that_are_printed_are_in_the_form_of_each_program() -> None:
    command = 'a "b" \\c hook --timeout 600'
    claude = json.loads(CLAUDE_CODE.setting(command))["hooks"]["PreCompact"][0]["hooks"][0]
    assert claude == {"type": "command", "command": command, "timeout": 600}
    codex = tomllib.loads(CODEX.setting(command))["hooks"]["PreCompact"][0]["hooks"][0]
    assert codex == claude
