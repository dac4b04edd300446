"""The list of sessions: one virtual widget, newest first, narrowed by the words of a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from thresher.core.text import clean_line

from .. import figures
from ..ages import age
from ..keys import Where, bindings
from ..places import project_of
from ..spans import Line, Span, Tone, clip, column
from .lines import Toned

_AGENT, _PROJECT, _MODEL, _COMPACTIONS, _SIZE, _AGE = 12, 16, 20, 12, 9, 13
_GAP = 2
_TIGHT, NARROW, MIDDLE, _WIDE = 64, 96, 116, 150
"""Below these widths there is no project; no figures; no model; only a short model."""
LONGEST_TITLE = 400
LIST_EDGE = 2
"""Cells that stay free at the right, of which the scrollbar takes one."""


class SessionRow(NamedTuple):
    """What is known of a session before it is opened. All text is foreign and not clean.

    `last_at` is in seconds since the epoch; `size` in bytes; `compactions` is None while nobody
    has counted; without `running_sure` that it runs is inferred; `problem` says why the session
    cannot be read.
    """

    path: Path
    agent: str
    title: str = ""
    model: str = ""
    id: str = ""
    size: int = 0
    last_at: float = 0.0
    compactions: int | None = None
    running: bool = False
    running_sure: bool = True
    problem: str = ""
    cwd: str = ""

    @property
    def project(self) -> str:
        """The name of the folder that the agent worked in. Not clean."""
        return project_of(self.cwd)

    def matches(self, words: Iterable[str]) -> bool:
        """True when every word is somewhere in what is known."""
        known = (self.agent, self.title, self.model, self.id, self.cwd, str(self.path))
        text = " ".join(known).casefold()
        return all(word in text for word in words)


def header(width: int) -> Line:
    """The names of the columns."""
    title, model = _room(width)
    cells: Line = [("  ", Tone.MUTED), column("agent", _AGENT, Tone.MUTED)]
    if width >= _TIGHT:
        cells.append(column("project", _PROJECT, Tone.MUTED))
    cells.append(column("session", title + _GAP, Tone.MUTED))
    if model:
        cells.append(column("model", model, Tone.MUTED))
    if width >= NARROW:
        cells.append(column("compactions", _COMPACTIONS, Tone.MUTED, right=True))
        cells.append(column("size", _SIZE, Tone.MUTED, right=True))
    return [*cells, column("last active", _AGE, Tone.MUTED, right=True)]


def line_of(row: SessionRow, width: int, now: float) -> Line:
    """A session in one line."""
    title, model = _room(width)
    cells: Line = [
        ("● " if row.running else "  ", Tone.ACCENT),
        column(clean_line(row.agent, 40), _AGENT - 1, Tone.MUTED),
        (" ", Tone.PLAIN),
    ]
    if width >= _TIGHT:
        project = clean_line(row.project, 80)
        cells += [column(project, _PROJECT - _GAP, Tone.MUTED), (" " * _GAP, Tone.PLAIN)]
    cells += [_title(row, title), (" " * _GAP, Tone.PLAIN)]
    if model:
        cells.append(column(clean_line(row.model, 80), model, Tone.MUTED))
    if width >= NARROW:
        count = "" if row.problem else figures.thousands(row.compactions)
        tone = Tone.PLAIN if row.compactions else Tone.FAINT
        cells.append(column(count, _COMPACTIONS, tone, right=True))
        cells.append(column(figures.bytes_of(row.size), _SIZE, Tone.MUTED, right=True))
    last = age(row.last_at, now)
    if row.running:
        last = "running" if row.running_sure else "running?"
    cells.append(column(last, _AGE, Tone.ACCENT if row.running else Tone.MUTED, right=True))
    return cells


def _room(width: int) -> tuple[int, int]:
    model = 0 if width < MIDDLE else _MODEL if width < _WIDE else _MODEL + 8
    figures_room = _COMPACTIONS + _SIZE if width >= NARROW else 0
    project = _PROJECT if width >= _TIGHT else 0
    return max(8, width - 2 - _AGENT - project - _GAP - model - figures_room - _AGE), model


def _title(row: SessionRow, cells: int) -> Span:
    if row.problem:
        return column(
            clean_line(f"cannot be read: {row.problem}", LONGEST_TITLE), cells, Tone.REMOVED
        )
    title = clean_line(row.title.strip(), LONGEST_TITLE)
    if title:
        return column(title, cells)
    return column(clean_line(row.id or row.path.name, LONGEST_TITLE), cells, Tone.MUTED)


class SessionList(Toned, ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of sessions with one selected."""

    BINDINGS = bindings(Where.ROWS)

    COMPONENT_CLASSES = {"session-list--cursor"}

    DEFAULT_CSS = """
    SessionList {
        height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; overflow-y: auto;
        & > .session-list--cursor { background: $cursor-row; }
    }
    """

    class Chosen(Message):
        """A row was clicked that was selected already."""

    class Moved(Message):
        """Another row is selected, or none."""

    def __init__(self, *, clock: Callable[[], float], id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._all: dict[Path, SessionRow] = {}
        self._rows: list[SessionRow] = []
        self._words: list[str] = []
        self._cursor = 0

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return True

    def row_at(self, at: int) -> SessionRow:
        """The row in this place, as they are shown."""
        return self._rows[at]

    @property
    def known(self) -> int:
        """The number of sessions, filtered or not."""
        return len(self._all)

    @property
    def running(self) -> int:
        """The number of sessions that somebody is writing."""
        return sum(row.running for row in self._all.values())

    @property
    def selected(self) -> SessionRow | None:
        """The row under the cursor."""
        return self._rows[self._cursor] if self._rows else None

    def put(self, rows: Iterable[SessionRow]) -> None:
        """Add sessions, or exchange what is known of them; the selected one stays selected."""
        self._all.update((row.path, row) for row in rows)
        self._arrange()

    def empty(self) -> None:
        """Forget all sessions."""
        self._all.clear()
        self._arrange()

    def filter(self, text: str) -> None:
        """Show only the sessions that hold every word."""
        self._words = text.casefold().split()
        self._arrange()

    def _arrange(self) -> None:
        kept = self.selected
        found = (row for row in self._all.values() if row.matches(self._words))
        self._rows = sorted(found, key=lambda row: (not row.running, -row.last_at, str(row.path)))
        at = next((i for i, row in enumerate(self._rows) if kept and row.path == kept.path), 0)
        # Somebody who has not moved yet wants the newest, not what came in first.
        self._cursor = at if self._cursor else 0
        self.virtual_size = Size(self.size.width, len(self._rows))
        self._moved()

    def move(self, to: int) -> None:
        """Select a row, clamped to what there is."""
        self._cursor = max(0, min(to, len(self._rows) - 1))
        self._moved()

    def _moved(self) -> None:
        region = Region(0, self._cursor, max(1, self.size.width), 1)
        self.scroll_to_region(region, animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Rows are as wide as the view."""
        self.virtual_size = Size(self.size.width, len(self._rows))

    def render_line(self, y: int) -> Strip:
        """The row at this height of the view."""
        width, at = self.size.width, y + self.scroll_offset.y
        if at >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        under: Style | None = None
        if at == self._cursor:
            under = self.get_component_rich_style("session-list--cursor")
        line = line_of(self._rows[at], width - LIST_EDGE, self._clock())
        return self.strip(clip(line, width), width, under)

    def render(self) -> Any:
        """Unused: `render_line` draws."""
        return ""

    def on_click(self, event: events.Click) -> None:
        """A click selects; a second one opens."""
        at = event.y + self.scroll_offset.y
        if at >= len(self._rows):
            return
        if at == self._cursor and event.chain > 1:
            self.post_message(self.Chosen())
        self.move(at)

    def action_cursor_up(self) -> None:
        """One row up."""
        self.move(self._cursor - 1)

    def action_cursor_down(self) -> None:
        """One row down."""
        self.move(self._cursor + 1)

    def action_page_up(self) -> None:
        """One page up."""
        self.move(self._cursor - max(1, self.size.height - 1))

    def action_page_down(self) -> None:
        """One page down."""
        self.move(self._cursor + max(1, self.size.height - 1))

    def action_scroll_home(self) -> None:
        """To the first row."""
        self.move(0)

    def action_scroll_end(self) -> None:
        """To the last row."""
        self.move(len(self._rows) - 1)
