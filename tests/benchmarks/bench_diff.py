"""Opening the diff of a compaction over 2,000 entries: until it stands there, until it is counted.

    python tests/benchmarks/bench_diff.py [entries]

The claims: aligning costs no more than a plain scan over the texts; the screen opens in the time
that it takes for 20 entries; and while tokens are being counted, keys are answered within a frame
(1/60 s). Every figure is given as a ratio too, so that machines can be compared.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from statistics import median

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.context import Inserted, Kept, Replaced, Segment
from thresher.core.history import History
from thresher.core.insight.diff import Diff, compaction_diff
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
)
from thresher.core.state import SessionState
from thresher.tui.screens.diff import DiffScreen
from thresher.tui.theme import ThemedApp
from thresher.tui.widgets.row_list import RowList

FRAME = 1 / 60
ROUNDS = 5


def session(entries: int) -> SessionState:
    """The state of `recorded`."""
    return recorded(entries).state


def recorded(entries: int) -> History:
    """One compaction: most is removed, some rewritten, the newest tenth is kept."""
    history = History()

    def emit(event: e.Event) -> None:
        history.append(e.Record(len(history), float(len(history)), event))

    emit(e.SessionStarted(session_id="bench", agent="thresher"))
    call = 0
    while len(history.state.context) < entries:
        name = f"c{call}"
        text = f"line {call} of the file, as it stands there\n" * (5 + call % 200)
        items: tuple[Item, ...] = (
            Message(Role.ASSISTANT, f"I look at file {call} now."),
            FunctionCall(name, "read_file", f'{{"path": "src/{call}.py"}}'),
            FunctionCallOutput(name, text, name="read_file"),
        )
        for item in items:
            emit(e.ItemAppended(item=item))
        call += 1
    held = history.state.context.entries
    cut = len(held) - len(held) // 10
    segments: list[Segment] = [Inserted(CompactionSummary("## Goal\nGo on."), "")]
    for entry in held[cut:]:
        if isinstance(entry.item, FunctionCallOutput) and entry.id.line % 2:
            placeholder = FunctionCallOutput(entry.item.call_id, "[cleared]", name="read_file")
            segments.append(Replaced(str(entry.id).lstrip("#"), placeholder))
        else:
            bare = str(entry.id).lstrip("#")
            segments.append(Kept(bare, bare))
    emit(
        e.HistoryCompacted(
            ordinal=1, pass_id="p1", policy="teaching", stage="summarise", reason="bench",
            moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO,
            items_before=len(held), items_after=len(segments), kept=0, removed=cut, replaced=0,
            inserted=1, segments=tuple(segments),
        )
    )  # fmt: skip
    return history


def best(work: Callable[[], object]) -> float:
    """The median of some runs, in seconds."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return median(found)


def scan(state: SessionState) -> int:
    """What everything is compared with: one look at every text."""
    before = state.cards[0].context_before
    assert before is not None
    return sum("needle" in entry.item.text.lower() for entry in before)


async def opening(state: SessionState, diff: Diff) -> tuple[float, float, float]:
    """Seconds until the rows stand there, a usual key, and until all is counted."""
    app = ThemedApp()
    async with app.run_test(size=(120, 40)) as pilot:
        began = time.perf_counter()
        screen = DiffScreen(state, diff, card=state.cards[0])
        painted = asyncio.Event()
        screen.call_after_refresh(screen.call_after_refresh, painted.set)
        await app.push_screen(screen)
        await painted.wait()
        assert len(screen.query_one(RowList))
        there = time.perf_counter() - began
        steps, rows = [], screen.query_one(RowList)
        while screen.compared.totals is None:
            press = time.perf_counter()
            rows.action_cursor_down()
            await asyncio.sleep(0)
            steps.append(time.perf_counter() - press)
        counted = time.perf_counter() - began
        await pilot.pause()
    return there, median(steps or [0.0]), counted


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    state = session(entries)
    assert state.cards[0].context_after is not None, state.cards[0].marks
    plain = best(lambda: scan(state))
    align = best(lambda: compaction_diff(state.cards[0], state))
    diff = compaction_diff(state.cards[0], state)
    assert diff is not None
    few = session(20)
    small = compaction_diff(few.cards[0], few)
    assert small is not None
    asyncio.run(opening(few, small))
    least, _, _ = asyncio.run(opening(few, small))
    there, step, counted = asyncio.run(opening(state, diff))
    rows = (
        ("plain scan of all texts", plain),
        ("align the two contexts", align),
        ("open the screen of 20 entries", least),
        ("open the screen, rows there", there),
        ("a step of the cursor meanwhile", step),
        ("all tokens counted", counted),
    )
    print(f"{entries:,} entries, {len(diff.rows):,} rows")
    for name, seconds in rows:
        print(f"{name:38}{1000 * seconds:9.2f} ms{seconds / plain:9.1f} scans"
              f"{seconds / FRAME:9.2f} frames")  # fmt: skip


if __name__ == "__main__":
    main()
