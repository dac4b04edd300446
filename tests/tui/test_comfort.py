from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color
from textual.theme import Theme

from thresher.core.config import load
from thresher.core.errors import ThresherError
from thresher.tui.app import ThresherApp
from thresher.tui.keymap import checked, effective
from thresher.tui.keys import KEYS, Where
from thresher.tui.opening import Opened
from thresher.tui.remembered import FILE, Remembered, Tastes
from thresher.tui.screens.console import SPLIT, ConsoleScreen
from thresher.tui.screens.help import HelpScreen, help_rows, places_of
from thresher.tui.screens.picker import PickerScreen
from thresher.tui.screens.tour import STEPS, TourScreen
from thresher.tui.spans import text_of
from thresher.tui.theme import (
    CONTRAST,
    CONTRAST_NAME,
    DARK,
    DARK_NAME,
    LIGHT,
    LIGHT_NAME,
    MONO,
    MONO_NAME,
    OURS,
)
from thresher.tui.widgets.divider import Divider
from thresher.tui.widgets.footer import KeyFooter
from thresher.tui.widgets.meter import ContextMeter
from thresher.tui.widgets.meter_lines import legend_at
from thresher.tui.widgets.meter_tips import tip
from thresher.tui.widgets.tiles import TIPS, tile_at, tiles_of

from ..command_line import run
from . import build


def app_over(make: object = build.long_session, **more: object) -> ThresherApp:
    script = make()  # type: ignore[operator] # a maker of a session

    async def start() -> Opened:
        return Opened(build.model_of(script, build.RecordingActor()), Path("journal.jsonl"))

    return ThresherApp(start, **more)  # type: ignore[arg-type] # by name


async def console(pilot: object) -> ConsoleScreen:
    app = pilot.app  # type: ignore[attr-defined] # our app
    while not isinstance(app.screen, ConsoleScreen):
        await pilot.pause()  # type: ignore[attr-defined] # a pilot
    await pilot.pause()  # type: ignore[attr-defined] # a pilot
    return app.screen


def on_screen(app: ThresherApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


# -- keys --------------------------------------------------------------------------------------


def test_keys_are_written_as_people_read_them() -> None:
    given_ = {"console.follow": "F", "console.chart": "ctrl+G, ;", "app.help": "Esc"}
    with pytest.raises(ThresherError):
        checked({**given_, "console.escape": "esc"})
    assert checked({"console.follow": "F", "console.chart": "Ctrl+g, ;"}) == {
        "console.follow": "F",
        "console.chart": "ctrl+g,semicolon",
    }
    assert checked({"app.quit": "f10"}) == {"app.quit": "f10"}


@pytest.mark.parametrize(
    ("keymap", "words"),
    [
        ({"console.folow": "F"}, "Did you mean console.follow?"),
        ({"console.follow": "nosuchkey"}, "nosuchkey, which is no key"),
        ({"console.follow": ""}, "nothing, which is no key"),
        ({"console.follow": "hold+f"}, "hold+f, which is no key"),
        ({"console.follow": "e"}, "console.expand already (Open all cards, or fold them)"),
        ({"console.follow": "f9", "console.chart": "f9"}, "give one of them another key"),
    ],
)
def test_a_key_map_that_cannot_work_is_told_in_one_sentence(
    keymap: dict[str, str], words: str
) -> None:
    with pytest.raises(ThresherError) as told:
        checked(keymap, lambda name: "config.toml")
    assert words in told.value.msg
    assert told.value.msg.startswith("config.toml sets keys.")
    assert "\n" not in told.value.msg


def test_two_keys_may_change_places() -> None:
    swapped = checked({"console.follow": "e", "console.expand": "f"})
    table = {key.id: key.keys for key in effective(swapped)}
    assert (table["console.follow"], table["console.expand"]) == ("e", "f")


@given(st.dictionaries(st.sampled_from([key.id for key in KEYS]), st.text(max_size=8), max_size=3))
def test_whatever_stands_there_is_taken_or_explained(keymap: dict[str, str]) -> None:
    told = ""
    try:
        assert set(checked(keymap)) == set(keymap)
    except ThresherError as error:
        told = error.msg
    assert told == "" or told.endswith((".", "?"))


@pytest.mark.parametrize("form", ["console.follow = 'F'", "'console.follow' = 'F'"])
def test_keys_stand_in_the_settings_file(form: str, home: Path, capsys: object) -> None:
    file = home / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text(f"[keys]\n{form}\n")
    assert load().keymap == {"console.follow": "F"}
    assert load().source("keys.console.follow") == str(file)
    ran = run(capsys, "keys")  # type: ignore[arg-type] # the fixture
    (line,) = [line for line in ran.out.splitlines() if line.startswith("console.follow")]
    assert line.split()[1] == "F"
    assert line.endswith("yours")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[keys]\nfollow = 'F'\n", "ids have two parts"),
        ("[keys]\nconsole.follow = 7\n", "keys.console.follow"),
        ("[keys]\nconsole.follow = 'nope'\n", "keys.console.follow"),
        ("[screen]\ntheme = 'nope'\n", "thresher-contrast"),
    ],
)
def test_bad_settings_of_the_screen_end_with_one_sentence(
    text: str, words: str, home: Path, capsys: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    monkeypatch.setattr("thresher.tui.cli.screens._require_terminal", lambda instead: None)
    ran = run(capsys)  # type: ignore[arg-type] # the fixture
    assert ran.code == 2
    assert words in ran.sentence
    assert str(file) in ran.sentence


def test_the_doctor_finds_a_key_that_cannot_be(home: Path, capsys: object) -> None:
    file = home / "config" / "config.toml"
    file.parent.mkdir()
    file.write_text("[keys]\nconsole.follow = 'e'\n")
    ran = run(capsys, "doctor", "--json")  # type: ignore[arg-type] # the fixture
    assert ran.code == 1
    assert "console.expand already" in ran.out


async def test_footer_and_help_show_the_users_own_keys() -> None:
    app = app_over(keymap={"console.follow": "F", "console.diff": "f6"})
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await console(pilot)
        await pilot.press("tab")
        follow = screen.timeline.follow
        await pilot.press("f")
        assert screen.timeline.follow is follow
        await pilot.press("F")
        assert screen.timeline.follow is not follow
        shown = on_screen(app)
        assert "f6 Diff" in shown
        assert screen.query_one(KeyFooter).display
        await pilot.press("question_mark")
        lines = [line.strip() for line in on_screen(app).splitlines()]
        assert any("F " in line and "Follow the newest row" in line for line in lines)


async def test_while_one_writes_the_footer_names_no_key_that_would_be_a_letter() -> None:
    app = app_over()
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await console(pilot)
        assert screen.prompt.has_focus
        footer = on_screen(app).splitlines()[-1]
        assert "Find" not in footer
        assert "f1 Help" in footer
        await pilot.press("slash", "plus")
        assert screen.prompt.value == "/+"
        await pilot.press("tab")
        await pilot.pause()
        assert "/ Find" in on_screen(app).splitlines()[-1]


async def test_help_is_about_the_screen_below_and_can_show_everything() -> None:
    app = app_over()
    async with app.run_test(size=(120, 60)) as pilot:
        screen = await console(pilot)
        assert Where.CONSOLE in places_of(screen)
        assert Where.PICKER not in places_of(screen)
        await pilot.press("tab", "question_mark")
        assert isinstance(app.screen, HelpScreen)
        assert "Look for sessions again" not in on_screen(app)
        await pilot.press("a")
        assert "all keys" in on_screen(app)
        body = "\n".join(text_of(row.line) for row in help_rows(60))
        assert "Look for sessions again" in body
        await pilot.press("escape", "o")
        while not isinstance(app.screen, PickerScreen):
            await pilot.pause()
        assert Where.CONSOLE not in places_of(app.screen)


def test_every_row_of_the_table_is_in_the_help_of_its_place() -> None:
    for key in KEYS:
        rows = help_rows(60, [key.where])
        told = " ".join(" ".join(text_of(row.line) for row in rows).split())
        assert key.tip[:20] in told


# -- messages ----------------------------------------------------------------------------------


async def test_a_message_that_is_shown_is_not_shown_twice() -> None:
    app = app_over()
    async with app.run_test() as pilot:
        await console(pilot)
        for _ in range(3):
            app.notify("There is no change after this one.", markup=False)
            app.notify("Another one.", timeout=0.001)
            await pilot.pause(0.01)
        told = [each.message for each in app._notifications]
        assert told.count("There is no change after this one.") == 1
        app.notify("Another one.")
        await pilot.pause()
        assert [each.message for each in app._notifications].count("Another one.") == 1


async def test_a_message_that_was_clicked_away_is_shown_again() -> None:
    app = app_over()
    async with app.run_test(notifications=True) as pilot:
        await console(pilot)
        app.notify("There is no change after this one.")
        while not app.screen.query("Toast"):
            await pilot.pause()
        await pilot.click("Toast")
        while app.screen.query("Toast"):
            await pilot.pause()
        app.notify("There is no change after this one.")
        await pilot.pause()
        assert [each.message for each in app._notifications] == [
            "There is no change after this one."
        ]


# -- threads -----------------------------------------------------------------------------------


async def test_a_thread_gives_way_to_a_key_sooner_while_the_app_runs() -> None:
    before = sys.getswitchinterval()
    app = app_over()
    async with app.run_test() as pilot:
        await console(pilot)
        assert sys.getswitchinterval() < before / 2
    assert sys.getswitchinterval() == pytest.approx(before)


# -- themes ------------------------------------------------------------------------------------


def contrast(a: str, b: str) -> float:
    def light(text: str) -> float:
        parts = (Color.parse(text).r, Color.parse(text).g, Color.parse(text).b)
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((light(a), light(b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


TEXTS = ("muted", "faint", "removed", "kept", "rewritten", "inserted", "summary", "threshold")


@pytest.mark.parametrize("behind", ["background", "raised", "cursor-row"])
@pytest.mark.parametrize("name", TEXTS)
def test_high_contrast_means_seven_to_one(name: str, behind: str) -> None:
    grounds = {**CONTRAST.variables, "background": CONTRAST.background or ""}
    # The faint is never the only thing that says something.
    least = 5.5 if name == "faint" else 7
    assert contrast(CONTRAST.variables[name], grounds[behind]) >= least


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("theme", [DARK, LIGHT, MONO], ids=lambda theme: theme.name)
def test_every_text_can_be_read_on_its_ground(theme: Theme, name: str) -> None:
    least = 3.5 if name == "faint" else 4.5
    assert contrast(theme.variables[name], theme.background or "") >= least


def test_the_theme_without_colour_has_none() -> None:
    for text in (*MONO.variables.values(), MONO.primary, MONO.foreground, MONO.background):
        colour = Color.parse(text or "")
        assert colour.r == colour.g == colour.b


def test_our_themes_give_every_meaning_a_colour() -> None:
    assert len({frozenset(TEXTS) <= set(theme.variables) for theme in OURS}) == 1


async def test_a_theme_that_was_chosen_is_there_at_the_next_start(tmp_path: Path) -> None:
    file = tmp_path / "state" / FILE
    app = app_over(remembered=Remembered(file))
    async with app.run_test() as pilot:
        await console(pilot)
        assert app.theme == DARK_NAME
        assert not file.exists()
        app.theme = CONTRAST_NAME
        await pilot.pause()
    assert json.loads(file.read_text())["theme"] == CONTRAST_NAME
    assert app_over(remembered=Remembered(file)).theme == CONTRAST_NAME
    assert app_over(remembered=Remembered(file), theme=LIGHT_NAME).theme == LIGHT_NAME


async def test_builtin_themes_stay_selectable_and_bring_our_meanings() -> None:
    app = app_over(theme="dracula")
    async with app.run_test() as pilot:
        await console(pilot)
        assert app.theme == "dracula"
        assert {"removed", "kept", "threshold"} <= set(app.theme_variables)


async def test_without_colour_signs_say_everything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    remembered = Remembered(tmp_path / FILE)
    remembered.keep(theme=LIGHT_NAME)
    app = app_over(remembered=remembered)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await console(pilot)
        assert app.theme == MONO_NAME
        screen.timeline.select(0)
        await pilot.pause()
        for strip in screen._compositor.render_strips():
            for text, style, _ in strip:
                for colour in (style.color, style.bgcolor) if style else ():
                    if colour is not None and colour.triplet is not None:
                        assert len(set(colour.triplet)) == 1, (text, colour)
        shown = on_screen(app)
        assert "- " in shown
        assert "Σ summary" in shown
    assert Remembered(tmp_path / FILE).tastes.theme == LIGHT_NAME


# -- what is remembered ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[1, 2]", b"null", b"\xff\xfe", b'{"split": "wide", "theme": 7, "toured": 1}',
        b'{"split": 99}', b'{"split": -3}', b'{"split": true}', b"[" * 5000, b"x" * 100_000,
        b'{"split": 1e999}',
    ],
)  # fmt: skip
def test_garbage_is_as_if_nothing_had_been_chosen(text: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(text)
    assert Remembered(tmp_path / FILE).tastes == Tastes()


def test_a_folder_in_the_way_costs_nothing_but_the_memory(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    remembered = Remembered(tmp_path / FILE)
    remembered.keep(split=40)
    assert remembered.tastes.split == 40
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@given(st.builds(Tastes, theme=st.text(max_size=20).filter(lambda t: t.isprintable()),
                 split=st.integers(25, 75), toured=st.booleans()))  # fmt: skip
def test_what_was_kept_is_read_back(tastes: Tastes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "deeper" / FILE
        Remembered(path).keep(theme=tastes.theme, split=tastes.split, toured=tastes.toured)
        assert Remembered(path).tastes == tastes


# -- panes -------------------------------------------------------------------------------------


async def test_panes_are_resized_by_key_and_remembered(tmp_path: Path) -> None:
    file = tmp_path / FILE
    app = app_over(remembered=Remembered(file))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await console(pilot)
        width = screen.timeline.size.width
        await pilot.press("tab", "less_than_sign", "less_than_sign")
        await pilot.pause()
        assert screen.timeline.size.width < width
    app = app_over(remembered=Remembered(file))
    async with app.run_test(size=(120, 40)) as pilot:
        narrower = (await console(pilot)).timeline.size.width
    assert Remembered(file).tastes.split == SPLIT - 10
    assert narrower < width


async def test_the_line_between_the_panes_can_be_dragged_within_bounds(tmp_path: Path) -> None:
    app = app_over(remembered=Remembered(tmp_path / FILE))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await console(pilot)
        divider = screen.query_one(Divider)
        row = divider.region.y + 3
        await pilot.mouse_down(divider, offset=(0, 3))
        await pilot.hover(None, offset=(48, row))
        await pilot.mouse_up(None, offset=(48, row))
        await pilot.pause()
        assert abs(divider.region.x - 48) <= 1
        assert app.remembered.tastes.split == 40
        await pilot.mouse_down(divider, offset=(0, 3))
        await pilot.mouse_up(None, offset=(1, row))
        await pilot.pause()
        assert app.remembered.tastes.split == 25
        assert screen.timeline.size.width > 20


async def test_one_column_has_no_line_to_drag() -> None:
    app = app_over()
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await console(pilot)
        assert not screen.query_one(Divider).display
        await pilot.press("tab", "greater_than_sign")
        assert [n.message for n in app._notifications] == ["There is one column below 110 cells."]
        assert screen.timeline.size.width > 70


# -- the tour ----------------------------------------------------------------------------------


async def test_the_tour_is_shown_once_and_can_be_skipped(tmp_path: Path) -> None:
    file = tmp_path / FILE
    app = app_over(remembered=Remembered(file), tour=True)
    async with app.run_test(size=(120, 40)) as pilot:
        while not isinstance(app.screen, TourScreen):
            await pilot.pause()
        await pilot.pause()
        assert STEPS[0].title in on_screen(app)
        await pilot.press("escape")
        assert not (await console(pilot)).has_class("touring")
    app = app_over(remembered=Remembered(file), tour=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await console(pilot)
        await pilot.pause()
        assert isinstance(app.screen, ConsoleScreen)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48)])
async def test_the_tour_has_five_steps_in_every_size(size: tuple[int, int]) -> None:
    app = app_over(keymap={"console.breakpoints": "f9"})
    async with app.run_test(size=size) as pilot:
        screen = await console(pilot)
        await pilot.press("f2")
        assert len(STEPS) == 5
        for step in STEPS:
            await pilot.pause()
            assert step.title in on_screen(app)
            assert screen.query(".lit")
            if "breakpoint" in step.words:
                assert "f9" in on_screen(app).lower()
            await pilot.press("enter")
        await pilot.pause()
        assert app.screen is screen
        assert not screen.query(".lit")


async def test_without_a_session_the_tour_says_what_it_needs() -> None:
    app = ThresherApp(lister=lambda: iter([[]]))
    async with app.run_test(notifications=True) as pilot:
        while not isinstance(app.screen, PickerScreen):
            await pilot.pause()
        await pilot.press("f2")
        assert [n.message for n in app._notifications] == [
            "The tour is about a session: open one first."
        ]


# -- tooltips ----------------------------------------------------------------------------------


def test_every_cell_of_the_meter_says_what_it_is() -> None:
    model = build.model_of(build.long_session(), None)
    state, marks = model.state, model.marks
    told = [tip(state, marks, x, 1, (118, 4)) for x in range(118)]
    assert all(told)
    assert any(text.startswith("tools: ~") for text in told)
    assert told[-1].startswith("reserve: 4,096 tokens")
    assert any(text.startswith("free: ") for text in told)
    assert "reported" in tip(state, marks, 0, 0, (118, 4))
    found = {legend_at(state, x, 118) for x in range(118)}
    assert {"system", "summary", "tools", ""} <= found


@pytest.mark.parametrize("size", [(60, 8), (100, 1)])
def test_every_tile_says_what_it_counts(size: tuple[int, int]) -> None:
    state = build.long_session().state
    names = {tile_at(state, x, y, size) for x in range(size[0]) for y in range(size[1])} - {""}
    assert names <= set(TIPS)
    assert len(names) >= 4
    assert {tile.name for tile in tiles_of(state)} - {""} <= set(TIPS)


async def test_the_pointer_on_the_meter_shows_the_tip_of_that_part() -> None:
    app = app_over()
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        screen = await console(pilot)
        meter = screen.query_one(ContextMeter)
        await pilot.hover(meter, offset=(40, 1))
        assert str(meter.tooltip).startswith("tools: ")
        await pilot.hover(meter, offset=(118, 1))
        assert str(meter.tooltip).startswith("reserve: ")
