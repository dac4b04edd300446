from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.items import user
from thresher.tui.app import ThresherApp
from thresher.tui.commands import commands
from thresher.tui.keys import KEYS, Where
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened
from thresher.tui.screens.ask import AskScreen
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.diff import positions_screen
from thresher.tui.screens.error import ErrorScreen
from thresher.tui.screens.help import HelpScreen
from thresher.tui.screens.listing import MarkList
from thresher.tui.screens.picker import PickerScreen
from thresher.tui.screens.text import TextScreen
from thresher.tui.spans import Tone
from thresher.tui.theme import DARK_NAME, LIGHT_NAME
from thresher.tui.widgets.detail import Detail
from thresher.tui.widgets.reader import Reader
from thresher.tui.widgets.session_list import SessionList, SessionRow
from thresher.tui.widgets.timeline import Timeline

NOW = 1_900_000_000.0


class Watching:
    """An actor that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def send(self, text: str) -> None:
        self.asked.append(f"send {text}")

    def interrupt(self) -> None:
        self.asked.append("interrupt")

    def compact(self, focus: str) -> None:
        self.asked.append(f"compact {focus}")

    def answer(self, decision: str) -> None:
        self.asked.append(decision)

    def close_breaker(self) -> None:
        self.asked.append("close breaker")


def session(
    title: str = "a title", *, actor: Watching | None = None, breaker: bool = False
) -> Opened:
    history = History()
    events: list[e.Event] = [
        e.SessionStarted(session_id="s1", agent="thresher", title=title),
        e.TurnStarted(turn=1),
        e.ItemAppended(item=user("hello"), turn=1),
    ]
    if breaker:
        events.append(e.BreakerOpened(failures=3, reason="three failures"))
    history.extend(e.Record(n, NOW + n, event) for n, event in enumerate(events))
    return Opened(ConsoleModel(history, actor=actor), Path("s1/journal.jsonl"))


def app_with(opened: Opened | BaseException, **more: Any) -> ThresherApp:
    async def start() -> Opened:
        if isinstance(opened, BaseException):
            raise opened
        return opened

    return ThresherApp(start, clock=lambda: NOW, **more)


async def shown(pilot: Pilot[None], kind: type) -> Any:
    while not isinstance(pilot.app.screen, kind):
        await pilot.pause()
    await pilot.pause()
    return pilot.app.screen


def entries(app: ThresherApp) -> list[str]:
    return [command.name for command in commands(app, app.screen)]


async def test_a_session_that_was_asked_for_is_the_first_thing_shown() -> None:
    app = app_with(session())
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        assert app.model is not None
        assert app.model.state.title == "a title"


async def test_an_expected_failure_at_the_start_is_a_toast_over_the_list() -> None:
    app = app_with(ThresherError("Empty file", "x.jsonl holds no session."))
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, PickerScreen)
        assert [(n.title, n.message) for n in app._notifications] == [
            ("Empty file", "x.jsonl holds no session.")
        ]


async def test_an_unexpected_failure_is_shown_with_its_traceback_and_can_be_left() -> None:
    app = app_with(RuntimeError("[b]a fault[/x] \x1b[2J"))
    async with app.run_test() as pilot:
        screen = await shown(pilot, ErrorScreen)
        lines = strips(screen)
        assert any("RuntimeError" in line for line in lines)
        assert not any("\x1b" in line for line in lines)
        await pilot.press("escape", "o")
        await shown(pilot, PickerScreen)


async def test_a_fault_in_the_background_leaves_the_session_on_the_screen() -> None:
    opened = session(actor=Watching())

    async def faulty() -> None:
        raise ZeroDivisionError

    opened.background.append(faulty)
    app = app_with(opened)
    async with app.run_test() as pilot:
        screen = await shown(pilot, ErrorScreen)
        assert any("s1/journal.jsonl" in line for line in strips(screen))
        await pilot.press("escape")
        await shown(pilot, ConsoleScreen)


async def test_work_in_the_background_ends_with_the_session() -> None:
    import asyncio

    opened, ended = session(), asyncio.Event()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    opened.background.append(for_ever)
    app = app_with(opened)
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_session_is_closed_once_however_the_app_ends() -> None:
    closed = []
    for keys in (("ctrl+q",), ("ctrl+c", "ctrl+c"), ()):
        opened = session(actor=Watching())

        async def close(keys: tuple[str, ...] = keys) -> None:
            closed.append(keys)

        opened.closing = close
        app = app_with(opened)
        async with app.run_test() as pilot:
            await shown(pilot, ConsoleScreen)
            await pilot.press(*keys)
            await pilot.pause()
    assert closed == [("ctrl+q",), ("ctrl+c", "ctrl+c"), ()]


async def test_ctrl_c_interrupts_the_agent_and_says_that_a_second_one_quits() -> None:
    actor = Watching()
    app = app_with(session(actor=actor))
    async with app.run_test(notifications=True) as pilot:
        await shown(pilot, ConsoleScreen)
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert actor.asked == ["interrupt"]
        assert [note.message for note in app._notifications] == ["Press Ctrl+C again to quit."]
        assert app.is_running


async def test_ctrl_c_copies_what_is_selected_in_the_input_line() -> None:
    actor = Watching()
    app = app_with(session(actor=actor))
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        await pilot.press("i", *"keep", "shift+home", "ctrl+c")
        await pilot.pause()
        assert "keep" in app.clipboard
        assert actor.asked == []


async def test_t_goes_from_dark_to_light_and_back() -> None:
    app = app_with(session())
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        await pilot.press("t")
        assert app.theme == LIGHT_NAME
        await pilot.press("t")
        assert app.theme == DARK_NAME


async def test_a_theme_may_be_given_and_an_unknown_one_is_ours() -> None:
    assert app_with(session(), theme="nord").theme == "nord"
    assert app_with(session(), theme="no such theme").theme == DARK_NAME


# -- the palette -----------------------------------------------------------------------------------


async def test_the_palette_offers_only_what_makes_sense_now() -> None:
    app = app_with(session())
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        watched = entries(app)
        assert "View: Toggle theme" in watched
        assert "Session: Open another..." in watched
        assert "Export: The screen as SVG" in watched
        assert "Export: The session as HTML" in watched
        assert not {"Compaction: Compact now...", "Compaction: Close the breaker"} & set(watched)
        assert not {"Go: Back to live", "Go: Previous compaction"} & set(watched)
        await pilot.press("comma")
        assert "Go: Back to live" in entries(app)


async def test_the_palette_of_a_live_session_can_compact_and_close_an_open_breaker() -> None:
    app = app_with(session(actor=Watching(), breaker=True))
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        assert {"Compaction: Compact now...", "Compaction: Close the breaker"} <= set(entries(app))
        await pilot.press("ctrl+p", *"breaker", "enter")
        await pilot.pause()
        while not app.model.actor.asked:  # type: ignore[union-attr] # the actor is ours
            await pilot.pause()
        assert app.model.actor.asked == ["close breaker"]  # type: ignore[union-attr] # as above


async def test_sessions_with_hostile_titles_are_entries_like_any_other(
    hostile_corpus: list[tuple[str, str]],
) -> None:
    app = app_with(session())
    async with app.run_test(size=(100, 200), notifications=True, tooltips=True) as pilot:
        await shown(pilot, ConsoleScreen)
        app.opened.extend(session(text) for _, text in hostile_corpus)
        for typed in ("", "goto", "[b]", "/"):
            await pilot.press("ctrl+p", *("slash" if key == "/" else key for key in typed))
            screen = await shown(pilot, CommandPalette)
            await app.workers.wait_for_complete()
            await pilot.pause()
            harmless(screen)
            await pilot.press("escape")
            await shown(pilot, ConsoleScreen)
        del app.opened[1:]


# -- help, texts, questions ------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["question_mark", "f1", "escape", "q"])
async def test_the_help_opens_by_its_key_and_closes_by_any_of_its_own(key: str) -> None:
    app = app_with(session())
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot, ConsoleScreen)
        await pilot.press("question_mark")
        await shown(pilot, HelpScreen)
        await pilot.press(key)
        await shown(pilot, ConsoleScreen)


async def test_a_question_answers_with_the_line_or_with_nothing() -> None:
    answers: list[str | None] = []
    app = app_with(session())
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        for keys in ((*"the rule", "enter"), (*"no", "escape"), ("enter",)):
            app.push_screen(AskScreen("Focus", "what to keep"), answers.append)
            await shown(pilot, AskScreen)
            await pilot.press(*("space" if key == " " else key for key in keys))
            await shown(pilot, ConsoleScreen)
    assert answers == ["the rule", None, ""]


async def test_a_long_text_is_read_by_the_keys_of_lists() -> None:
    app = app_with(session())
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot, ConsoleScreen)
        app.show_text("output of a call", "\n".join(f"line {n}" for n in range(1, 501)))
        screen = await shown(pilot, TextScreen)
        reader = screen.query_one(Reader)
        page = reader.size.height
        places = []
        for key in ("j", "down", "k", "up", "pagedown", "space", "pageup", "G", "g", "end", "home"):
            await pilot.press(key)
            await pilot.pause()
            places.append(reader.scroll_offset.y)
        last = 500 - page
        assert places == [1, 2, 1, 0, page, 2 * page, page, last, 0, last, 0]
        await pilot.press("q")
        await shown(pilot, ConsoleScreen)


async def test_hostile_text_is_shown_as_what_it_is(hostile_corpus: list[tuple[str, str]]) -> None:
    texts = [text for _, text in hostile_corpus]
    app = app_with(session())
    async with app.run_test(size=(100, 60), notifications=True, tooltips=True) as pilot:
        await shown(pilot, ConsoleScreen)
        # Several at a time, and of each its beginning in front: making a screen is what costs.
        for at in range(0, len(texts), 10):
            some = texts[at : at + 10]
            begins, whole = " ".join(text[:15] for text in some), "\n".join(some)
            for text in some:
                app.report(ThresherError(text, text))
                app.tell(text, text)
            for screen in (
                TextScreen(begins, whole),
                ErrorScreen(RuntimeError(whole), begins),
                AskScreen(begins, "x", begins),
            ):
                await app.push_screen(screen)
                await pilot.pause()
                harmless(screen)
                await pilot.press("g")
                await pilot.pause()
                harmless(screen)
                await app.pop_screen()
            app.clear_notifications()


def strips(screen: Any) -> list[str]:
    return [strip.text for strip in screen._compositor.render_strips()]


def harmless(screen: Any) -> None:
    for strip in screen._compositor.render_strips():
        for segment in strip:
            assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in segment.text)
            assert "@click" not in (segment.style.meta if segment.style else {})


# -- pictures and cost -----------------------------------------------------------------------------

PICTURES = [
    ("help", (120, 40), "", ("f1",)),
    ("help_narrow_light", (80, 24), LIGHT_NAME, ("f1",)),
    ("help_wide", (160, 48), "", ("f1",)),
    ("palette", (120, 40), "", ("ctrl+p",)),
    ("palette_searched_narrow", (80, 24), LIGHT_NAME, ("ctrl+p", "t", "h", "e", "m")),
]


@pytest.mark.parametrize(
    ("size", "theme", "keys"),
    [picture[1:] for picture in PICTURES],
    ids=[picture[0] for picture in PICTURES],
)
def test_picture_of_dialogs(
    snap_compare: Any, size: tuple[int, int], theme: str, keys: tuple[str, ...]
) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await shown(pilot, PickerScreen)
        await pilot.press(*keys)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        for widget in pilot.app.screen.query("CommandInput"):
            widget.cursor_blink = False
        await pilot.pause()

    app = ThresherApp(lister=lambda: iter(()), clock=lambda: NOW, theme=theme)
    assert snap_compare(app, terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["normal", "narrow"])
def test_picture_of_an_unexpected_error(snap_compare: Any, size: tuple[int, int]) -> None:
    async def ready(pilot: Pilot[None]) -> None:
        await shown(pilot, ConsoleScreen)
        pilot.app.report(RuntimeError("the pane has no width [b]at all[/b]"))
        await shown(pilot, ErrorScreen)
        await pilot.pause()

    app = app_with(session(actor=Watching()))
    assert snap_compare(app, terminal_size=size, run_before=ready)


def test_picture_of_a_full_text(snap_compare: Any) -> None:
    words = "The counter skips lines that hold nothing but blanks. 计数器会跳过空行。\n\n"
    text = words * 3 + "x" * 300 + "\n" + "\n".join(f"    line {n} of the log" for n in range(40))

    async def ready(pilot: Pilot[None]) -> None:
        await shown(pilot, ConsoleScreen)
        pilot.app.show_text("#42 read_file src/counter.py", text)
        await shown(pilot, TextScreen)

    app = app_with(session())
    assert snap_compare(app, terminal_size=(100, 30), run_before=ready)


def test_the_first_paint_loads_no_model_client_no_tokenizer_and_no_agent() -> None:
    code = (
        "import sys, thresher.tui.app as a; a.ThresherApp(); "
        "sys.exit(', '.join(m for m in ('openai', 'tiktoken', 'httpx2', 'watchfiles', 'cyclopts',"
        " 'thresher.core.agent', 'thresher.core.gateways', 'thresher.core.sources.codex')"
        " if m in sys.modules) or 0)"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env={"PYTHONPATH": str(root / ".dev")},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")


PLACES_ON_SCREEN = {
    "console": (Where.APP, Where.CONSOLE, Where.ROWS, Where.LIST),
    "detail": (Where.APP, Where.CONSOLE, Where.ROWS, Where.LIST),
    "find line": (Where.FIND,),
    "context": (Where.CONTEXT, Where.ROWS, Where.LIST),
    "before and after": (Where.DIFF, Where.ROWS, Where.LIST),
    "bookmarks": (Where.MODAL, Where.MARKS, Where.ROWS, Where.LIST),
    "sessions": (Where.APP, Where.PICKER, Where.ROWS),
    "full text": (Where.READER, Where.ROWS),
    "error": (Where.READER, Where.ROWS),
    "question": (Where.MODAL,),
    "help": (Where.MODAL, Where.HELP),
}


@pytest.mark.parametrize("place", PLACES_ON_SCREEN)
async def test_every_key_of_the_table_is_active_in_its_place(place: str) -> None:
    app = app_with(session(), lister=lambda: iter([[SessionRow(Path("a"), "codex")]]))
    async with app.run_test() as pilot:
        await shown(pilot, ConsoleScreen)
        match place:
            case "console":
                app.screen.query_one(Timeline).focus()
            case "detail":
                app.screen.query_one(Detail).focus()
            case "find line":
                await app.screen.run_action("find")
            case "context":
                await app.screen.run_action("context")
            case "before and after":
                app.push_screen(positions_screen(History(), 0, 0))
            case "bookmarks":
                app.push_screen(MarkList([]))
            case "sessions":
                await app.action_sessions()
                await shown(pilot, PickerScreen)
                await app.workers.wait_for_complete()
                await pilot.pause()
                app.screen.query_one(SessionList).focus()
            case "full text":
                app.show_text("t", "text")
            case "error":
                app.report(RuntimeError("x"))
            case "question":
                app.push_screen(AskScreen("t", "p"))
            case "help":
                app.action_help()
        await pilot.pause()
        active = {name: found.binding for name, found in app.screen.active_bindings.items()}
        for key in KEYS:
            if key.where in PLACES_ON_SCREEN[place]:
                for name in key.keys.split(","):
                    # Textual's own screens bind Tab, to the same action and without an id.
                    assert active[name].id == key.id or active[name].action == key.action


async def test_every_theme_there_is_has_a_colour_for_every_tone() -> None:
    app = app_with(session())
    async with app.run_test() as pilot:
        screen = await shown(pilot, ConsoleScreen)
        for name in app.available_themes:
            app.theme = name
            await pilot.pause()
            timeline = screen.query_one(Timeline)
            assert all(timeline.tone(tone).color for tone in Tone if tone is not Tone.PLAIN), name
