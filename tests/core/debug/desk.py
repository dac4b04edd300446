"""Somebody at the debugger of an engine: offers run in the background, stops are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.core.compaction.rig import SHAPE, WORK, Rig, Scripted
from thresher.core import events as e
from thresher.core.compaction.policy import Moment
from thresher.core.compaction.settings import Verdict
from thresher.core.context import EntryId
from thresher.core.debug.debugger import Debugger
from thresher.core.debug.stop import Stop
from thresher.core.history import History
from thresher.core.items import user
from thresher.core.state import SessionState

ITEMS = (*WORK, user("and the tests"))


class Desk:
    """A rig with a debugger on it, and its breakpoints set."""

    def __init__(self, *breaks: str, items: Any = ITEMS, **more: Any) -> None:
        self.writer = Scripted("short", "shorter")
        more.setdefault("summarisers", [self.writer])
        self.rig = Rig(items, **more)
        self.debugger = Debugger(self.rig.to)
        self.debugger.attended = True
        self.rig.engine.set_gate(self.debugger)
        for text in breaks:
            self.debugger.set_break(text)
        self.running: asyncio.Task[Verdict] | None = None

    def offer(self, moment: Moment = Moment.MANUAL, **more: Any) -> None:
        self.running = asyncio.ensure_future(
            self.rig.engine.offer(moment, shape=SHAPE, model="m", **more)
        )

    async def stop(self) -> Stop:
        """The next stop."""
        await until(lambda: self.debugger.stop is not None or self.over)
        assert self.debugger.stop is not None, "it did not stop"
        return self.debugger.stop

    async def next(self) -> Stop:
        """The stop after this one."""
        now = self.debugger.stop
        await until(lambda: self.debugger.stop is not now or self.over)
        return await self.stop()

    @property
    def over(self) -> bool:
        return self.running is not None and self.running.done()

    async def end(self) -> Verdict:
        assert self.running is not None
        await until(lambda: self.over or self.debugger.stop is not None)
        assert self.debugger.stop is None, "it stands still"
        return await self.running

    @property
    def state(self) -> SessionState:
        return self.rig.to.state

    @property
    def texts(self) -> list[str]:
        return [entry.item.text for entry in self.state.context]

    def id(self, place: int) -> EntryId:
        return self.state.context.ids[place]

    def replays(self) -> bool:
        """A replay of the record as the journal has it gives the same session."""
        again = History()
        again.extend(e.decode(e.encode(record)) for record in self.rig.to.history.records)
        one, other = again.state, self.state.settled()
        assert one.problems == other.problems == []
        return (
            one.context == other.context
            and one.cards == other.cards
            and one.held == other.held
            and one.memory == other.memory
            and one.fates == other.fates
        )


async def until(told: Callable[[], bool], *, tries: int = 20_000) -> None:
    for _ in range(tries):
        if told():
            return
        await asyncio.sleep(0)
    raise AssertionError("this never came about")
