"""Token counting: the cost of a round against the length of the history, and of the counters.

Run: PYTHONPATH=.dev python tests/benchmarks/bench_tokens.py
Prints ratios within this run, since times of another machine or day say nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import FunctionCallOutput
from thresher.core.ledger import Ledger
from thresher.core.tokenizer import load
from thresher.core.tokens import CharClassCounter

SIZES = (100, 1_000, 10_000)
ROUNDS = 20
LINE = "    def total(self, rows: list[Row]) -> int:  # sums what {n} rows hold\n"


def best_of(times: int, run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def output(line: int) -> Entry:
    text = "".join(LINE.format(n=line * 31 + at) for at in range(10))
    return Entry(EntryId(line), FunctionCallOutput(f"call_{line}", text))


def rounds_after(size: int) -> tuple[float, float]:
    """Seconds for one round by the ledger, and for counting the whole context once."""
    counter = load()
    history = [output(line) for line in range(size)]
    start = time.perf_counter()
    whole = sum(counter.count_text(entry.item.text) for entry in history)
    all_at_once = time.perf_counter() - start

    ledger = Ledger(counter)
    context = Context(history)
    assert ledger.context(context).value == whole
    best = float("inf")
    for line in range(size, size + ROUNDS):
        context = context.appended(output(line))
        start = time.perf_counter()
        ledger.context(context)
        best = min(best, time.perf_counter() - start)
    return best, all_at_once


def main() -> None:
    print("one round of 10 lines, by the ledger")
    base = 0.0
    for size in SIZES:
        by_ledger, all_at_once = rounds_after(size)
        base = base or by_ledger
        print(
            f"  history {size:>6,} entries: {by_ledger / base:5.2f} x the round at {SIZES[0]},"
            f" {by_ledger / all_at_once:9.6f} x counting the whole history"
        )

    text = "".join(LINE.format(n=n) for n in range(5_000))
    tokenizer, estimator = load(), CharClassCounter()
    counted = best_of(3, lambda: tokenizer.count_text(text))
    guessed = best_of(3, lambda: estimator.count_text(text))
    print(f"estimator: {guessed / counted:.2f} x the tokenizer's time on {len(text):,} characters")
    for unit in ("a", " ", "\n", "="):
        run = unit * len(text)
        hard = best_of(2, partial(tokenizer.count_text, run))
        print(f"tokenizer on {unit!r} repeated: {hard / counted:.2f} x the same length of code")


if __name__ == "__main__":
    main()
