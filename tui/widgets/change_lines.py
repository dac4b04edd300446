"""How a text was rewritten: in one line, and opened, old beside new or old over new.

A sign stands wherever a colour does: `-` before what went, `+` before what came.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from thresher.core.insight.alignment import DiffRow
from thresher.core.insight.diff import Diff
from thresher.core.insight.inline import Change, Piece, Side, change
from thresher.core.text import ELLIPSIS, clean

from ..spans import Line, Span, Tone, line_of, pad, span, width
from .pieces import TONES, apart, condensed, wrap_spans

SIDE_BY_SIDE = 112
"""From this width on the two contexts stand beside one another."""
BETWEEN = " │ "
MOST = 400
"""Lines of a text that are laid out; Enter shows all of it."""
BLOCK = 120
"""Lines of an entry that is opened in place."""


# -- in one line -----------------------------------------------------------------------------------


def change_of(diff: Diff, row: DiffRow) -> Change:
    """The change of a rewritten row in one piece, of what is held of its texts: the rest of a long
    one is in the file, and no row is worth reading it."""
    before, after = diff.entries(row)
    assert before is not None  # it was rewritten: both sides are there
    assert after is not None
    return change(before.item.text, after.item.text)


def sizes(found: Change, *, named: bool = True) -> Line:
    """How many characters went, and how many came in their place."""
    return [
        span(f"-{found.gone:,}", Tone.REMOVED if found.gone else Tone.FAINT),
        span(f" +{found.came:,}", Tone.INSERTED if found.came else Tone.FAINT),
        *([span(" chars", Tone.FAINT)] if named else []),
    ]


def excerpt(found: Change, cells: int) -> Line:
    """The new text from where it differs; where nothing came, what went."""
    lead: Line = [span(ELLIPSIS, Tone.FAINT)] if found.at else []
    # A change begins with a whole word, which both texts may have.
    both = zip(found.lost, found.text, strict=False)
    same = len([*takewhile(lambda pair: pair[0] == pair[1], both)])
    if text := line_of(found.text[same:].strip(), cells):
        return [*lead, span(text)]
    lost = line_of(found.lost[same:].strip(), cells)
    return [*lead, span(f"- {lost}", Tone.REMOVED)] if lost else [span("the same text", Tone.FAINT)]


# -- opened ----------------------------------------------------------------------------------------


class _Hunk(NamedTuple):
    """Lines that belong together: the old ones and the new ones; the same where nothing changed.
    `gone` says that something of the old ones went, `came` that something of the new ones came."""

    old: list[Line]
    new: list[Line]
    gone: bool
    came: bool


def changed_lines(
    pieces: Sequence[Piece], cells: int, most: int = MOST, indent: int = 0
) -> list[Line]:
    """The change word by word: side by side where there is room, else old lines over new ones."""
    wide = cells >= SIDE_BY_SIDE
    room = (cells - len(BETWEEN)) // 2 if wide else cells
    blank = " " * indent
    lines: list[Line] = []
    for hunk in _hunks(condensed(apart(pieces))):
        if len(lines) > most:
            break
        # A line that only got longer did not go: it has no sign.
        same = span(f"{blank}  ")
        gone = span(f"{blank}- ", Tone.REMOVED) if hunk.gone else same
        came = span(f"{blank}+ ", Tone.INSERTED) if hunk.came else same
        old = _with_sign(hunk.old, gone, room, most)
        new = _with_sign(hunk.new, came, room, most)
        if wide:
            lines += beside(old, new, cells)
        else:
            lines += [*old, *new] if hunk.gone or hunk.came else new
    if len(lines) > most:
        lines = [
            *lines[: most - 1],
            [span(f"{blank}{ELLIPSIS} the rest is in the full text", Tone.FAINT)],
        ]
    return lines


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


def _with_sign(lines: Sequence[Line], sign: Span, cells: int, most: int) -> list[Line]:
    return [
        [sign, *part] for line in lines for part in wrap_spans(line, cells - len(sign[0]), most)
    ]


def _hunks(pieces: Sequence[Piece]) -> list[_Hunk]:
    """Whole lines: those that both texts have, and between them what became of what."""
    found: list[_Hunk] = []
    old: list[list[Span]] = [[]]
    new: list[list[Span]] = [[]]

    def close() -> None:
        """A line that both texts end here."""
        found.extend(_trimmed(list(old), list(new)))
        old[:], new[:] = [[]], [[]]

    for piece in pieces:
        for n, part in enumerate(clean(piece.text).split("\n")):
            if n and piece.side is Side.BOTH:
                close()
            elif n:
                (old if piece.side is Side.OLD else new).append([])
            if not part:
                continue
            if piece.side is not Side.NEW:
                old[-1].append((part, TONES[piece.side]))
            if piece.side is not Side.OLD:
                new[-1].append((part, TONES[piece.side]))
    for lines in (old, new):
        # Only the newline after the last line: whether it is there is no difference.
        if len(lines) > 1 and not lines[-1]:
            lines.pop()
    close()
    return found


def _trimmed(old: list[Line], new: list[Line]) -> list[_Hunk]:
    """The lines of a change as hunks: those at its start and its end that both texts have whole
    stand for themselves."""
    most = min(len(old), len(new))
    start = next((n for n in range(most) if not _is_same(old[n], new[n])), most)
    rest = most - start
    end = next((n for n in range(rest) if not _is_same(old[~n], new[~n])), rest)
    first = [_Hunk([line], [line], False, False) for line in old[:start]]
    last = [_Hunk([line], [line], False, False) for line in old[len(old) - end :]]
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    gone, came = _own(old, new), _own(new, old)
    if gone or came:
        return [*first, _Hunk(_worth(old, new), _worth(new, old), gone, came), *last]
    return [*first, *([_Hunk(old, new, False, False)] if old else []), *last]


def _is_same(old: Line, new: Line) -> bool:
    """Whether a line is on both sides, and nothing in it is on one side only."""
    return old == new and all(tone is Tone.MUTED for _, tone in old)


def _own(lines: Sequence[Line], others: Sequence[Line]) -> bool:
    """Whether something stands only on this side: words, or the end of a line."""
    words = any(tone is not Tone.MUTED for line in lines for _, tone in line)
    return words or len(lines) > len(others)


def _worth(lines: Sequence[Line], others: Sequence[Line]) -> list[Line]:
    """The lines of one side of a change. An empty one is nothing when the other side has all."""
    return [] if not any(width(line) for line in lines) and any(map(width, others)) else list(lines)
