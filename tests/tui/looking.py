"""Apps and sessions for the tests of the screens that look closer."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from thresher.core.text import clean
from thresher.tui.app import ThresherApp
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened, open_file
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.widgets.page import Page

from . import build

FIXTURES = Path(__file__).parents[1] / "fixtures"
Kind = TypeVar("Kind", bound=Screen[object])


@asynccontextmanager
async def console(
    session: build.Script | Path | ConsoleModel, *, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[ConsoleScreen, Pilot[None]]]:
    """The whole app over a session, with the console on the screen."""

    async def start() -> Opened:
        if isinstance(session, Path):
            return await open_file(session, follow=False, count=False)
        model = session if isinstance(session, ConsoleModel) else build.model_of(session)
        return Opened(model)

    app = ThresherApp(start, clock=lambda: 1_900_000_000.0)
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        yield await shown(pilot, ConsoleScreen), pilot


async def shown(pilot: Pilot[None], kind: type[Kind]) -> Kind:
    """Wait until a screen of this kind is on top."""
    for _ in range(2_000):
        if isinstance(pilot.app.screen, kind):
            break
        await pilot.pause()
    await pilot.pause()
    found = pilot.app.screen
    assert isinstance(found, kind)
    return found


async def typed(pilot: Pilot[None], text: str) -> None:
    """Type into what has the focus, and let what it began come to its end."""
    names = {" ": "space", ":": "colon", ">": "greater_than_sign", '"': "quotation_mark"}
    names |= {".": "full_stop", "#": "number_sign", "-": "minus", "/": "slash", ",": "comma"}
    await pilot.press(*(names.get(letter, letter) for letter in text))
    await settled(pilot)


async def settled(pilot: Pilot[None]) -> None:
    """Wait for the search that runs."""
    while any(worker.group == "find" for worker in pilot.app.workers if not worker.is_finished):
        await pilot.pause()
    await pilot.pause()


def text_of(widget: Widget) -> str:
    """What stands on a widget that draws lines."""
    # With its padding: a line that ends at the right edge of the content is not to be cut.
    lines = widget.render_lines(widget.outer_size.region)
    return "\n".join(strip.text.rstrip() for strip in lines)


def lines_of(page: Page) -> str:
    """All lines of a page, also those that are scrolled out of view."""
    return "\n".join("".join(text for text, _ in line) for line in page._lines)


def toasts(pilot: Pilot[None]) -> list[str]:
    """The sentences that are shown as toasts."""
    return [str(toast.message) for toast in pilot.app._notifications]


def rendered(screen: Screen[object]) -> Iterator[str]:
    """Every line on the screen; fails where one could harm a terminal or acts when clicked."""
    for strip in screen._compositor.render_strips():
        assert clean(strip.text) == strip.text
        for segment in strip:
            assert "@click" not in (segment.style.meta if segment.style else {})
        yield strip.text


def codex(name: str, folder: Path) -> Path:
    """A recorded Codex session, unpacked."""
    path = folder / f"{name}.jsonl"
    path.write_bytes(gzip.decompress((FIXTURES / "codex" / f"{name}.jsonl.gz").read_bytes()))
    return path
