"""Before and after as lines of spans: a row for every entry, side by side where there is room."""

from __future__ import annotations

from collections.abc import Mapping

from thresher.core.context import Entry
from thresher.core.insight.alignment import DiffRow, RowKind
from thresher.core.insight.diff import Diff, Filter, Fold, Total
from thresher.core.insight.naming import item_title, role_of
from thresher.core.items import Item
from thresher.core.state import SessionState
from thresher.core.text import cap_lines
from thresher.core.tokens import Basis

from .. import figures
from ..spans import Line, Span, Tone, clip, column, cut, line_of, pad, span, spread, width, wrap
from .change_lines import (
    BETWEEN,
    BLOCK,
    MOST,
    SIDE_BY_SIDE,
    change_of,
    changed_lines,
    excerpt,
    sizes,
)

ID, ROLE, TOKENS = 7, 9, 8
ROOMY = 140
"""From this width on the sizes of a change say what they are."""
INDENT = 2
"""Cells before the lines of an entry that is opened."""

SIGNS: dict[RowKind, tuple[str, Tone]] = {
    RowKind.KEPT: ("=", Tone.KEPT),
    RowKind.REMOVED: ("-", Tone.REMOVED),
    RowKind.REWRITTEN: ("~", Tone.REWRITTEN),
    RowKind.MOVED: ("↕", Tone.ACCENT),
    RowKind.INSERTED: ("+", Tone.INSERTED),
}
ORDER = (RowKind.REMOVED, RowKind.KEPT, RowKind.REWRITTEN, RowKind.MOVED, RowKind.INSERTED)


def counts_line(
    counts: Mapping[RowKind, int], totals: Mapping[RowKind, Total] | None, basis: Basis, cells: int
) -> Line:
    """Entries of each kind, and their tokens once they are counted. Every part keeps its place."""
    line: Line = []
    each = max(14, min(30, cells // len(ORDER)))
    for kind in ORDER:
        number = counts.get(kind, 0)
        glyph, tone = SIGNS[kind]
        part: Line = [
            span(f"{glyph} {number:,}", tone if number else Tone.FAINT),
            span(f" {kind.value}", Tone.MUTED if number else Tone.FAINT),
        ]
        if totals is not None and number:
            total = totals[kind]
            tokens = total.before if kind is RowKind.REMOVED else total.after
            told = f"  {figures.mark(basis)}{tokens:,}"
            if kind is RowKind.REWRITTEN:
                told = f"  {figures.mark(basis)}{total.before:,} → {total.after:,}"
            if width(part) + len(told) < each:
                part.append(span(told, Tone.MUTED))
        line += pad(part, each)
    return clip(line, cells)


def row_line(
    state: SessionState, diff: Diff, row: DiffRow, cells: int, *, opened: bool = False
) -> Line:
    """One entry: beside one another, or one line for both. A rewritten one says how; `opened` when
    its text stands under it."""
    if cells >= SIDE_BY_SIDE:
        return _both_sides(state, diff, row, cells, opened)
    before, after = diff.entries(row)
    entry = before or after
    assert entry is not None  # a row has at least one side
    left: Line = [
        _sign(row.kind, opened),
        column(str(entry.id), ID + 1, Tone.FAINT),
        column(diff.role(row), ROLE + 1, Tone.MUTED),
    ]
    right: Line = [span(_change(diff, row), Tone.MUTED)]
    if row.kind is RowKind.REWRITTEN:
        found = change_of(diff, row)
        subject = cut(subject_of(state, entry.item, cells), max(12, cells // 5))
        left += [span(subject, Tone.MUTED), span(" → ", Tone.FAINT), *excerpt(found, cells)]
        right = [*sizes(found, named=False), span("  "), *right]
    else:
        left.append(span(subject_of(state, (after or entry).item, cells), _body(row.kind)))
    return spread(left, right, cells)


def fold_line(diff: Diff, fold: Fold, tokens: int | None, cells: int, key: str) -> Line:
    """A run of kept entries that is folded away; `key` unfolds it."""
    told = f"  ⋯ {figures.count(fold.rows, 'entry', 'entries')} kept"
    if tokens is not None:
        told += f", {figures.mark(diff.basis)}{tokens:,} tokens"
    return clip([span(told, Tone.FAINT), span(f"   {key} unfolds", Tone.FAINT)], cells)


def heading_line(cells: int, remark: str) -> Line:
    """What the columns are, and what is left out of them."""
    right: Line = [span(remark, Tone.THRESHOLD)] if remark else []
    if cells < SIDE_BY_SIDE:
        return spread([span("   entry    role", Tone.FAINT)], right or _tokens_head(), cells)
    half = (cells - len(BETWEEN)) // 2
    left = spread([span("   before", Tone.FAINT)], _tokens_head(), half)
    after: Line = [span("  after", Tone.FAINT)]
    return [*left, span(BETWEEN, Tone.RULE), *spread(after, right or _tokens_head(), half)]


def preview_lines(diff: Diff, row: DiffRow, cells: int, *, opened: bool = False) -> list[Line]:
    """The text of a row; of a rewritten one how it changed, word by word, or, where that is
    `opened` in the list, what it is now."""
    before, after = diff.entries(row)
    if row.kind is RowKind.REWRITTEN and not opened:
        return changed_lines(diff.pieces(row), cells)
    entry = after or before
    text = cap_lines(diff.text(entry.item), MOST, 0, 4 * cells) if entry is not None else ""
    return [[span(line)] for line in wrap(text, cells)][:MOST] or [[span("empty", Tone.FAINT)]]


def opened_lines(diff: Diff, row: DiffRow, cells: int) -> list[Line]:
    """The change of a rewritten row, to stand under it in the list."""
    return changed_lines(diff.pieces(row), cells, BLOCK, INDENT)


def preview_title(diff: Diff, row: DiffRow) -> str:
    """What the preview shows."""
    before, after = diff.entries(row)
    names = " → ".join(dict.fromkeys(str(entry.id) for entry in (before, after) if entry))
    also = ", moved" if row.moved and row.kind is RowKind.REWRITTEN else ""
    return f"{names}  {row.kind.value}{also}"


def subject_of(state: SessionState, item: Item, cells: int) -> str:
    """What an entry is about, where its role stands beside it."""
    title = item_title(state, item)
    # The role has a column of its own.
    name, _, rest = title.partition(": ")
    told = rest if name in (role_of(item), "harness", "developer") else title
    return line_of(told, cells)


def filter_words(by: Filter) -> str:
    """What a filter lets through, in words; empty for everything."""
    told = [", ".join(sorted(group)) for group in (by.kinds, by.roles, by.tools) if group]
    if by.least:
        told.append(f"from {by.least:,} tokens")
    return f"only {'; '.join(told)}" if told else ""


def _both_sides(state: SessionState, diff: Diff, row: DiffRow, cells: int, opened: bool) -> Line:
    half = (cells - len(BETWEEN)) // 2
    before, after = diff.entries(row)
    tokens = diff.tokens(row)
    left: Line = pad([], half)
    right: Line = pad([], half)
    if before is not None:
        told: Line = [span(subject_of(state, before.item, cells), _body(row.kind))]
        left = _side(diff, _sign(row.kind, opened), before, told, [], tokens[0], half)
    if after is not None:
        told, more = [span(subject_of(state, after.item, cells), _body(row.kind))], []
        if row.kind is RowKind.REWRITTEN:
            found = change_of(diff, row)
            told, more = excerpt(found, cells), sizes(found, named=cells >= ROOMY)
        right = _side(diff, _sign(row.kind), after, told, more, tokens[1], half)
    return [*left, span(BETWEEN, Tone.RULE), *right]


def _sign(kind: RowKind, opened: bool | None = None) -> Span:
    """The sign of a row; with `opened`, also whether a rewritten one is."""
    glyph, tone = SIGNS[kind]
    mark = " " if kind is not RowKind.REWRITTEN or opened is None else "▾" if opened else "▸"
    return span(f"{glyph}{mark}", tone)


def _side(
    diff: Diff, sign: Span, entry: Entry, told: Line, more: Line, tokens: int | None, cells: int
) -> Line:
    left: Line = [
        sign,
        column(str(entry.id), ID + 1, Tone.FAINT),
        column(entry.kind.value, ROLE + 1, Tone.MUTED),
        *told,
    ]
    figure = "" if tokens is None else f"{figures.mark(diff.basis)}{tokens:,}"
    return spread(left, [*more, column(figure, TOKENS, Tone.MUTED, right=True)], cells)


def _body(kind: RowKind) -> Tone:
    return Tone.MUTED if kind is RowKind.KEPT else Tone.PLAIN


def _change(diff: Diff, row: DiffRow) -> str:
    before, after = diff.tokens(row)
    mark = figures.mark(diff.basis)
    if before is not None and after is not None and before != after:
        return f"{mark}{before:,} → {mark}{after:,}"
    value = after if before is None else before
    return f"{mark}{value:,}" if value is not None else ""


def _tokens_head() -> Line:
    return [span("tokens", Tone.FAINT)]
