"""In which order it happened: the messages of a session and its compactions, from the marks alone.

A stored list says which messages are excluded and what stands for them, but not when that was. Two
traces tell. A message without an id gets one from its place in the list when a compaction first
looks at it, `msg_9`: its place among the messages proper, 8, differs by the summaries that were
there by then. And where the last run was never looked at, compaction runs before the history is
saved, which puts it one run later than its newest mark. What neither tells, the steps of a window
or a truncation, is one step at the latest place possible, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..compaction.policies.maf.python_messages import Marked
from .base import WireItem
from .maf_messages import is_annotated, marked

INFERRED: Final = "when it happened is inferred from the ids of the messages"
UNKNOWN: Final = "when it happened, and in how many steps, is not in the file"
_NUMBERED: Final = re.compile(r"msg_(\d{1,9})")
COLLAPSED: Final = "tool_result_compaction"


class Told(NamedTuple):
    """A stored message: its key, its place in the list, and what it is."""

    key: str
    place: int
    value: WireItem
    mark: Marked
    is_summary: bool

    @property
    def role(self) -> str:
        """Whose message it is."""
        return self.mark.message.role


class Pass(NamedTuple):
    """A compaction: what it excluded, and its summaries with the keys each stands for."""

    reason: str
    excluded: frozenset[str]
    summaries: dict[str, frozenset[str]]
    notes: tuple[str, ...]

    @property
    def placed(self) -> bool:
        """Whether the file tells when it was."""
        return UNKNOWN not in self.notes


Step = Told | Pass


class Plan(NamedTuple):
    """The steps in order, and how many summaries were once there that are not stored."""

    steps: list[Step]
    lost: int


def told(messages: Sequence[WireItem]) -> list[Told]:
    """The messages with keys that stay the same while the list grows."""
    found: list[Told] = []
    number = 0
    seen: set[str] = set()
    for place, value in enumerate(messages):
        mark = marked(value)
        summary = bool(mark.summary_of_messages or mark.summary_of_groups)
        key = f"summary {mark.id}"
        if not summary:
            key, number = f"message {number}", number + 1
        elif key in seen:
            key = f"{key} at {place}"
        seen.add(key)
        found.append(Told(key, place, value, mark, summary))
    return found


def plan(messages: Sequence[WireItem]) -> Plan:
    """The steps that led to this list."""
    all = told(messages)
    proper = [each for each in all if not each.is_summary]
    summaries = _by_time([each for each in all if each.is_summary], all)
    before = _summaries_before(proper)
    known = max(before.values(), default=0)
    last = max((at for at, each in enumerate(proper) if is_annotated(each.value)), default=-1)
    late = _is_late(proper, last)
    # How many of the messages proper are there when each pass runs.
    passes: list[tuple[int, Pass]] = []
    excluded = _excluded_by(all)
    for rank, summary in enumerate(summaries, 1):
        seen = [at for at, count in before.items() if count < rank]
        newest = max(seen, default=-1) if rank <= known else last
        there = _run_after(proper, newest) if late else newest + 1
        gone = frozenset(excluded.pop(summary.mark.id, set()))
        reason = _reason(gone, all) or COLLAPSED
        step = Pass(reason, gone, {summary.key: gone}, (INFERRED,) if before else (UNKNOWN,))
        if reason == COLLAPSED and passes and passes[-1][0] == there:
            other = passes[-1][1]
            if other.reason == COLLAPSED:
                merged = {**other.summaries, **step.summaries}
                passes[-1] = (there, Pass(reason, other.excluded | gone, merged, step.notes))
                continue
        passes.append((there, step))
    for name, keys in excluded.items():
        there = _run_after(proper, last) if late else last + 1
        notes = [UNKNOWN]
        if not name.startswith(_BY_REASON):
            notes.append(f"the summary {name} that stands for them is not in the file")
        step = Pass(_reason(frozenset(keys), all), frozenset(keys), {}, tuple(notes))
        passes.append((there, step))
    return Plan(_merged(proper, passes), max(0, known - len(summaries)))


_BY_REASON: Final = "reason "


def _excluded_by(all: Sequence[Told]) -> dict[str, set[str]]:
    """The excluded messages by the summary that stands for them, or else by their reason."""
    found: dict[str, set[str]] = {}
    for each in all:
        if each.mark.excluded:
            name = each.mark.summarized_by or f"{_BY_REASON}{each.mark.reason or ''}"
            found.setdefault(name, set()).add(each.key)
    return found


def _reason(keys: frozenset[str], all: Sequence[Told]) -> str:
    """The reason of the most of them: a later strategy writes its own over an older one."""
    reasons = [each.mark.reason or "" for each in all if each.key in keys]
    return max(reasons, key=reasons.count, default="")


def _by_time(summaries: list[Told], all: Sequence[Told]) -> list[Told]:
    """Summaries in the order they were made: by the newest message they reach, inner ones first."""
    by_id = {each.mark.id: each for each in summaries}
    newest: dict[str, int] = {}
    depths: dict[str, int] = {}
    for each in all:
        at = each.place if not each.is_summary else -1
        name, depth, path = each.mark.summarized_by, 0, {each.mark.id}
        while name and name in by_id and name not in path:
            depth += 1
            path.add(name)
            newest[name] = max(newest.get(name, -1), at)
            depths[name] = max(depths.get(name, 0), depth)
            name = by_id[name].mark.summarized_by
    return sorted(
        summaries, key=lambda s: (newest.get(s.mark.id, -1), depths.get(s.mark.id, 0), s.place)
    )


def _summaries_before(proper: Sequence[Told]) -> dict[int, int]:
    """By place among the messages proper: the summaries in the list when it was looked at."""
    found: dict[int, int] = {}
    most = 0
    for at, each in enumerate(proper):
        number = _NUMBERED.fullmatch(each.mark.id)
        count = int(number[1]) - at if number else -1
        # A number that was taken is given out anew, out of order: it tells nothing.
        if number and most <= count <= most + len(proper):
            found[at] = most = count
    return found


def _is_late(proper: Sequence[Told], last: int) -> bool:
    """Whether the newest run was never looked at, although older ones were."""
    rest = proper[last + 1 :]
    return last >= 0 and bool(rest) and rest[0].role == "user"


def _run_after(proper: Sequence[Told], newest: int) -> int:
    """The number of messages up to the end of the run that follows the one with this message."""
    starts = [at for at, each in enumerate(proper) if each.role == "user" and at > newest]
    return starts[1] if len(starts) > 1 else len(proper)


def _merged(proper: Sequence[Told], passes: Sequence[tuple[int, Pass]]) -> list[Step]:
    steps: list[Step] = []
    at = 0
    for there, step in sorted(passes, key=lambda pair: pair[0]):
        steps += proper[at:there]
        at = max(at, there)
        steps.append(step)
    return [*steps, *proper[at:]]
