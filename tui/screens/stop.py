"""The stop: the agent stands still, and its user looks at what is about to happen and changes it.

What is shown is the debugger's own stop, which is made anew after every decision. While the agent
works on a decision (a summary is being written) the screen stays; it closes when the agent goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one
from textual.screen import Screen

from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Point, Stop
from thresher.core.text import clean
from thresher.core.views import Card, CardStatus

from .. import figures
from ..bridge import TICK_SECONDS
from ..keys import Where, bindings
from ..model import ConsoleModel, DebugActor
from ..spans import Line, Tone, span
from ..theme import key_words
from ..widgets.footer import KeyFooter
from ..widgets.lines import Lines
from ..widgets.page import Page
from ..widgets.row_list import RowList
from ..widgets.stop_lines import (
    basis_of,
    entry_lines,
    head_lines,
    lines_of,
    request_lines,
    row_line,
    summarised,
    summary_lines,
    why_of,
)
from ..widgets.title import Title
from .ask import AskScreen
from .debugging import attempt, choose_breakpoints, choose_policy, confirm_undo
from .write import WriteScreen, Written

NARROW_BELOW = 110
LOW_BELOW = 30
VIEWS = ("entry", "request", "summary")

_RUNNING = (CardStatus.RUNNING, CardStatus.PROPOSED)


class StopHead(Lines):
    """Where it stands still, and what the edit comes to."""

    DEFAULT_CSS = """
    StopHead { height: 8; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.content: tuple[Stop | None, ConsoleModel, Sequence[held.Line]] | None = None

    def draw(self, width: int, height: int) -> list[Line]:
        if self.content is None:
            return []
        stop, model, lines = self.content
        apply = key_words(self.app, "stop.apply")
        return head_lines(stop, model.history.state, lines, width, height, apply)[:height]


class StopScreen(Screen[None]):
    """The entries of the context with what would happen to each, and what can be done about it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.STOP)
    CSS_PATH = "../styles/stop.tcss"

    head = query_one(StopHead)
    rows = query_one(RowList)
    page = query_one(Page)

    def __init__(self, model: ConsoleModel, actor: DebugActor) -> None:
        super().__init__()
        self.model, self.actor = model, actor
        self.lines: list[held.Line] = []
        self.stop: Stop | None = None
        self.view = "entry"
        self._seen: tuple[object, ...] = ()
        self._pass = ""
        self._draft = ""
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
        stop, state = self.actor.proposal(), self.model.history.state
        card = self._card
        if stop is None and (card is None or card.status not in _RUNNING):
            self._gone_on(card)
            return
        streamed = card.streamed if card is not None and stop is None else ""
        seen = (stop, state.pins, streamed, len(state.context))
        if all(a is b for a, b in zip(seen[:2], self._seen[:2], strict=False)) and (
            seen[2:] == self._seen[2:]
        ):
            return
        fresh = stop is not None and (self.stop is None or stop.point is not self.stop.point)
        self._seen, self.stop = seen, stop
        if stop is None:
            self.view = "summary"
        else:
            self._pass = stop.pass_id
            if fresh:
                self._arrived(stop)
            self.lines = lines_of(stop, state)
        self._fill()

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

    def _fill(self) -> None:
        if not self.is_mounted:
            return
        state, here = self.model.history.state, self.line
        at = self._place(here) if here is not None else 0
        pins, told = state.pins, summarised(self.stop)
        basis = basis_of(self.stop, state)
        lines = self.lines

        def draw(at: int, cells: int) -> Line:
            return row_line(state, lines[at], why_of(lines[at], pins, told), basis, cells)

        self.head.content = (self.stop, self.model, lines)
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
        match self.view:
            case "request":
                lines = request_lines(stop.pending if stop is not None else None, stop, cells)
            case "summary":
                card = self._card
                streamed = card.streamed if card is not None else ""
                keys = key_words(self.app, "stop.apply"), key_words(self.app, "stop.edit")
                lines = summary_lines(stop, streamed, cells, keys)
            case _:
                line = self.line
                why = why_of(line, state.pins, summarised(stop)) if line is not None else ""
                lines = entry_lines(state, line, why, basis_of(stop, state), cells)
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

    # -- decisions -------------------------------------------------------------------------------

    def _do(self, work: object, *arguments: object) -> None:
        attempt(self, work, *arguments)
        self.tick()

    def action_apply(self) -> None:
        """Ask for the summary as shown, apply the edit as shown, or go on where none is held."""
        if self.stop is not None and self.stop.pass_id:
            self._do(self.actor.decide, "apply")
        else:
            self._do(self.actor.go_on)

    def action_skip_pass(self) -> None:
        """Not this time."""
        self._do(self.actor.decide, "skip")

    def action_step_round(self) -> None:
        """Go on, and stop after the next round."""
        self._do(self.actor.step)

    def action_go_on(self) -> None:
        """Go on to the next breakpoint."""
        self._do(self.actor.go_on)

    def action_pin(self) -> None:
        """Let the selected entry survive every compaction, or let it go again."""
        line = self._of_context("pinned")
        if line is None:
            return
        id = line.entry.id
        if id in self.model.history.state.pins:
            self._do(self.actor.unpin, (id,))
        else:
            self._do(self.actor.pin, (id,))

    def action_drop(self) -> None:
        """Let the selected entry go with this edit, or leave it to the policy again."""
        line = self._of_context("dropped")
        if line is None or self.stop is None:
            return
        id = line.entry.id
        self._do(self.actor.keep if id in self.stop.drops else self.actor.drop, (id,))

    def _of_context(self, what: str) -> held.Line | None:
        line = self.line
        if line is not None and line.fate in (Fate.INSERT, Fate.REPLACEMENT):
            self.notify(f"It is not in the context yet, so it cannot be {what}.", markup=False)
            return None
        return line

    def action_focus_text(self) -> None:
        """Say what the summary must keep above all, and have it asked for anew."""
        situation = self.stop.situation if self.stop is not None else None
        before = situation.focus if situation is not None else ""

        def answered(text: str | None) -> None:
            if text is not None:
                self._do(self.actor.focus, text)

        hint = "The summary is asked for with it."
        screen = AskScreen("what must the summary keep above all?", "a focus", hint, clean(before))
        self.app.push_screen(screen, answered)

    def action_edit(self) -> None:
        """Write the summary, or change the one that is there, before it is applied."""
        stop = self.stop
        edit = stop.proposal.edit if stop is not None and stop.proposal is not None else None
        summary = edit.summary if edit is not None and stop and stop.pending is None else None
        if stop is None or (stop.pending is None and summary is None):
            self.notify("This compaction has no summary to edit.", markup=False)
            return
        text = clean(summary.text) if summary is not None else ""

        def answered(written: Written | None) -> None:
            if written is None:
                return
            if not written.done:
                self._draft = written.text
            elif written.text != text:
                self._do(self.actor.write_summary, written.text)

        title = "the summary" if summary is not None else "write the summary"
        self.app.push_screen(WriteScreen(title, self._draft or text), answered)

    def action_fresh(self) -> None:
        """Ask for another summary."""
        self._do(self.actor.fresh_summary)

    def action_policy(self) -> None:
        """Let another policy make the proposal of this pass."""
        choose_policy(self, self.model, lambda name: self._do(self.actor.choose_policy, name))

    def action_breakpoints(self) -> None:
        """Set and clear breakpoints."""
        choose_breakpoints(self, self.actor)

    def action_undo(self) -> None:
        """Take the last compaction back."""
        confirm_undo(self, self.model, self.actor)
