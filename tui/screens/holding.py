"""The console's side of the debugger: pins, breakpoints, steps, undo, and the way to the stop."""

from __future__ import annotations

from textual import events, on
from textual.getters import query_one
from textual.message import Message

from thresher.core.context import EntryId
from thresher.core.events import DebuggerStopped
from thresher.core.state import SessionState
from thresher.core.views import Row, RowKind

from ..model import DebugActor, Holder, OutsideHolder
from ..spans import Line
from ..spans import width as text_width
from ..theme import key_words
from ..widgets.lines import Lines
from ..widgets.prompt import Prompt
from ..widgets.timeline_rows import run_of
from .attempts import attempt
from .travel import TravelScreen

CANNOT = "Only a session that thresher runs itself can be changed."
CANNOT_HOLD = "The program of this session waits for nobody before it compacts."


class StopBar(Lines):
    """Visible only while the agent stands still."""

    DEFAULT_CSS = """
    StopBar { padding: 0 1; background: $raised; display: none; pointer: pointer; }
    """

    class Wanted(Message):
        """A click: the stop is to be looked at, or with `go_on` to be left."""

        def __init__(self, go_on: bool) -> None:
            super().__init__()
            self.go_on = go_on

    def __init__(self) -> None:
        super().__init__()
        self._told: tuple[str, str] = ("", "")
        self._left: int | None = None

    def show_stop(self, state: SessionState) -> None:
        """Show where it stands, or nothing."""
        stopped = state.stopped
        self.display = stopped is not None
        if stopped is not None:
            self._told = (stopped.reason, stopped.breakpoint)
            self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        from ..widgets.stop_head_lines import bar_line

        keys = self._keys
        reason, point = self._told
        if self._left is not None:
            reason = f"goes on in {self._left} s: {reason}"
        return [bar_line(reason, point, keys, width)]

    @property
    def _keys(self) -> tuple[str, str]:
        return key_words(self.app, "console.stop"), key_words(self.app, "console.go_on")

    def tip_at(self, x: int, y: int) -> str:
        """What a click does."""
        return "Go on to the next breakpoint" if self._on_going(x) else "Look at the stop"

    def _on_going(self, x: int) -> bool:
        from ..widgets.stop_head_lines import going_words

        return x >= self.content_size.width - text_width(going_words(self._keys[1]))

    def on_click(self, event: events.Click) -> None:
        """The words at the right end go on, everything else looks."""
        at = event.get_content_offset(self)
        if at is not None:
            self.post_message(self.Wanted(self._on_going(at.x)))

    def count_down(self, left: int | None) -> None:
        """Show how many seconds a program still waits; None where it waits as long as it must."""
        if left != self._left:
            self._left = left
            self.show()


class HoldingScreen(TravelScreen):
    """Adds what the debugger can do to a screen over a session."""

    prompt = query_one(Prompt)
    stop_bar = query_one(StopBar)

    _seen_stop: DebuggerStopped | None = None
    """The stop that the user has been shown, or has been told of over a half-written message."""

    _seen_outside: OutsideHolder | None = None

    @property
    def debug_actor(self) -> DebugActor | None:
        """Who can hold the agent, or None for a session that can only be watched."""
        actor = self.model.actor
        return actor if isinstance(actor, DebugActor) else None

    def look_for_stop(self) -> None:
        """Show a stop that has just been reached. A half-written message is left alone: then the
        line above it says that the agent waits."""
        if self.model.outside is not self._seen_outside:
            self._seen_outside = self.model.outside
            self.keep_breakpoints()
        stopped = self.model.history.state.stopped
        outside = self.model.outside
        if outside is not None and stopped is not None:
            self.stop_bar.count_down(max(0, outside.seconds_left))
        if stopped is None or stopped is self._seen_stop:
            return
        holder = self.model.holder
        if holder is None or holder.proposal() is None:
            return
        from .stop import StopScreen

        screen = self.app.screen
        if self.is_active:
            self._seen_stop = stopped
            if not self.prompt.value:
                self.action_stop()
        elif isinstance(screen, StopScreen) and not screen.leaving:
            self._seen_stop = stopped

    def _actor(self) -> DebugActor | None:
        actor = self.debug_actor
        if actor is None:
            self.notify(CANNOT, markup=False)
        return actor

    def _holder(self) -> Holder | None:
        holder = self.model.holder
        if holder is None:
            self.notify(CANNOT_HOLD, markup=False)
        return holder

    def keep_breakpoints(self) -> None:
        """Hold a program where it was held before, and say so."""
        outside = self.model.outside
        if outside is None or not (points := outside.breakpoints()):
            return
        if attempt(self, outside.watch):
            told = ", ".join(point.words() for point in points)
            key = key_words(self.app, "console.breakpoints")
            self.notify(
                f"{outside.setting_up} {key} clears it.", title=f"Held {told}", markup=False
            )

    def action_stop(self) -> None:
        """Look at the stop."""
        holder = self._holder()
        if holder is None:
            return
        if holder.proposal() is None:
            key = key_words(self.app, "console.breakpoints")
            self.notify(f"The agent is not stopped; {key} sets a breakpoint.", markup=False)
            return
        from .stop import StopScreen

        self.app.push_screen(StopScreen(self.model, holder), self._left_stop)

    def _left_stop(self, _: object) -> None:
        """The agent may go on waiting: the keys that the line above the input then names must act,
        and not be typed into the input."""
        if self.model.history.state.stopped is not None and not self.prompt.value:
            self.set_focus(self.timeline)

    @on(StopBar.Wanted)
    def _stop_wanted(self, message: StopBar.Wanted) -> None:
        if message.go_on:
            self.action_go_on()
        else:
            self.action_stop()

    def action_breakpoints(self) -> None:
        """Set and clear breakpoints."""
        from .debugging import choose_breakpoints

        if (holder := self._holder()) is not None:
            choose_breakpoints(self, holder, holder.setting_up)

    def action_step_round(self) -> None:
        """Stop after the next round."""
        actor = self._actor()
        if actor is not None and attempt(self, actor.step):
            self.notify("The agent stops after the next round.", markup=False)

    def action_go_on(self) -> None:
        """Go on from a stop."""
        if (holder := self._holder()) is not None:
            attempt(self, holder.go_on)

    def action_undo(self) -> None:
        """Take the newest compaction back, after a look at what that does."""
        from .debugging import confirm_undo

        if (actor := self._actor()) is not None:
            confirm_undo(self, self.model, actor)

    def action_pin(self) -> None:
        """Let the selected entry survive every compaction, or let it go again."""
        actor = self._actor()
        ids = self._ids() if actor is not None else ()
        if actor is None or not ids:
            return
        state = self.model.history.state
        if any(id in state.pins for id in ids):
            attempt(self, actor.unpin, ids)
        else:
            attempt(self, actor.pin, ids)

    def action_restore(self) -> None:
        """Bring the selected entry back, after a look at what that does."""
        from .debugging import confirm_restore

        actor = self._actor()
        ids = self._ids() if actor is not None else ()
        if actor is not None and ids:
            confirm_restore(self, self.model, actor, ids[0])

    def _ids(self) -> tuple[EntryId, ...]:
        """The entries of the selected row."""
        row = self.timeline.row
        ids = ids_of(self.timeline.state, row) if row is not None else ()
        if not ids:
            self.notify("This row is no entry of the context.", markup=False)
        return ids


def ids_of(state: SessionState, row: Row) -> tuple[EntryId, ...]:
    """The entries that a row stands for: a message, or a call with its output."""
    if row.kind is RowKind.TOOL:
        run = run_of(state, row)
        return tuple(id for id in (run.call, run.output) if id is not None)
    return (row.id,) if row.id is not None and row.id in state.known else ()
