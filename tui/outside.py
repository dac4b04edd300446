"""The way to a program that is held by its hook: what the console's user decides, and what is seen.

Requests are looked for ten times a second while a breakpoint is set. What goes wrong on the way is
told, and lets the program go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from thresher.core.context import EntryId
from thresher.core.debug.stop import Stop
from thresher.core.errors import ThresherError
from thresher.core.events import Choice, Record
from thresher.core.hold.desk import Desk
from thresher.core.hold.foreseen import (
    foreseen,
    policy_of,
    situation_of,
    stop_of,
    with_wishes,
)
from thresher.core.hold.past import Among
from thresher.core.hold.programs import Program
from thresher.core.state import SessionState

if TYPE_CHECKING:
    from thresher.core.debug.breakpoints import Breakpoint
    from thresher.core.hold.desk import Held

LOOK_SECONDS = 0.1


class OutsideActor:
    """What a console may do to a program that runs elsewhere. All calls return at once."""

    def __init__(
        self,
        desk: Desk,
        state: Callable[[], SessionState],
        *,
        report: Callable[[Exception], None] = lambda error: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.desk, self.report, self.clock = desk, report, clock
        self._state = state
        self._stop: Stop | None = None
        self._held: Held | None = None
        self._seen: object = None
        self._focus = ""
        self._asked: tuple[EntryId, ...] = ()
        self._foreseeing: asyncio.Task[None] | None = None

    @property
    def setting_up(self) -> str:
        """What must be true for a breakpoint to be reached."""
        program = self.desk.program
        return (
            f"{program.title} waits with the settings that `thresher hold {program.agent}` prints."
        )

    @property
    def ended(self) -> str:
        """How the last hold ended, in words."""
        return self.desk.ended

    @property
    def seconds_left(self) -> int:
        """Until the program goes on by itself."""
        return int(self._held.first.until - self.clock()) if self._held is not None else 0

    # -- breakpoints ---------------------------------------------------------------------------

    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Where the program is held."""
        return self.desk.breakpoints

    def set_break(self, text: str) -> None:
        """Hold it there from now on."""
        self.desk.set_break(text)

    def clear_break(self, text: str) -> None:
        """Hold it there no more."""
        self.desk.clear_break(text)

    def watch(self) -> None:
        """Be found by hooks, for the breakpoints that were kept from before."""
        if self.desk.breakpoints:
            self.desk.watch()

    # -- decisions -----------------------------------------------------------------------------

    def proposal(self) -> Stop | None:
        """Where the program waits."""
        return self._stop

    def go_on(self) -> None:
        """Let it compact, with what was wished for."""
        outside = self._stop.outside if self._stop is not None else None
        self.desk.go_on(outside.told if outside is not None else "")
        self._take()

    def decide(self, choice: str) -> None:
        """Go on, or have it not compact this time."""
        match Choice(choice):
            case Choice.APPLY:
                self.go_on()
            case Choice.SKIP:
                self.desk.skip()
                self._take()
            case other:
                raise ValueError(f"{other} has a method of its own")

    def focus(self, text: str) -> None:
        """What its summary must keep above all; it is told when it goes on."""
        self._may_ask()
        self._focus = text.strip()
        self._wish()

    def ask_to_keep(self, ids: Iterable[EntryId]) -> None:
        """Wish that these entries stay word for word, or wish it no more."""
        self._may_ask()
        for id in ids:
            others = tuple(each for each in self._asked if each != id)
            self._asked = others if id in self._asked else (*others, id)
        self._wish()

    def _may_ask(self) -> None:
        if not self.desk.program.focus:
            title = self.desk.program.title
            raise ThresherError("Not asked", f"{title} lets no hook say anything to its summary.")

    def _wish(self) -> None:
        if self._stop is not None:
            self._stop = with_wishes(self._stop, self._state(), self._focus, self._asked)

    # -- looking -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look for hooks until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self.desk.look()
                self._take()
            except Exception as error:
                # Whatever it is, the program must not pay for it.
                self.desk.fail()
                self._forget()
                self.report(error)

    def _take(self) -> None:
        """See what the desk has: a new stop, a longer context at the stop, or none."""
        held, state = self.desk.held, self._state()
        if held is None:
            self._forget()
            return
        if self._held is None or self._held.pass_id != held.pass_id:
            self._stop = stop_of(state, self.desk.program, self.desk.version, held)
        self._held = held
        # A program writes its last lines late: what it is about to compact grows for a moment.
        seen = (held.pass_id, state.position, state.basis)
        if seen != self._seen and (self._foreseeing is None or self._foreseeing.done()):
            self._seen = seen
            self._foreseeing = asyncio.create_task(self._foresee(held, state))

    def _forget(self) -> None:
        self._stop = self._held = self._seen = None
        self._focus, self._asked = "", ()

    async def _foresee(self, held: Held, state: SessionState) -> None:
        situation = situation_of(state, self.desk.program, held)
        ordinal = state.compactions + 1
        name = policy_of(state, self.desk.program)
        try:
            found = await asyncio.to_thread(
                foreseen, situation, name, held, state.position + 1, ordinal
            )
        except Exception as error:
            # There may be no forecast, but there is always a decision.
            found = f"{type(error).__name__}: {error}"
        if self._stop is None or self._held is None or self._held.pass_id != held.pass_id:
            return
        fresh = stop_of(state, self.desk.program, self.desk.version, held)
        if isinstance(found, str):
            fresh = msgspec.structs.replace(fresh, unseen=found)
        else:
            fresh = msgspec.structs.replace(fresh, proposal=found)
        self._stop = with_wishes(fresh, state, self._focus, self._asked)

    def close(self) -> None:
        """The console is closed: the program goes on."""
        if self._foreseeing is not None:
            self._foreseeing.cancel()
        self.desk.close()


def desk_for(
    path: Path,
    program: Program,
    state: SessionState,
    among: Among,
    publish: Callable[[Record], None],
) -> Desk:
    """The desk of a session that is open; what happens at it is published among the records of
    the session, at the line that was read last."""

    def tell(record: Record) -> None:
        among.happened(record)
        publish(Record(among.line, record.at, record.event))

    return Desk(path, program, version=state.version, session=state.session_id, publish=tell)
