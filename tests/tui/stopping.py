"""An agent of this process in the app, whose model answers from a list: for tests that stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from textual.pilot import Pilot

from thresher.core.agent.assemble import build_agent, new_session, prepare_setup
from thresher.core.agent.loop import Agent
from thresher.core.config import load
from thresher.core.debug.stop import Point
from thresher.core.gateways.base import ModelReply, ModelRequest, StopReason, StreamPart
from thresher.core.gateways.offline import OfflineGateway
from thresher.core.items import FunctionCall, assistant
from thresher.core.tokens import Usage
from thresher.tui.app import ThresherApp
from thresher.tui.live import AgentActor, Asking, open_live
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened
from thresher.tui.remembered import Remembered
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.stop import StopScreen

RULE = "Prices stay integers in cents, always."
FULL = Usage(9_000, 5)
PATIENCE = 2_000
"""Looks until a test gives up."""
ASIDE = "a short look at the rules first"


def says(text: str, usage: Usage = FULL) -> ModelReply:
    return ModelReply((assistant(text),), usage, StopReason.STOP)


def reads(path: str, call: str, usage: Usage = FULL) -> ModelReply:
    """Reads a file, and a long one beside it."""
    items = (
        assistant(ASIDE),
        FunctionCall(call, "read_file", f'{{"path": "{path}"}}'),
        FunctionCall(f"{call}-long", "read_file", '{"path": "LONG.md"}'),
    )
    return ModelReply(items, usage, StopReason.TOOL_CALLS)


class Model(OfflineGateway):
    """Answers from a list, and remembers what it was sent."""

    def __init__(self, workspace: Path, replies: list[ModelReply]) -> None:
        super().__init__(workspace)
        self.replies = replies
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.requests.append(request)
        await asyncio.sleep(0)
        yield self.replies.pop(0)

    def sent(self, at: int = -1) -> str:
        """All texts of a request."""
        return "\n".join(item.text for item in self.requests[at].items)


class Rig:
    """The app over such an agent. `start` gives the first message when the console is there."""

    def __init__(
        self, tmp_path: Path, *replies: ModelReply, breaks: tuple[str, ...] = ("compaction",),
        remembered: Remembered | None = None, keymap: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        workspace = tmp_path / "project"
        workspace.mkdir()
        (workspace / "RULES.md").write_text(f"{RULE}\n")
        (workspace / "LONG.md").write_text("and many words besides\n" * 200)
        self.gateway = Model(workspace, list(replies))
        asking = Asking()
        setup = prepare_setup(
            load(flags={"model.wire": "offline"}), workspace, gateway=self.gateway, approver=asking
        )
        self.agent: Agent = build_agent(setup, new_session(setup, root=tmp_path / "sessions"))
        self._asking, self._breaks = asking, breaks
        self.app = ThresherApp(self._start, remembered=remembered, keymap=keymap)
        self.opened: Opened | None = None

    async def _start(self) -> Opened:
        self.opened = open_live(self.agent, self._asking, count=False)
        for text in self._breaks:
            self.actor.set_break(text)
        return self.opened

    @property
    def model(self) -> ConsoleModel:
        assert self.opened is not None
        return self.opened.model

    @property
    def actor(self) -> AgentActor:
        actor = self.model.actor
        assert isinstance(actor, AgentActor)
        return actor

    async def console(self, pilot: Pilot[None]) -> ConsoleScreen:
        await self.until(pilot, lambda: isinstance(self.app.screen, ConsoleScreen))
        assert isinstance(self.app.screen, ConsoleScreen)
        return self.app.screen

    async def stopped(self, pilot: Pilot[None], point: Point) -> StopScreen:
        """Wait until it stands still there, and the screen shows it."""

        def shown() -> bool:
            screen, stop = self.app.screen, self.actor.proposal()
            return (
                isinstance(screen, StopScreen)
                and stop is not None
                and stop.point is point
                and screen.stop is stop
            )  # fmt: skip

        await self.until(pilot, lambda: self.opened is not None)
        await self.until(pilot, shown)
        assert isinstance(self.app.screen, StopScreen)
        assert [type(each) for each in self.app.screen_stack] == [ConsoleScreen, StopScreen]
        return self.app.screen

    async def idle(self, pilot: Pilot[None]) -> ConsoleScreen:
        """Wait until the agent has done everything, and the console shows all of it."""
        await self.until(
            pilot,
            lambda: (
                not self.actor.busy
                and isinstance(self.app.screen, ConsoleScreen)
                and len(self.model.history) == len(self.agent.session.history)
            ),
        )
        return await self.console(pilot)

    async def until(self, pilot: Pilot[None], told: Callable[[], bool]) -> None:
        for _ in range(PATIENCE):
            if told():
                break
            await pilot.pause(0.01)
        else:
            screen = self.app.screen
            shown = texts(screen) if isinstance(screen, StopScreen | ConsoleScreen) else ""
            raise AssertionError(f"never came; {screen}\n{shown}")
        await pilot.pause()

    def select(self, screen: StopScreen, text: str) -> None:
        """Put the cursor on the entry that holds a text."""
        found = [at for at, line in enumerate(screen.lines) if text in line.entry.item.text]
        screen.rows.select(found[0])


def texts(screen: StopScreen | ConsoleScreen) -> str:
    """What is on the screen, as text."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in screen._compositor.render_strips()
    )
