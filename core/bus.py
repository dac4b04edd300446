"""The event bus: every record goes to every subscriber; nobody who is slow holds up the agent.

A subscriber's queue is bounded. Deltas of streams are merged with the delta before them; all other
records are delivered in order. When the bound is reached, delivery to that subscriber stops at a
known record: it is told from which position on, and how many, and reads them again from the record
(the journal, or the list of records in memory), after which it is live again. No compaction event
can get lost this way. A position counts the lasting records of a session from 0, so it is also the
index into `History.records`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque

import msgspec

from . import events as e

DEFAULT_BOUND = 20_000

MERGE_UP_TO = 65_536
"""Characters of a delta that still takes more: a longer text would be copied for every piece."""


class Behind(msgspec.Struct, frozen=True):
    """How far a subscriber fell behind: read `count` records again from position `first` on."""

    first: int
    count: int


class Subscription:
    """One subscriber's queue. `take` may be called from any thread, `wait` from an event loop, by
    one task at a time.

    A subscriber that is behind takes what is queued first, since all of that comes before
    `behind.first`; then it reads on from the record.
    """

    def __init__(self, bound: int = DEFAULT_BOUND) -> None:
        if bound < 1:
            raise ValueError("a subscription holds at least one record")
        self.bound = bound
        self._queue: deque[e.Record] = deque()
        self._lock = threading.Lock()
        self._first_missed: int | None = None
        self._missed = 0
        self._waiter: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._crowd: tuple[asyncio.AbstractEventLoop, asyncio.Event, int] | None = None

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def behind(self) -> Behind | None:
        """Set when records were not delivered; `caught_up` clears it."""
        with self._lock:
            if self._first_missed is None:
                return None
            return Behind(self._first_missed, self._missed)

    def take(self, most: int | None = None) -> list[e.Record]:
        """Remove and return queued records, oldest first, at most `most` of them."""
        with self._lock:
            if most is None or most >= len(self._queue):
                taken = list(self._queue)
                self._queue.clear()
            else:
                taken = [self._queue.popleft() for _ in range(most)]
            crowd = self._crowd
            if crowd is not None and len(self._queue) <= crowd[2]:
                self._crowd = None
            else:
                crowd = None
        if crowd is not None:
            # Whoever waited for room may be gone with its loop.
            with contextlib.suppress(RuntimeError):
                crowd[0].call_soon_threadsafe(crowd[1].set)
        return taken

    def caught_up(self, through: int) -> bool:
        """The subscriber has read the record up to and including position `through`.

        Returns True when delivery is live again; False when more was published meanwhile (read
        on from the new `behind.first`).
        """
        with self._lock:
            if self._first_missed is None:
                return True
            last_missed = self._first_missed + self._missed - 1
            if through < last_missed:
                self._missed = last_missed - through
                self._first_missed = through + 1
                return False
            self._first_missed, self._missed = None, 0
            return True

    async def wait(self) -> None:
        """Return once there is something to take or to catch up with."""
        ready = asyncio.Event()
        with self._lock:
            if self._queue or self._first_missed is not None:
                return
            mine = self._waiter = (asyncio.get_running_loop(), ready)
        try:
            await ready.wait()
        finally:
            with self._lock:
                if self._waiter is mine:
                    self._waiter = None

    async def room(self, most: int) -> None:
        """Return once no more than so many records are queued: for one publisher that can wait."""
        ready = asyncio.Event()
        with self._lock:
            if len(self._queue) <= most:
                return
            mine = self._crowd = (asyncio.get_running_loop(), ready, most)
        try:
            await ready.wait()
        finally:
            with self._lock:
                if self._crowd is mine:
                    self._crowd = None

    def offer(self, record: e.Record, position: int) -> None:
        """Queue a record, merge it into the last one, or count it as missed."""
        with self._lock:
            if self._first_missed is not None:
                if not record.ephemeral:
                    self._missed += 1
            elif not self._merge(record):
                if len(self._queue) >= self.bound:
                    self._make_room(record, position)
                else:
                    self._queue.append(record)
            waiter, self._waiter = self._waiter, None
        if waiter is not None:
            loop, ready = waiter
            # A subscriber whose loop is closed is gone; that is no fault of who publishes.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

    def _merge(self, record: e.Record) -> bool:
        if not record.ephemeral or not self._queue:
            return False
        merged = coalesce(self._queue[-1].event, record.event)
        if merged is None:
            return False
        self._queue[-1] = e.Record(-1, record.at, merged)
        return True

    def _make_room(self, record: e.Record, position: int) -> None:
        if record.ephemeral:
            return
        kept = [queued for queued in self._queue if not queued.ephemeral]
        if len(kept) < len(self._queue):
            self._queue = deque(kept)
        if len(self._queue) < self.bound:
            self._queue.append(record)
        else:
            self._first_missed, self._missed = position, 1


def coalesce(last: e.Event, new: e.Event) -> e.Event | None:
    """The two as one event, or None when they do not belong together or would get too long."""
    match last, new:
        case ((e.MessageDelta() | e.ToolOutput()), _) if len(last.text) >= MERGE_UP_TO:
            return None
        case e.MessageDelta(), e.MessageDelta() if (last.channel, last.pass_id) == (
            new.channel,
            new.pass_id,
        ):
            return msgspec.structs.replace(last, text=last.text + new.text)
        case e.ToolOutput(), e.ToolOutput() if last.call_id == new.call_id:
            return msgspec.structs.replace(last, text=last.text + new.text)
        case _:
            return None


class EventBus:
    """Fan-out to any number of subscribers. `published` counts the lasting records so far; a bus
    for a session that is taken up again starts with the number already on record."""

    def __init__(self, published: int = 0) -> None:
        self.published = published
        self._subscribers: tuple[Subscription, ...] = ()

    def subscribe(self, bound: int = DEFAULT_BOUND) -> Subscription:
        """A new subscriber, from the next record on."""
        subscription = Subscription(bound)
        self._subscribers = (*self._subscribers, subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscriber; unknown ones are no error."""
        self._subscribers = tuple(s for s in self._subscribers if s is not subscription)

    def publish(self, record: e.Record) -> None:
        """Give a record to all subscribers. Never blocks."""
        position = self.published
        if not record.ephemeral:
            self.published += 1
        for subscription in self._subscribers:
            subscription.offer(record, position)
