"""Rounds until the next compaction, at the present growth. Pure; unknown stays unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from .compaction.policy import Mark
from .state import SessionState
from .tokens import Tokens


class Forecast(msgspec.Struct, frozen=True):
    """When a mark is reached. `rounds` is None when that cannot be said, and 0 when it is reached
    already; `soonest` and `latest` are the same reckoning with the largest and the smallest growth
    seen (`latest` is None when one round did not grow). `growth` is in tokens a round, the median
    of `samples`. `words` says it with its numbers."""

    rounds: int | None
    words: str
    mark: Mark | None = None
    used: Tokens | None = None
    growth: float | None = None
    samples: tuple[int, ...] = ()
    soonest: int | None = None
    latest: int | None = None


def forecast(used: Tokens | None, samples: Sequence[int], mark: Mark | None) -> Forecast:
    """Reckon from the present size, the growth of the last rounds and a mark of the policy.

    `used` and `samples` are figures of one kind (the provider's totals). A mark is a number that
    such a total is compared with.
    """
    kept = tuple(samples)
    if mark is None:
        return Forecast(None, "unknown: this policy has no threshold", None, used, None, kept)
    if used is None:
        words = "unknown: nothing was reported since the last compaction"
        return Forecast(None, words, mark, None, None, kept)
    missing = mark.tokens - used.value
    if missing <= 0:
        words = f"due: {used.value:,} of {mark.tokens:,} tokens ({used.basis})"
        return Forecast(0, words, mark, used, None, kept, 0, 0)
    if not kept:
        words = f"unknown: {missing:,} tokens to go, growth not known before the second report"
        return Forecast(None, words, mark, used, None, kept)
    growth = float(median(kept))
    if growth <= 0:
        words = f"unknown: {missing:,} tokens to go, and the last rounds did not grow"
        return Forecast(None, words, mark, used, growth, kept)
    rounds = math.ceil(missing / growth)
    words = (
        f"about {rounds:,} round{'s' if rounds != 1 else ''}: ({mark.tokens:,} - {used.value:,}) / "
        f"{growth:,.0f} tokens a round (median of the last {len(kept)}, {used.basis})"
    )
    return Forecast(
        rounds,
        words,
        mark,
        used,
        growth,
        kept,
        math.ceil(missing / max(kept)),
        math.ceil(missing / min(kept)) if min(kept) > 0 else None,
    )


def forecast_of(state: SessionState, marks: Sequence[Mark]) -> Forecast:
    """The forecast for a session and the nearest mark of its policy that is still ahead, or the
    highest one when all are passed."""
    used = state.reported
    ahead = [mark for mark in marks if used is None or mark.tokens > used.value]
    mark = (
        min(ahead, key=lambda m: m.tokens)
        if ahead
        else max(marks, key=lambda m: m.tokens, default=None)
    )
    return forecast(used, state.last_growth, mark)
