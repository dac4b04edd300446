"""Follow a file of lines without a thread: what is appended, and what becomes of the file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Final

from ..events import ErrorRaised, Note, Record
from .follow import Appended, FileEvent, follow_file
from .lines import Line, LineReader, is_packed

BATCH: Final = 512
"""Records handed over at a time."""


async def follow_lines(
    path: Path,
    feed: Callable[[Line], Iterable[Record]],
    flush: Callable[[], Iterable[Record]],
    *,
    whole: Callable[[], Iterable[Record]],
    stop: asyncio.Event | None = None,
    rest: Callable[[int], Iterable[Record]] = lambda line: (),
) -> AsyncIterator[list[Record]]:
    """The records of a file in batches, then those of what is appended, until `stop`.

    `feed` takes a line, and `flush` gives what it holds back for a later one. `whole` gives all
    records of a packed file, which does not grow. What becomes of the file itself (shorter,
    replaced, gone, back) is a record too; `rest` is what else there is to say then, or in a pause,
    with the number of the next line. Ends by itself when the file can no longer be the one that was
    being read.
    """
    if is_packed(path):
        records = iter(whole())
        while batch := list(islice(records, BATCH)):
            yield batch
            await asyncio.sleep(0)
        return
    reader = LineReader()
    async with aclosing(follow_file(path, stop)) as changes:
        async for change in changes:
            batch = []
            match change:
                case Appended(data=data):
                    for line in reader.feed(data):
                        batch.extend(feed(line))
                        if len(batch) >= BATCH:
                            yield batch
                            batch = []
                            await asyncio.sleep(0)
                case FileEvent(text=text, at=at, lost=lost):
                    if change.quiet:
                        for line in reader.whole():
                            batch.extend(feed(line))
                        batch.extend(flush())
                    else:
                        batch.extend(flush())
                        event = ErrorRaised(kind="file", message=text) if lost else None
                        batch.append(
                            Record(reader.number, at, event or Note(kind="file", text=text))
                        )
                    batch.extend(rest(reader.number))
            if batch:
                yield batch
