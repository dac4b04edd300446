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
from ..theme import key_words, keyed
from ..widgets.choices import Choice, Choices
from ..widgets.row_list import RowList
from .dialog import Dialog

Value = TypeVar("Value")


class Entry(NamedTuple, Generic[Value]):
    """One line: its two ends, and what choosing it answers (None: nothing, it is a heading)."""

    left: Line
    right: Line
    value: Value | None


class ListScreen(Dialog[Value], Generic[Value]):
    """Shows entries; Enter or a second click answers the value of the selected one."""

    def __init__(
        self, title: str, entries: Sequence[Entry[Value]], *, hint: str = "", cursor: int = 0,
        empty: str = "nothing here", does: str = "goes there",
    ) -> None:  # fmt: skip
        """`hint` is said below the entries; `does` is what choosing one comes to."""
        super().__init__()
        self._title, self._hint, self._at = title, hint, cursor
        self.entries = list(entries)
        self.rows = RowList()
        self._empty, self._does = empty, does

    def compose(self) -> ComposeResult:
        """A title, the entries, and what can be done with them."""
        with Vertical(classes="dialog list wide"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield self.rows
            if self._hint:
                yield PlainStatic(self._hint, classes="hint")
            yield Choices(self.choices())

    def choices(self) -> list[Choice]:
        """The ways on and out."""
        return [
            Choice(key_words(self.app, "list.open"), self._does, "choose"),
            Choice(key_words(self.app, "modal.close"), "closes", "close"),
        ]

    def action_choose(self) -> None:
        """Take the selected entry."""
        self.rows.action_select()

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
            cursor=cursor,
            empty="no bookmark yet; <console.bookmark> sets one at the selected row",
        )
        self.removed: list[int] = []

    def choices(self) -> list[Choice]:
        """The selected one can be removed, too."""
        go, close = super().choices()
        return [go, Choice(key_words(self.app, "marks.remove"), "removes it", "remove"), close]

    def action_remove(self) -> None:
        """Take the selected bookmark out of the list, and away when the list is closed."""
        at = self.rows.cursor
        value = self.entries[at].value if at >= 0 else None
        if value is not None:
            self.removed.append(value)
            del self.entries[at]
            self.refill(at)
