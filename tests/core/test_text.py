from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.text import NEWLINE_MARK, cap_lines, clean, clean_line

# Cf signs that are drawn: they belong to the text and hide nothing.
VISIBLE_FORMAT = {
    *map(chr, range(0x600, 0x606)),
    *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd",
}
FORBIDDEN = {
    char
    for char in map(chr, range(sys.maxunicode + 1))
    if char != "\n"
    and char not in VISIBLE_FORMAT
    and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
}
SPICE = st.sampled_from(sorted(FORBIDDEN | set("\n\t\r[]<> aä中😀\ufe0f")))
anything = st.text(st.one_of(SPICE, st.characters()))


def forbidden_in(text: str) -> list[str]:
    return [f"U+{ord(c):04X}" for c in text if c in FORBIDDEN]


def test_every_control_and_format_character_gets_a_visible_stand_in() -> None:
    result = clean("".join(sorted(FORBIDDEN)))
    assert forbidden_in(result) == []
    assert all(clean(char).strip() for char in FORBIDDEN - {"\t"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "␛[2J"),
        ("a\x00b", "a␀b"),
        ("\x7f", "␡"),
        ("\x9b", "<U+009B>"),
        ("\u202e", "<U+202E>"),
        ("\ufeffx", "<U+FEFF>x"),
        ("\ud800", "<U+D800>"),
        ("\U000e0041", "<U+E0041>"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("a\tb\n\tc", "a   b\n    c"),
        ("\x1b\tx", "␛   x"),
        ("\ue0b0 ❤️ 😀 中文 é", "\ue0b0 ❤️ 😀 中文 é"),
        ("😀\u200d😀", "😀<U+200D>😀"),
    ],
)
def test_stand_ins_are_readable(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(anything)
def test_no_text_brings_a_forbidden_character_through(text: str) -> None:
    assert forbidden_in(clean(text)) == []
    assert "\n" not in clean(text, keep_newlines=False)
    clean(text).encode("utf-8")


@given(anything, st.integers(1, 8))
def test_cleaning_twice_changes_nothing_and_growth_is_bounded(text: str, tabs: int) -> None:
    once = clean(text, tabs=tabs)
    assert clean(once, tabs=tabs) is once
    assert len(once) <= 10 * len(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]).filter(lambda c: c < "\u0300")))
def test_safe_text_is_returned_as_it_is(text: str) -> None:
    assert clean(text) is text


def test_hostile_text_is_harmless_everywhere(hostile_text: str) -> None:
    for shown in (
        clean(hostile_text),
        clean_line(hostile_text, 60),
        cap_lines(hostile_text, 3, 3, 60),
    ):
        assert forbidden_in(shown) == []
        shown.encode("utf-8")


@given(anything, st.integers(0, 40))
def test_a_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = clean_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line
    whole = clean(text, keep_newlines=False)
    if len(whole) <= limit:
        assert line == whole
    elif limit:
        assert "…" in line


def test_a_cut_line_says_how_many_characters_are_not_shown() -> None:
    line = clean_line("x" * 1_000_000, 40)
    shown = line.count("x")
    assert line == "x" * shown + f"… {1_000_000 - shown:,} more"
    assert 30 < len(line) <= 40


def test_a_cut_line_counts_characters_of_the_original_not_of_the_stand_ins() -> None:
    line = clean_line("\u202e" * 100, 40)
    assert line == "<U+202E>" * 3 + "… 97 more"


def test_newlines_in_a_line_are_marked() -> None:
    assert clean_line("a\r\nb\n", 10) == f"a{NEWLINE_MARK}b{NEWLINE_MARK}"


def test_a_short_text_is_shown_whole() -> None:
    assert cap_lines("a\r\nb\n\x1b\n", 2, 1, 20) == "a\nb\n␛"


def test_a_long_text_shows_both_ends_and_the_number_left_out() -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))
    assert cap_lines(text, 2, 1, 20) == "line 0\nline 1\n… 19,997 more lines\nline 19999"
    assert cap_lines(text, 0, 1, 20) == "… 19,999 more lines\nline 19999"
    assert cap_lines(text, 1, 0, 20) == "line 0\n… 19,999 more lines"


def test_long_lines_in_a_preview_are_cut_one_by_one() -> None:
    rows = cap_lines("short\n" + "y" * 12_385, 5, 5, 52).split("\n")
    assert rows[0] == "short"
    assert len(rows[1]) <= 52
    assert rows[1].endswith("more")


@given(anything, st.integers(0, 4), st.integers(0, 4), st.integers(1, 30))
def test_a_preview_is_bounded_in_lines_and_width(
    text: str, head: int, tail: int, width: int
) -> None:
    rows = cap_lines(text, head, tail, width).split("\n")
    assert len(rows) <= head + tail + 1
    assert all(len(row) <= width or row.endswith("more lines") for row in rows)
