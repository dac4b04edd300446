"""Two texts in one: pieces that both have, that only the old and that only the new one has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from thresher.core.insight.inline import Piece, Side
from thresher.core.text import ELLIPSIS, clean

from ..spans import Line, Span, Tone

AROUND = 120
"""Characters of equal text that stay beside a change."""
LIKE = 0.4
"""The share of the shorter text that both must have to be shown as one."""
PIECE = 2_000
"""Characters of a piece that is only on one side."""

TONES = {Side.BOTH: Tone.MUTED, Side.OLD: Tone.REMOVED, Side.NEW: Tone.INSERTED}
_WORD = re.compile(r" +|[^ ]+")


def apart(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The pieces, or the old text over the new one where they have next to nothing in common:
    a placeholder is not the output in other words."""
    both, old, new = (
        sum(len(piece.text) for piece in pieces if piece.side is side)
        for side in (Side.BOTH, Side.OLD, Side.NEW)
    )
    if not old or not new or both >= LIKE * (both + min(old, new)):
        return pieces
    before = "".join(piece.text for piece in pieces if piece.side is not Side.NEW)
    after = "".join(piece.text for piece in pieces if piece.side is not Side.OLD)
    return (Piece(Side.OLD, before), Piece(Side.NEW, after))


def condensed(pieces: Sequence[Piece]) -> list[Piece]:
    """The changes with a little of what is around them; what is left out is an ellipsis."""
    found: list[Piece] = []
    for at, piece in enumerate(pieces):
        text = piece.text
        if piece.side is not Side.BOTH:
            more = len(text) - PIECE
            if more > 0:
                text = f"{text[:PIECE]}{ELLIPSIS} {more:,} more characters"
        elif len(pieces) == 1:
            text = text[:PIECE]
        else:
            head = AROUND if at else 0
            tail = AROUND if at < len(pieces) - 1 else 0
            if len(text) > head + tail + 20:
                begin = f"{text[:head]} " if head else ""
                end = f" {text[len(text) - tail :]}" if tail else ""
                text = f"{begin}{ELLIPSIS}{end}"
        found.append(Piece(piece.side, text))
    return found


def toned(pieces: Iterable[Piece], side: Side | None = None) -> list[Span]:
    """Clean spans of the pieces; with a `side`, only those which that text has."""
    other = {Side.OLD: Side.NEW, Side.NEW: Side.OLD}.get(side) if side is not None else None
    return [(clean(piece.text), TONES[piece.side]) for piece in pieces if piece.side is not other]


def wrap_spans(spans: Iterable[Span], cells: int, most: int = 400) -> list[Line]:
    """Spans with newlines as lines of at most `cells`, broken at spaces where there are any; at
    most `most` lines."""
    cells = max(1, cells)
    lines: list[Line] = [[]]
    used = 0
    for text, tone in spans:
        for n, part in enumerate(text.split("\n")):
            if n:
                lines.append([])
                used = 0
            for match in _WORD.finditer(part):
                word = match[0]
                size = cell_len(word)
                if used + size > cells and (used or word[0] == " "):
                    if len(lines) >= most:
                        return lines
                    lines.append([])
                    used = 0
                    if word[0] == " ":
                        continue
                while size > cells:
                    head = _fitting(word, cells)
                    lines[-1].append((head, tone))
                    if len(lines) >= most:
                        return lines
                    lines.append([])
                    word = word[len(head) :]
                    size = cell_len(word)
                if word:
                    lines[-1].append((word, tone))
                    used += size
            if len(lines) >= most:
                return lines
    return [_joined(line) for line in lines]


def _fitting(word: str, cells: int) -> str:
    size = min(len(word), cells)
    while size > 1 and cell_len(word[:size]) > cells:
        size -= 1
    return word[:size]


def _joined(line: Line) -> Line:
    """Neighbours of one tone as one span."""
    found: Line = []
    for text, tone in line:
        if found and found[-1][1] is tone:
            found[-1] = (found[-1][0] + text, tone)
        else:
            found.append((text, tone))
    return found
