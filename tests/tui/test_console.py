from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widget import Widget

from thresher.core import events as e
from thresher.core.bus import EventBus
from thresher.core.history import History
from thresher.core.text import clean
from thresher.tui.model import ConsoleModel, Feed
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.widgets.approval import answers_line
from thresher.tui.widgets.lines import Lines

from . import build


@asynccontextmanager
async def console(
    script: build.Script | None,
    *,
    size: tuple[int, int] = (120, 40),
    actor: build.RecordingActor | None = None,
) -> AsyncIterator[tuple[ConsoleScreen, Pilot[None]]]:
    app = build.ConsoleApp(build.model_of(script, actor))
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        await pilot.pause()
        yield app.screen_in_test, pilot


def text_of(widget: Widget) -> str:
    lines = widget.render_lines(Region(0, 0, widget.size.width, widget.size.height))
    return "\n".join(strip.text.rstrip() for strip in lines)


def toasts(screen: ConsoleScreen) -> list[str]:
    return [str(toast.message) for toast in screen.app._notifications]


async def test_the_console_shows_the_whole_session() -> None:
    async with console(build.long_session()) as (screen, _):
        assert "dates without a year" in text_of(screen.header)
        assert "reported" in text_of(screen.meter)
        assert "▲2" in text_of(screen.chart)
        assert "compactions" in text_of(screen.tiles)
        assert "compaction 2" in text_of(screen.timeline)
        assert "bash" in text_of(screen.detail)


async def test_compactions_are_stops_on_the_way_back_and_on() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("left_square_bracket")
        assert screen.banner.display
        assert "REWOUND to #104" in text_of(screen.banner)
        assert "~2,797 estimated" in text_of(screen.meter)
        await pilot.press("left_square_bracket")
        assert screen.model.state.compactions == 1
        assert "▲2" not in text_of(screen.chart)
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert not screen.model.rewound
        assert not screen.banner.display
        assert "▲2" in text_of(screen.chart)


@pytest.mark.parametrize("key", ["end", "L"])
async def test_one_key_leads_back_to_live(key: str) -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("comma", "comma", "left")
        assert screen.model.position == len(screen.model.history) - 3
        await pilot.press("full_stop")
        assert screen.model.position == len(screen.model.history) - 2
        await pilot.press(key)
        assert not screen.model.rewound
        assert screen.timeline.follow


async def test_the_layout_does_not_jump_when_the_view_is_rewound() -> None:
    async with console(build.long_session()) as (screen, pilot):
        before = (screen.meter.region, screen.timeline.region)
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert (screen.meter.region, screen.timeline.region) == before


async def test_without_a_compaction_the_key_says_so() -> None:
    async with console(build.near_threshold()) as (screen, pilot):
        await pilot.press("left_square_bracket")
        assert toasts(screen) == ["There is no compaction before this position."]


async def test_a_message_and_a_compaction_go_to_the_agent() -> None:
    actor = build.RecordingActor()
    async with console(build.near_threshold(), actor=actor) as (screen, pilot):
        assert screen.focused is screen.prompt
        for text in ("go on", "/compact the rule", "/nonsense"):
            screen.prompt.value = text
            await pilot.press("enter")
        assert actor.asked == [("send", "go on"), ("compact", "the rule")]
        assert screen.prompt.value == "/nonsense"
        assert toasts(screen) == ["There is no command /nonsense; there is /compact."]


async def test_the_compact_key_asks_for_a_focus() -> None:
    actor = build.RecordingActor()
    async with console(build.near_threshold(), actor=actor) as (screen, pilot):
        await pilot.press("tab", "c")
        assert screen.prompt.value == "/compact "
        screen.prompt.insert_text_at_cursor("tests")
        await pilot.press("enter")
        assert actor.asked == [("compact", "tests")]


async def test_escape_interrupts_a_busy_agent_and_leaves_the_input_of_an_idle_one() -> None:
    actor = build.RecordingActor()
    script = build.near_threshold()
    async with console(script, actor=actor) as (_, pilot):
        await pilot.press("escape")
        assert actor.asked == [("interrupt",)]
    async with console(script.ends(), actor=actor) as (screen, pilot):
        await pilot.press("escape")
        assert screen.focused is screen.timeline
        assert actor.asked == [("interrupt",)]


async def test_a_session_without_an_agent_takes_no_input_and_says_why() -> None:
    async with console(build.long_session()) as (screen, pilot):
        assert screen.prompt.disabled
        assert "this session can be watched, not continued" in text_of(screen.prompt)
        assert screen.focused is screen.timeline
        await pilot.press("c", "i")
        assert toasts(screen)[0] == "this session can be watched, not continued"


@pytest.mark.parametrize(("key", "decision"), [("y", "once"), ("a", "session"), ("n", "never")])
async def test_an_approval_is_answered_with_one_key(key: str, decision: str) -> None:
    actor = build.RecordingActor()
    async with console(build.approving(), actor=actor) as (screen, pilot):
        assert screen.focused is screen.approval
        assert "bash wants to run  rm -rf build" in text_of(screen.approval)
        await pilot.press(key)
        assert actor.asked == [("answer", decision)]


async def test_an_approval_is_answered_with_a_click() -> None:
    actor = build.RecordingActor()
    async with console(build.approving(), actor=actor) as (screen, pilot):
        at = "".join(text for text, _ in answers_line()).index("this session")
        await pilot.click(screen.approval, offset=(at + 2, 1))
        assert actor.asked == [("answer", "session")]


async def test_an_approval_does_not_take_the_letters_that_are_being_typed() -> None:
    actor = build.RecordingActor()
    script = build.near_threshold()
    bus = EventBus(len(script.history))
    model = build.model_of(script, actor)
    model.feed = Feed(bus.subscribe(), lambda position: [])
    app = build.ConsoleApp(model)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen_in_test
        await pilot.pause()
        await pilot.press(*"an")
        asked = e.ApprovalRequested(call_id="c", name="bash", arguments="{}")
        bus.publish(e.Record(script.n, 0.0, asked))
        screen.drain()
        await pilot.press(*"yes")
        assert screen.approval.display
        assert screen.prompt.value == "anyes"
        assert actor.asked == []


async def test_the_breaker_is_closed_by_its_key_and_only_while_it_is_open() -> None:
    actor = build.RecordingActor()
    async with console(build.breaker_open(), actor=actor) as (screen, pilot):
        assert "breaker open" in text_of(screen.header)
        await pilot.press("tab", "b")
        assert actor.asked == [("close_breaker",)]
    async with console(build.near_threshold(), actor=actor) as (screen, pilot):
        await pilot.press("tab", "b")
        assert actor.asked == [("close_breaker",)]
        assert toasts(screen) == ["The breaker is not open."]


async def test_in_one_column_enter_opens_the_detail_and_escape_closes_it() -> None:
    async with console(build.long_session(), size=(80, 24)) as (screen, pilot):
        assert not screen.query_one("#detail-pane").display
        await pilot.press("enter")
        assert screen.query_one("#detail-pane").display
        assert not screen.query_one("#timeline-pane").display
        assert "Arguments" in text_of(screen.detail)
        await pilot.press("escape")
        assert screen.query_one("#timeline-pane").display
        assert screen.focused is screen.timeline


async def test_the_detail_follows_the_selected_row() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("home")
        await pilot.pause()
        assert text_of(screen.detail).lstrip().startswith("system  #1")
        await pilot.press("enter", "end", "home")
        assert text_of(screen.detail).lstrip().startswith("system  #1")


async def test_a_selected_row_and_its_detail_come_in_one_picture() -> None:
    async with console(build.long_session()) as (screen, _):
        screen.timeline.select(0, follow=False)
        title = screen.query_one("#timeline-title")
        # Nothing was waited for: no picture can show the one without the others.
        assert text_of(screen.detail).lstrip().startswith("system  #1")
        assert "1 of " in text_of(title)


async def test_details_that_fit_are_laid_out_alike_and_a_smaller_pane_scrolls_no_further() -> None:
    async with console(build.long_session()) as (screen, pilot):
        heights = []
        for at in range(len(screen.timeline.state.rows)):
            screen.timeline.select(at, follow=False)
            heights.append(screen.detail.virtual_size.height)
        least = screen.detail.size.height
        assert min(heights) == least
        assert heights.count(least) > 5
        await pilot.resize_terminal(120, 24)
        await pilot.pause()
        assert len(text_of(screen.detail).split("\n")) == screen.detail.size.height
        await pilot.press("tab", "end")
        assert text_of(screen.detail).strip()


async def test_the_detail_scrolls_and_a_new_row_starts_at_its_top() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("enter", "end")
        assert screen.detail.scroll_offset.y > 0
        await pilot.press("escape", "up", "up")
        await pilot.pause()
        assert screen.detail.scroll_offset.y == 0


async def test_the_chart_comes_and_goes_with_its_key() -> None:
    async with console(build.long_session(), size=(80, 24)) as (screen, pilot):
        assert not screen.query_one("#chart-pane").display
        await pilot.press("v")
        await pilot.pause()
        assert screen.query_one("#chart-pane").display
        assert "▲2" in text_of(screen.chart)
        await pilot.press("v")
        assert not screen.query_one("#chart-pane").display


async def test_live_events_reach_every_widget() -> None:
    script = build.long_session()
    bus = EventBus()
    feed = Feed(bus.subscribe(), lambda position: script.history.records[position:])
    app = build.ConsoleApp(ConsoleModel(History(), feed=feed, marks_of=build.threshold_marks))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen_in_test
        await pilot.pause()
        assert "no session yet" in text_of(screen.header)
        for record in script.emitted:
            bus.publish(record)
        while len(screen.model.history) < len(script.history):
            screen.drain()
        await pilot.pause()
        assert "dates without a year" in text_of(screen.header)
        assert "10,488 reported" in text_of(screen.meter)
        assert "▲2" in text_of(screen.chart)
        assert "compaction 2" in text_of(screen.timeline)
        assert "Output" in text_of(screen.detail)


async def test_a_burst_of_events_costs_frames_and_not_events() -> None:
    script = build.Script().start()
    bus = EventBus(len(script.history))
    records = script.history.records
    model = build.model_of(script)
    model.feed = Feed(bus.subscribe(50_000), lambda position: records[position:])
    app = build.ConsoleApp(model)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen_in_test
        await pilot.pause()
        drawn = 0
        original = Lines.show

        def counting(self: Lines) -> None:
            nonlocal drawn
            drawn += 1
            original(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Lines, "show", counting)
            for number in range(10_000):
                bus.publish(e.Record(script.n + number, 0.0, e.Note(kind="n", text="x")))
            ticks = 0
            while len(model.history) < 10_000 + len(records[: script.n]):
                screen.drain()
                ticks += 1
            await pilot.pause()
        assert drawn <= 12 * (ticks + 4)
        assert len(screen.timeline.state.rows) > 10_000


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_hostile_text_passes_through_every_part_of_the_screen(
    size: tuple[int, int], hostile_corpus: list[tuple[str, str]]
) -> None:
    script = build.hostile([text for _, text in hostile_corpus if len(text) < 1_000])
    script.emit(
        e.ApprovalRequested(
            call_id="c", name="\x1b]52;c;eA==\x07[/]", arguments="[@click=app.quit]"
        )
    )
    async with console(script, size=size, actor=build.RecordingActor()) as (screen, pilot):
        screen.timeline.expand_all()
        await pilot.pause()
        checked = 0
        for row in range(0, len(screen.timeline.state.rows), 11):
            screen.timeline.select(row, follow=False)
            await pilot.pause()
            for widget in screen.walk_children():
                if not widget.size or not widget.display or isinstance(widget, type(screen)):
                    continue
                region = Region(0, 0, widget.size.width, widget.size.height)
                for strip in widget.render_lines(region):
                    checked += 1
                    assert clean(strip.text) == strip.text
                    for segment in strip:
                        meta = segment.style.meta if segment.style else {}
                        assert "@click" not in meta
        assert checked > 1_000
        assert screen.app.is_running


async def test_hostile_toasts_are_no_markup() -> None:
    actor = build.RecordingActor()
    async with console(build.near_threshold(), actor=actor) as (screen, pilot):
        screen.prompt.value = "/[b]x[@click=app.quit]\x1b"
        await pilot.press("enter")
        await pilot.pause()
        assert toasts(screen) == [
            "There is no command /[b]x[@click=app.quit]\u241b; there is /compact."
        ]


@pytest.mark.parametrize("size", [(20, 6), (40, 10), (300, 100)])
async def test_any_size_of_terminal_is_survived(size: tuple[int, int]) -> None:
    async with console(build.long_session(), size=size) as (screen, pilot):
        await pilot.press("end", "up", "enter")
        await pilot.pause()
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "compactions" in text_of(screen.tiles)


async def test_the_built_in_themes_show_the_console_too() -> None:
    async with console(build.long_session()) as (screen, pilot):
        for theme in ("textual-dark", "textual-light", "nord", "textual-ansi"):
            if theme in screen.app.available_themes:
                screen.app.theme = theme
                await pilot.pause()
                assert "compaction 2" in text_of(screen.timeline)
