from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from textual.pilot import Pilot

from thresher.tui.app import ThresherApp
from thresher.tui.collector import Collector
from thresher.tui.opening import Opened
from thresher.tui.remembered import Remembered
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.diff import DiffScreen
from thresher.tui.screens.help import HelpBody, HelpScreen
from thresher.tui.theme import DARK_NAME, LIGHT_NAME, STYLES, ThemedApp
from thresher.tui.warm import SCREENS
from thresher.tui.widgets.footer import KeyFooter

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
collector.let_go()
assert gc.get_freeze_count() == 0
"""
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(root / ".dev")}, capture_output=True
    )
    assert run.returncode == 0, run.stderr
    assert gc.isenabled()


def test_every_module_that_is_warmed_is_a_screen() -> None:
    folder = STYLES.parent / "screens"
    assert all((folder / f"{name}.py").is_file() for name in SCREENS)
