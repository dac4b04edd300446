"""What the console and the stop screen share: breakpoints, and previews before a change of the
history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input

from thresher.core.compaction.policy import Mark
from thresher.core.context import EntryId
from thresher.core.debug.breakpoints import BreakKind, Breakpoint
from thresher.core.debug.restore import Preview
from thresher.core.debug.stop import Outside
from thresher.core.errors import ThresherError
from thresher.core.insight.naming import title_of
from thresher.core.state import SessionState

from .. import figures
from ..model import ConsoleModel, DebugActor, Holder
from ..plain import PlainStatic
from ..spans import Line, Tone, column, cut, line_of, span, spread, wrap
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from ..widgets.meter_lines import expected, scale_of
from ..widgets.row_list import RowList
from ..widgets.text_line import TextLine
from .attempts import attempt, tell_error
from .confirm import ConfirmScreen
from .dialog import ENTER, Dialog

LISTED = 12
"""Entries that a preview names."""

ALWAYS = (
    Breakpoint(BreakKind.COMPACTION),
    Breakpoint(BreakKind.OVERFLOW),
    Breakpoint(BreakKind.FAILURE),
)
"""The breakpoints that need no more said; they are in the list whether they are set or not."""


# -- breakpoints -----------------------------------------------------------------------------------


class BreakpointsScreen(Dialog[None]):
    """The breakpoints of a session: Enter sets and clears one, a line below adds others."""

    def __init__(self, actor: Holder, remark: str = "") -> None:
        super().__init__()
        self._actor, self._remark = actor, remark
        self._points: list[Breakpoint] = []
        self.rows = RowList()
        self.input = TextLine(
            words="tokens:20000  percent:80  output:5000  stage:NAME  policy:NAME"
        )

    def compose(self) -> ComposeResult:
        """A title, the list, and a line for another one."""
        with Vertical(classes="dialog wide"):
            yield PlainStatic("the agent stops", classes="dialog-title")
            yield self.rows
            if self._remark:
                yield PlainStatic(self._remark, classes="hint")
            else:
                yield PlainStatic("another one", classes="hint")
                yield self.input
            yield Choices(self._ways())

    def _ways(self) -> list[Choice]:
        """What can be done where the keys go now."""
        tab = key_words(self.app, "app.focus")
        out = Choice(key_words(self.app, "modal.close"), "closes", "close")
        if self.input.has_focus:
            return [Choice(ENTER, "adds it", "add"), Choice(tab, "to the list", "list"), out]
        sets = Choice(key_words(self.app, "list.open"), "sets or clears it", "choose")
        return [sets, out] if self._remark else [sets, Choice(tab, "to another one", "other"), out]

    @on(events.DescendantFocus)
    def _ways_changed(self) -> None:
        self.query_one(Choices).set(self._ways())

    def action_choose(self) -> None:
        """Set the selected one, or clear it."""
        self.rows.action_select()

    def action_other(self) -> None:
        """On to the line for another one."""
        self.input.focus()

    def action_list(self) -> None:
        """Back to the list."""
        self.rows.focus()

    def on_mount(self) -> None:
        """Show what is set."""
        self._refill(0)
        self.rows.focus()

    def _refill(self, cursor: int) -> None:
        mine = self._actor.breakpoints()
        others = [point for point in mine if point not in ALWAYS]
        # One that has just been cleared keeps its line, so that Enter sets it again.
        others += [p for p in self._points if p not in others and p not in ALWAYS]
        self._points = [*ALWAYS, *others]
        if self._remark:
            # A program elsewhere has one place only where it waits.
            self._points = [Breakpoint(BreakKind.COMPACTION)]
        points = self._points

        def draw(at: int, cells: int) -> Line:
            point = points[at]
            on_ = point in mine
            dot = span("● " if on_ else "○ ", Tone.THRESHOLD if on_ else Tone.FAINT)
            words = cut(point.words(), cells)
            left: Line = [dot, span(words, Tone.STRONG if on_ else Tone.MUTED)]
            return spread(left, [span(cut(str(point), 30), Tone.FAINT)], cells)

        self.rows.fill(len(points), draw, cursor=cursor)
        self.rows.styles.height = min(12, len(points))

    @on(RowList.Opened)
    def _toggled(self) -> None:
        point = self._points[self.rows.cursor]
        change = self._actor.clear_break if point in self._actor.breakpoints() else None
        attempt(self, change or self._actor.set_break, str(point))
        self._refill(self.rows.cursor)

    @on(Input.Submitted)
    def action_add(self) -> None:
        """Set the one that is written in the line."""
        written = self.input.value
        if written.strip() and attempt(self, self._actor.set_break, written):
            self.input.value = ""
            self._refill(len(self._points))


def choose_breakpoints(node: Screen[Any], actor: Holder, remark: str = "") -> None:
    """Show the breakpoints, to set and clear them; `remark` is said below the list."""
    node.app.push_screen(BreakpointsScreen(actor, remark))


# -- another program -------------------------------------------------------------------------------


def confirm_skip(node: Screen[Any], outside: Outside, work: Callable[[], None]) -> None:
    """Say what not compacting will come to, and do it if that is wanted."""

    def told(cells: int) -> list[Line]:
        # As many lines for any width as the narrowest dialog needs.
        lines = [[span(line)] for line in wrap(outside.skipping, min(cells, _SKIP_CELLS))]
        return [*lines, []]

    def answered(yes: bool | None) -> None:
        if yes:
            work()

    node.app.push_screen(
        ConfirmScreen(f"{outside.program}: no compaction this time", told), answered
    )


_SKIP_CELLS = 60


# -- taking back and bringing back -----------------------------------------------------------------


def preview_lines(
    state: SessionState, preview: Preview, cells: int, marks: Sequence[Mark] = ()
) -> list[Line]:
    """What would come back, what would go, and what that does to the context; `marks` are the
    thresholds of the policy in force."""
    mark = figures.mark(preview.before.basis)

    def size(ids: tuple[EntryId, ...]) -> str:
        return f"{mark}{sum(state.cost(id) or 0 for id in ids):,}"

    back, gone = preview.restored, preview.removed
    change = f"{preview.tokens:+,}"
    limit, _ = scale_of(state)
    lines: list[Line] = [
        [
            span(
                f"{figures.figure(preview.before)} → {figures.figure(preview.after)}", Tone.STRONG
            ),
            span(f" {preview.before.basis}, {preview.before.scope}  {change}", Tone.MUTED),
        ]
    ]
    if limit is not None:
        after = expected(state)[0] + preview.tokens
        share = figures.percent(max(0, after), limit)
        told = f"the next request would take about {share} of the limit"
        lines.append([span(told, Tone.THRESHOLD if after > limit else Tone.MUTED)])
        fires = min((mark.tokens for mark in marks), default=None)
        if fires is not None and limit >= after >= fires:
            due = f"above the threshold {fires:,}: a compaction would be due again"
            lines.append([span(due, Tone.THRESHOLD)])
    coming = f"+ {figures.count(len(back), 'entry comes', 'entries come')} back"
    lines += [[], [span(coming, Tone.INSERTED), span(f"   {size(back)}", Tone.MUTED)]]
    lines += _named(state, back, Tone.INSERTED, "+", cells)
    if gone:
        going = f"- {figures.count(len(gone), 'entry goes', 'entries go')}"
        lines += [[], [span(going, Tone.REMOVED), span(f"   {size(gone)}", Tone.MUTED)]]
        lines += _named(state, gone, Tone.REMOVED, "-", cells)
    return lines


def _named(
    state: SessionState, ids: tuple[EntryId, ...], tone: Tone, sign: str, cells: int
) -> list[Line]:
    shown = ids if len(ids) <= LISTED else ids[: LISTED - 1]
    mark = figures.mark(state.basis)
    lines: list[Line] = [
        spread(
            [
                span(f"  {sign} ", tone),
                column(str(id), 7, Tone.FAINT),
                span(line_of(title_of(state, id), cells)),
            ],
            [span(f"{mark}{state.cost(id) or 0:,}", Tone.MUTED)],
            cells,
        )
        for id in shown
    ]
    if len(shown) < len(ids):
        lines.append([span(f"    … {len(ids) - len(shown):,} more", Tone.FAINT)])
    return lines


def confirm_undo(node: Screen[Any], model: ConsoleModel, actor: DebugActor) -> None:
    """Show what undoing the newest compaction would do, and do it if that is wanted."""
    _confirm(node, model, actor.preview_undo, actor.undo, "")


def confirm_restore(node: Screen[Any], model: ConsoleModel, actor: DebugActor, id: EntryId) -> None:
    """Show what bringing an entry back would do, and do it if that is wanted."""
    title = f"bring {id} back into the context"
    _confirm(node, model, lambda: actor.preview_restore(id), lambda: actor.restore(id), title)


def _confirm(
    node: Screen[Any],
    model: ConsoleModel,
    preview: Callable[[], Preview],
    work: Callable[[], None],
    title: str,
) -> None:
    try:
        found = preview()
    except ThresherError as error:
        tell_error(node, error)
        return

    def answered(yes: bool | None) -> None:
        if yes and attempt(node, work):
            node.notify(
                f"{figures.figure(found.before)} → {figures.figure(found.after)}, recorded.",
                title=f"Compaction {found.undone} undone" if found.undone else "Brought back",
                markup=False,
            )

    title = title or f"undo compaction {found.undone}"
    state = model.history.state
    marks = model.marks_of(state)
    node.app.push_screen(
        ConfirmScreen(title, lambda cells: preview_lines(state, found, cells, marks)), answered
    )
