from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from thresher.tui.app import ThresherApp
from thresher.tui.opening import Opened
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.diff import DiffScreen

from . import build
from .looking import settled, shown, typed

NARROW, NORMAL, WIDE = (80, 24), (120, 40), (160, 48)
Make = Callable[[], build.Script]


def rereading() -> build.Script:
    """A file is read twice, then changed."""
    script = build.near_threshold()
    text = "def parse_when(text):\n    return dates.read(text)\n" * 12
    for _ in range(2):
        script.round()
        script.tool("read_file", {"path": "src/when.py"}, text)
    script.round()
    script.tool("write_file", {"path": "src/when.py", "content": "pass"}, "written")
    return script.round().says("The parser is replaced.")


@pytest.mark.parametrize(
    ("make", "size", "light", "keys", "typing"),
    [
        pytest.param(build.long_session, WIDE, False, ("d",), "", id="diff_wide"),
        pytest.param(build.long_session, NORMAL, True, ("d", "n", "n"), "", id="diff_light"),
        pytest.param(build.long_session, NARROW, False, ("d",), "", id="diff_narrow"),
        pytest.param(build.long_session, NORMAL, False, ("d", "s"), "", id="summary"),
        pytest.param(rereading, NORMAL, False, ("x", "home", "n"), "", id="context"),
        pytest.param(rereading, NARROW, True, ("x", "s"), "", id="context_narrow_light"),
        pytest.param(build.long_session, NORMAL, False, ("slash",), "leap", id="find"),
        pytest.param(build.long_session, NORMAL, True, ("O",), "", id="outline_light"),
        pytest.param(
            build.long_session, NARROW, False, ("left_square_bracket", "left_curly_bracket"), "",
            id="track_narrow",
        ),
        pytest.param(
            build.long_session, WIDE, False, ("left_square_bracket", "D", "pagedown"), "",
            id="why_now",
        ),
    ],
)  # fmt: skip
def test_the_screens_that_look_closer_look_like_their_pictures(
    snap_compare: Any, make: Make, size: tuple[int, int], light: bool, keys: tuple[str, ...],
    typing: str,
) -> None:  # fmt: skip
    async def start() -> Opened:
        return Opened(build.model_of(make()))

    async def ready(pilot: Pilot[None]) -> None:
        await shown(pilot, ConsoleScreen)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        if typing:
            await typed(pilot, typing)
        await settled(pilot)
        screen = pilot.app.screen
        while isinstance(screen, DiffScreen) and screen.compared.totals is None:
            await pilot.pause()
        await pilot.pause()

    theme = "thresher-light" if light else ""
    app = ThresherApp(start, theme=theme, clock=lambda: 1_900_000_000.0)
    assert snap_compare(app, terminal_size=size, run_before=ready)
