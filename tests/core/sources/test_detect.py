from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.detect import Format, detect, require_known

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
META = b'{"timestamp":"2026-01-01T10:00:00Z","type":"session_meta","payload":{"id":"T1"}}\n'


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(data)
    return path


def test_a_packed_recording_is_a_codex_rollout() -> None:
    assert detect(FIXTURES / "mid_turn.jsonl.gz").format is Format.CODEX


def test_one_of_our_journals_is_told_from_its_first_record(tmp_path: Path) -> None:
    started = e.SessionStarted(session_id="s", agent="thresher")
    path = written(tmp_path, e.encode(e.Record(0, 1.0, started)) + b"\n")
    assert detect(path).format is Format.THRESHER


@pytest.mark.parametrize("first", [b"\x00\x00\n", b"17\n", b'{"cut":\n', b"\xff\xfe\n", b"\n\n"])
def test_a_bad_first_line_does_not_hide_the_format(tmp_path: Path, first: bytes) -> None:
    assert detect(written(tmp_path, first + META)).format is Format.CODEX


def test_a_first_line_without_newline_is_enough(tmp_path: Path) -> None:
    assert detect(written(tmp_path, META.rstrip())).format is Format.CODEX


@pytest.mark.parametrize(
    ("data", "title", "words"),
    [
        (b"", "Empty file", "empty"),
        (b"\x00" * 4096, "Empty file", "empty"),
        (b"\x28\xb5\x2f\xfd\x00\x00", "Unreadable file", "cannot be read"),
        (b"hello\nworld\n", "Unknown format", "no JSON object"),
        (b'{"role":"user"}\n', "Unknown format", "none of a format"),
        (b"\x89PNG\r\n\x1a\n", "Unknown format", "no JSON object"),
    ],
)
def test_what_cannot_be_opened_is_told_in_one_sentence(
    tmp_path: Path, data: bytes, title: str, words: str
) -> None:
    path = written(tmp_path, data)
    with pytest.raises(ThresherError) as caught:
        require_known(path)
    assert caught.value.title == title
    assert words in caught.value.msg
    assert str(path) in caught.value.msg
    assert "\n" not in caught.value.msg


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="does not exist"):
        detect(tmp_path / "none.jsonl")
    with pytest.raises(ThresherError, match="is a directory"):
        detect(tmp_path)


def test_an_unreadable_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "loop.jsonl"
    path.symlink_to(path)
    with pytest.raises(ThresherError, match="cannot be read"):
        detect(path)
