"""A summary against the one before it: what was added, what vanished, and how old the rest is.

Every compaction that writes a new summary may lose something of the last one without a word. Facts
are compared as a reader would: the same words are the same fact, most of the words are the same
fact said in another way, and the age of a fact is how many summaries it has come through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from ..state import SessionState
from ..views import Card, CardStatus
from .summary_parts import Fact, Section, sections

ALIKE = 0.6
"""The share of words that two facts must have in common to be one fact said in another way."""
MOST_FACTS = 500
"""Facts on one side that are compared for likeness; of more only equal ones are found."""


class FactKind(StrEnum):
    """What became of a fact."""

    KEPT = "kept"
    REWORDED = "reworded"
    ADDED = "added"
    VANISHED = "vanished"


class FactRow(msgspec.Struct, frozen=True):
    """A fact of the new summary, or one of the old that vanished.

    `before` is how the old summary said it, where it did; `since` is the ordinal of the compaction
    whose summary said it first, `age` how many compactions it has come through since (0: it is new
    here). `from_section` is the section it stood in before, where that was another.
    """

    kind: FactKind
    text: str
    since: int
    age: int
    before: str = ""
    from_section: str = ""


class SectionRow(msgspec.Struct, frozen=True):
    """A section of either summary with its facts: those of the new one in its order, then what
    vanished. `kind` is KEPT, REWORDED (some fact is not as it was), ADDED or VANISHED."""

    kind: FactKind
    title: str
    facts: tuple[FactRow, ...]


class SummaryDiff(msgspec.Struct, frozen=True):
    """One summary against the last. `previous` is its ordinal, 0 where this is the first."""

    ordinal: int
    previous: int
    sections: tuple[SectionRow, ...]

    def count(self, kind: FactKind) -> int:
        """Facts of a kind."""
        return sum(fact.kind is kind for section in self.sections for fact in section.facts)

    @property
    def oldest(self) -> int:
        """The greatest age of a fact that is still there."""
        ages = (
            fact.age
            for section in self.sections
            for fact in section.facts
            if fact.kind is not FactKind.VANISHED
        )
        return max(ages, default=0)


def summary_diffs(state: SessionState) -> tuple[SummaryDiff, ...]:
    """Every summary of the session against the one before it, in order.

    Summaries that were taken back (a rollback, an undo) are left out; sealed ones cannot be read.
    """
    return compare_all(
        (card.ordinal, card.summary)
        for card in state.cards
        if card.status is CardStatus.DONE and card.summary and not _taken_back(card, state)
    )


def summary_diff(state: SessionState, ordinal: int) -> SummaryDiff | None:
    """The summary of one compaction against the one before; None where it wrote none."""
    return next((diff for diff in summary_diffs(state) if diff.ordinal == ordinal), None)


def compare_all(texts: Iterable[tuple[int, str]]) -> tuple[SummaryDiff, ...]:
    """The same for (ordinal, text) pairs in order."""
    found: list[SummaryDiff] = []
    previous, known = 0, _Known(())
    for step, (ordinal, text) in enumerate(texts):
        diff, known = _compare(known, sections(text), previous, ordinal, step)
        found.append(diff)
        previous = ordinal
    return tuple(found)


class _Said(msgspec.Struct, frozen=True):
    """A fact with its section, and where it comes from: compaction `since`, summary `step`."""

    fact: Fact
    title: str
    section: str
    since: int
    step: int


class _Known:
    """The facts of the last summary, each given to one fact of the new one at most."""

    def __init__(self, facts: Sequence[_Said]) -> None:
        self.facts = facts
        self.taken: set[int] = set()
        self._equal: dict[str, deque[int]] = {}
        self._with: dict[str, list[int]] = {}
        for at, said in enumerate(facts):
            self._equal.setdefault(said.fact.key, deque()).append(at)
            for word in said.fact.words if at < MOST_FACTS else ():
                self._with.setdefault(word, []).append(at)

    def equal(self, fact: Fact) -> int | None:
        """The next free fact with the same key. Asked before any is taken for likeness."""
        same = self._equal.get(fact.key)
        return same.popleft() if same else None

    def alike(self, fact: Fact) -> int | None:
        """The free fact that is most like this one, where one is alike enough."""
        words = fact.words
        shared: dict[int, int] = {}
        for word in words:
            for at in self._with.get(word, ()):
                shared[at] = shared.get(at, 0) + 1
        best, score = None, 0.0
        for at, count in shared.items():
            if at in self.taken:
                continue
            share = 2 * count / (len(words) + len(self.facts[at].fact.words))
            if share > score:
                best, score = at, share
        return best if score >= ALIKE else None


def _compare(
    known: _Known, now: Sequence[Section], previous: int, ordinal: int, step: int
) -> tuple[SummaryDiff, _Known]:
    flat = [(section, fact) for section in now for fact in section.facts]
    match = _matched(known, [fact for _, fact in flat])
    rows: dict[str, list[FactRow]] = {section.key: [] for section in now}
    said: list[_Said] = []
    for at, (section, fact) in enumerate(flat):
        old_at = match.get(at)
        old = None if old_at is None else known.facts[old_at]
        rows[section.key].append(_row(section, fact, old, ordinal, step))
        since, first = (ordinal, step) if old is None else (old.since, old.step)
        said.append(_Said(fact, section.title, section.key, since, first))
    titles = {section.key: section.title for section in now}
    for at, gone in enumerate(known.facts):
        if at not in known.taken:
            titles.setdefault(gone.section, gone.title)
            row = FactRow(FactKind.VANISHED, gone.fact.text, gone.since, step - 1 - gone.step)
            rows.setdefault(gone.section, []).append(row)
    had = {before.section for before in known.facts}
    has = {section.key for section in now}
    table = tuple(
        SectionRow(_kind(key, had, has, rows[key]), titles[key], tuple(rows[key])) for key in rows
    )
    return SummaryDiff(ordinal, previous, table), _Known(said)


def _matched(known: _Known, facts: Sequence[Fact]) -> dict[int, int]:
    """Which fact of the last summary each of these is: first the equal ones, then the alike."""
    match: dict[int, int] = {}
    for at, fact in enumerate(facts):
        if (same := known.equal(fact)) is not None:
            match[at] = same
            known.taken.add(same)
    for at, fact in enumerate(facts[:MOST_FACTS]):
        if at not in match and (like := known.alike(fact)) is not None:
            match[at] = like
            known.taken.add(like)
    return match


def _row(section: Section, fact: Fact, old: _Said | None, ordinal: int, step: int) -> FactRow:
    if old is None:
        return FactRow(FactKind.ADDED, fact.text, ordinal, 0)
    same = old.fact.key == fact.key
    return FactRow(
        FactKind.KEPT if same else FactKind.REWORDED,
        fact.text,
        old.since,
        step - old.step,
        before="" if same else old.fact.text,
        from_section=old.title if old.section != section.key else "",
    )


def _kind(key: str, had: set[str], has: set[str], rows: Sequence[FactRow]) -> FactKind:
    if key not in has:
        return FactKind.VANISHED
    if key not in had:
        return FactKind.ADDED
    same = all(row.kind is FactKind.KEPT and not row.from_section for row in rows)
    return FactKind.KEPT if same else FactKind.REWORDED


def _taken_back(card: Card, state: SessionState) -> bool:
    return bool(card.undone) or any(state.fate(id).rolled_back for id in card.inserted_ids)
