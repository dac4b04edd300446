from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.context import EntryId, Inserted, Kept, Replaced
from thresher.core.errors import ThresherError
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    assistant,
    system,
    user,
)
from thresher.core.sessions.journal import running
from thresher.core.sessions.resume import INTERRUPTED, orphans, read, resume
from thresher.core.sessions.session import Session
from thresher.core.state import CardStatus, RowKind, SessionState, Status, ToolStatus
from thresher.core.validate import Dialect, validate

ROOT = Path(__file__).parents[3]
RANDOM = runpy.run_path(str(Path(__file__).parent.with_name("random_sessions.py")))
steps, play, snapshot, compacted = (
    RANDOM[name] for name in ("steps", "play", "snapshot", "compacted")
)

STARTED = e.SessionStarted(session_id="", agent="thresher", model="m", policy="a-policy-long-gone")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    made = Session.create(tmp_path, STARTED)
    say(made, system("rules"), user("do it"))
    return made


def say(session: Session, *items: Item) -> list[EntryId]:
    return [EntryId(session.emit(e.ItemAppended(item=item, turn=1)).n) for item in items]


def killed(session: Session) -> Path:
    """What a killed process leaves: the file as it is, and no lock."""
    session._journal.close()
    return session.path


def folded(records: Sequence[e.Record]) -> SessionState:
    state = SessionState()
    for record in records:
        state.apply(record)
    return state


def answered_by_resume(session: Session) -> list[str]:
    return [
        entry.item.call_id
        for entry in session.state.context
        if isinstance(entry.item, FunctionCallOutput) and entry.item.output == INTERRUPTED
    ]


# -- replay ------------------------------------------------------------------------------------


def test_a_closed_session_goes_on_where_it_was(session: Session) -> None:
    session.close("done")
    before = session.path.read_bytes()
    with resume(session.path, clock=lambda: 77.0) as again:
        assert again.id == session.id
        assert again.history.records[:-1] == session.history.records
        assert again.state.context == session.state.context
        assert again.history.records[-1] == e.Record(4, 77.0, e.SessionResumed())
        assert again.notes == ()
        assert again.state.finished is False
        assert again.next_line == again.bus.published == 5
        again.emit(e.ItemAppended(item=user("and now this")))
    after = session.path.read_bytes()
    assert after.startswith(before)
    assert read(session.folder).records == again.history.records


@given(steps(30))
def test_a_resumed_session_has_the_very_state_of_the_one_that_was_killed(
    tmp_path_factory: pytest.TempPathFactory, script: list[Any]
) -> None:
    session = Session.create(tmp_path_factory.getbasetemp() / "resumed", STARTED)
    say(session, system("rules"))
    play(session, script)
    path = killed(session)
    count = len(session.history)
    with resume(path) as again:
        at_the_kill = again.history.at(count)
        assert snapshot(at_the_kill) == snapshot(session.state.settled())
        assert at_the_kill.context.digest() == session.state.context.digest()
        assert again.state.context.entries[: len(session.state.context)] == (
            session.state.context.entries
        )
        assert all(card.status is not CardStatus.RUNNING for card in again.state.cards)
        assert again.state.status is Status.IDLE
        still_open = [o.id for o in orphans(again.history.records)]
        assert all(again.state.context.get(id) is None for id in still_open)
    with resume(path) as once_more:
        assert once_more.history.records[-1].event == e.SessionResumed(
            notes=tuple(note for note in again.notes if "compaction removed it" in note)
        )


@given(steps(12), st.data())
def test_a_journal_cut_at_any_byte_keeps_every_whole_record(
    tmp_path_factory: pytest.TempPathFactory, script: list[Any], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    # A fixed clock, so that one script is always the same bytes.
    session = Session.create(folder, STARTED, clock=lambda: 1.5, new_id=lambda _: "one")
    say(session, system("rules"), user("go"))
    play(session, script)
    whole = killed(session).read_bytes()
    for cut in data.draw(st.lists(st.integers(0, len(whole)), min_size=1, max_size=12)):
        path = folder / "cut.jsonl"
        path.write_bytes(whole[:cut])
        # Without its newline a record is whole as soon as its last brace is there.
        kept = sum(at <= cut for at, byte in enumerate(whole) if byte == ord("\n"))
        expected = session.history.records[:kept]
        if not any(isinstance(record.event, e.ItemAppended) for record in expected):
            with pytest.raises(ThresherError, match=r"Not a session|Nothing to resume"):
                resume(path)
            assert path.read_bytes() == whole[:cut]
            continue
        again = resume(path)
        assert again.history.records[:kept] == expected
        assert snapshot(again.history.at(kept)) == snapshot(folded(expected))
        again.close()
        assert read(path) == (again.history.records, ())


@pytest.fixture
def eventful(session: Session) -> bytes:
    """The bytes of a session with a turn, calls, a compaction and an open call."""
    session.emit(e.TurnStarted(turn=1))
    say(session, FunctionCall("a", "bash", "{}"), FunctionCall("b", "grep", "{}"))
    say(session, FunctionCallOutput("a", "é" * 3), FunctionCallOutput("b", "x"))
    session.emit(e.CompactionStarted(pass_id="p", policy="x"))
    summary = Inserted(CompactionSummary("s"), "2-4")
    compacted(session, [Kept("1", "1"), summary], pass_id="p", text="s")
    say(session, FunctionCall("c", "bash", "{}"))
    return killed(session).read_bytes()


def test_a_journal_cut_at_every_single_byte_reads_back_to_its_last_whole_record(
    session: Session, eventful: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "cut.jsonl"
    ends = [at for at, byte in enumerate(eventful) if byte == ord("\n")]
    for cut in range(len(eventful) + 1):
        path.write_bytes(eventful[:cut])
        kept = sum(end <= cut for end in ends)
        torn = cut not in {0, *ends, *(end + 1 for end in ends)}
        records, problems = read(path)
        assert records[:kept] == session.history.records[:kept]
        assert [problem.line for problem in problems] == [kept] * torn


def test_a_journal_cut_around_any_line_end_is_resumed_to_a_context_that_can_be_sent(
    session: Session, eventful: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "cut.jsonl"
    ends = [at for at, byte in enumerate(eventful) if byte == ord("\n")]
    for end in ends[2:]:
        for cut in (end - 30, end - 1, end, end + 1):
            path.write_bytes(eventful[:cut])
            with resume(path) as again:
                kept = sum(at <= cut for at in ends)
                assert again.history.records[:kept] == session.history.records[:kept]
                if kept > 2:  # the user's message is there
                    assert validate(again.state.context.items, Dialect.CHAT) == []


def test_replay_needs_no_policy_no_engine_and_no_model(session: Session) -> None:
    compacted(session, [Kept("2", "2")], pass_id="p", text="s")
    digest = session.state.context.digest()
    path = killed(session)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from thresher.core.sessions.resume import resume\n"
        "with resume(Path(sys.argv[1])) as again:\n"
        "    print(again.state.context.digest())\n"
        "print([m for m in sys.modules if m.startswith('thresher.')\n"
        "       and any(w in m for w in ('policies', 'engine', 'gateway', 'agent'))])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / ".dev")},
    )  # fmt: skip
    assert run.stdout.split("\n")[:2] == [digest, "[]"]


def test_reading_needs_no_lock_and_changes_nothing(session: Session) -> None:
    with session.path.open("ab") as file:
        file.write(b'{"n":3,')
    before = session.path.read_bytes()
    records, problems = read(session.path)
    assert running(session.path)
    assert records[:3] == session.history.records
    assert [problem.kind for problem in problems] == ["torn line"]
    assert folded(records).problems == list(problems)
    assert session.path.read_bytes() == before
    killed(session)


# -- what was damaged --------------------------------------------------------------------------


def test_a_torn_tail_is_cut_off_and_told(session: Session) -> None:
    path = killed(session)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"n":3,"at":1')
    with resume(path) as again:
        pass
    (note,) = again.notes
    assert note == (
        f"the last line was not written to its end: 13 bytes from byte {len(whole):,} on were "
        "cut off"
    )
    assert path.read_bytes().startswith(whole + b'{"n":3,"at":')
    assert b'"session_resumed"' in path.read_bytes()
    assert read(path).problems == ()


def test_a_bad_line_in_the_middle_is_kept_shown_and_counted_at_every_resume(
    session: Session,
) -> None:
    path = killed(session)
    with path.open("ab") as file:
        file.write(b"\x00\x00\x00\n")
    for _ in range(2):
        with resume(path) as again:
            say(again, user("more"))
        assert "line 3" in again.notes[0]
        assert "NUL" in again.notes[0]
        (problem,) = again.state.problems
        assert (problem.kind, problem.line) == ("bad line", 3)
        assert sum(row.kind is RowKind.ERROR for row in again.state.rows) == 1
    assert path.read_bytes().splitlines()[3] == b"\x00\x00\x00"
    assert [entry.id.line for entry in again.state.context] == [1, 2, 5, 8]


def test_a_context_that_no_longer_matches_its_digest_is_told_and_never_silent(
    session: Session,
) -> None:
    say(session, assistant("the original answer"))
    compacted(session, [Kept("1", "3")], pass_id="p", text="s")
    path = killed(session)
    path.write_bytes(path.read_bytes().replace(b"original", b"tampered"))
    with resume(path) as again:
        pass
    assert "differs from the recorded digest" in again.notes[0]
    assert any("differs" in problem.message for problem in again.state.problems)
    assert isinstance(again.history.records[-2].event, e.SessionResumed)
    assert again.history.records[-2].event.notes == again.notes


def test_a_lost_line_that_a_compaction_needs_is_told(session: Session) -> None:
    (answer,) = say(session, assistant("x"))
    compacted(session, [Kept("1", "1"), Kept(answer.bare, answer.bare)], pass_id="p", text="s")
    path = killed(session)
    lines = path.read_bytes().split(b"\n")
    lines[answer.line] = b"#" * len(lines[answer.line])
    path.write_bytes(b"\n".join(lines))
    with resume(path) as again:
        pass
    assert again.state.cards[0].status is CardStatus.BROKEN
    assert any("does not fit the context" in note for note in again.notes)


def test_records_of_a_newer_version_are_counted_and_kept(session: Session) -> None:
    path = killed(session)
    with path.open("ab") as file:
        file.write(b'{"n":3,"at":1.0,"event":{"event":"mind_read"}}\n')
    with resume(path) as again:
        pass
    assert again.state.unknown == {"mind_read": 1}
    assert b"mind_read" in path.read_bytes()


@pytest.mark.parametrize(
    ("data", "title"),
    [
        (b"", "Not a session"),
        (b"\n", "Not a session"),
        (b'{"type":"session_meta","payload":{}}\n', "Not a session"),
        (b"\x00" * 99, "Not a session"),
        (e.encode(e.Record(0, 0.0, STARTED)) + b"\n", "Nothing to resume"),
        (e.encode(e.Record(0, 0.0, STARTED)) + b'\n{"n":1', "Nothing to resume"),
    ],
)
def test_what_cannot_be_resumed_is_refused_unchanged_and_unlocked(
    tmp_path: Path, data: bytes, title: str
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(data)
    with pytest.raises(ThresherError) as refused:
        resume(path)
    assert refused.value.title == title
    assert str(path) in refused.value.msg
    assert path.read_bytes() == data
    assert not running(path)


def test_a_session_that_is_being_written_cannot_be_resumed(session: Session) -> None:
    with pytest.raises(ThresherError, match="being written by another program"):
        resume(session.path)
    session.close()


# -- what was going on -------------------------------------------------------------------------


def test_a_call_without_a_result_gets_one_that_says_so(session: Session) -> None:
    session.emit(e.TurnStarted(turn=1))
    say(session, FunctionCall("a", "bash", "{}"), FunctionCall("b", "bash", "{}"))
    session.emit(e.ToolStarted(call_id="a", name="bash"))
    say(session, FunctionCallOutput("a", "fine"))
    session.emit(e.ToolStarted(call_id="b", name="bash"))
    path = killed(session)
    with resume(path) as again:
        output = again.state.context.entries[-1].item
        events = [record.event for record in again.history.records[-3:]]
    assert output == FunctionCallOutput("b", INTERRUPTED, name="bash", is_error=True)
    assert "SESSION_RESUME_INTERRUPTED" in INTERRUPTED
    assert [e.event_name(event) for event in events] == [
        "item_appended", "turn_finished", "session_resumed"
    ]  # fmt: skip
    assert events[1] == e.TurnFinished(
        turn=1, outcome="interrupted", message="the session was cut off"
    )
    assert isinstance(events[2], e.SessionResumed)
    assert events[2].repaired == ("b",)
    assert (
        again.notes
        == events[2].notes
        == ("the call #5 (bash) had no result and got one that says so",)
    )
    assert again.state.tools["b"].status is ToolStatus.FAILED
    assert validate(again.state.context.items, Dialect.CHAT) == []


def test_a_call_that_was_waiting_for_the_users_word_is_closed(session: Session) -> None:
    session.emit(e.TurnStarted(turn=1))
    say(session, FunctionCall("a", "bash", "{}"))
    session.emit(e.ApprovalRequested(call_id="a", name="bash"))
    with resume(killed(session)) as again:
        assert again.state.approval is None
        assert answered_by_resume(again) == ["a"]
        assert validate(again.state.context.items, Dialect.RESPONSES) == []


def test_a_second_kill_during_the_repair_leaves_the_rest_for_the_next_resume(
    session: Session,
) -> None:
    say(session, *(FunctionCall(id, "bash", "{}") for id in "abc"))
    path = killed(session)
    with resume(path):
        pass
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7]) + lines[7][:-9])
    with resume(path) as again:
        assert answered_by_resume(again) == ["a", "b", "c"]
    events = [record.event for record in again.history.records]
    resumed = [event for event in events if isinstance(event, e.SessionResumed)]
    assert [event.repaired for event in resumed] == [("b", "c")]


def test_an_id_that_was_used_before_does_not_hide_an_open_call(session: Session) -> None:
    say(session, FunctionCall("call_0", "bash", "1"), FunctionCallOutput("call_0", "one"))
    say(session, FunctionCall("call_0", "bash", "2"))
    with resume(killed(session)) as again:
        assert answered_by_resume(again) == ["call_0"]
        assert validate(again.state.context.items, Dialect.CHAT) == []


def test_an_open_call_that_a_compaction_removed_gets_no_result_but_a_note(
    session: Session,
) -> None:
    say(session, FunctionCall("a", "bash", "{}"))
    compacted(session, [Kept("1", "2")], pass_id="p", text="s")
    with resume(killed(session)) as again:
        assert answered_by_resume(again) == []
        assert again.notes == ("the call #3 (bash) had no result when a compaction removed it",)


def test_of_two_open_calls_with_one_id_the_one_still_there_is_answered_once(
    session: Session,
) -> None:
    say(session, FunctionCall("a", "bash", "{}"))
    compacted(session, [Kept("1", "2")], pass_id="p", text="s")
    say(session, FunctionCall("a", "bash", "{}"))
    with resume(killed(session)) as again:
        assert answered_by_resume(again) == ["a"]
    with resume(session.path) as once_more:
        assert answered_by_resume(once_more) == ["a"]
        assert [str(each.id) for each in orphans(once_more.history.records)] == ["#3"]


def test_an_open_call_that_a_compaction_rewrote_gets_its_result(session: Session) -> None:
    say(session, FunctionCall("a", "bash", "very long"))
    segments = [Kept("1", "2"), Replaced("3", FunctionCall("a", "bash", "short"))]
    compacted(session, segments, pass_id="p", text="s")
    with resume(killed(session)) as again:
        assert answered_by_resume(again) == ["a"]
        assert validate(again.state.context.items, Dialect.CHAT) == []


def test_a_call_with_a_result_outside_the_context_is_not_answered_again(
    session: Session,
) -> None:
    say(session, FunctionCall("a", "bash", "{}"), FunctionCallOutput("a", "x"))
    compacted(session, [Kept("1", "3")], pass_id="p", text="a fault let through")
    with resume(killed(session)) as again:
        assert again.notes == ()
        assert answered_by_resume(again) == []


def test_a_result_that_cannot_stand_beside_its_call_is_told(session: Session) -> None:
    say(session, FunctionCall("a", "bash", "{}"), user("from a careless program"))
    with resume(killed(session)) as again:
        assert answered_by_resume(again) == ["a"]
        assert "stands after them" in again.notes[0]


def test_a_compaction_that_was_running_is_ended_as_aborted(session: Session) -> None:
    session.emit(
        e.CompactionStarted(
            pass_id="p", policy="x", stage="full", moment=Moment.MANUAL, trigger=Trigger.MANUAL
        )
    )
    session.emit(e.MessageDelta(text="so far", channel="summary", pass_id="p"))
    with resume(killed(session)) as again:
        (card,) = again.state.cards
        assert (card.status, card.trigger) == (CardStatus.ABORTED, Trigger.MANUAL)
        assert again.state.failures == 0
        assert again.state.status is Status.IDLE


@pytest.mark.parametrize("pending", [True, False])
def test_the_first_request_after_a_resume_that_ends_in_a_compaction_is_valid(
    session: Session, pending: bool
) -> None:
    say(session, FunctionCall("a", "bash", "{}"), FunctionCallOutput("a", "x"), user("pending"))
    kept = [Kept("5", "5")] if pending else []
    summary = Inserted(CompactionSummary("s"), "2-5" if not pending else "2-4")
    compacted(session, [Kept("1", "1"), summary, *kept], pass_id="p", text="s")
    with resume(killed(session)) as again:
        items = again.state.context.items
        assert items == session.state.context.items
        assert len(items) == 2 + pending
        assert validate(items, Dialect.CHAT) == []


def test_several_compactions_are_replayed_in_order(session: Session) -> None:
    for number in range(5):
        say(session, user(f"question {number}"), assistant("answer"))
        context = session.state.context
        gone = context.span(context.ids[1:-1])
        segments = [*context.keep([0]), Inserted(CompactionSummary(f"sum {number}"), gone)]
        compacted(session, [*segments, *context.keep([len(context) - 1])], pass_id=f"p{number}",
                  text="s")  # fmt: skip
    with resume(killed(session)) as again:
        assert again.state.context == session.state.context
        assert again.state.compactions == 5
        assert [card.status for card in again.state.cards] == [CardStatus.DONE] * 5


# -- killed ------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from thresher.core import events as e
from thresher.core.items import system, user
from thresher.core.sessions.session import Session

session = Session.create(Path(sys.argv[1]), e.SessionStarted(session_id="k", agent="thresher"))
session.emit(e.ItemAppended(item=system("rules")))
for number in range(1_000_000):
    record = session.emit(e.ItemAppended(item=user("x" * (number % 900))))
    sys.stdout.write(f"{record.n}\\n")
    sys.stdout.flush()
"""


def test_a_process_that_is_killed_loses_nothing_that_it_has_told(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / ".dev")},
    )  # fmt: skip
    assert writer.stdout is not None
    with writer:
        told = [int(writer.stdout.readline()) for _ in range(200)]
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    (path,) = tmp_path.rglob("journal.jsonl")
    data = path.read_bytes()
    assert not running(path)
    with resume(path) as again:
        numbers = [record.n for record in again.history.records]
        items = again.state.context.items[1:]
    # The line being written at the very moment may have got through without being told.
    assert len(told) <= len(items) <= len(told) + 1
    assert numbers == list(range(len(numbers)))
    assert items == tuple(user("x" * (number % 900)) for number in range(len(items)))
    assert path.read_bytes().startswith(data[: data.rindex(b"\n") + 1])
