from __future__ import annotations

import gc
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from thresher.core.history import History
from thresher.core.sources.codex_tail import CodexTail
from thresher.core.tokens import Basis
from thresher.core.views import RowKind
from thresher.tui import opening
from thresher.tui.app import ThresherApp
from thresher.tui.opening import open_file
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.spans import text_of
from thresher.tui.widgets.detail_lines import detail_sheet
from thresher.tui.widgets.header import header_line

from .opened import until_behind

MAKE = Path(__file__).parents[1] / "benchmarks" / "make_large.py"


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "rollout.jsonl"
    runpy.run_path(str(MAKE))["make"]("codex", path, 12_000_000)
    return path


@pytest.fixture(scope="module")
def whole(large: Path) -> History:
    history = History()
    history.extend(CodexTail(large).more())
    return history


async def test_the_newest_card_is_there_at_once_and_the_rest_follows(
    large: Path, whole: History
) -> None:
    opened = await open_file(large, count=False)
    model = opened.model
    assert model.indexed() is not None
    assert len(model.history) < len(whole)
    assert model.state.cards[-1].summary == whole.state.cards[-1].summary
    assert model.state.cards[-1].ordinal == whole.state.cards[-1].ordinal
    await until_behind(opened, lambda: model.indexed() is None)
    assert model.state.rows == whole.state.rows
    assert len(model.history) == len(whole)
    assert list(model.stops.compactions) == [
        whole.position_of(card.n) for card in whole.state.cards
    ]


async def test_a_claude_code_session_shows_its_newest_card_at_once_too(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    runpy.run_path(str(MAKE))["make"]("claude", path, 9_000_000)
    opened = await open_file(path, count=False)
    model = opened.model
    early = model.state.cards[-1]
    assert model.indexed() is not None
    await until_behind(opened, lambda: model.indexed() is None)
    card = model.state.cards[-1]
    assert (card.ordinal, card.summary, card.n) == (early.ordinal, early.summary, early.n)
    assert card.ordinal == len(model.state.cards)
    long = next(entry.item for entry in model.state.context if entry.item.body is not None)
    assert len(model.state.text(long)) > len(long.text)


async def test_a_rewound_view_stays_at_its_line_when_the_whole_file_is_known(large: Path) -> None:
    opened = await open_file(large, count=False)
    model = opened.model
    model.previous_compaction()
    line = model.state.position
    cards = model.state.cards[-1].ordinal
    await until_behind(opened, lambda: model.indexed() is None)
    assert model.rewound
    assert model.state.position == line
    assert model.state.cards[-1].ordinal == cards


async def test_the_selected_row_stays_when_the_whole_file_is_known(large: Path) -> None:
    app = ThresherApp(lambda: open_file(large, count=False))
    async with app.run_test(size=(140, 45)) as pilot:
        while not isinstance(app.screen, ConsoleScreen):
            await pilot.pause()
        timeline = app.screen.timeline
        while timeline.cursor < 2:
            await pilot.pause()
        timeline.select(2, follow=False)
        row, early = timeline.row, app.screen.model.indexed() is not None
        while (
            app.screen.model.indexed() is not None or timeline.state is not app.screen.model.state
        ):
            await pilot.pause()
        assert row is not None
        assert timeline.row is not None
        assert timeline.row.n == row.n
        assert not early or timeline.cursor > 2


async def test_a_very_large_file_is_not_counted_but_estimated(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = await open_file(large)
    monkeypatch.setattr(opening, "COUNTED_UP_TO", 1_000_000)
    estimated = await open_file(large)
    assert len(counted.background) - len(estimated.background) == 1
    await until_behind(estimated, lambda: estimated.model.indexed() is None)
    assert estimated.model.state.basis is Basis.ESTIMATED
    assert estimated.model.state.messages_tokens.value > 0


async def test_what_is_appended_after_the_reading_is_followed(large: Path, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(large.read_bytes())
    opened = await open_file(path, count=False)
    model = opened.model
    said = b'{"type":"event_msg","payload":{"type":"warning","message":"something new"}}\n'

    def told() -> bool:
        if model.indexed() is not None:
            return False
        if not path.read_bytes().endswith(said):
            with path.open("ab") as file:
                file.write(said)
        return any(row.text == "something new" for row in model.state.rows)

    await until_behind(opened, told)


async def test_the_header_says_how_far_the_reading_is(large: Path) -> None:
    opened = await open_file(large, count=False)
    line = header_line(opened.model.state, 140, indexed=43)
    assert "indexing 43 %" in text_of(line)
    assert "indexing" not in text_of(header_line(opened.model.state, 140))


async def test_the_detail_shows_the_whole_of_a_long_output(large: Path, whole: History) -> None:
    opened = await open_file(large, count=False)
    await until_behind(opened, lambda: opened.model.indexed() is None)
    state = opened.model.state
    tools = [(row, state.tools[row.call_id]) for row in state.rows if row.kind is RowKind.TOOL]
    row, output = next(
        (row, run.output)
        for row, run in reversed(tools)
        if run.output is not None and state.known[run.output].item.body is not None
    )
    text = whole.state.known[output].item.text
    shown = "\n".join(text_of(line) for line in detail_sheet(state, row, 200).lines)
    assert len(text) > len(state.known[output].item.text)
    for line in text.splitlines()[-3:]:
        assert line.split()[-1] in shown


async def test_the_console_goes_from_the_end_of_the_file_to_all_of_it(
    large: Path, whole: History
) -> None:
    app = ThresherApp(lambda: open_file(large, count=False))
    async with app.run_test(size=(140, 45)) as pilot:
        while not isinstance(app.screen, ConsoleScreen) or app.screen.model.indexed() is not None:
            await pilot.pause()
        await pilot.press("up", "up", "down")
        assert len(app.screen.timeline.state.rows) == len(whole.state.rows)


async def test_reading_leaves_the_collector_and_the_switching_as_they_were(large: Path) -> None:
    before = sys.getswitchinterval(), gc.isenabled()
    opened = await open_file(large, count=False)
    await until_behind(opened, lambda: opened.model.indexed() is None)
    assert (sys.getswitchinterval(), gc.isenabled()) == before
