from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

import thresher.tui as tui
from thresher.core.debug.stop import Point
from thresher.tui.app import ThresherApp
from thresher.tui.keymap import checked
from thresher.tui.keys import KEYS, shown
from thresher.tui.opening import Opened
from thresher.tui.plain import PlainStatic
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.dialog import Dialog
from thresher.tui.screens.stop import StopScreen
from thresher.tui.screens.tour import STEPS, TourScreen
from thresher.tui.widgets.prompt import Prompt

from . import build
from .looking import shown as wait_for
from .stopping import Rig, reads, says

OTHERS = {key.id: chr(ord("一") + at) for at, key in enumerate(KEYS)}
"""Every key of the table is another one: a sign that nothing else has."""

NAMED = re.compile(
    r"\b(?:Enter|Esc|Tab|Space|Backspace|Home|PgUp|PgDn|Del|Ctrl\+\w|F\d+)\b"
    r"|(?<![\w'#.])(?!I )[A-Za-z] (?:copies|reads|removes|sets|follows|goes|opens|unfolds|uses|"
    r"keeps|closes|clears|asks|writes|applies|pins|look|next|back|does|leaves|lists|finds|shows|changes)\b"
    r"|\bEnd (?:follows|or)\b"
)
"""A key of the table by the name that it has by default, in a sentence."""

TYPED = re.compile(r"Enter (?:there )?(?:accepts|writes)(?: it)?|Tab (?:goes on|changes sides)")
"""What is no key of ours: how a line is sent, and how a dialog's parts are gone through, which
Textual itself binds."""


def named(text: str) -> list[str]:
    return NAMED.findall(TYPED.sub("", text))


# -- the sentences in the code -----------------------------------------------------------------


def sentences() -> Iterator[tuple[Path, str]]:
    """Every text in the code of the screen, without docstrings; the table names the keys, and the
    command line speaks of no screen."""
    root = Path(tui.__file__).parent
    for file in sorted(root.rglob("*.py")):
        inside = file.relative_to(root)
        if inside.parts[0] in ("cli", "keys") or inside.name in ("keymap.py", "shots.py"):
            continue
        tree = ast.parse(file.read_text())
        nodes = list(ast.walk(tree))
        plain = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and id(node) not in plain:
                yield inside, value


def test_no_sentence_names_a_key_that_the_user_may_have_changed() -> None:
    found = [(str(file), text) for file, text in sentences() if named(text)]
    # A default for callers without an app; the screen gives it the user's own.
    assert [each for each in found if each[0] != "widgets/banner.py"] == []


def test_every_key_that_a_sentence_asks_for_is_in_the_table() -> None:
    ids = {key.id for key in KEYS}
    asked = {id for _, text in sentences() for id in re.findall(r"<([a-z]+\.[a-z_]+)>", text)}
    assert asked <= ids
    assert len(asked) > 10


# -- the screens ---------------------------------------------------------------------------------


def on_screen(app: ThresherApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def told_on(app: ThresherApp) -> str:
    """What is on the screen; of a dialog its sentences, which are wrapped there."""
    if not isinstance(app.screen, Dialog):
        return on_screen(app)
    return "\n".join(str(each.render()) for each in app.screen.query(PlainStatic))


def keys(*ids: str) -> list[str]:
    return [OTHERS[id] for id in ids]


async def begun(pilot: Pilot[None]) -> ConsoleScreen:
    screen = await wait_for(pilot, ConsoleScreen)
    # In the input line a sign is a letter.
    screen.set_focus(screen.timeline)
    return screen


def app_over(make: Callable[[], build.Script], **more: Any) -> ThresherApp:
    async def start() -> Opened:
        return Opened(build.model_of(make(), build.RecordingActor()), Path("journal.jsonl"))

    return ThresherApp(start, keymap=OTHERS, **more)


SCREENS = {
    "console": ((), ("rows.bottom", "console.live"), "console.previous"),
    "detail": (("console.detail",), (), ""),
    "diff": (("console.diff",), ("list.open", "diff.copy"), ""),
    "text": (("console.diff", "list.next", "list.open"), ("reader.copy", "reader.close"), ""),
    "filter": (("console.diff", "diff.filter"), ("list.open", "modal.close"), ""),
    "context": (("console.context",), ("list.open", "context.copy"), ""),
    "compare": (("console.context", "context.compare"), ("modal.close",), ""),
    "outline": (("console.outline",), ("list.open", "modal.close"), ""),
    "bookmarks": (("console.bookmarks",), ("console.bookmark", "marks.remove"), ""),
    "bookmark": (("console.bookmark",), ("modal.close",), ""),
    "export": (("app.export",), ("list.open", "modal.close"), ""),
    "help": (("app.help",), ("help.all", "console.find", "rows.up"), ""),
    "find": (("console.find",), (), ""),
    "sessions": (("app.sessions",), ("picker.path", "picker.reload"), ""),
}


@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_tells_the_users_own_keys(name: str) -> None:
    path, told, before = SCREENS[name]
    app = app_over(build.long_session)
    async with app.run_test(size=(160, 60), notifications=True) as pilot:
        await begun(pilot)
        for id in (before, *path):
            if id:
                await pilot.press(OTHERS[id])
                await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        text = on_screen(app)
        assert [id for id in told if OTHERS[id] not in text] == []
        assert named(told_on(app)) == []


async def test_the_input_line_the_quit_and_the_tour_tell_them_too() -> None:
    app = app_over(build.long_session)
    async with app.run_test(size=(160, 60), notifications=True) as pilot:
        screen = await wait_for(pilot, ConsoleScreen)
        assert OTHERS["app.focus"] in screen.query_one(Prompt).placeholder
        screen.set_focus(screen.timeline)
        await pilot.press(OTHERS["app.interrupt"])
        await pilot.pause()
        assert OTHERS["app.interrupt"] in on_screen(app)
        app.action_tour()
        await wait_for(pilot, TourScreen)
        for step in STEPS:
            text = on_screen(app)
            for id in re.findall(r"<([a-z_.]+)>", step.words):
                assert OTHERS[id] in text, id
            assert {"tour.next", "tour.back", "tour.skip"} <= {
                id for id, key in OTHERS.items() if key in text
            }
            assert named(text) == []
            await pilot.press(OTHERS["tour.next"])
        await wait_for(pilot, ConsoleScreen)


async def test_the_stop_and_what_lies_over_it_tell_them_too(tmp_path: Path) -> None:
    rig = Rig(tmp_path, reads("RULES.md", "c1"), says("summary"), says("done"), keymap=OTHERS)
    async with rig.app.run_test(size=(160, 60), notifications=True) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        for path, told in (
            ((), ("stop.apply", "stop.pin", "stop.view")),
            (("stop.view",), ("stop.view",)),
            (("stop.view",), ("stop.apply", "stop.edit")),
            (("stop.breakpoints",), ("list.open", "modal.close")),
            (("stop.policy",), ("list.open", "modal.close")),
            (("stop.focus",), ("modal.close",)),
            (("stop.edit",), ("write.use", "modal.close")),
        ):
            # In a line to write in, the sign that closes it is a letter.
            while not isinstance(rig.app.screen, StopScreen):
                rig.app.pop_screen()
            await pilot.press(*keys(*path))
            await pilot.pause()
            text = on_screen(rig.app)
            assert [id for id in told if OTHERS[id] not in text] == [], path
            assert named(told_on(rig.app)) == [], path
        await rig.app.action_quit()


def test_all_keys_may_be_others_at_once() -> None:
    assert checked(OTHERS) == OTHERS
    assert {shown(key) for key in OTHERS.values()} == set(OTHERS.values())
