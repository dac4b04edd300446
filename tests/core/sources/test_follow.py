from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_tail import CodexTail

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
WHOLE = gzip.decompress((FIXTURES / "mid_turn.jsonl.gz").read_bytes())
LINES = WHOLE.splitlines(keepends=True)


class Follower:
    """What a reader of a followed file has seen so far."""

    def __init__(self) -> None:
        self.records: list[e.Record] = []
        self.news = asyncio.Event()

    async def until(self, condition: Callable[[list[e.Record]], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition(self.records):
                self.news.clear()
                await self.news.wait()

    def told(self, words: str) -> bool:
        texts = [
            each.event.message if isinstance(each.event, e.ErrorRaised) else each.event.text
            for each in self.records
            if isinstance(each.event, e.ErrorRaised | e.Note) and each.event.kind == "file"
        ]
        return any(words in text for text in texts)


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[tuple[Follower, asyncio.Task[None]]]:
    seen, stop = Follower(), asyncio.Event()

    async def run() -> None:
        async for batch in CodexSource(path).follow(stop):
            seen.records += batch
            seen.news.set()

    task = asyncio.create_task(run())
    try:
        yield seen, task
    finally:
        stop.set()
        async with asyncio.timeout(20):
            await task


def lasting(records: list[e.Record]) -> list[e.Record]:
    return [each for each in records if getattr(each.event, "kind", "") != "file"]


async def test_what_is_appended_in_torn_pieces_is_read_as_if_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES[0])
    async with following(path) as (seen, _):
        await seen.until(lambda records: bool(records))
        with path.open("ab") as file:
            for start in range(len(LINES[0]), len(WHOLE), 7001):
                file.write(WHOLE[start : start + 7001])
                file.flush()
                await asyncio.sleep(0)
        await seen.until(lambda records: records[-1].n == 48)
    read = list(CodexSource(path).read())
    # The first record left before the model and the title of the session were known.
    assert seen.records[1:] == read[1:] or seen.records[2:] == [*read[1:]]
    assert [r.event for r in seen.records if isinstance(r.event, e.HistoryCompacted)] == [
        r.event for r in read if isinstance(r.event, e.HistoryCompacted)
    ]


async def test_a_character_split_between_two_writes_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = LINES[7].replace(b"Count the", "Zähle 漢😀".encode())
    cut = line.index("漢".encode()) + 1
    path.write_bytes(line[:cut])
    async with following(path) as (seen, _):
        with path.open("ab") as file:
            file.write(line[cut:])
        await seen.until(lambda records: any(isinstance(r.event, e.ItemAppended) for r in records))
    (item,) = [r.event.item for r in seen.records if isinstance(r.event, e.ItemAppended)]
    assert item.text.startswith("Zähle 漢😀")


async def test_a_last_line_without_newline_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES[0] + LINES[7].rstrip())
    async with following(path) as (seen, _):
        await seen.until(lambda records: any(isinstance(r.event, e.ItemAppended) for r in records))


async def test_a_file_that_got_shorter_ends_the_following_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(LINES[:20]))
    async with following(path) as (seen, task):
        await seen.until(lambda records: bool(records) and records[-1].n >= 16)
        path.write_bytes(b"".join(LINES[:3]))
        async with asyncio.timeout(20):
            await task
    assert seen.told("got shorter")
    assert lasting(seen.records)


async def test_a_file_replaced_by_another_ends_the_following_with_a_word(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_bytes(b"".join(LINES[:10]))
    async with following(path) as (seen, task):
        await seen.until(lambda records: bool(records))
        other.write_bytes(b'{"type":"other"}\n' * 10_000)
        other.replace(path)
        async with asyncio.timeout(20):
            await task
    assert seen.told("something else")


async def test_a_file_replaced_by_a_longer_copy_is_followed_on(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_bytes(b"".join(LINES[:40]))
    async with following(path) as (seen, _):
        await seen.until(lambda records: bool(records) and records[-1].n >= 37)
        other.write_bytes(WHOLE)
        other.replace(path)
        await seen.until(lambda records: records[-1].n == 48)
    assert seen.told("replaced by a copy")


async def test_a_deleted_file_is_told_and_its_return_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(LINES[:40]))
    async with following(path) as (seen, _):
        await seen.until(lambda records: bool(records) and records[-1].n >= 37)
        path.unlink()
        await seen.until(lambda _: seen.told("is gone"))
        path.write_bytes(WHOLE)
        await seen.until(lambda records: records[-1].n == 48)
    assert seen.told("is back")


async def test_a_packed_file_is_given_whole_and_ends() -> None:
    path = FIXTURES / "mid_turn.jsonl.gz"
    found = [record async for batch in CodexSource(path).follow() for record in batch]
    assert found == list(CodexSource(path).read())


async def test_a_missing_file_cannot_be_followed(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="cannot be read"):
        async for _ in CodexSource(tmp_path / "none.jsonl").follow():
            pass


def test_asking_for_more_gives_what_was_appended_and_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(LINES[:30]))
    tail = CodexTail(path)
    found = list(tail.more())
    assert not list(tail.more())
    with path.open("ab") as file:
        file.write(b"".join(LINES[30:]))
    found += [*tail.more(), *tail.more()]
    assert found == list(CodexSource(path).read())
