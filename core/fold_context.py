"""Folding what changes the context as a whole: compactions, rollbacks, restores, reductions."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from . import events as e
from .amounts import count
from .context import EntryId, SegmentError
from .debug.held import HeldEvent, words
from .items import likeness
from .state_data import Changed, StateData, Status
from .views import Card, Fate, Point, RowKind

LOOKED_BACK: Final = 2_000
"""Entries that left last, among which one that came back is looked for."""


class ContextFold(StateData):
    """The part of the fold that exchanges the context, and opens and closes the cards."""

    def _compaction(self, record: e.Record, event: e.Event) -> Changed:
        match event:
            case e.CompactionStarted():
                self._open(record, Card.started(record, event))
                self.status = Status.COMPACTING
            case e.CompactionProposed():
                at = self._pass(record, event.pass_id, event.policy, event.stage)
                self.cards[at] = self.cards[at].proposed(event)
            case e.SummaryAttemptFailed():
                at = self._pass(record, event.pass_id, "", "")
                self.cards[at] = self.cards[at].attempt_failed(event)
            case e.CompactionSkipped() | e.CompactionFailed():
                at = self._pass(record, event.pass_id, event.policy, event.stage)
                self.cards[at] = self.cards[at].ended(record, event)
                self._open_passes.pop(event.pass_id, None)
                self.status = self._after_compaction()
                # Who stops a compaction says nothing about whether the next one would work.
                if isinstance(event, e.CompactionFailed) and event.outcome is not e.Outcome.ABORTED:
                    self.failures += 1
                    self.failed_stage = event.stage
                    if event.kind == "overflow":
                        self._refuse()
            case e.HistoryCompacted():
                return self._compacted(record, event)
            case _:
                pass
        return Changed.CARDS | Changed.ROWS | Changed.STATUS

    def _open(self, record: e.Record, card: Card) -> int:
        at = len(self.cards)
        self.cards.append(card)
        self._open_passes[card.pass_id] = at
        self._row(RowKind.COMPACTION, record, card=at)
        return at

    def _pass(self, record: e.Record, pass_id: str, policy: str, stage: str) -> int:
        at = self._open_passes.get(pass_id)
        if at is None:
            card = Card(
                pass_id=pass_id, policy=policy, stage=stage, n=record.n, started_at=record.at
            )
            at = self._open(record, card)
        return at

    def _compacted(self, record: e.Record, event: e.HistoryCompacted) -> Changed:
        at = self._pass(record, event.pass_id, event.policy, event.stage)
        # One pass may hold several edits: each has its own card, the last open one is used up.
        self._open_passes.pop(event.pass_id, None)
        before = self.context
        try:
            change = before.apply(event.segments, record.n, event.ordinal, self.known)
        except (SegmentError, ValueError) as fault:
            self.cards[at] = self.cards[at].broken(record, event, str(fault))
            self.status = self._after_compaction()
            return self._problem(
                record, f"compaction {event.ordinal} does not fit the context: {fault}"
            )
        self._enter(change.after)
        self._fates(change.removed, change.inserted, event.ordinal)
        for old, new in change.replaced:
            self.fates[old] = Fate(removed_by=event.ordinal, became=new)
        for id in change.restored:
            self.fates.pop(id, None)
        card = self.cards[at].done(record, event, change, before)
        self.cards[at] = msgspec.structs.replace(card, memory_before=self.memory)
        self.compactions += 1
        if event.summary is not None or event.opaque or event.stage == self.failed_stage:
            # A cheap stage that works says nothing about the summaries that fail beside it.
            self.failures = 0
        self._forget_usage()
        self.memory = {**self.memory, **event.memory}
        self.status = self._after_compaction()
        if event.before and event.after and event.before.comparable(event.after):
            key = (event.before.basis, event.before.scope)
            gone = event.before.value - event.after.value
            self.removed_tokens[key] = self.removed_tokens.get(key, 0) + gone
        after = event.after.value if event.after else None
        self.points.append(
            Point(n=record.n, round=self.rounds, total=after, estimated=True, card=at)
        )
        found = Changed.CARDS | Changed.ROWS | Changed.CONTEXT | Changed.METER | Changed.STATUS
        if event.digest and event.digest != change.after.digest():
            found |= self._problem(
                record,
                f"the context after compaction {event.ordinal} differs from the recorded digest: "
                "this replay has forked from what really happened",
            )
        return found

    def _rolled_back(self, record: e.Record, event: e.HistoryRolledBack) -> Changed:
        try:
            change = self.context.apply(event.segments, record.n, 0)
        except (SegmentError, ValueError) as fault:
            return self._problem(record, f"the rollback does not fit the context: {fault}")
        self._enter(change.after)
        for id in change.removed:
            self.fates[id] = Fate(rolled_back=True)
        for old, new in change.replaced:
            self.fates[old] = Fate(gave_way=new)
        self._came_back((*change.inserted, *(new for _, new in change.replaced)))
        for at, card in enumerate(self.cards):
            if card.ordinal in event.undone and not card.undone:
                self.cards[at] = card.taken_back(record.n)
        # A figure from before the rollback counts what is no longer there.
        self._forget_usage()
        what = f"rollback of {count(event.turns, 'turn')}"
        text = f"{what}: {count(event.removed, 'item')} taken back"
        self._row(RowKind.NOTE, record, text=event.reason or text)
        return Changed.CARDS | Changed.CONTEXT | Changed.ROWS | Changed.METER

    def _came_back(self, new: tuple[EntryId, ...]) -> None:
        """What had left before and is there again as one of these has not left. Only what left last
        is looked at: there may be as many such edits as requests."""
        wanted = {likeness(self.known[id].item): id for id in new}
        found: dict[EntryId, Fate] = {}
        for old in islice(reversed(self.fates), LOOKED_BACK):
            if not wanted:
                break
            if not self.fates[old].gone:
                continue
            like = likeness(self.known[old].item)
            # Only ever as a later one, whatever lines a record names: nothing leads in a circle.
            if like in wanted and wanted[like] > old:
                found[old] = Fate(back=wanted.pop(like))
        self.fates |= found

    def _restored(self, record: e.Record, event: e.HistoryRestored) -> Changed:
        try:
            change = self.context.apply(event.segments, record.n, 0, self.known)
        except (SegmentError, ValueError) as fault:
            return self._problem(record, f"the restored entries do not fit the context: {fault}")
        self._enter(change.after)
        for id in change.removed:
            # What leaves for a single entry is the rewritten form whose place it takes.
            gave_way = None if event.undone else next(iter(change.restored), None)
            self.fates[id] = Fate(undone=event.undone, gave_way=gave_way)
        for id in change.restored:
            self.fates.pop(id, None)
        for at, card in enumerate(self.cards):
            if event.undone and card.ordinal == event.undone:
                self.cards[at] = card.taken_back(record.n)
        self._forget_usage()
        if event.memory is not None:
            self.memory = event.memory
        if event.before and event.after and event.before.comparable(event.after):
            key = (event.before.basis, event.before.scope)
            more = event.after.value - event.before.value
            self.removed_tokens[key] = self.removed_tokens.get(key, 0) - more
        total = event.after.value if event.after else None
        self.points.append(Point(n=record.n, round=self.rounds, total=total, estimated=True))
        what = f"compaction {event.undone} undone: " if event.undone else ""
        came = "entry" if event.restored == 1 else "entries"
        text = f"{what}{event.restored} {came} restored, {event.removed} taken out"
        self._row(RowKind.NOTE, record, text=text)
        found = Changed.CARDS | Changed.ROWS | Changed.CONTEXT | Changed.METER
        if event.digest and event.digest != change.after.digest():
            found |= self._problem(
                record,
                "the context after a restore differs from the recorded digest: this replay has "
                "forked from what really happened",
            )
        return found

    def _decided(self, record: e.Record, event: e.CompactionDecided) -> Changed:
        at = self._open_passes.get(event.pass_id)
        if at is not None:
            self.cards[at] = self.cards[at].decided(event)
        return Changed.CARDS | Changed.STATUS

    def _hold(self, record: e.Record, event: HeldEvent) -> Changed:
        try:
            self.held = self.held.after(event, self.context)
        except ValueError as fault:
            return self._problem(record, f"{words(event)} does not fit the context: {fault}")
        match event:
            case e.DebuggerStopped():
                self._before_stop, self.status = self.status, Status.STOPPED
            case e.DebuggerContinued() if self.status is Status.STOPPED:
                self.status = self._before_stop
            case _:
                pass
        self._row(RowKind.NOTE, record, text=words(event))
        return Changed.ROWS | Changed.STATUS | Changed.CONTEXT

    def _reduced(self, record: e.Record, event: e.UnannouncedReduction) -> Changed:
        before, change = self.context, None
        if event.segments:
            try:
                change = before.apply(event.segments, record.n, 0)
            except (SegmentError, ValueError) as fault:
                return self._problem(record, f"the reduction does not fit the context: {fault}")
            self._enter(change.after)
            for id in change.removed:
                self.fates[id] = Fate(unannounced=True)
            for old, new in change.replaced:
                self.fates[old] = Fate(unannounced=True, became=new)
        self._row(RowKind.COMPACTION, record, card=len(self.cards))
        self.cards.append(Card.unannounced(record, event, change, before))
        return Changed.CARDS | Changed.CONTEXT | Changed.ROWS | Changed.METER

    def _fates(
        self, removed: tuple[EntryId, ...], inserted: tuple[EntryId, ...], ordinal: int
    ) -> None:
        spoken: dict[EntryId, Fate] = {}
        for id in reversed(inserted):
            # The first one that speaks for an entry counts.
            if origin := self.known[id].origin:
                spoken.update(dict.fromkeys(origin, Fate(removed_by=ordinal, summary=id)))
        fates, unspoken = self.fates, Fate(removed_by=ordinal)
        for id in removed:
            fates[id] = spoken.get(id, unspoken)
