"""The stop: the agent stands still, and its user looks at what is about to happen and changes it.

What is shown is the debugger's own stop, which is made anew after every decision. While the agent
works on a decision (a summary is being written) the screen stays; it closes when the agent goes on.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one

from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Point, Stop
from thresher.core.insight.naming import item_title
from thresher.core.text import clean
from thresher.core.views import Card, CardStatus

from .. import figures
from ..bridge import TICK_SECONDS
from ..copying import copy_text
from ..keys import Where, bindings
from ..model import ConsoleModel, Holder
from ..spans import Line, Tone, span
from ..theme import STYLES, key_words
from ..widgets import outside_lines
from ..widgets.footer import KeyFooter
from ..widgets.page import Page
from ..widgets.row_list import RowList
from ..widgets.stop_head import StopHead
from ..widgets.stop_lines import basis_of, entry_lines, lines_of, row_line, summarised, why_of
from ..widgets.stop_summary_lines import request_lines, request_text, summary_lines
from ..widgets.title import Title
from .deciding import DecidingScreen

NARROW_BELOW = 110
LOW_BELOW = 30
VIEWS = ("entry", "request", "summary")

_RUNNING = (CardStatus.RUNNING, CardStatus.PROPOSED)


class StopScreen(DecidingScreen):
    """The entries of the context with what would happen to each, and what can be done about it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.STOP)
    CSS_PATH = STYLES / "stop.tcss"

    head = query_one(StopHead)
    rows = query_one(RowList)
    page = query_one(Page)

    def __init__(self, model: ConsoleModel, holder: Holder) -> None:
        super().__init__(model, holder)
        self.lines: list[held.Line] = []
        self.view = "entry"
        self._seen: tuple[object, ...] = ()
        self.decided: Stop | None = None
        """The newest stop there was: while the agent works on a decision, its figures stay."""
        self._pass = ""
        self._filling = False
        self.leaving = False
        """It is about to close: what comes now is for whoever is below."""

    def compose(self) -> ComposeResult:
        """The head over the list of entries and the text of one."""
        yield StopHead()
        with Horizontal(id="stop-body"):
            with Vertical(id="stop-list"):
                yield Title("entries", id="stop-list-title")
                yield RowList(empty="the context is empty")
            with Vertical(id="stop-text"):
                yield Title("entry", id="stop-text-title")
                yield Page()
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show the stop, and look for a new one about 12 times a second."""
        self._layout(self.size.width, self.size.height)
        self.tick()
        self.set_focus(self.rows)
        self.set_interval(TICK_SECONDS, self.tick)

    def on_resize(self, event: events.Resize) -> None:
        """One column or two."""
        self._layout(event.size.width, event.size.height)
        self.call_after_refresh(self._fill)

    def _layout(self, width: int, height: int) -> None:
        self.set_class(width < NARROW_BELOW, "one-column")
        self.set_class(height < LOW_BELOW, "low")

    # -- what is shown ---------------------------------------------------------------------------

    def tick(self) -> None:
        """Take the stop as it is now; close when the agent has gone on."""
        if self.leaving:
            return
        stop, state = self.holder.proposal(), self.model.history.state
        card = self._card
        if stop is None and (card is None or card.status not in _RUNNING):
            self._gone_on(card)
            return
        streamed = card.streamed if card is not None and stop is None else ""
        outside = self.model.outside if stop is not None and stop.outside is not None else None
        left = outside.seconds_left if outside is not None else 0
        seen = (stop, state.pins, streamed, len(state.context), left)
        if all(a is b for a, b in zip(seen[:2], self._seen[:2], strict=False)) and (
            seen[2:] == self._seen[2:]
        ):
            return
        if seen[:-1] == self._seen[:-1]:
            self._seen = seen
            self.head.show()
            return
        fresh = stop is not None and (self.stop is None or stop.point is not self.stop.point)
        here = self.line
        self._seen, self.stop = seen, stop
        self.decided = stop or self.decided
        self.refresh_bindings()
        if stop is None:
            self.view = "summary"
        else:
            self._pass = stop.pass_id
            if fresh:
                self._arrived(stop)
            self.lines = lines_of(stop, state)
        self._fill(here)

    def _arrived(self, stop: Stop) -> None:
        edit = stop.proposal.edit if stop.proposal is not None else None
        written = stop.point is Point.EDIT and edit is not None and edit.summary is not None
        self.view = "summary" if written else "entry"
        self._draft = ""

    @property
    def _card(self) -> Card | None:
        """The compaction that is held."""
        cards = reversed(self.model.history.state.cards)
        return next((card for card in cards if self._pass and card.pass_id == self._pass), None)

    def _gone_on(self, card: Card | None) -> None:
        if card is not None and card.status is CardStatus.DONE:
            told = f"{figures.change(card.before, card.after)}"
            marks = "; ".join(card.marks)
            self._tell(f"Compaction {card.ordinal} applied", f"{told}. {marks}".strip())
        elif card is not None:
            self._tell(f"Compaction {card.status}", card.reason)
        elif self.model.outside is not None and self.stop is not None and self.stop.outside:
            self._tell(f"{self.stop.outside.program} goes on", f"{self.model.outside.ended}.")
        self.leaving = True
        if self.is_active:
            self.dismiss()
        elif self.is_attached and self in self.app.screen_stack:
            # A dialog over it is about what is no longer there.
            while self.app.screen is not self:
                self.app.pop_screen()
            self.dismiss()

    def _tell(self, title: str, text: str) -> None:
        self.app.notify(clean(text[:300]), title=title, markup=False)

    def _fill(self, here: held.Line | None = None) -> None:
        """Draw everything anew, with `here` selected: by default what is selected now."""
        if not self.is_mounted:
            return
        state, here = self.model.history.state, here or self.line
        at = self._place(here) if here is not None else 0
        pins, told = state.pins, summarised(self.decided)
        basis = basis_of(self.decided, state)
        lines = self.lines

        def draw(at: int, cells: int) -> Line:
            return row_line(state, lines[at], why_of(lines[at], pins, told), basis, cells)

        self.head.content, self.head.decided = (self.stop, self.model, lines), self.decided
        self.head.show()
        self._filling = True
        self.rows.fill(len(lines), draw, cursor=at)
        self._filling = False
        self._shown = self._key(self.line)
        self._titles()
        self._show_text()

    @property
    def line(self) -> held.Line | None:
        """The selected entry."""
        at = self.rows.cursor
        return self.lines[at] if 0 <= at < len(self.lines) else None

    _shown: object = None

    def _key(self, line: held.Line | None) -> object:
        return (line.entry.id, line.fate is Fate.REPLACE) if line is not None else None

    def _place(self, line: held.Line) -> int:
        """Where the entry that was selected is now, else the same place."""
        same = (at for at, each in enumerate(self.lines) if each.entry.id == line.entry.id)
        return next(same, self.rows.cursor)

    def _show_text(self) -> None:
        state, stop, cells = self.model.history.state, self.stop, max(20, self.page.cells)
        outside = stop.outside if stop is not None else None
        match self.view:
            case "request" if outside is not None:
                lines = outside_lines.request_lines(outside, cells)
            case "summary" if outside is not None and stop is not None:
                lines = outside_lines.summary_lines(stop, cells)
            case "request":
                lines = request_lines(stop.pending if stop is not None else None, stop, cells)
            case "summary":
                card = self._card
                streamed = card.streamed if card is not None else ""
                keys = key_words(self.app, "stop.apply"), key_words(self.app, "stop.edit")
                lines = summary_lines(stop, streamed, cells, keys)
            case _:
                line = self.line
                told = summarised(self.decided)
                why = why_of(line, state.pins, told) if line is not None else ""
                read = key_words(self.app, "stop.read")
                lines = entry_lines(state, line, why, basis_of(self.decided, state), cells, read)
        self.page.fill(lines)

    def _titles(self) -> None:
        at = self.rows.cursor + 1
        remark: Line = [span(f"{at:,} of {len(self.lines):,}", Tone.MUTED)]
        self.query_one("#stop-list-title", Title).set(remark=remark, active=self.rows.has_focus)
        views: Line = []
        for name in VIEWS:
            views += [span("  ")] if views else []
            views.append(span(name, Tone.STRONG if name == self.view else Tone.FAINT))
        views = [span(f"{key_words(self.app, 'stop.view')}: ", Tone.MUTED), *views]
        title = self.query_one("#stop-text-title", Title)
        title.set(remark=views, active=self.page.has_focus, name=self.view)

    @on(RowList.Selected)
    def _selected(self) -> None:
        key = self._key(self.line)
        if self._filling or key == self._shown:
            return
        self._shown, self.view = key, "entry"
        self._titles()
        self._show_text()

    @on(RowList.FocusMoved)
    @on(Page.FocusMoved)
    def _focus_moved(self) -> None:
        self._titles()

    @on(RowList.Opened)
    def _opened(self) -> None:
        self.view = "entry"
        self._read()

    def _read(self) -> None:
        self.add_class("reading")
        self._titles()
        self.call_after_refresh(self._show_text)
        self.set_focus(self.page)

    @on(RowList.JumpWanted)
    def _jump(self, message: RowList.JumpWanted) -> None:
        """To where the next run of another fate begins."""
        at, step = self.rows.cursor, message.step
        while 0 <= at + step < len(self.lines):
            at += step
            before = self.lines[at - 1].fate if at else None
            if self.lines[at].fate is not before:
                break
        self.rows.select(at)

    def action_view(self) -> None:
        """The entry, the request for the summary, the summary."""
        reading = self.has_class("reading") or not self.has_class("one-column")
        if reading:
            self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        else:
            self.view = "request"
            self.add_class("reading")
            self.set_focus(self.page)
        self._titles()
        self.call_after_refresh(self._show_text)

    def _whole(self) -> tuple[str, str]:
        """Name and whole text of what is in view."""
        stop, state, card = self.stop, self.model.history.state, self._card
        if self.view == "request":
            pending = stop.pending if stop is not None else None
            return "the request for the summary", request_text(pending, state) if pending else ""
        if self.view == "summary":
            edit = stop.proposal.edit if stop is not None and stop.proposal is not None else None
            summary = edit.summary if edit is not None else None
            if summary is not None and stop is not None and stop.pending is None:
                return "the summary", summary.text
            return "the summary so far", card.streamed if card is not None else ""
        line = self.line
        return (str(line.entry.id), state.text(line.entry.item)) if line is not None else ("", "")

    def action_read_all(self) -> None:
        """The whole text of what is in view, on a screen of its own."""
        from .text import TextScreen

        name, text = self._whole()
        if not text:
            self.notify("There is no text here yet.", markup=False)
            return
        line = self.line
        title = item_title(self.model.history.state, line.entry.item) if line is not None else ""
        self.app.push_screen(TextScreen(f"{name}  {title}" if self.view == "entry" else name, text))

    def action_copy(self) -> None:
        """Copy the text of what is in view, as it was recorded or written."""
        name, text = self._whole()
        if not text:
            self.notify("There is no text here yet.", markup=False)
            return
        copy_text(self.app, text, name)

    def action_leave(self) -> None:
        """Back to the list, else to the console; the agent goes on waiting."""
        if self.has_class("reading") and self.has_class("one-column"):
            self.remove_class("reading")
            self.set_focus(self.rows)
        elif self.page.has_focus:
            self.set_focus(self.rows)
        else:
            self.leaving = True
            self.dismiss()
