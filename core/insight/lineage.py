"""The whole life of an entry, and what a summary stands for.

From any entry one can go forward (rewritten into, absorbed into) and back (descends from). Steps
name their journal lines, so that a reader can look at each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import msgspec

from .. import events as e
from ..context import Context, EntryId, Restored
from ..history import History
from ..items import CompactionSummary, Likeness, likeness
from ..state import SessionState
from ..views import Card, CardStatus, Fate
from .caps import Caps
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
    UNDONE = "undone"
    """The compaction that had made it was undone."""
    RESTORED = "restored"
    """It came back: itself, or the same item under another id."""
    OUTSIDE = "outside"
    """It was recorded, but the model never saw it."""
    IN_CONTEXT = "in context"
    """The last step of what the model still sees."""


class Step(msgspec.Struct, frozen=True):
    """One step. `line` is the journal line it happened at, `id` the entry it happened to (the
    entry itself, what it was rewritten into, or a summary that speaks for it), `other` the entry
    it leads to. `ordinal` is the compaction, 0 for none. `reason` is what the record says of an
    edit that is no compaction (that of a compaction stands on its card). `words` and `reason` are
    foreign text in part."""

    kind: StepKind
    line: int
    id: EntryId
    words: str
    ordinal: int = 0
    other: EntryId | None = None
    reason: str = ""


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
    """The lives of all entries of a session at one position. Made by one pass over the records, and
    where entries ever came back, or left without a compaction, by one replay of them."""

    def __init__(self, history: History, position: int | None = None) -> None:
        end = len(history) if position is None else position
        self.state = history.state if end >= len(history) else history.at(end)
        self._done = [card for card in self.state.cards if card.status is CardStatus.DONE]
        self._was: dict[EntryId, EntryId] = {}
        self._next: dict[EntryId, EntryId] = {}
        """What an entry was rewritten into, also where it came back under another id later."""
        self._moves: dict[EntryId, list[Step]] = {}
        """When an entry left the context, and when it came back; of a plain session that follows
        from its fate alone, and this is empty."""
        self._same: dict[EntryId, tuple[EntryId, int]] = {}
        """What is the same item under another id: the id before, and the line of its return."""
        self._again: dict[EntryId, EntryId] = {}
        self._gone: dict[Likeness, list[EntryId]] = {}
        """What left and did not come back so far, what left last at the end."""
        records = history.records[:end]
        self._plain = not any(map(_moves_otherwise, records))
        if self._plain:
            self._read_plain()
        else:
            self._read(records)
        self._find_inserted_again()
        caps = Caps()
        caps.read(records)
        self._caps = caps.cut

    def life(self, id: EntryId) -> Life:
        """The life of an entry that is or was known. Raises KeyError for any other id."""
        forms = self._forms(id)
        steps: list[Step] = []
        for form in forms:
            steps += self._steps(form, first=form == forms[0])
        steps += self._returns(forms[-1])
        fate = self.state.fate(forms[-1])
        summaries = tuple(self._summaries(fate))
        # What speaks for it is of no interest where it stands there itself.
        for summary in summaries if steps[-1].kind is not StepKind.IN_CONTEXT else ():
            steps += self._steps(summary, first=False)
        return Life(forms, summaries, tuple(steps), fate, self._seen(id, forms[-1], summaries))

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
        if first or id not in self._was:
            yield from self._beginning(id)
        if self.state.fate(id).outside:
            yield Step(StepKind.OUTSIDE, id.line, id, "recorded, but the model never saw it")
            return
        # In the life of another entry it is said which one stays or leaves.
        name = "" if first else f"{id} "
        since, here = id.line, True
        for move in self._moves_of(id):
            if here:
                yield from self._kept(id, since, move.line, name)
            yield msgspec.structs.replace(move, words=f"{name}{move.words}") if name else move
            since, here = move.line, move.kind is StepKind.RESTORED
        if here:
            end = max(self.state.position, id.line)
            yield from self._kept(id, since, end + 1, name)
            yield Step(StepKind.IN_CONTEXT, end, id, f"{name}in the context")

    def _returns(self, id: EntryId) -> Iterator[Step]:
        """Each time that the same item was there again under another id."""
        name = ""
        while (again := self._again.get(id)) is not None:
            line = self._same[again][1]
            yield Step(StepKind.RESTORED, line, again, f"{name}came back as {again}", other=again)
            id, name = again, f"{again} "
        if name and self.state.context.place(id) is not None:
            end = max(self.state.position, id.line)
            yield Step(StepKind.IN_CONTEXT, end, id, f"{name}in the context")

    def _moves_of(self, id: EntryId) -> Sequence[Step]:
        if not self._plain:
            return self._moves.get(id, ())
        fate = self.state.fate(id)
        card = self.state.card_of(fate.removed_by) if fate.removed_by else None
        return () if card is None else (_left(id, card.n, fate, self._card_name),)

    def _kept(self, id: EntryId, since: int, until: int, name: str) -> Iterator[Step]:
        for card in self._done:
            if since < card.n < until:
                words = f"{name}kept by {_named(card)}"
                yield Step(StepKind.KEPT, card.n, id, words, card.ordinal)

    def _beginning(self, id: EntryId) -> Iterator[Step]:
        entry = self.state.known[id]
        if id in self._same and not entry.made_by:
            old, line = self._same[id]
            words = f"came back at #{line} as what {old} was"
            yield Step(StepKind.CREATED, line, id, words, other=old)
        elif entry.made_by:
            words = f"inserted at #{id.line} by {self._card_name(entry.made_by)}"
            if count := len(self.stands_for(id)):
                words += f", to stand for {count:,} entr{'y' if count == 1 else 'ies'}"
            same = self._same.get(id)
            if same is not None:
                words += f"; it is what {same[0]} was"
            yield Step(StepKind.CREATED, id.line, id, words, entry.made_by, same and same[0])
        else:
            words = f"created at #{id.line} {made_how(self.state, entry)}"
            yield Step(StepKind.CREATED, id.line, id, words)
        if id in self._caps:
            line, words = self._caps[id]
            yield Step(StepKind.CAPPED, line, id, words)

    def _seen(self, id: EntryId, last: EntryId, summaries: tuple[EntryId, ...]) -> str:
        context, known = self.state.context, self.state.known
        if context.place(id) is not None:
            return "the model sees it"
        if context.place(last) is not None:
            if likeness(known[last].item) == likeness(known[id].item):
                return f"the model sees it again as {last}"
            return f"the model sees only {last} in its place"
        again = last
        while (later := self._again.get(again)) is not None:
            again = later
        if context.place(again) is not None:
            return f"the model sees it again as {again}"
        for form in reversed(self._forms(id)):
            if context.place(form) is not None:
                return f"the model sees only {form} in its place"
        for summary in summaries:
            if context.place(summary) is not None:
                return f"the model sees only summary {summary}, which speaks for it"
        return "the model sees nothing of it"

    # -- going there and back ----------------------------------------------------------------------

    def _forms(self, id: EntryId) -> tuple[EntryId, ...]:
        if id not in self.state.known:
            raise KeyError(str(id))
        forms = [id]
        while (old := self._was.get(forms[0])) is not None:
            forms.insert(0, old)
        while (new := self._form_after(forms[-1])) is not None:
            forms.append(new)
        return tuple(forms)

    def _form_after(self, id: EntryId) -> EntryId | None:
        """What an entry was rewritten into; where that was done to what it came back as, that."""
        became = self._next.get(id)
        if became is None and (became := self.state.fate(id).became) is not None:
            return self._again.get(id, became)
        return became

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

    def _read_plain(self) -> None:
        """Entries only ever left with compactions, and for good: the state tells all of it."""
        for card in self._done:
            self._was |= {made: old for old, made in card.replaced_ids}

    def _read(self, records: Sequence[e.Record]) -> None:
        replay = SessionState()
        for record in records:
            edits = bool(getattr(record.event, "segments", ()))
            before = replay.context if edits else None
            replay.apply(record)
            if before is not None:
                self._edited(record, before, replay)

    def _find_inserted_again(self) -> None:
        """Items that compactions took out and put in again: the instructions of a project, a file
        that is restored. Such an item never left for good."""
        gone: dict[Likeness, EntryId] = {}
        known = self.state.known
        for card in self._done:
            gone |= {likeness(known[id].item): id for id in card.removed_ids}
            for id in card.inserted_ids:
                old = gone.pop(likeness(known[id].item), None)
                if old is None or old in self._again or id in self._same:
                    continue
                if card.context_after is None or card.context_after.place(old) is None:
                    self._same[id] = (old, card.n)
                    self._again[old] = id

    def _edited(self, record: e.Record, before: Context, replay: SessionState) -> None:
        """What an edit took out, brought back and made, whoever made it."""
        after = replay.context
        event = record.event
        silent = event.kind if isinstance(event, e.UnannouncedReduction) else ""
        reason = _reason(event)
        for id in before.ids:
            if after.place(id) is not None:
                continue
            fate = replay.fate(id)
            if (form := fate.became or fate.gave_way) is not None and form.line == record.n:
                self._was[form], self._next[id] = id, form
            step = _left(id, record.n, fate, self._card_name, silent)
            told = "" if step.ordinal else reason
            self._move(msgspec.structs.replace(step, reason=told) if told else step)
            self._gone.setdefault(likeness(replay.known[id].item), []).append(id)
        new = [id for id in after.ids if before.place(id) is None]
        for id in new:
            if id.line != record.n:
                words = f"restored at #{record.n}"
                self._move(Step(StepKind.RESTORED, record.n, id, words))
                self._next.pop(id, None)
                left = self._gone.get(likeness(replay.known[id].item), [])
                if id in left:
                    left.remove(id)
        if not isinstance(event, e.HistoryCompacted):
            made = [id for id in new if id.line == record.n and id not in self._was]
            self._find_again(made, replay)

    def _find_again(self, new: list[EntryId], replay: SessionState) -> None:
        """Entries that an edit made anew although they were known: the same item, another id."""
        for id in new:
            if left := self._gone.get(likeness(replay.known[id].item)):
                old = left.pop()
                self._same[id] = (old, id.line)
                self._again[old] = id

    def _move(self, step: Step) -> None:
        self._moves.setdefault(step.id, []).append(step)


def _moves_otherwise(record: e.Record) -> bool:
    """Whether a record moves entries in a way that a fate alone does not tell."""
    match record.event:
        case e.HistoryCompacted(segments=segments):
            return any(type(each) is Restored for each in segments)
        case e.HistoryRolledBack() | e.HistoryRestored():
            return True
        case e.UnannouncedReduction(segments=segments):
            return bool(segments)
        case _:
            return False


def _reason(event: e.Event) -> str:
    """Why an edit that is no compaction was made, as far as the record says."""
    match event:
        case e.UnannouncedReduction(explanation=text):
            return text
        case e.HistoryRolledBack(reason=text, turns=turns):
            took = "turn was" if turns == 1 else f"{turns:,} turns were"
            return text or (f"the last {took} taken back" if turns else "")
        case _:
            return ""


def _left(id: EntryId, line: int, fate: Fate, name: Callable[[int], str], silent: str = "") -> Step:
    """How an entry left, by the fate that the state gives it at that line. `silent` is the kind of
    reduction, where nobody announced it."""
    ordinal = fate.removed_by
    if fate.rolled_back:
        return Step(StepKind.ROLLED_BACK, line, id, f"left at #{line} without a compaction")
    if fate.unannounced:
        by = f"unannounced at #{line}" + (f" ({silent})" if silent else "")
        if fate.became is None:
            return Step(StepKind.REMOVED, line, id, f"removed, {by}")
        words = f"rewritten, {by}, into {fate.became}"
        return Step(StepKind.REWRITTEN, line, id, words, other=fate.became)
    if fate.became is not None:
        words = f"rewritten by {name(ordinal)} into {fate.became}"
        return Step(StepKind.REWRITTEN, line, id, words, ordinal, fate.became)
    if fate.summary is not None:
        words = f"absorbed by {name(ordinal)} into summary {fate.summary}"
        return Step(StepKind.ABSORBED, line, id, words, ordinal, fate.summary)
    if ordinal:
        return Step(StepKind.REMOVED, line, id, f"removed by {name(ordinal)}", ordinal)
    kind = StepKind.UNDONE if fate.undone else StepKind.REMOVED
    return Step(kind, line, id, fate.words(), fate.undone, fate.gave_way)


def _named(card: Card) -> str:
    stage = f" ({card.policy} {card.stage})" if card.stage else ""
    return f"compaction {card.ordinal}{stage}"
