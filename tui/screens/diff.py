"""Before and after: the contexts around a compaction, or at two positions, entry by entry."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import Screen

from thresher.core.history import History
from thresher.core.insight.diff import (
    Diff,
    Filter,
    Fold,
    RowKind,
    Total,
    compaction_diff,
    position_diff,
)
from thresher.core.insight.summary_diff import SummaryDiff, summary_diff
from thresher.core.items import text_length
from thresher.core.state import SessionState
from thresher.core.views import Card

from .. import figures
from ..keys import Where, bindings
from ..spans import Line, Tone, cut, span, spread
from ..widgets.diff_lines import (
    counted,
    counts_line,
    filter_words,
    fold_line,
    heading_line,
    preview_lines,
    preview_title,
    row_line,
)
from ..widgets.footer import KeyFooter
from ..widgets.lines import Lines
from ..widgets.page import Page
from ..widgets.row_list import RowList
from ..widgets.summary_lines import summary_counts, summary_diff_lines
from ..widgets.title import Title

COUNTING_SECONDS = 0.006
"""For how long tokens are counted between two frames."""


class DiffHead(Lines):
    """What is compared, what came of it, and what the columns are."""

    DEFAULT_CSS = """
    DiffHead { height: 4; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._first: tuple[Line, Line] = ([], [])
        self._rest: list[Line] = []

    def set(self, left: Line, right: Line, rest: list[Line]) -> None:
        """Exchange the lines; `rest` are made for `cells`."""
        self._first, self._rest = (left, right), rest
        self.show()

    @property
    def cells(self) -> int:
        """The width for the lines."""
        return self.size.width

    def draw(self, width: int, height: int) -> list[Line]:
        return [spread(*self._first, width), *self._rest]


class DiffScreen(Screen[None]):
    """Two contexts. With a `card` they are those of a compaction, and its neighbours and its
    summary are a key away; without one `title` says which positions they are of."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.DIFF)
    CSS_PATH = "../styles/diff.tcss"

    def __init__(
        self, state: SessionState, diff: Diff, *, card: Card | None = None, title: str = ""
    ) -> None:
        super().__init__()
        self._state = state
        self._head = DiffHead()
        self._rows = RowList(id="diff-rows", empty="no entry passes the filter; f changes it")
        self._preview = Page(id="diff-preview")
        self._preview_title = Title("text", id="diff-preview-title")
        self._summary_page = Page(id="diff-summary")
        self._begin(diff, card, title)

    def _begin(self, diff: Diff, card: Card | None, title: str = "") -> None:
        self.diff, self.card, self._title = diff, card, title
        self.by = Filter()
        self.expanded = False
        self._open: set[int] = set()
        self._totals: dict[RowKind, Total] | None = None
        self._counted_rows = 0
        self._counts = counted(diff)
        self._shown: Sequence[int | Fold] = ()
        self._summary: SummaryDiff | None = None

    def compose(self) -> ComposeResult:
        """The head, the rows over the text of the selected one, or the summaries."""
        yield self._head
        with Vertical(id="diff-entries"):
            yield self._rows
            yield self._preview_title
            yield self._preview
        yield self._summary_page
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show at once; tokens are counted between frames."""
        self.set_interval(1 / 60, self._count)
        self.call_after_refresh(self._fresh)
        self._rows.focus()

    def on_resize(self) -> None:
        """Another width has other columns."""
        self.call_after_refresh(self._redraw)

    # -- what is shown ---------------------------------------------------------------------------

    def _fresh(self) -> None:
        """From the first change on."""
        self._reshow()
        first = next((at for at, each in enumerate(self._shown) if self._changed(each)), 0)
        self._rows.select(first)
        self._rows.scroll_to(y=max(0, first - 3), animate=False, force=True, immediate=True)
        self._draw_head()

    def _redraw(self) -> None:
        self._draw_head()
        self._draw_preview()
        if self.has_class("summary"):
            self._draw_summary()

    def _reshow(self, keep: int | Fold | None = None) -> None:
        diff = self.diff
        if self.by != Filter():
            self._shown = diff.filtered(self.by)
        elif self.expanded:
            self._shown = range(len(diff.rows))
        else:
            shown: list[int | Fold] = []
            for each in diff.folded():
                opened = isinstance(each, Fold) and each.start in self._open
                shown += range(each.start, each.stop) if opened and isinstance(each, Fold) else [
                    each
                ]  # fmt: skip
            self._shown = shown
        wanted = keep.start if isinstance(keep, Fold) else keep
        cursor = next((at for at, each in enumerate(self._shown) if _covers(each, wanted)), 0)
        self._rows.fill(len(self._shown), self._line, cursor=cursor)
        self._draw_head()

    def _line(self, at: int, cells: int) -> Line:
        each = self._shown[at]
        if isinstance(each, Fold):
            tokens = self._tokens_of(each) if self._totals is not None else None
            return fold_line(self.diff, each, tokens, cells)
        return row_line(self._state, self.diff, self.diff.rows[each], cells)

    def _tokens_of(self, fold: Fold) -> int:
        rows = self.diff.rows[fold.start : fold.stop]
        return sum(self.diff.tokens(row)[1] or 0 for row in rows)

    def _draw_head(self) -> None:
        left: Line = [span(f"{self._heading}  ", Tone.STRONG)]
        right: Line = []
        if self.card is not None:
            told = [str(self.card.trigger).replace("_", " "), cut(self.card.stage, 24)]
            left.append(span(", ".join(filter(None, told)), Tone.MUTED))
            right = [span(figures.change(self.card.before, self.card.after), Tone.MUTED)]
        elif self._totals is not None:
            before = sum(total.before for total in self._totals.values())
            after = sum(total.after for total in self._totals.values())
            mark = figures.mark(self.diff.basis)
            told_tokens = f"{mark}{before:,} → {mark}{after:,} {self.diff.basis}, messages only"
            right = [span(told_tokens, Tone.MUTED)]
        cells = max(20, self._head.size.width)
        if self.has_class("summary") and self._summary is not None:
            rest: list[Line] = [summary_counts(self._summary, cells)]
        else:
            heading = heading_line(self._rows.scrollable_content_region.width - 2,
                                   filter_words(self.by))  # fmt: skip
            rest = [
                counts_line(self._counts, self._totals, self.diff.basis, cells),
                [],
                heading,
            ]
        self._head.set(left, right, rest)

    @property
    def _heading(self) -> str:
        if self.card is None:
            return self._title
        what = "summary" if self.has_class("summary") else "before and after"
        return f"compaction {self.card.ordinal}: {what}" if self.card.ordinal else what

    def _count(self) -> None:
        """A few more token figures, until all are known."""
        if self._totals is not None:
            return
        rows = self.diff.rows
        until = time.perf_counter() + COUNTING_SECONDS
        while self._counted_rows < len(rows) and time.perf_counter() < until:
            self.diff.tokens(rows[self._counted_rows])
            self._counted_rows += 1
        if self._counted_rows >= len(rows):
            self._totals = self.diff.totals()
            self._draw_head()
            self._rows.again()

    @on(RowList.Selected)
    def _selected(self) -> None:
        self._draw_preview()

    @property
    def _row_at(self) -> int | Fold | None:
        at = self._rows.cursor
        return self._shown[at] if 0 <= at < len(self._shown) else None

    def _draw_preview(self) -> None:
        each, cells = self._row_at, self._preview.cells
        if cells <= 0:
            return
        if each is None or isinstance(each, Fold):
            told = "" if each is None else "kept as they were"
            self._preview_title.set(name=told or "text", active=self._preview.has_focus)
            self._preview.fill([])
            return
        row = self.diff.rows[each]
        entry = next(entry for entry in reversed(self.diff.entries(row)) if entry is not None)
        characters = figures.count(text_length(entry.item), "character")
        remark: Line = [span(f"{characters}   Enter reads all   y copies", Tone.FAINT)]
        self._preview_title.set(
            name=preview_title(self.diff, row), remark=remark, active=self._preview.has_focus
        )
        self._preview.fill(preview_lines(self.diff, row, cells))

    @on(Page.FocusMoved)
    @on(RowList.FocusMoved)
    def _focus_moved(self) -> None:
        self._draw_preview_title()

    def _draw_preview_title(self) -> None:
        self._preview_title.set(remark=self._preview_title.remark, active=self._preview.has_focus)

    # -- moving ----------------------------------------------------------------------------------

    def _changed(self, each: int | Fold) -> bool:
        return isinstance(each, int) and self.diff.rows[each].kind is not RowKind.KEPT

    def _begins(self, at: int) -> bool:
        """Whether a run of changes of one kind begins at a row."""
        each = self._shown[at]
        if isinstance(each, Fold) or not self._changed(each):
            return False
        before = self._shown[at - 1] if at else None
        if before is None or isinstance(before, Fold):
            return True
        return self.diff.rows[before].kind is not self.diff.rows[each].kind

    @on(RowList.JumpWanted)
    def _jump(self, message: RowList.JumpWanted) -> None:
        at, end = self._rows.cursor, len(self._shown) if message.step > 0 else -1
        places = range(at + message.step, end, message.step)
        found = next((place for place in places if self._begins(place)), None)
        if found is None:
            words = "There is no change after this one." if message.step > 0 else (
                "There is no change before this one.")  # fmt: skip
            self.notify(words, markup=False)
        else:
            self._rows.select(found, centre=True)

    @on(RowList.Opened)
    def _opened(self) -> None:
        each = self._row_at
        if isinstance(each, Fold):
            self._open.add(each.start)
            self._reshow(each)
        elif each is not None:
            from .text import TextScreen

            row = self.diff.rows[each]
            title = f"{preview_title(self.diff, row)}  {self.diff.title(row)}"
            self.app.push_screen(TextScreen(title, self._whole(each)))

    def _whole(self, at: int) -> str:
        """The text in full; of a rewritten entry what it was and what it is."""
        before, after = self.diff.entries(self.diff.rows[at])
        told = "" if before is None else self.diff.text(before.item)
        if after is None:
            return told
        now = self.diff.text(after.item)
        if before is None or told == now:
            return now
        return f"AFTER, {after.id}\n\n{now}\n\n\nBEFORE, {before.id}\n\n{told}"

    def action_copy(self) -> None:
        """Copy the text of the selected row; of what was rewritten, as it was before."""
        each = self._row_at
        if each is None or isinstance(each, Fold):
            self.notify("There is no text in this row.", markup=False)
            return
        before, after = self.diff.entries(self.diff.rows[each])
        entry = before or after
        assert entry is not None  # a row has at least one side
        text = self.diff.text(entry.item)
        self.app.copy_to_clipboard(text)
        told = figures.count(len(text), "character")
        self.notify(f"Copied {entry.id}: {told}.", markup=False)

    def action_expand(self) -> None:
        """Unfold all that was kept, or fold it."""
        keep = self._row_at
        self.expanded = not self.expanded
        self._open.clear()
        self._reshow(keep)

    def action_filter(self) -> None:
        """Choose what is shown."""
        from .filter import FilterScreen

        keep = self._row_at

        def chosen(by: Filter | None) -> None:
            if by is not None and by != self.by:
                self.by = by
                self._reshow(keep)

        self.app.push_screen(FilterScreen(self.diff, self.by), chosen)

    def action_summary(self) -> None:
        """The summary against the one before, or the entries again."""
        if self.has_class("summary"):
            self.remove_class("summary")
            self._rows.focus()
            self._draw_head()
            return
        card = self.card
        self._summary = summary_diff(self._state, card.ordinal) if card is not None else None
        if self._summary is None:
            self.notify("There is no summary here that could be read.", markup=False)
            return
        self.add_class("summary")
        self._summary_page.focus()
        self.call_after_refresh(self._draw_summary)

    def _draw_summary(self) -> None:
        if self._summary is not None:
            self._summary_page.fill(summary_diff_lines(self._summary, self._summary_page.cells))
        self._draw_head()

    def action_compaction(self, step: int) -> None:
        """To the compaction before or after, with the same view."""
        if self.card is None:
            self.notify("These are two positions, not a compaction.", markup=False)
            return
        cards = comparable(self._state)
        at = next((n for n, card in enumerate(cards) if card.n == self.card.n), 0) + step
        if not 0 <= at < len(cards):
            side = "after" if step > 0 else "before"
            self.notify(f"There is no compaction {side} this one.", markup=False)
            return
        diff = compaction_diff(cards[at], self._state)
        assert diff is not None  # only comparable ones are in the list
        in_summary = self.has_class("summary")
        self.remove_class("summary")
        self._begin(diff, cards[at])
        self._fresh()
        if in_summary:
            self.action_summary()

    def action_close(self) -> None:
        """Back to the session."""
        self.dismiss()


def positions_screen(history: History, first: int, second: int) -> DiffScreen:
    """The contexts at two positions, the first one as before."""
    names = [f"#{max(0, history.at(at).position)}" for at in (first, second)]
    diff = position_diff(history, first, second)
    title = f"the context at {names[0]} and at {names[1]}"
    return DiffScreen(history.state, diff, title=title)


def comparable(state: SessionState) -> list[Card]:
    """The compactions that have a context before and after."""
    return [
        card
        for card in state.cards
        if card.context_before is not None and card.context_after is not None
    ]


def _covers(each: int | Fold, wanted: int | None) -> bool:
    if wanted is None:
        return False
    return each.start <= wanted < each.stop if isinstance(each, Fold) else each >= wanted
