"""From the end of a write to a session's file until the text is on the screen.

    python tests/benchmarks/bench_follow.py [writes] [name ...]

Every kind of session is opened in the console and grows by a message at a time, at moments that
nothing in the console knows of. "On the screen" is the text in the lines that are drawn (asked
every 5 ms, so at most 5 ms too much); for the last row it is in what a real console on a
pseudo-terminal writes. Of an export of spans no message can be seen: there it is one more record.

The claim: at most 200 ms. Beside it the share of a processor that the console uses while nothing
happens (process_time, 3 seconds).
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TEXTUAL_ANIMATIONS"] = "none"
sys.path.insert(0, str(Path(__file__).parents[2]))

import pexpect

from tests.core.sources.growing import SOURCES
from thresher.tui.app import ThresherApp
from thresher.tui.opening import open_file

CLAIM = 0.2
EVERY = 0.005
PATIENCE = 5.0
IDLE = 3.0


def drawn(app: ThresherApp) -> str:
    """The text on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def until(told: Callable[[], bool]) -> float:
    """When it was so; the time is that of the clock of `perf_counter`."""
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        if told():
            return time.perf_counter()
        await asyncio.sleep(EVERY)
    raise SystemExit("the text did not come")


async def console(name: str, make: Callable[[Path], Any], writes: int) -> tuple[list[float], float]:
    """Seconds for each write, and the share of a processor at rest."""
    with tempfile.TemporaryDirectory() as folder:
        growing = make(Path(folder))
        app = ThresherApp(lambda: open_file(growing.path, count=False))
        taken: list[float] = []
        async with app.run_test(size=(120, 40)) as pilot:
            await until(lambda: app.model is not None and "timeline" in drawn(app).lower())
            await pilot.pause()
            for number in range(writes):
                await asyncio.sleep(0.3 + random.random() * 0.4)
                mark = f"mark{number:03d}{random.randrange(10**6):06d}"
                assert app.model is not None
                before = len(app.model.history)
                told: Callable[[], bool] = lambda mark=mark: mark in drawn(app)  # type: ignore[misc]  # noqa: E731 - bound here
                if name == "otlp":
                    told = lambda before=before: len(app.model.history) > before  # type: ignore[misc,union-attr]  # noqa: E731 - bound here
                await asyncio.to_thread(growing.say, mark)
                begun = time.perf_counter()
                taken.append(await until(told) - begun)
            await asyncio.sleep(1.0)
            cpu, wall = time.process_time(), time.perf_counter()
            await asyncio.sleep(IDLE)
            rest = (time.process_time() - cpu) / (time.perf_counter() - wall)
        if hasattr(growing, "close"):
            growing.close()
    return taken, rest


def terminal(writes: int) -> tuple[list[float], float]:
    """The same through a pseudo-terminal, for a transcript of Claude Code."""
    with tempfile.TemporaryDirectory() as folder:
        growing = SOURCES["claude"](Path(folder))
        environment = {**os.environ, "TERM": "xterm-256color", "THRESHER_STATE_DIR": folder}
        command = ["-m", "thresher.tui", "open", str(growing.path)]
        child = pexpect.spawn(
            sys.executable, command, env=environment, dimensions=(40, 120), encoding="utf-8"
        )
        child.expect("the first thing", timeout=30)
        # The tokens of what is there are counted first.
        share_of(child)
        taken: list[float] = []
        for number in range(writes):
            settle = time.perf_counter() + 0.3 + random.random() * 0.4
            while time.perf_counter() < settle:
                try:
                    child.read_nonblocking(65536, timeout=0.02)
                except pexpect.TIMEOUT:
                    continue
            mark = f"mark{number:03d}{random.randrange(10**6):06d}"
            growing.say(mark)
            begun = time.perf_counter()
            child.expect(mark, timeout=PATIENCE)
            taken.append(time.perf_counter() - begun)
        rest = share_of(child)
        child.terminate(force=True)
    return taken, rest


def share_of(child: pexpect.spawn[str]) -> float:
    """The share of a processor that a process uses at rest, from /proc; what it writes is read."""
    ticks = os.sysconf("SC_CLK_TCK")

    def used() -> float:
        fields = Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    end = time.perf_counter() + 1.0
    before = begun = 0.0
    while time.perf_counter() < end:
        try:
            child.read_nonblocking(65536, timeout=0.05)
        except pexpect.TIMEOUT:
            pass
        if not begun and time.perf_counter() > end - IDLE:
            before, begun = used(), time.perf_counter()
            end = begun + IDLE
    return (used() - before) / (time.perf_counter() - begun)


def tell(name: str, taken: list[float], rest: float) -> bool:
    worst = max(taken)
    print(
        f"{name:<12}{statistics.median(taken) * 1000:>8.0f} ms{worst * 1000:>8.0f} ms"
        f"{rest:>9.1%}   {'held' if worst <= CLAIM else 'NOT held'}",
        flush=True,
    )
    return worst <= CLAIM


def main() -> int:
    writes = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{writes} writes each; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'':<12}{'median':>11}{'worst':>11}{'at rest':>9}   at most {CLAIM * 1000:.0f} ms")
    names = sys.argv[2:] or [*SOURCES, "terminal"]
    held = [
        tell(name, *asyncio.run(console(name, make, writes)))
        for name, make in SOURCES.items()
        if name in names
    ]
    if "terminal" in names:
        held.append(tell("terminal", *terminal(writes)))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
