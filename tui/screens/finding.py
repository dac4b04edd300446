"""Search on the console: matches as one types, then from match to match. It never holds a frame."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on
from textual.getters import query_one

from thresher.core.text import ELLIPSIS

from ..model import ConsoleModel
from ..spans import Line, Tone, line_of, span, width
from ..travel import Place
from ..widgets.find_bar import FindBar, FindInput
from ..widgets.page import Page
from ..widgets.timeline import Timeline
from ..widgets.timeline_rows import fate_line
from .travel import TravelScreen

if TYPE_CHECKING:
    from thresher.core.insight.find import Hit, Index, Query

BETWEEN = span("   ", Tone.FAINT)
SNIPPET = 400
"""Characters around a match that are looked at for the line above."""


class FindingScreen(TravelScreen):
    """Adds the find line. Matches are of the whole session, whatever position is in view."""

    find_bar = query_one(FindBar)

    def __init__(self, model: ConsoleModel) -> None:
        super().__init__(model)
        self._index: Index | None = None
        self._query: Query | None = None
        self._hits: list[Hit] = []
        self._hit = -1
        self._complete = False
        self._origin = 0

    @property
    def finding(self) -> bool:
        """Whether the find line is open."""
        return bool(self.find_bar.display)

    def action_find(self) -> None:
        """Open the find line."""
        row = self.timeline.row
        self._origin = row.n if row is not None else 0
        if not self.finding:
            # So that Backspace leads back to where the search began.
            self.remember()
        self.set_class(True, "finding")
        self.find_bar.open()
        if self.find_bar.text:
            self._search(self.find_bar.text)

    def close_find(self) -> None:
        """Close the find line, and mark nothing any more."""
        self.workers.cancel_group(self, "find")
        self.set_class(False, "finding")
        self.find_bar.close()
        self._hits, self._hit, self._query = [], -1, None
        self._mark(())
        self.set_focus(self.timeline)

    @on(FindBar.Changed)
    def _typed(self, message: FindBar.Changed) -> None:
        if self.finding:
            self._search(message.text)

    def _search(self, text: str) -> None:
        self.run_worker(
            self._searching(text), name="find", group="find", exclusive=True, exit_on_error=False
        )

    async def _searching(self, text: str) -> None:
        """All matches, slice by slice; the screen draws and takes keys in between."""
        from thresher.core.insight.find import Index, parse

        query = parse(text)
        if self._index is None:
            self._index = Index(self.model.history)
        before = self._hits if self._complete and self._index.complete else None
        narrower = before is not None and self._query is not None and query.narrows(self._query)
        self._query, self._complete = query, False
        if query.empty:
            self._hits, self._hit = [], -1
            self._mark(())
            self.find_bar.tell(-1, 0, searching=False, faults=query.faults)
            return
        self._mark(query.words)
        for _ in self._index.build():
            self.find_bar.tell(-1, 0, searching=True)
            await asyncio.sleep(0)
        hits: list[Hit] = []
        for some in self._index.search(query, before if narrower else None):
            hits += some
            self.find_bar.tell(-1, len(hits), searching=True)
            await asyncio.sleep(0)
        self._hits, self._complete = hits, True
        nearest = next((at for at, hit in enumerate(hits) if hit.line >= self._origin), None)
        self._show_hit(len(hits) - 1 if nearest is None else nearest)

    def _mark(self, words: tuple[str, ...]) -> None:
        self.timeline.mark(words)
        self.detail.mark(words)

    def _show_hit(self, at: int) -> None:
        self._hit = at
        if not 0 <= at < len(self._hits):
            self._hit = -1
        else:
            hit = self._hits[at]
            self.go(Place(hit.line, hit.id), remember=False)
            self.detail.look_for(hit.id)
        self._tell()

    def _tell(self) -> None:
        faults = self._query.faults if self._query is not None else ()
        self.find_bar.tell(
            self._hit, len(self._hits), searching=False, faults=faults, snippet=self._snippet()
        )

    def _snippet(self) -> Line:
        """What became of the match, and a piece of it; where nothing matches, what no search of
        this record can find."""
        from thresher.core.insight.find import snippet

        hit = self._hits[self._hit] if 0 <= self._hit < len(self._hits) else None
        if hit is None or self._query is None:
            return self._not_searched()
        entry = self.model.history.state.known.get(hit.id) if hit.id is not None else None
        name: Line = [span(f"{hit.id or f'#{hit.line}'}  ", Tone.FAINT)]
        if entry is None:
            return [*name, span(hit.what.value, Tone.MUTED)]
        # The detail is where the match is, which may be far below what became of it.
        fate = self.model.history.state.fate(entry.id)
        name += [*fate_line(fate, self.size.width * 3 // 5), BETWEEN]
        cells = max(20, self.size.width - width(name))
        text = self.model.history.state.text(entry.item)
        before, word, after = snippet(text, self._query, min(SNIPPET, cells))
        return [
            *name,
            span("" if text.startswith(before + word) else ELLIPSIS, Tone.FAINT),
            span(line_of(before, cells), Tone.MUTED),
            span(line_of(word, cells), Tone.FOUND),
            span(line_of(after, cells), Tone.MUTED),
            span("" if text.endswith(word + after) else ELLIPSIS, Tone.FAINT),
        ]

    def _not_searched(self) -> Line:
        cut = self._index.cut if self._index is not None else 0
        if not (cut and self._query is not None and self._query.words and not self._hits):
            return []
        told = "1 output was cut before the model saw it"
        if cut > 1:
            told = f"{cut:,} outputs were cut before the model saw them"
        told += "; what was cut off is not searched"
        return [span(told, Tone.MUTED)]

    @on(Timeline.JumpWanted)
    @on(FindInput.JumpWanted)
    @on(Page.JumpWanted)
    def _jump_wanted(
        self, message: Timeline.JumpWanted | FindInput.JumpWanted | Page.JumpWanted
    ) -> None:
        self.find_again(message.step)

    def find_again(self, step: int) -> None:
        """To the next match, or the one before; round at the ends."""
        if not self.finding:
            self.action_find()
            return
        if not self._hits:
            self.say("Nothing was found to go to.")
            return
        # From where the reader is now, who may have gone elsewhere in between.
        self._show_hit((self._hit + step) % len(self._hits))

    @on(FindInput.Done)
    def _done(self) -> None:
        if not self.find_bar.text.strip():
            self.close_find()
            return
        if self.has_class("one-column") and self._hits:
            self.show_detail()
        else:
            self.set_focus(self.timeline)

    def show_detail(self) -> None:
        """Bring the detail of the selected row to where it is seen."""
        self.set_focus(self.detail)

    @on(FindInput.Closed)
    def _find_closed(self) -> None:
        self.close_find()
