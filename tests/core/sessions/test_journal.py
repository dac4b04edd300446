from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.items import user
from thresher.core.sessions.journal import BadLine, Journal, Scanned, located, running, scan


def note(n: int, text: str = "x") -> bytes:
    return e.encode(e.Record(n, float(n), e.Note(kind="n", text=text)))


def whole(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session" / "journal.jsonl"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    made = Journal.create(path)
    yield made
    made.close()


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def take_up(path: Path) -> Journal:
    journal, _ = Journal.take_up(path)
    return journal


def numbers(lines: list[Scanned]) -> list[int | None]:
    return [line.found.n if isinstance(line.found, e.Record) else None for line in lines]


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """The operating system takes the first part of a longer write, then refuses: a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# -- writing -----------------------------------------------------------------------------------


def test_a_line_is_in_the_file_when_append_returns(journal: Journal, path: Path) -> None:
    journal.append(note(0))
    assert path.read_bytes() == whole(note(0))
    journal.append(note(1), sync=True)
    assert path.read_bytes() == whole(note(0), note(1))
    assert (journal.next_line, journal.end) == (2, path.stat().st_size)


def test_the_journal_and_its_folders_are_for_this_user_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        Journal.create(tmp_path / "a" / "b" / "journal.jsonl").close()
    finally:
        os.umask(old)
    modes = {
        name: stat.S_IMODE((tmp_path / name).stat().st_mode)
        for name in ("a", "a/b", "a/b/journal.jsonl", "a/b/journal.jsonl.lock")
    }
    assert modes == {
        "a": 0o700, "a/b": 0o700, "a/b/journal.jsonl": 0o600, "a/b/journal.jsonl.lock": 0o600
    }  # fmt: skip


def test_an_existing_journal_is_never_created_over(path: Path) -> None:
    written(path, whole(note(0)))
    with pytest.raises(ThresherError, match="File exists"):
        Journal.create(path)
    assert path.read_bytes() == whole(note(0))


def test_a_second_writer_is_told_who_writes_and_what_to_do(journal: Journal, path: Path) -> None:
    with pytest.raises(ThresherError) as refused:
        Journal.take_up(path)
    assert refused.value.title == "Session in use"
    assert f"process {os.getpid()}" in refused.value.msg
    assert "thresher open" in refused.value.msg
    journal.append(note(0))


def test_a_closed_journal_can_be_taken_up_and_its_lock_is_free(
    journal: Journal, path: Path
) -> None:
    assert running(path)
    journal.append(note(0))
    journal.close()
    journal.close()
    assert not running(path)
    again, lines = Journal.take_up(path)
    again.append(note(1))
    again.close()
    assert numbers(lines) == [0]
    assert path.read_bytes() == whole(note(0), note(1))


def test_looking_whether_it_runs_creates_nothing(tmp_path: Path) -> None:
    assert not running(tmp_path / "none" / "journal.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_journal_takes_no_more_lines(journal: Journal) -> None:
    journal.close()
    with pytest.raises(ThresherError, match="resume the session"):
        journal.append(note(0))


# -- a disk that refuses -----------------------------------------------------------------------


def test_a_line_that_a_full_disk_cuts_leaves_nothing_behind(journal: Journal, path: Path) -> None:
    journal.append(note(0))
    before = path.read_bytes()
    with no_file_longer_than(len(before) + 10), pytest.raises(ThresherError) as refused:
        journal.append(note(1, "long " * 100))
    assert refused.value.title == "Session not recorded"
    assert str(path) in refused.value.msg
    assert path.read_bytes() == before
    assert journal.next_line == 1


def test_writing_goes_on_once_there_is_room_again(journal: Journal, path: Path) -> None:
    with no_file_longer_than(10), pytest.raises(ThresherError):
        journal.append(note(0))
    journal.append(note(0))
    assert numbers(list(scan(path))) == [0]


def test_a_full_device_is_a_sentence(journal: Journal) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("this system has no /dev/full")
    assert journal._handle is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, journal._handle)
    os.close(full)
    with pytest.raises(ThresherError, match=r"No space left on device\. Free some space"):
        journal.append(note(0))


@pytest.mark.parametrize("harm", ["shortened", "lengthened", "deleted"])
def test_a_file_that_somebody_else_changed_is_refused_and_left_alone(
    journal: Journal, path: Path, harm: str
) -> None:
    journal.append(note(0))
    match harm:
        case "shortened":
            os.truncate(path, 3)
        case "lengthened":
            with path.open("ab") as file:
                file.write(b"somebody else\n")
        case _:
            path.unlink()
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(ThresherError, match="another program changed it"):
        journal.append(note(1))
    assert (path.read_bytes() if path.exists() else None) == before


# -- reading -----------------------------------------------------------------------------------

BAD = {
    "a bare number": b"17",
    "an array": b"[1,2]",
    "null": b"null",
    "empty": b"",
    "NUL bytes": b"\x00" * 512,
    "NUL bytes before a record": b"\x00" * 64 + note(1),
    "invalid UTF-8": note(1).replace(b'"x"', b'"\xff\xfe"'),
    "half a record": note(1)[:20],
    "two records": note(1) + note(2),
    "no event": b'{"n":1,"at":0}',
    "wrong type": b'{"n":"1","at":0,"event":{"event":"note","kind":"a","text":"b"}}',
    "missing field": b'{"n":1,"at":0,"event":{"event":"note","kind":"a"}}',
    "unknown item": b'{"n":1,"at":0,"event":{"event":"item_appended","item":{"kind":"smell"}}}',
    "deep nesting": b"[" * 200_000,
    "20 MB of noise": b"\x8f" * 20_000_000,
    "a number seen before": note(0),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_is_told_with_its_place_and_the_rest_is_read(path: Path, what: str) -> None:
    data = whole(note(0), BAD[what], note(2))
    lines = list(scan(written(path, data)))
    assert numbers(lines) == [0, None, 2]
    bad = lines[1].found
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.offset, bad.size) == (1, len(note(0)) + 1, len(BAD[what]) + 1)
    assert bad.reason
    assert not bad.torn
    assert data[lines[2].offset : lines[2].end] == note(2) + b"\n"


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_stays_in_the_file_when_writing_goes_on(path: Path, what: str) -> None:
    data = whole(note(0), BAD[what])
    journal = take_up(written(path, data))
    assert journal.next_line == 2
    journal.append(note(2))
    journal.close()
    assert path.read_bytes() == data + whole(note(2))


def test_the_reason_of_a_bad_line_is_in_words(path: Path) -> None:
    data = whole(b"", b"\x00\x00", note(2)) + note(3)[:25]
    reasons = [
        line.found.reason for line in scan(written(path, data)) if isinstance(line.found, BadLine)
    ]
    assert reasons[:2] == ["it is empty", "it holds nothing but NUL bytes"]
    assert reasons[2].startswith("it was not written to its end")


def test_a_record_of_a_newer_version_is_shown_as_unknown(path: Path) -> None:
    newer = b'{"n":1,"at":5.0,"event":{"event":"mind_read","depth":[1]},"more":true}'
    lines = list(scan(written(path, whole(note(0), newer, note(2)))))
    unknown = e.UnknownRecord(type="mind_read", line=1, size=len(newer) + 1)
    assert lines[1].found == e.Record(1, 5.0, unknown)
    assert numbers(lines) == [0, 1, 2]


@pytest.mark.parametrize("ending", [b"\r\n", b" \n"])
def test_a_byte_order_mark_and_foreign_line_ends_are_read(path: Path, ending: bytes) -> None:
    data = b"\xef\xbb\xbf" + note(0) + ending + note(1) + ending
    assert numbers(list(scan(written(path, data)))) == [0, 1]


def test_a_record_of_20_mb_is_written_and_read(journal: Journal, path: Path) -> None:
    large = e.Record(0, 0.0, e.ItemAppended(item=user("é\n" * 7_000_000)))
    journal.append(e.encode(large))
    journal.append(note(1))
    lines = list(scan(path))
    assert lines[0].found == large
    assert numbers(lines) == [0, 1]


@pytest.mark.parametrize("tail", [note(2)[:-1], note(2)[:1], b"\x00" * 100, b"\xff", b"{}"])
def test_a_torn_last_line_is_reported_and_cut_off_by_the_next_write_only(
    path: Path, tail: bytes
) -> None:
    data = whole(note(0), note(1)) + tail
    journal, lines = Journal.take_up(written(path, data))
    assert lines[-1].torn
    assert path.read_bytes() == data
    assert journal.next_line == 2
    journal.append(note(2, "anew"))
    journal.close()
    assert path.read_bytes() == whole(note(0), note(1), note(2, "anew"))


def test_a_whole_last_record_without_its_line_end_is_kept(path: Path) -> None:
    journal, lines = Journal.take_up(written(path, whole(note(0)) + note(1)))
    assert numbers(lines) == [0, 1]
    journal.append(note(2))
    journal.append(note(3))
    journal.close()
    assert path.read_bytes() == whole(note(0), note(1), note(2), note(3))


def test_a_bad_line_keeps_the_numbers_of_what_follows(path: Path) -> None:
    journal = take_up(written(path, whole(note(0), b"bad", note(7), b"bad")))
    assert journal.next_line == 8
    journal.close()


def test_reading_goes_on_from_a_known_place(path: Path) -> None:
    written(path, whole(note(0), note(1)))
    seen = list(scan(path))
    with path.open("ab") as file:
        file.write(whole(note(2), note(1)))
    last = seen[-1]
    more = list(scan(path, offset=last.end, line=last.line + 1, after=1))
    assert numbers(more) == [2, None]
    assert [line.line for line in more] == [2, 3]


def test_a_folder_means_the_journal_in_it(path: Path) -> None:
    written(path, whole(note(0)))
    assert located(path.parent) == path
    assert located(path) == path


def test_what_is_no_journal_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ThresherError, match="not an ordinary file"):
        located(tmp_path / "pipe")
    with pytest.raises(ThresherError, match=r"No such file or directory\. Check the path"):
        located(tmp_path / "missing.jsonl")
    with pytest.raises(ThresherError, match=r"journal\.jsonl: No such file"):
        located(tmp_path)
