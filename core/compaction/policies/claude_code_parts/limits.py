"""The arithmetic: how large the context is taken to be, and at which sizes something happens."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ....items import Item
from ....tokens import Usage
from .rounds import by_model, estimate

CountAfter: TypeAlias = Literal["first", "last", "none"]


class Limits(NamedTuple):
    """Sizes in tokens: the usable part of the window, where the full compaction fires, where the
    warning level is; and the arithmetic in words."""

    effective: int
    threshold: int
    warning: int
    words: str


def limits(
    window: int | None,
    *,
    override: int | None,
    reserve: int,
    buffer: int,
    percent: float | None,
    warning: int,
) -> Limits | None:
    """The limits of a window; None when the window is unknown or leaves no room for any.

    `override` replaces the window but never enlarges it, `percent` of the effective window can
    only lower the threshold.
    """
    named = "window"
    if override is not None and (window is None or override < window):
        window, named = override, "window set to"
    if window is None:
        return None
    effective = window - reserve
    threshold = effective - buffer
    words = f"{named} {window:,} - reserve {reserve:,} - buffer {buffer:,}"
    if percent is not None and (lower := int(effective * percent / 100)) < threshold:
        threshold = lower
        words = f"{percent:g} % of ({named} {window:,} - reserve {reserve:,})"
    if threshold <= 0:
        return None
    return Limits(effective, threshold, max(0, threshold - warning), words)


class Figure(NamedTuple):
    """The size that is compared: `reported` by the provider, and `added`, our estimate of what it
    does not cover; with no report, everything is estimated."""

    reported: int | None
    added: int

    @property
    def tokens(self) -> int:
        """Both together."""
        return (self.reported or 0) + self.added

    @property
    def words(self) -> str:
        """Both in words."""
        if self.reported is None:
            return f"estimated {self.added:,} tokens (nothing reported yet)"
        more = f" + {self.added:,} estimated since" if self.added else ""
        return f"{self.reported:,} reported{more} = {self.tokens:,} tokens"


def figure(items: tuple[Item, ...], usage: Usage | None, after: CountAfter) -> Figure:
    """The size of the context. `after` says from where on the last response and what follows it
    are estimated: after its "first" part (2.1.197), after its "last" (2.1.70), or not at all."""
    if usage is None:
        return Figure(None, estimate(items))
    if after == "none":
        return Figure(usage.total, 0)
    last = len(items)
    while last and not by_model(items[last - 1]):
        last -= 1
    first = last
    while first and by_model(items[first - 1]):
        first -= 1
    start = last if after == "last" else min(first + 1, last)
    return Figure(usage.total, estimate(items[start:]))
