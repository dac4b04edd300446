"""The context inspector: the exact list that the model sees at a position, and its wire form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.message import Message

from thresher.core.context import EntryId
from thresher.core.errors import ThresherError
from thresher.core.insight.inspect import (
    Duplicate,
    Inspected,
    Inspection,
    Stale,
    WireRow,
    inspect,
    wire_rows,
)
from thresher.core.text import cap_lines, clean_line

from .. import figures
from ..copying import copy_text
from ..keys import Where, bindings
from ..model import ConsoleModel
from ..spans import Line, Tone, cut, span, spread, wrap
from ..theme import STYLES, keyed
from ..travel import POSITIONS, named_position
from ..widgets.context_lines import (
    bar_lines,
    heading_line,
    odd_counts,
    odd_lines,
    odd_marks,
    row_line,
    wire_heading,
    wire_line,
)
from ..widgets.footer import KeyFooter
from ..widgets.lines import Lines
from ..widgets.page import Page
from ..widgets.row_list import RowList
from ..widgets.title import Title
from .base import FullScreen
from .diff import positions_screen

PREVIEW = 300


class ContextHead(Lines):
    """Lines that the screen makes for a width; a click on a tile of the bar is told."""

    DEFAULT_CSS = """
    ContextHead { height: 6; padding: 0 1; }
    """

    class Pressed(Message):
        """A click at these content coordinates."""

        def __init__(self, x: int, y: int) -> None:
            super().__init__()
            self.x, self.y = x, y

    def __init__(
        self, make: Callable[[int], list[Line]], tip: Callable[[int, int], str] = lambda x, y: ""
    ) -> None:
        super().__init__()
        self._make, self._tip_of = make, tip

    def tip_at(self, x: int, y: int) -> str:
        """What the screen says of a cell."""
        return self._tip_of(x, y)

    def draw(self, width: int, height: int) -> list[Line]:
        return self._make(width)

    def on_click(self, event: events.Click) -> None:
        """Tell where."""
        offset = event.get_content_offset(self)
        if offset is not None:
            self.post_message(self.Pressed(offset.x, offset.y))


class ContextScreen(FullScreen[None]):
    """One position of one session. It stays as it is while a live session goes on."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CONTEXT)
    CSS_PATH = STYLES / "context.tcss"

    def __init__(self, model: ConsoleModel) -> None:
        super().__init__()
        self.model = model
        self._position = model.here
        # A live state goes on; what is inspected is the state of this position.
        self._state = model.state if model.rewound else model.history.at(self._position)
        self.inspection = inspect(self._state)
        self._duplicates: tuple[Duplicate, ...] = ()
        self._stale: tuple[Stale, ...] = ()
        self._marks: dict[EntryId, str] = {}
        self._pins = frozenset(self._state.pins)
        self._tiles = self.inspection.tiles()
        self._tile_places: list[tuple[int, int, EntryId]] = []
        self.by_size = False
        self.wire: tuple[WireRow, ...] | None = None
        """The request in its wire form, while that is shown."""
        self._rows: Sequence[Inspected] = self.inspection.rows
        self._head = ContextHead(self._head_lines, self._tile_tip)
        self._list = RowList(id="context-rows", empty="the context is empty here")
        self._title = Title("text", id="context-title")
        self._page = Page(id="context-text")

    def compose(self) -> ComposeResult:
        """The bar over the list over the text of the selected row."""
        yield self._head
        yield self._list
        yield self._title
        yield self._page
        yield KeyFooter()

    def on_mount(self) -> None:
        """Begin at the end, where a context grows. All texts are compared after the first
        picture."""
        self._refill(len(self._rows) - 1)
        self._list.focus()
        self.call_after_refresh(self._look_for_odd)

    def _look_for_odd(self) -> None:
        self._duplicates = self.inspection.duplicates()
        self._stale = self.inspection.stale()
        self._marks = odd_marks(self.inspection, self._duplicates, self._stale)
        self._list.again()
        self._draw()

    def on_resize(self) -> None:
        """Other widths."""
        self.call_after_refresh(self._draw)

    def _refill(self, cursor: int) -> None:
        if self.wire is not None:
            self._list.fill(len(self.wire), self._wire_line, cursor=cursor)
        else:
            self._list.fill(len(self._rows), self._row_line, cursor=cursor)
        self._draw()

    def _row_line(self, at: int, cells: int) -> Line:
        row, basis = self._rows[at], self.inspection.total.basis
        return row_line(row, self._marks, basis, cells, pinned=row.id in self._pins)

    def _wire_line(self, at: int, cells: int) -> Line:
        assert self.wire is not None  # else the rows would be drawn
        return wire_line(self.wire[at], cells)

    @property
    def _selected_id(self) -> EntryId | None:
        at = self._list.cursor
        return self._rows[at].id if self.wire is None and 0 <= at < len(self._rows) else None

    @on(RowList.Selected)
    def _draw(self) -> None:
        self._head.show()
        self._draw_text()

    def _head_lines(self, cells: int) -> list[Line]:
        state, total = self._state, self.inspection.total
        where = f"turn {state.turn}, round {state.rounds}" if state.turn else ""
        left: Line = [
            span(f"context at #{max(0, state.position)}  ", Tone.STRONG),
            span(where, Tone.MUTED),
        ]
        entries = figures.count(len(self.inspection.rows), "entry", "entries")
        told = f"{entries}, {figures.with_basis(total)}, {figures.scope(total)}"
        bar, self._tile_places = bar_lines(self._tiles, cells, self._selected_id)
        basis = total.basis
        # The rows end one cell before the head does, where their scrollbar is.
        heading = wire_heading(cells) if self.wire is not None else heading_line(
            cells - 1, self.by_size)  # fmt: skip
        odd = odd_counts(self._duplicates, self._stale, basis)
        if self.wire is not None:
            size = sum(row.bytes for row in self.wire)
            odd = [span(f"wire form, {figures.count(len(self.wire), 'message')}, {size:,} bytes",
                        Tone.ACCENT)]  # fmt: skip
        return [spread(left, [span(told, Tone.MUTED)], cells), *bar, odd, [], heading]

    def _draw_text(self) -> None:
        cells, at = self._page.cells_in(self.app.size.width), self._list.cursor
        if cells <= 0 or at < 0:
            self._page.fill([])
            return
        if self.wire is not None:
            row = self.wire[at]
            self._title.set(name=f"message {at + 1:,}", remark=_remark(self.app, len(row.json)))
            self._page.fill(_text(pretty(row.json), cells))
            return
        entry = self._state.context.entries[self._rows[at].at]
        lines = odd_lines(
            entry.id, self._duplicates, self._stale, self.inspection.total.basis, cells
        )
        text = self._state.text(entry.item)
        self._title.set(name=f"{entry.id}  {entry.kind.value}", remark=_remark(self.app, len(text)))
        self._page.fill([*lines, *_text(text, cells)])

    def _tile_at(self, x: int, y: int) -> int | None:
        """The place in the list of the entry whose tile is at a cell."""
        if y not in (1, 2) or self.wire is not None:
            return None
        id = next((id for start, end, id in self._tile_places if start <= x < end), None)
        return next((n for n, row in enumerate(self._rows) if row.id == id), None)

    def _tile_tip(self, x: int, y: int) -> str:
        at = self._tile_at(x, y)
        if at is None:
            return ""
        row, basis = self._rows[at], self.inspection.total.basis
        size = f"{figures.mark(basis)}{row.tokens:,} tokens {basis}"
        return f"{row.id} {cut(row.title, 60)}: {size}, {row.share:.1%} of the context"

    @on(ContextHead.Pressed)
    def _pressed(self, message: ContextHead.Pressed) -> None:
        at = self._tile_at(message.x, message.y)
        if at is not None:
            self._list.select(at, centre=True)

    @on(RowList.JumpWanted)
    def _jump(self, message: RowList.JumpWanted) -> None:
        """To the next entry that is marked."""
        if self.wire is not None:
            return
        end = len(self._rows) if message.step > 0 else -1
        places = range(self._list.cursor + message.step, end, message.step)
        found = next((at for at in places if self._rows[at].id in self._marks), None)
        if found is None:
            side = "after" if message.step > 0 else "before"
            self.notify(f"Nothing is marked {side} this row.", markup=False)
        else:
            self._list.select(found, centre=True)

    def _whole(self) -> tuple[str, str]:
        """Name and text of the selected row."""
        at = self._list.cursor
        if at < 0:
            return "", ""
        if self.wire is not None:
            return f"message {at + 1:,}, as it is sent", pretty(self.wire[at].json)
        row = self._rows[at]
        item = self._state.context.entries[row.at].item
        return f"{row.id}  {row.title}", self._state.text(item)

    @on(RowList.Opened)
    def _opened(self) -> None:
        from .text import TextScreen

        self.app.push_screen(TextScreen(*self._whole()))

    def action_copy(self) -> None:
        """Copy the text of the selected row."""
        at = self._list.cursor
        if at >= 0 and self.wire is not None:
            # As it is sent; indented is only what is shown.
            copy_text(self.app, self.wire[at].json, f"message {at + 1:,}")
            return
        _, text = self._whole()
        if not text:
            self.notify("There is no text in this row.", markup=False)
            return
        copy_text(self.app, text, str(self._rows[at].id))

    def action_sort(self) -> None:
        """By place, or the largest first; the selected entry stays selected."""
        if self.wire is not None:
            self.notify("The wire form has one order only.", markup=False)
            return
        keep = self._selected_id
        self.by_size = not self.by_size
        self._rows = largest_first(self.inspection) if self.by_size else self.inspection.rows
        # The largest is what is wanted when it sorts by size.
        at = 0 if self.by_size else next(
            (n for n, row in enumerate(self._rows) if row.id == keep), 0)  # fmt: skip
        self._refill(at)

    async def action_wire(self) -> None:
        """The request in its wire form, or the entries again."""
        if self.wire is not None:
            self.wire = None
            self._refill(0)
            return
        self.run_worker(self._fetch_wire(), name="wire", group="wire", exclusive=True,
                        exit_on_error=False)  # fmt: skip

    async def _fetch_wire(self) -> None:
        try:
            messages = await asyncio.to_thread(self.model.wire_of, self._state)
        except ThresherError as error:
            self.notify(clean_line(error.msg, 400), severity="error", markup=False)
            return
        self.wire = wire_rows(messages)
        self._refill(0)

    def action_compare(self) -> None:
        """Ask for another position, and show both side by side."""
        from .ask import AskScreen

        def answered(text: str | None) -> None:
            if text is not None:
                self._compare(text)

        self.app.push_screen(AskScreen("compare with", "#line or compaction", POSITIONS), answered)

    def _compare(self, text: str) -> None:
        history = self.model.history
        other = named_position(history, text)
        if other is None:
            self.notify(f"There is no position {clean_line(text, 40)}.", markup=False)
            return
        self.app.push_screen(positions_screen(history, *sorted((other, self._position))))

    def action_close(self) -> None:
        """Back to the session."""
        self.dismiss()


def largest_first(inspection: Inspection) -> list[Inspected]:
    """The rows by size; what they come to together is reckoned in this order."""
    upto = 0.0
    rows = []
    for row in inspection.biggest():
        upto += row.share
        rows.append(msgspec.structs.replace(row, cumulative=upto))
    return rows


def pretty(text: str) -> str:
    """A JSON text indented, and as it is where that is not possible."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _remark(app: App[Any], characters: int) -> Line:
    told = figures.count(characters, "character")
    hint = keyed(app, "<list.open> reads all   <context.copy> copies")
    return [span(f"{told}   {hint}", Tone.FAINT)]


def _text(text: str, cells: int) -> list[Line]:
    capped = cap_lines(text, PREVIEW, 0, 4 * cells)
    return [[span(line)] for line in wrap(capped, cells)][:PREVIEW]
