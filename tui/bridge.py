"""The bridge from the event bus to a screen: drained in batches, a few milliseconds at a time.

The unit of cost is a frame, not an event. A timer of the screen calls `drain` about 12 times a
second; records are folded until the time for one tick is used up and the rest waits for the next
tick, so keys stay quick however much arrives. A reader that fell behind reads the lasting records
again, in the same small portions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from thresher.core.events import Record
from thresher.core.state import Changed

from .model import ConsoleModel

TICK_SECONDS = 1 / 12
BUDGET_SECONDS = 0.008
PORTION = 64
"""Records between two looks at the clock."""


class Bridge:
    """Folds what a model's feed delivers into its history and says what changed."""

    def __init__(
        self,
        model: ConsoleModel,
        *,
        budget: float = BUDGET_SECONDS,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.model = model
        self._budget = budget
        self._clock = clock

    def drain(self) -> Changed:
        """Fold for at most one tick's time; returns what the folded records touched.

        `model.behind` then holds the number of records that still wait.
        """
        feed = self.model.feed
        if feed is None:
            return Changed.NOTHING
        subscription = feed.subscription
        until = self._clock() + self._budget
        changed = Changed.NOTHING
        while len(subscription) and self._clock() < until:
            changed |= self._fold(subscription.take(PORTION))
        missed = subscription.behind
        if missed is not None and not len(subscription):
            changed |= self._catch_up(until)
            missed = subscription.behind
        self.model.behind = len(subscription) + (missed.count if missed else 0)
        return changed

    def _catch_up(self, until: float) -> Changed:
        feed, history = self.model.feed, self.model.history
        changed = Changed.NOTHING
        if feed is None:
            return changed
        records = feed.records_from(len(history))
        for at in range(0, len(records), PORTION):
            changed |= self._fold(records[at : at + PORTION])
            if self._clock() >= until:
                break
        feed.subscription.caught_up(len(history) - 1)
        return changed

    def _fold(self, records: Iterable[Record]) -> Changed:
        return self.model.history.extend(records)
