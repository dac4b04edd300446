from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from thresher.core import events as e
from thresher.core.context import EntryId
from thresher.core.state import Changed, SessionState
from thresher.core.views import Fate, Row, RowKind
from thresher.tui.spans import Tone
from thresher.tui.theme import ThemedApp
from thresher.tui.widgets.timeline import Timeline
from thresher.tui.widgets.timeline_rows import held_mark

from . import build


class TimelineApp(ThemedApp):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def compose(self) -> ComposeResult:
        yield Timeline()

    @property
    def timeline(self) -> Timeline:
        return self.query_one(Timeline)

    def on_timeline_opened(self) -> None:
        self.messages.append("opened")


@asynccontextmanager
async def showing(
    state: SessionState, size: tuple[int, int] = (100, 20)
) -> AsyncIterator[tuple[TimelineApp, Pilot[None]]]:
    app = TimelineApp()
    async with app.run_test(size=size) as pilot:
        app.timeline.show_state(state, ~Changed.NOTHING)
        await pilot.pause()
        yield app, pilot


def seen(app: TimelineApp) -> list[str]:
    timeline = app.timeline
    return [timeline.render_line(y).text.rstrip() for y in range(timeline.size.height)]


def notes(count: int) -> build.Script:
    script = build.Script().start()
    for number in range(count):
        script.emit(e.Note(kind="n", text=f"note {number}"))
    return script


async def test_following_shows_the_newest_row_and_keeps_doing_so() -> None:
    script = notes(200)
    async with showing(script.state) as (app, pilot):
        assert seen(app)[-1].endswith("note 199")
        script.emit(e.Note(kind="n", text="note 200"))
        app.timeline.show_state(script.state, Changed.ROWS)
        await pilot.pause()
        assert seen(app)[-1].endswith("note 200")
        assert app.timeline.unseen == 0


async def test_moving_up_leaves_follow_mode_and_the_reader_is_not_pulled_away() -> None:
    script = notes(200)
    async with showing(script.state) as (app, pilot):
        app.timeline.focus()
        await pilot.press("pageup")
        before = seen(app)
        for _ in range(3):
            script.emit(e.Note(kind="n", text="new"))
        app.timeline.show_state(script.state, Changed.ROWS)
        await pilot.pause()
        assert seen(app) == before
        assert not app.timeline.follow
        assert app.timeline.unseen == 3
        await pilot.press("end")
        assert app.timeline.follow
        assert app.timeline.unseen == 0
        assert seen(app)[-1].endswith("new")


async def test_the_wheel_leaves_and_enters_follow_mode() -> None:
    async with showing(notes(200).state) as (app, pilot):
        app.timeline.scroll_relative(y=-30, animate=False)
        await pilot.pause()
        assert not app.timeline.follow
        app.timeline.scroll_to(y=10_000, animate=False)
        await pilot.pause()
        app.timeline.on_mouse_scroll_down()
        assert app.timeline.follow


async def test_every_row_can_be_reached_with_the_keys() -> None:
    async with showing(build.long_session().state) as (app, pilot):
        app.timeline.focus()
        await pilot.press("home")
        assert app.timeline.cursor == 0
        visited = [app.timeline.cursor]
        while not app.timeline.follow:
            await pilot.press("down")
            visited.append(app.timeline.cursor)
        assert visited == list(range(len(app.timeline.state.rows)))


async def test_enter_unfolds_a_card_in_place_and_folds_it_again() -> None:
    async with showing(build.long_session().state) as (app, pilot):
        timeline = app.timeline
        timeline.focus()
        timeline.select_card(0)
        await pilot.pause()
        folded = timeline.virtual_size.height
        await pilot.press("enter")
        assert timeline.is_open(0)
        assert timeline.virtual_size.height > folded
        assert any("reason" in line for line in seen(app))
        await pilot.press("enter")
        assert not timeline.is_open(0)
        assert timeline.virtual_size.height == folded


async def test_all_cards_open_and_fold_together() -> None:
    async with showing(build.long_session().state) as (app, pilot):
        app.timeline.expand_all()
        assert app.timeline.is_open(0)
        assert app.timeline.is_open(1)
        app.timeline.expand_all()
        assert not app.timeline.is_open(0)
        await pilot.pause()


async def test_a_click_selects_and_a_second_click_asks_for_the_detail() -> None:
    async with showing(notes(200).state) as (app, pilot):
        await pilot.click(Timeline, offset=(30, 5))
        chosen = app.timeline.cursor
        assert "note" in seen(app)[5]
        assert app.timeline.row is not None
        assert app.timeline.row.text in seen(app)[5]
        assert app.messages == []
        await pilot.click(Timeline, offset=(30, 5))
        assert app.timeline.cursor == chosen
        assert app.messages == ["opened"]


async def test_a_click_on_the_first_line_of_a_card_unfolds_it() -> None:
    async with showing(build.long_session().state) as (app, pilot):
        y = next(y for y, line in enumerate(seen(app)) if "compaction 2" in line)
        await pilot.click(Timeline, offset=(30, y))
        assert app.timeline.is_open(1)


async def test_the_summary_streams_into_its_card_without_moving_other_rows() -> None:
    script = build.compacting()
    async with showing(script.state) as (app, pilot):
        before = seen(app)
        name = script.state.cards[-1].pass_id
        script.emit(e.MessageDelta(text=" streamed word", channel="summary", pass_id=name))
        app.timeline.show_state(script.state, Changed.CARDS | Changed.STREAM)
        await pilot.pause()
        after = seen(app)
        assert after[:-4] == before[:-4]
        assert any("streamed word" in line for line in after)


async def test_a_card_that_ends_takes_its_final_height() -> None:
    script = build.compacting()
    async with showing(script.state) as (app, pilot):
        script.compacted(script.state.cards[-1].pass_id)
        app.timeline.show_state(script.state, Changed.CARDS | Changed.ROWS)
        await pilot.pause()
        assert any("✓ done" in line for line in seen(app))
        turns = sum(row.kind is RowKind.TURN for row in script.state.rows)
        rows = len(script.state.rows)
        assert app.timeline.virtual_size.height == rows + turns + 2


async def test_text_that_is_being_written_is_the_last_row() -> None:
    script = build.streaming()
    async with showing(script.state) as (app, pilot):
        assert seen(app)[-1].endswith("looks for a month name first.▏")
        script.says("Done.")
        app.timeline.show_state(script.state, Changed.ROWS | Changed.STREAM)
        await pilot.pause()
        assert "Done." in seen(app)[-1]


async def test_a_compaction_marks_the_rows_of_what_it_removed() -> None:
    script = build.near_threshold().round()
    async with showing(script.state, (100, 60)) as (app, pilot):
        assert not any(line.startswith(" -") for line in seen(app))
        script.compacted(script.compaction_starts("now"))
        app.timeline.show_state(script.state, Changed.CARDS | Changed.ROWS)
        await pilot.pause()
        assert any(line.startswith(" -") for line in seen(app))


def test_a_row_is_marked_whatever_took_its_entries_away() -> None:
    gone, cleared = EntryId(1), EntryId(2)
    state = SessionState()
    state.fates[gone] = Fate(rolled_back=True)
    state.fates[cleared] = Fate(unannounced=True, became=EntryId(9))
    assert held_mark(state, gone)[0] == "-"
    # The output of a call is cleared while the call stays.
    assert held_mark(state, EntryId(3), cleared)[0] == "~"
    state.fates[gone] = Fate(back=EntryId(8))
    assert held_mark(state, gone)[0] == " "


async def test_a_rewound_state_shows_its_own_rows() -> None:
    script = build.long_session()
    async with showing(script.state) as (app, pilot):
        app.timeline.show_state(script.history.at(20), ~Changed.NOTHING)
        await pilot.pause()
        assert not any("compaction" in line for line in seen(app))


async def test_another_width_wraps_open_cards_anew() -> None:
    async with showing(build.long_session().state) as (app, pilot):
        app.timeline.expand_all()
        await pilot.pause()
        wide = app.timeline.virtual_size.height
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        assert app.timeline.virtual_size.height > wide
        assert all(len(line) <= 50 for line in seen(app))


async def test_the_cost_of_a_frame_does_not_depend_on_the_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = notes(20_000)
    async with showing(script.state) as (app, pilot):
        made: list[int] = []
        original = Timeline._made_strips

        def counting(self: Timeline, row: Row, index: int, selected: bool) -> list[Strip]:
            made.append(index)
            return original(self, row, index, selected)

        monkeypatch.setattr(Timeline, "_made_strips", counting)
        app.timeline.select(3)
        await pilot.pause()
        seen(app)
        assert 0 < len(made) <= 4 * app.timeline.size.height


async def test_an_empty_session_says_that_nothing_has_happened() -> None:
    async with showing(SessionState()) as (app, _):
        assert any("nothing has happened yet" in line for line in seen(app))


async def test_the_theme_gives_every_tone_a_style() -> None:
    async with showing(build.long_session().state) as (app, pilot):
        styles = {tone: app.timeline.tone(tone) for tone in Tone}
        assert all(style.color for tone, style in styles.items() if tone is not Tone.PLAIN)
        drawn = app.timeline.render_line(3)
        app.theme = "textual-light"
        await pilot.pause()
        assert app.timeline.tone(Tone.REMOVED) != styles[Tone.REMOVED]
        assert app.timeline.render_line(3) != drawn
        assert app.timeline.render_line(3).text == drawn.text
