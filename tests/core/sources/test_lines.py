from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.errors import ThresherError
from thresher.core.sources.lines import Line, LineReader, read_lines


def lines_of(data: bytes, cut: int = 0) -> list[Line]:
    reader = LineReader()
    found = [*reader.feed(data[:cut]), *reader.feed(data[cut:])]
    return [*found, *reader.finish()]


def test_numbers_and_offsets_are_those_of_the_file() -> None:
    found = lines_of('{"a":"ä"}\n\n{"b":2}\n'.encode())
    assert [(line.number, line.offset) for line in found] == [(0, 0), (2, 12)]


@given(st.lists(st.text(alphabet='aäх漢😀\\"', max_size=6), max_size=5), st.data())
def test_a_cut_anywhere_between_two_writes_changes_nothing(
    texts: list[str], data: st.DataObject
) -> None:
    whole = "".join(json.dumps({"t": text}, ensure_ascii=False) + "\n" for text in texts).encode()
    cut = data.draw(st.integers(0, len(whole)))
    found = lines_of(whole, cut)
    assert [line.value for line in found] == [{"t": text} for text in texts]
    assert not any(line.fault for line in found)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"12", "a bare number"),
        (b"[1,2]", "an array"),
        (b"null", "null"),
        (b"true", "a bare true or false"),
        (b'"x"', "a bare text"),
        (b"\x00\x00\x00", "3 NUL bytes"),
        (b'{"a":', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"a":' * 50_000, "not valid JSON"),
    ],
)
def test_a_line_that_is_no_object_is_left_out_with_its_reason(raw: bytes, reason: str) -> None:
    before, bad, after = lines_of(b'{"n":0}\n' + raw + b'\n{"n":2}\n')
    assert (before.value, after.value) == ({"n": 0}, {"n": 2})
    assert bad.value is None
    assert bad.number == 1
    assert reason in bad.fault


@pytest.mark.parametrize(
    ("raw", "value", "note"),
    [
        (b'{"a":"x\xffy"}', {"a": "x\ufffdy"}, "invalid UTF-8 at its byte 7"),
        (b'\x00\x00{"a":1}\x00', {"a": 1}, "3 NUL bytes"),
        (rb'{"a":"\ud800"}', {"a": "\ufffd"}, "lone surrogates"),
    ],
)
def test_a_line_that_can_be_mended_is_mended_and_says_so(
    raw: bytes, value: dict[str, object], note: str
) -> None:
    (line,) = lines_of(raw + b"\n")
    assert line.value == value
    assert note in line.fault


def test_a_byte_order_mark_at_the_start_is_no_fault() -> None:
    (line,) = lines_of(b'\xef\xbb\xbf{"a":1}\n')
    assert (line.value, line.fault) == ({"a": 1}, "")


def test_a_cut_last_line_is_named_and_a_whole_one_without_newline_is_taken() -> None:
    assert lines_of(b'{"a":1}\n{"b":2}')[-1].value == {"b": 2}
    cut = lines_of(b'{"a":1}\n{"b":')[-1]
    assert cut.value is None
    assert cut.fault.startswith("the last line is cut after 5 bytes")


def test_a_whole_line_is_given_before_its_newline_comes_and_only_once() -> None:
    reader = LineReader()
    assert not list(reader.feed(b'{"a":1}'))
    assert [line.value for line in reader.whole()] == [{"a": 1}]
    assert not list(reader.whole())
    (after,) = reader.feed(b'\n{"b":2}\n')
    assert (after.value, after.number, after.offset) == ({"b": 2}, 1, 8)


def test_a_line_that_is_not_whole_yet_waits() -> None:
    reader = LineReader()
    list(reader.feed(b'{"a":'))
    assert not list(reader.whole())
    (line,) = reader.feed(b"1}\n")
    assert line.value == {"a": 1}


def test_a_line_of_20_megabytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"a":"' + b"x" * 20_000_000 + b'"}\n{"b":1}\n')
    long, after = read_lines(path)
    assert long.value is not None
    assert len(long.value["a"]) == 20_000_000
    assert after.value == {"b": 1}


def test_a_gzip_file_that_breaks_off_keeps_its_good_lines_and_says_where_they_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a":1}\n' * 1000)[:-20])
    *good, last = read_lines(path)
    assert good
    assert "cannot be read any further" in last.fault


def test_a_gzip_file_without_any_good_line_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a":1}\n' * 1000)[:12])
    with pytest.raises(ThresherError, match="cannot be read"):
        list(read_lines(path))
