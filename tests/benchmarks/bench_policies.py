"""Planning a pass over longer and longer histories: it must grow with them, and no faster.

Run: PYTHONPATH=.dev python tests/benchmarks/bench_policies.py [NAME ...]
Prints ratios within this run, since times of another machine or day say nothing.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping
from typing import Any

from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import (
    Answer,
    Ask,
    CompactRemotely,
    Edit,
    Files,
    Moment,
    Persist,
    RequestShape,
    Situation,
    Skip,
    Start,
    Stored,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import FunctionCall, FunctionCallOutput, Item, assistant, system, user
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact
from thresher.core.tokens import CharClassCounter, Usage

SIZES = (100, 1_000, 10_000, 100_000)
WINDOW = 100_000_000
LINE = "    def total(self, rows: list[Row]) -> int:  # sums what {n} rows hold\n"

POLICIES: Mapping[str, tuple[Moment, Mapping[str, Any]]] = {
    "teaching": (Moment.AFTER_ROUND, {}),
    "harnessx": (Moment.BEFORE_REQUEST, {"threshold": 1}),
    "harnessx (reactive)": (Moment.OVERFLOW, {}),
    "claude-code": (Moment.BEFORE_REQUEST, {"micro_keep": 0, "micro_min_saving": 0}),
    "claude-code (reactive)": (Moment.OVERFLOW, {}),
    "codex": (Moment.AFTER_ROUND, {}),
    "codex-remote": (Moment.AFTER_ROUND, {}),
    "codex-token-budget": (Moment.AFTER_ROUND, {}),
    "opencode-v1": (Moment.AFTER_ROUND, {}),
    "opencode-v1 (prune)": (
        Moment.TURN_END,
        {"auto": False, "prune": True, "prune_protect": 0, "prune_minimum": 0},
    ),
    "opencode-v2": (Moment.BEFORE_REQUEST, {"buffer": 0, "keep": 100}),
    "maf-dotnet": (Moment.BEFORE_REQUEST, {}),
    "maf-python": (Moment.BEFORE_REQUEST, {}),
}
"""Each policy at a moment at which it compacts, with the constants for that. keep-all never does.
The MAF strategies one by one, beside the framework's own, are in bench_maf.py."""


def history(size: int) -> Context:
    """Turns of ten rounds, each with a call, its output and a sentence."""
    items: list[Item] = [system("You are an agent.")]
    number = 0
    while len(items) < size:
        items.append(user(f"Please look at part {number}."))
        for _ in range(10):
            number += 1
            id = f"call_{number}"
            items.append(assistant(f"Looking at file {number}."))
            items.append(FunctionCall(id, "read_file", f'{{"path": "file_{number}.py"}}'))
            items.append(FunctionCallOutput(id, LINE.format(n=number) * 3, "read_file"))
    entries = (Entry(EntryId(n), item, (EntryId(n),)) for n, item in enumerate(items[:size]))
    return Context(entries)


def plan(name: str, context: Context) -> tuple[float, int]:
    """Seconds to plan one pass, and how many edits came of it."""
    moment, params = POLICIES[name]
    policy = make(name.partition(" ")[0], params)
    unknown = Fact(None, "not set")
    situation = Situation(
        moment=moment,
        trigger=Trigger.AUTO,
        context=context,
        shape=RequestShape("be brief"),
        # So much of a window so large is for the answer that every request is over the limit,
        # while any summary request fits.
        budget=Budget(Fact(WINDOW, "large"), unknown, Fact(WINDOW - 16, "large"), unknown),
        measure=Ledger(CharClassCounter()),
        usage=Usage(10 * WINDOW),
    )
    edits, answer = 0, None
    # The histories of all sizes are alive: looking through them for garbage is not planning.
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    steps = policy.plan(situation)
    while True:
        try:
            step = steps.send(answer)
        except StopIteration:
            seconds = time.perf_counter() - start
            gc.enable()
            return seconds, edits
        edits += isinstance(step, Edit)
        answer = _answer(step)


def _answer(step: Ask | Edit | Skip | Start) -> Answer:
    match step:
        case Summarise():
            return Summary("short", "m")
        case CompactRemotely():
            return Summary("", "m", encrypted="sealed")
        case Persist():
            return Stored("kept.txt")
        case Edit() | Skip() | Start():
            return None
        case _:
            return Files(())


def main(names: list[str]) -> None:
    print(f"{'seconds for':28}" + "".join(f"{size:>16,}" for size in SIZES))
    contexts = [history(size) for size in SIZES]
    for name in names or POLICIES:
        row = f"{name:28}"
        before = 0.0
        for context in contexts:
            best, edits = min(plan(name, context) for _ in range(3))
            assert edits, f"{name} did nothing with {len(context):,} items"
            ratio = f" (x{best / before:.1f})" if before else ""
            row += f"{f'{best:.4f}{ratio}':>16}"
            before = best
        print(row)


if __name__ == "__main__":
    main(sys.argv[1:])
