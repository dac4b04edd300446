"""A summary against the one before it, section by section, as lines of spans."""

from __future__ import annotations

from thresher.core.insight.inline import Piece, Side, inline
from thresher.core.insight.summary_diff import FactKind, FactRow, SectionRow, SummaryDiff

from .. import figures
from ..spans import Line, Span, Tone, clip, cut, pad, span, spread, width
from .change_lines import BETWEEN, SIDE_BY_SIDE
from .pieces import toned, wrap_spans

AGE = 14
"""Cells for the age of a fact, with the gap before it."""
_SIGNS = {
    FactKind.KEPT: ("=", Tone.KEPT),
    FactKind.REWORDED: ("~", Tone.REWRITTEN),
    FactKind.ADDED: ("+", Tone.INSERTED),
    FactKind.VANISHED: ("-", Tone.REMOVED),
}
_ORDER = (FactKind.VANISHED, FactKind.KEPT, FactKind.REWORDED, FactKind.ADDED)


def summary_counts(diff: SummaryDiff, cells: int) -> Line:
    """Facts of each kind, and the age of the oldest."""
    line: Line = []
    for kind in _ORDER:
        number = diff.count(kind)
        glyph, tone = _SIGNS[kind]
        shown = tone if number else Tone.FAINT
        line += pad(
            [
                span(f"{glyph} {number:,}", shown),
                span(f" {kind.value}", Tone.MUTED if number else Tone.FAINT),
            ],
            16,
        )
    if diff.oldest:
        passes = "1 pass" if diff.oldest == 1 else f"{diff.oldest:,} passes"
        told = [f"the oldest fact is {passes} old", f"oldest {passes}"]
        room = cells - width(line)
        line += [span(words, Tone.MUTED) for words in told if len(words) <= room][:1]
    return clip(line, cells)


def summary_diff_lines(diff: SummaryDiff, cells: int) -> list[Line]:
    """All sections with their facts: what was said before at the left, now at the right."""
    lines: list[Line] = []
    if not diff.previous:
        lines += [[span("This is the first summary: there is none to compare it with.",
                        Tone.MUTED)], []]  # fmt: skip
    wide = cells >= SIDE_BY_SIDE and bool(diff.previous)
    if wide:
        half = (cells - len(BETWEEN)) // 2
        before = pad([span(f"  summary of compaction {diff.previous}", Tone.FAINT)], half)
        after: Line = [span(f"  summary of compaction {diff.ordinal}", Tone.FAINT)]
        lines.append([*before, span(BETWEEN, Tone.RULE), *after])
    for section in diff.sections:
        lines += _section(section, cells, wide=wide)
    return lines


def _section(section: SectionRow, cells: int, *, wide: bool) -> list[Line]:
    glyph, tone = _SIGNS[section.kind]
    told = "" if section.kind is FactKind.KEPT else section.kind.value
    title: Line = [span(cut(section.title, cells - 20) or "(no title)", Tone.ACCENT)]
    lines: list[Line] = [[], spread(title, [span(f"{glyph} {told}", tone)] if told else [], cells)]
    for fact in section.facts:
        lines += _fact_wide(fact, cells) if wide else _fact(fact, cells)
    return lines


def _fact(fact: FactRow, cells: int) -> list[Line]:
    glyph, tone = _SIGNS[fact.kind]
    body = wrap_spans(_words(fact), cells - 2 - AGE)
    lines: list[Line] = []
    for at, line in enumerate(body):
        left: Line = [span(f"{glyph} " if not at else "  ", tone), *line]
        lines.append(spread(left, [span(_age(fact), Tone.FAINT)] if not at else [], cells))
    return lines


def _fact_wide(fact: FactRow, cells: int) -> list[Line]:
    glyph, tone = _SIGNS[fact.kind]
    half = (cells - len(BETWEEN)) // 2
    old: list[Line] = []
    new: list[Line] = []
    pieces = _pieces(fact)
    if fact.kind is not FactKind.ADDED:
        old = wrap_spans(toned(pieces, Side.OLD), half - 2)
    if fact.kind is not FactKind.VANISHED:
        new = wrap_spans(toned(pieces, Side.NEW), half - 2 - AGE)
    lines: list[Line] = []
    for at in range(max(len(old), len(new))):
        sign: Span = span(f"{glyph} " if not at else "  ", tone)
        blank: Span = span("  ")
        left = pad([sign if old else blank, *(old[at] if at < len(old) else [])], half)
        right: Line = [sign if new else blank, *(new[at] if at < len(new) else [])]
        age: Line = [span(_age(fact), Tone.FAINT)] if not at else []
        lines.append([*left, span(BETWEEN, Tone.RULE), *spread(right, age, half)])
    return lines


def _pieces(fact: FactRow) -> tuple[Piece, ...]:
    if fact.kind is FactKind.REWORDED:
        return inline(fact.before, fact.text)
    side = {FactKind.ADDED: Side.NEW, FactKind.VANISHED: Side.OLD}.get(fact.kind, Side.BOTH)
    return (Piece(side, fact.text),)


def _words(fact: FactRow) -> list[Span]:
    spans = toned(_pieces(fact))
    if fact.from_section:
        spans.append(span(f"  (was in {cut(fact.from_section, 30)})", Tone.FAINT))
    return spans


def _age(fact: FactRow) -> str:
    if fact.kind is FactKind.ADDED:
        return "new"
    if fact.kind is FactKind.VANISHED:
        return f"since {fact.since}"
    return f"{figures.count(fact.age, 'pass', 'passes')} old"
