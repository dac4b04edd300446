"""A dialog with a list to go from: bookmarks, phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from ..keys import Where, bindings
from ..plain import PlainStatic
from ..spans import Line, clip, spread
from ..theme import keyed
from ..widgets.row_list import RowList
from .dialog import Dialog

Value = TypeVar("Value")

GOES = "<list.open> goes there, <modal.close> closes."


class Entry(NamedTuple, Generic[Value]):
    """One line: its two ends, and what choosing it answers (None: nothing, it is a heading)."""

    left: Line
    right: Line
    value: Value | None


class ListScreen(Dialog[Value], Generic[Value]):
    """Shows entries; Enter or a second click answers the value of the selected one."""

    def __init__(
        self, title: str, entries: Sequence[Entry[Value]], *, hint: str = "", cursor: int = 0,
        empty: str = "nothing here",
    ) -> None:  # fmt: skip
        super().__init__()
        self._title, self._hint, self._at = title, hint, cursor
        self.entries = list(entries)
        self.rows = RowList()
        self._empty = empty

    def compose(self) -> ComposeResult:
        """A title, the entries and what keys do."""
        with Vertical(classes="dialog list wide"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield self.rows
            yield PlainStatic(keyed(self.app, self._hint or GOES), classes="hint")

    def on_mount(self) -> None:
        """Begin where the reader is."""
        self.rows.empty = keyed(self.app, self._empty)
        self.refill(self._at)
        self.rows.focus()

    def refill(self, cursor: int = 0) -> None:
        """Show the entries as they are now."""
        self.rows.fill(len(self.entries), self._line, cursor=cursor)
        self.rows.styles.height = min(24, max(3, len(self.entries)))

    def _line(self, at: int, cells: int) -> Line:
        entry = self.entries[at]
        return spread(entry.left, entry.right, cells) if entry.right else clip(entry.left, cells)

    @on(RowList.Opened)
    def _chosen(self) -> None:
        value = self.entries[self.rows.cursor].value
        if value is not None:
            self.dismiss(value)


class MarkList(ListScreen[int]):
    """The bookmarks; the selected one can be removed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.MARKS)

    def __init__(self, entries: Sequence[Entry[int]], cursor: int = 0) -> None:
        super().__init__(
            "bookmarks",
            entries,
            hint="<list.open> goes there, <marks.remove> removes it, <modal.close> closes.",
            cursor=cursor,
            empty="no bookmark yet; <console.bookmark> sets one at the selected row",
        )
        self.removed: list[int] = []

    def action_remove(self) -> None:
        """Take the selected bookmark out of the list, and away when the list is closed."""
        at = self.rows.cursor
        value = self.entries[at].value if at >= 0 else None
        if value is not None:
            self.removed.append(value)
            del self.entries[at]
            self.refill(at)
