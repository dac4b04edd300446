"""What of a diff is shown, row by row: filtered, folded, and rewritten entries opened in place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from thresher.core.insight.alignment import DiffRow, RowKind
from thresher.core.insight.diff import Diff, Filter, Fold, Total

from .spans import Line


class Inside(NamedTuple):
    """One line of the text of a rewritten entry that is opened: its row, and which line."""

    row: int
    line: int


Shown: TypeAlias = int | Fold | Inside
"""A row of the diff by its index, a run of kept rows folded away, or a line of an opened row."""

Open: TypeAlias = Callable[[DiffRow], Sequence[Line]]
"""Makes the lines of a rewritten row that is opened."""


class Comparison:
    """A diff as it is looked at. `shown` is what stands on the screen, from top to bottom."""

    def __init__(self, diff: Diff) -> None:
        self.diff = diff
        self.by = Filter()
        self.expanded = False
        self.shown: Sequence[Shown] = ()
        self.totals: dict[RowKind, Total] | None = None
        """Tokens by kind, once all are counted."""
        self._folds: set[int] = set()
        self._opened: dict[int, Sequence[Line]] = {}
        self._counted = 0
        self.arrange()

    # -- what is shown -------------------------------------------------------------------------

    def arrange(self) -> None:
        """Put together anew what is shown."""
        diff = self.diff
        shown: Sequence[int | Fold]
        if self.by != Filter():
            shown = diff.filtered(self.by)
        elif self.expanded:
            shown = range(len(diff.rows))
        else:
            shown = diff.folded()
            if self._folds:
                shown = [
                    at
                    for each in shown
                    for at in (
                        range(each.start, each.stop)
                        if isinstance(each, Fold) and each.start in self._folds
                        else (each,)
                    )
                ]
        if self._opened:
            told: list[Shown] = []
            for each in shown:
                told.append(each)
                if isinstance(each, int):
                    told += (Inside(each, at) for at in range(len(self._opened.get(each, ()))))
            self.shown = told
        else:
            self.shown = shown

    def filter(self, by: Filter) -> None:
        """Show only what passes."""
        self.by = by
        self.arrange()

    def expand(self) -> None:
        """Unfold all that was kept, or fold it again."""
        self.expanded = not self.expanded
        self._folds.clear()
        self.arrange()

    def unfold(self, fold: Fold) -> None:
        """Show what is in a fold."""
        self._folds.add(fold.start)
        self.arrange()

    def turn(self, row: int, make: Open) -> int:
        """Open a rewritten entry in place, or close it; returns the lines that came."""
        if row in self._opened:
            del self._opened[row]
        else:
            self._opened[row] = make(self.diff.rows[row])
        self.arrange()
        return len(self._opened.get(row, ()))

    def again(self, make: Open) -> bool:
        """Make the lines of what is opened anew, for another width; says whether there are any."""
        self._opened = {row: make(self.diff.rows[row]) for row in self._opened}
        if self._opened:
            self.arrange()
        return bool(self._opened)

    def opened(self, row: int) -> bool:
        """Whether the text of a row is shown in place."""
        return row in self._opened

    def inside(self, at: Inside) -> Line:
        """A line of an opened row."""
        return self._opened[at.row][at.line]

    # -- places --------------------------------------------------------------------------------

    def row(self, at: int) -> int | None:
        """The row of the diff at a place of what is shown; None for a fold, and beside the list."""
        each = self.shown[at] if 0 <= at < len(self.shown) else None
        return each.row if isinstance(each, Inside) else each if isinstance(each, int) else None

    def place(self, wanted: Shown | None) -> int:
        """Where a row stands now, or the first one behind it; 0 when there is none."""
        if wanted is None:
            return 0
        if isinstance(wanted, Fold):
            wanted = wanted.start
        row = wanted.row if isinstance(wanted, Inside) else wanted
        for at, each in enumerate(self.shown):
            if isinstance(each, Fold):
                if row < each.stop:
                    return at
            elif not isinstance(each, Inside) and each >= row:
                return at
        return 0

    @property
    def first_change(self) -> int:
        """Where the first change stands."""
        return next((at for at in range(len(self.shown)) if self._changed(at)), 0)

    def jump(self, at: int, step: int) -> int | None:
        """Where the next run of changes of one kind begins, or the one before."""
        end = len(self.shown) if step > 0 else -1
        return next((place for place in range(at + step, end, step) if self._begins(place)), None)

    def _kind(self, at: int) -> RowKind | None:
        row = self.row(at)
        return self.diff.rows.kind(row) if row is not None else None

    def _changed(self, at: int) -> bool:
        return self._kind(at) not in (None, RowKind.KEPT)

    def _begins(self, at: int) -> bool:
        if isinstance(self.shown[at], Inside) or not self._changed(at):
            return False
        return at == 0 or self._kind(at - 1) is not self._kind(at)

    # -- tokens --------------------------------------------------------------------------------

    def count(self, seconds: float) -> bool:
        """Count tokens for so long; says whether all are counted now."""
        rows, until = self.diff.rows, time.perf_counter() + seconds
        while self._counted < len(rows) and time.perf_counter() < until:
            self.diff.tokens(rows[self._counted])
            self._counted += 1
        if self._counted < len(rows):
            return False
        self.totals = self.diff.totals()
        return True

    def tokens_of(self, fold: Fold) -> int | None:
        """The tokens that are folded away, once all are counted."""
        if self.totals is None:
            return None
        rows = self.diff.rows[fold.start : fold.stop]
        return sum(self.diff.tokens(row)[1] or 0 for row in rows)
