"""The context as lines of spans: a bar of nested parts, and a row for every entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thresher.core.context import EntryId
from thresher.core.insight.inspect import Duplicate, Inspected, Inspection, Stale, Tile, WireRow
from thresher.core.items import Kind
from thresher.core.text import clean
from thresher.core.tokens import Basis

from .. import figures
from ..spans import Line, Tone, clip, column, cut, line_of, span, spread, wrap
from .timeline_rows import PIN

AT, ID, ROLE, TOKENS, SHARE, MARK = 6, 8, 10, 10, 7, 9

_FILL: dict[str, Tone] = {
    Kind.SYSTEM.value: Tone.FILL_SYSTEM,
    Kind.USER.value: Tone.FILL_USER,
    Kind.ASSISTANT.value: Tone.FILL_ASSISTANT,
    Kind.REASONING.value: Tone.FILL_REASONING,
    Kind.SUMMARY.value: Tone.FILL_SUMMARY,
}
_PART: dict[str, Tone] = {
    Kind.SYSTEM.value: Tone.PART_SYSTEM,
    Kind.USER.value: Tone.PART_USER,
    Kind.ASSISTANT.value: Tone.PART_ASSISTANT,
    Kind.REASONING.value: Tone.PART_REASONING,
    Kind.SUMMARY.value: Tone.SUMMARY,
}


def fill_of(role: str) -> Tone:
    """The tone of a part of the bar."""
    if "output" in role or "call" in role:
        return Tone.FILL_OUTPUT
    return _FILL.get(role, Tone.FILL_OTHER)


def part_of(role: str) -> Tone:
    """The tone of a role's name."""
    if "output" in role or "call" in role:
        return Tone.PART_OUTPUT
    return _PART.get(role, Tone.PART_OTHER)


def bar_lines(
    tiles: Sequence[Tile], cells: int, selected: EntryId | None
) -> tuple[list[Line], list[tuple[int, int, EntryId]]]:
    """Two lines of tiles, kinds over their entries, and where each entry's tile lies (start, end,
    id). The widths are the shares; the tile of the selected entry is lit."""
    kinds: Line = []
    entries: Line = []
    places: list[tuple[int, int, EntryId]] = []
    at = 0
    for tile, room in zip(tiles, _widths([tile.tokens for tile in tiles], cells), strict=True):
        if not room:
            continue
        fill = fill_of(tile.name)
        told = f" {tile.name} {figures.percent(tile.tokens, _whole(tiles))}"
        kinds.append(_boxed(told, room, fill))
        inner = at
        parts = _widths([part.tokens for part in tile.inside], room)
        for part, size in zip(tile.inside, parts, strict=True):
            if not size:
                continue
            lit = selected is not None and selected in part.ids
            name = cut(part.name, size) if len(part.ids) == 1 else f"+{len(part.ids)}"
            # Three cells or fewer hold no word; the tile alone says how large it is.
            entries.append(_boxed(f" {name}" if size > 5 else "", size, Tone.FOUND if lit else fill,
                                  gap=not lit))  # fmt: skip
            places.append((inner, inner + size, part.ids[0]))
            inner += size
        at += room
    return [kinds, entries], places


def row_line(
    row: Inspected, marks: Mapping[EntryId, str], basis: Basis, cells: int, *, pinned: bool = False
) -> Line:
    """Place, id, role, tokens, shares, what is odd, and what it is; a pin stands in the gap."""
    mark = marks.get(row.id, "")
    left: Line = [
        column(f"{row.at + 1:,}", AT, Tone.FAINT, right=True),
        span(f"{PIN} " if pinned else "  ", Tone.ACCENT),
        column(str(row.id), ID, Tone.FAINT),
        column(row.role, ROLE, part_of(row.role)),
        column(f"{figures.mark(basis)}{row.tokens:,}", TOKENS, Tone.PLAIN, right=True),
        column(percent(row.share), SHARE, Tone.MUTED, right=True),
    ]
    if cells >= 90:
        left.append(column(percent(row.cumulative), SHARE, Tone.FAINT, right=True))
    left += [span("  "), column(mark, MARK, Tone.THRESHOLD)]
    name, _, rest = row.title.partition(": ")
    # The role has a column of its own.
    title = rest if name in (row.role, "harness", "developer") else row.title
    return clip([*left, span(line_of(title, cells), Tone.PLAIN)], cells)


def heading_line(cells: int, by_size: bool) -> Line:
    """What the columns are; the one that sorts is lit."""
    place, size = (Tone.FAINT, Tone.ACCENT) if by_size else (Tone.ACCENT, Tone.FAINT)
    line: Line = [
        column("place", AT, place, right=True),
        span("  "),
        column("entry", ID, Tone.FAINT),
        column("role", ROLE, Tone.FAINT),
        column("tokens", TOKENS, size, right=True),
        column("share", SHARE, Tone.FAINT, right=True),
    ]
    if cells >= 90:
        line.append(column("up to", SHARE, Tone.FAINT, right=True))
    return clip([*line, span("  "), column("", MARK), span("first line", Tone.FAINT)], cells)


def wire_line(row: WireRow, cells: int) -> Line:
    """One message of the request."""
    left: Line = [
        column(f"{row.at + 1:,}", AT, Tone.FAINT, right=True),
        span("  "),
        column(cut(row.role, 19), 20, Tone.MUTED),
        column(f"{row.bytes:,}", TOKENS, Tone.PLAIN, right=True),
        span("  "),
    ]
    return clip([*left, span(line_of(row.json, cells), Tone.MUTED)], cells)


def wire_heading(cells: int) -> Line:
    """What the columns of the wire form are."""
    return clip(
        [
            column("place", AT, Tone.FAINT, right=True),
            span("  "),
            column("role or type", 20, Tone.FAINT),
            column("bytes", TOKENS, Tone.FAINT, right=True),
            span("  "),
            span("as it is sent", Tone.FAINT),
        ],
        cells,
    )


def odd_marks(
    inspection: Inspection, duplicates: Sequence[Duplicate], stale: Sequence[Stale]
) -> dict[EntryId, str]:
    """A short word for every entry that is there twice, or out of date."""
    marks: dict[EntryId, str] = {}
    for each in duplicates:
        for id in each.ids:
            marks[id] = f"{len(each.ids)}×"
    for old in stale:
        marks[old.read] = f"{marks[old.read]} stale" if old.read in marks else "stale"
    here = {row.id for row in inspection.rows}
    return {id: mark for id, mark in marks.items() if id in here}


def odd_lines(
    id: EntryId, duplicates: Sequence[Duplicate], stale: Sequence[Stale], basis: Basis, cells: int
) -> list[Line]:
    """Why an entry is marked, in words."""
    lines: list[Line] = []
    mark = figures.mark(basis)
    for each in duplicates:
        if id not in each.ids:
            continue
        others = " ".join(str(other) for other in each.ids if other != id)
        words = (
            f"{each.kind} as in {others}: {clean(each.what, keep_newlines=False)}. All but the "
            f"newest cost {mark}{each.spare:,} tokens."
        )
        lines += _wrapped(words, cells)
    for old in stale:
        if old.read == id:
            words = (
                f"stale: {clean(old.path, keep_newlines=False)} was changed later, by "
                f"{old.changed} {clean(old.by, keep_newlines=False)}."
            )
            lines += _wrapped(words, cells)
    return lines


def odd_counts(duplicates: Sequence[Duplicate], stale: Sequence[Stale], basis: Basis) -> Line:
    """How much of the context is odd, for the head."""
    line: Line = []
    mark = figures.mark(basis)
    if duplicates:
        spare = sum(each.spare for each in duplicates)
        told = figures.count(len(duplicates), "text is", "texts are")
        line.append(span(f"{told} there more than once, {mark}{spare:,} to spare", Tone.THRESHOLD))
    if stale:
        told = figures.count(len(stale), "read is stale", "reads are stale")
        line += [span("   " if line else ""), span(told, Tone.THRESHOLD)]
    return line or [span("nothing is there twice, no read is stale", Tone.FAINT)]


def percent(share: float) -> str:
    """A share with one decimal; the columns stay aligned."""
    return f"{100 * share:.1f}%"


def _wrapped(words: str, cells: int) -> list[Line]:
    return [
        spread([span("! " if not at else "  ", Tone.THRESHOLD), span(part)], [], cells)
        for at, part in enumerate(wrap(words, cells - 2))
    ]


def _whole(tiles: Sequence[Tile]) -> int:
    return sum(tile.tokens for tile in tiles)


def _boxed(text: str, cells: int, tone: Tone, *, gap: bool = True) -> tuple[str, Tone]:
    """A text in a box; a thin line at its right end keeps it apart from the next one."""
    if cells == 1:
        return ("▏", tone)
    inside, edge = (cells - 1, "▕") if gap else (cells, "")
    return (column(text, inside)[0] + edge, tone)


def _widths(parts: Sequence[int], cells: int) -> list[int]:
    """Cells in proportion, together exactly `cells` (largest remainders get what is left)."""
    whole = sum(parts)
    if not whole or cells <= 0:
        return [0] * len(parts)
    exact = [part * cells / whole for part in parts]
    found = [int(each) for each in exact]
    rest = sorted(range(len(parts)), key=lambda at: found[at] - exact[at])
    for at in rest[: cells - sum(found)]:
        found[at] += 1
    return found
