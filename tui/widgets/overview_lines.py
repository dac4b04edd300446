"""The compactions up to a position, one a line, each a link: what one wants to see where a turn or
a session ends."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.tokens import Tokens
from thresher.core.views import Card

from .. import figures
from ..spans import Line, Tone, clip, column, cut, span, spread
from ..travel import Place
from .card_lines import status_sign
from .page import Sheet

MOST = 40
_FIGURE, _PLACE = 9, 7


def overview_lines(sheet: Sheet, cards: Sequence[Card], cells: int) -> None:
    """The newest compactions, oldest first; nothing where there was none.

    Sizes stand in columns and not as a change: before and after may be figures of another scope.
    """
    if not cards:
        return
    names: Line = [
        column("before", _FIGURE, Tone.FAINT, right=True),
        column("after", _FIGURE, Tone.FAINT, right=True),
        span(" " * _PLACE),
    ]
    sheet.add([])
    sheet.add(spread(clip([span("Compactions", Tone.ACCENT)], cells), names, cells))
    if len(cards) > MOST:
        sheet.add([span(f"  … {len(cards) - MOST:,} earlier", Tone.MUTED)])
    for card in cards[-MOST:]:
        sheet.add(_line(card, cells), to=Place(card.n))


def _line(card: Card, cells: int) -> Line:
    sign, tone = status_sign(card)
    left: Line = [
        span(f"{sign} ", tone),
        column(f"{card.ordinal or ''}", 3, Tone.STRONG, right=True),
        span(f" {cut(str(card.trigger).replace('_', ' '), 9)}", Tone.MUTED),
    ]
    sizes: Line = [
        column(_size(card.before), _FIGURE, right=True),
        column(_size(card.after), _FIGURE, right=True),
    ]
    if card.before is None and card.after is None:
        sizes = [column(str(card.status), 2 * _FIGURE, tone, right=True)]
    return spread(left, [*sizes, column(f"#{card.n}", _PLACE, Tone.FAINT, right=True)], cells)


def _size(tokens: Tokens | None) -> str:
    return figures.figure(tokens) if tokens is not None else figures.UNKNOWN
