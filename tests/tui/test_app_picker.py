from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.tui.ages import age
from thresher.tui.app import ThresherApp
from thresher.tui.figures import bytes_of
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.error import ErrorScreen
from thresher.tui.screens.picker import PickerScreen
from thresher.tui.spans import text_of, width
from thresher.tui.theme import LIGHT_NAME
from thresher.tui.widgets.footer import KeyFooter
from thresher.tui.widgets.session_list import SessionList, SessionRow, header, line_of

NOW = 1_900_000_000.0
FOLDER = Path("sessions")
ROWS = [
    SessionRow(
        FOLDER / "counter.jsonl", "codex", "Fix the counter so that empty lines do not count",
        "gpt-5.2-codex", "0193aa", 139_745, NOW - 320, 2,
    ),
    SessionRow(
        FOLDER / "nightly.jsonl", "thresher",
        "Find why the nightly build is slow, write a note about it, then look at the log again",
        "offline stand-in", "7f3a9c", 1_230_000, NOW - 4, 3, running=True,
    ),
    SessionRow(
        FOLDER / "broken.jsonl", "codex", size=12, last_at=NOW - 9_000,
        problem="its beginning is not that of a session",
    ),
    SessionRow(
        FOLDER / "rules.jsonl", "codex", "为什么压缩会删除用户的规则？", "gpt-5.2", "88",
        980_000_000, NOW - 90_000, 0,
    ),
    SessionRow(FOLDER / "untitled.jsonl", "codex", last_at=NOW - 9_000_000, id="0188-untitled"),
]  # fmt: skip


def listing(*batches: Sequence[SessionRow]) -> Any:
    return lambda: iter(batches)


async def opened(path: Path) -> Opened:
    return Opened(ConsoleModel(History()), path)


def picker_app(*batches: Sequence[SessionRow], **more: Any) -> ThresherApp:
    fields = {"lister": listing(*batches), "opener": opened, "clock": lambda: NOW} | more
    return ThresherApp(**fields)


async def settled(pilot: Pilot[None]) -> PickerScreen:
    app = pilot.app
    while not isinstance(app.screen, PickerScreen) or app.screen.searching:
        await pilot.pause()
    await pilot.pause()
    return app.screen


def titles(screen: PickerScreen) -> list[str]:
    rows = screen.query_one(SessionList)
    return [rows.row_at(at).title for at in range(len(rows))]


async def test_sessions_are_listed_newest_first_with_running_ones_on_top() -> None:
    app = picker_app(ROWS[:1], ROWS[1:])
    async with app.run_test() as pilot:
        screen = await settled(pilot)
        paths = [screen.query_one(SessionList).row_at(at).path.stem for at in range(5)]
        assert paths == ["nightly", "counter", "broken", "rules", "untitled"]


async def test_a_list_that_is_new_looks_once() -> None:
    searches = []

    def counted() -> Iterator[Sequence[SessionRow]]:
        searches.append(len(searches))
        yield ROWS

    app = picker_app(lister=counted)
    async with app.run_test() as pilot:
        screen = await settled(pilot)
        assert searches == [0]
        await app.action_sessions()
        await settled(pilot)
        assert searches == [0, 1]
        footer = text_of(screen.query_one(KeyFooter).draw(80, 1)[0])
        assert "Open" in footer.split("^o")[0]


async def test_typing_narrows_the_list_to_sessions_with_every_word() -> None:
    app = picker_app(ROWS)
    async with app.run_test() as pilot:
        screen = await settled(pilot)
        await pilot.press(*"CODEX", "space", *"count")
        await pilot.pause()
        assert titles(screen) == [ROWS[0].title]
        await pilot.press("escape")
        await pilot.pause()
        assert len(titles(screen)) == 5


async def test_arrows_move_the_selection_while_the_filter_has_the_focus() -> None:
    app = picker_app(ROWS)
    async with app.run_test() as pilot:
        screen = await settled(pilot)
        await pilot.press("down", "down", "up")
        await pilot.pause()
        selected = screen.query_one(SessionList).selected
        assert selected is not None
        assert selected.path.stem == "counter"


async def test_the_keys_of_lists_work_in_the_list() -> None:
    app = picker_app(ROWS)
    async with app.run_test() as pilot:
        screen = await settled(pilot)
        await pilot.press("tab")
        seen = []
        for key in ("j", "k", "G", "g", "pagedown", "pageup", "end", "home", "ctrl+f", "ctrl+b"):
            await pilot.press(key)
            await pilot.pause()
            selected = screen.query_one(SessionList).selected
            seen.append(selected.path.stem if selected else "")
        first, last = "nightly", "untitled"
        assert seen == ["counter", first, last, first, last, first, last, first, last, first]


async def test_enter_opens_the_selected_session_in_the_console() -> None:
    app = picker_app(ROWS)
    async with app.run_test() as pilot:
        await settled(pilot)
        await pilot.press("down", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(app.screen, ConsoleScreen)
        assert app.shown is not None
        assert app.shown.path == ROWS[0].path


async def test_a_session_that_is_open_is_gone_back_to_and_not_opened_twice() -> None:
    asked: list[Path] = []

    async def counting(path: Path) -> Opened:
        asked.append(path)
        return await opened(path)

    app = picker_app(ROWS, opener=counting)
    async with app.run_test() as pilot:
        for _ in range(2):
            await settled(pilot)
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert isinstance(app.screen, ConsoleScreen)
            await pilot.press("o")
        await settled(pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ConsoleScreen)
        assert asked == [ROWS[1].path]


async def test_another_recorded_session_takes_the_place_of_the_first() -> None:
    closed: list[str] = []

    async def closing(path: Path) -> Opened:
        found = await opened(path)

        async def close() -> None:
            closed.append(path.stem)

        found.closing = close
        return found

    app = picker_app(ROWS, opener=closing)
    async with app.run_test() as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.press("o")
        await settled(pilot)
        await pilot.press("down", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [one.path for one in app.opened] == [ROWS[0].path]
        assert closed == ["nightly"]
    assert closed == ["nightly", "counter"]


async def test_a_session_that_cannot_be_read_says_why_and_is_not_opened() -> None:
    app = picker_app([ROWS[2]])
    async with app.run_test(notifications=True) as pilot:
        screen = await settled(pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen is screen
        assert [note.title for note in app._notifications] == ["Cannot be read"]


async def test_a_file_that_cannot_be_opened_is_told_and_the_list_stays() -> None:
    async def refusing(path: Path) -> Opened:
        raise ThresherError("No such file", "[bold]x[/y] does not exist; \x1b[2J give another.")

    app = picker_app(ROWS, opener=refusing)
    async with app.run_test(notifications=True) as pilot:
        screen = await settled(pilot)
        await pilot.press("ctrl+o", *"nowhere.jsonl", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.screen is screen
        (note,) = app._notifications
        assert "\x1b" not in note.message
        assert note.markup is False
        # What was typed is there again, to be mended.
        await pilot.press("ctrl+o")
        assert app.screen.query_one(Input).value == "nowhere.jsonl"


async def test_what_is_known_stays_while_the_search_goes_on() -> None:
    go_on = threading.Event()

    def slow() -> Iterator[Sequence[SessionRow]]:
        yield ROWS[:1]
        go_on.wait(timeout=60)
        yield ROWS[1:]

    app = picker_app(lister=slow)
    async with app.run_test() as pilot:
        while not isinstance(app.screen, PickerScreen) or not len(
            app.screen.query_one(SessionList)
        ):
            await pilot.pause()
        screen = app.screen
        assert screen.searching
        await pilot.press("down")
        go_on.set()
        await settled(pilot)
        assert len(screen.query_one(SessionList)) == 5


async def test_a_fault_while_looking_is_shown_and_leaves_the_list_usable() -> None:
    def broken() -> Iterator[Sequence[SessionRow]]:
        yield ROWS[:1]
        raise RuntimeError("a fault of the test")

    app = picker_app(lister=broken)
    async with app.run_test() as pilot:
        while not isinstance(app.screen, ErrorScreen):
            await pilot.pause()
        await pilot.press("escape")
        screen = await settled(pilot)
        assert titles(screen) == [ROWS[0].title]


def test_a_row_is_exactly_as_wide_as_the_header_at_every_width() -> None:
    for cells in (40, 78, 98, 99, 100, 118, 149, 150, 158, 250):
        assert width(header(cells)) == cells
        assert {width(line_of(row, cells, NOW)) for row in ROWS} == {cells}


def test_a_row_of_hostile_text_is_one_clean_line(hostile_text: str) -> None:
    text = hostile_text
    row = SessionRow(Path("x"), text, text, text, text, 1, NOW, 1, problem="")
    for one in (row, row._replace(title="", problem=text)):
        line = line_of(one, 118, NOW)
        assert width(line) == 118
        assert all(ch.isprintable() or ch == " " for ch in text_of(line) if ord(ch) < 0x100)


def test_sizes_and_ages_are_told_in_words_of_bounded_width() -> None:
    assert [bytes_of(n) for n in (0, 999, 1_000, 9_949, 12_345, 5_000_000, 7_000_000_000)] == [
        "0 B", "999 B", "1.0 kB", "9.9 kB", "12 kB", "5.0 MB", "7.0 GB",
    ]  # fmt: skip
    assert [age(NOW - back, NOW) for back in (-5, 59, 61, 7_200, 90_000, 800_000)] == [
        "just now", "just now", "1 min ago", "2 h ago", "1 day ago", "9 days ago",
    ]  # fmt: skip
    assert age(0, NOW) == "?"
    assert age(NOW - 9_000_000, NOW) == "2029-12-03"


PICTURES = [
    ("filled", ROWS, (120, 40), "", ()),
    ("filtered_narrow", ROWS, (80, 24), "", ("c", "o", "d", "e", "x", "down")),
    ("wide_light", ROWS, (160, 48), LIGHT_NAME, ("down",)),
    ("empty", [], (80, 24), "", ()),
    ("no_match", ROWS, (80, 24), "", ("z", "z")),
    ("asks_for_a_file", ROWS, (80, 24), "", ("ctrl+o",)),
]


@pytest.mark.parametrize(
    ("rows", "size", "theme", "keys"),
    [picture[1:] for picture in PICTURES],
    ids=[picture[0] for picture in PICTURES],
)
def test_picture_of_the_picker(
    snap_compare: Any,
    rows: list[SessionRow],
    size: tuple[int, int],
    theme: str,
    keys: tuple[str, ...],
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await settled(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    app = picker_app(rows, theme=theme)
    assert snap_compare(app, terminal_size=size, run_before=ready)


def test_a_row_says_when_it_is_only_inferred_that_a_session_runs() -> None:
    row = SessionRow(Path("x"), "claude-code", "t", last_at=NOW, running=True)
    assert "running " not in text_of(line_of(row, 120, NOW))
    assert text_of(line_of(row, 120, NOW)).rstrip().endswith("running")
    inferred = row._replace(running_sure=False)
    assert text_of(line_of(inferred, 120, NOW)).rstrip().endswith("running?")
