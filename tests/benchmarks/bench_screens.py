"""From a key press on the console until the screen that it opens has been painted, for every one.

    python tests/benchmarks/bench_screens.py [rounds] [name ...]

Each screen is opened in a process of its own, over a session of 2,000 entries with a compaction of
them, when its console stands still: the first opening, in which modules are loaded and styles are
parsed, and later ones (the median of some). The clock runs from the key until a word that only the
screen in question has was written to the terminal's driver: all that is not measured is the
terminal. In the same process, in turns, an app of Textual's own opens a screen of one widget, and
the texts of all entries are scanned for a word: every figure is given as a ratio to both.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import ClassVar

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from bench_diff import recorded, scan, session
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.drivers.headless_driver import HeadlessDriver
from textual.screen import Screen
from textual.widgets import Static

from thresher.tui.app import ThresherApp
from thresher.tui.collector import Collector
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened
from thresher.tui.remembered import Remembered

FRAME = 1000 / 60
ENTRIES = 2_000
LATER = 7
STILL = 1.5
"""Seconds in which nothing is painted until the key is pressed: what is got ready after the first
contents is ready then."""
SIZE = (120, 40)

SCREENS: dict[str, tuple[str, str]] = {
    "before and after": ("d", "I look at file 0 now"),
    "context": ("x", "context at #"),
    "outline": ("O", "between compactions"),
    "bookmarks": ("apostrophe", "no bookmark yet"),
    "bookmark": ("m", "bookmark at #"),
    "find": ("slash", "tool:"),
    "help": ("question_mark", "keys of this screen"),
}
"""The key of each, and a word that is on it alone."""


class Terminal(HeadlessDriver):
    """Takes what would be written to a terminal, and looks for a word in it."""

    wanted = ""
    found: asyncio.Event | None = None
    at = (0.0, 0.0)
    writes = 0

    @property
    def is_headless(self) -> bool:
        """False, so that the app writes."""
        return False

    def write(self, data: str) -> None:
        """Take the times when the word is there."""
        Terminal.writes += 1
        if Terminal.found is not None and Terminal.wanted in data:
            Terminal.at = (time.perf_counter(), time.process_time())
            Terminal.found.set()
            Terminal.found = None


async def painted(app: App[None], key: str, word: str) -> tuple[float, float]:
    """Press, wait for the word: milliseconds on the clock, and of processor time."""
    Terminal.wanted, Terminal.found = word, asyncio.Event()
    found = Terminal.found
    began = time.perf_counter(), time.process_time()
    app.simulate_key(key)
    await asyncio.wait_for(found.wait(), 30)
    return 1000 * (Terminal.at[0] - began[0]), 1000 * (Terminal.at[1] - began[1])


async def still() -> None:
    """Until nothing has been written for a while."""
    writes = -1
    while writes != Terminal.writes:
        writes = Terminal.writes
        await asyncio.sleep(STILL)


class One(Screen[None]):
    """One widget."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "app.pop_screen", "Close")]

    def compose(self) -> ComposeResult:
        """A word."""
        yield Static("ONEWIDGET")


class Plain(App[None]):
    """What every screen is compared with."""

    BINDINGS: ClassVar[list[BindingType]] = [("d", "one", "One")]

    def compose(self) -> ComposeResult:
        """Another word."""
        yield Static("UNDERNEATH")

    def action_one(self) -> None:
        """Open the screen."""
        self.push_screen(One())


async def openings(app: App[None], key: str, word: str, back: str) -> list[tuple[float, float]]:
    """The first opening and later ones."""
    found: list[tuple[float, float]] = []

    async def press() -> None:
        await still()
        while len(found) < 1 + LATER:
            found.append(await painted(app, key, word))
            await asyncio.sleep(0.1)
            await painted(app, "escape", back)
            await asyncio.sleep(0.1)
        app.exit()

    pressing = asyncio.create_task(press())
    await app.run_async(size=SIZE)
    await pressing
    return found


def console() -> ThresherApp:
    """The app over the session."""
    history = recorded(ENTRIES)

    async def start() -> Opened:
        return Opened(ConsoleModel(history))

    collector = Collector()
    collector.hold()
    return ThresherApp(start, remembered=Remembered(), collector=collector)


def measured(name: str) -> dict[str, list[tuple[float, float]]]:
    """Both apps in this process, and the scan."""
    key, word = SCREENS[name]
    base, ours = Plain(), console()
    base.driver_class = ours.driver_class = Terminal
    state, scans = session(ENTRIES), []
    for _ in range(LATER):
        began = time.perf_counter(), time.process_time()
        scan(state)
        scans.append((1000 * (time.perf_counter() - began[0]),
                      1000 * (time.process_time() - began[1])))  # fmt: skip
    return {
        "scan": scans,
        "base": asyncio.run(openings(base, "d", "ONEWIDGET", "UNDERNEATH")),
        "ours": asyncio.run(openings(ours, key, word, "timeline")),
    }


def line(name: str, runs: list[dict[str, list[tuple[float, float]]]], clock: int) -> str:
    """First and later openings: ms, frames, and the ratios of each run to what ran beside it."""

    def of(run: dict[str, list[tuple[float, float]]], what: str, first: bool) -> float:
        times = [each[clock] for each in run[what]]
        return times[0] if first else median(times[1:])

    parts = [f"{name:<18}"]
    for first in (True, False):
        ours = median(of(run, "ours", first) for run in runs)
        base = median(of(run, "ours", first) / of(run, "base", first) for run in runs)
        scans = median(of(run, "ours", first) / of(run, "scan", False) for run in runs)
        parts.append(f"{ours:9.1f}{ours / FRAME:8.1f}{base:8.1f}{scans:8.1f}")
    return "  ".join(parts)


def main() -> None:
    """A line for every screen."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        print(json.dumps(measured(arguments[1])))
        return
    rounds = int(arguments[0]) if arguments else 3
    names = arguments[1:] or list(SCREENS)
    found: dict[str, list[dict[str, list[tuple[float, float]]]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            told = subprocess.run(
                [sys.executable, __file__, "--one", name], capture_output=True, text=True
            )
            if told.returncode:
                sys.exit(told.stderr)
            found[name].append(json.loads(told.stdout.splitlines()[-1]))
    titles = f"{'ms':>9}{'frames':>8}{'x one':>8}{'x scan':>8}"
    for clock, what in ((1, "processor time"), (0, "on the clock")):
        print(f"{what:<18}  {'first opening':<33}  later openings")
        print(f"{'':<18}  {titles}  {titles}")
        for name in names:
            print(line(name, found[name], clock))
        runs = [run for each in found.values() for run in each]
        first = median(run["base"][0][clock] for run in runs)
        later = median(median(each[clock] for each in run["base"][1:]) for run in runs)
        scans = median(median(each[clock] for each in run["scan"]) for run in runs)
        print(f"{'one widget':<18}  {first:9.1f}{'':24}  {later:9.1f}")
        print(f"{'scan':<18}  {scans:9.1f}\n")


if __name__ == "__main__":
    main()
