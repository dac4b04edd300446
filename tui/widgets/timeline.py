"""The timeline: one virtual widget for everything that happened, however long it is.

Only visible lines are made, and kept in a small cache. Following the newest row is a mode: moving
up leaves it, End (or the last row) enters it, and the title counts rows that came meanwhile.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from thresher.core.context import EntryId
from thresher.core.state import Changed, SessionState
from thresher.core.views import Row, RowKind

from ..keys import Where, bindings
from ..spans import Line, Tone, span
from .card_lines import edge as card_edge
from .card_places import CardPlaces
from .heights import Heights
from .lines import Toned
from .marking import mark_words, pattern_of
from .timeline_rows import row_lines, settled, stream_line

CACHED_ROWS = 2000


class Timeline(Toned, ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of a SessionState; `cursor` is the selected row, or the newest while following."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.ROWS, Where.LIST)
    COMPONENT_CLASSES = {"timeline--cursor", "timeline--card"}

    DEFAULT_CSS = """
    Timeline {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        & > .timeline--cursor { background: $cursor-row; }
        & > .timeline--card { background: $raised; }
    }
    """

    class Selected(Message):
        """Another row is selected, or the selected one changed."""

    class Moved(Message):
        """The follow mode or the number of unseen rows changed."""

    class Opened(Message):
        """Enter or a second click on a row that is not a card: its detail is wanted."""

    class JumpWanted(Message):
        """The next or the previous match is wanted (`step` 1 or -1)."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    class EndWanted(Message):
        """The newest of everything is wanted."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._places = CardPlaces()
        self._compactions = -1
        self._pins: tuple[EntryId, ...] = ()
        self._streaming = False
        self._width = 0
        self._seen = 0
        self._cursor = 0
        self._cache: LRUCache[tuple[int, bool], list[Strip]] = LRUCache(CACHED_ROWS)
        self._words: re.Pattern[str] | None = None
        self._marked: frozenset[int] = frozenset()
        self.follow = True
        self.at_once: Callable[[], None] | None = None
        """Draws what belongs to a row that a key selected, in the same picture: a message comes a
        picture later, and every picture is one more for the processor."""

    # -- what is shown ---------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        """The state in view."""
        return self._state

    @property
    def cursor(self) -> int:
        """The index of the selected row; -1 when there is none."""
        last = len(self._state.rows) - 1
        return last if self.follow else min(self._cursor, last)

    @property
    def row(self) -> Row | None:
        """The selected row."""
        return self._state.rows[self.cursor] if self._state.rows else None

    @property
    def unseen(self) -> int:
        """Rows that came since the newest row was last in view."""
        return 0 if self.follow else max(0, len(self._state.rows) - self._seen)

    def is_open(self, card: int) -> bool:
        """Whether a card is unfolded."""
        return self._places.is_open(card)

    def show_state(self, state: SessionState, changed: Changed) -> None:
        """Take a state, of which these parts changed since the last call."""
        shifted = False
        if state is not self._state:
            before = None if self.follow else self.row
            self._state = state
            self._reset()
            shifted = self._keep(before)
        elif changed & Changed.CARDS or state.compactions != self._compactions:
            self._cards_changed()
        elif not changed & (Changed.ROWS | Changed.STREAM | Changed.META | Changed.STATUS):
            return
        moved = Changed.CARDS | Changed.CONTEXT
        if state.pins is not self._pins or changed & moved == moved:
            # Pins, and entries that came back, show in rows that were settled long ago.
            self._pins = state.pins
            self._cache.clear()
        self._compactions = state.compactions
        self._grow()
        self._sync()
        if shifted:
            self._into_view(centre=True)
        self.refresh()

    def mark(self, words: Sequence[str]) -> None:
        """Mark these words in the rows from now on."""
        self._words = pattern_of(words)
        self._cache.clear()
        self.refresh()

    def mark_lines(self, lines: Iterable[int]) -> None:
        """Show which journal lines have a bookmark."""
        self._marked = frozenset(lines)
        self._cache.clear()
        self.refresh()

    def _reset(self) -> None:
        self._places.begin_again(self._width)
        self._cache.clear()
        self._seen = min(self._seen, len(self._state.rows))

    def _keep(self, before: Row | None) -> bool:
        """Stay at the row that was selected, where earlier ones came to stand before it; says
        whether they did."""
        rows = self._state.rows
        if before is None or (self._cursor < len(rows) and rows[self._cursor].n == before.n):
            return False
        at = bisect_left(rows, before.n, key=lambda row: row.n)
        if at == len(rows) or rows[at].n != before.n:
            return False
        self._cursor = at
        return True

    def _cards_changed(self) -> None:
        if self._state.compactions != self._compactions:
            # A compaction moved entries, which shows in their rows.
            self._cache.clear()
        for index in self._places.look_again(self._state):
            for selected in (False, True):
                self._cache.discard((index, selected))

    def _grow(self) -> None:
        self._places.grow(self._state)
        self._streaming = bool(
            self._state.streams.get("assistant") or self._state.streams.get("reasoning")
        )

    @property
    def _heights(self) -> Heights:
        return self._places.heights

    @property
    def _page(self) -> int:
        return max(1, self.scrollable_content_region.height)

    def _sync(self) -> None:
        """Adjust the scrolled size; keep following, or keep the reader's place."""
        height = self._heights.total + self._streaming
        self.virtual_size = Size(self._width, height)
        if self.follow:
            self._seen = len(self._state.rows)
            self.scroll_to(y=height, animate=False, force=True, immediate=True)
        self.post_message(self.Moved())
        if self.follow:
            self.post_message(self.Selected())

    def on_resize(self) -> None:
        """Another width wraps open cards anew."""
        width = self.scrollable_content_region.width
        if width != self._width:
            self._width = width
            self._reset()
            self._grow()
        self._sync()
        if not self.follow:
            self._into_view()

    def notify_style_update(self) -> None:
        """The theme changed: strips hold its colours."""
        self._cache.clear()
        super().notify_style_update()

    # -- drawing ---------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        line = y + self.scroll_offset.y
        if line < self._heights.total and self._state.rows:
            index, inside = self._heights.find(line)
            strips = self._strips(index)
            if inside < len(strips):
                return strips[inside]
        elif line == self._heights.total and self._streaming:
            streamed = stream_line(self._state, self._places.inner)
            if streamed is not None:
                return self.strip([span(" "), *streamed], self._width)
        elif not self._state.rows and y == 1:
            return self.strip([span("  nothing has happened yet", Tone.FAINT)], self._width)
        return self.strip([], self._width)

    def _strips(self, index: int) -> list[Strip]:
        row = self._state.rows[index]
        selected = index == self.cursor
        key = (index, selected)
        strips = self._cache.get(key)
        if strips is None:
            strips = self._made_strips(row, index, selected)
            if not self._places.is_growing(index) and (
                row.kind is RowKind.COMPACTION or settled(self._state, row)
            ):
                self._cache.set(key, strips)
        return strips

    def _made_strips(self, row: Row, index: int, selected: bool) -> list[Strip]:
        edge = Tone.ACCENT if selected and self.has_focus else Tone.FAINT
        under: Style | None = None
        if row.kind is RowKind.COMPACTION:
            card = self._state.cards[row.card]
            under = self._under("timeline--card")
            lines = self._places.lines(card, row.card)
            edge = card_edge(card)
        else:
            lines = row_lines(self._state, row, index, self._places.inner)
        cursor = self._under("timeline--cursor")
        strips = []
        # Of a card that is open only the title is lit, so that its text stays quiet.
        lit_lines = 1 if self._places.is_open(row.card) else len(lines)
        blank_above = row.kind is RowKind.TURN and bool(index)
        for at, line in enumerate(lines):
            blank = blank_above and not at
            marked = (selected or row.kind is RowKind.COMPACTION) and not blank
            bar: Line = [span("▌" if marked else " ", edge)]
            if row.n in self._marked and at == (1 if blank_above else 0):
                bar = [span("◆", Tone.STRONG)]
            if self._words is not None:
                line = mark_words(line, self._words)
            lit = selected and not blank and at < lit_lines
            strips.append(self.strip([*bar, *line], self._width, cursor if lit else under))
        return strips

    def _under(self, name: str) -> Style:
        return self.get_component_rich_style(name, partial=True)

    # -- moving ----------------------------------------------------------------------------------

    def select(self, index: int, *, follow: bool | None = None, centre: bool = False) -> None:
        """Select a row and bring it into view, with `centre` away from the edges; the last one
        enters follow mode."""
        last = len(self._state.rows) - 1
        index = max(0, min(index, last))
        self._cursor = index
        self.follow = index >= last if follow is None else follow
        if self.follow:
            self._sync()
        else:
            self._seen = max(self._seen, self._last_visible() + 1)
            self._into_view(centre)
        self.refresh()
        if self.at_once is not None:
            self.at_once()
        else:
            self.post_message(self.Moved())
            self.post_message(self.Selected())

    def select_card(self, card: int) -> None:
        """Select the row of a card."""
        index = self._places.row_of(card)
        if index is not None:
            self.select(index, follow=False)

    def set_follow(self, follow: bool) -> None:
        """Enter or leave follow mode."""
        if follow:
            self.select(len(self._state.rows) - 1, follow=True)
        elif self.follow:
            self._cursor = self.cursor
            self._seen = len(self._state.rows)
            self.follow = False
            self.post_message(self.Moved())

    def _last_visible(self) -> int:
        line = self.scroll_offset.y + self._page - 1
        if not self._state.rows:
            return -1
        return min(self._heights.find(line)[0], len(self._state.rows) - 1)

    def _into_view(self, centre: bool = False) -> None:
        if not self._state.rows:
            return
        top = self._heights.top(self.cursor)
        at = self.scroll_offset.y
        if centre and not at <= top < at + self._page - 1:
            self.scroll_to(
                y=max(0, top - self._page // 2), animate=False, force=True, immediate=True
            )
        region = Region(0, top, self._width, min(self._heights.height(self.cursor), self._page))
        self.scroll_to_region(region, animate=False, force=True, immediate=True)

    def toggle(self, card: int) -> None:
        """Unfold or fold a card; its first line stays where it is."""
        self._places.toggle(self._state, card)
        self._refolded()

    def expand_all(self) -> None:
        """Unfold all cards, or fold them when all are open."""
        self._places.toggle_all(self._state)
        self._refolded()

    def _refolded(self) -> None:
        self._cache.clear()
        self._sync()
        if not self.follow:
            self._into_view()
        self.refresh()

    def action_cursor_up(self) -> None:
        """Select the row above."""
        self.select(self.cursor - 1, follow=False)

    def action_cursor_down(self) -> None:
        """Select the row below."""
        self.select(self.cursor + 1)

    def action_page_up(self) -> None:
        """Select the row one screen above."""
        self._pages(-1)

    def action_page_down(self) -> None:
        """Select the row one screen below."""
        self._pages(1)

    def _pages(self, pages: int) -> None:
        if not self._state.rows:
            return
        line = self._heights.top(self.cursor) + pages * self._page
        line = max(0, min(line, self._heights.total - 1))
        self.select(self._heights.find(line)[0])

    def action_scroll_home(self) -> None:
        """Select the first row."""
        self.select(0, follow=False)

    def action_scroll_end(self) -> None:
        """Select the newest row and follow; from an earlier position, back to live."""
        self.set_follow(True)
        self.post_message(self.EndWanted())

    def action_select(self) -> None:
        """Unfold the selected card, or ask for the detail of the selected row."""
        row = self.row
        if row is not None and row.kind is RowKind.COMPACTION:
            self.set_follow(False)
            self.toggle(row.card)
        elif row is not None:
            self.post_message(self.Opened())

    def action_jump(self, step: int) -> None:
        """To the next match, or the one before."""
        self.post_message(self.JumpWanted(step))

    def on_click(self, event: events.Click) -> None:
        """Select; a click on a card's first line, or on what is selected, opens."""
        line = int(event.y + self.scroll_offset.y)
        if not self._state.rows or line >= self._heights.total:
            return
        index, inside = self._heights.find(line)
        again = index == self.cursor
        self.select(index)
        row = self._state.rows[index]
        if row.kind is RowKind.COMPACTION and not inside:
            self.set_follow(False)
            self.toggle(row.card)
        elif again and row.kind is not RowKind.COMPACTION:
            self.post_message(self.Opened())

    def on_focus(self) -> None:
        """The edge of the selected row shows where the keys go."""
        self._cache.clear()
        self.refresh()
        self.post_message(self.Moved())

    def on_blur(self) -> None:
        """The edge of the selected row is quiet again."""
        self.on_focus()

    def on_mouse_scroll_down(self) -> None:
        """The wheel at the end of everything enters follow mode."""
        if not self.follow and self.scroll_target_y >= self.max_scroll_y:
            self.set_follow(True)

    def watch_scroll_y(self, old: float, new: float) -> None:
        """The wheel and the scrollbar: moving up leaves follow mode."""
        super().watch_scroll_y(old, new)
        if self.follow and new < old and new < self.max_scroll_y:
            self.set_follow(False)
        if not self.follow:
            self._seen = max(self._seen, self._last_visible() + 1)
            self.post_message(self.Moved())
