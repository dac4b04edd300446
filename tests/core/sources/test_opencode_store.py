from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.opencode import OpenCodeSource, choices
from thresher.core.sources.opencode_discover import look_at, opencode_files
from thresher.core.sources.report import compaction_records

from .opencode_rig import FIXTURES, changed, database, rows


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A running OpenCode: the second half of a session is not stored yet."""
    path = database("v1-two-summaries", tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE later AS SELECT * FROM event WHERE seq > 126")
        db.execute("DELETE FROM event WHERE seq > 126")
        db.commit()
        yield db


def path_of(db: sqlite3.Connection) -> Path:
    return Path(db.execute("PRAGMA database_list").fetchone()[2])


def store(db: sqlite3.Connection, *seqs: int) -> None:
    for seq in seqs:
        db.execute("INSERT INTO event SELECT * FROM later WHERE seq = ?", (seq,))
        db.commit()


def looks_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def test_a_running_program_s_folder_is_left_exactly_as_it_was(writer: sqlite3.Connection) -> None:
    path = path_of(writer)
    tail = OpenCodeSource(path).tail()
    before = looks_of(path.parent)
    assert {name.rpartition("-")[2] for name in before} >= {"wal", "shm"}
    assert list(tail.more())
    assert looks_of(path.parent) == before
    store(writer, *range(127, 247))
    before = looks_of(path.parent)
    assert list(tail.more())
    assert looks_of(path.parent) == before


def test_a_followed_session_tells_the_same_as_one_that_is_read(writer: sqlite3.Connection) -> None:
    source = OpenCodeSource(path_of(writer))
    tail = source.tail()
    followed = list(tail.more())
    for seq in range(127, 250):
        store(writer, seq)
        followed += tail.more()
    for _ in range(3):
        followed += tail.more()
    read = list(source.read())
    assert compaction_records(followed) == compaction_records(read)
    assert [each for each in followed if isinstance(each.event, e.ItemAppended)] == [
        each for each in read if isinstance(each.event, e.ItemAppended)
    ]


def test_a_summary_is_not_taken_for_whole_before_its_tail_is_stored(
    writer: sqlite3.Connection,
) -> None:
    tail = OpenCodeSource(path_of(writer)).tail()
    list(tail.more())
    store(writer, 127, 128)
    assert not compaction_records(tail.more())
    assert not compaction_records(tail.more())
    store(writer, 129, 130, 131)
    (report,) = compaction_records(tail.more())
    assert report.items is not None
    assert report.items.kept == 6


async def test_following_gives_what_is_stored_later_until_it_is_stopped(
    writer: sqlite3.Connection,
) -> None:
    stop = asyncio.Event()
    found: list[e.Record] = []
    stored = False
    async for batch in OpenCodeSource(path_of(writer)).follow(stop):
        found += batch
        if not stored:
            stored = True
            store(writer, *range(127, 132))
        if compaction_records(found):
            stop.set()
    assert [report.line for report in compaction_records(found)] == [130]


def test_a_copy_with_its_wal_is_read_from_our_cache(
    writer: sqlite3.Connection, tmp_path: Path, cache: Path
) -> None:
    store(writer, *range(127, 247))
    copy = tmp_path / "copy"
    copy.mkdir()
    for ending in ("", "-wal"):
        shutil.copy(f"{path_of(writer)}{ending}", copy / f"opencode.db{ending}")
    before = looks_of(copy)
    assert len(compaction_records(OpenCodeSource(copy / "opencode.db").read())) == 2
    assert looks_of(copy) == before
    assert cache.is_dir()


def test_read_only_files_in_a_read_only_folder_are_read(tmp_path: Path) -> None:
    path = database("v1-prune", tmp_path)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    before = looks_of(path.parent)
    try:
        assert len(compaction_records(OpenCodeSource(path).read())) == 1
        assert looks_of(path.parent) == before
    finally:
        path.parent.chmod(0o755)


def test_a_packed_database_is_unpacked_in_our_cache_and_cleared_away(
    tmp_path: Path, cache: Path
) -> None:
    packed = tmp_path / "there" / "opencode.db.gz"
    packed.parent.mkdir()
    shutil.copy(FIXTURES / "v2-two-summaries" / "opencode.db.gz", packed)
    assert len(compaction_records(OpenCodeSource(packed).read())) == 2
    assert [path.name for path in packed.parent.iterdir()] == ["opencode.db.gz"]
    assert not [path for path in cache.rglob("*") if path.is_file()]


# -- several sessions --------------------------------------------------------------------------


@pytest.fixture
def several(tmp_path: Path) -> Path:
    path = database("v1-two-summaries", tmp_path)
    other = database("v2-two-summaries", tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("ATTACH ? AS other", (str(other),))
        for table in ("session", "session_message", "event_sequence", "event"):
            db.execute(f"INSERT INTO {table} SELECT * FROM other.{table}")
        db.execute("UPDATE session SET title = 'the V2 one' WHERE id LIKE 'ses_dd54%'")
        db.commit()
    return path


def test_the_bare_file_means_the_newest_session_and_a_path_into_it_any(several: Path) -> None:
    first, second = choices(several)
    assert (first.title, second.title) == ("the V2 one", "Log error rates")
    newest = compaction_records(OpenCodeSource(several).read())
    assert {each.policy for each in newest} == {"opencode-v2"}
    other = compaction_records(OpenCodeSource(second.path).read())
    assert [(each.policy, each.line) for each in other] == [
        ("opencode-v1", 130),
        ("opencode-v1", 216),
    ]
    part_of_the_id = several / second.id[4:16]
    assert compaction_records(OpenCodeSource(part_of_the_id).read()) == other


def test_a_session_that_is_not_there_is_told_with_those_that_are(several: Path) -> None:
    with pytest.raises(ThresherError, match=r"is no session of .*ses_dd54.*ses_dd55"):
        list(OpenCodeSource(several / "ses_none").read())
    with pytest.raises(ThresherError, match="several sessions"):
        list(OpenCodeSource(several / "ses_dd5").read())


def test_a_subagent_s_session_is_opened_by_its_id_and_is_never_the_default(several: Path) -> None:
    first, second = choices(several)
    changed(several, f"UPDATE session SET parent_id = '{second.id}' WHERE id = '{first.id}'")
    started = next(iter(OpenCodeSource(several).read())).event
    assert isinstance(started, e.SessionStarted)
    assert started.session_id == second.id
    child = next(iter(OpenCodeSource(first.path).read())).event
    assert isinstance(child, e.SessionStarted)
    assert child.parent == second.id


def test_sessions_are_found_in_the_default_place(
    several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "share"
    shutil.copytree(several.parent, home / "opencode")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.delenv("OPENCODE_DB", raising=False)
    found = [look_at(path) for path in opencode_files()]
    assert [(each.title, each.compactions, each.problem) for each in found] == [
        ("the V2 one", 2, ""),
        ("Log error rates", 2, ""),
    ]
    monkeypatch.setenv("OPENCODE_DB", str(several))
    assert [path.parent for path in opencode_files()] == [several, several]


# -- what is no good ---------------------------------------------------------------------------


def test_a_database_of_another_program_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    changed(path, "CREATE TABLE things (id)")
    with pytest.raises(ThresherError, match="not OpenCode's"):
        list(OpenCodeSource(path).read())


def test_an_empty_database_is_told(tmp_path: Path) -> None:
    path = changed(database("v1-prune", tmp_path), "DELETE FROM session")
    with pytest.raises(ThresherError, match="holds no session yet"):
        list(OpenCodeSource(path).read())


def test_a_cut_database_is_told_in_one_sentence(tmp_path: Path) -> None:
    path = database("v1-prune", tmp_path)
    os.truncate(path, 5000)
    with pytest.raises(ThresherError, match="cannot be read as an OpenCode database"):
        list(OpenCodeSource(path).read())


def test_a_database_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    path = database("v1-two-summaries", tmp_path)
    tail = OpenCodeSource(path).tail()
    assert list(tail.more())
    away = path.rename(path.with_name("away"))
    (told,) = [each.event for each in tail.more() if isinstance(each.event, e.ErrorRaised)]
    assert told.kind == "file"
    assert not [each for each in tail.more() if isinstance(each.event, e.ErrorRaised)]
    away.rename(path)
    again = [each.event for each in tail.more() if isinstance(each.event, e.Note)]
    assert again[0].kind == "file"
    assert "can be read again" in again[0].text


def test_rows_that_change_without_an_event_table_are_followed(tmp_path: Path) -> None:
    path = changed(database("v1-two-summaries", tmp_path), "DELETE FROM event")
    ((last, data),) = rows(path, "SELECT id, data FROM message ORDER BY time_created DESC LIMIT 1")
    changed(path, f"DELETE FROM message WHERE id = '{last}'")
    parts = rows(path, f"SELECT id, session_id, data FROM part WHERE message_id = '{last}'")
    tail = OpenCodeSource(path).tail()
    before = list(tail.more())
    with closing(sqlite3.connect(path)) as db:
        session = parts[0][1]
        db.execute("INSERT INTO message VALUES (?, ?, 1896011881185, 0, ?)", (last, session, data))
        db.commit()
    news = list(tail.more())
    assert [each.event.item.text for each in news if isinstance(each.event, e.ItemAppended)]
    assert news[0].n >= before[-1].n
