"""Sessions opened as the screen opens them, without a screen.

Tests import it by its place: `from .opened import until`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from thresher.core.agent.assemble import build_agent, new_session, prepare_setup
from thresher.core.config import load
from thresher.core.gateways.base import Gateway
from thresher.tui.bridge import Bridge
from thresher.tui.live import AgentActor, Asking, open_live
from thresher.tui.opening import Opened


def opened_live(tmp_path: Path, gateway: Callable[[Path], Gateway]) -> tuple[Opened, AgentActor]:
    workspace = tmp_path / "project"
    workspace.mkdir()
    asking = Asking()
    settings = load(flags={"model.wire": "offline"})
    setup = prepare_setup(settings, workspace, gateway=gateway(workspace), approver=asking)
    agent = build_agent(setup, new_session(setup, root=tmp_path / "sessions"))
    opened = open_live(agent, asking, count=False)
    assert isinstance(opened.model.actor, AgentActor)
    return opened, opened.model.actor


async def until(opened: Opened, told: Callable[[], bool]) -> None:
    bridge = Bridge(opened.model)
    while not told():
        bridge.drain()
        await asyncio.sleep(0)


async def until_behind(opened: Opened, told: Callable[[], bool]) -> None:
    """The same, while what goes on behind the session runs."""
    tasks = [asyncio.ensure_future(work()) for work in opened.background]
    try:
        await until(opened, told)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
