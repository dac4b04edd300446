"""Putting entries back among others: in their old place where that is legal, else as near as it is.

Both pins (an edit would remove what must stay) and restoring (what left comes back) need this. A
block of entries goes into a gap between two entries; no gap may cut a group in two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence

from ..items import FunctionCall, FunctionCallOutput, Item, Reasoning
from ..validate import Dialect, groups, safe_cuts, validate

_MOST_TRIES = 64


def units(items: Sequence[Item], places: Collection[int]) -> list[tuple[int, ...]]:
    """These positions with what cannot be without them, as blocks in order: a call and its outputs
    go together, and reasoning brings all that it led to."""
    found: list[tuple[int, ...]] = []
    wanted = set(places)
    for group in groups(items):
        inside = wanted.intersection(group.places)
        if not inside:
            continue
        if any(isinstance(items[at], Reasoning) for at in inside):
            found.append(group.places)
            continue
        taken: set[int] = set()
        for at in sorted(inside):
            if at in taken:
                continue
            unit = _pair(items, group.places, at)
            taken.update(unit)
            found.append(unit)
    return sorted(found)


def _pair(items: Sequence[Item], group: Sequence[int], at: int) -> tuple[int, ...]:
    item = items[at]
    if not isinstance(item, FunctionCall | FunctionCallOutput):
        return (at,)
    return tuple(
        place
        for place in group
        if isinstance(other := items[place], FunctionCall | FunctionCallOutput)
        and other.call_id == item.call_id
    )


def old_gap(
    place: int, seats: Mapping[int, int], written: Collection[int], head: int, size: int
) -> int:
    """The gap where something belongs that stood at `place`.

    `seats` says for the positions of old where they are now, among `size` entries; `written` are
    the positions now of entries that a compaction wrote. Behind the instructions (the first `head`
    positions of old) those come first, since they speak for what was earlier.
    """
    earlier = max((old for old in seats if old < place), default=None)
    if earlier is None:
        later = min((old for old in seats if old > place), default=None)
        return size if later is None else seats[later]
    gap = seats[earlier] + 1
    # Parallel calls that came back one by one have changed places among themselves.
    others = {seat for old, seat in seats.items() if old < place}
    while gap in others:
        gap += 1
    if earlier < head:
        while gap in written:
            gap += 1
    return gap


def legal_gap(
    items: Sequence[Item],
    block: Sequence[Item],
    wanted: int,
    dialect: Dialect,
    among: Container[int] | None = None,
) -> int | None:
    """The gap nearest to the wanted one (`among` these, if given) where the block breaks no rule
    that is kept without it; None where there is no such gap."""
    known = faults(items, dialect)
    cuts = [cut for cut in safe_cuts(items) if among is None or cut in among]
    cuts.sort(key=lambda cut: (abs(cut - wanted), -cut))
    for cut in cuts[:_MOST_TRIES]:
        if faults([*items[:cut], *block, *items[cut:]], dialect) <= known:
            return cut
    return None


def faults(items: Sequence[Item], dialect: Dialect) -> Counter[tuple[str, str]]:
    """What is wrong with an order, by kind and call, and how often."""
    return Counter((fault.kind.value, fault.call_id) for fault in validate(items, dialect))


def new_fault(items: Sequence[Item], dialect: Dialect, allowed: Counter[tuple[str, str]]) -> str:
    """The first fault of an order that is not among the allowed ones, in words; empty for none."""
    left = allowed.copy()
    for fault in validate(items, dialect):
        key = (fault.kind.value, fault.call_id)
        if not left[key]:
            return fault.words
        left[key] -= 1
    return ""
