"""Tables and blocks of plain text: aligned by terminal cells, fitted to a width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len

from thresher.core.text import clean, clean_line

from ..spans import Line, Span, Tone, column, span, wrap

GAP = "  "
LONGEST = 500
"""Characters of a cell that are looked at."""

Cell: TypeAlias = str | Span


class Column(NamedTuple):
    """A column. With `least` it gives way when the table is too wide, down to so many cells."""

    title: str
    right: bool = False
    least: int | None = None
    tone: Tone = Tone.PLAIN


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], cells: int) -> list[Line]:
    """The rows under their titles, at most `cells` wide as far as the columns can give way.

    A column without a single text is left out.
    """
    body = [[_span(cell, spec) for cell, spec in zip(row, columns, strict=True)] for row in rows]
    used = [at for at in range(len(columns)) if any(row[at][0] for row in body)]
    specs = [columns[at] for at in used]
    body = [[row[at] for at in used] for row in body]
    widths = _widths(specs, body, cells)
    head = [
        column(spec.title, size, Tone.MUTED, right=spec.right)
        for spec, size in zip(specs, widths, strict=True)
    ]
    return [_joined(head), *(_joined(_aligned(row, specs, widths)) for row in body)]


def fields(pairs: Iterable[tuple[str, Cell]], cells: int, indent: str = "") -> list[Line]:
    """A block of names and texts; texts are wrapped beside their names, empty ones left out."""
    told = [(name, (cell, Tone.PLAIN) if isinstance(cell, str) else cell) for name, cell in pairs]
    told = [(name, cell) for name, cell in told if cell[0]]
    size = max((cell_len(name) for name, _ in told), default=0)
    room = max(20, cells - len(indent) - size - len(GAP))
    lines: list[Line] = []
    for name, (text, tone) in told:
        label = column(name, size, Tone.MUTED)
        for part in wrap(clean(text), room):
            lines.append([span(indent), label, span(GAP), span(part, tone)])
            label = span(" " * size)
    return lines


def _span(cell: Cell, spec: Column) -> Span:
    text, tone = (cell, spec.tone) if isinstance(cell, str) else cell
    return clean_line(text, LONGEST), tone


def _widths(specs: Sequence[Column], body: Sequence[Sequence[Span]], cells: int) -> list[int]:
    widths = [
        max([cell_len(spec.title), *(cell_len(row[at][0]) for row in body)])
        for at, spec in enumerate(specs)
    ]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - cells
    for _ in range(over):
        giving = [at for at, spec in enumerate(specs) if widths[at] > (spec.least or widths[at])]
        if not giving:
            break
        widths[max(giving, key=lambda at: widths[at])] -= 1
    return widths


def _aligned(row: Sequence[Span], specs: Sequence[Column], widths: Sequence[int]) -> list[Span]:
    return [
        column(text, size, tone, right=spec.right)
        for (text, tone), spec, size in zip(row, specs, widths, strict=True)
    ]


def _joined(cells: Sequence[Span]) -> Line:
    line: Line = []
    for cell in cells:
        line += [cell] if not line else [span(GAP), cell]
    return line
