"""Where rows of different heights lie: almost all are one line high, a few are taller.

Only the tall ones are stored, as prefix sums, so a million plain rows cost nothing and both
directions are one bisection.
"""

from __future__ import annotations

from bisect import bisect_left


class Heights:
    """Heights of rows 0, 1, 2, ...; rows that were not given one are one line high."""

    def __init__(self) -> None:
        self.rows = 0
        self._at: list[int] = []
        self._extra: list[int] = []
        self._sums: list[int] = []

    @property
    def total(self) -> int:
        """The height of all rows."""
        return self.rows + (self._sums[-1] if self._sums else 0)

    def grow(self, rows: int) -> None:
        """There are more rows now; the new ones are one line high."""
        self.rows = max(self.rows, rows)

    def set(self, row: int, height: int) -> None:
        """Give a row its height, at least 1."""
        self.rows = max(self.rows, row + 1)
        at = bisect_left(self._at, row)
        extra = max(1, height) - 1
        if at < len(self._at) and self._at[at] == row:
            if self._extra[at] == extra:
                return
            self._extra[at] = extra
        elif extra:
            self._at.insert(at, row)
            self._extra.insert(at, extra)
            self._sums.insert(at, 0)
        else:
            return
        running = self._sums[at - 1] if at else 0
        for k in range(at, len(self._at)):
            running += self._extra[k]
            self._sums[k] = running

    def height(self, row: int) -> int:
        """The height of a row."""
        at = bisect_left(self._at, row)
        return 1 + (self._extra[at] if at < len(self._at) and self._at[at] == row else 0)

    def top(self, row: int) -> int:
        """The line at which a row begins."""
        at = bisect_left(self._at, row)
        return row + (self._sums[at - 1] if at else 0)

    def find(self, line: int) -> tuple[int, int]:
        """The row that covers a line, and which of the row's lines it is."""
        low, high = 0, len(self._at)
        while low < high:
            middle = (low + high) // 2
            if self._at[middle] + (self._sums[middle - 1] if middle else 0) <= line:
                low = middle + 1
            else:
                high = middle
        if not low:
            return line, 0
        tall = self._at[low - 1]
        start = tall + (self._sums[low - 2] if low > 1 else 0)
        inside = line - start
        if inside <= self._extra[low - 1]:
            return tall, inside
        return tall + inside - self._extra[low - 1], 0
