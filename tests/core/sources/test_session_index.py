from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from thresher.core.sources import session_index
from thresher.core.sources.finders import finders
from thresher.core.sources.found import Finder, FoundSession
from thresher.core.sources.session_index import SessionIndex, index_file


def line(kind: str, payload: str) -> str:
    return f'{{"timestamp":"2026-11-30T08:00:00.000Z","type":"{kind}","payload":{payload}}}\n'


def rollout(home: Path, number: int, title: str) -> Path:
    folder = home / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True, exist_ok=True)
    id = f"0000000{number}-0000-7000-8000-000000000000"
    path = folder / f"rollout-2026-11-30T08-00-0{number}-{id}.jsonl"
    meta = f'{{"id":"{id}","cwd":"/home/user/project","cli_version":"0.171.0"}}'
    said = f'{{"type":"input_text","text":"{title}"}}'
    message = f'{{"type":"message","role":"user","content":[{said}]}}'
    path.write_text(line("session_meta", meta) + line("response_item", message))
    os.utime(path, (1_000 + number, 1_000 + number))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "codex"


def codex() -> Finder:
    return next(each for each in finders() if each.agent == "codex")


def listed(home: Path) -> tuple[list[FoundSession], int]:
    index = SessionIndex()
    found = list(index.sessions(codex(), home))
    index.save()
    return found, index.hits


def test_a_session_is_opened_once_and_then_known_until_it_changes(home: Path) -> None:
    paths = [rollout(home, number, f"question {number}") for number in range(3)]
    first, hits = listed(home)
    assert [each.title for each in first] == ["question 2", "question 1", "question 0"]
    assert hits == 0
    again, hits = listed(home)
    assert (again, hits) == (first, 3)
    with paths[0].open("a") as file:
        file.write(line("compacted", '{"message":""}'))
    changed, hits = listed(home)
    assert hits == 2
    assert changed[0].path == paths[0]
    assert changed[0].compactions == 1


def test_the_same_size_at_another_time_is_looked_at_again(home: Path) -> None:
    path = rollout(home, 1, "first words")
    listed(home)
    path.write_text(path.read_text().replace("first words", "other words"))
    os.utime(path, (5_000, 5_000))
    found, hits = listed(home)
    assert (found[0].title, hits) == ("other words", 0)


def test_a_session_that_is_gone_leaves_the_index(home: Path) -> None:
    paths = [rollout(home, number, "words") for number in range(2)]
    listed(home)
    paths[0].unlink()
    rollout(home, 2, "words")
    found, hits = listed(home)
    assert (len(found), hits) == (2, 1)
    assert str(paths[0]).encode() not in index_file().read_bytes()


@pytest.mark.parametrize("content", [b"", b"\x00\xff nothing", b"\x92\xcd\x03\xe7\x80"])
def test_a_broken_index_is_made_anew(home: Path, content: bytes) -> None:
    rollout(home, 1, "words")
    index_file().parent.mkdir(parents=True)
    index_file().write_bytes(content)
    assert listed(home)[1] == 0
    assert listed(home)[1] == 1


def test_an_index_of_another_format_is_not_used(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout(home, 1, "words")
    listed(home)
    monkeypatch.setattr(session_index, "FORMAT", session_index.FORMAT + 1)
    assert listed(home)[1] == 0


def test_the_list_comes_where_no_index_can_be_written(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout(home, 1, "words")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("THRESHER_CACHE_DIR", str(tmp_path / "file"))
    assert [len(listed(home)[0]) for _ in range(2)] == [1, 1]


def test_a_folder_whose_name_is_no_text_is_listed_and_not_kept(home: Path) -> None:
    odd = home.with_name(os.fsdecode(b"odd\xff"))
    rollout(odd, 1, "words")
    assert [listed(odd) for _ in range(2)] == [(listed(odd)[0], 0)] * 2
    assert [each.title for each in listed(odd)[0]] == ["words"]


def test_whether_a_session_runs_is_never_taken_from_the_index(home: Path) -> None:
    rollout(home, 1, "words")
    told = codex()
    running = msgspec.structs.replace(
        told, look_at=lambda path: msgspec.structs.replace(told.look_at(path), running=True)
    )
    index = SessionIndex()
    assert [each.running for each in index.sessions(running, home)] == [True]
    index.save()
    assert [each.running for each in SessionIndex().sessions(running, home)] == [None]


def test_only_the_user_can_read_the_index(home: Path) -> None:
    rollout(home, 1, "words")
    listed(home)
    assert index_file().stat().st_mode & 0o077 == 0
