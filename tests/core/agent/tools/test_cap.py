from __future__ import annotations

import os
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.agent.tools.cap import OutputCap, Spool

CAP = OutputCap(max_chars=100, head=30, tail=20)


def test_text_within_the_cap_passes_unchanged_and_leaves_no_file(tmp_path: Path) -> None:
    capped = CAP.apply("x" * 100, tmp_path / "out", "c")
    assert (capped.text, capped.saved, capped.truncated_chars) == ("x" * 100, None, 0)
    assert not (tmp_path / "out").exists()


def test_text_over_the_cap_is_whole_on_disk_and_only_for_its_owner(tmp_path: Path) -> None:
    text = "a" * 60 + "\r\n" + "z" * 60
    capped = CAP.apply(text, tmp_path / "out", "call_9")
    assert capped.saved == str(tmp_path / "out/call_9.txt")
    assert Path(capped.saved).read_bytes().decode() == text
    assert stat.S_IMODE(Path(capped.saved).stat().st_mode) == 0o600
    assert capped.text.startswith("a" * 30 + "\n[... 72 characters left out here.")
    assert capped.text.endswith(" ...]\n" + "z" * 20)
    assert capped.saved in capped.text
    assert "122 characters, 2 lines" in capped.text
    assert capped.truncated_chars == 72


def test_a_cut_falls_on_line_ends_where_that_costs_little(tmp_path: Path) -> None:
    text = "".join(f"line {n:02}\n" for n in range(50))
    lines = CAP.apply(text, tmp_path, "c").text.splitlines()
    assert lines[:3] == ["line 00", "line 01", "line 02"]
    assert lines[-2:] == ["line 48", "line 49"]
    assert len(lines) == 6


def test_calls_with_the_same_id_get_files_of_their_own(tmp_path: Path) -> None:
    saved = [CAP.apply(letter * 200, tmp_path, "same").saved for letter in "abc"]
    assert saved == [str(tmp_path / name) for name in ("same.txt", "same-2.txt", "same-3.txt")]
    assert [Path(path or "").read_text()[0] for path in saved] == ["a", "b", "c"]


def test_an_existing_file_or_link_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("keep")
    (tmp_path / "c.txt").symlink_to(tmp_path / "victim")
    assert CAP.apply("x" * 200, tmp_path, "c").saved == str(tmp_path / "c-2.txt")
    assert (tmp_path / "victim").read_text() == "keep"


def test_no_call_id_leads_out_of_the_folder(tmp_path: Path, hostile_text: str) -> None:
    for call_id in ("../../x", "/etc/x", "..", hostile_text[:3000]):
        saved = CAP.apply("x" * 200, tmp_path / "out", call_id).saved
        assert saved is not None
        assert Path(saved).parent == tmp_path / "out"


def test_hostile_text_is_kept_exactly(tmp_path: Path, hostile_text: str) -> None:
    text = hostile_text + "x" * 200
    saved = CAP.apply(text, tmp_path, "c").saved
    assert saved is not None
    assert Path(saved).read_bytes() == text.encode("utf-8", "backslashreplace")


def assert_not_saved(text: str, saved: str | None, why: str) -> None:
    assert saved is None
    assert f"could not be saved: {why}" in text
    assert "read_file" not in text
    assert text.startswith("a" * 30)
    assert text.endswith("z" * 20)


def test_a_folder_that_cannot_be_made_gives_no_pointer(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    capped = CAP.apply("a" * 80 + "z" * 80, tmp_path / "file/out", "c")
    assert_not_saved(capped.text, capped.saved, "Not a directory")
    assert capped.truncated_chars == 110


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_gives_no_pointer(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o500)
    capped = CAP.apply("a" * 80 + "z" * 80, tmp_path / "out", "c")
    assert_not_saved(capped.text, capped.saved, "Permission denied")


def test_a_full_disk_leaves_no_pointer_and_no_half_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        spool = Spool(CAP, tmp_path, "c")
        for _ in range(100):
            spool.write("a" * 1000)
        spool.write("z" * 20)
        capped = spool.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert_not_saved(capped.text, capped.saved, "File too large")
    assert list(tmp_path.iterdir()) == []


def test_a_discarded_spool_leaves_no_file(tmp_path: Path) -> None:
    spool = Spool(CAP, tmp_path, "c")
    spool.write("x" * 500)
    assert len(list(tmp_path.iterdir())) == 1
    spool.discard()
    assert list(tmp_path.iterdir()) == []


def test_what_goes_to_disk_is_bounded_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.core.agent.tools.cap.MAX_SAVED", 150)
    capped = CAP.apply("x" * 1000, tmp_path, "c")
    assert "the first 150 characters are kept" in capped.text
    assert (tmp_path / "c.txt").stat().st_size == 150


@given(st.text("ab\n", max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_pieces_give_the_same_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("out")
    at = [0, *sorted(cuts), len(text)]
    spool = Spool(CAP, folder, "p")
    for begin, end in pairwise(at):
        spool.write(text[begin:end])
    in_pieces, whole = spool.finish(), CAP.apply(text, folder, "w")
    assert in_pieces.text.replace("p.txt", "w.txt") == whole.text
    assert in_pieces.truncated_chars == whole.truncated_chars
    if in_pieces.saved:
        assert Path(in_pieces.saved).read_text() == text


@pytest.mark.parametrize(("head", "tail"), [(60, 60), (-1, 10)])
def test_a_cap_that_cannot_hold_its_own_ends_is_refused(head: int, tail: int) -> None:
    with pytest.raises(ValueError, match="head"):
        OutputCap(max_chars=100, head=head, tail=tail)


def test_a_cap_without_a_tail_keeps_only_the_head(tmp_path: Path) -> None:
    capped = OutputCap(100, 30, 0).apply("a" * 500, tmp_path, "c")
    assert capped.text.endswith(" ...]")
    assert capped.truncated_chars == 470
