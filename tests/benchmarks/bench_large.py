"""A large session: how long until it is known, how much memory that takes, how quick keys are.

    python tests/benchmarks/bench_large.py [codex|claude] [megabytes]

The file is made by make_large.py. Each measurement runs in a process of its own; the plain orjson
loop over the same file (benchmark only) takes turns with ours, and the best of each counts.
Of a Claude Code file claude-compaction-viewer, where it is installed (benchmark only), is measured
in the same turns: its parser alone, and its program as a whole. It shows everything at once, so its
newest card is there when all of the file is; keys wait until then, which is what its row says.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thresher.tui.app import ThresherApp
    from thresher.tui.screens.console import ConsoleScreen

ROOT = Path(__file__).resolve().parents[2]
PAIRS = 4
AFTER_SECONDS = 1.5
"""Keys are pressed for so long after all of the file has been read."""
LIMITS = {
    "newest card": (1.5, "s"),
    "indexed": (3.0, "s"),
    "ratio to orjson": (3.0, "x"),
    "peak memory": (120.0, "MB"),
    "slowest key": (50.0, "ms"),
}


def orjson_loop(path: Path) -> dict[str, float]:
    """Every line of the file, decoded and forgotten."""
    import orjson

    began, worked = time.perf_counter(), time.process_time()
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
    return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}


def headless(path: Path) -> dict[str, float]:
    """Read and folded without a screen."""
    from thresher.core.history import History
    from thresher.core.sources.opening import open_source
    from thresher.tui.indexing import undisturbed

    history, tail = History(), open_source(path).tail()
    began, worked = time.perf_counter(), time.process_time()
    with undisturbed():
        history.extend(tail.more())
    took, cpu = time.perf_counter() - began, time.process_time() - worked
    cards = len(history.state.cards)
    return {"seconds": took, "cpu": cpu, "memory": peak(), "cards": cards}


def console(path: Path) -> dict[str, float]:
    """In the console, as a user starts it: from the start of the app to its newest card and to the
    whole index; keys are pressed from the first moment to a while after."""
    return asyncio.run(_console(path))


async def _console(path: Path) -> dict[str, float]:
    from thresher.tui.app import ThresherApp
    from thresher.tui.collector import Collector
    from thresher.tui.opening import open_file
    from thresher.tui.screens.console import ConsoleScreen

    began = time.perf_counter()
    app = ThresherApp(lambda: open_file(path), collector=Collector())
    times: dict[str, float] = {}
    waits: list[tuple[float, float]] = []
    async with app.run_test(size=(140, 45)) as pilot:
        await until(lambda: isinstance(app.screen, ConsoleScreen) and bool(app.focused))
        screen = app.screen
        assert isinstance(screen, ConsoleScreen)
        model = screen.model
        await until(lambda: any(card.summary for card in model.history.state.cards))
        times["newest"] = time.perf_counter() - began
        await until(lambda: screen.timeline.cursor > 1)
        ends = float("inf")
        while time.perf_counter() < ends:
            if model.indexed() is None and "indexed" not in times:
                times["indexed"] = time.perf_counter() - began
                ends = time.perf_counter() + AFTER_SECONDS
            pressed = time.perf_counter()
            await press(app, screen, "up" if screen.timeline.follow else "down")
            waits.append((time.perf_counter() - pressed, pressed - began))
            await asyncio.sleep(0.02)
        await pilot.pause()
    whole = times["indexed"]
    times["idle_key"] = max(wait for wait, at in waits if at > whole + wait)
    (times["key"], times["key_at"]), *others = sorted(waits, reverse=True)
    times["second_key"] = others[0][0]
    times["usual_key"] = median(wait for wait, _ in waits)
    times["keys"] = len(waits)
    times["memory"] = peak()
    return times


async def press(app: ThresherApp, screen: ConsoleScreen, key: str) -> None:
    """Press a key that moves the cursor of the timeline, and wait until it has moved."""
    from textual import events

    before = screen.timeline.cursor
    app.post_message(events.Key(key, None))
    await until(lambda: screen.timeline.cursor != before)


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again, as often as the event loop comes round."""
    while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.001)


def viewer(path: Path) -> dict[str, float]:
    """claude-compaction-viewer: its own parser over the file."""
    from claude_compaction_viewer import parser

    began = time.perf_counter()
    _, compactions, _ = parser.parse_jsonl(str(path))
    took = time.perf_counter() - began
    return {"seconds": took, "memory": peak(), "cards": len(compactions)}


def viewer_console(path: Path) -> dict[str, float]:
    """The same program on its screen, from its start to all of the file."""
    return asyncio.run(_viewer_console(path))


async def _viewer_console(path: Path) -> dict[str, float]:
    from claude_compaction_viewer.tui import CompactionViewer
    from textual.widgets import DataTable

    began = time.perf_counter()
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        last = began
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    app = CompactionViewer(str(path))
    async with app.run_test(size=(140, 45)) as pilot:
        table = app.query_one(DataTable)
        await until(lambda: bool(app.compactions) and table.row_count > 0)
        await pilot.pause()
        indexed = time.perf_counter() - began
        watching.cancel()
    return {"newest": indexed, "indexed": indexed, "memory": peak(), "key": longest}


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def apart(what: str, path: Path) -> dict[str, float] | None:
    """Measure in a process of its own; None where that fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".dev"), "TERM": "xterm-256color"}
    if what.startswith("viewer"):
        # It would list the sessions of whoever runs this.
        environment["HOME"] = str(path.parent)
    done = subprocess.run(
        [sys.executable, __file__, "--measure", what, str(path)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(f"{what}: {done.stderr.strip().splitlines()[-1:]}")
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Make the file, measure, print."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(globals()[sys.argv[2]](Path(sys.argv[3]))))
        return
    format = sys.argv[1] if len(sys.argv) > 1 else "codex"
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 123.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        maker = ROOT / "tests" / "benchmarks" / "make_large.py"
        subprocess.run([sys.executable, str(maker), format, str(path), str(megabytes)], check=True)
        size = path.stat().st_size
        print(f"{format}, {size:,} bytes")
        # In turns, so that a slow moment of the machine touches both; the best of each counts.
        loops, wholes, viewers = [], [], []
        for _ in range(PAIRS):
            loops.append(apart("orjson_loop", path))
            wholes.append(apart("headless", path))
            if format == "claude":
                viewers.append(apart("viewer", path))
        whole = min(
            (each for each in wholes if each), key=lambda each: each["seconds"], default=None
        )
        screen = apart("console", path)
        loop = min((each["seconds"] for each in loops if each), default=0.0)
        print(f"{'plain orjson loop':<24}{loop:>8.2f} s")
        if whole is not None:
            print(f"{'without a screen':<24}{whole['seconds']:>8.2f} s{whole['memory']:>8.0f} MB")
        if whole is not None and screen is not None and loop:
            report("newest card", screen["newest"])
            report("indexed", screen["indexed"])
            report("ratio to orjson", whole["seconds"] / loop)
            worked = [min(each["cpu"] for each in some if each) for some in (wholes, loops)]
            print(
                f"{'  in CPU time':<24}{worked[0] / worked[1]:>8.2f} x   "
                f"({worked[0]:.2f} s against {worked[1]:.2f} s)"
            )
            report("peak memory", screen["memory"])
            report("slowest key", screen["key"] * 1000)
            print(
                f"{'keys':<24}{screen['keys']:>8.0f}   median {screen['usual_key'] * 1000:.1f} ms, "
                f"second slowest {screen['second_key'] * 1000:.0f} ms; "
                f"slowest at {screen['key_at']:.2f} s; with nothing left to read "
                f"{screen['idle_key'] * 1000:.0f} ms"
            )
        if format == "claude":
            compare(viewers, apart("viewer_console", path))


def compare(parsers: list[dict[str, float] | None], screen: dict[str, float] | None) -> None:
    """The rows of the other program."""
    found = [each for each in parsers if each is not None]
    if not found or screen is None:
        return
    parser = min(found, key=lambda each: each["seconds"])
    print("claude-compaction-viewer, the same file:")
    print(f"{'  without a screen':<24}{parser['seconds']:>8.2f} s{parser['memory']:>8.0f} MB")
    print(f"{'  newest card':<24}{screen['newest']:>8.2f} s")
    print(f"{'  indexed':<24}{screen['indexed']:>8.2f} s")
    print(f"{'  peak memory':<24}{screen['memory']:>8.0f} MB")
    print(f"{'  slowest key':<24}{screen['key'] * 1000:>8.0f} ms")


def report(name: str, value: float) -> None:
    """One figure and whether it holds."""
    limit, unit = LIMITS[name]
    held = "held" if value <= limit else "MISSED"
    print(f"{name:<24}{value:>8.2f} {unit:<4}at most {limit:g}: {held}")


if __name__ == "__main__":
    main()
