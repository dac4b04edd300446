"""Words and figures that the written forms of a report have in common."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ..amounts import count as count
from ..text import clean
from ..tokens import Basis, Tokens
from .alignment import RowKind
from .explain import Other
from .redact import Redacted
from .report import CompactionPart, EntryPart, Rewound
from .summary_diff import FactKind, FactRow

GLYPHS = {
    RowKind.KEPT: "=",
    RowKind.REMOVED: "-",
    RowKind.REWRITTEN: "~",
    RowKind.MOVED: "↕",
    RowKind.INSERTED: "+",
}
FACT_GLYPHS = {
    FactKind.KEPT: "=",
    FactKind.REWORDED: "~",
    FactKind.ADDED: "+",
    FactKind.VANISHED: "-",
}
LONGEST = 4_000
"""Characters of an entry that a written report shows; JSON has all of it."""


def when(at: float) -> str:
    """A time in UTC; empty for none."""
    if at <= 0:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return ""


def duration(seconds: float) -> str:
    """A span of time: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def figure(tokens: Tokens | None) -> str:
    """A token figure with its basis: ~1,234 estimated; "unknown" for none."""
    if tokens is None:
        return "unknown"
    mark = "~" if tokens.basis is Basis.ESTIMATED else ""
    return f"{mark}{tokens.value:,} {tokens.basis}"


def change(before: Tokens | None, after: Tokens | None) -> str:
    """Before and after; a difference only where it means something."""
    told = f"{figure(before)} → {figure(after)}"
    if before is None or after is None or not before.comparable(after):
        return told
    gone = before - after
    mark = "~" if before.basis is Basis.ESTIMATED else ""
    share = f", {abs(gone) / before.value:.0%}" if before.value else ""
    sign = "−" if gone >= 0 else "+"
    value = f"{mark}{before.value:,} → {mark}{after.value:,} tokens"
    return f"{value} ({sign}{abs(gone):,}{share}; {before.basis})"


def items(part: CompactionPart) -> str:
    """What happened to the entries: 50 removed, 2 kept, 1 inserted."""
    told = [
        f"{part.counts[kind].rows:,} {kind.value}"
        for kind in (
            RowKind.REMOVED,
            RowKind.REWRITTEN,
            RowKind.MOVED,
            RowKind.INSERTED,
            RowKind.KEPT,
        )
        if kind in part.counts and part.counts[kind].rows
    ]
    return ", ".join(told) or "no entry is on record"


def runs(entries: Sequence[EntryPart]) -> list[list[EntryPart]]:
    """The rows in runs of one kind; only kept ones are worth folding."""
    found: list[list[EntryPart]] = []
    for entry in entries:
        kept = entry.change is RowKind.KEPT
        if kept and found and found[-1][0].change is RowKind.KEPT:
            found[-1].append(entry)
        else:
            found.append([entry])
    return found


def ids(entry: EntryPart) -> str:
    """The ids on both sides, once where they are equal."""
    if entry.before and entry.after and entry.before != entry.after:
        return f"{entry.before} → {entry.after}"
    return entry.after or entry.before


def tokens(entry: EntryPart) -> str:
    """The tokens on both sides, once where nothing changed."""
    before, after = entry.tokens_before, entry.tokens_after
    if before is not None and after is not None and before != after:
        return f"{before:,} → {after:,}"
    value = before if after is None else after
    return "" if value is None else f"{value:,}"


def aged(fact: FactRow) -> str:
    """How old a fact is."""
    if fact.kind is FactKind.VANISHED:
        return f"was there since compaction {fact.since}"
    if fact.age == 0:
        return "new"
    return f"since compaction {fact.since}, came through {fact.age:,}"


def other_says(other: Other) -> str:
    """What another policy would have said, in its own words."""
    words = " ".join(ruling.reason for ruling in other.rulings)
    return words or "; ".join(miss.words for miss in other.misses) or "nothing"


def as_it_was(rewound: Rewound) -> str:
    """That the report ends before the session did."""
    return f"as it was at #{rewound.line}; the session goes on to #{rewound.last}"


def taken_out(redacted: Sequence[Redacted] | None) -> str:
    """What redaction found, in one sentence."""
    if redacted is None:
        return "Nothing was redacted: that was asked for."
    if not redacted:
        return "Looked for keys, tokens, passwords and home folders, and found none."
    told = [
        f"{each.kind} × {each.count:,}"
        + (f" ({each.different:,} different)" if each.different not in (1, each.count) else "")
        for each in redacted
    ]
    return "Taken out: " + ", ".join(told) + ". Look it over before you share it all the same."


def line_of(text: str) -> str:
    """Clean, on one line."""
    return clean(text.strip(), keep_newlines=False)


def block(text: str, most: int = LONGEST) -> tuple[str, int]:
    """Clean text of at most `most` characters, and how many are left out."""
    return clean(text[:most]), max(0, len(text) - most)
