from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.items import Message
from thresher.core.sources.base import Tail
from thresher.core.sources.following import REST, Watch, follow_tail, traces
from thresher.core.sources.opening import open_source

from .growing import LINES, SOURCES, Lines, OpenCode

TEXT = "grüße 🙂 日本語"
# A span has an id and no text.
TALKING = [name for name in LINES if name != "otlp"]
every_file = pytest.mark.parametrize("name", [*LINES, "journal"])


@pytest.fixture
def growing(name: str, tmp_path: Path) -> Iterator[Any]:
    folder = tmp_path / "a folder"
    folder.mkdir()
    made = SOURCES[name](folder)
    yield made
    if hasattr(made, "close"):
        # A journal says so when its file was exchanged under it.
        with contextlib.suppress(ThresherError):
            made.close()


@pytest.fixture
def tail(growing: Any) -> Tail:
    tail = open_source(growing.path).tail()
    assert list(tail.more())
    looked(tail)
    return tail


def looked(tail: Tail) -> list[e.Record]:
    """All that there is, with what only a quiet look tells."""
    found: list[e.Record] = []
    for _ in range(3):
        found += tail.more()
    return found


def said(records: list[e.Record]) -> list[str]:
    items = [each.event.item for each in records if isinstance(each.event, e.ItemAppended)]
    return [item.text for item in items if isinstance(item, Message)]


def told(records: list[e.Record]) -> list[str]:
    """What became of the file, in words."""
    return [
        each.event.message if isinstance(each.event, e.ErrorRaised) else each.event.text
        for each in records
        if isinstance(each.event, e.ErrorRaised | e.Note) and each.event.kind == "file"
    ]


def grow(growing: Any) -> None:
    for number in range(3):
        growing.say(f"more {number}")


@pytest.mark.parametrize("name", [*TALKING, "journal", "maf", "opencode"])
def test_a_message_that_is_written_is_there_at_the_next_look(growing: Any, tail: Tail) -> None:
    growing.say(TEXT)
    assert said(looked(tail)) == [TEXT]
    assert looked(tail) == []


@pytest.mark.parametrize("name", TALKING)
def test_a_line_that_comes_in_pieces_is_told_once_and_whole(growing: Lines, tail: Tail) -> None:
    line = growing.line(TEXT)
    middle = line.index("🙂".encode()) + 2
    for piece in (line[:middle], line[middle : middle + 1], line[middle + 1 : -2]):
        with growing.path.open("ab") as file:
            file.write(piece)
        assert said(looked(tail)) == []
    with growing.path.open("ab") as file:
        file.write(line[-2:])
    assert said(looked(tail)) == [TEXT]


@every_file
def test_a_file_that_got_shorter_is_told_and_what_was_read_stays(growing: Any, tail: Tail) -> None:
    growing.path.write_bytes(growing.path.read_bytes()[:40])
    (words,) = told(looked(tail))
    assert "got shorter" in words
    assert "open the file again" in words
    assert looked(tail) == []


@every_file
def test_a_file_with_something_else_in_it_is_told(growing: Any, tail: Tail) -> None:
    size = growing.path.stat().st_size
    growing.path.write_bytes(b'{"x": 1}\n' * (size // 9 + 2))
    (words,) = told(looked(tail))
    assert "something else" in words


@every_file
def test_a_file_that_is_rotated_to_a_copy_goes_on_where_it_was(growing: Any, tail: Tail) -> None:
    copy = growing.path.with_name("copy")
    shutil.copyfile(growing.path, copy)
    copy.replace(growing.path)
    (words,) = told(looked(tail))
    assert "replaced by a copy" in words
    if isinstance(growing, Lines):
        growing.say("after it")
        assert looked(tail)


@pytest.mark.parametrize("name", [*LINES, "journal", "maf"])
def test_a_file_that_goes_away_is_waited_for(growing: Any, tail: Tail) -> None:
    away = growing.path.with_name("away")
    growing.path.rename(away)
    (words,) = told(looked(tail))
    assert "is gone" in words
    assert looked(tail) == []
    away.rename(growing.path)
    (words,) = told(looked(tail))
    assert "is back" in words
    growing.say("after it")
    assert looked(tail)


@pytest.mark.parametrize("name", ["maf"])
def test_a_session_that_lost_messages_is_told(growing: Any, tail: Tail, tmp_path: Path) -> None:
    grow(growing)
    looked(tail)
    shutil.copyfile(SOURCES["maf"](tmp_path).path, growing.path)
    (words,) = told(looked(tail))
    assert "fewer messages" in words


@pytest.mark.parametrize("name", ["opencode"])
def test_a_database_that_cannot_be_read_is_told_until_it_can(growing: Any, tail: Tail) -> None:
    away = growing.path.with_name("away")
    growing.path.rename(away)
    (words,) = told(looked(tail))
    assert "cannot be read" in words
    away.rename(growing.path)
    assert any("again" in words for words in told(looked(tail)))


@pytest.mark.parametrize("name", ["opencode"])
def test_what_shows_a_moment_after_the_files_have_changed_is_not_missed(
    growing: OpenCode, tail: Tail
) -> None:
    grow(growing)
    log = growing.begin_the_log_anew()
    looked(tail)
    before = log.stat()
    growing.say(TEXT)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.stat().st_size == before.st_size
    assert said(looked(tail)) == [TEXT]


@pytest.mark.parametrize("name", ["claude"])
def test_a_subagent_that_appears_joins(growing: Lines, tail: Tail) -> None:
    folder = growing.path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-abc.jsonl").write_bytes(growing.line("in its own session"))
    notes = [each.event for each in looked(tail) if isinstance(each.event, e.Note)]
    assert ["agent-abc.jsonl" in note.text for note in notes] == [True]
    assert folder in traces(growing.path)


@pytest.mark.parametrize("name", [*LINES, "journal", "maf", "opencode"])
def test_a_watch_wakes_for_a_write_and_rests_without_one(growing: Any, tail: Tail) -> None:
    watch = Watch(tail, growing.path)
    watch.mark()
    assert watch.rest == REST
    growing.say("more")
    # An hour, if nothing woke it.
    waiting = threading.Thread(target=watch.wait, args=(3600.0,))
    waiting.start()
    waiting.join(20)
    assert not waiting.is_alive()
    stopped = threading.Thread(target=watch.wait, args=(3600.0,))
    watch.mark()
    stopped.start()
    watch.stop()
    stopped.join(20)
    assert not stopped.is_alive()


async def test_while_nobody_takes_what_was_read_nothing_more_is_read() -> None:
    class Endless:
        asked = 0

        def more(self) -> Iterator[e.Record]:
            while True:
                self.asked += 1
                yield e.Record(self.asked, 0.0, e.Note(kind="x", text="y"))

    tail, stop = Endless(), asyncio.Event()
    batches = follow_tail(tail, stop)
    first = await anext(batches)
    assert tail.asked == len(first)
    second = await anext(batches)
    assert [each.n for each in first + second] == list(range(1, tail.asked + 1))
    await batches.aclose()  # type: ignore[attr-defined]  # it is a generator
