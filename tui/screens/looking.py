"""What a console screen opens to look closer: before and after, the context, phases, bookmarks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from thresher.core.errors import ThresherError
from thresher.core.text import clean_line
from thresher.core.views import Card, Row, RowKind

from .. import figures
from ..spans import Line, Tone, column, cut, line_of, span
from ..travel import POSITIONS, Place, named_position
from .finding import FindingScreen

if TYPE_CHECKING:
    from thresher.core.insight.outline import Phase

    from .listing import Entry


class LookingScreen(FindingScreen):
    """Adds the screens and dialogs that lie over the console."""

    # -- before and after, and the context -------------------------------------------------------

    def action_diff(self) -> None:
        """Before and after of the selected compaction, or else of the last one before the
        selected row."""
        from thresher.core.insight.diff import compaction_diff

        from .diff import DiffScreen

        card = self.card_here
        if card is None:
            self.say("There is no compaction here to compare.")
            return
        diff = compaction_diff(card, self.model.state)
        if diff is None:
            self.say("This one changed nothing: there is no before and after.")
            return
        self.pause()
        self.app.push_screen(DiffScreen(self.model.state, diff, card=card))

    @property
    def card_here(self) -> Card | None:
        """The selected compaction, or else the last one before the selected row that changed
        anything, or else the next one."""
        state, at = self.model.state, self.timeline.cursor
        rows = state.rows
        if 0 <= at < len(rows) and rows[at].kind is RowKind.COMPACTION:
            return state.cards[rows[at].card]
        cards = [row.card for row in rows[: at + 1] if row.kind is RowKind.COMPACTION]
        cards = cards[::-1] + [row.card for row in rows[at + 1 :] if row.kind is RowKind.COMPACTION]
        changed = (state.cards[card] for card in cards)
        return next((card for card in changed if card.context_after is not None), None)

    def action_context(self) -> None:
        """The list that the model sees at the position in view."""
        from .context import ContextScreen

        self.pause()
        self.app.push_screen(ContextScreen(self.model))

    def action_compare(self) -> None:
        """Ask for two positions, and show their contexts side by side."""
        from .ask import AskScreen
        from .diff import positions_screen

        def answered(text: str | None) -> None:
            history = self.model.history
            if text is None:
                return
            found = [(name, named_position(history, name)) for name in text.split()]
            wrong = next((name for name, at in found if at is None), None)
            places = [at for _, at in found if at is not None]
            if wrong is not None:
                self.say(f"There is no position {clean_line(wrong, 40)}.")
            elif len(places) != 2:
                self.say("Two positions are needed, such as: c1 c2")
            else:
                self.app.push_screen(positions_screen(history, *places))

        self.app.push_screen(
            AskScreen("compare two positions", "two of them, such as: c1 #120", POSITIONS), answered
        )

    def action_copy(self) -> None:
        """Copy the text of the selected row: a message, the output of a call (without one, the
        call), the summary of a compaction."""
        from ..copying import copy_text
        from .holding import ids_of

        row, state = self.timeline.row, self.model.state
        if row is not None and row.kind is RowKind.COMPACTION:
            card = state.cards[row.card]
            if card.summary:
                copy_text(self.app, card.summary, f"the summary of compaction {card.ordinal}")
                return
        ids = ids_of(state, row) if row is not None else ()
        if not ids:
            self.say("There is no text in this row.")
            return
        copy_text(self.app, state.text(state.known[ids[-1]].item), str(ids[-1]))

    # -- forecast and phases ---------------------------------------------------------------------

    def action_forecast(self) -> None:
        """When each policy would compact next."""
        from .forecast import ForecastScreen

        self.pause()
        self.app.push_screen(ForecastScreen(self.model.state))

    def action_outline(self) -> None:
        """The phases between compactions, to go to one of their turns."""
        from thresher.core.insight.outline import outline

        from .listing import ListScreen

        phases = outline(self.model.history)
        entries: list[Entry[int]] = []
        for phase in phases:
            entries += _phase(phase)
        row = self.timeline.row
        here = row.n if row is not None else 0
        cursor = max((at for at, entry in enumerate(entries) if (entry.value or 0) <= here),
                     default=0)  # fmt: skip
        told = figures.count(len(phases), "phase")
        screen: ListScreen[int] = ListScreen(f"{told} between compactions", entries, cursor=cursor)
        self.app.push_screen(screen, self._chosen)

    def _chosen(self, line: int | None) -> None:
        if line is not None:
            self.go(Place(line))

    # -- bookmarks -------------------------------------------------------------------------------

    def action_bookmark(self) -> None:
        """Set a bookmark at the selected row, or give it another note."""
        from .ask import AskScreen

        row = self.timeline.row
        if row is None:
            self.say("There is no row to mark yet.")
            return
        if self.model.bookmarks.fault:
            self._fault(self.model.bookmarks.fault)
        line = row.n
        known = self.model.bookmarks.get(line)

        def answered(note: str | None) -> None:
            if note is not None:
                self._keep(line, note)

        hint = "Kept beside your own files, never in the session."
        self.app.push_screen(
            AskScreen(f"bookmark at #{line}", "a note, or nothing", hint,
                      known.note if known else ""),
            answered,
        )  # fmt: skip

    def _keep(self, line: int, note: str) -> None:
        clock = getattr(self.app, "clock", time.time)
        try:
            self.model.bookmarks.set(line, note, clock())
        except ThresherError as error:
            self._fault(error.msg)
        self._show_bookmarks()

    def _fault(self, text: str) -> None:
        self.notify(clean_line(text, 400), severity="error", markup=False)

    def _show_bookmarks(self) -> None:
        self.timeline.mark_lines(mark.line for mark in self.model.bookmarks)
        self.show_place()

    def action_bookmarks(self) -> None:
        """List the bookmarks, to go to one."""
        from .listing import Entry, MarkList

        if self.model.bookmarks.fault:
            self._fault(self.model.bookmarks.fault)
        state = self.model.history.state
        marks = list(self.model.bookmarks)
        entries = []
        for mark in marks:
            note: Line = [span(line_of(mark.note, 200))] if mark.note else [
                span(_at(state.rows, mark.line), Tone.MUTED)
            ]  # fmt: skip
            entries.append(
                Entry([span("◆ ", Tone.ACCENT), column(f"#{mark.line}", 8, Tone.FAINT), *note], [],
                      mark.line)
            )  # fmt: skip
        screen = MarkList(entries)

        def closed(line: int | None) -> None:
            for gone in screen.removed:
                try:
                    self.model.bookmarks.remove(gone)
                except ThresherError as error:
                    self._fault(error.msg)
            self._show_bookmarks()
            self._chosen(line)

        self.app.push_screen(screen, closed)


def _at(rows: Sequence[Row], line: int) -> str:
    """What stands at a line, in a word."""
    found = next((row for row in rows if row.n == line), None)
    return found.kind.value if found is not None else ""


def _phase(phase: Phase) -> list[Entry[int]]:
    """A phase and its turns."""
    from .listing import Entry

    ended = ", ".join(str(ordinal) for ordinal in phase.ended_by)
    told = f"until compaction {ended}" if ended else "until now"
    tokens = ""
    if phase.end is not None:
        tokens = f"{figures.thousands(phase.start)} → {phase.end:,} reported"
    entries = [
        Entry(
            [span(f"phase {phase.number}  ", Tone.STRONG), span(told, Tone.SUMMARY if ended else
                  Tone.MUTED)],
            [span(tokens, Tone.MUTED)],
            phase.first,
        )
    ]  # fmt: skip
    work = [figures.count(phase.rounds, "round"), figures.count(phase.calls, "call")]
    if phase.failures:
        work.append(figures.count(phase.failures, "failure"))
    names = ", ".join(f"{cut(name, 20)} {count}" for name, count in phase.tools[:4])
    work += [names] if names else []
    entries.append(Entry([span(f"    {'  '.join(work)}", Tone.MUTED)], [], phase.first))
    for turn in phase.turns:
        name = f"turn {turn.turn}" + (" goes on" if turn.continued else "")
        left: Line = [
            span(f"    {name}  ", Tone.MUTED),
            span(line_of(turn.title, 160), Tone.PLAIN),
        ]
        right: Line = [span(figures.count(turn.rounds, "round"), Tone.MUTED)]
        entries.append(Entry(left, right, turn.line))
    return entries
