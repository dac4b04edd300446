from __future__ import annotations

import ast
from pathlib import Path

import pytest
from textual.app import App
from textual.binding import Binding

from thresher.tui import keys
from thresher.tui.app import ThresherApp
from thresher.tui.keys import KEYS, TOGETHER, Where
from thresher.tui.screens.ask import AskScreen
from thresher.tui.screens.confirm import ConfirmScreen
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.context import ContextScreen
from thresher.tui.screens.diff import DiffScreen
from thresher.tui.screens.error import ErrorScreen
from thresher.tui.screens.export import ExportedScreen
from thresher.tui.screens.help import HelpScreen
from thresher.tui.screens.listing import MarkList
from thresher.tui.screens.picker import PickerScreen
from thresher.tui.screens.stop import StopScreen
from thresher.tui.screens.text import TextScreen
from thresher.tui.screens.tour import TourScreen
from thresher.tui.screens.write import WriteScreen
from thresher.tui.widgets.approval import ApprovalBar
from thresher.tui.widgets.detail import Detail
from thresher.tui.widgets.find_bar import FindInput
from thresher.tui.widgets.page import Page
from thresher.tui.widgets.prompt import Prompt
from thresher.tui.widgets.reader import Reader
from thresher.tui.widgets.row_list import RowList
from thresher.tui.widgets.session_list import SessionList, SessionRow
from thresher.tui.widgets.timeline import Timeline

ROOT = Path(__file__).parents[2]

PLACES: dict[Where, tuple[type, ...]] = {
    Where.APP: (ThresherApp,),
    Where.CONSOLE: (ConsoleScreen,),
    Where.ROWS: (Timeline, Detail, Reader, SessionList, RowList, Page),
    Where.LIST: (Timeline, Detail, RowList, Page),
    Where.FIND: (FindInput,),
    Where.PROMPT: (Prompt,),
    Where.DIFF: (DiffScreen,),
    Where.CONTEXT: (ContextScreen,),
    Where.MARKS: (MarkList,),
    Where.PICKER: (PickerScreen,),
    Where.READER: (TextScreen, ErrorScreen),
    Where.APPROVAL: (ApprovalBar,),
    Where.MODAL: (AskScreen, HelpScreen),
    Where.HELP: (HelpScreen,),
    Where.TOUR: (TourScreen,),
    Where.STOP: (StopScreen,),
    Where.WRITE: (WriteScreen,),
    Where.CONFIRM: (ConfirmScreen,),
    Where.WRITTEN: (ExportedScreen,),
}


@pytest.mark.parametrize("places", TOGETHER, ids=lambda places: "+".join(places))
def test_no_key_means_two_things_at_once(places: tuple[Where, ...]) -> None:
    bound: dict[str, str] = {}
    for key in KEYS:
        if key.where not in places:
            continue
        for name in key.keys.split(","):
            assert name not in bound, f"{name}: {key.id} and {bound[name]}"
            bound[name] = key.id


def test_ids_name_one_key_each() -> None:
    ids = [key.id for key in KEYS]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.id)
def test_every_action_exists_in_every_place_of_its_key(key: keys.Key) -> None:
    action = key.action.partition("(")[0]
    for place in PLACES[key.where]:
        owner = App if action.startswith("app.") else place
        assert callable(getattr(owner, f"action_{action.removeprefix('app.')}", None)), place


def test_every_place_binds_exactly_its_rows_of_the_table() -> None:
    for where, places in PLACES.items():
        rows = {key.id for key in KEYS if key.where is where}
        for place in places:
            bound = {b.id for b in place.BINDINGS if isinstance(b, Binding)}
            inherited = {b.id for base in place.__mro__[1:] for b in vars(base).get("BINDINGS", ())
                         if isinstance(b, Binding)}  # fmt: skip
            assert rows <= bound | inherited, place
            assert bound <= {key.id for key in KEYS}, place


def test_no_key_is_bound_outside_the_table() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path in (ROOT / "tui").rglob("*.py")
        if path != ROOT / "tui" / "keys" / "binding.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Binding"
    ]
    assert found == []


def test_tips_are_sentences_without_markup_or_full_stop() -> None:
    for key in KEYS:
        assert key.tip[0].isupper()
        assert not key.tip.endswith(".")
        assert "[" not in key.tip + key.label + key.palette


def test_keys_are_shown_as_people_read_them() -> None:
    assert keys.shown("ctrl+p") == "Ctrl+P"
    assert keys.shown("left_square_bracket") == "["
    assert keys.shown("L") == "L"
    assert keys.shown("f5") == "F5"
    assert keys.shown("f") == "f"
    assert keys.shown("shift+tab") == "Shift+Tab"


def test_the_readme_holds_exactly_the_table() -> None:
    assert keys.markdown() in (ROOT / "README.md").read_text()


async def test_a_key_map_of_the_user_replaces_the_keys_of_an_id() -> None:
    rows = [SessionRow(Path("a.jsonl"), "codex")]
    app = ThresherApp(keymap={"app.theme": "ctrl+g"}, lister=lambda: iter([rows]))
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        await pilot.pause()
        before = app.theme
        await pilot.press("tab", "t")
        assert app.theme == before
        await pilot.press("ctrl+g")
        assert app.theme != before
