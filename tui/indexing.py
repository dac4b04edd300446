"""Reading a large file while its end is on the screen already."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.core.bodies import Bodies, NoBodies
from thresher.core.errors import ThresherError
from thresher.core.history import History

from .allocator import keep_large_blocks_apart

if TYPE_CHECKING:
    from thresher.core.sources.base import Tail

SWITCH_SECONDS = 0.001
"""How long the reading thread may keep the interpreter when the screen wants it."""


BATCH = 128
"""Records folded between two breaths."""
TURNS = 3
"""Turns of the event loop that are waited for: a key goes through several until it is painted."""
PATIENCE_SECONDS = 0.1
"""How long a busy screen is waited for at most."""


class Indexing:
    """The reading of a file from its start, in a thread; `percent` may be asked at any time."""

    def __init__(self, tail: Tail, path: Path) -> None:
        self.history = History()
        self._tail = tail
        self.size = path.stat().st_size if path.is_file() else 0
        keep_large_blocks_apart()
        self._done = False

    @property
    def bodies(self) -> Bodies:
        """What has the whole of the items."""
        return getattr(self._tail, "bodies", None) or NoBodies()

    def percent(self) -> int | None:
        """How much of the file has been read; None when it is all on the screen."""
        if self._done:
            return None
        return min(99, getattr(self._tail, "read", 0) * 100 // max(1, self.size))

    def run(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Read and fold everything. Blocking. With a loop, that one comes first: whatever it has to
        do is waited for every few milliseconds."""
        self.history.read_from(self.bodies)
        records = self._tail.more()
        with undisturbed() as collector:
            while batch := list(islice(records, BATCH)):
                self.history.extend(batch)
                collector.hold()
                if loop is not None:
                    _let(loop)

    def finish(self) -> None:
        """What was read is on the screen."""
        self._done = True


def newest_of(path: Path, indexing: Indexing) -> History | None:
    """The end of a large file, where its format can tell that at once; None otherwise."""
    from thresher.core.sources.cutting import is_large
    from thresher.core.sources.opening import open_source

    if not is_large(path):
        return None
    newest = getattr(open_source(path), "newest", None)
    try:
        records = None if newest is None else newest()
        if records is None:
            return None
        history = History()
        history.read_from(indexing.bodies)
        history.extend(records)
    except (OSError, ThresherError):
        # What is wrong with the file is told by the reading of all of it.
        return None
    return history if len(history) else None


def _let(loop: asyncio.AbstractEventLoop) -> None:
    """Wait until the loop has done what it had to do.

    Two threads that both want the interpreter share it half and half, so a key would take twice as
    long as it does; a thread that waits takes nothing.
    """
    done, left = threading.Event(), TURNS

    def turn() -> None:
        nonlocal left
        left -= 1
        if left:
            loop.call_soon(turn)
        else:
            done.set()

    try:
        loop.call_soon_threadsafe(turn)
    except RuntimeError:
        # The program is about to end.
        return
    done.wait(PATIENCE_SECONDS)


class _Collector:
    """Python's collector, held off; who switches it on meanwhile gets it back at the end."""

    def __init__(self) -> None:
        self._wanted = False

    def hold(self) -> None:
        self._wanted = self._wanted or gc.isenabled()
        gc.disable()

    def let_go(self) -> None:
        if self._wanted:
            # What was made stays: no later look goes through all of it.
            gc.freeze()
            gc.enable()


@contextmanager
def undisturbed() -> Iterator[_Collector]:
    """For a thread that makes very many small objects that stay: the garbage collector does not
    look through all of them again and again, now or later, and other threads get their turn at
    once. (The objects hold each other without cycles, so they go when nobody holds them.)"""
    collector, switch = _Collector(), sys.getswitchinterval()
    collector.hold()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield collector
    finally:
        sys.setswitchinterval(switch)
        collector.let_go()
