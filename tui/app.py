"""The Textual app: modes, themes, commands, and what happens when something goes wrong.

A session is a mode of its own, the list of sessions another. Everything the app needs (the clock,
where sessions come from, what is opened first) is given to it, so that a test or a picture can give
it something else.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from thresher.core.errors import ThresherError
from thresher.core.text import cap_lines, clean_line

from .collector import LOOK_AFTER, Collector
from .commands import Commands
from .indexing import SWITCH_SECONDS
from .keymap import checked, effective
from .keys import Key, Where, bindings
from .model import ConsoleModel
from .opening import Opened, open_file
from .remembered import Remembered
from .screens.opening import OpeningScreen
from .theme import DARK_NAME, LIGHT_NAME, ThemedApp, key_words
from .toasts import ToldOnce
from .warm import warm

if TYPE_CHECKING:
    from .screens.picker import Lister

WARM_AFTER = 0.1
"""Seconds after the first contents until what later screens need is got ready."""

QUIT_WITHIN = 2.0
"""Seconds in which a second Ctrl+C quits."""

Start = Callable[[], Awaitable[Opened]]
"""Makes the session that is shown first, in the app's event loop."""


class ThresherApp(ToldOnce, ThemedApp):
    """The console. `start` makes the first session; without it the list of sessions is shown.

    `lister` finds the sessions of this machine, `opener` opens one of them. `keymap` maps ids of
    the key table to keys; ThresherError says what is wrong with it. `theme` is taken before the one
    that is `remembered`. `tour` shows the tour on the first start. `collector` is given by a
    program that has the process to itself.
    """

    TITLE = "thresher"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.APP)
    COMMANDS = {Commands}

    _remembering = False
    """Whether a theme that is set now was the user's choice."""

    def __init__(
        self,
        start: Start | None = None,
        *,
        lister: Lister | None = None,
        opener: Callable[[Path], Awaitable[Opened]] = open_file,
        clock: Callable[[], float] = time.time,
        theme: str = "",
        keymap: Mapping[str, str] | None = None,
        animate: bool = False,
        remembered: Remembered | None = None,
        tour: bool = False,
        collector: Collector | None = None,
    ) -> None:
        super().__init__()
        self.remembered = remembered or Remembered()
        self.clock = clock
        self.opened: list[Opened] = []
        self.shown: Opened | None = None
        self.fatal: Exception | None = None
        """The error that ended the app, for whoever started it to tell of."""
        self._collector = collector
        self._look: asyncio.TimerHandle | None = None
        self._screens = 0
        """How many there were on one another when that was seen to last."""
        self._switch = sys.getswitchinterval()
        self._start = start
        self._lister: Lister = lister or (lambda: iter(()))
        self._opener = opener
        self._last_ctrl_c = float("-inf")
        self._modes_made = 0
        self._sessions_made = False
        self._mode_of: dict[int, str] = {}
        if not animate:
            self.animation_level = "none"
        # Without colours a theme that was chosen for its colours is of no use.
        before = "" if self.no_color else self.remembered.tastes.theme
        for name in (theme, before):
            if name in self.available_themes:
                self.theme = name
                break
        self._tour_waits = tour and not self.remembered.tastes.toured
        if keymap:
            own = checked(keymap)
            self.key_table = effective(own)
            self.set_keymap(own)

    # -- screens -------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[None]:
        """What is painted first: nothing is loaded for it."""
        return OpeningScreen()

    def on_mount(self) -> None:
        """Begin with the session that was asked for, or with the list, once something is painted:
        what is loaded for them must not stand before the first picture."""
        self._remembering = True
        # A key waits so long each time that a thread has the interpreter, and goes through several.
        sys.setswitchinterval(min(self._switch, SWITCH_SECONDS))
        if self._collector is not None:
            self.screen_change_signal.subscribe(self, self._look_later, immediate=True)
        if self._start is None:
            self.call_after_refresh(self.action_sessions)
        else:
            self.call_after_refresh(self._open, self._start)

    @property
    def model(self) -> ConsoleModel | None:
        """The session in view, or None while there is none."""
        return self.shown.model if self.shown else None

    def open_path(self, path: Path) -> None:
        """Open a session file, or go back to it when it is open."""
        known = next((opened for opened in self.opened if opened.path == path), None)
        if known is not None:
            self.go_to(known)
            return
        self._open(lambda: self._opener(path))

    def _open(self, start: Start) -> None:
        self.run_worker(
            self._opening(start), name="open", group="open", exclusive=True, exit_on_error=False
        )

    async def _opening(self, start: Start) -> None:
        if self._collector is not None:
            self._collector.hold()
        try:
            opened = await start()
        except ThresherError as error:
            self.report(error)
            self._rest()
            if self.shown is None:
                await self.action_sessions()
            return
        await self.show(opened)

    async def show(self, opened: Opened) -> None:
        """Put a session on the screen. Other recorded ones are closed, a live one goes on."""
        from .screens.console import ConsoleScreen

        self._modes_made += 1
        mode = f"session-{self._modes_made}"
        model = opened.model
        self.add_mode(mode, lambda: ConsoleScreen(model, self.remembered))
        before = [old for old in self.opened if not old.live]
        self.opened.append(opened)
        self._mode_of[id(opened)] = mode
        self.shown = opened
        opened.failed = self.report
        await self.switch_mode(mode)
        opened.recounted = self._recounted
        for work in opened.background:
            self.run_worker(work(), name="background", group=mode, exit_on_error=False)
        for old in before:
            await self._close(old)
        self._rest(closed=bool(before))
        if self._tour_waits:
            self.action_tour()

    def _rest(self, *, closed: bool = False) -> None:
        """What can come after the first contents; `closed` says that others made way for them."""

        async def resting() -> None:
            await asyncio.sleep(WARM_AFTER)
            await warm(self)
            if self._collector is not None:
                if closed:
                    self._collector.let_go()
                self._collector.settle()

        work: Callable[[], Awaitable[None]] = resting
        self.run_worker(work, name="warm", group="warm", exclusive=True, exit_on_error=False)

    def _look_later(self, screen: Screen[Any]) -> None:
        """What a screen leaves behind is looked for once it has been painted."""
        if self._look is not None:
            self._look.cancel()
        if self._collector is not None:
            closed = len(self.screen_stack) < self._screens
            self._screens = len(self.screen_stack)
            look = partial(self._collector.look, closed=closed)
            self._look = asyncio.get_running_loop().call_later(LOOK_AFTER, look)

    def delay_update(self, delay: float = 0.05) -> None:
        """Nothing waits: Textual holds the picture back for a while when the mode changes, and then
        paints all of it twice. Ours is complete when it is first laid out."""

    def go_to(self, opened: Opened) -> None:
        """Back to a session that is open."""
        self.shown = opened
        self.switch_mode(self._mode_of[id(opened)])

    async def _close(self, opened: Opened) -> None:
        mode = self._mode_of.pop(id(opened))
        self.opened.remove(opened)
        self.workers.cancel_group(self, mode)
        await self.remove_mode(mode)
        await opened.close()

    def _recounted(self) -> None:
        self._rest()
        from .screens.console import ConsoleScreen

        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen):
                screen.redraw()

    async def action_sessions(self) -> None:
        """Show the list of sessions; when it was shown before, what it knows may be old."""
        from .screens.picker import PickerScreen

        shown_before = self._sessions_made
        if not shown_before:
            self._sessions_made = True
            self.add_mode("sessions", lambda: PickerScreen(self._lister, clock=self.clock))
        await self.switch_mode("sessions")
        self._rest()
        # A new list looks by itself, and may be done before it is here.
        if shown_before and isinstance(self.screen, PickerScreen) and not self.screen.searching:
            self.screen.action_reload()

    def on_picker_screen_wanted(self, message: object) -> None:
        """A session was picked."""
        from .screens.picker import PickerScreen

        if isinstance(message, PickerScreen.Wanted):
            self.open_path(message.path)

    def on_picker_screen_left(self) -> None:
        """Back from the list to the session that is open, if there is one."""
        if self.shown is not None:
            self.go_to(self.shown)

    def show_text(self, title: str, text: str) -> None:
        """Show a whole text, which may be long and need not be clean."""
        from .screens.text import TextScreen

        self.push_screen(TextScreen(title, text))

    def action_help(self) -> None:
        """Show the keys of this screen, and the signs."""
        from .screens.help import HelpScreen, node_of, places_of, useless

        screen = self.screen

        async def pressed(key: Key | None) -> None:
            node = node_of(screen, key) if key is not None else None
            if key is not None and node is not None:
                await self.run_action(key.action, node)

        if not isinstance(screen, HelpScreen):
            self.push_screen(HelpScreen(places_of(screen), useless(screen)), pressed)

    def action_tour(self) -> None:
        """Take the tour over the session in view; from then on it waits to be asked for."""
        from .screens.console import ConsoleScreen
        from .screens.tour import TourScreen

        self._tour_waits = False
        self.remembered.keep(toured=True)
        if isinstance(self.screen, ConsoleScreen):
            self.push_screen(TourScreen(self.screen))
        else:
            self.notify("The tour is about a session: open one first.", markup=False)

    # -- looks ---------------------------------------------------------------------------------

    def action_toggle_theme(self) -> None:
        """From dark to light, or back."""
        self.theme = LIGHT_NAME if self.current_theme.dark else DARK_NAME

    def watch_theme(self, theme: str) -> None:
        """What the user chose is remembered; what the program began with is not."""
        if self._remembering:
            self.remembered.keep(theme=theme)

    def action_export(self, choice: str = "") -> None:
        """Take a compaction, the session or the screen along: "compaction md", "screen"."""
        from .screens.export import take_along

        take_along(self, choice)

    # -- errors and the end --------------------------------------------------------------------

    def tell(self, title: str, text: str) -> None:
        """A toast; neither text needs to be clean."""
        self.notify(_short(text), title=clean_line(title, 60), markup=False)

    def report(self, error: BaseException) -> None:
        """Tell the user of an error: an expected one as a toast, any other on a screen."""
        if isinstance(error, ThresherError):
            self.notify(
                _short(error.msg),
                title=clean_line(error.title, 60),
                severity="error",
                timeout=10,
                markup=False,
            )
            return
        from .screens.error import ErrorScreen

        shown = self.shown
        path = str(shown.path) if shown and shown.live and shown.path else ""
        self.push_screen(ErrorScreen(error, path))

    def _handle_exception(self, error: Exception) -> None:
        # Textual's own way is to print a traceback with the values of all variables, on which
        # foreign text and secrets may stand.
        self.fatal = self.fatal or error
        super()._handle_exception(error)
        self._exit_renderables.clear()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Work in the background that failed is shown; it never ends the program."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.report(event.worker.error)

    def action_interrupt(self) -> None:
        """Ctrl+C: copy what is selected, else interrupt the agent; twice quits."""
        if self._copy_selected():
            return
        now = time.monotonic()
        if now - self._last_ctrl_c < QUIT_WITHIN:
            self.run_worker(self.action_quit(), name="quit", exit_on_error=False)
            return
        self._last_ctrl_c = now
        actor = self.model.actor if self.model else None
        if actor is not None:
            actor.interrupt()
        key = key_words(self, "app.interrupt")
        self.notify(f"Press {key} again to quit.", timeout=QUIT_WITHIN, markup=False)

    def _copy_selected(self) -> bool:
        focused = self.focused
        text = focused.selected_text if isinstance(focused, Input) else ""
        text = text or self.screen.get_selected_text() or ""
        if text:
            from .copying import copy_text

            copy_text(self, text, "what is selected")
        return bool(text)

    async def action_quit(self) -> None:
        """Put every session in order, then end."""
        await self._close_all()
        self.exit()

    async def on_unmount(self) -> None:
        """Also after an error: no session is left open."""
        sys.setswitchinterval(self._switch)
        await self._close_all()

    async def _close_all(self) -> None:
        for opened in list(self.opened):
            try:
                await asyncio.wait_for(opened.close(), timeout=10)
            except (ThresherError, TimeoutError) as error:
                self.log.error(str(error))


def _short(text: str) -> str:
    """As much as a toast should hold, clean."""
    return cap_lines(text, 6, 2, 400)
