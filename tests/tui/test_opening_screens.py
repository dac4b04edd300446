from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.segment import Segment
from textual.dom import DOMNode
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from thresher.tui.app import ThresherApp
from thresher.tui.collector import Collector
from thresher.tui.opening import Opened
from thresher.tui.remembered import Remembered
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.diff import DiffScreen
from thresher.tui.screens.help import HelpBody, HelpScreen
from thresher.tui.screens.text import TextScreen
from thresher.tui.theme import DARK_NAME, LIGHT_NAME, STYLES, Rules, ThemedApp
from thresher.tui.warm import SCREENS
from thresher.tui.widgets.footer import KeyFooter
from thresher.tui.widgets.lines import Lines

from . import build
from .looking import console, shown, text_of


async def warmed(pilot: Pilot[None]) -> None:
    while any(worker.group == "warm" for worker in pilot.app.workers if not worker.is_finished):
        await pilot.pause(0.01)


async def test_when_the_console_stands_there_no_screen_has_styles_to_parse_any_more() -> None:
    async with console(build.long_session()) as (_, pilot):
        await warmed(pilot)
        rules = pilot.app.stylesheet
        assert all(rules.has_source(str(path)) for path in STYLES.glob("*.tcss"))
        known = rules.rules
        await pilot.press("end", "d")
        diff = await shown(pilot, DiffScreen)
        assert diff.query_one("#diff-rows").styles.height is not None
        assert known[0] is rules.rules[0]
        assert known[-1] in rules.rules


async def test_a_theme_recolours_what_was_parsed_before() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await warmed(pilot)
        grounds = []
        for theme in (DARK_NAME, LIGHT_NAME, DARK_NAME):
            pilot.app.theme = theme
            await pilot.pause()
            grounds.append(screen.styles.background.hex)
        assert grounds == ["#0F1318", "#FBFCFD", "#0F1318"]


async def test_a_new_screen_has_the_styles_that_a_second_look_at_the_rules_would_give() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await warmed(pilot)
        for keys in (["end", "d"], ["x"], ["question_mark"], ["m"], ["O"], ["apostrophe"]):
            await pilot.press(*keys)
            for _ in range(500):
                if pilot.app.screen is not screen:
                    break
                await pilot.pause()
            opened = pilot.app.screen
            assert opened is not screen
            await pilot.pause()
            while isinstance(opened, DiffScreen) and opened.compared.totals is None:
                await pilot.pause()
            await pilot.pause()
            found, picture = _styles(opened), _picture(opened)
            assert len(found) > 3
            opened.update_node_styles(animate=False)
            opened.refresh()
            await pilot.pause()
            assert _styles(opened) == found
            assert _picture(opened) == picture
            await pilot.press("escape")
            await shown(pilot, ConsoleScreen)


async def test_a_new_screen_is_styled_once_and_again_where_its_rules_came_with_it() -> None:
    asked: list[object] = []

    class Told(Rules):
        def update_nodes(self, nodes: Iterable[DOMNode], animate: bool = False) -> None:
            nodes = list(nodes)
            asked.extend(nodes)
            super().update_nodes(nodes, animate=animate)

    app = ThemedApp()
    app.stylesheet = Told(variables=app.get_css_variables())
    async with app.run_test(size=(80, 24)) as pilot:
        again = []
        for _ in range(2):
            asked.clear()
            opened = TextScreen("title", "text")
            await app.push_screen(opened)
            await pilot.pause()
            assert opened.styles.background.hex == "#0F1318"
            assert opened.query_one(Lines).styles.margin.top == 1
            again.append(opened in asked)
            app.pop_screen()
            await pilot.pause()
        # The first one brought its stylesheet.
        assert again == [True, False]


async def test_a_screen_that_comes_on_top_again_has_the_theme_that_was_chosen_meanwhile() -> None:
    app = ThemedApp()
    async with app.run_test(size=(80, 24)) as pilot:
        below, above = TextScreen("below", "text"), TextScreen("above", "text")
        await app.push_screen(below)
        await app.push_screen(above)
        app.theme = LIGHT_NAME
        await pilot.pause()
        assert above.styles.background.hex == "#FBFCFD"
        app.pop_screen()
        await pilot.pause()
        assert below.styles.background.hex == "#FBFCFD"


@pytest.mark.parametrize("theme", [DARK_NAME, LIGHT_NAME, "ansi-dark"])
async def test_the_ground_of_a_full_screen_is_what_each_of_its_lines_would_be(theme: str) -> None:
    app = ThemedApp()
    app.theme = theme
    async with app.run_test(size=(80, 24)) as pilot:
        screen = TextScreen("title", "text")
        await app.push_screen(screen)
        await pilot.pause()
        for crop in (Region(0, 0, 80, 24), Region(5, 3, 20, 7)):
            ground = screen.render_lines(crop)
            assert ground == Widget.render_lines(screen, crop)
            assert len(ground) == crop.height


async def test_only_what_may_restyle_a_widget_is_another_version_of_the_rules() -> None:
    rules = ThemedApp().stylesheet
    assert isinstance(rules, Rules)
    rules.read(STYLES / "text.tcss")
    rules.parse()
    known = rules.version
    rules.add_source("Own { height: 1; }", ("here", "Own.DEFAULT_CSS"), is_default_css=True)
    rules.parse()
    assert rules.version == known
    rules.read(STYLES / "diff.tcss")
    rules.parse()
    assert rules.version == known + 1
    rules.set_variables(rules._variables | {"background": "#102030"})
    assert rules.version == known + 2


def _picture(screen: Screen[object]) -> list[list[Segment]]:
    return [list(strip.simplify()) for strip in screen._compositor.render_strips()]


def _styles(screen: Screen[object]) -> list[tuple[str, dict[str, object]]]:
    nodes = screen.walk_children(Widget, with_self=True)
    return [(str(node), dict(node.styles.base.get_rules())) for node in nodes]


def test_the_same_colours_parse_nothing_again() -> None:
    app = ThemedApp()
    rules = app.stylesheet
    rules.read(STYLES / "console.tcss")
    rules.parse()
    parsed = list(rules.rules)
    rules.set_variables(app.get_css_variables())
    rules.reparse()
    assert all(new is old for new, old in zip(rules.rules, parsed, strict=True))
    rules.set_variables(app.get_css_variables() | {"background": "#123456"})
    rules.reparse()
    assert all(new is not old for new, old in zip(rules.rules, parsed, strict=True))


async def test_a_footer_shows_whole_keys_and_help_at_every_width() -> None:
    for width in (30, 60, 80, 120, 160):
        async with console(build.long_session(), size=(width, 30)) as (screen, pilot):
            await pilot.pause()
            footer = screen.query_one(KeyFooter)
            line = text_of(footer)
            assert line.rstrip().endswith("? Help")
            assert len(line) <= width
            labels = {b.binding.description for b in screen.active_bindings.values()}
            words = [word for word in line.split() if len(word) > 2 and word[0].isupper()]
            assert all(any(word in label for label in labels) for word in words)


async def test_a_footer_names_no_key_in_vain() -> None:
    async with console(build.long_session()) as (screen, pilot):
        footer = screen.query_one(KeyFooter)
        assert "Compact" not in text_of(footer)
        assert "Break" not in text_of(footer)
        assert [screen.offers(f"console.{name}") for name in ("live", "next")] == [None, None]
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert [screen.offers(f"console.{name}") for name in ("live", "next")] == [True, True]
        await pilot.press("question_mark")
        help = text_of((await shown(pilot, HelpScreen)).query_one(HelpBody))
        assert "Back to the newest record" in help
        assert "Take the last compaction back" not in help
        await pilot.press("a")
        help = text_of((await shown(pilot, HelpScreen)).query_one(HelpBody))
        assert "Take the last compaction back" in help


async def test_a_key_that_can_do_nothing_now_gives_its_room_to_one_that_can() -> None:
    async with console(build.long_session(), size=(120, 40)) as (screen, pilot):
        footer = screen.query_one(KeyFooter)
        assert "] Next" in text_of(footer)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "] Next" not in text_of(footer)
        assert "E Export" in text_of(footer)
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert "] Next" in text_of(footer)


async def test_the_find_line_names_its_own_keys() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("slash")
        await pilot.pause()
        told = text_of(screen.query_one(KeyFooter))
        assert all(word in told for word in ("Next", "Before", "To the list", "Close"))


async def test_a_click_on_a_key_of_the_footer_presses_it() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("tab")
        await pilot.pause()
        footer = screen.query_one(KeyFooter)
        at = text_of(footer).index("Diff")
        await pilot.click(KeyFooter, offset=(at, 0))
        diff = await shown(pilot, DiffScreen)
        assert "Filter" in text_of(diff.query_one(KeyFooter))


async def test_what_a_key_of_the_footer_does_is_told_where_the_pointer_is() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.pause()
        footer = screen.query_one(KeyFooter)
        at = text_of(footer).index("Help")
        await pilot.hover(KeyFooter, offset=(at, 0))
        assert str(footer.tooltip) == "Keys and signs"


async def test_the_collector_rests_until_the_first_contents_stand_there() -> None:
    asked: list[str] = []

    class Told(Collector):
        def hold(self) -> None:
            asked.append("hold")

        def settle(self) -> None:
            asked.append("settle")

        def let_go(self) -> None:
            asked.append("let go")

    async def start() -> Opened:
        return Opened(build.model_of(build.long_session()))

    app = ThresherApp(start, remembered=Remembered(), collector=Told())
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        await warmed(pilot)
        assert asked == ["hold", "settle"]
        await app.show(Opened(build.model_of(build.near_threshold())))
        await warmed(pilot)
        assert asked == ["hold", "settle", "let go", "settle"]


async def test_what_a_screen_leaves_is_looked_for_when_it_has_been_painted() -> None:
    looks: list[tuple[str, bool]] = []

    class Told(Collector):
        def hold(self) -> None:
            pass

        def settle(self) -> None:
            pass

        def look(self, *, closed: bool) -> None:
            looks.append((type(app.screen).__name__, closed))

    async def start() -> Opened:
        return Opened(build.model_of(build.long_session()))

    async def until(*wanted: tuple[str, bool]) -> None:
        for _ in range(500):
            if looks == list(wanted):
                return
            await pilot.pause(0.01)
        assert looks == list(wanted)

    app = ThresherApp(start, remembered=Remembered(), collector=Told())
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        await warmed(pilot)
        await until(console := ("ConsoleScreen", False))
        await pilot.press("end", "d")
        await shown(pilot, DiffScreen)
        await until(console, opened := ("DiffScreen", False))
        await pilot.press("escape")
        await until(console, opened, ("ConsoleScreen", True))


def test_a_settled_collector_sets_aside_what_is_there_and_finds_what_comes() -> None:
    # In a process of its own: what is set aside there is not looked at again.
    code = """
import gc
from thresher.tui.collector import Collector
collector = Collector()
collector.hold()
assert not gc.isenabled()
collector.settle()
assert gc.isenabled() and gc.get_freeze_count() > 0
class Node: pass
node = Node(); node.node = node; del node
assert gc.collect() >= 1
import weakref
for closed in (True, False):
    node = Node(); node.node = node; gone = weakref.ref(node); del node
    collector.look(closed=closed)
    assert gone() is None
screen = Node(); screen.node = screen; gone = weakref.ref(screen)
collector.look(closed=False)
del screen
collector.look(closed=True)
assert gone() is None
collector.hold()
node = Node(); node.node = node; gone = weakref.ref(node); del node
collector.look(closed=True)
assert gone() is not None
collector.let_go()
assert gc.get_freeze_count() == 0
"""
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(root / ".dev")}, capture_output=True
    )
    assert run.returncode == 0, run.stderr


def test_every_module_that_is_warmed_is_a_screen() -> None:
    folder = STYLES.parent / "screens"
    assert all((folder / f"{name}.py").is_file() for name in SCREENS)
