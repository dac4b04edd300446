"""The entries at a stop as lines of spans: what would happen to each, and one of them in full. Pure
functions of the stop and the state.

A row has its sign first (- = ~ +), then what the user holds of it; removed ones are quiet, since
what stays is what one looks for.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from thresher.core.context import EntryId
from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Stop
from thresher.core.insight.naming import item_title, role_of
from thresher.core.items import Item, Kind, kind_of, text_length
from thresher.core.state import SessionState
from thresher.core.text import cap_lines
from thresher.core.tokens import Basis

from .. import figures
from ..spans import Line, Tone, column, line_of, span, spread, wrap
from .timeline_rows import PIN

SIGNS: dict[Fate, tuple[str, Tone]] = {
    Fate.KEEP: ("=", Tone.KEPT),
    Fate.REMOVE: ("-", Tone.REMOVED),
    Fate.REPLACE: ("~", Tone.REWRITTEN),
    Fate.REPLACEMENT: ("~", Tone.REWRITTEN),
    Fate.INSERT: ("+", Tone.INSERTED),
}
_LETTERS: dict[Kind, tuple[str, Tone]] = {
    Kind.SYSTEM: ("S", Tone.PART_SYSTEM),
    Kind.USER: ("U", Tone.PART_USER),
    Kind.ASSISTANT: ("A", Tone.PART_ASSISTANT),
    Kind.REASONING: ("R", Tone.PART_REASONING),
    Kind.CALL: ("T", Tone.PART_OUTPUT),
    Kind.OUTPUT: ("T", Tone.PART_OUTPUT),
    Kind.SUMMARY: ("Σ", Tone.SUMMARY),
    Kind.OTHER: ("O", Tone.PART_OTHER),
}
WHY, TOKENS, WIDE = 8, 8, 50
"""Cells of the reason and of the tokens; the reason has a column from WIDE on."""

HEAD_LINES, TAIL_LINES, LINE_CHARACTERS = 1500, 300, 2000


def lines_of(stop: Stop | None, state: SessionState) -> list[held.Line]:
    """Every entry with what would happen to it; where no edit is held, the context as it is."""
    if stop is not None and stop.proposal is not None:
        lines = held.lines(stop.proposal, state.pins, stop.drops)
        asked = stop.outside.asked if stop.outside is not None else ()
        return [
            msgspec.structs.replace(line, by="asked") if line.entry.id in asked else line
            for line in lines
        ]
    pins = set(state.pins)
    return [
        held.Line(e, Fate.KEEP, state.cost(e.id) or 0, "pin" if e.id in pins else "policy")
        for e in state.context
    ]


def why_of(line: held.Line, pins: Collection[EntryId], summary: bool) -> str:
    """Why it meets its fate, in two words; `summary` says that one speaks for what goes."""
    match line.fate:
        case Fate.KEEP if line.by == "pin" or line.entry.id in pins:
            return "pinned by you"
        case Fate.REMOVE if line.by == "user":
            return "dropped by you"
        case _ if line.by == "asked":
            return "asked to keep it word for word"
        case Fate.REMOVE:
            return "into summary" if summary else "removed"
        case Fate.REPLACE:
            return "gives way to ↓"
        case Fate.REPLACEMENT:
            return "in its place"
        case Fate.INSERT if line.stands_for:
            return f"for {figures.count(line.stands_for, 'entry', 'entries')}"
        case Fate.INSERT:
            return "inserted"
        case _:
            return ""


def row_line(state: SessionState, line: held.Line, why: str, basis: Basis, cells: int) -> Line:
    """A row of the list."""
    item = line.entry.item
    sign, tone = SIGNS[line.fate]
    letter, letter_tone = _LETTERS.get(kind_of(item), ("O", Tone.PART_OTHER))
    pinned = why.startswith("pinned")
    quiet = line.fate in (Fate.REMOVE, Fate.REPLACE)
    # A new entry has no number before it is in the record.
    id = "new" if line.fate in (Fate.INSERT, Fate.REPLACEMENT) else str(line.entry.id)
    left: Line = [
        span(f"{sign} ", tone),
        span(_held_sign(why), Tone.ACCENT),
        column(id, 6, Tone.FAINT, right=True),
        span(f" {letter} ", Tone.MUTED if quiet else letter_tone),
        span(line_of(_titled(state, item), cells), Tone.MUTED if quiet else Tone.PLAIN),
    ]
    right: Line = []
    if cells >= WIDE:
        by_user = pinned or why.startswith(("dropped", "asked"))
        short = _SHORT.get(why, why.removesuffix(" by you"))
        if line.stands_for:
            short = f"for {line.stands_for:,}"
        right.append(column(short, WHY, Tone.ACCENT if by_user else Tone.FAINT))
    tokens = f"{figures.mark(basis)}{line.tokens:,}"
    right.append(column(tokens, TOKENS, Tone.MUTED if quiet else Tone.PLAIN, right=True))
    return spread(left, right, cells)


_SHORT = {
    "into summary": "into Σ",
    "gives way to ↓": "↓",
    "in its place": "↑",
    "asked to keep it word for word": "asked",
}
"""The reason in the list; in full it stands beside the text."""


def _held_sign(why: str) -> str:
    """What the user holds of an entry."""
    signs = {"pinned": PIN, "dropped": "×", "asked": "!"}
    return signs.get(why.partition(" ")[0], " ")


def _titled(state: SessionState, item: Item) -> str:
    title = item_title(state, item)
    # The letter beside it says who speaks.
    head, colon, rest = title.partition(": ")
    return (
        rest if colon and head in ("user", "assistant", "system", "summary", "reasoning") else title
    )


def entry_lines(
    state: SessionState,
    line: held.Line | None,
    why: str,
    basis: Basis,
    cells: int,
    read: str = "w",
) -> list[Line]:
    """An entry with as much of its text as can be shown here; `read` is the key that shows all."""
    if line is None:
        return said("Select an entry to read all of it here.", cells)
    sign, tone = SIGNS[line.fate]
    fate = {Fate.REPLACEMENT: "inserted in place of the one above"}.get(
        line.fate, _FATES[line.fate]
    )
    told = f"{fate}, {why}" if why and why not in fate else fate
    found = [
        spread(
            [span(f"{role_of(line.entry.item)}  {line.entry.id}", Tone.STRONG)],
            [span(f"{figures.mark(basis)}{line.tokens:,} tokens {basis}", Tone.MUTED)],
            cells,
        ),
        [span(f"{sign} {told}", tone)],
        [],
    ]
    text = line.entry.item.text
    shown, whole = len(text), text_length(line.entry.item)
    if shown < whole:
        told = f"{shown:,} of {whole:,} characters are here: "
        found += [[span(told, Tone.MUTED), span(read, Tone.STRONG), span(" reads all")], []]
    elif _capped(text):
        told = "not all of it is here: "
        found += [[span(told, Tone.MUTED), span(read, Tone.STRONG), span(" reads all")], []]
    return [*found, *text_lines(text, cells)]


def _capped(text: str) -> bool:
    """Whether `text_lines` leaves something out."""
    if len(text) <= LINE_CHARACTERS:
        return False
    lines = text.split("\n")
    return len(lines) > HEAD_LINES + TAIL_LINES or max(map(len, lines)) > LINE_CHARACTERS


_FATES = {
    Fate.KEEP: "would stay",
    Fate.REMOVE: "would be removed",
    Fate.REPLACE: "would be rewritten",
    Fate.INSERT: "would be inserted",
}


def text_lines(text: str, cells: int) -> list[Line]:
    """A whole text, wrapped and capped."""
    if not text:
        return [[span("empty", Tone.FAINT)]]
    capped = cap_lines(text, HEAD_LINES, TAIL_LINES, LINE_CHARACTERS)
    return [[span(line)] for line in wrap(capped, cells)]


def said(text: str, cells: int) -> list[Line]:
    """A sentence of ours."""
    return [[span(line, Tone.MUTED)] for line in wrap(text, cells)]


def summarised(stop: Stop | None) -> bool:
    """Whether a summary speaks for what goes."""
    if stop is None or stop.proposal is None:
        return False
    return stop.proposal.edit.summary is not None or stop.pending is not None


def basis_of(stop: Stop | None, state: SessionState) -> Basis:
    """The basis of the figures of entries."""
    return stop.proposal.before.basis if stop is not None and stop.proposal else state.basis
