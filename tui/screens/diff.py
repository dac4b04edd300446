"""Before and after: the contexts around a compaction, or at two positions, entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from thresher.core.history import History
from thresher.core.insight.alignment import DiffRow, RowKind
from thresher.core.insight.diff import Diff, Filter, Fold, compaction_diff, position_diff
from thresher.core.insight.summary_diff import SummaryDiff, summary_diff
from thresher.core.items import text_length
from thresher.core.state import SessionState
from thresher.core.tokens import Scope
from thresher.core.views import Card

from .. import figures
from ..compared import Comparison, Inside, Shown
from ..copying import copy_text
from ..keys import Where, bindings
from ..spans import Line, Tone, cut, span, spread
from ..theme import STYLES, key_words, keyed
from ..widgets.diff_lines import (
    counts_line,
    filter_words,
    fold_line,
    heading_line,
    opened_lines,
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
from .base import FullScreen

COUNTING_SECONDS = 0.006
"""For how long tokens are counted between two frames."""


class DiffHead(Lines):
    """What is compared, what came of it, and what the columns are; `make` gives it for a width."""

    def __init__(self, make: Callable[[int], list[Line]]) -> None:
        super().__init__()
        self._make = make

    def draw(self, width: int, height: int) -> list[Line]:
        return self._make(width)


class DiffScreen(FullScreen[None]):
    """Two contexts. With a `card` they are those of a compaction, and its neighbours and its
    summary are a key away; without one `title` says which positions they are of."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.DIFF)
    CSS_PATH = STYLES / "diff.tcss"

    def __init__(
        self, state: SessionState, diff: Diff, *, card: Card | None = None, title: str = ""
    ) -> None:
        super().__init__()
        self._state = state
        self._head = DiffHead(self._head_lines)
        self._rows = RowList(id="diff-rows")
        self._preview = Page(id="diff-preview")
        self._preview_title = Title("text", id="diff-preview-title")
        self._begin(diff, card, title)

    def _begin(self, diff: Diff, card: Card | None, title: str = "") -> None:
        self.diff, self.card, self._title = diff, card, title
        self.compared = Comparison(diff)
        self._counts = diff.rows.counts()
        self._summary: SummaryDiff | None = None
        self._drawn = 0

    def compose(self) -> ComposeResult:
        """The head, the rows over the text of the selected one, or the summaries."""
        yield self._head
        yield self._rows
        yield self._preview_title
        yield self._preview
        yield KeyFooter()

    def on_mount(self) -> None:
        """What there is stands in the first picture; tokens are counted between later ones."""
        self._rows.empty = keyed(self.app, "no entry passes the filter; <diff.filter> changes it")
        self._fresh()
        self._counting = self.set_interval(1 / 60, self._count)
        self._rows.focus()

    def on_resize(self) -> None:
        """Another width has other columns."""
        self.call_after_refresh(self._redraw)

    # -- what is shown ---------------------------------------------------------------------------

    def _fresh(self) -> None:
        """From the first change on."""
        first = self.compared.first_change
        self._reshow(cursor=first)
        self._rows.scroll_to(y=max(0, first - 3), animate=False, force=True, immediate=True)

    def _redraw(self) -> None:
        if self._preview.cells != self._drawn:
            self._draw_preview()
            at = self._shown_at
            if self.compared.again(self._opened_lines):
                self._reshow(at)
        if self._summary is not None:
            self._draw_summary()

    def _reshow(self, keep: Shown | None = None, *, cursor: int | None = None) -> None:
        at = self.compared.place(keep) if cursor is None else cursor
        self._rows.fill(len(self.compared.shown), self._line, cursor=at)
        self._head.show()

    def _line(self, at: int, cells: int) -> Line:
        compared = self.compared
        each = compared.shown[at]
        if isinstance(each, Fold):
            key = key_words(self.app, "list.open")
            return fold_line(self.diff, each, compared.tokens_of(each), cells, key)
        if isinstance(each, Inside):
            return compared.inside(each)
        row = self.diff.rows[each]
        return row_line(self._state, self.diff, row, cells, opened=compared.opened(each))

    def _opened_lines(self, row: DiffRow) -> list[Line]:
        return opened_lines(self.diff, row, self._rows.cells)

    def _head_lines(self, cells: int) -> list[Line]:
        compared = self.compared
        left: Line = [span(f"{self._heading}  ", Tone.STRONG)]
        right: Line = []
        if self.card is not None:
            told = [str(self.card.trigger).replace("_", " "), cut(self.card.stage, 24)]
            left.append(span(", ".join(filter(None, told)), Tone.MUTED))
            right = [span(figures.change(self.card.before, self.card.after), Tone.MUTED)]
        elif compared.totals is not None:
            before = sum(total.before for total in compared.totals.values())
            after = sum(total.after for total in compared.totals.values())
            mark = figures.mark(self.diff.basis)
            told_tokens = f"{mark}{before:,} → {mark}{after:,} {self.diff.basis}, messages only"
            right = [span(told_tokens, Tone.MUTED)]
        first = spread(left, right, cells)
        if self._summary is not None:
            return [first, summary_counts(self._summary, cells)]
        counts = counts_line(self._counts, compared.totals, self.diff.basis, cells)
        # The rows end one cell before the head does, where their scrollbar is.
        columns = heading_line(cells - 1, filter_words(compared.by))
        return [first, counts, self._counted_by(cells), columns]

    def _counted_by(self, cells: int) -> Line:
        """Whose figures these are, where those of the entries do not come to those of the card."""
        card, totals = self.card, self.compared.totals
        if card is None or totals is None:
            return []
        for told, ours in (
            (card.before, sum(total.before for total in totals.values())),
            (card.after, sum(total.after for total in totals.values())),
        ):
            if told is None or told.scope is not Scope.MESSAGES:
                continue
            if abs(told.value - ours) * 10 > max(told.value, ours):
                who = cut(card.policy, 24) or "the program"
                words = f"entries: counted here, messages only; the figure above: as {who} counted"
                return [span(cut(words, cells), Tone.FAINT)]
        return []

    @property
    def _heading(self) -> str:
        if self.card is None:
            return self._title
        what = "summary" if self._summary is not None else "before and after"
        return f"compaction {self.card.ordinal}: {what}" if self.card.ordinal else what

    def _count(self) -> None:
        """A few more token figures, until all are known."""
        if self.compared.count(COUNTING_SECONDS):
            self._counting.pause()
            self._head.show()
            self._rows.again()

    @on(RowList.Selected)
    def _selected(self) -> None:
        self._draw_preview()

    @property
    def _shown_at(self) -> Shown | None:
        at, shown = self._rows.cursor, self.compared.shown
        return shown[at] if 0 <= at < len(shown) else None

    @property
    def row_at(self) -> int | None:
        """The row of the diff that is selected; None on a fold."""
        return self.compared.row(self._rows.cursor)

    def _draw_preview(self) -> None:
        cells = self._preview.cells_in(self.app.size.width)
        if cells <= 0:
            return
        self._drawn = cells
        at, active = self.row_at, self._preview.has_focus
        if at is None:
            told = "kept as they were" if self._shown_at is not None else "text"
            self._preview_title.set(name=told, active=active)
            self._preview.fill([])
            return
        row = self.diff.rows[at]
        entry = next(entry for entry in reversed(self.diff.entries(row)) if entry is not None)
        characters = figures.count(text_length(entry.item), "character")
        enter = "reads all"
        if row.kind is RowKind.REWRITTEN and not isinstance(self._shown_at, Inside):
            enter = "folds it" if self.compared.opened(at) else "opens it"
        hint = keyed(self.app, f"<list.open> {enter}   <diff.copy> copies")
        remark: Line = [span(f"{characters}   {hint}", Tone.FAINT)]
        opened = self.compared.opened(at)
        name = f"{entry.id}  as it is now" if opened else preview_title(self.diff, row)
        self._preview_title.set(name=name, remark=remark, active=active)
        self._preview.fill(preview_lines(self.diff, row, cells, opened=opened))

    @on(Page.FocusMoved)
    @on(RowList.FocusMoved)
    def _focus_moved(self) -> None:
        self._draw_preview_title()

    def _draw_preview_title(self) -> None:
        self._preview_title.set(remark=self._preview_title.remark, active=self._preview.has_focus)

    # -- moving ----------------------------------------------------------------------------------

    @on(RowList.JumpWanted)
    def _jump(self, message: RowList.JumpWanted) -> None:
        found = self.compared.jump(self._rows.cursor, message.step)
        if found is None:
            side = "after" if message.step > 0 else "before"
            self.notify(f"There is no change {side} this one.", markup=False)
        else:
            self._rows.select(found, centre=True)

    @on(RowList.Opened)
    def _opened(self) -> None:
        each, at = self._shown_at, self.row_at
        if isinstance(each, Fold):
            self.compared.unfold(each)
            self._reshow(each)
        elif isinstance(each, int) and self.diff.rows[each].kind is RowKind.REWRITTEN:
            lines = self.compared.turn(each, self._opened_lines)
            self._reshow(each)
            self._rows.reveal(lines)
        elif at is not None:
            from .text import TextScreen

            row = self.diff.rows[at]
            title = f"{preview_title(self.diff, row)}  {self.diff.title(row)}"
            self.app.push_screen(TextScreen(title, self._whole(at)))

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
        at = self.row_at
        if at is None:
            self.notify("There is no text in this row.", markup=False)
            return
        before, after = self.diff.entries(self.diff.rows[at])
        entry = before or after
        assert entry is not None  # a row has at least one side
        text = self.diff.text(entry.item)
        copy_text(self.app, text, str(entry.id))

    def action_expand(self) -> None:
        """Unfold all that was kept, or fold it."""
        keep = self._shown_at
        self.compared.expand()
        self._reshow(keep)

    def action_filter(self) -> None:
        """Choose what is shown."""
        from .filter import FilterScreen

        keep = self._shown_at

        def chosen(by: Filter | None) -> None:
            if by is not None and by != self.compared.by:
                self.compared.filter(by)
                self._reshow(keep)

        self.app.push_screen(FilterScreen(self.diff, self.compared.by), chosen)

    async def action_summary(self) -> None:
        """The summary against the one before, or the entries again."""
        if self._summary is not None:
            self._summary = None
            self.remove_class("summary")
            self._rows.focus()
            self._head.show()
            return
        card = self.card
        self._summary = summary_diff(self._state, card.ordinal) if card is not None else None
        if self._summary is None:
            self.notify("There is no summary here that could be read.", markup=False)
            return
        page = next(iter(self.query("#diff-summary").results(Page)), None)
        if page is None:
            # Not many look at it, and a widget more makes every opening slower.
            page = Page(id="diff-summary")
            await self.mount(page, before=self.query_one(KeyFooter))
        self.add_class("summary")
        page.focus()
        self._head.show()
        self.call_after_refresh(self._draw_summary)

    def _draw_summary(self) -> None:
        if self._summary is not None:
            page = self.query_one("#diff-summary", Page)
            page.fill(summary_diff_lines(self._summary, page.cells))

    async def action_compaction(self, step: int) -> None:
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
        in_summary = self._summary is not None
        self.remove_class("summary")
        self._begin(diff, cards[at])
        self._counting.resume()
        self._fresh()
        if in_summary:
            await self.action_summary()

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
