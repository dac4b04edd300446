from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from thresher.core.errors import ThresherError
from thresher.core.sources.discover import (
    codex_home,
    find_codex_sessions,
    latest_codex_session,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    return tmp_path


def put(home: Path, place: str, id: str, data: bytes, age: int) -> Path:
    path = home / place / f"rollout-2026-11-30T04-11-26-{id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def recording(name: str) -> bytes:
    return gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())


def test_sessions_come_newest_first_with_what_their_beginning_tells(codex: Path) -> None:
    old = put(codex, "sessions/2026/11/29", "a", recording("mid_turn"), age=90)
    new = put(codex, "sessions/2026/11/30", "b", recording("pre_turn_twice"), age=10)
    away = put(codex, "archived_sessions", "c", recording("remote_v2"), age=50)
    (codex / "sessions" / "notes.txt").write_text("not a session")
    found = list(find_codex_sessions())
    assert [each.path for each in found] == [new, away, old]
    assert [each.compactions for each in found] == [2, 2, 1]
    assert [each.archived for each in found] == [False, True, False]
    last = found[-1]
    assert last.title.startswith("Count the ERROR lines in logs/app.log")
    assert (last.model, last.cwd, last.version) == ("toy-medium", "/home/user/project", "0.171.0")
    assert (last.agent, last.modified, last.problem) == ("codex", 1_000_000 - 90, "")
    assert latest_codex_session() == new


def test_files_that_cannot_be_understood_are_listed_with_the_reason(codex: Path) -> None:
    put(codex, "sessions", "a", b"", age=1)
    put(codex, "sessions", "b", b"\x00garbage\n17\n", age=2)
    packed = put(codex, "sessions", "c", b"\x28\xb5\x2f\xfd", age=3)
    packed.rename(packed.with_suffix(".jsonl.zst"))
    problems = [each.problem for each in find_codex_sessions()]
    assert problems[:2] == ["its beginning is not that of a session"] * 2
    assert "cannot be read" in problems[2]


def test_what_is_no_file_is_no_session_and_holds_nothing_up(codex: Path) -> None:
    only = put(codex, "sessions", "a", recording("mid_turn"), age=90)
    os.mkfifo(only.with_name("rollout-2026-11-30T04-11-27-b.jsonl"))
    only.with_name("rollout-2026-11-30T04-11-28-c.jsonl").mkdir()
    only.with_name("rollout-2026-11-30T04-11-29-d.jsonl").symlink_to("nowhere")
    assert [each.path for each in find_codex_sessions()] == [only]
    assert latest_codex_session() == only


def test_a_quoted_compacted_line_is_not_counted(codex: Path) -> None:
    quoted = json.dumps({"type": "compacted"}, separators=(",", ":"))
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": quoted}]}
    line = json.dumps({"type": "response_item", "payload": item}, separators=(",", ":"))
    put(codex, "sessions", "a", line.encode(), age=1)
    assert [each.compactions for each in find_codex_sessions()] == [0]


def test_no_session_at_all_is_one_sentence(codex: Path) -> None:
    assert list(find_codex_sessions()) == []
    with pytest.raises(ThresherError, match="CODEX_HOME"):
        latest_codex_session()


def test_without_the_variable_it_is_the_home_directory(home: Path) -> None:
    assert codex_home() == home / ".codex"
