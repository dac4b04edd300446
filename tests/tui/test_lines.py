from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.state import SessionState
from thresher.core.text import clean
from thresher.core.tokens import Basis, Scope
from thresher.core.views import Fate, RowKind
from thresher.tui.spans import Line, Tone, span, text_of, width
from thresher.tui.theme import DARK_NAME, LIGHT_NAME, ThemedApp
from thresher.tui.widgets import approval, banner, header, meter, tiles, title
from thresher.tui.widgets.card_lines import folded_lines, open_lines
from thresher.tui.widgets.detail_lines import detail_lines
from thresher.tui.widgets.lines import Toned
from thresher.tui.widgets.timeline_rows import (
    fate_mark,
    row_lines,
    short_argument,
    stream_line,
)

from . import build


def texts(lines: list[Line]) -> list[str]:
    return [text_of(line).rstrip() for line in lines]


def every_line(state: SessionState, cells: int) -> Iterator[Line]:
    yield header.header_line(state, cells)
    yield banner.banner_line(state, 3, 9, cells)
    yield meter.figure_line(state, (), (), cells)
    yield meter.bar_line(state, (), cells)
    yield meter.legend_line(state, cells)
    yield from tiles.table_lines(state, cells)
    yield tiles.one_line(state, cells)
    for index, row in enumerate(state.rows):
        if row.kind is RowKind.COMPACTION:
            yield from folded_lines(state.cards[row.card], cells)
            yield from open_lines(state.cards[row.card], cells)
        else:
            yield from row_lines(state, row, index, cells)
        yield from detail_lines(state, row, cells)


@pytest.mark.parametrize("cells", [38, 78, 118])
def test_hostile_text_comes_out_clean_and_inside_its_width(
    cells: int, hostile_corpus: list[tuple[str, str]]
) -> None:
    # The longest texts stand in only once; the rest of the corpus in every place there is.
    state = build.hostile([text for _, text in hostile_corpus if len(text) < 1_000]).state
    for line in every_line(state, cells):
        whole = text_of(line)
        assert clean(whole) == whole
        assert "\n" not in whole
        assert width(line) <= cells


def test_the_longest_texts_are_capped(hostile_corpus: list[tuple[str, str]]) -> None:
    for name, text in hostile_corpus:
        if len(text) >= 1_000:
            script = build.Script().start().user(text)
            lines = detail_lines(script.state, script.state.rows[-1], 60)
            assert all(width(line) <= 60 for line in lines), name
            assert len(lines) < 9_000, name


def test_streams_are_clean_too(hostile_corpus: list[tuple[str, str]]) -> None:
    for _, text in hostile_corpus:
        script = build.Script().start()
        script.emit(e.MessageDelta(text=text or "x"))
        line = stream_line(script.state, 70)
        assert line is not None
        assert clean(text_of(line)) == text_of(line)
        assert width(line) <= 70


def test_an_approval_shows_the_clean_command(hostile_corpus: list[tuple[str, str]]) -> None:
    for _, text in hostile_corpus:
        asked = e.ApprovalRequested(call_id="c", name=text, arguments=text)
        for line in approval.approval_lines(asked, 70):
            assert clean(text_of(line)) == text_of(line)
            assert width(line) <= 70


def test_a_folded_card_tells_figures_counts_and_reason_in_three_lines() -> None:
    card = build.long_session().state.cards[1]
    first, second, third = texts(folded_lines(card, 90))
    assert first.startswith("▸ Σ compaction 2  manual, summarise")
    assert first.endswith("✓ done   2.5s")
    assert second.strip().startswith("~14,150 → ~2,797 estimated, messages")
    assert second.endswith("- 20   = 2   ~ 1   + 1")
    assert third == "    asked for by the user"


def test_a_wide_card_says_the_counts_in_words() -> None:
    second = texts(folded_lines(build.long_session().state.cards[1], 120))[1]
    assert second.endswith("- 20 removed   = 2 kept   ~ 1 rewritten   + 1 inserted")


def test_figures_of_different_scope_keep_their_scopes_where_room_is_short() -> None:
    card = build.long_session().state.cards[1]
    before = build.tokens(126_708, Basis.ESTIMATED, Scope.REQUEST)
    card = msgspec.structs.replace(card, before=before)
    told = texts(folded_lines(card, 68))[1]
    assert "~126,708 request → ~2,797 messages" in told
    assert "…" not in told


def test_an_open_card_names_the_entries_and_unfolds_the_summary() -> None:
    told = "\n".join(texts(open_lines(build.long_session().state.cards[1], 90)))
    assert "focus      keep the leap day rule" in told
    assert "removed    - #52 #46-#95" in told
    assert "kept       = #98-#101" in told
    assert "rewritten  ~ #1 → #104" in told
    assert "inserted   + #104.1" in told
    assert "summariser gpt-5-mini, 14,570 tokens in, 380 out, 1 attempt, 2.1s" in told
    assert "Summary sent to the model" in told
    assert "│ - never touch the public signature of `parse_when`" in told


def test_a_running_card_shows_the_end_of_the_summary_and_keeps_its_height() -> None:
    script = build.compacting()
    name = script.state.cards[-1].pass_id
    before = folded_lines(script.state.cards[-1], 70)
    script.emit(e.MessageDelta(text=" the newest word", channel="summary", pass_id=name))
    after = folded_lines(script.state.cards[-1], 70)
    assert len(after) == len(before)
    assert texts(after)[-1].endswith("the newest word")


def test_a_failed_card_says_why_what_follows_and_that_nothing_changed() -> None:
    card = build.failed_compaction().state.cards[0]
    assert "the context is unchanged" in "\n".join(texts(folded_lines(card, 90)))
    told = "\n".join(texts(open_lines(card, 90)))
    assert "attempt 2  ! gpt-5-mini, timeout: no answer within 60 seconds" in told
    assert "next       go on without a compaction; the next round tries again" in told


def test_the_trigger_of_an_overflow_is_named() -> None:
    card = build.overflow().state.cards[0]
    assert card.trigger is Trigger.OVERFLOW
    assert "overflow" in texts(folded_lines(card, 90))[0]


def test_a_tool_row_tells_status_name_argument_exit_time_and_tokens() -> None:
    state = build.long_session().state
    index = max(k for k, row in enumerate(state.rows) if row.kind is RowKind.TOOL)
    (line,) = texts(row_lines(state, state.rows[index], index, 90))
    assert line.split() == [
        "#127", "✗", "bash", "pytest", "-q", "tests/test_when.py", "exit", "1", "3.2s", "~2,350",
    ]  # fmt: skip


def test_what_left_the_context_is_marked_in_its_row() -> None:
    state = build.long_session().state
    row = next(row for row in state.rows if row.kind is RowKind.USER)
    (line,) = texts(row_lines(state, row, 0, 90))
    assert line.startswith("-    #3 U user")
    assert fate_mark(Fate())[0] == " "


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"path": "a.py", "limit": 3}', "a.py"),
        ('{"command": ["ls", "-l"]}', "ls -l"),
        ('{"depth": 2, "deep": true}', "depth=2  deep=True"),
        ('{"path": "a.py"', '{"path": "a.py"'),
        ("[1, 2]", "[1, 2]"),
        ("", ""),
    ],
)
def test_the_telling_argument_stands_for_the_call(arguments: str, told: str) -> None:
    assert short_argument(arguments, 60) == told


def test_the_detail_of_a_tool_shows_arguments_output_and_lineage() -> None:
    state = build.long_session().state
    row = next(row for row in state.rows if row.kind is RowKind.TOOL)
    told = "\n".join(texts(detail_lines(state, row, 60)))
    assert "call #7    - absorbed by compaction 1 into summary #52" in told
    assert "path  core/when.py" in told
    assert "def parse_when(text: str) -> datetime:" in told


def test_the_detail_of_an_edit_shows_long_arguments_as_they_read() -> None:
    script = build.Script().start().user("x")
    script.tool("edit_file", {"new": "one\n    two"}, "done")
    told = texts(detail_lines(script.state, script.state.rows[-1], 60))
    assert told[told.index("new") :][:3] == ["new", "  one", "      two"]


def test_the_detail_of_a_summary_names_what_it_stands_for() -> None:
    state = build.long_session().state
    entry = next(entry for entry in state.context if entry.made_by == 2 and entry.origin[1:])
    assert len(entry.origin) == 20
    card = state.cards[1]
    row = next(row for row in state.rows if row.card == 1)
    told = "\n".join(texts(detail_lines(state, row, 70)))
    assert "Removed   20 items" in told
    assert f"+ {card.inserted_ids[0]}" in told


def test_unknown_prices_and_counts_are_question_marks() -> None:
    state = build.long_session().state
    assert "price ?" not in "".join(texts(tiles.table_lines(state, 60)))
    state.cards[0] = msgspec.structs.replace(
        state.cards[0], summariser=e.Summariser("nobody-knows-1", state.cards[0].usage)
    )
    assert "price ?" in "".join(texts(tiles.table_lines(state, 60)))


def test_a_removal_below_nothing_is_told_as_it_is() -> None:
    table = "\n".join(texts(tiles.table_lines(build.chinese().state, 70)))
    assert "~-24  estimated, messages" in table


def test_header_drops_what_matters_least() -> None:
    state = build.long_session().state
    wide, narrow = (text_of(header.header_line(state, cells)) for cells in (118, 78))
    assert "window 24,096 (--window 24096)" in wide
    assert "s-7f3a" in wide
    assert "window 24,096" in narrow
    assert "s-7f3a" not in narrow
    assert "teaching" in narrow


def test_header_tells_how_far_the_screen_is_behind() -> None:
    line = text_of(header.header_line(build.long_session().state, 140, 12_345))
    assert "12,345 events behind" in line


def test_a_long_title_gives_way_before_the_name_of_the_program() -> None:
    script = build.Script().start(title="Read every log one after the other " * 3, agent="codex")
    for cells in (100, 120, 160):
        line = text_of(header.header_line(script.state, cells))
        assert "  codex " in line
        assert line.startswith("Read every l")


def test_a_title_says_less_rather_than_half_a_word() -> None:
    shown = title.Title("detail")
    told, short = [span("Enter follows   Backspace comes back")], [span("Enter follows")]
    for cells, end in ((60, "Backspace comes back"), (40, "Enter follows"), (30, "Enter follows")):
        shown.set(remark=told, short=short)
        (line,) = shown.draw(cells, 1)
        assert text_of(line).endswith(end)
        assert width(line) <= cells


async def test_neighbours_of_one_tone_are_one_segment_of_the_line() -> None:
    app = ThemedApp()
    async with app.run_test(size=(40, 4)):
        widget = Toned()
        await app.mount(widget)
        told = [span("a"), span("b"), span("c", Tone.MUTED), span("d", Tone.MUTED), span("e")]
        drawn = widget.strip(told, 8)
        assert [segment.text for segment in drawn] == ["ab", "cd", "e   "]
        muted = [segment.style for segment in drawn][1]
        assert muted == widget.rich_style + widget.tone(Tone.MUTED)
        under = widget.behind("cursor-row")
        lit = [segment.style for segment in widget.strip(told, 8, under)]
        assert [style.bgcolor if style else None for style in lit] == [under.bgcolor] * 3
        assert [segment.style for segment in widget.strip(told, 8)] == [
            segment.style for segment in drawn
        ]


async def test_a_background_under_a_line_is_that_of_the_theme_in_force() -> None:
    app = ThemedApp()
    async with app.run_test(size=(40, 4)) as pilot:
        widget = Toned()
        await app.mount(widget)
        found = []
        for theme in (DARK_NAME, LIGHT_NAME):
            app.theme = theme
            await pilot.pause()
            (segment,) = widget.strip([], 3, widget.behind("cursor-row"))
            assert segment.style is not None
            found.append(segment.style.bgcolor)
        assert [colour.name if colour else "" for colour in found] == ["#222b37", "#dde6f0"]
