"""The measure of a live session: the estimator at once, the tokenizer as soon as it is loaded."""

from __future__ import annotations

import asyncio

from .compaction.policy import Measure
from .context import Context
from .items import Item
from .ledger import Ledger
from .tokenizer import counter_for
from .tokens import Basis, CharClassCounter, Tokens


class LateMeasure:
    """Counts with the estimator until `load` has brought the model's tokenizer.

    Loading takes a third of a second, which must not stand before the first screen. The exchange
    happens once, before the first turn, so no figure of a pass is compared across it.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self._measure: Measure = Ledger(CharClassCounter())

    async def load(self) -> None:
        """Load the tokenizer in a thread, and use it from now on."""
        self._measure = Ledger(await asyncio.to_thread(counter_for, self.model))

    @property
    def basis(self) -> Basis:
        """How figures come about now."""
        return self._measure.basis

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self._measure.text(text)

    def item(self, item: Item) -> int:
        """Tokens of one item."""
        return self._measure.item(item)

    def context(self, context: Context) -> Tokens:
        """Tokens of all entries, messages only."""
        return self._measure.context(context)
