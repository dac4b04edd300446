from __future__ import annotations

import os
import resource
import runpy
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.context import Kept
from thresher.core.errors import ThresherError
from thresher.core.items import FunctionCallOutput, system, user
from thresher.core.paths import cache_dir, config_dir, ensure_dir, sessions_dir, state_dir
from thresher.core.sessions.journal import running
from thresher.core.sessions.resume import read
from thresher.core.sessions.session import Session, session_id
from thresher.core.state import SessionState

RANDOM = runpy.run_path(str(Path(__file__).parent.with_name("random_sessions.py")))
steps, play, snapshot = (RANDOM[name] for name in ("steps", "play", "snapshot"))

STARTED = e.SessionStarted(session_id="", agent="thresher", model="m", policy="teaching")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session.create(tmp_path, STARTED)
    yield made
    made.close()


def replayed(path: Path) -> SessionState:
    state = SessionState()
    for record in read(path).records:
        state.apply(record)
    return state


@contextmanager
def full_disk() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def as_somebody_who_may_not(folder: Path) -> Iterator[None]:
    """The folder is closed to writing; root, whom no mode stops, becomes nobody for a while."""
    folder.chmod(0o555)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)
        folder.chmod(0o755)


# -- beginning ---------------------------------------------------------------------------------


def test_a_session_lies_in_a_folder_of_its_day_with_an_id_that_sorts_by_time(
    tmp_path: Path,
) -> None:
    session = Session.create(tmp_path, STARTED, clock=lambda: 1_785_857_412.345)
    day = tmp_path / "2026" / "08" / "04"
    assert session.folder.parent == day
    assert session.id.startswith("20260804-153012345-")
    assert session.path == day / session.id / "journal.jsonl"
    assert session.outputs == day / session.id / "outputs"
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (day, session.folder)} == {0o700}
    session.close()


def test_ids_sort_as_their_times() -> None:
    times = [0.0, 1.001, 1.002, 59.9995, 86_400.0, 4e9]
    ids = [session_id(at) for at in times]
    assert ids == sorted(ids)
    assert session_id(5.0) != session_id(5.0)


def test_the_first_record_is_the_start_with_the_id_in_it(session: Session) -> None:
    (record,) = session.history.records
    assert isinstance(record.event, e.SessionStarted)
    assert (record.n, record.event.session_id) == (0, session.id)
    assert session.state.session_id == session.id == session.folder.name
    assert running(session.path)


def test_an_id_can_be_chosen_once(tmp_path: Path) -> None:
    chosen = e.SessionStarted(session_id="mine.1", agent="thresher")
    with Session.create(tmp_path, chosen) as session:
        assert session.folder.name == "mine.1"
        with pytest.raises(ThresherError, match=r"already a session 'mine\.1'"):
            Session.create(tmp_path, chosen)


@pytest.mark.parametrize("id", ["../up", "a/b", ".hidden", "a\x00b", "x" * 101, "ü", "a\n"])
def test_an_id_that_is_no_plain_name_is_refused(tmp_path: Path, id: str) -> None:
    with pytest.raises(ThresherError, match="cannot be the id of a session"):
        Session.create(tmp_path, e.SessionStarted(session_id=id, agent="thresher"))


def test_two_sessions_of_one_moment_get_two_ids(tmp_path: Path) -> None:
    ids = iter(["a", "a", "b"])
    made = [
        Session.create(tmp_path, STARTED, clock=lambda: 0.0, new_id=lambda _: next(ids))
        for _ in range(2)
    ]
    assert [session.id for session in made] == ["a", "b"]
    for session in made:
        session.close()


# -- emitting ----------------------------------------------------------------------------------


def test_an_event_is_on_disk_before_anyone_hears_of_it(session: Session) -> None:
    subscription = session.bus.subscribe()
    assert session.next_line == 1
    record = session.emit(e.ItemAppended(item=user("hello")))
    (heard,) = subscription.take()
    assert heard == record == session.history.records[-1]
    assert session.path.read_bytes().splitlines()[1] == e.encode(record)
    assert (record.n, session.next_line, len(session.state.context)) == (1, 2, 1)


def test_deltas_are_heard_and_shown_but_not_written(session: Session) -> None:
    subscription = session.bus.subscribe()
    size = session.path.stat().st_size
    record = session.emit(e.MessageDelta(text="half \ud800"))
    assert record.n == -1
    assert subscription.take() == [record]
    assert session.state.streams == {"assistant": "half \ud800"}
    assert session.path.stat().st_size == size
    assert session.next_line == 1


def test_the_live_record_is_what_the_journal_will_say(session: Session) -> None:
    record = session.emit(e.PolicyChanged(policy="p", policy_params={"t": (1, (2,))}))
    session.emit(e.ItemAppended(item=FunctionCallOutput("c", "x\ud83d\ude00 \udcff")))
    assert record.event == e.PolicyChanged(policy="p", policy_params={"t": [1, [2]]})
    assert read(session.path).records == session.history.records
    assert session.state.context.items[0].text == "x\U0001f600 \\udcff"


@given(steps(25))
def test_a_replay_of_the_file_equals_the_live_session(
    tmp_path_factory: pytest.TempPathFactory, script: list[Any]
) -> None:
    with Session.create(tmp_path_factory.getbasetemp() / "random", STARTED) as session:
        session.emit(e.ItemAppended(item=system("rules")))
        play(session, script)
    assert snapshot(session.state.settled()) == snapshot(replayed(session.path))


def test_an_event_that_json_cannot_carry_is_refused_and_nothing_happens(session: Session) -> None:
    before = session.path.read_bytes()
    for bad in (
        e.ToolFinished(call_id="c", seconds=float("nan")),
        e.PolicyChanged(policy="p", policy_params={"x": object()}),
    ):
        with pytest.raises(ThresherError, match="cannot be written as JSON"):
            session.emit(bad)
    assert session.path.read_bytes() == before
    assert len(session.history) == session.bus.published == session.next_line == 1


def test_what_cannot_be_written_is_neither_folded_nor_published(session: Session) -> None:
    subscription = session.bus.subscribe()
    with full_disk(), pytest.raises(ThresherError, match="cannot write to"):
        session.emit(e.ItemAppended(item=user("lost")))
    assert subscription.take() == []
    assert len(session.state.context) == 0
    record = session.emit(e.ItemAppended(item=user("kept")))
    assert record.n == 1
    assert read(session.path).records == session.history.records


# -- ending ------------------------------------------------------------------------------------


def test_closing_records_the_end_once_and_gives_the_lock_back(session: Session) -> None:
    session.close("done")
    session.close("again")
    assert session.closed
    assert session.history.records[-1].event == e.SessionFinished(reason="done")
    assert not running(session.path)
    with pytest.raises(ThresherError, match="resume the session"):
        session.emit(e.Note(kind="n", text="late"))


def test_a_full_disk_at_the_end_is_told_and_the_lock_is_given_back(session: Session) -> None:
    with full_disk(), pytest.raises(ThresherError, match="cannot write to"):
        session.close()
    session.close()
    assert not running(session.path)


def test_leaving_with_an_error_closes_and_keeps_the_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="boom"), Session.create(tmp_path, STARTED) as session:
        raise RuntimeError("boom")
    assert session.history.records[-1].event == e.SessionFinished(
        reason="after an error (RuntimeError)"
    )


# -- folders -----------------------------------------------------------------------------------


def test_the_three_folders_follow_their_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for kind, folder in (("STATE", state_dir), ("CONFIG", config_dir), ("CACHE", cache_dir)):
        monkeypatch.setenv(f"THRESHER_{kind}_DIR", str(tmp_path / kind))
        assert folder() == tmp_path / kind
        monkeypatch.setenv(f"THRESHER_{kind}_DIR", "~/mine")
        assert folder() == Path.home() / "mine"
        monkeypatch.setenv(f"THRESHER_{kind}_DIR", "")
        assert folder().is_relative_to(Path.home())
        assert "thresher" in folder().parts
    assert sessions_dir() == state_dir() / "sessions"


def test_a_state_folder_that_may_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    # Where the tests' own folders are closed to others, the way there is refused just the same.
    with as_somebody_who_may_not(tmp_path), pytest.raises(ThresherError) as refused:
        Session.create(tmp_path / "state" / "sessions", STARTED)
    assert refused.value.title == "Folder not available"
    assert "Permission denied. Check who owns it and its permissions." in refused.value.msg
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_a_folder_is_needed_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("I was here first")
    with pytest.raises(ThresherError, match="is a file: move it away"):
        ensure_dir(tmp_path / "state" / "sessions")


def test_a_disk_that_is_full_from_the_start_leaves_no_half_session(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(ThresherError, match="cannot write to"):
        Session.create(tmp_path, STARTED)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# -- size --------------------------------------------------------------------------------------


def test_five_hundred_compactions_add_lines_of_one_size(session: Session) -> None:
    for number in range(300):
        session.emit(e.ItemAppended(item=user(f"message {number:04}")))
    sizes: list[int] = []
    for ordinal in range(1, 501):
        session.emit(e.ItemAppended(item=user("next")))
        context = session.state.context
        before = session.path.stat().st_size
        # All but the first entry and the last 150 leave: long runs, however many entries.
        last = context.entries[-150:]
        segments = (
            Kept(context.entries[0].id.bare, context.entries[0].id.bare),
            Kept(last[0].id.bare, last[-1].id.bare),
        )
        change = context.apply(segments, session.next_line, ordinal)
        session.emit(
            e.HistoryCompacted(
                ordinal=ordinal, pass_id=f"p{ordinal}", policy="x", stage="s", moment=None,
                trigger=Trigger.AUTO, reason="r", segments=segments, items_before=len(context),
                items_after=len(change.after), kept=len(change.kept),
                removed=len(change.removed), replaced=0, inserted=0,
                removed_ids=context.span(change.removed), digest=change.after.digest(),
            )
        )  # fmt: skip
        sizes.append(session.path.stat().st_size - before)
    assert max(sizes) < 700
    assert max(sizes) - min(sizes) < 30
    assert session.state.compactions == 500
    assert len(session.state.known) == 800
    assert snapshot(replayed(session.path)) == snapshot(session.state)
