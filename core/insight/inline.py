"""How one text became another: at a glance, or word by word in bounded time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import StrEnum

import msgspec

MOST_WORDS = 1_500
"""Words on one side; longer texts are compared by lines."""
MOST_LINES = 1_500
"""Lines on one side; beyond that only the equal beginning and end are told."""

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Side(StrEnum):
    """Where a piece of text stands: in both texts, only in the old or only in the new one."""

    BOTH = "both"
    OLD = "old"
    NEW = "new"


class Piece(msgspec.Struct, frozen=True):
    """A piece of text. All BOTH and OLD pieces in order are the old text, BOTH and NEW the new."""

    side: Side
    text: str


class Change(msgspec.Struct, frozen=True):
    """One change between an equal beginning and an equal end: `gone` characters gave way to `came`
    at the place `at`. `text` is the new text from there, `lost` the old one, both without the
    equal end."""

    at: int
    gone: int
    came: int
    lost: str
    text: str


def change(old: str, new: str) -> Change:
    """What changed, as one change: as quick as comparing the two. Foreign text."""
    head, tail = _ends(old, new)
    lost, text = old[head : len(old) - tail], new[head : len(new) - tail]
    return Change(head, len(lost), len(text), lost, text)


def inline(old: str, new: str) -> tuple[Piece, ...]:
    """The two texts as pieces. Foreign text: clean it before it is shown."""
    if old == new:
        return (Piece(Side.BOTH, old),) if old else ()
    head, tail = _ends(old, new)
    end_old, end_new = len(old) - tail, len(new) - tail
    middle = _middle(old[head:end_old], new[head:end_new])
    return tuple(_joined([Piece(Side.BOTH, old[:head]), *middle, Piece(Side.BOTH, old[end_old:])]))


def _ends(old: str, new: str) -> tuple[int, int]:
    """The lengths of the equal beginning and of the equal end behind it, cut between words."""
    if old == new:
        return len(old), 0
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    while head and (_inside(old, head) or _inside(new, head)):
        head -= 1
    while tail and (_inside(old, len(old) - tail) or _inside(new, len(new) - tail)):
        tail -= 1
    return head, tail


def _middle(old: str, new: str) -> list[Piece]:
    for split, most in ((_WORD, MOST_WORDS), (_LINE, MOST_LINES)):
        a, b = split.findall(old), split.findall(new)
        if len(a) <= most and len(b) <= most:
            return _matched(a, b)
    return [Piece(Side.OLD, old), Piece(Side.NEW, new)]


def _matched(a: Sequence[str], b: Sequence[str]) -> list[Piece]:
    # Autojunk leaves out what is everywhere, which also bounds the time on repetitive texts.
    pieces: list[Piece] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b).get_opcodes():
        if tag == "equal":
            pieces.append(Piece(Side.BOTH, "".join(a[a0:a1])))
        else:
            pieces.append(Piece(Side.OLD, "".join(a[a0:a1])))
            pieces.append(Piece(Side.NEW, "".join(b[b0:b1])))
    return pieces


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Without empty pieces, and equal neighbours made one."""
    found: list[Piece] = []
    for piece in pieces:
        if not piece.text:
            continue
        if found and found[-1].side is piece.side:
            found[-1] = Piece(piece.side, found[-1].text + piece.text)
        else:
            found.append(piece)
    return found


def _inside(text: str, at: int) -> bool:
    """Whether a word may go on at this place."""
    return at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")


def _common(a: str, b: str) -> int:
    """The length of the common beginning."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
