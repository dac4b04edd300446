"""Follow a session whose tail blocks: each look at it happens in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from ..events import Record
from .base import Tail

LOOK_EVERY = 0.1
"""Seconds between two looks."""
BATCH = 512
"""Records handed over at a time; the reader waits while they are taken."""


async def follow_tail(tail: Tail, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
    """What the tail gives, in batches, until `stop`."""
    stop = stop or asyncio.Event()
    while not stop.is_set():
        news = tail.more()
        while batch := await asyncio.to_thread(_taken, news):
            yield batch
        try:
            await asyncio.wait_for(stop.wait(), LOOK_EVERY)
        except TimeoutError:
            continue


def _taken(news: Iterator[Record]) -> list[Record]:
    return list(islice(news, BATCH))
