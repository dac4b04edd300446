"""Where the rows of a session lie on the timeline, and which of its cards are open."""

from __future__ import annotations

from collections.abc import Iterable

from thresher.core.state import SessionState
from thresher.core.views import Card, RowKind

from ..spans import Line
from .card_lines import FOLDED, STREAM_LINES, folded_lines, open_lines, running
from .heights import Heights
from .timeline_rows import row_height


class CardPlaces:
    """The heights of all rows, for a width: a card is folded, open, or still growing."""

    def __init__(self) -> None:
        self.heights = Heights()
        self._width = 0
        self._made = 0
        self._open: set[int] = set()
        self._growing: dict[int, int] = {}
        """Cards that still grow, by row."""
        self._row_of: dict[int, int] = {}

    def begin_again(self, width: int) -> None:
        """Another session, or another width, in which open cards wrap anew."""
        self._width = width
        self.heights = Heights()
        self._made = 0
        self._growing.clear()
        self._row_of.clear()

    def grow(self, state: SessionState) -> None:
        """There may be more rows now."""
        rows = state.rows
        for index in range(self._made, len(rows)):
            row = rows[index]
            if row.kind is RowKind.COMPACTION:
                self._row_of[row.card] = index
                self.heights.set(index, self._height(state, row.card))
                if running(state.cards[row.card]):
                    self._growing[index] = row.card
            elif row.kind is RowKind.TURN:
                self.heights.set(index, row_height(row, index))
        self._made = len(rows)
        self.heights.grow(len(rows))

    def look_again(self, state: SessionState) -> list[int]:
        """Cards may have changed; gives the rows of those that were growing."""
        changed = list(self._growing.items())
        for index, card in changed:
            self.heights.set(index, self._height(state, card))
            if not running(state.cards[card]):
                del self._growing[index]
        return [index for index, _ in changed]

    def row_of(self, card: int) -> int | None:
        """The row of a card; None when it has none yet."""
        return self._row_of.get(card)

    def is_open(self, card: int) -> bool:
        """Whether a card is unfolded."""
        return card in self._open

    def is_growing(self, index: int) -> bool:
        """Whether the row is that of a card that still grows."""
        return index in self._growing

    def toggle(self, state: SessionState, card: int) -> None:
        """Unfold or fold a card."""
        self._open ^= {card}
        self._measure(state, [card])

    def toggle_all(self, state: SessionState) -> None:
        """Unfold all cards, or fold them when all are open."""
        cards = set(range(len(state.cards)))
        self._open = set() if cards <= self._open else cards
        self._measure(state, cards)

    def lines(self, card: Card, at: int) -> list[Line]:
        """What is shown of a card."""
        return (open_lines if at in self._open else folded_lines)(card, self.inner)

    @property
    def inner(self) -> int:
        """The width beside the bar."""
        return max(20, self._width - 2)

    def _measure(self, state: SessionState, cards: Iterable[int]) -> None:
        for card in cards:
            index = self._row_of.get(card)
            if index is not None:
                self.heights.set(index, self._height(state, card))

    def _height(self, state: SessionState, at: int) -> int:
        card = state.cards[at]
        if at in self._open:
            return len(open_lines(card, self.inner))
        return FOLDED + STREAM_LINES if running(card) else FOLDED
