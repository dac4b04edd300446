from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Input

from thresher.core.debug.stop import Fate, Point
from thresher.core.views import RowKind
from thresher.tui.app import ThresherApp
from thresher.tui.opening import Opened
from thresher.tui.screens.ask import AskScreen
from thresher.tui.screens.choosing import PolicyScreen
from thresher.tui.screens.confirm import ConfirmScreen
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.context import ContextHead, ContextScreen
from thresher.tui.screens.debugging import BreakpointsScreen
from thresher.tui.screens.diff import DiffScreen
from thresher.tui.screens.export import ExportedScreen, ExportScreen
from thresher.tui.screens.filter import FilterScreen
from thresher.tui.screens.forecast import ForecastScreen
from thresher.tui.screens.help import HelpBody, HelpScreen
from thresher.tui.screens.holding import StopBar
from thresher.tui.screens.listing import ListScreen, MarkList
from thresher.tui.screens.tour import TourBody, TourScreen
from thresher.tui.screens.write import WriteScreen
from thresher.tui.widgets.banner import RewoundBanner
from thresher.tui.widgets.choices import Choice, Choices, places
from thresher.tui.widgets.footer import KeyFooter
from thresher.tui.widgets.prompt import Prompt
from thresher.tui.widgets.row_list import RowList

from . import build
from .looking import console, shown, text_of
from .stopping import RULE, Rig, reads, says

SUMMARY = "## Goal\nread the rules"


def lines_on(widget: Widget) -> list[str]:
    """All of a widget that draws lines, with what surrounds them."""
    whole = Region(0, 0, widget.outer_size.width, widget.outer_size.height)
    return [strip.text for strip in widget.render_lines(whole)]


async def click_words(pilot: Pilot[None], widget: Widget, words: str) -> None:
    """Click in the middle of some words on a widget that draws lines."""
    await pilot.pause()
    found = [(y, line) for y, line in enumerate(lines_on(widget)) if words in line]
    assert found, f"{words!r} is not on {lines_on(widget)}"
    y, line = found[0]
    await pilot.click(widget, offset=(line.index(words) + len(words) // 2, y))
    await pilot.pause()


async def way(pilot: Pilot[None], words: str) -> None:
    """Take a way of the dialog in view."""
    await click_words(pilot, pilot.app.screen.query_one(Choices), words)


def over(script: build.Script, actor: Any = None) -> ThresherApp:
    async def start() -> Opened:
        return Opened(build.model_of(script, actor))

    return ThresherApp(start, clock=lambda: 1_900_000_000.0)


@pytest.mark.parametrize("cells", [12, 30, 60])
@pytest.mark.parametrize("lead", [0, 9])
def test_ways_that_have_no_room_stand_on_another_line(cells: int, lead: int) -> None:
    ways = [Choice("Enter", "goes", "a"), Choice("Tab", "to it", "b"), Choice("Esc", "no", "c")]
    found = list(places(ways, cells, lead))
    assert [place.choice for place in found] == ways
    assert all(place.end <= cells for place in found)
    for one, other in pairwise(found):
        assert other.row > one.row or other.start >= one.end + 3


# -- dialogs -----------------------------------------------------------------------------------


async def test_a_line_of_text_is_accepted_and_refused_by_a_click() -> None:
    async with console(build.long_session()) as (screen, pilot):
        answers: list[str | None] = []
        for words in ("accepts", "closes"):
            dialog = AskScreen("where to", "a place", value="c1")
            screen.app.push_screen(dialog, answers.append)
            await shown(pilot, AskScreen)
            await way(pilot, words)
            await shown(pilot, ConsoleScreen)
        assert answers == ["c1", None]


async def test_bookmarks_are_set_gone_to_and_removed_by_the_mouse() -> None:
    async with console(build.long_session()) as (screen, pilot):
        screen.action_bookmark()
        await shown(pilot, AskScreen)
        await pilot.press("h", "i")
        await way(pilot, "accepts")
        line = screen.timeline.row
        assert [mark.note for mark in screen.model.bookmarks] == ["hi"]
        screen.timeline.select(3, follow=False)
        screen.action_bookmarks()
        await shown(pilot, MarkList)
        await way(pilot, "goes there")
        assert screen.timeline.row is line
        screen.action_bookmarks()
        await shown(pilot, MarkList)
        await way(pilot, "removes it")
        await way(pilot, "closes")
        await shown(pilot, ConsoleScreen)
        assert list(screen.model.bookmarks) == []


async def test_a_phase_is_gone_to_by_two_clicks_on_its_row() -> None:
    async with console(build.long_session()) as (screen, pilot):
        screen.action_outline()
        dialog = await shown(pilot, ListScreen)
        await pilot.click(RowList, offset=(12, 2))
        assert await shown(pilot, ListScreen) is dialog
        await pilot.click(RowList, offset=(12, 2))
        await shown(pilot, ConsoleScreen)
        assert screen.timeline.row is not None


async def test_the_forecast_is_closed_by_a_click() -> None:
    async with console(build.long_session()) as (screen, pilot):
        screen.action_forecast()
        await shown(pilot, ForecastScreen)
        await way(pilot, "closes")
        await shown(pilot, ConsoleScreen)


async def test_a_filter_is_set_and_used_by_the_mouse() -> None:
    async with console(build.long_session()) as (screen, pilot):
        screen.action_diff()
        diff = await shown(pilot, DiffScreen)
        await pilot.press("f")
        await shown(pilot, FilterScreen)
        await way(pilot, "turns it on or off")
        await way(pilot, "shows what is left")
        assert await shown(pilot, DiffScreen) is diff
        assert len(diff.compared.by.kinds) == 1


async def test_a_file_is_written_by_the_mouse_alone(tmp_path: Path) -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("E")
        dialog = await shown(pilot, ExportScreen)
        await way(pilot, "to the file")
        line = dialog.query_one(Input)
        assert line.has_focus
        line.value = str(tmp_path / "along.md")
        await way(pilot, "writes it there")
        await shown(pilot, ExportedScreen)
        assert (tmp_path / "along.md").is_file()
        await way(pilot, "closes")
        await shown(pilot, ConsoleScreen)
        assert screen.is_active


async def test_the_tour_is_gone_through_and_left_by_the_mouse() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("f2")
        tour = await shown(pilot, TourScreen)
        body = tour.query_one(TourBody)
        await way(pilot, "next")
        assert body.at == 1
        await way(pilot, "back")
        assert body.at == 0
        await way(pilot, "skip the tour")
        await shown(pilot, ConsoleScreen)
        assert screen.is_active


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_key_in_the_help_is_pressed_by_a_click(size: tuple[int, int]) -> None:
    async with console(build.long_session(), size=size) as (screen, pilot):
        await pilot.press("question_mark")
        help = await shown(pilot, HelpScreen)
        body = help.query_one(HelpBody)
        body.scroll_visible(animate=False)
        at = text_of(body).splitlines()
        y = next(n for n, line in enumerate(at) if "Before and after of the sel" in line)
        help.query_one("VerticalScroll").scroll_to(y=max(0, y - 5), animate=False, immediate=True)
        await pilot.pause()
        await click_words(pilot, body, "Before and after of the sel")
        await shown(pilot, DiffScreen)
        assert screen in pilot.app.screen_stack


async def test_all_keys_are_shown_by_a_click_and_those_of_elsewhere_do_nothing() -> None:
    async with console(build.long_session(), size=(160, 48)) as (_, pilot):
        await pilot.press("question_mark")
        help = await shown(pilot, HelpScreen)
        await way(pilot, "all keys")
        body = help.query_one(HelpBody)
        assert "Look for sessions again" in text_of(body)
        keys = {key.id for row in body._rows(body.size.width) for _, _, key in row.keys}
        assert "picker.reload" in keys
        rows = text_of(body).splitlines()
        y = next(n for n, line in enumerate(rows) if "Look for sessions again" in line)
        assert body.key_at(rows[y].index("Look for"), y) is None
        await way(pilot, "closes")
        await shown(pilot, ConsoleScreen)


# -- at a stop ---------------------------------------------------------------------------------


async def test_a_stop_is_decided_by_the_mouse_alone(tmp_path: Path) -> None:
    rig = Rig(tmp_path, reads("RULES.md", "c1"), says(SUMMARY), says("Done."))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        console = await rig.console(pilot)
        prompt = console.query_one(Prompt)
        prompt.value = "Read the rules."
        await pilot.pause()
        await click_words(pilot, console.query_one(KeyFooter), "Send")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        # Back to the console, and over the line that says that it waits to the stop again.
        await click_words(pilot, screen.query_one(KeyFooter), "Back")
        assert await rig.console(pilot) is console
        await click_words(pilot, console.query_one(StopBar), "look")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        at = next(n for n, line in enumerate(screen.lines) if RULE in line.entry.item.text)
        await pilot.click(screen.rows, offset=(20, at))
        await click_words(pilot, screen.query_one(KeyFooter), "Pin")
        assert screen.lines[screen.rows.cursor].by == "pin"
        # What has no room in the footer is in the help.
        await click_words(pilot, screen.query_one(KeyFooter), "Help")
        help = await shown(pilot, HelpScreen)
        await click_words(pilot, help.query_one(HelpBody), "Let another policy propose")
        await shown(pilot, PolicyScreen)
        await way(pilot, "closes")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        await click_words(pilot, screen.query_one(KeyFooter), "Summary")
        writing = await shown(pilot, WriteScreen)
        writing._area.text = "## Goal\nwritten by hand"
        await way(pilot, "uses it")
        screen = await rig.stopped(pilot, Point.EDIT)
        assert any(line.fate is Fate.INSERT for line in screen.lines)
        await click_words(pilot, screen.query_one(KeyFooter), "Apply")
        console = await rig.idle(pilot)
        card = rig.model.history.state.cards[-1]
        assert "pinned 1, summary written by the user" in card.marks
        console.set_focus(console.timeline)
        await console.run_action("undo")
        await shown(pilot, ConfirmScreen)
        await way(pilot, "does it")
        await rig.until(pilot, lambda: rig.model.history.state.cards[-1].undone)


async def test_a_breakpoint_is_set_added_and_cleared_by_the_mouse(tmp_path: Path) -> None:
    rig = Rig(tmp_path, says("Hello."), breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        console = await rig.console(pilot)
        console.action_breakpoints()
        dialog = await shown(pilot, BreakpointsScreen)
        await way(pilot, "sets or clears it")
        await way(pilot, "to another one")
        dialog.input.value = "tokens:20000"
        await way(pilot, "adds it")
        assert [str(point) for point in rig.actor.breakpoints()] == ["compaction", "tokens:20000"]
        await way(pilot, "to the list")
        await pilot.click(RowList, offset=(10, 0))
        await way(pilot, "sets or clears it")
        assert [str(point) for point in rig.actor.breakpoints()] == ["tokens:20000"]
        await way(pilot, "closes")
        assert await rig.console(pilot) is console


# -- the console -------------------------------------------------------------------------------


async def test_the_words_at_the_end_of_the_track_lead_back_to_live() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert screen.model.rewound
        await click_words(pilot, screen.query_one(RewoundBanner), "for live")
        assert not screen.model.rewound


async def test_a_click_folds_a_card_and_opens_the_detail_of_a_row() -> None:
    async with console(build.long_session(), size=(80, 24)) as (screen, pilot):
        timeline = screen.timeline
        card = next(
            at for at, row in enumerate(timeline.state.rows) if row.kind is RowKind.COMPACTION
        )
        timeline.select(card, follow=False)
        await pilot.pause()
        lines = text_of(timeline).splitlines()
        y = next(n for n, line in enumerate(lines) if "compaction 1" in line)
        await pilot.click(timeline, offset=(10, y))
        await pilot.pause()
        assert len([line for line in text_of(timeline).splitlines() if "▾" in line]) == 1
        timeline.select(2, follow=False)
        await pilot.pause()
        y = timeline._heights.top(2) - int(timeline.scroll_offset.y)
        await pilot.click(timeline, offset=(10, y))
        await pilot.pause()
        assert screen.has_class("detail-open")


async def test_an_empty_message_has_no_key_to_send_it() -> None:
    script = build.Script().start().user("go")
    app = over(script, build.RecordingActor())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await shown(pilot, ConsoleScreen)
        screen.set_focus(screen.prompt)
        await pilot.pause()
        assert "Send" not in text_of(screen.query_one(KeyFooter))
        await pilot.press("h", "i")
        await pilot.pause()
        await click_words(pilot, screen.query_one(KeyFooter), "Send")
        actor = screen.model.actor
        assert isinstance(actor, build.RecordingActor)
        assert actor.asked == [("send", "hi")]
        assert "Send" not in text_of(screen.query_one(KeyFooter))


# -- tooltips ----------------------------------------------------------------------------------


async def hovered(pilot: Pilot[None], widget: Widget, x: int, y: int) -> str:
    """What the tooltip says of a cell."""
    await pilot.hover(widget, offset=(x, y))
    await pilot.pause()
    tip = widget.tooltip
    assert tip is None or isinstance(tip, Content)
    return tip.plain if tip is not None else ""


async def test_a_column_of_the_chart_tells_its_figure() -> None:
    async with console(build.long_session()) as (screen, pilot):
        axis = lines_on(screen.chart)[-1]
        first = await hovered(pilot, screen.chart, axis.index("1"), 3)
        assert first == "round 1: 1,458 tokens reported, 7 % of the limit"
        drop = await hovered(pilot, screen.chart, axis.index("▲1"), 3)
        size = next(point.total for point in screen.model.state.points if point.card >= 0)
        assert drop == f"after compaction 1: ~{size:,} tokens estimated, 5 % of the limit"
        assert await hovered(pilot, screen.chart, axis.index("18") + 4, 3) == ""


async def test_the_header_tells_who_states_the_window() -> None:
    async with console(build.long_session(), size=(80, 24)) as (screen, pilot):
        told = await hovered(pilot, screen.header, 30, 0)
        assert told == "session s-7f3a; window 24,096 (--window 24096); policy teaching"


async def test_a_tile_of_the_context_tells_what_it_is() -> None:
    async with console(build.long_session()) as (screen, pilot):
        screen.action_context()
        context = await shown(pilot, ContextScreen)
        head = context.query_one(ContextHead)
        largest = max(context.inspection.rows, key=lambda row: row.tokens)
        told = {await hovered(pilot, head, x, 2) for x in range(1, 118, 4)}
        wanted = f"~{largest.tokens:,} tokens estimated, {largest.share:.1%} of the context"
        assert any(wanted in tip for tip in told)


async def test_an_answer_to_a_tool_that_asks_tells_what_it_comes_to() -> None:
    app = over(build.approving(), build.RecordingActor())
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        screen = await shown(pilot, ConsoleScreen)
        line = lines_on(screen.approval)[1]
        told = await hovered(pilot, screen.approval, line.index("never") + 1, 1)
        assert told == "Neither this call runs nor calls like it; the model is told so"


async def test_the_track_tells_its_signs_and_a_key_in_the_help_that_it_can_be_clicked() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("left_square_bracket")
        await pilot.pause()
        track = lines_on(screen.banner)[0].index("━") + 2
        assert "▲ compaction" in await hovered(pilot, screen.banner, track, 0)
        await pilot.press("question_mark")
        body = (await shown(pilot, HelpScreen)).query_one(HelpBody)
        assert await hovered(pilot, body, 3, 1) == "A click presses ↑"


async def test_foreign_text_in_a_tooltip_is_clean_and_no_markup() -> None:
    async with console(build.a_little_hostile()) as (screen, pilot):
        told = await hovered(pilot, screen.header, 5, 0)
        assert "\x1b" not in told
        assert "\u202e" not in told
        tip = screen.header.tooltip
        assert isinstance(tip, Content)
        assert not any("@click" in str(span.style) for span in tip.spans)


async def test_the_help_of_a_stop_names_only_what_can_be_decided_there(tmp_path: Path) -> None:
    rig = Rig(tmp_path, reads("RULES.md", "c1"), says(SUMMARY))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("question_mark")
        told = text_of((await shown(pilot, HelpScreen)).query_one(HelpBody))
        assert "Let another policy propose" in told
        assert "Ask another program's model" not in told


async def test_a_toast_does_not_cover_the_ways_out_of_a_dialog() -> None:
    async with console(build.long_session(), size=(80, 24)) as (screen, pilot):
        screen.say("something was told")
        await pilot.pause()
        rack = screen.query_one("ToastRack")
        assert rack.display
        screen.action_bookmark()
        dialog = await shown(pilot, AskScreen)
        assert not rack.display
        toast = dialog.query_one("Toast").region
        assert toast.area
        assert not toast.overlaps(dialog.query_one(Choices).region)
        await way(pilot, "closes")
        await shown(pilot, ConsoleScreen)
        assert rack.display
