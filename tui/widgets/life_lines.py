"""The life of an entry as lines of spans, each step a link; and what a summary stands for."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.context import EntryId
from thresher.core.insight.lineage import Life, Standing, Step, StepKind
from thresher.core.insight.naming import title_of
from thresher.core.state import SessionState
from thresher.core.text import clean

from .. import figures
from ..spans import Line, Tone, clip, column, cut, line_of, span, spread, wrap
from ..travel import Place
from .page import Sheet
from .timeline_rows import tokens_of

STEPS = 60
LISTED = 500

_SIGNS: dict[StepKind, tuple[str, Tone]] = {
    StepKind.CREATED: ("+", Tone.INSERTED),
    StepKind.CAPPED: ("~", Tone.REWRITTEN),
    StepKind.KEPT: ("=", Tone.KEPT),
    StepKind.REWRITTEN: ("~", Tone.REWRITTEN),
    StepKind.REMOVED: ("-", Tone.REMOVED),
    StepKind.ABSORBED: ("Σ", Tone.SUMMARY),
    StepKind.ROLLED_BACK: ("-", Tone.REMOVED),
    StepKind.UNDONE: ("-", Tone.REMOVED),
    StepKind.RESTORED: ("+", Tone.INSERTED),
    StepKind.OUTSIDE: ("·", Tone.FAINT),
    StepKind.IN_CONTEXT: ("=", Tone.KEPT),
}
_HEAD = "Life   "
_LEFT = (StepKind.REMOVED, StepKind.ABSORBED, StepKind.REWRITTEN)


def life_lines(sheet: Sheet, state: SessionState, life: Life, cells: int, here: int) -> None:
    """The steps of a life, oldest first. `here` is the journal line in view: later steps are
    told as such."""
    sheet.add([])
    first, *rest = wrap(clean(life.seen, keep_newlines=False), cells - len(_HEAD))
    sheet.add(clip([span(_HEAD, Tone.ACCENT), span(first, Tone.STRONG)], cells))
    for part in rest:
        sheet.add(clip([span(" " * len(_HEAD)), span(part, Tone.STRONG)], cells))
    steps = list(life.steps)
    left_out = len(steps) - STEPS
    if left_out > 0:
        # The ends say most: how it came, and how it went.
        steps = [*steps[: STEPS // 3], *steps[-(STEPS - STEPS // 3) :]]
    for step in steps:
        _step(sheet, state, step, cells, later=step.line > here)
    if left_out > 0:
        sheet.add([span(f"  … {left_out:,} steps in between", Tone.MUTED)])


def _step(sheet: Sheet, state: SessionState, step: Step, cells: int, *, later: bool) -> None:
    glyph, tone = _SIGNS[step.kind]
    to = _leads(step)
    right: Line = [span(f"later #{step.line}" if later else f"#{step.line}", Tone.FAINT)]
    words = clean(step.words, keep_newlines=False)
    if step.kind is StepKind.IN_CONTEXT:
        words = f"{words} to the end"
    room = cells - 4 - len(right[0][0]) - 2
    first, *rest = wrap(words, room)
    body = Tone.MUTED if later or step.kind is StepKind.KEPT else Tone.PLAIN
    lines: list[Line] = [
        spread([span(f"  {glyph} ", tone), span(first, body)], right if to else [], cells)
    ]
    lines += [clip([span("    "), span(part, body)], cells) for part in rest]
    if step.reason or (step.kind in _LEFT and step.ordinal):
        card = state.card_of(step.ordinal) if step.ordinal else None
        reason = step.reason or (card.reason if card is not None else "")
        told = wrap(f"why: {clean(reason, keep_newlines=False)}", cells - 6) if reason else []
        lines += [clip([span("      "), span(part, Tone.MUTED)], cells) for part in told[:4]]
    sheet.add(*lines, to=to)


def _leads(step: Step) -> Place | None:
    """Where a step leads: to the compaction that it tells of, else to the entry."""
    if step.kind is StepKind.IN_CONTEXT:
        return None
    edits = (StepKind.ROLLED_BACK, StepKind.UNDONE, StepKind.REMOVED, StepKind.REWRITTEN)
    if step.ordinal or step.kind in edits:
        return Place(step.line)
    return Place(step.line, step.id)


def standing_lines(
    sheet: Sheet, state: SessionState, summary: EntryId, stands: Sequence[Standing], cells: int
) -> None:
    """The entries that a summary speaks for, each a link; those of earlier summaries indented."""
    if not stands:
        return
    sheet.add([])
    told = figures.count(len(stands), "entry", "entries")
    sheet.add(
        clip([span(f"{summary} stands for", Tone.ACCENT), span(f"   {told}", Tone.FAINT)], cells)
    )
    for stand in stands[:LISTED]:
        indent = "  " * min(stand.depth, 4)
        left: Line = [
            span(f"{indent}Σ ", Tone.SUMMARY),
            column(str(stand.id), 8, Tone.FAINT),
            span(line_of(title_of(state, stand.id), cells), Tone.PLAIN),
        ]
        right: Line = [column(tokens_of(state, stand.id), 8, Tone.MUTED, right=True)]
        sheet.add(spread(left, right, cells), to=Place(stand.id.line, stand.id))
    if len(stands) > LISTED:
        sheet.add([span(cut(f"  … {len(stands) - LISTED:,} more", cells), Tone.MUTED)])
