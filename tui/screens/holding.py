"""The console's side of the debugger: pins, breakpoints, steps, undo, and the way to the stop."""

from __future__ import annotations

from textual.getters import query_one

from thresher.core.context import EntryId
from thresher.core.events import DebuggerStopped
from thresher.core.state import SessionState
from thresher.core.views import Row, RowKind

from ..model import DebugActor
from ..spans import Line
from ..theme import key_words
from ..widgets.lines import Lines
from ..widgets.prompt import Prompt
from ..widgets.stop_lines import bar_line
from ..widgets.timeline_rows import run_of
from .debugging import attempt, choose_breakpoints, confirm_restore, confirm_undo
from .stop import StopScreen
from .travel import TravelScreen

CANNOT = "Only a session that thresher runs itself can be held and changed."


class StopBar(Lines):
    """Visible only while the agent stands still."""

    DEFAULT_CSS = """
    StopBar { padding: 0 1; background: $raised; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: tuple[str, str] = ("", "")

    def show_stop(self, state: SessionState) -> None:
        """Show where it stands, or nothing."""
        stopped = state.stopped
        self.display = stopped is not None
        if stopped is not None:
            self._told = (stopped.reason, stopped.breakpoint)
            self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        keys = key_words(self.app, "console.stop"), key_words(self.app, "console.go_on")
        return [bar_line(*self._told, keys, width)]


class HoldingScreen(TravelScreen):
    """Adds what the debugger can do to a screen over a session."""

    prompt = query_one(Prompt)
    stop_bar = query_one(StopBar)

    _seen_stop: DebuggerStopped | None = None
    """The stop that the user has been shown, or has been told of over a half-written message."""

    @property
    def debug_actor(self) -> DebugActor | None:
        """Who can hold the agent, or None for a session that can only be watched."""
        actor = self.model.actor
        return actor if isinstance(actor, DebugActor) else None

    def look_for_stop(self) -> None:
        """Show a stop that has just been reached. A half-written message is left alone: then the
        line above it says that the agent waits."""
        stopped = self.model.history.state.stopped
        if stopped is None or stopped is self._seen_stop:
            return
        actor = self.debug_actor
        if actor is None or actor.proposal() is None:
            return
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

    def action_stop(self) -> None:
        """Look at the stop."""
        actor = self._actor()
        if actor is None:
            return
        if actor.proposal() is None:
            key = key_words(self.app, "console.breakpoints")
            self.notify(f"The agent is not stopped; {key} sets a breakpoint.", markup=False)
            return
        self.app.push_screen(StopScreen(self.model, actor))

    def action_breakpoints(self) -> None:
        """Set and clear breakpoints."""
        if (actor := self._actor()) is not None:
            choose_breakpoints(self, actor)

    def action_step_round(self) -> None:
        """Stop after the next round."""
        actor = self._actor()
        if actor is not None and attempt(self, actor.step):
            self.notify("The agent stops after the next round.", markup=False)

    def action_go_on(self) -> None:
        """Go on from a stop."""
        if (actor := self._actor()) is not None:
            attempt(self, actor.go_on)

    def action_undo(self) -> None:
        """Take the newest compaction back, after a look at what that does."""
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
