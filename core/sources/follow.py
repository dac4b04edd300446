"""Follow a file that another program appends to: new bytes, and what becomes of the file itself.

Changes are told by the operating system where it can (watchfiles), and looked for in any case a few
times a second, since network file systems tell nothing. The file is opened for each look, never
kept open, so its owner may move or delete it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from .lines import CHUNK, unreadable

LOOK_EVERY: Final = 0.25
"""Seconds between two looks when nothing is told."""
PROBE: Final = 256
"""Bytes at the start and before the end of what was read, which must still be the same."""
_ABSENT_STATS: Final = (FileNotFoundError, NotADirectoryError)


class Appended(msgspec.Struct, frozen=True):
    """New bytes at the end."""

    data: bytes


class FileEvent(msgspec.Struct, frozen=True):
    """Something about the file: `text` says it. `lost` means that content is gone; `quiet` that
    nothing happened for a while, so that nothing more is to be waited for."""

    text: str
    at: float
    lost: bool = False
    quiet: bool = False


async def follow_file(
    path: Path, stop: asyncio.Event | None = None, *, every: float = LOOK_EVERY
) -> AsyncGenerator[Appended | FileEvent, None]:
    """Give the bytes of a file from its start, and go on with what is appended, until `stop`.

    Ends by itself when the file no longer holds what was read. A file that cannot be read at the
    start is a ThresherError.
    """
    stop = stop or asyncio.Event()
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise unreadable(path, error) from error
    tail = Tail(path)
    told_quiet = False
    async for _ in _looks(path, stop, every):
        async for change in _changes(tail):
            told_quiet = False
            yield change
        if tail.ended:
            return
        if not told_quiet:
            told_quiet = True
            yield FileEvent("", time.time(), quiet=True)


class Tail:
    """How far the file was read, and the marks that tell whether it is still the same one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.head = b""
        self.last = b""
        self.inode: tuple[int, int] | None = None
        self.absent = False
        self.ended = False
        self.blocked = ""

    def look(self) -> Appended | FileEvent | None:
        """One step: the next bytes, or what became of the file; None when nothing is new."""
        try:
            with self.path.open("rb") as file:
                stat = os.fstat(file.fileno())
                inode = (stat.st_dev, stat.st_ino)
                if (event := self._judge(file, stat.st_size, inode)) is not None:
                    return event
                file.seek(self.offset)
                return self._take(file.read(CHUNK))
        except _ABSENT_STATS:
            return self._gone()
        except OSError as error:
            return self._cannot(error)

    def fate(self) -> FileEvent | None:
        """What became of a file whose bytes somebody else reads; None when it goes on. See
        `passed`."""
        try:
            with self.path.open("rb") as file:
                stat = os.fstat(file.fileno())
                return self._judge(file, stat.st_size, (stat.st_dev, stat.st_ino))
        except _ABSENT_STATS:
            return self._gone()
        except OSError as error:
            return self._cannot(error)

    def passed(self, offset: int) -> None:
        """The file was read up to here by somebody else."""
        if offset == self.offset:
            return
        try:
            with self.path.open("rb") as file:
                self.head = file.read(min(PROBE, offset))
                start = max(0, offset - PROBE)
                file.seek(start)
                self.last = file.read(offset - start)
        except OSError:
            # It has gone between two looks: the next one says so.
            return
        self.offset = offset

    def _judge(self, file: object, size: int, inode: tuple[int, int]) -> FileEvent | None:
        was, self.inode = self.inode, inode
        back, self.absent = self.absent, False
        self.blocked = ""
        if size < self.offset:
            return self._end(f"the file got shorter: {size:,} bytes, {self.offset:,} had been read")
        if not self._same(file):
            return self._end("the file now holds something else than what had been read")
        if back:
            return FileEvent(f"{self.path.name} is back, and goes on where it was", time.time())
        if was is not None and was != inode:
            return FileEvent(
                f"{self.path.name} was replaced by a copy, which goes on where it was", time.time()
            )
        return None

    def _same(self, file: object) -> bool:
        if not self.offset or not hasattr(file, "seek") or not hasattr(file, "read"):
            return True
        file.seek(0)
        if file.read(len(self.head)) != self.head:
            return False
        file.seek(self.offset - len(self.last))
        return bool(file.read(len(self.last)) == self.last)

    def _take(self, data: bytes) -> Appended | None:
        if not data:
            return None
        self.head = (self.head + data)[:PROBE] if len(self.head) < PROBE else self.head
        self.last = (self.last + data[-PROBE:])[-PROBE:]
        self.offset += len(data)
        return Appended(data)

    def _gone(self) -> FileEvent | None:
        if self.absent:
            return None
        self.absent = True
        text = f"{self.path.name} is gone; what was read stays, and it is waited for"
        return FileEvent(text, time.time(), lost=True)

    def _cannot(self, error: OSError) -> FileEvent | None:
        why = error.strerror or type(error).__name__
        if why == self.blocked:
            return None
        self.blocked = why
        return FileEvent(f"{self.path.name} cannot be read at the moment: {why}", time.time(), True)

    def _end(self, what: str) -> FileEvent:
        self.ended = True
        text = f"{what}; what was read stays, open the file again to see what it holds now"
        return FileEvent(text, time.time(), lost=True)


async def _changes(tail: Tail) -> AsyncIterator[Appended | FileEvent]:
    while (change := tail.look()) is not None:
        yield change
        if tail.ended:
            return
        await asyncio.sleep(0)


async def _looks(path: Path, stop: asyncio.Event, every: float) -> AsyncIterator[None]:
    """One beat for each reason to look, until `stop`."""
    yield
    try:
        from watchfiles import awatch

        async for _ in awatch(
            path.parent,
            watch_filter=None,
            debounce=50,
            step=20,
            rust_timeout=int(every * 1000),
            yield_on_timeout=True,
            stop_event=stop,
            recursive=False,
        ):
            yield
            if stop.is_set():
                return
    except (OSError, RuntimeError, ImportError):
        # No watcher here (limits, network file systems): the clock alone will do.
        pass
    while not stop.is_set():
        yield
        try:
            await asyncio.wait_for(stop.wait(), every)
        except TimeoutError:
            continue
