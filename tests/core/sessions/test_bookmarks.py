from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core.errors import ThresherError
from thresher.core.sessions.bookmarks import NOTE_CHARACTERS, Bookmarks, bookmarks_of


def test_bookmarks_come_back_in_the_order_of_the_session(tmp_path: Path) -> None:
    marks = bookmarks_of("codex", "s1", folder=tmp_path)
    marks.set(90, "the rule is lost here", 5.0)
    marks.set(7, "", 6.0)
    marks.set(90, "no, here", 7.0)
    again = bookmarks_of("codex", "s1", folder=tmp_path)
    assert [(mark.line, mark.note) for mark in again] == [(7, ""), (90, "no, here")]
    again.remove(7)
    again.remove(8)
    assert [mark.line for mark in bookmarks_of("codex", "s1", folder=tmp_path)] == [90]


def test_sessions_of_one_id_by_different_agents_are_kept_apart(tmp_path: Path) -> None:
    bookmarks_of("codex", "s1", folder=tmp_path).set(1, "a", 0.0)
    assert len(bookmarks_of("thresher", "s1", folder=tmp_path)) == 0


def test_a_hostile_id_names_no_path_outside_the_folder(tmp_path: Path, hostile_text: str) -> None:
    folder = tmp_path / "marks"
    marks = bookmarks_of("../../x", f"../{hostile_text}", folder=folder)
    marks.set(1, hostile_text, 0.0)
    assert [path.parent for path in tmp_path.rglob("*.json")] == [folder]
    note = hostile_text[:NOTE_CHARACTERS].encode("utf-8", "replace").decode()
    again = bookmarks_of("../../x", f"../{hostile_text}", folder=folder)
    assert [mark.note for mark in again] == [note]


def test_without_an_id_they_last_as_long_as_the_process(tmp_path: Path) -> None:
    marks = bookmarks_of("codex", "", folder=tmp_path)
    marks.set(1, "a", 0.0)
    assert marks.get(1) is not None
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_an_error_and_is_left_alone(tmp_path: Path) -> None:
    bookmarks_of("codex", "s1", folder=tmp_path).set(1, "a", 0.0)
    (file,) = tmp_path.glob("*.json")
    file.write_text("{")
    with pytest.raises(ThresherError, match="move it away"):
        bookmarks_of("codex", "s1", folder=tmp_path)
    assert file.read_text() == "{"


def test_what_cannot_be_written_is_told_and_holds_for_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    marks = Bookmarks(tmp_path / "file" / "x.json", "codex", "s1")
    with pytest.raises(ThresherError):
        marks.set(3, "a", 0.0)
    assert [mark.line for mark in marks] == [3]
