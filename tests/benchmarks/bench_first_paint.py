"""How long until something is on the screen, against a Textual app of one widget.

    python tests/benchmarks/bench_first_paint.py [pairs]

Each program runs in a pseudo terminal of 120 by 40; the clock runs from its start until a word that
only the screen in question has is in what it wrote: the first paint is the one-line opening screen,
the console is the session itself with meter, chart and timeline, the rows is a row of the timeline.
The programs take turns, and the ratio is taken pair by pair, so that a slow moment of the machine
touches both. Python keeps what it compiled, as an installed program does: the first run of each,
which compiles, is not counted.
"""

from __future__ import annotations

import gzip
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pexpect

from thresher.tui.remembered import FILE, Remembered

ROOT = Path(__file__).resolve().parents[2]
CODEX = ROOT / "tests" / "fixtures" / "codex"
LIMIT = 1.8

ONE_WIDGET = """
from textual.app import App
from textual.widgets import Static

class One(App):
    def compose(self):
        yield Static("FIRSTPAINT")

One().run()
"""


def until(word: str, arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Start, wait for the word, end it: seconds on the clock, and of processor time."""
    began = time.perf_counter()
    child = pexpect.spawn(
        sys.executable, arguments, env=environment, dimensions=(40, 120), timeout=30
    )
    child.expect_exact(word)
    took = time.perf_counter() - began
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    processor = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    child.close(force=True)
    return took, processor


def main() -> None:
    """Print a line for each program."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    state = tempfile.mkdtemp()
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "THRESHER_STATE_DIR": state,
        "PYTHONPATH": str(ROOT / ".dev"),
        "PYTHONPYCACHEPREFIX": str(Path(state) / "compiled"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # The tour, which is shown once, would lie over the rows.
    Remembered(Path(state) / FILE).keep(toured=True)
    session = Path(state) / "rollout.jsonl"
    session.write_bytes(gzip.decompress((CODEX / "mid_turn.jsonl.gz").read_bytes()))
    programs = {
        "demo, first paint": ("opening", ["-m", "thresher.tui", "demo"]),
        "open, first paint": ("opening", ["-m", "thresher.tui", "open", str(session)]),
        "demo, console": ("timeline", ["-m", "thresher.tui", "demo"]),
        "open 91 kB, console": ("timeline", ["-m", "thresher.tui", "open", str(session)]),
        "open 91 kB, rows": ("I'll read the log", ["-m", "thresher.tui", "open", str(session)]),
    }
    one = ("FIRSTPAINT", ["-c", ONE_WIDGET])
    until(*one, environment)
    print(f"{'':<24}{'seconds':>10}{'x one widget':>14}{'processor':>12}{'x one widget':>14}")
    for name, program in programs.items():
        until(*program, environment)
        runs = [(until(*one, environment), until(*program, environment)) for _ in range(pairs)]
        clock = statistics.median(ours[0] / base[0] for base, ours in runs)
        processor = statistics.median(ours[1] / base[1] for base, ours in runs)
        bound = f"   at most {LIMIT}: {'held' if clock <= LIMIT else 'MISSED'}"
        print(
            f"{name:<24}{statistics.median(ours[0] for _, ours in runs):>10.2f}{clock:>14.2f}"
            f"{statistics.median(ours[1] for _, ours in runs):>12.2f}{processor:>14.2f}"
            f"{bound if 'first paint' in name else ''}"
        )
    shutil.rmtree(state)


if __name__ == "__main__":
    main()
