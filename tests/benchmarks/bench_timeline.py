"""A timeline of 100,000 rows: what it costs to take the rows in, and to jump by pages.

    python tests/benchmarks/bench_timeline.py [rows]

The claims: a jump paints within one frame (1/60 s), and costs the same as in a timeline of 10,000
rows. Every figure is printed in ms and as a ratio, so that machines can be compared. The worst jump
is printed by the clock, on which other programs and Python's collector of cycles tell, and in CPU
time, on which only the collector does; what is there at the beginning is set aside for it, as the
program does (tui/collector.py): one look through all of it is what the last line says.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from statistics import median

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from textual.app import ComposeResult

from thresher.core import events as e
from thresher.core.history import History
from thresher.core.items import FunctionCall, FunctionCallOutput, Message, Role
from thresher.core.state import Changed, SessionState
from thresher.tui.collector import Collector
from thresher.tui.theme import ThemedApp
from thresher.tui.widgets.timeline import Timeline

FRAME = 1 / 60
JUMPS = 60
NAMES = ("take rows in", "page jump, median", "page jump, worst", "page jump, worst in CPU time")


class TimelineApp(ThemedApp):
    def compose(self) -> ComposeResult:
        yield Timeline()


def session(rows: int) -> SessionState:
    """A state of about this many rows of every common kind."""
    history = History()
    n = 0

    def emit(event: e.Event) -> None:
        nonlocal n
        history.append(e.Record(n, float(n), event))
        n += 1

    emit(e.SessionStarted(session_id="bench", agent="thresher"))
    call = 0
    while len(history.state.rows) < rows:
        if call % 50 == 0:
            emit(e.TurnStarted(turn=call // 50 + 1))
            emit(e.ItemAppended(item=Message(Role.USER, "Go on with the next file. " * 4)))
        emit(e.RequestSent(request=call))
        emit(e.ItemAppended(item=Message(Role.ASSISTANT, f"I look at file {call} now. " * 3)))
        name = f"c{call}"
        emit(e.ItemAppended(item=FunctionCall(name, "read_file", f'{{"path": "src/{call}.py"}}')))
        emit(e.ItemAppended(item=FunctionCallOutput(name, "text " * 20, name="read_file")))
        call += 1
    return history.state


async def measure(rows: int) -> tuple[float, ...]:
    """Seconds to take the rows in, the median of a page jump with its painting, the worst by the
    clock and in CPU time, and what a look for dead cycles would take."""
    state = session(rows)
    begin = time.perf_counter()
    gc.collect()
    looked = time.perf_counter() - begin
    collector = Collector()
    collector.settle()
    app = TimelineApp()
    async with app.run_test(size=(120, 40)) as pilot:
        timeline = app.query_one(Timeline)
        begin = time.perf_counter()
        timeline.show_state(state, ~Changed.NOTHING)
        taken = time.perf_counter() - begin
        await pilot.pause()
        jumps, worked = [], []
        for jump in range(JUMPS):
            place = (jump * 7_919 * 13) % len(state.rows)
            begin, cpu = time.perf_counter(), time.thread_time()
            timeline.select(place, follow=False)
            for y in range(timeline.size.height):
                timeline.render_line(y)
            jumps.append(time.perf_counter() - begin)
            worked.append(time.thread_time() - cpu)
            await pilot.pause()
    collector.let_go()
    return taken, median(jumps), max(jumps), max(worked), looked


async def main(rows: int) -> None:
    small = await measure(10_000)
    large = await measure(rows)
    print(f"{'':28}{'10,000 rows':>14}{f'{rows:,} rows':>16}{'ratio':>8}")
    for name, a, b in zip(NAMES, small, large, strict=False):
        print(f"{name:28}{a * 1000:>11.2f} ms{b * 1000:>13.2f} ms{b / a:>8.1f}")
    print(f"{'median jump / one frame':28}{large[1] / FRAME:>46.2f}   (claim: below 1)")
    print(f"{'worst in CPU time / one frame':28}{large[3] / FRAME:>46.2f}   (claim: below 1)")
    print(f"{'a look for dead cycles':28}{large[4] * 1000:>43.2f} ms   (not while rows are drawn)")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
