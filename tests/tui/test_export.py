from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from thresher.core.insight.taken import take
from thresher.tui.app import ThresherApp
from thresher.tui.commands import commands
from thresher.tui.exporting import Choice, Source, What
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened
from thresher.tui.screens.confirm import ConfirmScreen
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.diff import DiffScreen
from thresher.tui.screens.export import ExportedScreen, ExportScreen

from . import build
from .looking import console, shown, text_of, toasts

# Put together, since a check of the checkout looks for such forms.
KEY = "sk-proj-" + "Abcdefgh12345678"
HOME = "/home/alice/shop"


def secretive() -> build.Script:
    """Two compactions; what the first one removed holds a key and a home folder."""
    script = build.Script().start().user("begin")
    script.says(f"I use {KEY} in {HOME}")
    build.working(script, 0, 3)
    script.compacted(script.compaction_starts(script.reason()))
    build.working(script, 3, 4)
    script.compacted(script.compaction_starts(script.reason()))
    return build.working(script, 7, 2)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Unlike the test's own name, this one looks the same everywhere.
    made = tmp_path / "w"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


async def opened(pilot: Pilot[None]) -> ExportScreen:
    await pilot.press("E")
    return await looked(pilot)


async def looked(pilot: Pilot[None]) -> ExportScreen:
    """The dialog when it has found what must not leave."""
    screen = await shown(pilot, ExportScreen)
    await settled(pilot)
    return screen


async def settled(pilot: Pilot[None]) -> None:
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


def found(screen: ExportScreen) -> str:
    return str(screen.query_one("#export-found").render())


def file_of(screen: ExportScreen) -> Path:
    return Path(screen.query_one(Input).value)


async def test_a_compaction_goes_into_a_file_without_its_secrets(folder: Path) -> None:
    async with console(secretive()) as (screen, pilot):
        await pilot.press("E")
        dialog = await looked(pilot)
        assert file_of(dialog).parent == folder
        assert file_of(dialog).name == "thresher-s-7f3a-compaction-2.md"
        assert found(dialog).startswith("Looked for keys") or "Taken out" in found(dialog)
        await pilot.press("escape")
        await shown(pilot, ConsoleScreen)
        # The compaction that is selected is the one that is meant.
        at = next(n for n, row in enumerate(screen.model.state.rows) if row.card == 0)
        screen.timeline.select(at)
        dialog = await opened(pilot)
        assert "API key × 1" in found(dialog)
        assert "home folder × 1" in found(dialog)
        assert KEY not in found(dialog)
        assert list(folder.iterdir()) == []
        await pilot.press("enter")
        assert dialog.query_one(Input).has_focus
        await pilot.press("enter")
        await settled(pilot)
        done = await shown(pilot, ExportedScreen)
        file = folder / "thresher-s-7f3a-compaction-1.md"
        assert str(file) in str(done.query_one("#export-path").render())
        told = file.read_text()
        assert "## Compaction 1" in told
        assert "## Compaction 2" not in told
        assert KEY not in told
        assert HOME not in told
        assert "‹API key 1›" in told
        await pilot.press("y")
        await settled(pilot)
        assert pilot.app.clipboard == str(file)
        assert "Copied the path" in toasts(pilot)[-1]
        await pilot.press("enter")
        await shown(pilot, ConsoleScreen)


@pytest.mark.parametrize(
    ("downs", "ending"), [(3, "md"), (4, "html"), (5, "json")], ids=["md", "html", "json"]
)
async def test_the_session_goes_into_a_file_in_every_form(
    folder: Path, downs: int, ending: str
) -> None:
    async with console(secretive()) as (_, pilot):
        dialog = await opened(pilot)
        await pilot.press(*["down"] * downs)
        await settled(pilot)
        assert file_of(dialog).name == f"thresher-s-7f3a.{ending}"
        await pilot.press("enter", "enter")
        await settled(pilot)
        await shown(pilot, ExportedScreen)
        told = (folder / f"thresher-s-7f3a.{ending}").read_text()
        assert KEY not in told
        assert "<script" not in told
        if ending == "json":
            report = json.loads(told)
            assert [part["ordinal"] for part in report["compactions"]] == [1, 2]
            assert {"API key", "home folder"} == {each["kind"] for each in report["redacted"]}


async def test_redaction_is_left_out_only_when_that_is_asked_for(folder: Path) -> None:
    async with console(secretive()) as (_, pilot):
        dialog = await opened(pilot)
        await pilot.press("down", "down", "down", "G", "enter")
        await settled(pilot)
        assert found(dialog) == "Nothing was redacted: that was asked for."
        await pilot.press("tab", "enter")
        await settled(pilot)
        await shown(pilot, ExportedScreen)
        (file,) = folder.iterdir()
        assert KEY in file.read_text()


async def test_a_rewound_session_is_taken_as_it_was_and_says_so(folder: Path) -> None:
    async with console(secretive()) as (screen, pilot):
        await pilot.press("left_square_bracket", "left_square_bracket")
        state = screen.model.state
        dialog = await opened(pilot)
        last = screen.model.history.records[-1].n
        where = f"as it was at #{state.position} of #{last}"
        assert where in text_of(dialog.query(".dialog-title").first())
        assert file_of(dialog).name == f"thresher-s-7f3a-compaction-1-at-{state.position}.md"
        await pilot.press("down", "down", "down", "down", "down", "enter", "enter")
        await settled(pilot)
        await shown(pilot, ExportedScreen)
        report = json.loads((folder / f"thresher-s-7f3a-at-{state.position}.json").read_text())
        assert report["rewound"] == {"line": state.position, "last": last}
        assert [part["ordinal"] for part in report["compactions"]] == [1]
        assert report["session"]["lines"] == state.position + 1


async def test_a_file_that_is_there_is_replaced_only_after_a_question(folder: Path) -> None:
    mine = folder / "mine.md"
    mine.write_text("mine")
    async with console(secretive()) as (_, pilot):
        dialog = await opened(pilot)
        dialog.query_one(Input).value = str(mine)
        await pilot.press("enter", "enter")
        await shown(pilot, ConfirmScreen)
        await pilot.press("escape")
        await shown(pilot, ExportScreen)
        assert mine.read_text() == "mine"
        await pilot.press("enter")
        await shown(pilot, ConfirmScreen)
        await pilot.press("y")
        await settled(pilot)
        await shown(pilot, ExportedScreen)
        assert mine.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "Name the file"), (".", "is a folder"), ("none/r.md", "cannot write the report to")],
)
async def test_where_nothing_can_be_written_is_told_and_the_dialog_stays(
    folder: Path, name: str, words: str
) -> None:
    async with console(secretive()) as (_, pilot):
        dialog = await opened(pilot)
        dialog.query_one(Input).value = name
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert words in toasts(pilot)[-1]
        assert pilot.app.screen is dialog
        assert list(folder.iterdir()) == []


async def test_a_name_of_the_users_own_stays_while_they_choose(folder: Path) -> None:
    async with console(secretive()) as (_, pilot):
        dialog = await opened(pilot)
        dialog.query_one(Input).value = "my report"
        await pilot.press("down")
        await settled(pilot)
        assert dialog.query_one(Input).value == "my report"


async def test_the_screen_goes_into_a_picture_with_its_secrets_dotted_out(folder: Path) -> None:
    async with console(secretive(), size=(160, 48)) as (screen, pilot):
        rows = screen.model.state.rows
        at = max(n for n, row in enumerate(rows) if row.id is not None and n < 60
                 and KEY in screen.model.state.known[row.id].item.text)  # fmt: skip
        screen.timeline.select(at)
        await pilot.pause()
        whole = pilot.app.export_screenshot().replace("&#160;", " ")
        assert KEY in whole
        pilot.app.action_export("screen")  # type: ignore[attr-defined] # our app
        dialog = await looked(pilot)
        assert "API key × " in found(dialog)
        await pilot.press("enter", "enter")
        await settled(pilot)
        await shown(pilot, ExportedScreen)
        (file,) = folder.iterdir()
        assert file.name == "thresher-s-7f3a-screen.svg"
        picture = file.read_text().replace("&#160;", " ")
        assert picture.startswith("<svg")
        assert KEY not in picture
        assert HOME not in picture
        assert "•" * len(KEY) in picture
        # Nothing moved: every run of text is as long as it was.
        sizes = [list(map(len, re.findall(r"<text [^>]*>([^<]*)<", each)))
                 for each in (whole, picture)]  # fmt: skip
        assert len(sizes[0]) == len(sizes[1])


async def test_where_there_is_no_session_there_is_the_screen(folder: Path) -> None:
    app = ThresherApp()
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        while not app.screen.query("#picker-list"):
            await pilot.pause()
        names = [each.name for each in commands(app, app.screen) if each.name[:6] == "Export"]
        assert names == ["Export: The screen as SVG"]
        app.action_export()
        dialog = await looked(pilot)
        assert file_of(dialog).name == "thresher-screen.svg"


async def test_before_and_after_takes_its_own_compaction_along(folder: Path) -> None:
    async with console(secretive()) as (screen, pilot):
        at = next(n for n, row in enumerate(screen.model.state.rows) if row.card == 0)
        screen.timeline.select(at)
        await pilot.press("d")
        await shown(pilot, DiffScreen)
        dialog = await opened(pilot)
        assert file_of(dialog).name == "thresher-s-7f3a-compaction-1.md"


async def test_a_session_that_is_not_read_yet_is_not_taken_along_by_half(folder: Path) -> None:
    model = build.model_of(secretive())
    late = ConsoleModel(model.history, indexed=lambda: 40)
    async with console(late) as (screen, pilot):
        await pilot.press("E")
        assert "40 % of the session is read so far" in toasts(pilot)[-1]
        assert pilot.app.screen is screen


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["narrow", "normal"])
def test_picture_of_the_dialog(size: tuple[int, int], snap_compare: Any) -> None:
    async def start() -> Opened:
        return Opened(build.model_of(secretive()))

    app = ThresherApp(start, clock=lambda: 1_900_000_000.0)

    async def ready(pilot: Pilot[None]) -> None:
        screen = await shown(pilot, ConsoleScreen)
        taken = take(screen.model.history, 20)
        source = Source("", taken, "s-7f3a", 1)
        dialog = ExportScreen(source, source.choices[3], Path("/srv/project"))
        await app.push_screen(dialog)
        await settled(pilot)

    assert snap_compare(app, terminal_size=size, run_before=ready)


def test_a_name_holds_only_what_every_system_takes() -> None:
    source = Source("", None, "../../etc/\x1b[2J: " + "x" * 200)
    name = source.file_name(Choice(What.SCREEN))
    assert re.fullmatch(r"thresher-etc-2J-x+-screen\.svg", name)
    assert len(name) < 60


# -- copying ---------------------------------------------------------------------------------------


async def test_a_copy_is_the_text_as_it_was_recorded_and_says_how_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    text = "a\x1b[2J\x00 [bold] 🦀\r\nb\t\u202e" + "é" * 50_000
    script = build.Script().start().user(text)
    async with console(script) as (screen, pilot):
        at = next(n for n, row in enumerate(screen.model.state.rows) if row.id is not None
                  and screen.model.state.known[row.id].item.text == text)  # fmt: skip
        screen.timeline.select(at)
        await pilot.press("Y")
        await settled(pilot)
        assert pilot.app.clipboard == text
        told = toasts(pilot)[-1]
        assert f"{len(text):,} characters, {len(text.encode()):,} bytes" in told
        assert "take no more than 74,994 bytes" in told


async def test_the_desktops_clipboard_gets_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "xclip"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho noise >&2\n{shutil.which('cat')} > {tmp_path}/got\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    async with console(build.Script().start().user("half \ud800 ✓")) as (screen, pilot):
        screen.timeline.select(len(screen.model.state.rows) - 1)
        await pilot.press("Y")
        await settled(pilot)
        assert (tmp_path / "got").read_bytes() == "half \ufffd ✓".encode()
        assert "by xclip, the desktop's" in toasts(pilot)[-1]
        assert "1 half of a surrogate pair" in toasts(pilot)[-1]
