from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from thresher.core.text import clean
from thresher.tui.spans import (
    Tone,
    clip,
    column,
    cut,
    ending,
    pad,
    span,
    spread,
    text_of,
    width,
    wrap,
)

texts = st.text(st.sampled_from("ab c-文，𝄞é🏳\ufe0f🇩🇪👍🏽"), max_size=40)
lines = st.lists(st.tuples(texts, st.sampled_from(Tone)), max_size=5)


@given(lines, st.integers(0, 60))
def test_a_padded_line_has_exactly_its_width(line: list[tuple[str, Tone]], cells: int) -> None:
    assert width(pad(line, cells)) == cells


@given(lines, st.integers(0, 60))
def test_a_clipped_line_fits(line: list[tuple[str, Tone]], cells: int) -> None:
    assert width(clip(line, cells)) <= cells


@given(lines, lines, st.integers(0, 60))
def test_two_ends_fill_the_width(
    left: list[tuple[str, Tone]], right: list[tuple[str, Tone]], cells: int
) -> None:
    assert width(spread(left, right, cells)) == cells


@given(texts, st.integers(0, 30), st.booleans())
def test_a_column_has_exactly_its_width(text: str, cells: int, right: bool) -> None:
    assert cell_len(column(text, cells, right=right)[0]) == cells


@given(st.text(st.sampled_from("ab \n文，-x🏳\ufe0f🇩🇪"), max_size=200), st.integers(2, 40))
def test_wrapping_fits_and_loses_nothing_but_spaces(text: str, cells: int) -> None:
    wrapped = wrap(text, cells)
    assert all(cell_len(line) <= cells for line in wrapped)
    assert "".join(wrapped).replace(" ", "") == text.replace("\n", "").replace(" ", "")


def test_words_stay_whole_and_their_indent_hangs() -> None:
    assert wrap("  one two three", 9) == ["  one two", "  three"]


def test_a_list_hangs_by_its_bullet() -> None:
    assert wrap("- one two three", 12) == ["- one two", "  three"]
    assert wrap("12. one two three", 12) == ["12. one two", "    three"]


def test_a_very_long_word_is_broken() -> None:
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_chinese_breaks_between_characters() -> None:
    assert wrap("上下文压缩", 4) == ["上下", "文压", "缩"]


def test_what_gives_way_is_the_left_end() -> None:
    line = spread([span("a long title")], [span("12,345")], 14)
    assert text_of(line) == "a lon…  12,345"


def test_a_megabyte_wraps_in_linear_pieces() -> None:
    text = clean("0123456789abcdef" * 65_536)
    wrapped = wrap(text, 64)
    assert len(wrapped) == 16_384
    assert "".join(wrapped) == text


@given(texts, st.integers(1, 30))
def test_an_ending_fits_and_is_the_end(text: str, cells: int) -> None:
    end = ending(text, cells)
    assert cell_len(end) <= cells
    assert end == text or (end.startswith("…") and text.endswith(end[1:]))


def test_a_cut_text_ends_in_an_ellipsis_and_is_clean() -> None:
    assert cut("a very long name", 8) == "a very…"
    assert cut("name", 8) == "name"
    assert cut("a\x1b[2J\nb", 20) == "a\u241b[2J\u23ceb"
