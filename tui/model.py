"""What the console looks at: a history, the position in view, and who can act on the session.

The live state goes on being folded whatever the reader looks at; rewinding exchanges only the
state that is in view. Widgets read `state` and never write anything here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from thresher.core.bus import Subscription
from thresher.core.compaction.policy import Mark
from thresher.core.events import Record
from thresher.core.history import History
from thresher.core.state import SessionState
from thresher.core.views import CardStatus


class Actor(Protocol):
    """The way back to the agent: what a user may do to a live session of our own.

    Calls return at once; what comes of them is seen as events. `answer` takes "once", "session"
    or "never".
    """

    def send(self, text: str) -> None:
        """Begin a turn with this text."""
        ...

    def interrupt(self) -> None:
        """Stop the running turn or compaction; the history stays valid."""
        ...

    def compact(self, focus: str) -> None:
        """Compact now; `focus` may be empty."""
        ...

    def answer(self, decision: str) -> None:
        """The user's word on the tool call that waits for approval."""
        ...

    def close_breaker(self) -> None:
        """Let automatic compaction run again."""
        ...


class Feed(NamedTuple):
    """Where live records come from.

    `records_from(position)` gives the lasting records from that position on, for a reader that
    fell behind; both must be made in the same step of the event loop as the history, so that the
    subscription begins where the history ends.
    """

    subscription: Subscription
    records_from: Callable[[int], Sequence[Record]]


MarksOf = Callable[[SessionState], tuple[Mark, ...]]


def no_marks(state: SessionState) -> tuple[Mark, ...]:
    """For sessions whose policy is not known here: no threshold is drawn."""
    return ()


class ConsoleModel:
    """A session as the console shows it.

    `actor` is None for a session that can only be watched; `read_only` says why, for the input
    line. `position` counts records as `History` does; None means live.
    """

    def __init__(
        self,
        history: History,
        *,
        actor: Actor | None = None,
        feed: Feed | None = None,
        read_only: str = "this session can be watched, not continued",
        marks_of: MarksOf = no_marks,
    ) -> None:
        self.history = history
        self.actor = actor
        self.feed = feed
        self.read_only = read_only
        self.marks_of = marks_of
        self.behind = 0
        self.follow = True
        self._position: int | None = None
        self._view: SessionState | None = None

    @property
    def state(self) -> SessionState:
        """The state in view: the live one, or the one at the rewound position."""
        return self.history.state if self._view is None else self._view

    @property
    def position(self) -> int | None:
        """The rewound position, or None when the view is live."""
        return self._position

    @property
    def rewound(self) -> bool:
        """True while an earlier position is in view."""
        return self._position is not None

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Where the policy in force fires, for the state in view."""
        return self.marks_of(self.state)

    def rewind(self, position: int | None) -> None:
        """Look at an earlier position; None, or the last position there is, is live."""
        if position is None or position >= len(self.history):
            self._position = self._view = None
            return
        self._position = max(0, position)
        self._view = self.history.at(self._position)

    def step(self, records: int) -> None:
        """Move the position in view by a number of records."""
        self.rewind((len(self.history) if self._position is None else self._position) + records)

    def compaction_stops(self) -> list[int]:
        """The positions just after each compaction pass ended, ascending."""
        running = (CardStatus.RUNNING, CardStatus.PROPOSED)
        cards = [card for card in self.history.state.cards if card.status not in running]
        return [self.history.position_of(card.n) for card in cards]

    def previous_compaction(self) -> bool:
        """Rewind to the last compaction before the position in view; False when there is none."""
        here = len(self.history) if self._position is None else self._position
        stop = next((at for at in reversed(self.compaction_stops()) if at < here), None)
        if stop is None:
            return False
        self.rewind(stop)
        return True

    def next_compaction(self) -> bool:
        """Go on to the next compaction after the position in view, or to live; False when live."""
        if self._position is None:
            return False
        here = self._position
        self.rewind(next((at for at in self.compaction_stops() if at > here), None))
        return True
