"""What is worked out for the row in view: lives of entries, why now and why not. Asked once, kept.

A short session is asked at once. In a long one it may take longer than a frame, so whoever shows
it draws what is there, has `fetch` called in a thread, and draws again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.core.compaction.policy import Moment
from thresher.core.context import EntryId
from thresher.core.history import History
from thresher.core.state import SessionState
from thresher.core.views import Card, CardStatus, Row, RowKind

if TYPE_CHECKING:
    from thresher.core.insight.explain import WhyNot, WhyNow
    from thresher.core.insight.lineage import Life, Lineage, Standing
    from thresher.core.insight.moments import Offered

SHORT = 2_000
"""Records of a session for which everything is worked out within a frame or two."""

_RUNNING = (CardStatus.RUNNING, CardStatus.PROPOSED)


class Insights:
    """Answers about one session. They are about all of it, also while an earlier position is in
    view: what became of an entry later is what one wants to know of it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._records = history.records
        self._lineage: Lineage | None = None
        self._made_of: tuple[int, int] = (-1, -1)
        self._now: dict[tuple[int, CardStatus], WhyNow] = {}
        self._not: dict[tuple[int, int], tuple[WhyNot, ...]] = {}
        self._moments: tuple[int, tuple[Offered, ...]] = (-1, ())

    def forget(self) -> None:
        """What was worked out is about another history: more of the session is known now."""
        if self._records is not self.history.records:
            self._records = self.history.records
            self._lineage, self._made_of = None, (-1, -1)
            self._now, self._not, self._moments = {}, {}, (-1, ())

    @property
    def short(self) -> bool:
        """Whether `fetch` may be called on the spot."""
        return len(self.history) <= SHORT

    def version(self, row: Row | None) -> object:
        """Another value whenever the answers about a row are others."""
        if row is None:
            return None
        return (self._made_of, self._now_key(row) in self._now, self._not_key(row) in self._not)

    def missing(self, row: Row | None) -> bool:
        """Whether something about a row has not been worked out, or is out of date."""
        if row is None:
            return False
        if row.kind is RowKind.COMPACTION:
            card = self._card(row)
            return self._old() or (
                card is not None and card.status not in _RUNNING and self._now_key(row)
                not in self._now
            )  # fmt: skip
        if row.kind is RowKind.ROUND:
            return self._not_key(row) not in self._not
        return self._old()

    def fetch(self, row: Row) -> None:
        """Work it out. Takes as long as it takes; may be called in a thread."""
        from thresher.core.insight.explain import why_not, why_now
        from thresher.core.insight.lineage import Lineage
        from thresher.core.insight.moments import moments

        if row.kind is RowKind.ROUND:
            key = self._not_key(row)
            if self._moments[0] != len(self.history):
                self._moments = (len(self.history), moments(self.history))
            asked = [each for each in self._moments[1] if _of_round(each, row.number)]
            self._not[key] = tuple(why_not(self.history, each) for each in asked)
            return
        if self._old():
            made_of, records = self._edits(), self.history.records
            lineage = Lineage(self.history)
            if records is not self.history.records:
                # Made of a history that another one has taken the place of meanwhile.
                return
            self._lineage, self._made_of = lineage, made_of
        card = self._card(row)
        if card is not None and card.status not in _RUNNING:
            self._now[self._now_key(row)] = why_now(self.history, card)

    def life(self, id: EntryId) -> Life | None:
        """The life of an entry; None while it has not been worked out."""
        if self._lineage is None or id not in self.history.state.known:
            return None
        return self._lineage.life(id)

    def stands_for(self, id: EntryId) -> Sequence[Standing]:
        """What an entry speaks for."""
        if self._lineage is None or id not in self.history.state.known:
            return ()
        return self._lineage.stands_for(id)

    def why_now(self, card: Card) -> WhyNow | None:
        """Why a compaction ran."""
        return self._now.get((card.n, card.status))

    def why_not(self, row: Row) -> tuple[WhyNot, ...] | None:
        """What the policy said in a round."""
        return self._not.get(self._not_key(row))

    def _edits(self) -> tuple[int, int]:
        """What a lineage depends on: how many edits there were. New entries at the end need none,
        but are told without the cut they may have had at entry."""
        state: SessionState = self.history.state
        return (len(state.cards), state.edits)

    def _old(self) -> bool:
        return self._lineage is None or self._made_of != self._edits()

    def _card(self, row: Row) -> Card | None:
        cards = self.history.state.cards
        return cards[row.card] if 0 <= row.card < len(cards) else None

    def _now_key(self, row: Row) -> tuple[int, CardStatus]:
        card = self._card(row)
        return (card.n, card.status) if card is not None else (-1, CardStatus.RUNNING)

    def _not_key(self, row: Row) -> tuple[int, int]:
        """A round, and whether it is the newest one: what is asked at its end may still come."""
        newest = row.number >= self.history.state.rounds
        return (row.n, len(self.history) if newest else 0)


def _of_round(offered: object, number: int) -> bool:
    """Whether a moment belongs to a round: it lies before its request, or after it."""
    from thresher.core.insight.moments import Offered

    assert isinstance(offered, Offered)
    before = offered.moment in (Moment.BEFORE_REQUEST, Moment.TURN_START)
    return offered.round == (number - 1 if before else number)
