from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.compaction.store import MAX_NAME, FileStore, safe_name


@given(st.text(max_size=200))
def test_any_name_becomes_a_plain_file_name(name: str) -> None:
    safe = safe_name(name)
    assert 0 < len(safe) <= MAX_NAME
    assert Path(safe).name == safe
    assert not safe.startswith((".", "-"))
    assert safe.isascii()
    assert safe.isprintable()
    assert safe_name(safe) == safe


@pytest.mark.parametrize(
    ("name", "safe"),
    [("../../etc/passwd", "etc-passwd"), ("", "text"), ("..", "text"), ("a\x00b.txt", "a-b.txt")],
)
def test_names_that_lead_elsewhere_stay_in_the_folder(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_nothing_is_written_over_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "a.txt").symlink_to(outside)
    store = FileStore(folder)
    assert [Path(store.save("a.txt", "1")).name, Path(store.save("a.txt", "2")).name] == [
        "a-2.txt",
        "a-3.txt",
    ]
    assert outside.read_text() == "mine"


def test_any_text_can_be_kept(tmp_path: Path) -> None:
    path = Path(FileStore(tmp_path).save("x", "a\r\nb \ud83d 🦀"))
    assert path.read_bytes().decode() == "a\r\nb \\ud83d 🦀"
