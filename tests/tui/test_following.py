from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.items import Message
from thresher.tui.bridge import Bridge
from thresher.tui.opening import LAG, Opened, open_file
from thresher.tui.spans import text_of
from thresher.tui.widgets.header import header_line

from ..core.sources.growing import SOURCES, codex


class Following:
    """What goes on behind a session that is open."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.bridge = Bridge(opened.model)

    async def __aenter__(self) -> Following:
        self._tasks = [asyncio.ensure_future(work()) for work in self.opened.background]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self.opened.close()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                self.bridge.drain()
                await asyncio.sleep(0.01)

    async def until_said(self, text: str) -> None:
        async with asyncio.timeout(20):
            while text not in self.said():
                self.bridge.drain()
                await asyncio.sleep(0.01)

    def said(self) -> list[str]:
        records = self.opened.model.history.records
        items = [each.event.item for each in records if isinstance(each.event, e.ItemAppended)]
        return [item.text for item in items if isinstance(item, Message)]


@pytest.mark.parametrize("name", sorted(set(SOURCES) - {"otlp"}))
async def test_every_kind_of_session_goes_on_in_the_console(name: str, tmp_path: Path) -> None:
    growing: Any = SOURCES[name](tmp_path)
    async with Following(await open_file(growing.path, count=False)) as following:
        growing.say("grüße 🙂 日本語")
        await following.until_said("grüße 🙂 日本語")
        growing.say("and more")
        await following.until_said("and more")
        assert following.said()[-2:] == ["grüße 🙂 日本語", "and more"]
    if hasattr(growing, "close"):
        growing.close()


@pytest.mark.parametrize("name", ["chat", "claude", "codex", "pi"])
async def test_a_session_whose_file_is_gone_is_told_as_not_followed_until_it_is_back(
    name: str, tmp_path: Path
) -> None:
    growing: Any = SOURCES[name](tmp_path)
    growing.say("before")
    async with Following(await open_file(growing.path, count=False)) as following:
        state = following.opened.model.history.state
        away = growing.path.with_name("away")
        growing.path.rename(away)
        await following.until(lambda: state.out_of_touch)
        assert "! not followed" in text_of(header_line(state, 120))
        away.rename(growing.path)
        await following.until(lambda: not state.out_of_touch)
        growing.say("after")
        await following.until_said("after")
        assert "! not followed" not in text_of(header_line(state, 120))


async def test_while_the_screen_lags_the_reader_waits_and_nothing_is_lost(tmp_path: Path) -> None:
    growing = codex(tmp_path)
    async with Following(await open_file(growing.path, count=False)) as following:
        feed = following.opened.model.feed
        assert feed is not None
        with growing.path.open("ab") as file:
            file.writelines(growing.line(f"thing {number}") for number in range(4 * LAG))
        async with asyncio.timeout(20):
            waiting = 0
            while waiting <= LAG:
                await asyncio.sleep(0.01)
                waiting = len(feed.subscription)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(feed.subscription) < 2 * LAG
        assert feed.subscription.behind is None
        await following.until_said(f"thing {4 * LAG - 1}")
        assert following.said()[-4 * LAG :] == [f"thing {number}" for number in range(4 * LAG)]
