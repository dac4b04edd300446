"""Which of the newest messages stay as they are: whole turns, or the end of one, in a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from .messages import Piece, Who
from .model_json import Size


class Tail(msgspec.Struct, frozen=True):
    """Where the tail begins (None: there is none), its estimated tokens, and why in words."""

    start: int | None
    tokens: int
    words: str


def select(
    pieces: Sequence[Piece], size: Callable[[Piece], Size], budget: int, turns: int | None
) -> Tail:
    """Walk the turns from the newest to the oldest, as many as `turns` (None: all).

    A turn is a user message with all that follows it, up to the next one. It is kept while the sum
    of the estimates stays within `budget`. In the first turn that does not fit, the longest end
    that fits into what is left is kept, though never the whole turn. If that reaches back to the
    very beginning, there is no tail: everything is summarised.
    """
    starts = [at for at, piece in enumerate(pieces) if piece.who is Who.USER]
    if turns is not None:
        starts = starts[-turns:] if turns > 0 else []
    if not starts:
        return Tail(None, 0, "no turn may stay")
    keep, total, end = None, 0, len(pieces)
    for start in reversed(starts):
        sizes = [size(piece) for piece in pieces[start:end]]
        cost = sum(sizes, Size()).tokens
        if total + cost > budget:
            found = _end_of_turn(sizes, budget - total)
            if found is not None:
                keep, total = start + found[0], total + found[1]
            break
        keep, total, end = start, total + cost, start
    if keep is None:
        return Tail(None, 0, f"not even the end of the newest turn fits into {budget:,} tokens")
    if keep == 0:
        return Tail(None, 0, f"all of it would fit into the {budget:,} tokens of the tail")
    return Tail(keep, total, f"a tail of {total:,} tokens fits into the {budget:,} it may have")


def _end_of_turn(sizes: Sequence[Size], budget: int) -> tuple[int, int] | None:
    """The first start behind the turn's own from which the rest fits, and what that costs."""
    if budget <= 0:
        return None
    rest, found = Size(), None
    for at in range(len(sizes) - 1, 0, -1):
        rest += sizes[at]
        if rest.tokens > budget:
            break
        found = (at, rest.tokens)
    return found
