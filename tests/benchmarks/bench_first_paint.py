"""How long until something is on the screen, against a Textual app of one widget.

    python tests/benchmarks/bench_first_paint.py [pairs]

Each program runs in a pseudo terminal of 120 by 40; the clock runs from its start until a word that
only its first screen has is in what it wrote. The programs take turns, and the ratio is taken pair
by pair, so that a slow moment of the machine touches both.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pexpect

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


def seconds_until(word: str, arguments: list[str], environment: dict[str, str]) -> float:
    """Start, wait for the word, end it."""
    began = time.perf_counter()
    child = pexpect.spawn(
        sys.executable, arguments, env=environment, dimensions=(40, 120), timeout=30
    )
    child.expect_exact(word)
    took = time.perf_counter() - began
    child.close(force=True)
    return took


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
    }
    session = Path(state) / "rollout.jsonl"
    import gzip

    session.write_bytes(gzip.decompress((CODEX / "mid_turn.jsonl.gz").read_bytes()))
    programs = {
        "thresher demo": ("timeline", ["-m", "thresher.tui", "demo"]),
        "thresher open (91 kB)": ("timeline", ["-m", "thresher.tui", "open", str(session)]),
    }
    one = ("FIRSTPAINT", ["-c", ONE_WIDGET])
    seconds_until(*one, environment)
    for name, program in programs.items():
        seconds_until(*program, environment)
        ratios, theirs = [], []
        for _ in range(pairs):
            base = seconds_until(*one, environment)
            ours = seconds_until(*program, environment)
            ratios.append(ours / base)
            theirs.append(ours)
        median = statistics.median(ratios)
        word = "held" if median <= LIMIT else "MISSED"
        print(
            f"{name:<24} {statistics.median(theirs):.2f} s   {median:.2f} x one widget "
            f"(min {min(ratios):.2f}, max {max(ratios):.2f}; at most {LIMIT}: {word})"
        )
    shutil.rmtree(state)


if __name__ == "__main__":
    main()
