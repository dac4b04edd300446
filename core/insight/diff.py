"""The context before and after: aligned rows, each kept, removed, rewritten, moved or inserted.

Rows name entries and places only. What a row costs or says is looked up when somebody asks, so the
diff of a long context opens at once however long its texts are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import msgspec

from ..context import Context, Entry, EntryId
from ..history import History
from ..items import Item
from ..state import SessionState
from ..tokens import Basis
from ..views import Card
from .alignment import DiffRow, RowKind, Rows
from .inline import Piece, inline
from .naming import item_title, role_of, tool_of


class Total(msgspec.Struct, frozen=True):
    """Rows of one kind: how many, and the tokens they had and have."""

    rows: int = 0
    before: int = 0
    after: int = 0


class Filter(msgspec.Struct, frozen=True):
    """Which rows to show; what is empty lets everything through.

    `roles` are those of `naming.role_of`, `tools` names of tools, `least` the tokens that a row
    must have on one side at least.
    """

    kinds: frozenset[RowKind] = frozenset()
    roles: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    least: int = 0


class Fold(msgspec.Struct, frozen=True):
    """A run of kept rows that is folded away: rows[start:stop]."""

    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.stop - self.start


class Diff:
    """Two contexts side by side. `state` gives names and costs; all token figures are of its
    basis, messages only. With `bare` they are what a policy counts, as the figures of a compaction
    are; else estimates are corrected by the reports.
    """

    def __init__(
        self,
        before: Context,
        after: Context,
        rewritten: Mapping[EntryId, EntryId],
        state: SessionState,
        *,
        bare: bool = False,
    ) -> None:
        self.before = before
        self.after = after
        self.rows = Rows(before, after, rewritten)
        self._state = state
        self._cost = state.bare_cost if bare else state.cost

    @property
    def basis(self) -> Basis:
        """How the token figures come about."""
        return self._state.basis

    def entries(self, row: DiffRow) -> tuple[Entry | None, Entry | None]:
        """The entry before and after."""
        before = self.before.entries[row.before_at] if row.before_at >= 0 else None
        after = self.after.entries[row.after_at] if row.after_at >= 0 else None
        return before, after

    def tokens(self, row: DiffRow) -> tuple[int | None, int | None]:
        """Tokens before and after; None where there is no entry on that side."""
        before, after = self.entries(row)
        return (
            None if before is None else self._cost(before.id),
            None if after is None else self._cost(after.id),
        )

    def item(self, row: DiffRow) -> Item:
        """The item to name the row by: the one after, where there is one."""
        before, after = self.entries(row)
        entry = after or before
        assert entry is not None  # a row has at least one side
        return entry.item

    def text(self, item: Item) -> str:
        """The whole text of an item, which may be read from the session's file."""
        return self._state.text(item)

    def title(self, row: DiffRow) -> str:
        """One line that says what the entry is. Foreign text, not clean."""
        return item_title(self._state, self.item(row))

    def role(self, row: DiffRow) -> str:
        """The role, as filters name it."""
        return role_of(self.item(row))

    def tool(self, row: DiffRow) -> str:
        """The tool, or empty."""
        return tool_of(self._state, self.item(row))

    def pieces(self, row: DiffRow) -> tuple[Piece, ...]:
        """How the text changed, word by word; one piece where it did not. Foreign text."""
        before, after = self.entries(row)
        text = self.text
        return inline(text(before.item) if before else "", text(after.item) if after else "")

    def totals(self) -> dict[RowKind, Total]:
        """Rows and tokens by kind, in the order of `RowKind`. Counts what is not counted yet."""
        sums = {kind: [0, 0, 0] for kind in RowKind}
        for row in self.rows:
            before, after = self.tokens(row)
            found = sums[row.kind]
            found[0] += 1
            found[1] += before or 0
            found[2] += after or 0
        return {kind: Total(*found) for kind, found in sums.items()}

    def filtered(self, by: Filter) -> list[int]:
        """The indexes of the rows that pass, in order."""
        return [at for at, row in enumerate(self.rows) if self._passes(row, by)]

    def roles(self) -> tuple[str, ...]:
        """The roles there are, for a menu of filters."""
        return tuple(dict.fromkeys(self.role(row) for row in self.rows))

    def tools(self) -> tuple[str, ...]:
        """The tools there are, for a menu of filters."""
        return tuple(dict.fromkeys(filter(None, (self.tool(row) for row in self.rows))))

    def jumps(self) -> list[int]:
        """Where the changes begin: the first row of every run of rows of one kind that are not
        kept."""
        return [start for kind, start, _ in self.rows.stretches() if kind is not RowKind.KEPT]

    def next_jump(self, at: int, *, back: bool = False) -> int | None:
        """The change after the row `at` (or before it), or None."""
        jumps = self.jumps()
        place = bisect_left(jumps, at if back else at + 1)
        if back:
            return jumps[place - 1] if place else None
        return jumps[place] if place < len(jumps) else None

    def folded(self, around: int = 2, shortest: int = 4) -> list[int | Fold]:
        """Row indexes with long runs of kept rows folded: `around` rows next to a change stay,
        and nothing shorter than `shortest` is folded."""
        shown: list[int | Fold] = []
        for kind, first, end in self.rows.stretches():
            start = first + (around if first else 0)
            stop = end - (around if end < len(self.rows) else 0)
            if kind is RowKind.KEPT and stop - start >= shortest:
                shown += [*range(first, start), Fold(start, stop), *range(stop, end)]
            else:
                shown += range(first, end)
        return shown

    def _passes(self, row: DiffRow, by: Filter) -> bool:
        if by.kinds and row.kind not in by.kinds:
            return False
        if by.roles and self.role(row) not in by.roles:
            return False
        if by.tools and self.tool(row) not in by.tools:
            return False
        return not by.least or max(tokens or 0 for tokens in self.tokens(row)) >= by.least


def compaction_diff(card: Card, state: SessionState) -> Diff | None:
    """The diff of a compaction; None for one that changed nothing or does not fit its record."""
    if card.context_before is None or card.context_after is None:
        return None
    replaced = dict(card.replaced_ids)
    return Diff(card.context_before, card.context_after, replaced, state, bare=True)


def position_diff(history: History, first: int, second: int) -> Diff:
    """The contexts at any two positions, in the order given."""
    before, after = history.at(first), history.at(second)
    later = after if second >= first else before
    rewritten: dict[EntryId, EntryId] = {}
    for old in (before if later is after else after).context.ids:
        new = _latest(old, later)
        if new != old and later.context.place(new) is not None:
            pair = (old, new) if later is after else (new, old)
            rewritten[pair[0]] = pair[1]
    return Diff(before.context, after.context, rewritten, history.state)


def _latest(id: EntryId, state: SessionState) -> EntryId:
    """What an entry is now, after all rewriting."""
    while (became := state.fate(id).became) is not None:
        id = became
    return id
