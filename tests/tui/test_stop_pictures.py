from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from thresher.core.debug.stop import Point
from thresher.core.tokens import Usage
from thresher.tui.remembered import Remembered
from thresher.tui.screens.choosing import PolicyScreen
from thresher.tui.screens.confirm import ConfirmScreen
from thresher.tui.screens.debugging import confirm_restore
from thresher.tui.screens.stop import StopScreen
from thresher.tui.theme import CONTRAST_NAME, DARK_NAME, LIGHT_NAME, MONO_NAME

from .stopping import RULE, Rig, reads, says

SUMMARY = """## Goal
Read the rules and mind them.

## Rules
- prices stay integers in cents

## Done
- read RULES.md and LONG.md"""

NARROW, NORMAL, WIDE = (80, 24), (120, 40), (160, 48)


@pytest.mark.parametrize(
    ("point", "size", "theme", "keys"),
    [
        pytest.param(Point.SUMMARY, NORMAL, DARK_NAME, (), id="before_the_summary"),
        pytest.param(Point.SUMMARY, NORMAL, DARK_NAME, ("v",), id="request"),
        pytest.param(Point.EDIT, NORMAL, LIGHT_NAME, (), id="before_the_edit_light"),
        pytest.param(Point.EDIT, WIDE, CONTRAST_NAME, ("minus",), id="wide_contrast_dropped"),
        pytest.param(Point.EDIT, NARROW, DARK_NAME, (), id="narrow"),
        pytest.param(Point.EDIT, NARROW, MONO_NAME, ("v", "v"), id="narrow_summary_mono"),
        pytest.param(Point.EDIT, NORMAL, DARK_NAME, ("e",), id="writing"),
        pytest.param(Point.SUMMARY, NORMAL, DARK_NAME, ("B",), id="breakpoints"),
        pytest.param(Point.SUMMARY, NARROW, LIGHT_NAME, ("question_mark",), id="help_narrow"),
    ],
)
def test_the_stop_looks_like_its_picture(
    snap_compare: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, point: Point,
    size: tuple[int, int], theme: str, keys: tuple[str, ...],
) -> None:  # fmt: skip
    # How long the summary took is the one figure that differs from run to run.
    monkeypatch.setattr("thresher.tui.figures.seconds", lambda value: "2ms")
    remembered = Remembered()
    remembered.keep(theme=theme)
    rig = Rig(tmp_path, reads("RULES.md", "c1"), says(SUMMARY), remembered=remembered)

    async def before(pilot: Pilot[None]) -> None:
        await rig.console(pilot)
        rig.actor.send("Read the rules, and mind them.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        rig.select(screen, RULE)
        await pilot.press("p")
        if point is Point.EDIT:
            await pilot.press("a")
            await rig.stopped(pilot, Point.EDIT)
        if "minus" in keys:
            rig.select(screen, "Read the rules, and mind them.")
        await pilot.press(*keys)
        await pilot.pause()

    assert snap_compare(rig.app, terminal_size=size, run_before=before)


async def policies(rig: Rig, pilot: Pilot[None], screen: StopScreen) -> None:
    """The policies, each with what it would come to."""
    await pilot.press("P")
    await rig.until(pilot, lambda: isinstance(rig.app.screen, PolicyScreen))
    chooser = rig.app.screen
    assert isinstance(chooser, PolicyScreen)
    await rig.until(pilot, lambda: chooser.complete)
    chooser.rows.select(2)


async def undo(rig: Rig, pilot: Pilot[None], screen: StopScreen) -> None:
    """What taking the first compaction back would come to."""
    await pilot.press("u")


async def restore(rig: Rig, pilot: Pilot[None], screen: StopScreen) -> None:
    """What bringing back the call that read the rules would come to."""
    state = rig.model.history.state
    rule = next(id for id in state.cards[0].removed_ids if RULE in state.text(state.known[id].item))
    confirm_restore(screen, rig.model, rig.actor, rule)


@pytest.mark.parametrize("size", [NARROW, NORMAL], ids=["narrow", "normal"])
@pytest.mark.parametrize("ask", [policies, undo, restore])
def test_what_would_come_of_it_looks_like_its_picture(
    snap_compare: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ask: Any,
    size: tuple[int, int],
) -> None:  # fmt: skip
    monkeypatch.setattr("thresher.tui.figures.seconds", lambda value: "2ms")
    again = reads("RULES.md", "c2", Usage(1_000, 5))
    rig = Rig(tmp_path, reads("RULES.md", "c1"), says(SUMMARY), again, says(SUMMARY))

    async def before(pilot: Pilot[None]) -> None:
        await rig.console(pilot)
        rig.actor.send("Read the rules, and mind them.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        if ask is not policies:
            await pilot.press("a")
            await rig.stopped(pilot, Point.EDIT)
            # Another stop, over which no clock and no name of a session is in view.
            await pilot.press("s")
            screen = await rig.stopped(pilot, Point.ROUND)
        rig.app.clear_notifications()
        await ask(rig, pilot, screen)
        await pilot.pause()
        assert isinstance(rig.app.screen, PolicyScreen | ConfirmScreen)

    assert snap_compare(rig.app, terminal_size=size, run_before=before)
