"""What the entries of a context cost in tokens, counted only when somebody asks.

Folding a long session must not pay for items that left the context long ago, so an entry is counted
the first time a figure needs it, and never again: an id names the same item for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .context import Entry, EntryId
from .items import Item, Kind
from .tokens import Basis, CharClassCounter, Counter

ItemCost = Callable[[Item], int]
"""The tokens of one item."""

_ESTIMATOR = CharClassCounter()


def estimate_item(item: Item) -> int:
    """The estimate used until a tokenizer has counted: text only, no framing.

    Where only the head of a text is held, the rest is taken to be like the sample of it.
    """
    return whole_tokens(item, _ESTIMATOR)


def whole_tokens(item: Item, counter: Counter) -> int:
    """Tokens of an item's whole text, whatever of it is held: an estimate where not all is."""
    text, body = item.text, item.body
    held = counter.count_text(text)
    if body is None or body.chars <= len(text):
        return held
    sample = body.sample or text
    if not sample:
        return held
    return held + round(counter.count_text(sample) * (body.chars - len(text)) / len(sample))


class CostTable:
    """The costs of all entries of a session, shared by its states at every position."""

    def __init__(self, cost: ItemCost, basis: Basis) -> None:
        self.cost = cost
        self.basis = basis
        self._known: dict[EntryId, int] = {}

    def of(self, entry: Entry) -> int:
        """Tokens of an entry, counted the first time."""
        known = self._known.get(entry.id)
        if known is None:
            known = self._known[entry.id] = self.cost(entry.item)
        return known

    def figures(self) -> dict[EntryId, int]:
        """What has been counted so far, as a copy."""
        return self._known.copy()

    def adopt(self, known: Mapping[EntryId, int]) -> None:
        """Take these figures as they are: the items stand here in another form."""
        self._known.update(known)

    def exchange(self, cost: ItemCost, basis: Basis) -> None:
        """Count everything anew, with another cost, when it is next asked for."""
        self.cost, self.basis = cost, basis
        self._known.clear()


class Sums:
    """Running sums over the entries of one context: by kind, and since the last report.

    `grown` is told of entries at the end, `changed` of any other new order; both only mark what
    is to be counted.
    """

    def __init__(self) -> None:
        self._parts: dict[Kind, int] = {}
        self._counted = 0
        self._since = 0
        self._since_from = 0
        self._since_counted = 0
        self._table: tuple[ItemCost, Basis] | None = None

    def parts(self, entries: Sequence[Entry], table: CostTable) -> dict[Kind, int]:
        """Tokens by kind."""
        self._check(table)
        for entry in entries[self._counted :] if self._counted < len(entries) else ():
            self._parts[entry.kind] = self._parts.get(entry.kind, 0) + table.of(entry)
        self._counted = len(entries)
        return self._parts

    def since(self, entries: Sequence[Entry], table: CostTable) -> int:
        """Tokens of the entries that came after the last report."""
        self._check(table)
        if self._since_counted < len(entries):
            self._since += sum(table.of(entry) for entry in entries[self._since_counted :])
            self._since_counted = len(entries)
        return self._since

    def reported(self, size: int) -> None:
        """A report covers the first `size` entries."""
        self._since, self._since_from, self._since_counted = 0, size, size

    def changed(self) -> None:
        """The entries are others now, or in another order."""
        self._parts, self._counted = {}, 0

    def copy(self) -> Sums:
        """An independent copy."""
        twin = Sums()
        twin.__dict__.update(self.__dict__)
        twin._parts = self._parts.copy()
        return twin

    def _check(self, table: CostTable) -> None:
        now = (table.cost, table.basis)
        if self._table is not None and self._table != now:
            self.changed()
            self._since, self._since_counted = 0, self._since_from
        self._table = now
