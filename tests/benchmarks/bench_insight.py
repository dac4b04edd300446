"""The diff of a large compaction, and a search over a long session, against a plain scan.

    python tests/benchmarks/bench_insight.py [entries] [documents]

A plain scan is a loop in Python that lowers every text and looks for the word. The claims: opening
the diff of a 2,000-entry compaction costs less than one frame (1/60 s), and no slice of a search
over 100,000 entries holds a screen longer than that; the whole search is faster than the scan.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.context import Inserted
from thresher.core.history import History
from thresher.core.insight.diff import compaction_diff
from thresher.core.insight.find import Index, parse
from thresher.core.insight.lineage import Lineage
from thresher.core.items import CompactionSummary, FunctionCall, FunctionCallOutput, assistant

FRAME = 1 / 60
RUNS = 7


def session(entries: int, *, compacted: bool) -> History:
    """About this many entries; with a compaction that keeps every tenth at the end."""
    history = History()

    def emit(event: e.Event) -> None:
        history.append(e.Record(len(history), float(len(history)), event))

    emit(e.SessionStarted(session_id="bench", agent="thresher", policy="teaching"))
    for call in range(entries // 3):
        name = f"c{call}"
        said = f"Looking at file {call} for the Cause of the outage. " * 2
        emit(e.ItemAppended(item=assistant(said)))
        emit(e.ItemAppended(item=FunctionCall(name, "read_file", f'{{"path": "src/{call}.py"}}')))
        text = f"def f{call}(x):\n    return x + {call}\n" * 4
        emit(e.ItemAppended(item=FunctionCallOutput(name, text, name="read_file")))
    if compacted:
        context = history.state.context
        kept = [at for at in range(len(context)) if at % 30 < 3]
        gone = context.span(id for at, id in enumerate(context.ids) if at % 30 >= 3)
        segments = (Inserted(CompactionSummary("what was read"), gone), *context.keep(kept))
        emit(
            e.HistoryCompacted(
                ordinal=1, pass_id="p", policy="teaching", stage="compaction", moment=None,
                trigger=Trigger.AUTO, reason="due", segments=segments,
                items_before=len(context), items_after=len(kept) + 1, kept=len(kept),
                removed=len(context) - len(kept), replaced=0, inserted=1,
            )
        )  # fmt: skip
    gc.collect()
    gc.freeze()  # as the console does after it has read a session
    return history


def best(work: Callable[[], object]) -> float:
    """The median time of some runs, in seconds."""
    times = []
    for _ in range(RUNS):
        gc.collect()
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return median(times)


def longest_of(slices: Iterator[object]) -> float:
    """The longest time between two breaths, in seconds."""
    times: list[float] = []
    begin = time.perf_counter()
    for _ in slices:
        times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
    return max(times)


def scan(history: History, word: str) -> list[object]:
    """What the search is compared with."""
    return [
        id
        for id, entry in history.state.known.items()
        if word in f"{entry.item.text} {getattr(entry.item, 'name', '')} {id}".lower()
    ]


def report(name: str, seconds: float, plain: float, claim: str = "") -> None:
    print(f"{name:44}{seconds * 1000:>10.2f} ms{seconds / plain:>9.2f} × scan   {claim}")


def main(entries: int, documents: int) -> None:
    small = session(entries, compacted=True)
    card = small.state.cards[0]
    plain = best(lambda: scan(small, "outage"))
    print(f"{'plain scan of ' + format(entries, ','):44}{plain * 1000:>10.2f} ms")
    opened = best(lambda: compaction_diff(card, small.state))
    report(f"open the diff of {entries:,}", opened, plain, f"{opened / FRAME:.2f} frames (below 1)")
    diff = compaction_diff(card, small.state)
    assert diff is not None
    report("name a screen of 50 rows", best(lambda: [diff.title(r) for r in diff.rows[:50]]), plain)
    report("count its tokens, the first time", best(diff.totals), plain)
    report("lineage of the session", best(lambda: Lineage(small)), plain)

    large = session(documents, compacted=False)
    word = "outage"
    plain = best(lambda: scan(large, word))
    print(f"{'plain scan of ' + format(documents, ','):44}{plain * 1000:>10.2f} ms")
    index = Index(large)
    begin = time.perf_counter()
    held = longest_of(index.build())
    report("build the index, once", time.perf_counter() - begin, plain)
    report("  its longest slice", held, plain, f"{held / FRAME:.2f} frames")
    for text in (word, f"{word} tool:read role:output", "nowhere", "role:output"):
        query = parse(text)
        whole = best(lambda query=query: list(index.search(query)))
        report(f"search: {text}", whole, plain, "below 1 × scan")
        held = median(longest_of(index.search(query)) for _ in range(RUNS))
        report("  its longest slice", held, plain, f"{held / FRAME:.2f} frames (below 1)")
    wide, narrow = parse("out"), parse("outage")
    hits = index.find(wide)
    report("  a letter more, within the hits", best(lambda: [*index.search(narrow, hits)]), plain)


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*(given + [2_000, 100_000][len(given) :]))
