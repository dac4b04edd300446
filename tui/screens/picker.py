"""The session picker: every session of this machine, newest first, narrowed by typing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input
from textual.worker import get_current_worker

from thresher.core.text import clean_line

from .. import figures
from ..keys import KEYS, Where, bindings
from ..places import from_home
from ..plain import PlainStatic
from ..spans import Line, Tone, span, spread
from ..theme import STYLES, keyed
from ..widgets.footer import KeyFooter
from ..widgets.lines import Lines
from ..widgets.session_list import (
    LIST_EDGE,
    MIDDLE,
    NARROW,
    SessionList,
    SessionRow,
    header,
)
from ..widgets.text_line import TextLine
from .ask import AskScreen
from .base import FullScreen

Lister = Callable[[], Iterator[Sequence[SessionRow]]]
"""Finds the sessions, in batches. Runs in a thread, may take as long as it needs."""

NOTHING_YET = """\
No sessions on this machine yet.

thresher demo          watch an agent fill its context; needs no model
thresher run "a task"  an agent at work in the folder you are in
thresher open FILE     a session file of any agent that is known

What thresher records appears here by itself, and so do the sessions of Codex, Claude Code, \
OpenCode and pi."""

NO_MATCH = "No session has all these words. <picker.back> clears the filter."


class Head(Lines):
    """The title line: the program, and how many sessions there are."""

    def __init__(self) -> None:
        super().__init__(id="picker-head")
        self.counts = (0, 0, 0)
        self.busy = True

    def draw(self, width: int, height: int) -> list[Line]:
        """One line."""
        shown, known, running = self.counts
        told = figures.count(known, "session")
        if shown != known:
            told = f"{shown:,} of {told}"
        right: Line = [span(told, Tone.MUTED)]
        if running:
            right = [*right, span("  ● ", Tone.ACCENT), span(f"{running:,} running", Tone.MUTED)]
        if self.busy:
            right = [span("looking ...  ", Tone.FAINT), *right]
        left = [span("thresher", Tone.STRONG), span("  sessions", Tone.MUTED)]
        return [spread(left, right, width)]


class Columns(Lines):
    """The names of the columns."""

    def draw(self, width: int, height: int) -> list[Line]:
        """One line, as wide as a row of the list."""
        return [header(width - LIST_EDGE)]


class Place(Lines):
    """The foot: where the selected session is."""

    def __init__(self) -> None:
        super().__init__(id="picker-place")
        self.row: SessionRow | None = None

    def draw(self, width: int, height: int) -> list[Line]:
        """One line."""
        if self.row is None:
            return [[]]
        left: Line = [span(clean_line(from_home(self.row.path), 1_000), Tone.FAINT)]
        # What the row had no room for.
        told: list[str] = []
        if width - LIST_EDGE < MIDDLE and self.row.model:
            told.append(clean_line(self.row.model, 24))
        if width - LIST_EDGE < NARROW:
            if self.row.compactions:
                told.append(figures.count(self.row.compactions, "compaction"))
            told.append(figures.bytes_of(self.row.size))
        if not told:
            return [left]
        return [spread(left, [span("  ".join(told), Tone.MUTED)], width)]


class FilterInput(TextLine):
    """The line to filter with. Enter opens, so that the footer has to name it here too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        each
        for each in bindings(Where.PICKER)
        if isinstance(each, Binding) and each.id == "picker.open"
    ]

    async def action_open(self) -> None:
        """Open the selected session."""
        await self.action_submit()


class PickerScreen(FullScreen[None]):
    """Lists sessions and says which one to open."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.PICKER)
    CSS_PATH = STYLES / "picker.tcss"
    AUTO_FOCUS = "#picker-filter"

    class Wanted(Message):
        """The user wants to see this session."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Left(Message):
        """The user wants to go back to the session that is open."""

    class Found(Message):
        """A batch of sessions; `done` when it was the last one."""

        def __init__(self, search: int, rows: Sequence[SessionRow], done: bool) -> None:
            super().__init__()
            self.search = search
            self.rows = rows
            self.done = done

    def __init__(self, lister: Lister, *, clock: Callable[[], float]) -> None:
        super().__init__()
        self._lister = lister
        self._search = 0
        self._asked = ""
        """The path that was typed last: where it was wrong it can be mended."""
        self._head = Head()
        self._filter = FilterInput(words="type to filter", id="picker-filter")
        self._columns = Columns(id="picker-columns")
        self._list = SessionList(clock=clock, id="picker-list")
        self._empty = PlainStatic(id="picker-empty")
        self._place = Place()

    def compose(self) -> ComposeResult:
        """One list, and a line for each thing said about it."""
        yield self._head
        yield self._filter
        yield self._columns
        yield self._list
        yield self._empty
        yield self._place
        yield KeyFooter()

    @property
    def searching(self) -> bool:
        """True until the last batch of the search has been shown."""
        return self._head.busy

    def on_mount(self) -> None:
        """Begin to look."""
        self.action_reload()

    def action_reload(self) -> None:
        """Look again; what is known stays on the screen meanwhile."""
        self._search += 1
        self._head.busy = True
        self._told()
        search, lister = self._search, self._lister
        self.app.run_worker(
            lambda: self._look(search, lister),
            name="sessions",
            group="sessions",
            thread=True,
            exclusive=True,
            exit_on_error=False,
        )

    def _look(self, search: int, lister: Lister) -> None:
        worker = get_current_worker()
        try:
            for rows in lister():
                if worker.is_cancelled:
                    return
                self.post_message(self.Found(search, rows, done=False))
        finally:
            self.post_message(self.Found(search, (), done=True))

    def on_picker_screen_found(self, message: Found) -> None:
        """Take in a batch of the search that still counts."""
        if message.search != self._search:
            return
        self._list.put(message.rows)
        self._head.busy = not message.done
        self._told()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter as the user types."""
        self._list.filter(event.value)
        self._told()

    def on_input_submitted(self) -> None:
        """Enter in the filter opens what is selected."""
        self.action_open()

    def on_key(self, event: events.Key) -> None:
        """The arrow keys move the selection while the filter has the focus."""
        if self.focused is not self._filter:
            return
        action = _ROW_KEYS.get(event.key)
        if action is not None:
            event.stop()
            self.call_later(self._list.run_action, action)

    def on_session_list_moved(self) -> None:
        """The foot tells of the row that is selected now."""
        self._told()

    def on_session_list_chosen(self) -> None:
        """A double click opens."""
        self.action_open()

    def _told(self) -> None:
        known = self._list.known
        self._head.counts = (len(self._list), known, self._list.running)
        self._head.show()
        self._place.row = self._list.selected
        self._place.show()
        nothing = not len(self._list) and not self.searching
        self._empty.display = nothing
        self._list.display = self._columns.display = not nothing
        if nothing:
            self._empty.show(keyed(self.app, NO_MATCH) if known else NOTHING_YET)

    def action_open(self) -> None:
        """Open the selected session; one that cannot be read says so again."""
        row = self._list.selected
        if row is None:
            return
        if row.problem:
            told = clean_line(f"{row.path}: {row.problem}", 600)
            self.notify(told, title="Cannot be read", severity="error", markup=False)
            return
        self.post_message(self.Wanted(row.path))

    def action_open_path(self) -> None:
        """Ask for a file to open."""

        def answered(path: str | None) -> None:
            if path:
                self._asked = path
                self.post_message(self.Wanted(Path(path).expanduser()))

        hint = "A relative one begins where you are."
        self.app.push_screen(
            AskScreen("Open a session file", "Its path", hint, self._asked), answered
        )

    def action_back(self) -> None:
        """Clear the filter, else leave."""
        if self._filter.value:
            self._filter.value = ""
        else:
            self.post_message(self.Left())


_ROW_KEYS = {
    name: key.action
    for key in KEYS
    if key.where is Where.ROWS
    for name in key.keys.split(",")
    if name in ("up", "down", "pageup", "pagedown")
}
"""Those of the list's keys that an input line has no use for."""
