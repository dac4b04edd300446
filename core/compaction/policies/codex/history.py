"""What Codex's new history is made of, and how a request for a summary gets smaller.

These rules know only order, size and pairs, so they work on items in any form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

USER_BUDGET = 20_000
"""Tokens of user messages that a local compaction keeps."""
NO_OUTPUT = "aborted"
"""The output that a call without one is given in a request."""


class Stay(NamedTuple):
    """A message that stays: its place among the candidates, and the tokens it is cut to (None:
    it stays whole)."""

    place: int
    room: int | None


def newest_within(costs: Sequence[int], budget: int) -> list[Stay]:
    """Which of these messages stay, oldest first, when the newest are taken until the budget of
    tokens is used up. The first that does not fit is cut to what is left, and ends the walk."""
    found: list[Stay] = []
    left = budget
    for place in range(len(costs) - 1, -1, -1):
        if left <= 0:
            break
        found.append(Stay(place, None if costs[place] <= left else left))
        left -= costs[place]
    return found[::-1]


class Half(NamedTuple):
    """Half of a pair: the id that joins it to the other half, and which one it is."""

    call_id: str
    is_output: bool


HalfOf = Callable[[T], Half | None]
"""What half of a pair an item is, or None."""


def normalised(items: Sequence[T], half_of: HalfOf[T], aborted: Callable[[T], T]) -> list[T]:
    """The history as a request carries it: a call without an output gets one (`aborted` makes it),
    an output without a call is left out."""
    halves = [half_of(item) for item in items]
    answered = {half.call_id for half in halves if half and half.is_output}
    asked = {half.call_id for half in halves if half and not half.is_output}
    sent: list[T] = []
    for item, half in zip(items, halves, strict=True):
        if half and half.is_output and half.call_id not in asked:
            continue
        sent.append(item)
        if half and not half.is_output and half.call_id and half.call_id not in answered:
            sent.append(aborted(item))
    return sent


def descent(items: Sequence[T], half_of: HalfOf[T]) -> Iterator[list[T]]:
    """What is left for each retry of a request that does not fit: each takes away the oldest item,
    and with half of a pair the other half, down to nothing."""
    left = list(items)
    while left:
        oldest = half_of(left.pop(0))
        if oldest is not None:
            left = [item for item in left if not _pairs(half_of(item), oldest)]
        yield list(left)


def context_place(
    count: int,
    *,
    is_user: Callable[[int], bool],
    is_summary: Callable[[int], bool],
    is_sealed: Callable[[int], bool],
) -> int:
    """Where the initial context goes in a new history of `count` items: before the last message of
    the user; without one, before the last summary; without one, before the last sealed summary;
    else at the end. The callables tell what the item at a place is."""
    for wanted in (is_user, is_summary, is_sealed):
        for place in range(count - 1, -1, -1):
            if wanted(place):
                return place
    return count


def _pairs(half: Half | None, other: Half) -> bool:
    return half is not None and half.call_id == other.call_id
