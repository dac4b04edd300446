"""Follow a session whose tail blocks: each look at it happens in a thread.

A look reads what is new. Between two looks the files are only asked for their size and time, often
and cheaply: that works on every file system, and costs a fraction of a percent of a processor.
While nobody takes what was read, no further look happens, so the reader waits and nothing is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from ..events import Record
from .base import Tail
from .sample import contained

ASK_EVERY: Final = 0.03
"""Seconds between two questions whether a file has changed."""
SETTLE: Final = 0.1
"""Seconds after news until the next look: what waits for a later line is told by a quiet one."""
SETTLED: Final = 3
"""Quiet looks after which no news is waited for."""
REST: Final = 0.25
"""Seconds between two looks when no file has changed, for what their size and time do not tell."""
BATCH: Final = 512
"""Records handed over at a time; the reader waits while they are taken."""


async def follow_tail(
    tail: Tail, stop: asyncio.Event | None = None, *, path: Path | None = None
) -> AsyncIterator[list[Record]]:
    """What the tail gives, in batches, until `stop`. `path` is its file, if it does not say so."""
    stop = stop or asyncio.Event()
    watch = Watch(tail, path)
    quiet = 0
    try:
        while not stop.is_set():
            watch.mark()
            news = tail.more()
            quiet += 1
            while batch := await asyncio.to_thread(_taken, news):
                quiet = 0
                yield batch
            rest = SETTLE if quiet < SETTLED else watch.rest
            await asyncio.to_thread(watch.wait, rest)
    finally:
        watch.stop()


class Watch:
    """Whether there may be something new in a session, asked cheaply.

    A tail that knows better than the size and time of its file says so with a method `changed`;
    one whose looks are costly says with `rest` how many seconds to leave between two of them.
    """

    def __init__(self, tail: Tail, path: Path | None = None) -> None:
        self._tail = tail
        found = getattr(tail, "path", path)
        self._paths = traces(found) if isinstance(found, Path) else ()
        self._marked: tuple[object, ...] = ()
        self._stopped = threading.Event()
        self.rest: float = getattr(tail, "rest", REST)

    def mark(self) -> None:
        """A look begins: what changes from now on is new."""
        self._marked = self._signature()

    def wait(self, seconds: float) -> None:
        """Wait for a change, or until this time is over. Blocks; `stop` ends it."""
        left = seconds
        while left > 0 and not self._stopped.wait(min(ASK_EVERY, left)):
            left -= ASK_EVERY
            if self._changed():
                return

    def stop(self) -> None:
        """Wait no longer."""
        self._stopped.set()

    def _changed(self) -> bool:
        if self._signature() != self._marked:
            return True
        changed = getattr(self._tail, "changed", None)
        return bool(changed()) if changed is not None else False

    def _signature(self) -> tuple[object, ...]:
        found: list[object] = []
        for path in self._paths:
            with contextlib.suppress(OSError, ValueError):
                stat = path.stat()
                found.append((path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return tuple(found)


def traces(path: Path) -> tuple[Path, ...]:
    """What shows that a session has changed: its file, the log of a database that is written, and
    the folders where the sessions of its subagents appear."""
    file = contained(path)[0]
    own = file.with_suffix("")
    return file, file.with_name(f"{file.name}-wal"), file.parent, own / "subagents"


def _taken(news: Iterator[Record]) -> list[Record]:
    return list(islice(news, BATCH))
