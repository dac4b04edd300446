"""A recorded session in the app whose program is held: for tests that decide there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from textual.pilot import Pilot

from thresher.tui.app import ThresherApp
from thresher.tui.model import ConsoleModel
from thresher.tui.opening import Opened, open_file
from thresher.tui.outside import OutsideActor
from thresher.tui.remembered import Remembered
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.stop import StopScreen

from ..core.hold.hooks import Hook, about, run_hook
from ..core.sources.claude_made import Made, call, text

PATIENCE = 2_000
RULE = "Prices stay integers in cents, always."


def transcript(path: Path) -> Path:
    """A Claude Code session of two rounds that is nearly full."""
    made = Made()
    made.user(RULE)
    made.says("m1", text("I look at the list first."), call("t1"), input=150_000)
    made.result("t1", "a long list of goods\n" * 400)
    made.says("m2", text("Now the totals."), call("t2"), input=168_000)
    made.result("t2", "12 goods, 3 without a price")
    return made.write(path)


class Rig:
    """The app over it. `clock` is that of the countdown."""

    def __init__(
        self, path: Path, *, breaks: tuple[str, ...] = ("compaction",),
        remembered: Remembered | None = None, left: int | None = None,
    ) -> None:  # fmt: skip
        self.path = path

        async def start() -> Opened:
            opened = await open_file(path, breaks=breaks, count=False)
            outside = opened.model.outside
            if left is not None and isinstance(outside, OutsideActor):
                outside.clock = lambda: self.until - left
            return opened

        self.app = ThresherApp(start, remembered=remembered)

    @property
    def model(self) -> ConsoleModel:
        model = self.app.model
        assert model is not None
        return model

    @property
    def actor(self) -> OutsideActor:
        assert isinstance(self.model.outside, OutsideActor)
        return self.model.outside

    @property
    def until(self) -> float:
        held = self.actor.desk.held
        return held.first.until if held is not None else 0.0

    def hook(self, trigger: str = "auto", *arguments: str) -> Hook:
        return run_hook(about(self.path, trigger), *arguments)

    async def console(self, pilot: Pilot[None]) -> ConsoleScreen:
        await self.wait(pilot, lambda: isinstance(self.app.screen, ConsoleScreen))
        assert isinstance(self.app.screen, ConsoleScreen)
        return self.app.screen

    async def shown(self, pilot: Pilot[None]) -> StopScreen:
        """Wait until the stop is on the screen."""
        await self.wait(pilot, lambda: isinstance(self.app.screen, StopScreen))
        assert isinstance(self.app.screen, StopScreen)
        return self.app.screen

    async def stopped(self, pilot: Pilot[None]) -> StopScreen:
        """Wait until the stop is on the screen, with its forecast."""

        def shown() -> bool:
            screen = self.app.screen
            stop = screen.stop if isinstance(screen, StopScreen) else None
            return stop is not None and stop.proposal is not None

        await self.wait(pilot, shown)
        assert isinstance(self.app.screen, StopScreen)
        return self.app.screen

    async def wait(self, pilot: Pilot[None], told: Callable[[], object]) -> None:
        for _ in range(PATIENCE):
            if told():
                break
            await pilot.pause(0.01)
        else:
            raise AssertionError(f"never came; {self.app.screen}")
        await pilot.pause()
