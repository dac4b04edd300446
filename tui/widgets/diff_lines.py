"""Before and after as lines of spans: a row for every entry, side by side where there is room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from thresher.core.context import Entry
from thresher.core.insight.diff import Diff, DiffRow, Filter, Fold, RowKind, Total
from thresher.core.insight.inline import Side
from thresher.core.insight.naming import item_title, role_of
from thresher.core.items import Item
from thresher.core.state import SessionState
from thresher.core.text import cap_lines
from thresher.core.tokens import Basis

from .. import figures
from ..spans import Line, Tone, clip, column, line_of, pad, span, spread, width, wrap
from .pieces import apart, condensed, toned, wrap_spans

SIDE_BY_SIDE = 112
"""From this width on the two contexts stand beside one another."""
ID, ROLE, TOKENS = 7, 9, 8
BETWEEN = " │ "

SIGNS: dict[RowKind, tuple[str, Tone]] = {
    RowKind.KEPT: ("=", Tone.KEPT),
    RowKind.REMOVED: ("-", Tone.REMOVED),
    RowKind.REWRITTEN: ("~", Tone.REWRITTEN),
    RowKind.MOVED: ("↕", Tone.ACCENT),
    RowKind.INSERTED: ("+", Tone.INSERTED),
}
ORDER = (RowKind.REMOVED, RowKind.KEPT, RowKind.REWRITTEN, RowKind.MOVED, RowKind.INSERTED)
PREVIEW = 400
"""Lines of a text that the preview holds; Enter shows all of it."""


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


def row_line(state: SessionState, diff: Diff, row: DiffRow, cells: int) -> Line:
    """One entry: beside one another, or one line for both."""
    if cells >= SIDE_BY_SIDE:
        return _both_sides(state, diff, row, cells)
    glyph, tone = SIGNS[row.kind]
    before, after = diff.entries(row)
    entry = after or before
    assert entry is not None  # a row has at least one side
    left: Line = [
        span(f"{glyph} ", tone),
        column(str((before or entry).id), ID + 1, Tone.FAINT),
        column(diff.role(row), ROLE + 1, Tone.MUTED),
        span(subject_of(state, entry.item, cells), _body(row.kind)),
    ]
    return spread(left, [span(_change(diff, row), Tone.MUTED)], cells)


def fold_line(diff: Diff, fold: Fold, tokens: int | None, cells: int) -> Line:
    """A run of kept entries that is folded away."""
    told = f"  ⋯ {figures.count(fold.rows, 'entry', 'entries')} kept"
    if tokens is not None:
        told += f", {figures.mark(diff.basis)}{tokens:,} tokens"
    return clip([span(told, Tone.FAINT), span("   Enter unfolds", Tone.FAINT)], cells)


def heading_line(cells: int, remark: str) -> Line:
    """What the columns are, and what is left out of them."""
    right: Line = [span(remark, Tone.THRESHOLD)] if remark else []
    if cells < SIDE_BY_SIDE:
        return spread([span("   entry    role", Tone.FAINT)], right or _tokens_head(), cells)
    half = (cells - len(BETWEEN)) // 2
    left = spread([span("   before", Tone.FAINT)], _tokens_head(), half)
    after: Line = [span("  after", Tone.FAINT)]
    return [*left, span(BETWEEN, Tone.RULE), *spread(after, right or _tokens_head(), half)]


def preview_lines(diff: Diff, row: DiffRow, cells: int) -> list[Line]:
    """The text of a row; of a rewritten one how it changed, word by word."""
    before, after = diff.entries(row)
    if row.kind is not RowKind.REWRITTEN:
        entry = after or before
        text = cap_lines(diff.text(entry.item), PREVIEW, 0, 4 * cells) if entry is not None else ""
        return [[span(line)] for line in wrap(text, cells)][:PREVIEW] or [
            [span("empty", Tone.FAINT)]
        ]
    pieces = condensed(apart(diff.pieces(row)))
    if cells < SIDE_BY_SIDE:
        return wrap_spans(toned(pieces), cells, PREVIEW)
    half = (cells - len(BETWEEN)) // 2
    old = wrap_spans(toned(pieces, Side.OLD), half, PREVIEW)
    new = wrap_spans(toned(pieces, Side.NEW), half, PREVIEW)
    return beside(old, new, cells)


def beside(old: Sequence[Line], new: Sequence[Line], cells: int) -> list[Line]:
    """Two columns of lines with a rule between them."""
    half = (cells - len(BETWEEN)) // 2
    return [
        [
            *pad(old[at] if at < len(old) else [], half),
            span(BETWEEN, Tone.RULE),
            *(new[at] if at < len(new) else []),
        ]
        for at in range(max(len(old), len(new)))
    ]


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


def counted(diff: Diff) -> Counter[RowKind]:
    """Rows of each kind."""
    return Counter(row.kind for row in diff.rows)


def _both_sides(state: SessionState, diff: Diff, row: DiffRow, cells: int) -> Line:
    half = (cells - len(BETWEEN)) // 2
    glyph, tone = SIGNS[row.kind]
    before, after = diff.entries(row)
    tokens = diff.tokens(row)
    left = _side(state, diff, before, tokens[0], glyph, tone, row.kind, half)
    right = _side(state, diff, after, tokens[1], glyph, tone, row.kind, half)
    return [*left, span(BETWEEN, Tone.RULE), *right]


def _side(
    state: SessionState, diff: Diff, entry: Entry | None, tokens: int | None, glyph: str,
    tone: Tone, kind: RowKind, cells: int,
) -> Line:  # fmt: skip
    if entry is None:
        return pad([], cells)
    left: Line = [
        span(f"{glyph} ", tone),
        column(str(entry.id), ID + 1, Tone.FAINT),
        column(entry.kind.value, ROLE + 1, Tone.MUTED),
        span(subject_of(state, entry.item, cells), _body(kind)),
    ]
    told = "" if tokens is None else f"{figures.mark(diff.basis)}{tokens:,}"
    return spread(left, [column(told, TOKENS, Tone.MUTED, right=True)], cells)


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
