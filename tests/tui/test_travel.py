from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.context import EntryId, Inserted, Kept, Segment
from thresher.core.history import History
from thresher.core.items import user
from thresher.core.sessions.bookmarks import Bookmarks
from thresher.core.views import RowKind
from thresher.tui.insights import SHORT, Insights
from thresher.tui.model import ConsoleModel
from thresher.tui.screens.ask import AskScreen
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.listing import ListScreen, MarkList
from thresher.tui.travel import Place, Stops, named_position, row_of
from thresher.tui.widgets.track import Track, position_of, track_line

from . import build
from .looking import codex, console, lines_of, shown, text_of, toasts, typed


def test_stops_are_where_requests_went_out_and_where_something_failed() -> None:
    history = build.failed_compaction().history
    stops = Stops(history)
    assert len(stops.rounds) == history.state.rounds
    assert len(stops.errors) == 2
    assert stops.compactions == []
    found = list(stops.rounds)
    history.extend(build.long_session().history.records[-1:])
    assert list(stops.rounds) == found


def test_a_place_is_shown_by_its_row_by_the_call_of_an_output_and_by_a_card() -> None:
    state = build.long_session().state
    outputs = [run for run in state.tools.values() if run.output is not None]
    run = outputs[0]
    at = row_of(state, Place(run.output.line, run.output))
    assert at is not None
    assert state.rows[at].call_id == run.call_id
    card = state.cards[1]
    for place in (Place(card.n), Place(card.n, card.inserted_ids[0])):
        at = row_of(state, place)
        assert at is not None
        assert state.rows[at].card == 1
    assert row_of(state, Place(10**9, EntryId(10**9))) == len(state.rows) - 1
    assert row_of(History().state, Place(3)) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [("#12", 12), (" 12 ", 12), ("c1", None), ("c1-", None), ("c9", -1), ("x", -1), ("99999", -1)],
)
def test_positions_are_named_by_line_or_by_compaction(text: str, line: int | None) -> None:
    history = build.long_session().history
    card = history.state.cards[0].n
    wanted = {"c1": card, "c1-": card - 1}.get(text, line)
    position = named_position(history, text)
    assert position is None if wanted == -1 else history.at(position or 0).position == wanted


async def test_rounds_and_errors_are_stops_too() -> None:
    async with console(build.failed_compaction()) as (screen, pilot):
        rounds = list(screen.model.stops.rounds)
        await pilot.press("left_curly_bracket")
        assert screen.model.position == rounds[-1]
        await pilot.press("left_curly_bracket", "right_curly_bracket")
        assert screen.model.position == rounds[-1]
        await pilot.press("left_parenthesis")
        assert screen.model.position == screen.model.stops.errors[-1]
        await pilot.press("left_parenthesis", "left_parenthesis")
        assert "There is no error before this position." in toasts(pilot)


async def test_playing_goes_on_record_by_record_and_ends_live() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("plus", "plus", "plus", "plus", "space")
        assert screen.playing
        assert screen.model.rewound
        seen = set()
        while screen.model.rewound:
            seen.add(screen.model.position)
            await pilot.pause()
        assert not screen.playing
        assert screen.timeline.state is screen.model.history.state


async def test_a_paused_view_is_the_one_that_a_rewind_gives() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("space", "plus", "plus", "plus")
        while (screen.model.position or 0) < 40:
            await pilot.pause()
        await pilot.press("space")
        position = screen.model.position
        assert not screen.playing
        assert position is not None
        assert screen.model.state.rows == screen.model.history.at(position).rows
        assert "‖ 64/s" in text_of(screen.banner)


async def test_a_click_on_the_track_goes_there() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("left_square_bracket")
        banner = text_of(screen.banner)
        await pilot.click("RewoundBanner", offset=(banner.index("━") + 2, 0))
        assert (screen.model.position or 0) < 20


def test_every_sign_of_a_track_has_its_cell() -> None:
    track = Track(100, (50,), (80, 51), (20,))
    line = "".join(text for text, _ in track_line(track, 0, 50))
    assert line[0] == "●"
    assert line[25] == "▲"
    assert line[40] == "!"
    assert line[10] == "◆"
    assert len(line) == 50
    assert [position_of(cell, 100, 50) for cell in (0, 25, 49)] == [1, 51, 99]
    assert track_line(track, 0, 5) == []


async def test_a_step_of_a_life_leads_to_its_compaction_and_backspace_back() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("home", "down", "down", "down", "down")
        began = screen.timeline.cursor
        row = screen.timeline.row
        assert row is not None
        assert "absorbed" in text_of(screen.detail)
        screen.detail.focus()
        await pilot.pause()
        while screen.detail.link is None or screen.detail.link.id is not None:
            await pilot.press("down")
        await pilot.press("enter")
        landed = screen.timeline.row
        assert landed is not None
        assert landed.kind is RowKind.COMPACTION
        assert "stands for" in lines_of(screen.detail)
        await pilot.press("backspace")
        assert screen.timeline.cursor == began
        await pilot.press("backspace")
        assert "No jump led here." in toasts(pilot)


async def test_a_card_says_why_now_and_a_round_why_not(tmp_path: Path) -> None:
    async with console(build.long_session(), size=(160, 48)) as (screen, pilot):
        rows = screen.timeline.state.rows
        for kind, words in ((RowKind.COMPACTION, "Why now"), (RowKind.ROUND, "Why not")):
            at = max(n for n, row in enumerate(rows) if row.kind is kind)
            screen.timeline.select(at, follow=False)
            await pilot.pause()
            told = lines_of(screen.detail)
            assert words in told
            assert "window" in told
            if kind is RowKind.COMPACTION:
                assert "Other policies here" in told
                assert "short" in told


async def test_in_a_long_session_the_detail_is_completed_by_a_thread() -> None:
    script = build.long_session()
    while len(script.history) <= SHORT:
        script.user("more").says("and more")
    async with console(script) as (screen, pilot):
        assert not screen.insights.short
        rows = screen.timeline.state.rows
        first = next(at for at, row in enumerate(rows) if row.kind is RowKind.USER)
        screen.timeline.select(first, follow=False)
        while "absorbed" not in text_of(screen.detail):
            await pilot.pause()


async def test_bookmarks_have_a_note_are_listed_gone_to_and_removed(tmp_path: Path) -> None:
    path = codex("mid_turn", tmp_path)
    async with console(path) as (screen, pilot):
        await pilot.press("home", "down", "down", "m")
        await shown(pilot, AskScreen)
        await typed(pilot, "the rule")
        await pilot.press("enter")
        await shown(pilot, ConsoleScreen)
        assert "◆" in text_of(screen.timeline)
        await pilot.press("end", "apostrophe")
        await shown(pilot, MarkList)
        await pilot.press("enter")
        await shown(pilot, ConsoleScreen)
        assert screen.timeline.cursor == 2
    async with console(path) as (screen, pilot):
        assert [mark.note for mark in screen.model.bookmarks] == ["the rule"]
        await pilot.press("apostrophe")
        await shown(pilot, MarkList)
        await pilot.press("x", "escape")
        await shown(pilot, ConsoleScreen)
        assert len(screen.model.bookmarks) == 0
        assert "◆" not in text_of(screen.timeline)
    before = codex("mid_turn", tmp_path / "..").read_bytes()
    assert path.read_bytes() == before


async def test_bookmarks_that_cannot_be_read_are_told_when_they_are_wanted() -> None:
    bookmarks = Bookmarks()
    bookmarks.fault = "x.json is not as it was written: move it away to begin anew."
    model = ConsoleModel(build.long_session().history, bookmarks=bookmarks)
    async with console(model) as (_, pilot):
        await pilot.press("apostrophe")
        await shown(pilot, MarkList)
        assert toasts(pilot) == ["x.json is not as it was written: move it away to begin anew."]


async def test_the_outline_leads_to_a_turn() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("O")
        listing = await shown(pilot, ListScreen)
        told = text_of(listing.rows)
        assert "phase 1" in told
        assert "until compaction 1" in told
        await pilot.press("home", "down", "down", "enter")
        await shown(pilot, ConsoleScreen)
        row = screen.timeline.row
        assert row is not None
        assert row.kind is RowKind.TURN
        assert row.number == 1


def test_a_life_is_out_of_date_after_an_edit_that_takes_nothing_out() -> None:
    history = History()

    def emit(event: e.Event) -> None:
        history.append(e.Record(len(history), 0.0, event))

    def edit(*segments: Segment) -> None:
        emit(
            e.HistoryRolledBack(
                turns=0, segments=segments, items_before=0, items_after=0, removed=0
            )
        )

    emit(e.SessionStarted(session_id="s", agent="thresher", model="m", policy="teaching"))
    emit(e.ItemAppended(item=user("stays")))
    emit(e.ItemAppended(item=user("leaves")))
    edit(Kept("1", "1"))
    insights, row = Insights(history), history.state.rows[1]
    insights.fetch(row)
    left = insights.life(EntryId(2))
    assert left is not None
    assert left.seen == "the model sees nothing of it"
    edit(Kept("1", "1"), Inserted(user("leaves")))
    assert insights.missing(row)
    insights.fetch(row)
    back = insights.life(EntryId(2))
    assert back is not None
    assert back.seen == "the model sees it again as #4"
