"""The whole life of an entry, and what a summary stands for.

From any entry one can go forward (rewritten into, absorbed into) and back (descends from). Steps
name their journal lines, so that a reader can look at each.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from .. import events as e
from ..context import Change, Context, EntryId
from ..history import History
from ..items import CompactionSummary, FunctionCallOutput
from ..views import Card, CardStatus, Fate
from .naming import made_how


class StepKind(StrEnum):
    """A step in the life of an entry."""

    CREATED = "created"
    CAPPED = "capped"
    """It was longer, and was cut before it entered the context."""
    KEPT = "kept"
    REWRITTEN = "rewritten"
    REMOVED = "removed"
    ABSORBED = "absorbed"
    """It left, and a summary speaks for it."""
    ROLLED_BACK = "rolled back"
    RESTORED = "restored"
    """The same item came back under another id."""
    OUTSIDE = "outside"
    """It was recorded, but the model never saw it."""
    IN_CONTEXT = "in context"
    """The last step of what the model still sees."""


class Step(msgspec.Struct, frozen=True):
    """One step. `line` is the journal line it happened at, `id` the entry it happened to (the
    entry itself, what it was rewritten into, or a summary that speaks for it), `other` the entry
    it leads to. `ordinal` is the compaction, 0 for none. `words` is foreign text in part."""

    kind: StepKind
    line: int
    id: EntryId
    words: str
    ordinal: int = 0
    other: EntryId | None = None


class Life(msgspec.Struct, frozen=True):
    """A life: the forms that the entry itself had, from the first; then the summaries that speak
    for it, each absorbed into the next. `fate` is that of the last form of its own."""

    forms: tuple[EntryId, ...]
    summaries: tuple[EntryId, ...]
    steps: tuple[Step, ...]
    fate: Fate
    seen: str
    """Whether the model still sees it: itself, a summary of it, or nothing, in words."""


class Standing(msgspec.Struct, frozen=True):
    """An entry that a summary stands for. `via` is the summary between the two, where it was
    absorbed by an earlier one first; `depth` counts such steps from 1."""

    id: EntryId
    depth: int
    via: EntryId | None = None


class Lineage:
    """The lives of all entries of a session at one position. Made in one pass over the records."""

    def __init__(self, history: History, position: int | None = None) -> None:
        end = len(history) if position is None else position
        self.state = history.state if end >= len(history) else history.at(end)
        self._done = [card for card in self.state.cards if card.status is CardStatus.DONE]
        self._was: dict[EntryId, EntryId] = {
            new: old for card in self._done for old, new in card.replaced_ids
        }
        self._caps: dict[EntryId, tuple[int, str]] = {}
        self._left: dict[EntryId, int] = {}
        self._returned: dict[EntryId, tuple[EntryId, int]] = {}
        self._again: dict[EntryId, EntryId] = {}
        self._read(history, end)

    def life(self, id: EntryId) -> Life:
        """The life of an entry that is or was known. Raises KeyError for any other id."""
        forms = self._forms(id)
        steps: list[Step] = []
        for form in forms:
            steps += self._steps(form, first=form == forms[0])
        fate = self.state.fate(forms[-1])
        summaries = tuple(self._summaries(fate))
        for summary in summaries:
            steps += self._steps(summary, first=False)
        return Life(forms, summaries, tuple(steps), fate, self._seen(forms[-1], summaries))

    def forms(self, id: EntryId) -> tuple[EntryId, ...]:
        """What the entry was before and after every rewriting, itself among them."""
        return self._forms(id)

    def stands_for(self, summary: EntryId) -> tuple[Standing, ...]:
        """The entries that a summary speaks for, and those its sources speak for, in the order of
        the journal. Empty for an entry that speaks for nothing else."""
        found: dict[EntryId, Standing] = {}
        todo: list[tuple[EntryId, int, EntryId | None]] = [(summary, 1, None)]
        while todo:
            id, depth, via = todo.pop()
            for source in self._sources(id):
                if source == summary or source in found:
                    continue
                found[source] = Standing(source, depth, via)
                speaks = isinstance(self.state.known[source].item, CompactionSummary)
                todo.append((source, depth + speaks, source if speaks else via))
        return tuple(found[id] for id in sorted(found))

    # -- steps -----------------------------------------------------------------------------------

    def _steps(self, id: EntryId, *, first: bool) -> Iterator[Step]:
        fate = self.state.fate(id)
        if first or id not in self._was:
            yield from self._beginning(id)
        if fate.outside:
            yield Step(StepKind.OUTSIDE, id.line, id, "recorded, but the model never saw it")
            return
        left = self._left.get(id)
        for card in self._done:
            if card.n > id.line and (left is None or card.n < left):
                yield Step(StepKind.KEPT, card.n, id, f"kept by {_named(card)}", card.ordinal)
        yield self._end(id, fate, left)
        if (again := self._again.get(id)) is not None:
            words = f"came back as {again}"
            yield Step(StepKind.RESTORED, self._returned[again][1], id, words, other=again)

    def _beginning(self, id: EntryId) -> Iterator[Step]:
        entry = self.state.known[id]
        if id in self._returned:
            old, line = self._returned[id]
            words = f"came back at #{line} as what {old} was"
            yield Step(StepKind.CREATED, line, id, words, other=old)
        elif entry.made_by:
            words = f"inserted at #{id.line} by {self._card_name(entry.made_by)}"
            if count := len(self.stands_for(id)):
                words += f", to stand for {count:,} entr{'y' if count == 1 else 'ies'}"
            yield Step(StepKind.CREATED, id.line, id, words, entry.made_by)
        else:
            words = f"created at #{id.line} {made_how(self.state, entry)}"
            yield Step(StepKind.CREATED, id.line, id, words)
        if id in self._caps:
            line, words = self._caps[id]
            yield Step(StepKind.CAPPED, line, id, words)

    def _end(self, id: EntryId, fate: Fate, left: int | None) -> Step:
        line = left if left is not None else max(self.state.position, id.line)
        ordinal = fate.removed_by
        name = self._card_name(ordinal)
        if fate.rolled_back:
            return Step(StepKind.ROLLED_BACK, line, id, f"taken back at #{line}")
        if fate.became is not None:
            words = f"rewritten by {name} into {fate.became}"
            return Step(StepKind.REWRITTEN, line, id, words, ordinal, fate.became)
        if fate.summary is not None:
            words = f"absorbed by {name} into summary {fate.summary}"
            return Step(StepKind.ABSORBED, line, id, words, ordinal, fate.summary)
        if ordinal:
            return Step(StepKind.REMOVED, line, id, f"removed by {name}", ordinal)
        return Step(StepKind.IN_CONTEXT, line, id, "in the context")

    def _seen(self, last: EntryId, summaries: tuple[EntryId, ...]) -> str:
        context = self.state.context
        if context.place(last) is not None:
            return "the model sees it"
        again = self._again.get(last)
        if again is not None and context.place(again) is not None:
            return f"the model sees it again as {again}"
        for summary in summaries:
            if context.place(summary) is not None:
                return f"the model sees only summary {summary}, which speaks for it"
        return "the model sees nothing of it"

    # -- going there and back ----------------------------------------------------------------------

    def _forms(self, id: EntryId) -> tuple[EntryId, ...]:
        if id not in self.state.known:
            raise KeyError(str(id))
        first = id
        while (old := self._was.get(first)) is not None:
            first = old
        forms = [first]
        while (new := self.state.fate(forms[-1]).became) is not None:
            forms.append(new)
        return tuple(forms)

    def _summaries(self, fate: Fate) -> Iterator[EntryId]:
        """Each summary that speaks for the one before, in all forms it had."""
        here = fate.summary
        while here is not None:
            yield here
            fate = self.state.fate(here)
            here = fate.became or fate.summary

    def _sources(self, id: EntryId) -> tuple[EntryId, ...]:
        if (old := self._was.get(id)) is not None:
            return (old,)
        return tuple(source for source in self.state.known[id].origin if source != id)

    def _card_name(self, ordinal: int) -> str:
        card = self.state.card_of(ordinal)
        return _named(card) if card is not None else f"compaction {ordinal}"

    # -- the one pass ----------------------------------------------------------------------------

    def _read(self, history: History, end: int) -> None:
        for card in self._done:
            for id in (*card.removed_ids, *(old for old, _ in card.replaced_ids)):
                self._left[id] = card.n
        finished: dict[str, tuple[int, e.ToolFinished]] = {}
        note: tuple[int, str] | None = None
        for at, record in enumerate(history.records[:end]):
            match record.event:
                case e.ToolFinished() as event:
                    finished[event.call_id] = (record.n, event)
                case e.Note(kind="entry_cap", text=text):
                    note = (record.n, text)
                case e.ItemAppended(item=FunctionCallOutput() as item, part=part):
                    id = EntryId(record.n, part)
                    if (cap := _cap(id, item, note, finished)) is not None:
                        self._caps[id] = cap
                    note = None
                case e.HistoryCompacted():
                    pass
                case event if getattr(event, "segments", None):
                    self._edited(history, at, record)
                case _:
                    pass

    def _edited(self, history: History, at: int, record: e.Record) -> None:
        """An edit that is no compaction: a rollback, an undo, a restored entry."""
        before = history.at(at).context
        change = _change(before, record)
        if change is None:
            return
        for id in change.removed:
            self._left.setdefault(id, record.n)
        here = set(before.ids)
        gone = {
            known.item: known.id
            for known in self.state.known.values()
            if known.id.line < record.n and known.id not in here
        }
        for id in change.inserted:
            entry = change.after.get(id)
            old = gone.get(entry.item) if entry is not None else None
            if old is not None:
                self._returned[id] = (old, record.n)
                self._again[old] = id


def _change(before: Context, record: e.Record) -> Change | None:
    try:
        return before.apply(getattr(record.event, "segments", ()), record.n, 0)
    except ValueError:
        return None  # the state has said that the record does not fit


def _cap(
    id: EntryId,
    item: FunctionCallOutput,
    note: tuple[int, str] | None,
    finished: dict[str, tuple[int, e.ToolFinished]],
) -> tuple[int, str] | None:
    if note is not None:
        return note[0], f"capped at entry: {note[1]}"
    found = finished.pop(item.call_id, None)
    if found is not None and found[1].saved and found[1].size > len(item.output):
        line, event = found
        kept = f"{len(item.output):,} of {event.size:,} characters"
        return line, f"capped at entry to {kept}; the whole text is in {event.saved}"
    if item.saved:
        return id.line, f"capped at entry; the whole text is in {item.saved}"
    return None


def _named(card: Card) -> str:
    stage = f" ({card.policy} {card.stage})" if card.stage else ""
    return f"compaction {card.ordinal}{stage}"
