"""What the console looks at: a history, the position in view, and who can act on the session.

The live state goes on being folded whatever the reader looks at; rewinding exchanges only the
state that is in view. Widgets read `state` and never write anything here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from thresher.core.bus import Subscription
from thresher.core.compaction.policy import Mark
from thresher.core.context import EntryId
from thresher.core.events import Record
from thresher.core.history import History
from thresher.core.sessions.bookmarks import Bookmarks
from thresher.core.state import Changed, SessionState
from thresher.core.views import CardStatus

from .travel import Stops, stop_after, stop_before

if TYPE_CHECKING:
    from thresher.core.debug.breakpoints import Breakpoint
    from thresher.core.debug.restore import Preview
    from thresher.core.debug.stop import Stop


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


class Holder(Protocol):
    """Who can hold an agent or a program, and let it go on.

    What cannot be done is a ThresherError with a sentence for the user; everything else is seen as
    events, and at a stop (`SessionState.stopped`) in `proposal()`, which is made anew after every
    decision.
    """

    @property
    def setting_up(self) -> str:
        """What must be true for a breakpoint to be reached, in a sentence; empty for nothing."""
        ...

    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Where the session stops, in the order they were set."""
        ...

    def set_break(self, text: str) -> None:
        """Stop there from now on; the forms are those of `--break`."""
        ...

    def clear_break(self, text: str) -> None:
        """Stop there no more."""
        ...

    def go_on(self) -> None:
        """Go on to the next breakpoint; a compaction that is held is applied as it stands."""
        ...

    def decide(self, choice: str) -> None:
        """On the compaction that is held: "apply" (send the request for the summary, then apply
        the edit) or "skip"."""
        ...

    def focus(self, text: str) -> None:
        """What the summary must keep above all: it is asked for with this."""
        ...

    def proposal(self) -> Stop | None:
        """Where the agent stands still, with the proposal as it is now; None while it does not."""
        ...


class OutsideHolder(Holder, Protocol):
    """Who can hold a program that runs elsewhere, by its hook."""

    @property
    def ended(self) -> str:
        """How the last hold ended, in words."""
        ...

    @property
    def seconds_left(self) -> int:
        """Until the program that waits goes on by itself."""
        ...

    def watch(self) -> None:
        """Be found by hooks, for the breakpoints that were kept from before."""
        ...

    async def run(self) -> None:
        """Look for the program until cancelled."""
        ...

    def ask_to_keep(self, ids: Iterable[EntryId]) -> None:
        """Wish that its model keeps these entries word for word, or wish it no more."""
        ...


@runtime_checkable
class DebugActor(Actor, Holder, Protocol):
    """An actor that can also hold the agent, and change what it is about to do."""

    def step(self) -> None:
        """Stop after the next round; from a stop, go on until then."""
        ...

    def pin(self, ids: Iterable[EntryId]) -> None:
        """These entries survive every compaction; also without a stop."""
        ...

    def unpin(self, ids: Iterable[EntryId]) -> None:
        """These entries may go again."""
        ...

    def drop(self, ids: Iterable[EntryId]) -> None:
        """These entries go with the edit that is held."""
        ...

    def keep(self, ids: Iterable[EntryId]) -> None:
        """Take drops back."""
        ...

    def write_summary(self, text: str) -> None:
        """This text is the summary: in place of asking, or of the one that is there."""
        ...

    def fresh_summary(self) -> None:
        """Ask for another summary."""
        ...

    def choose_policy(self, name: str) -> None:
        """Another policy makes the proposal of the pass that is held."""
        ...

    def set_policy(self, name: str) -> None:
        """Another policy from the next moment on."""
        ...

    def preview_undo(self) -> Preview:
        """What `undo` would do, with its tokens; nothing is done."""
        ...

    def undo(self) -> None:
        """Take the newest compaction back."""
        ...

    def preview_restore(self, id: EntryId) -> Preview:
        """What `restore` would do, with its tokens; nothing is done."""
        ...

    def restore(self, id: EntryId) -> None:
        """Bring an entry back into the context."""
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


WireOf = Callable[[SessionState], list[dict[str, Any]]]


def rebuilt_wire(state: SessionState) -> list[dict[str, Any]]:
    """The context of a session of ours in the wire form it has."""
    from thresher.core.sessions.requests import wire_context

    return wire_context(state)


Indexed = Callable[[], int | None]


def all_indexed() -> int | None:
    """For sessions that are known as a whole."""
    return None


class ConsoleModel:
    """A session as the console shows it.

    `bookmarks` are the user's; `wire_of` gives what the model is sent at the position of a state,
    in the session's own wire form (it may read a file, so it is called in a thread). `indexed` is
    how much of a large file has been read (per cent), or None when all of it is in the history.
    `actor` is None for a session that can only be watched; `read_only` says why, for the input
    line; `outside` is who can hold the program that goes on with it elsewhere. `position` counts
    records as `History` does; None means live.
    """

    def __init__(
        self,
        history: History,
        *,
        actor: Actor | None = None,
        feed: Feed | None = None,
        read_only: str = "this session can be watched, not continued",
        marks_of: MarksOf = no_marks,
        bookmarks: Bookmarks | None = None,
        wire_of: WireOf = rebuilt_wire,
        indexed: Indexed = all_indexed,
    ) -> None:
        self.history = history
        self.actor = actor
        self.feed = feed
        self.read_only = read_only
        self.marks_of = marks_of
        self.bookmarks = Bookmarks() if bookmarks is None else bookmarks
        self.wire_of = wire_of
        self.indexed = indexed
        self.outside: OutsideHolder | None = None
        self.stops = Stops(history)
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
    def holder(self) -> Holder | None:
        """Who can hold what is shown, be it our own agent or another program."""
        return self.actor if isinstance(self.actor, DebugActor) else self.outside

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

    def become(self, whole: History) -> None:
        """Take over the history of the whole session, of which only the end was known. A rewound
        view stays at the line it is at."""
        line = None if self._view is None else self._view.position
        self.history.become(whole)
        self.stops = Stops(self.history)
        self.rewind(None if line is None else self.history.position_of(line))

    def step(self, records: int) -> None:
        """Move the position in view by a number of records."""
        self.rewind((len(self.history) if self._position is None else self._position) + records)

    @property
    def here(self) -> int:
        """The position in view, also when it is live."""
        return len(self.history) if self._position is None else self._position

    def advance(self, records: int) -> Changed:
        """Let a rewound view go on by some records, as they came; returns what they touched. At
        the last record the view is live."""
        if self._position is None or self._view is None:
            return Changed.NOTHING
        end = min(self._position + records, len(self.history))
        if end >= len(self.history):
            self.rewind(None)
            return ~Changed.NOTHING
        changed = Changed.NOTHING
        for record in self.history.records[self._position : end]:
            changed |= self._view.apply(record)
        self._position = end
        return changed

    def jump(self, stops: Sequence[int], step: int) -> bool:
        """Go to the stop before the position in view (`step` -1) or after it (1); False when
        there is none."""
        stop = stop_after(stops, self.here) if step > 0 else stop_before(stops, self.here)
        if stop is None:
            return False
        self.rewind(stop)
        return True

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
