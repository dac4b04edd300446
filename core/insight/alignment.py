"""Two contexts row by row: what stayed, left, came, was rewritten or moved, in one order.

Rows are kept as runs of rows of one kind; a row is made when it is asked for. So the rows of a
long context cost as much as there are changes in them, and not as many objects as there are
entries.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple, overload

import msgspec

from ..context import Context, EntryId


class RowKind(StrEnum):
    """What became of an entry between the two contexts."""

    KEPT = "kept"
    REMOVED = "removed"
    REWRITTEN = "rewritten"
    MOVED = "moved"
    INSERTED = "inserted"


class DiffRow(msgspec.Struct, frozen=True):
    """One row. `before` and `after` are the entry on each side, None where there is none; the
    places are positions in the two contexts, -1 where there is none. `moved` says that a
    rewritten entry also stands elsewhere in the order."""

    kind: RowKind
    before: EntryId | None
    after: EntryId | None
    before_at: int = -1
    after_at: int = -1
    moved: bool = False


class Run(NamedTuple):
    """Consecutive rows of one kind that are consecutive in both contexts too. `start` is the index
    of the first row; the places are those of its entry, -1 where there is none."""

    start: int
    size: int
    kind: RowKind
    before_at: int = -1
    after_at: int = -1
    moved: bool = False


class Rows(Sequence[DiffRow]):
    """Every entry of two contexts in exactly one row.

    They are in the order of the context after; what was removed stands where it stood, before
    what was inserted there. A moved entry is one row, at its new place. `rewritten` names what an
    entry before became.
    """

    def __init__(
        self, before: Context, after: Context, rewritten: Mapping[EntryId, EntryId]
    ) -> None:
        self._before, self._after = before.entries, after.entries
        self.runs: Sequence[Run] = _runs(before, after, rewritten)
        self._starts = [run.start for run in self.runs]
        self._size = self.runs[-1].start + self.runs[-1].size if self.runs else 0

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> DiffRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[DiffRow]: ...
    def __getitem__(self, at: int | slice) -> DiffRow | list[DiffRow]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(self._size))]
        if at < 0:
            at += self._size
        if not 0 <= at < self._size:
            raise IndexError(f"there are {self._size} rows")
        run = self.runs[bisect_right(self._starts, at) - 1]
        return self._row(run, at - run.start)

    def __iter__(self) -> Iterator[DiffRow]:
        return (self._row(run, at) for run in self.runs for at in range(run.size))

    def _row(self, run: Run, at: int) -> DiffRow:
        old = run.before_at + at if run.before_at >= 0 else -1
        new = run.after_at + at if run.after_at >= 0 else -1
        return DiffRow(
            run.kind,
            self._before[old].id if old >= 0 else None,
            self._after[new].id if new >= 0 else None,
            old,
            new,
            run.moved,
        )

    def kind(self, at: int) -> RowKind:
        """What kind of row stands at an index."""
        return self.runs[bisect_right(self._starts, at) - 1].kind

    def counts(self) -> Counter[RowKind]:
        """How many rows there are of each kind."""
        found: Counter[RowKind] = Counter()
        for run in self.runs:
            found[run.kind] += run.size
        return found

    def stretches(self) -> list[tuple[RowKind, int, int]]:
        """Runs of rows of one kind, wherever their entries stood: kind, first row, row behind the
        last."""
        found: list[tuple[RowKind, int, int]] = []
        for run in self.runs:
            if found and found[-1][0] is run.kind:
                found[-1] = (run.kind, found[-1][1], run.start + run.size)
            else:
                found.append((run.kind, run.start, run.start + run.size))
        return found


def _runs(before: Context, after: Context, rewritten: Mapping[EntryId, EntryId]) -> list[Run]:
    origins, renamed = _origins(before, after, rewritten)
    pairs = sorted((old, new) for new, old in enumerate(origins) if old is not None)
    anchors = _in_order(pairs)
    gone = _Gone([old for old, _ in pairs], len(before))
    runs = _Runs()
    place, end = 0, len(origins)
    while place < end:
        origin, standing, new_name = origins[place], place in anchors, place in renamed
        if origin is not None and standing:
            # What stood in front of this entry, and is gone, comes first.
            gone.above(origin, runs)
        elif not runs.gap_open:
            # A run of new entries begins: what was removed here stands above it.
            gone.above(_next_anchor(anchors, origins, place, len(before)), runs)
        if origin is None:
            runs.add(RowKind.INSERTED, 1, after_at=place)
            place += 1
            continue
        size = 1
        while (
            place + size < end
            and origins[place + size] == origin + size
            and (place + size in anchors) is standing
            and (place + size in renamed) is new_name
        ):
            size += 1
        kind = RowKind.REWRITTEN if new_name else RowKind.KEPT if standing else RowKind.MOVED
        runs.add(kind, size, origin, place, not standing)
        place += size
    gone.above(len(before), runs)
    return runs.made


def _origins(
    before: Context, after: Context, rewritten: Mapping[EntryId, EntryId]
) -> tuple[list[int | None], set[int]]:
    """Where each entry after stood before, None where it did not; and which of them were
    rewritten."""
    origins = [before.place(entry.id) for entry in after.entries]
    renamed: set[int] = set()
    for old, new in rewritten.items():
        origin, place = before.place(old), after.place(new)
        if origin is None or place is None or origins[place] is not None:
            continue
        if after.place(old) is None:
            origins[place] = origin
            renamed.add(place)
    return origins, renamed


class _Runs:
    """Runs while they are put together; what goes on a run lengthens it."""

    def __init__(self) -> None:
        self.made: list[Run] = []
        self._end = 0

    @property
    def gap_open(self) -> bool:
        """Whether the row before is itself new here, so that what was removed is above already."""
        last = self.made[-1] if self.made else None
        return last is not None and (last.kind is RowKind.INSERTED or last.moved)

    def add(
        self, kind: RowKind, size: int, before_at: int = -1, after_at: int = -1, moved: bool = False
    ) -> None:
        """More rows at the end."""
        last = self.made[-1] if self.made else None
        self._end += size
        if (
            last is not None
            and last.kind is kind
            and last.moved is moved
            and before_at == (-1 if last.before_at < 0 else last.before_at + last.size)
            and after_at == (-1 if last.after_at < 0 else last.after_at + last.size)
        ):
            self.made[-1] = last._replace(size=last.size + size)
        else:
            self.made.append(Run(self._end - size, size, kind, before_at, after_at, moved))


class _Gone:
    """The entries before that are in no pair, from the first on, each taken once."""

    def __init__(self, staying: Sequence[int], size: int) -> None:
        """`staying` are places in rising order."""
        ends = [-1, *staying, size]
        self._ranges = iter([(a + 1, b) for a, b in pairwise(ends) if b - a > 1])
        self._next = next(self._ranges, None)

    def above(self, place: int, runs: _Runs) -> None:
        """Add those that stood above a place, which is itself that of a staying one or the end."""
        while self._next is not None and self._next[0] < place:
            first, end = self._next
            runs.add(RowKind.REMOVED, end - first, first)
            self._next = next(self._ranges, None)


def _next_anchor(
    anchors: frozenset[int], origins: Sequence[int | None], place: int, end: int
) -> int:
    """The place before of the next entry that stands in order, or the end."""
    for at in range(place, len(origins)):
        if at in anchors and (origin := origins[at]) is not None:
            return origin
    return end


def _in_order(pairs: Sequence[tuple[int, int]]) -> frozenset[int]:
    """The places after of a longest set of pairs whose order did not change (patience sorting);
    the others have moved. `pairs` are sorted by their place before."""
    places = [place for _, place in pairs]
    if places == sorted(places):
        return frozenset(places)
    tails: list[int] = []
    tops: list[int] = []
    back: list[int] = []
    for at, place in enumerate(places):
        pile = bisect_left(tails, place)
        if pile == len(tails):
            tails.append(place)
            tops.append(at)
        else:
            tails[pile], tops[pile] = place, at
        back.append(tops[pile - 1] if pile else -1)
    found: list[int] = []
    at = tops[-1] if tops else -1
    while at >= 0:
        found.append(places[at])
        at = back[at]
    return frozenset(found)
