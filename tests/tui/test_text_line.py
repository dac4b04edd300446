from __future__ import annotations

import pytest

from thresher.tui.model import ConsoleModel
from thresher.tui.widgets.find_bar import FORMS, FindInput

from . import build
from .looking import console

LONG = "recorded by Claude Code 2.1.197 in another folder: it can be watched, not continued"


@pytest.mark.parametrize("cells", [40, 60, 120])
async def test_the_sentence_that_says_how_it_was_recorded_ends_in_an_ellipsis(cells: int) -> None:
    model = ConsoleModel(build.long_session().history, read_only=LONG)
    async with console(model, size=(cells, 20)) as (screen, pilot):
        told = screen.prompt.placeholder
        assert len(told) <= cells - 1
        if len(LONG) < cells:
            assert told == LONG
        else:
            assert LONG.startswith(told.removesuffix("…"))
            assert told.endswith("…")
        await pilot.resize_terminal(160, 40)
        await pilot.pause()
        assert screen.prompt.placeholder == LONG


async def test_what_a_line_says_while_it_is_empty_is_cut_like_any_text() -> None:
    async with console(build.long_session(), size=(80, 24)) as (screen, pilot):
        await pilot.press("slash")
        await pilot.pause()
        line = screen.query_one(FindInput)
        assert line.placeholder.endswith("…")
        assert FORMS.startswith(line.placeholder.removesuffix("…"))
        assert len(line.placeholder) <= line.content_size.width
