"""A large session: how long until it is known, how much memory that takes, how quick keys are.

    python tests/benchmarks/bench_large.py [codex] [megabytes]

The file is made by make_large.py. Each measurement runs in a process of its own; the plain orjson
loop over the same file (benchmark only) takes turns with ours, and the best of each counts.
claude-compaction-viewer, where it is installed, is measured on the same file.
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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thresher.tui.app import ThresherApp
    from thresher.tui.screens.console import ConsoleScreen

ROOT = Path(__file__).resolve().parents[2]
PAIRS = 4
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

    began = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
    return {"seconds": time.perf_counter() - began}


def headless(path: Path) -> dict[str, float]:
    """Read and folded without a screen."""
    from thresher.core.history import History
    from thresher.core.sources.opening import open_source
    from thresher.tui.indexing import undisturbed

    history, tail = History(), open_source(path).tail()
    began = time.perf_counter()
    with undisturbed():
        history.extend(tail.more())
    took = time.perf_counter() - began
    return {"seconds": took, "memory": peak(), "cards": len(history.state.cards)}


def console(path: Path) -> dict[str, float]:
    """In the console: from the start of the app to its newest card and to the whole index; keys are
    pressed all the while."""
    return asyncio.run(_console(path))


async def _console(path: Path) -> dict[str, float]:
    from thresher.tui.app import ThresherApp
    from thresher.tui.opening import open_file
    from thresher.tui.screens.console import ConsoleScreen

    began = time.perf_counter()
    app = ThresherApp(lambda: open_file(path, count=False))
    times: dict[str, float] = {"newest": 0.0, "indexed": 0.0, "first": 0.0, "key": 0.0, "keys": 0}
    async with app.run_test(size=(140, 45)) as pilot:
        await until(lambda: isinstance(app.screen, ConsoleScreen) and bool(app.focused))
        screen = app.screen
        assert isinstance(screen, ConsoleScreen)
        model = screen.model
        await until(lambda: any(card.summary for card in model.history.state.cards))
        times["newest"] = time.perf_counter() - began
        await until(lambda: screen.timeline.cursor > 1)
        keys = ["up", "down"]
        # The first keys also load what draws the detail of a row: that is not the reading's doing.
        for _ in range(4):
            pressed = time.perf_counter()
            await press(app, screen, keys[0])
            times["first"] = max(times["first"], time.perf_counter() - pressed)
            keys.reverse()
            await asyncio.sleep(0.05)
        while model.indexed() is not None:
            pressed = time.perf_counter()
            await press(app, screen, keys[0])
            times["key"] = max(times["key"], time.perf_counter() - pressed)
            times["keys"] += 1
            keys.reverse()
            await asyncio.sleep(0.02)
        times["indexed"] = time.perf_counter() - began
        await pilot.pause()
    times["memory"] = peak()
    return times


async def press(app: ThresherApp, screen: ConsoleScreen, key: str) -> None:
    """Press a key that moves the cursor of the timeline, and wait until it has moved."""
    from textual import events

    before = screen.timeline.cursor
    app.post_message(events.Key(key, None))
    await until(lambda: screen.timeline.cursor != before or screen.model.indexed() is None)


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again, as often as the event loop comes round."""
    while not condition():  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.001)


def viewer(path: Path) -> dict[str, float]:
    """claude-compaction-viewer: its own parser over the file."""
    from claude_compaction_viewer import parser

    began = time.perf_counter()
    parser.parse_jsonl(str(path))
    return {"seconds": time.perf_counter() - began, "memory": peak()}


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def apart(what: str, path: Path) -> dict[str, float] | None:
    """Measure in a process of its own; None where that fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".dev"), "TERM": "xterm-256color"}
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
        loops, wholes = [], []
        for _ in range(PAIRS):
            loops.append(apart("orjson_loop", path))
            wholes.append(apart("headless", path))
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
            report("peak memory", screen["memory"])
            report("slowest key", screen["key"] * 1000)
            keys, first = screen["keys"], screen["first"] * 1000
            print(f"{'keys pressed':<24}{keys:>8.0f}   (first four, loading: {first:.0f} ms)")
        other = apart("viewer", path)
        if other is not None:
            print(f"{'compaction-viewer':<24}{other['seconds']:>8.2f} s{other['memory']:>8.0f} MB")


def report(name: str, value: float) -> None:
    """One figure and whether it holds."""
    limit, unit = LIMITS[name]
    held = "held" if value <= limit else "MISSED"
    print(f"{name:<24}{value:>8.2f} {unit:<4}at most {limit:g}: {held}")


if __name__ == "__main__":
    main()
