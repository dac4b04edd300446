"""A screen over a session in which one can move: back and on in time, along links, and playing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from textual import on
from textual.getters import query_one
from textual.timer import Timer

from thresher.core.state import Changed

from ..bridge import TICK_SECONDS
from ..insights import Insights
from ..model import ConsoleModel
from ..travel import Place, row_of
from ..widgets.banner import RewoundBanner
from ..widgets.detail import Detail
from ..widgets.page import Page
from ..widgets.timeline import Timeline
from ..widgets.track import Track
from .base import FullScreen

EVERYTHING = ~Changed.NOTHING
SPEEDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Records a second."""
USUAL_SPEED = 3
LONGEST_TRAIL = 200


class _Spot(NamedTuple):
    """Where a jump began."""

    position: int | None
    cursor: int
    follow: bool


class TravelScreen(FullScreen[None]):
    """What moves the view; how it is drawn is for whoever derives from it."""

    banner = query_one(RewoundBanner)
    timeline = query_one(Timeline)
    detail = query_one(Detail)

    def __init__(self, model: ConsoleModel) -> None:
        super().__init__()
        self.model = model
        self.insights = Insights(model.history)
        self._fetching = False
        self._trail: list[_Spot] = []
        self._player: Timer | None = None
        self._playing = False
        self._speed = USUAL_SPEED
        self._credit = 0.0

    def show_changed(self, changed: Changed) -> None:
        """Draw what changed in the state in view."""
        raise TypeError(f"{type(self).__name__} has no show_changed")

    def redraw(self) -> None:
        """Show everything anew: another position, figures that have been counted again, or more
        of the session."""
        self.insights.forget()
        self.show_changed(EVERYTHING)

    def say(self, text: str) -> None:
        """A toast with a sentence of ours."""
        self.notify(text, markup=False)

    # -- what is worked out for the detail -------------------------------------------------------

    @on(Detail.Incomplete)
    def _incomplete(self, message: Detail.Incomplete) -> None:
        row, insights = message.row, self.insights
        if insights.short and self.model.indexed() is None:
            insights.fetch(row)
            self.detail.again()
            return

        if self._fetching:
            # A thread cannot be stopped; when it is done, the row that is shown then is asked for.
            return
        self._fetching = True

        async def fetch() -> None:
            try:
                await asyncio.to_thread(insights.fetch, row)
            finally:
                self._fetching = False
            self.detail.again()

        work: Callable[[], Awaitable[None]] = fetch
        self.run_worker(work, name="insight", group="insight", exit_on_error=False)

    # -- time ------------------------------------------------------------------------------------

    def action_previous_compaction(self) -> None:
        """Rewind to the compaction before the position in view."""
        if self.model.previous_compaction():
            self._position_changed()
        else:
            self.say("There is no compaction before this position.")

    def action_next_compaction(self) -> None:
        """Go on to the next compaction, or to live."""
        if self.model.next_compaction():
            self._position_changed()

    def action_previous_round(self) -> None:
        """Rewind to the request before."""
        self._jump(self.model.stops.rounds, -1, "request")

    def action_next_round(self) -> None:
        """Go on to the next request."""
        self._jump(self.model.stops.rounds, 1, "request")

    def action_previous_error(self) -> None:
        """Rewind to the error before."""
        self._jump(self.model.stops.errors, -1, "error")

    def action_next_error(self) -> None:
        """Go on to the next error."""
        self._jump(self.model.stops.errors, 1, "error")

    def _jump(self, stops: Sequence[int], step: int, what: str) -> None:
        if self.model.jump(stops, step):
            self._position_changed()
        else:
            self.say(f"There is no {what} {'after' if step > 0 else 'before'} this position.")

    def action_step(self, records: int) -> None:
        """Move the position in view by records."""
        before = self.model.position
        self.model.step(records)
        if self.model.position != before:
            self._position_changed()

    @on(Timeline.EndWanted)
    @on(RewoundBanner.LiveWanted)
    def action_live(self) -> None:
        """Back to the newest record, following it."""
        if self.model.rewound:
            self.model.rewind(None)
            self._position_changed()
        elif not self.timeline.follow:
            self.timeline.set_follow(True)

    @on(RewoundBanner.Wanted)
    def _position_wanted(self, message: RewoundBanner.Wanted) -> None:
        self.model.rewind(min(message.position, len(self.model.history) - 1))
        self._position_changed()

    def _position_changed(self) -> None:
        self.pause()
        self.timeline.follow = True
        self.redraw()

    # -- playing ---------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Play on from the position in view; from live, from the beginning. Or pause."""
        if self._playing:
            self.pause()
        else:
            if not self.model.rewound:
                self.model.rewind(0)
            self.timeline.follow = True
            self._playing, self._credit = True, 0.0
            if self._player is None:
                self._player = self.set_interval(TICK_SECONDS, self._play_on)
            self._player.resume()
        self.redraw()

    def action_speed(self, step: int) -> None:
        """Twice as fast, or half as fast."""
        self._speed = max(0, min(self._speed + step, len(SPEEDS) - 1))
        if self.model.rewound:
            self.show_place()
        else:
            self.say(f"It will play {self.pace}.")

    def pause(self) -> None:
        """Stop playing, where it plays."""
        self._playing = False
        if self._player is not None:
            self._player.pause()

    @property
    def playing(self) -> bool:
        """Whether the view moves by itself."""
        return self._playing

    @property
    def pace(self) -> str:
        """How fast it plays, in words."""
        return f"{SPEEDS[self._speed]:,} a second"

    def _play_on(self) -> None:
        if not self._playing or not self.is_current:
            return
        self._credit += SPEEDS[self._speed] * TICK_SECONDS
        records = int(self._credit)
        if not records:
            return
        self._credit -= records
        changed = self.model.advance(records)
        if not self.model.rewound:
            self.pause()
        self.show_changed(changed | Changed.META)

    def show_place(self) -> None:
        """Draw where in the session the view is."""
        model, stops = self.model, self.model.stops
        lines = [mark.line for mark in model.bookmarks]
        track = Track(
            len(model.history),
            stops.compactions,
            stops.errors,
            [model.history.position_of(line) for line in lines],
        ) if model.rewound else Track()  # fmt: skip
        told = f"{'▸' if self._playing else '‖'} {SPEEDS[self._speed]}/s"
        self.banner.show_position(model.state, model.position, len(model.history), track, told)

    # -- along links -----------------------------------------------------------------------------

    @on(Page.Followed)
    def _followed(self, message: Page.Followed) -> None:
        self.go(message.place)

    def go(self, place: Place, *, remember: bool = True) -> None:
        """Select what is at a place. A rewound view goes on to it when it lies later."""
        model, timeline = self.model, self.timeline
        self.pause()
        if remember:
            self.remember()
        # Before the redraw: a view that follows would go to its end first.
        timeline.set_follow(False)
        if model.rewound and place.line > model.state.position:
            model.rewind(model.history.position_of(place.line))
            self.redraw()
        at = row_of(model.state, place)
        if at is not None:
            timeline.select(at, follow=False, centre=True)

    def remember(self) -> None:
        """Backspace leads back to here."""
        timeline = self.timeline
        self._trail.append(_Spot(self.model.position, timeline.cursor, timeline.follow))
        del self._trail[:-LONGEST_TRAIL]

    def action_go_back(self) -> None:
        """Back to where the last jump began."""
        if not self._trail:
            self.say("No jump led here.")
            return
        spot = self._trail.pop()
        self.pause()
        if spot.position != self.model.position:
            self.model.rewind(spot.position)
            self.timeline.follow = spot.follow
            self.redraw()
        self.timeline.select(spot.cursor, follow=spot.follow)
