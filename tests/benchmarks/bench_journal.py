"""The journal: what recording an event costs, and what reading a session back costs.

Run: PYTHONPATH=.dev python tests/benchmarks/bench_journal.py
Prints ratios within this run, since times of another machine or day say nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.context import Kept
from thresher.core.items import FunctionCall, FunctionCallOutput, Item
from thresher.core.sessions.catalog import look_at
from thresher.core.sessions.journal import Journal, scan
from thresher.core.sessions.resume import resume
from thresher.core.sessions.session import Session

EVENTS = 10_000
COMPACTIONS = 500
TEXT = (
    "def total(rows):  # sums what the rows hold\n    return sum(row.value for row in rows)\n" * 4
)


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best_of(times: int, run: Callable[[], object]) -> float:
    return min(seconds(run) for _ in range(times))


def items() -> list[Item]:
    pairs = [
        (FunctionCall(f"c{n}", "bash", '{"command":"ls"}'), FunctionCallOutput(f"c{n}", TEXT))
        for n in range(EVENTS // 2)
    ]
    return [item for pair in pairs for item in pair]


def plain_write(folder: Path, lines: list[bytes]) -> None:
    with (folder / "plain").open("wb", buffering=0) as file:
        for line in lines:
            file.write(line + b"\n")


def append_all(path: Path, lines: list[bytes]) -> None:
    journal = Journal.create(path)
    for line in lines:
        journal.append(line)
    journal.close()


def new_session(folder: Path, id: str) -> Session:
    return Session.create(folder, e.SessionStarted(session_id=id, agent="thresher"))


def compact(session: Session, ordinal: int) -> None:
    context = session.state.context
    segments = (Kept(context.entries[len(context) // 2].id.bare, context.entries[-1].id.bare),)
    change = context.apply(segments, session.next_line, ordinal)
    session.emit(
        e.HistoryCompacted(
            ordinal=ordinal, pass_id=f"{ordinal}", policy="x", stage="s", moment=None,
            trigger=Trigger.AUTO, reason="r", segments=segments, items_before=len(context),
            items_after=len(change.after), kept=len(change.kept), removed=len(change.removed),
            replaced=0, inserted=0, removed_ids=context.span(change.removed),
            digest=change.after.digest(),
        )
    )  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        events = [e.ItemAppended(item=item) for item in items()]
        lines = [e.encode(e.Record(n, 0.0, event)) for n, event in enumerate(events)]
        plain = best_of(3, lambda: plain_write(folder, lines))
        paths = iter(folder / f"{n}" / "journal.jsonl" for n in range(3))
        append = best_of(3, lambda: append_all(next(paths), lines))

        session = new_session(folder, "long")
        emit = seconds(lambda: [session.emit(event) for event in events])
        session.close()
        decode = best_of(3, lambda: [e.decode(line) for line in session.path.open("rb")])
        read = best_of(3, lambda: list(scan(session.path)))
        again = seconds(lambda: resume(session.path).close())
        listed = best_of(3, lambda: look_at(session.path))

        compacted = new_session(folder, "compacted")
        grown: list[int] = []
        for ordinal in range(1, COMPACTIONS + 1):
            for item in items()[:4]:
                compacted.emit(e.ItemAppended(item=item))
            compact(compacted, ordinal)
            grown.append(compacted.path.stat().st_size)
        compacted.close()
        plain_loop = seconds(lambda: [e.decode(line) for line in compacted.path.open("rb")])
        opened = seconds(lambda: resume(compacted.path).close())

    half = grown[COMPACTIONS // 2 - 1]
    print(f"{EVENTS:,} events of about {len(lines[1]):,} bytes")
    print(f"append          {append / plain:6.1f} x a plain unbuffered write")
    print(f"append          {EVENTS / append:10,.0f} lines a second")
    print(f"emit            {emit / append:6.1f} x the append alone (encode, read back, fold)")
    print(f"scan            {read / decode:6.1f} x a plain decode loop")
    print(f"resume          {again / decode:6.1f} x a plain decode loop")
    print(f"look at (list)  {listed / decode:6.1f} x a plain decode loop")
    print(f"{COMPACTIONS} compactions")
    print(f"file            {grown[-1] / half:6.2f} x its size after half of them (linear: 2)")
    print(f"resume          {opened / plain_loop:6.1f} x a plain decode loop")


if __name__ == "__main__":
    main()
