from __future__ import annotations

import asyncio
from pathlib import Path

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.context import Inserted
from thresher.core.insight.find import parse
from thresher.core.items import CompactionSummary, user
from thresher.core.views import RowKind
from thresher.tui.keys import Where
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.help import FILTERS, help_rows
from thresher.tui.spans import text_of as text_of_line
from thresher.tui.widgets.find_bar import FindInput, FindNote

from . import build
from .looking import codex, console, lines_of, settled, text_of, toasts, typed


def count_of(screen: ConsoleScreen) -> str:
    return text_of(screen.query_one("#find-count", FindNote)).strip()


async def test_for_a_sentence_of_a_codex_session_one_sees_when_and_why_it_left(
    tmp_path: Path,
) -> None:
    async with console(codex("pre_turn_twice", tmp_path)) as (screen, pilot):
        await pilot.press("slash")
        await typed(pilot, '"First answer')
        await pilot.press("enter")
        assert screen.focused is screen.timeline
        assert "First answer" in text_of(screen.detail)
        told = " ".join(lines_of(screen.detail).split())
        assert "Life the model sees only summary #59.2" in told
        assert "absorbed by compaction 1 #25 (codex-local local) into summary #25.2" in told
        assert "why: context_limit: 6,150 tokens" in told


async def test_the_line_over_the_search_says_what_became_of_the_match(tmp_path: Path) -> None:
    async with console(codex("pre_turn_twice", tmp_path)) as (screen, pilot):
        await pilot.press("slash")
        # Deep in a long output: its life stands far above it in the detail.
        await typed(pilot, "request=00150")
        told = text_of(screen.query_one("#find-snippet", FindNote))
        assert "- absorbed by compaction 2 into summary #59.2" in told
        assert "request=00150" in told
        assert "request=00150" in text_of(screen.detail)


async def test_where_nothing_is_found_one_is_told_what_cannot_be(tmp_path: Path) -> None:
    async with console(codex("pre_turn_twice", tmp_path)) as (screen, pilot):
        await pilot.press("slash")
        await typed(pilot, "never said")
        assert count_of(screen) == "nothing found"
        told = text_of(screen.query_one("#find-snippet", FindNote))
        assert "1 output was cut before the model saw it" in told


async def test_a_match_stays_in_view_when_more_is_found_out_of_its_row(tmp_path: Path) -> None:
    async with console(codex("pre_turn_twice", tmp_path), size=(120, 30)) as (screen, pilot):
        await pilot.press("slash")
        # At once, as pasted: with every letter the match is brought into view anyway.
        screen.query_one(FindInput).value = 'in:summary "step 2"'
        await settled(pilot)
        # The reasons are worked out in a thread, and stand above the summary.
        for _ in range(2_000):
            if "Why now" in lines_of(screen.detail):
                break
            await pilot.pause()
        assert "Why now" in lines_of(screen.detail)
        assert "step 2" in text_of(screen.detail)
        await pilot.press("enter", "tab", "home")
        screen.detail.again()
        assert screen.detail.scroll_offset.y == 0


async def test_matches_are_counted_as_one_types_and_gone_through_by_n(tmp_path: Path) -> None:
    async with console(codex("pre_turn_twice", tmp_path)) as (screen, pilot):
        await pilot.press("slash")
        await typed(pilot, "answer")
        count = int(count_of(screen).split()[-1])
        assert count >= 4
        await typed(pilot, ": role:assistant")
        assert int(count_of(screen).split()[-1]) == 4
        assert count_of(screen) == "4 of 4"
        await pilot.press("enter", "n")
        assert count_of(screen) == "1 of 4"
        first = screen.timeline.row
        await pilot.press("n", "N")
        assert screen.timeline.row == first
        assert first is not None
        assert first.kind is RowKind.ASSISTANT


async def test_the_find_line_takes_the_place_of_the_input_line_and_gives_it_back() -> None:
    async with console(build.long_session()) as (screen, pilot):
        before = screen.timeline.region
        await pilot.press("slash")
        await typed(pilot, "parse_when")
        assert screen.timeline.region == before
        assert not screen.prompt.display
        await pilot.press("escape")
        assert not screen.finding
        assert screen.prompt.display
        assert screen.timeline.region == before


async def test_escape_in_the_list_closes_the_search_too() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("slash")
        await typed(pilot, "parse")
        await pilot.press("enter", "escape")
        assert not screen.finding


async def test_backspace_leads_back_to_where_the_search_began() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("home", "down", "down")
        began = screen.timeline.cursor
        await pilot.press("slash")
        await typed(pilot, "has:compaction")
        await pilot.press("enter", "n", "backspace")
        assert screen.timeline.cursor == began


async def test_what_is_no_filter_is_said_to_be_searched_for_as_a_word() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("slash")
        await typed(pilot, "has:nothing")
        assert count_of(screen) == "nothing found"
        assert "has:nothing is no filter" in text_of(screen.query_one("#find-snippet", FindNote))
        await pilot.press("down")
        assert "Nothing was found to go to." in toasts(pilot)


async def test_a_rewound_view_stays_rewound_and_goes_on_to_a_later_match() -> None:
    async with console(build.long_session()) as (screen, pilot):
        await pilot.press("left_square_bracket", "left_square_bracket")
        before = screen.model.position
        assert before is not None
        await pilot.press("slash")
        await typed(pilot, "removed:1")
        assert screen.model.position == before
        assert "later #" in lines_of(screen.detail)
        query = screen.query_one(FindInput)
        query.value = "has:compaction"
        await settled(pilot)
        assert screen.model.rewound
        hits = count_of(screen)
        assert hits.endswith("of 2")
        await pilot.press("down")
        assert screen.model.rewound or screen.model.position is None


async def test_keys_are_taken_while_a_long_session_is_searched() -> None:
    script = build.Script().start()
    for at in range(20_000):
        script.history.append(
            e.Record(script.n + at, 0.0, e.ItemAppended(item=user(f"line {at} of many")))
        )
    async with console(script) as (screen, pilot):
        screen.action_find()
        line = screen.query_one(FindInput)
        seen: set[int] = set()

        async def watch() -> None:
            while True:
                seen.add(len(screen._index) if screen._index is not None else 0)
                await asyncio.sleep(0)

        watcher = asyncio.create_task(watch())
        line.value = "many"
        await settled(pilot)
        watcher.cancel()
        assert len(seen) > 3
        assert count_of(screen).endswith("of 20,000")
        await pilot.press("end", "9")
        await settled(pilot)
        assert line.value == "many9"
        assert count_of(screen) == "nothing found"


def restoring() -> build.Script:
    """A compaction that writes a summary and puts a long file behind it."""
    script = build.near_threshold()
    name = script.compaction_starts("the context is full")
    before = script.state.context
    file = "\n".join(f"line {n} of the restored file" for n in range(300))
    file += "\nthe penguin waits at the far end"
    segments = (
        *before.keep([0]),
        Inserted(CompactionSummary("a penguin was seen"), before.span(before.ids[1:])),
        Inserted(user(file)),
    )
    change = before.apply(segments, script.n, 1)
    script.emit(
        e.HistoryCompacted(
            ordinal=1, pass_id=name, policy="teaching", stage="compaction",
            moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO, reason="the context is full",
            segments=segments, items_before=len(before), items_after=len(change.after),
            kept=len(change.kept), removed=len(change.removed), replaced=0,
            inserted=len(change.inserted), removed_ids=before.span(change.removed),
            summary="a penguin was seen", digest=change.after.digest(),
        )
    )  # fmt: skip
    return script


async def test_a_match_inside_what_a_compaction_inserted_is_brought_into_view() -> None:
    async with console(restoring()) as (screen, pilot):
        await pilot.press("slash")
        await typed(pilot, "penguin")
        assert count_of(screen) in ("1 of 2", "2 of 2")
        seen = []
        for _ in range(2):
            row = screen.timeline.row
            assert row is not None
            assert row.kind is RowKind.COMPACTION
            seen.append(text_of(screen.detail))
            await pilot.press("down")
            await settled(pilot)
        assert any("a penguin was seen" in told for told in seen)
        assert any("the penguin waits at the far end" in told for told in seen)


def test_the_help_of_the_find_line_names_filters_that_there_are() -> None:
    told = [text_of_line(row.line) for row in help_rows(60, [Where.FIND])]
    for sample, _, _ in FILTERS:
        query = parse(sample)
        assert not query.empty
        assert not query.faults
        assert any(line.startswith(sample) for line in told)
    elsewhere = [text_of_line(row.line) for row in help_rows(60, [Where.CONSOLE])]
    assert "Finding" in told
    assert "Finding" not in elsewhere
