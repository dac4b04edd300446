from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from thresher.core.insight.alignment import DiffRow, RowKind
from thresher.core.insight.diff import Diff, Filter, compaction_diff
from thresher.core.insight.inline import Piece, Side, change, inline
from thresher.core.text import clean
from thresher.tui.compared import Inside
from thresher.tui.screens.ask import AskScreen
from thresher.tui.screens.context import ContextScreen
from thresher.tui.screens.diff import DiffHead, DiffScreen
from thresher.tui.screens.filter import FilterScreen
from thresher.tui.screens.forecast import ForecastScreen
from thresher.tui.screens.text import TextScreen
from thresher.tui.spans import Tone, width
from thresher.tui.spans import text_of as told
from thresher.tui.theme import STYLES
from thresher.tui.widgets.change_lines import BETWEEN, changed_lines, excerpt
from thresher.tui.widgets.diff_lines import opened_lines, preview_lines, row_line
from thresher.tui.widgets.pieces import apart, condensed, toned, wrap_spans
from thresher.tui.widgets.row_list import RowList

from . import build
from .looking import FIXTURES, console, rendered, shown, text_of, toasts, typed

SIZES = [(80, 24), (120, 40), (160, 48)]


async def diff_of(pilot: Any, screen: Any) -> DiffScreen:
    await pilot.press("end", "d")
    found = await shown(pilot, DiffScreen)
    while found.compared.totals is None:
        await pilot.pause()
    return found


async def to_the_first(pilot: Any, diff: DiffScreen, kind: RowKind) -> DiffRow:
    await pilot.press("home")
    while diff.row_at is None or diff.diff.rows[diff.row_at].kind is not kind:
        await pilot.press("down")
    return diff.diff.rows[diff.row_at]


def rows_of(screen: DiffScreen | ContextScreen) -> str:
    return text_of(screen.query_one(RowList))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
async def test_the_diff_aligns_what_was_removed_kept_and_inserted(size: tuple[int, int]) -> None:
    async with console(build.long_session(), size=size) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        text = rows_of(diff)
        await pilot.press("end")
        text += "\n" + rows_of(diff)
        assert ("│" in text) == (size[0] >= 120)
        assert "- #" in text
        assert "+ #" in text
        assert "= #" in text
        lengths = {len(line) for line in text.splitlines() if line.strip() and "⋯" not in line}
        assert max(lengths) <= size[0]
        assert "compaction 2: before and after" in "\n".join(rendered(diff))


async def test_whose_figures_they_are_is_told_where_they_do_not_come_to_the_same(
    tmp_path: Path,
) -> None:
    packed = FIXTURES / "opencode" / "v1-prune" / "opencode.db.gz"
    path = tmp_path / "opencode.db"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    async with console(path) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        head = text_of(diff.query_one(DiffHead))
        assert "~74,422 → ~32,556" in head
        assert (
            "entries: counted here, messages only; the figure above: as opencode-v1 counted" in head
        )
    async with console(build.long_session()) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        assert "counted here" not in text_of(diff.query_one(DiffHead))


async def test_jumps_go_from_change_to_change() -> None:
    async with console(build.long_session()) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        rows = diff.query_one(RowList)
        await pilot.press("home")
        kinds = []
        for _ in range(20):
            before = rows.cursor
            await pilot.press("n")
            if rows.cursor == before:
                break
            at = diff.row_at
            assert isinstance(at, int)
            kinds.append(diff.diff.rows[at].kind)
        assert RowKind.REMOVED in kinds
        assert RowKind.INSERTED in kinds
        assert RowKind.KEPT not in kinds
        assert "There is no change after this one." in toasts(pilot)
        await pilot.press("N")
        assert rows.cursor < before


async def test_a_removed_entry_is_read_in_full_and_copied() -> None:
    async with console(build.long_session()) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        before, _ = diff.diff.entries(await to_the_first(pilot, diff, RowKind.REMOVED))
        assert before is not None
        await pilot.press("y")
        assert pilot.app.clipboard == before.item.text
        await pilot.press("enter")
        await shown(pilot, TextScreen)
        assert clean(before.item.text).splitlines()[0][:40] in "\n".join(rendered(pilot.app.screen))
        await pilot.press("escape", "escape")
        await shown(pilot, type(screen))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
async def test_a_rewritten_entry_says_in_its_row_how_and_opens_in_place(
    size: tuple[int, int],
) -> None:
    async with console(build.long_session(), size=size) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        row = await to_the_first(pilot, diff, RowKind.REWRITTEN)
        before, after = diff.diff.entries(row)
        assert before is not None
        assert after is not None
        folded = rows_of(diff)
        assert "~▸" in folded
        found = change(before.item.text, after.item.text)
        assert f"-{found.gone:,} +{found.came:,}" in folded
        shown_before = len(diff.compared.shown)
        await pilot.press("enter")
        opened = rows_of(diff)
        assert "~▾" in opened
        assert opened.splitlines()[-1].strip()
        assert len(diff.compared.shown) > shown_before
        signs = opened.replace(folded.splitlines()[0], "")
        assert "    …" in signs
        assert "+ …" not in signs
        assert "+ Be brief." in signs
        assert opened.count("Be brief.") > folded.count("Be brief.")
        await pilot.press("n", "N")
        assert diff.diff.rows[diff.row_at or 0] == row
        await pilot.press("down", "enter")
        text = await shown(pilot, TextScreen)
        lines = "\n".join(rendered(text))
        assert "AFTER" in lines
        assert "You are a careful coding agent." in lines
        await pilot.press("escape", "up", "enter")
        assert len(diff.compared.shown) == shown_before
        assert rows_of(diff) == folded


async def test_what_is_opened_is_laid_out_anew_for_another_width() -> None:
    async with console(build.long_session(), size=(160, 48)) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        row = await to_the_first(pilot, diff, RowKind.REWRITTEN)
        await pilot.press("enter")
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert diff.diff.rows[diff.row_at or 0] == row
        inside = [each for each in diff.compared.shown if isinstance(each, Inside)]
        assert inside
        assert all(width(diff.compared.inside(each)) <= 80 for each in inside)


async def test_the_first_picture_of_the_diff_has_its_rows() -> None:
    async with console(build.long_session()) as (screen, pilot):
        pictures: list[str] = []

        class Looking(DiffScreen):
            CSS_PATH = STYLES / "diff.tcss"

            def on_resize(self) -> None:
                pictures.append("\n".join(rendered(self)))

        state = screen.model.state
        card = state.cards[-1]
        diff = compaction_diff(card, state)
        assert diff is not None
        await pilot.app.push_screen(Looking(state, diff, card=card))
        await pilot.pause()
        assert "before and after" in pictures[0]
        assert str(diff.rows[0].before) in pictures[0]


async def test_the_filter_lets_through_what_is_chosen() -> None:
    async with console(build.long_session()) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        await pilot.press("f")
        await shown(pilot, FilterScreen)
        await pilot.press("enter", "escape")
        await shown(pilot, DiffScreen)
        assert diff.compared.by == Filter(kinds=frozenset({RowKind.REMOVED}))
        assert "only removed" in "\n".join(rendered(diff))
        removed = sum(row.kind is RowKind.REMOVED for row in diff.diff.rows)
        assert len(diff.compared.shown) == removed


async def test_what_was_kept_is_folded_and_unfolds() -> None:
    script = build.long_session()
    for at in range(30):
        script.says(f"kept {at}")
    name = script.compaction_starts(script.reason())
    script.compacted(name, summary="s")
    async with console(script) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        folded = len(diff.compared.shown)
        await pilot.press("e")
        assert len(diff.compared.shown) == len(diff.diff.rows) >= folded
        await pilot.press("e")
        assert len(diff.compared.shown) == folded


async def test_the_summary_is_compared_with_the_one_before() -> None:
    async with console(build.long_session()) as (screen, pilot):
        diff = await diff_of(pilot, screen)
        await pilot.press("s")
        await pilot.pause()
        text = "\n".join(rendered(diff))
        assert "compaction 2: summary" in text
        assert "kept" in text
        assert "vanished" in text
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert "This is the first summary" in "\n".join(rendered(diff))
        await pilot.press("left_square_bracket")
        assert "There is no compaction before this one." in toasts(pilot)


async def test_without_a_compaction_there_is_a_sentence() -> None:
    async with console(build.near_threshold()) as (_, pilot):
        await pilot.press("d")
        assert toasts(pilot) == ["There is no compaction here to compare."]


async def test_the_context_is_the_list_at_the_position_in_view() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("left_square_bracket", "x")
        context = await shown(pilot, ContextScreen)
        state = screen.model.state
        assert [row.id for row in context.inspection.rows] == list(state.context.ids)
        text = rows_of(context)
        assert "100.0%" in text
        await pilot.press("s")
        sizes = [row.tokens for row in context._rows]
        assert sizes == sorted(sizes, reverse=True)
        assert context._rows[-1].cumulative == pytest.approx(1.0)


async def test_what_is_there_twice_and_what_is_stale_is_marked_with_its_reason() -> None:
    script = build.Script().start().user("go")
    text = "def parse(text):\n    return text\n" * 10
    for _ in range(2):
        script.round()
        script.tool("read_file", {"path": "src/a.py"}, text)
    script.round()
    script.tool("write_file", {"path": "src/a.py", "content": "x"}, "written")
    async with console(script) as (_, pilot):
        await pilot.press("x")
        context = await shown(pilot, ContextScreen)
        assert "2× stale" in rows_of(context)
        await pilot.press("home", "n")
        shown_text = "\n".join(rendered(context))
        assert "the same file as in" in shown_text
        assert "stale: " in shown_text
        assert "was changed later" in shown_text


async def test_the_wire_form_is_what_the_session_sends() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("x")
        context = await shown(pilot, ContextScreen)
        await pilot.press("w")
        while context.wire is None:
            await pilot.pause()
        assert len(context.wire) == len(screen.model.wire_of(screen.model.state))
        assert '"role"' in rows_of(context)
        await pilot.press("y")
        assert pilot.app.clipboard == context.wire[0].json
        await pilot.press("w")
        assert context.wire is None


@pytest.mark.parametrize("keys", [("x", "c"), ()], ids=["from the context", "from the palette"])
async def test_any_two_positions_can_be_compared(keys: tuple[str, ...]) -> None:
    async with console(build.long_session()) as (screen, pilot):
        if keys:
            await pilot.press(*keys)
        else:
            await screen.run_action("compare")
        await shown(pilot, AskScreen)
        await typed(pilot, "c1" if keys else "c1- c1")
        await pilot.press("enter")
        diff = await shown(pilot, DiffScreen)
        assert "the context at #" in "\n".join(rendered(diff))
        await pilot.press("left_square_bracket")
        assert "These are two positions, not a compaction." in toasts(pilot)


async def test_the_forecast_names_every_policy() -> None:
    from thresher.core.compaction.policies.registry import policies

    async with console(build.near_threshold(), size=(120, 40)) as (screen, pilot):
        await screen.run_action("forecast")
        forecast = await shown(pilot, ForecastScreen)
        await pilot.pause()
        text = "\n".join(rendered(forecast))
        assert all(name in text for name in policies())
        assert "● teaching" in text


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
async def test_hostile_text_is_shown_as_what_it_is(
    size: tuple[int, int], hostile_corpus: list[tuple[str, str]]
) -> None:
    texts = [text for _, text in hostile_corpus if len(text) < 1_000]
    script = build.hostile(texts)
    async with console(script, size=size) as (screen, pilot):
        assert list(rendered(screen))
        for keys in (("d",), ("s",), ("escape",), ("x",), ("w",), ("escape",), ("O",), ("escape",)):
            await pilot.press(*keys)
            await pilot.pause()
            assert list(rendered(pilot.app.screen))
        await pilot.press("slash")
        await typed(pilot, "a")
        for _ in range(8):
            await pilot.press("down")
            assert list(rendered(screen))


@pytest.mark.parametrize("cells", [38, 78, 117, 157])
def test_lines_are_clean_and_inside_their_width(
    cells: int, hostile_corpus: list[tuple[str, str]]
) -> None:
    state = build.hostile([text for _, text in hostile_corpus]).state
    for card in state.cards:
        diff = compaction_diff(card, state)
        assert isinstance(diff, Diff)
        for row in diff.rows:
            for line in (
                row_line(state, diff, row, cells),
                *preview_lines(diff, row, cells),
                *opened_lines(diff, row, cells),
            ):
                assert width(line) <= cells
                assert clean(told(line)) == told(line)


def test_a_placeholder_is_not_mixed_into_the_text_it_stands_for() -> None:
    pieces = apart(inline("a long output\nof several lines", "[cleared]"))
    assert [piece.side for piece in pieces] == [Side.OLD, Side.NEW]
    near = inline("the rule is two", "the rule is three")
    assert apart(near) == near


@pytest.mark.parametrize("cells", [60, 130])
def test_a_change_has_a_sign_wherever_it_has_a_colour(cells: int) -> None:
    lines = changed_lines(inline("one\ntwo words\nthree", "one\ntwo signs\nthree\nfour"), cells)
    text = [told(line).rstrip() for line in lines]
    assert any(line.lstrip().startswith("- two words") for line in text)
    assert any("+ two signs" in line for line in text)
    assert any("+ four" in line for line in text)
    assert "  one" in text[0]
    for line in lines:
        signs = {span[0].strip() for span in line}
        tones = {span[1] for span in line}
        assert (Tone.REMOVED not in tones) or "-" in signs
        assert (Tone.INSERTED not in tones) or "+" in signs


@pytest.mark.parametrize("cells", [60, 130])
@pytest.mark.parametrize(
    ("old", "new", "signed"),
    [
        ("one\ntwo", "one\ntwo\nthree", ["+ three"]),
        ("one\ntwo\n", "one\ntwo\nthree", ["+ three"]),
        ("one\ntwo", "one\ntwo\nthree\n", ["+ three"]),
        ("one\ntwo\nthree", "one\ntwo", ["- three"]),
        ("one\ntwo", "new\none\ntwo", ["+ new"]),
        ("one\ntwo", "one\nnew\ntwo", ["+ new"]),
        ("one\n\ntwo", "one\n\nnew\n\ntwo", ["+ new", "+"]),
        ("one\ntwo", "one\ntwo\n", []),
        ("one\ntwo\n", "one\ntwo", []),
        ("one\ntwo", "one\ntwo more", ["+ two more"]),
    ],
)
def test_a_line_that_both_texts_have_has_no_sign(
    cells: int, old: str, new: str, signed: list[str]
) -> None:
    lines = [told(line) for line in changed_lines(inline(old, new), cells)]
    sides = [side.rstrip() for line in lines for side in line.split(BETWEEN)]
    assert [side for side in sides if side[:1] in ("+", "-")] == signed
    assert any(side.startswith("  one") for side in sides)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("line 3 of it\nline 4", "line three of it\nline 4", "…three"),
        ("line 3 of it\nline 4", "line 3\n[cut]", "…[cut]"),
        ("a long output", "[cleared]", "[cleared]"),
        ("the rule and more", "the rule", "…- and more"),
        ("same", "same", "the same text"),
    ],
)
def test_a_row_shows_the_new_text_from_where_it_differs(old: str, new: str, expected: str) -> None:
    assert told(excerpt(change(old, new), 40)).strip() == expected


def test_a_space_beside_a_change_stays() -> None:
    pieces = inline("line 7 of " + "many " * 90, "line seven of " + "many " * 90)
    assert "".join(text for text, _ in toned(condensed(pieces), Side.NEW)).startswith(
        "line seven of many"
    )


def test_long_equal_parts_are_left_out_between_changes() -> None:
    pieces = [Piece(Side.OLD, "x"), Piece(Side.BOTH, "same " * 400), Piece(Side.NEW, "y")]
    text = "".join(piece.text for piece in condensed(pieces))
    assert "…" in text
    assert len(text) < 400
    lines = wrap_spans(toned(pieces), 30)
    assert all(width(line) <= 30 for line in lines)
