"""Standing still: a session's breakpoints, and the pause points of the agent's loop.

It waits only while somebody is there to decide (`attended`): a program without a screen runs
through every breakpoint. Stops and what ended them are events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from .. import events as e
from ..compaction.gate import Decision, Refuse
from ..compaction.recorder import Recorder
from ..context import EntryId
from ..errors import ThresherError
from ..tokens import Tokens
from . import breakpoints as b
from .stop import Point, Stop

STEP = "step"
"""What stands for a breakpoint where a step ended."""


class Pauses:
    """The breakpoints of one session, and the door at which its agent waits.

    `size` gives the whole request as it would be sent now.
    """

    def __init__(self, recorder: Recorder, *, size: Callable[[], Tokens] | None = None) -> None:
        self.attended = False
        """Somebody can decide. Without it nothing is ever held."""
        self.size = size
        self.stop: Stop | None = None
        """Where the session stands still now."""
        self._recorder = recorder
        self._door: asyncio.Future[tuple[str, Decision]] | None = None
        self._stepping = False
        self._past: set[b.Breakpoint] = set()

    # -- breakpoints ---------------------------------------------------------------------------

    @property
    def breakpoints(self) -> tuple[b.Breakpoint, ...]:
        """Those of the session, in the order they were set."""
        return tuple(b.known(self._recorder.state.breakpoints))

    def set_break(self, text: str) -> b.Breakpoint:
        """Stop there from now on."""
        found = b.parse(text)
        if str(found) not in self._recorder.state.breakpoints:
            self._recorder.emit(e.BreakpointSet(text=str(found)))
        return found

    def clear_break(self, text: str) -> None:
        """Stop there no more."""
        plain = text.strip()
        if plain not in self._recorder.state.breakpoints:
            plain = str(b.parse(text))
        if plain not in self._recorder.state.breakpoints:
            raise ThresherError("Not set", f"there is no breakpoint {plain} in this session.")
        self._recorder.emit(e.BreakpointCleared(text=plain))

    # -- the loop's pause points ---------------------------------------------------------------

    async def after_round(self) -> None:
        """A round is over: its outputs are in the context, and no call is open."""
        if not self.attended:
            return
        state, points = self._recorder.state, self.breakpoints
        new: tuple[b.Breakpoint, ...] = ()
        told = ""
        if self.size is not None and any(
            each.kind in (b.BreakKind.TOKENS, b.BreakKind.PERCENT) for each in points
        ):
            size = self.size()
            window = state.budget.window.value if state.budget else None
            over = b.passed(points, size, window)
            new = tuple(each for each in over if each not in self._past)
            self._past = set(over)
            told = f"the request has {size.value:,} tokens ({size.basis})"
        if self._stepping:
            self._stepping = False
            await self._pause(Point.ROUND, STEP, f"round {state.rounds} is over")
        elif new:
            await self._pause(Point.ROUND, str(new[0]), told)

    async def after_outputs(self, sizes: Iterable[tuple[EntryId, str, int]]) -> None:
        """A batch of tool outputs entered: (entry, tool, tokens)."""
        points = self.breakpoints
        if not self.attended or b.of_kind(points, b.BreakKind.OUTPUT) is None:
            return
        largest = max(sizes, key=lambda each: each[2], default=None)
        if largest is None or (hit := b.larger_than(points, largest[2])) is None:
            return
        id, name, tokens = largest
        told = f"the output {id} of {name} has {tokens:,} tokens"
        await self._pause(Point.OUTPUT, str(hit), told)

    async def on_overflow(self, message: str) -> None:
        """The provider refused the context; a compaction comes next."""
        await self._at(b.BreakKind.OVERFLOW, Point.OVERFLOW, message)

    async def on_failure(self, message: str) -> None:
        """A compaction failed, or a request that is not sent again."""
        await self._at(b.BreakKind.FAILURE, Point.FAILURE, message)

    async def _at(self, kind: b.BreakKind, point: Point, reason: str) -> None:
        if self.attended and (hit := b.of_kind(self.breakpoints, kind)) is not None:
            await self._pause(point, str(hit), reason)

    async def _pause(self, point: Point, breakpoint: str, reason: str) -> None:
        await self._hold(Stop(point, breakpoint=breakpoint, reason=reason))

    # -- holding -------------------------------------------------------------------------------

    async def _hold(self, stop: Stop) -> Decision:
        """Stand still until the user has decided; a cancellation is recorded and goes on."""
        self.stop = stop
        self._recorder.emit(
            e.DebuggerStopped(
                breakpoint=stop.breakpoint,
                point=stop.point.value,
                reason=stop.reason,
                pass_id=stop.pass_id,
            )
        )
        door = self._door = asyncio.get_running_loop().create_future()
        how = "interrupted"
        decision: Decision = Refuse(how)
        try:
            how, decision = await door
        finally:
            self.stop = self._door = None
            self._recorder.emit(e.DebuggerContinued(how=how, pass_id=stop.pass_id))
        return decision

    def _open(self, how: str, decision: Decision) -> None:
        if self._door is not None and not self._door.done():
            self._door.set_result((how, decision))
            # What is decided cannot be decided again, though the agent has yet to wake up.
            self.stop = None
