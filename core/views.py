"""The small frozen records that SessionState is made of: rows, cards, tool runs, points, fates."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from . import events as e
from .compaction.policy import Moment, Trigger
from .context import Change, Context, EntryId
from .tokens import Tokens, Usage


class RowKind(StrEnum):
    """What a row of the timeline shows."""

    TURN = "turn"
    TURN_END = "turn_end"
    ROUND = "round"
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    REASONING = "reasoning"
    TOOL = "tool"
    OUTPUT = "output"
    SUMMARY = "summary"
    OTHER = "other"
    COMPACTION = "compaction"
    NOTE = "note"
    ERROR = "error"
    UNKNOWN = "unknown"


class Row(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A row of the timeline: what it shows, and where to look it up.

    `n` is the journal line; `id`, `call_id` and `card` point into the state's tables; `number` is a
    turn or round; `text` is set where the row has no other source.
    """

    kind: RowKind
    n: int
    at: float = 0.0
    id: EntryId | None = None
    call_id: str = ""
    card: int = -1
    number: int = 0
    text: str = ""


class ToolStatus(StrEnum):
    """Where a tool call stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class ToolRun(msgspec.Struct, frozen=True, gc=False):
    """A tool call with everything that became of it; `live` is the end of its output so far."""

    call_id: str
    name: str
    arguments: str = ""
    status: ToolStatus = ToolStatus.WAITING
    started: float = 0.0
    seconds: float = 0.0
    exit_code: int | None = None
    size: int = 0
    saved: str = ""
    live: str = ""
    call: EntryId | None = None
    output: EntryId | None = None


class Point(msgspec.Struct, frozen=True, gc=False):
    """A figure of the token chart: a report, or (`card` >= 0) the drop at a compaction.

    `total` is None when the figure after a compaction is not known.
    """

    n: int
    round: int
    total: int | None
    estimated: bool = False
    card: int = -1


class Fate(msgspec.Struct, frozen=True, gc=False):
    """What became of an entry. All defaults: it is in the context."""

    removed_by: int = 0
    became: EntryId | None = None
    """The entry that it was rewritten into."""
    summary: EntryId | None = None
    """The summary that speaks for it."""
    outside: bool = False
    """It was recorded, but the model never saw it."""
    rolled_back: bool = False
    """It left by an edit that is no compaction: a turn taken back, another branch."""
    unannounced: bool = False
    """The program left it out without a word."""
    undone: int = 0
    """The compaction that had made it, and was undone."""
    gave_way: EntryId | None = None
    """The entry that stands in its place: what it was rewritten from, which came back."""
    back: EntryId | None = None
    """The entry that it came back as: the same item under another id."""

    @property
    def gone(self) -> bool:
        """Whether the model does not see it any more, in this form or under another id."""
        left = self.removed_by or self.undone or self.rolled_back or self.unannounced
        return bool(left) or self.became is not None or self.gave_way is not None

    def words(self) -> str:
        """The fate in words, as screens show it."""
        if self.outside:
            return "recorded, never in the context"
        if self.back is not None:
            return f"in context again, as {self.back}"
        if self.rolled_back:
            return "left the context without a compaction"
        if self.unannounced and self.became is not None:
            return f"rewritten by the program into {self.became}, unannounced"
        if self.unannounced:
            return "left out by the program, unannounced"
        if self.undone:
            return f"gone since compaction {self.undone} was undone"
        if self.gave_way is not None:
            return f"gave way to {self.gave_way}, which was restored"
        if self.became is not None:
            return f"rewritten by compaction {self.removed_by} into {self.became}"
        if self.summary is not None:
            return f"absorbed by compaction {self.removed_by} into summary {self.summary}"
        if self.removed_by:
            return f"removed by compaction {self.removed_by}"
        return "in context"


class CardStatus(StrEnum):
    """Where a compaction stands: running, proposed, or how it ended."""

    RUNNING = "running"
    PROPOSED = "proposed"
    DONE = "done"
    NO_OP = "no-op"
    GREW = "grew"
    EMPTY = "empty"
    FAILED = "failed"
    ABORTED = "aborted"
    SUPERSEDED = "superseded"
    UNANNOUNCED = "unannounced"
    """A foreign client sent less than before; nothing in its record says so."""
    BROKEN = "broken"
    """The record does not fit the context it is applied to."""


class Card(msgspec.Struct, frozen=True, omit_defaults=True):
    """One compaction, from the moment its rule fired to its outcome.

    `items_before` = kept + removed + replaced; `streamed` is the summary while it is written.
    The id tuples are those of the context before (kept, removed, replaced old) and after.
    """

    pass_id: str
    policy: str
    stage: str
    n: int
    status: CardStatus = CardStatus.RUNNING
    ordinal: int = 0
    moment: Moment | None = None
    trigger: Trigger = Trigger.AUTO
    reason: str = ""
    focus: str = ""
    items_before: int = 0
    items_after: int = 0
    kept: int = 0
    removed: int = 0
    replaced: int = 0
    inserted: int = 0
    kept_ids: tuple[EntryId, ...] = ()
    removed_ids: tuple[EntryId, ...] = ()
    replaced_ids: tuple[tuple[EntryId, EntryId], ...] = ()
    inserted_ids: tuple[EntryId, ...] = ()
    before: Tokens | None = None
    after: Tokens | None = None
    usage: Usage | None = None
    summary: str | None = None
    opaque: bool = False
    streamed: str = ""
    summariser: e.Summariser | None = None
    failed_attempts: tuple[e.SummaryAttemptFailed, ...] = ()
    failure_kind: str = ""
    failures: int = 0
    next_step: str = ""
    marks: tuple[str, ...] = ()
    evidence: str = "recorded"
    reason_evidence: str = "recorded"
    phase: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    window: int = 0
    context_before: Context | None = None
    context_after: Context | None = None
    decisions: tuple[e.CompactionDecided, ...] = ()
    """What the user decided while it was held."""
    memory_before: dict[str, Any] = {}
    """What the policy knew before it."""
    undone: int = 0
    """The journal line that undid it."""
    counts_unknown: bool = False
    """What stayed, left and came is not known (see HistoryCompacted)."""

    @classmethod
    def started(cls, record: e.Record, event: e.CompactionStarted) -> Card:
        """A card for a pass whose rule has just fired."""
        return cls(
            pass_id=event.pass_id,
            policy=event.policy,
            stage=event.stage,
            n=record.n,
            moment=event.moment,
            trigger=event.trigger,
            reason=event.reason,
            focus=event.focus,
            started_at=record.at,
        )

    def proposed(self, event: e.CompactionProposed) -> Card:
        """The card with the counts of an edit that is not applied yet."""
        return msgspec.structs.replace(
            self,
            status=CardStatus.PROPOSED,
            stage=event.stage or self.stage,
            reason=event.reason or self.reason,
            removed=event.removed,
            kept=event.kept,
            replaced=event.replaced,
            inserted=event.inserted,
            before=event.before,
            after=event.after,
        )

    def decided(self, event: e.CompactionDecided) -> Card:
        """The card with one more word of the user."""
        return msgspec.structs.replace(self, decisions=(*self.decisions, event))

    def taken_back(self, line: int) -> Card:
        """The card of a compaction that was undone by this journal line."""
        told = f"undone later, at #{line}"
        return msgspec.structs.replace(self, undone=line, marks=(*self.marks, told))

    def attempt_failed(self, event: e.SummaryAttemptFailed) -> Card:
        """The card with one more failed summariser; what it had streamed is void."""
        return msgspec.structs.replace(
            self, failed_attempts=(*self.failed_attempts, event), streamed=""
        )

    def ended(self, record: e.Record, event: e.CompactionSkipped | e.CompactionFailed) -> Card:
        """The card of a pass that changed nothing."""
        card = msgspec.structs.replace(
            self,
            status=CardStatus(event.outcome.value),
            policy=event.policy or self.policy,
            stage=event.stage or self.stage,
            reason=event.reason,
            moment=event.moment,
            trigger=event.trigger,
            streamed="",
            ended_at=record.at,
        )
        if isinstance(event, e.CompactionFailed):
            return msgspec.structs.replace(
                card,
                failure_kind=event.kind,
                failures=event.failures,
                next_step=event.next_step,
                evidence=event.evidence,
                phase=event.phase,
            )
        return msgspec.structs.replace(card, before=event.before, after=event.after)

    def done(
        self, record: e.Record, event: e.HistoryCompacted, change: Change, before: Context
    ) -> Card:
        """The card of a compaction that happened, with the entries it touched."""
        return msgspec.structs.replace(
            self._recorded(record, event),
            status=CardStatus.DONE,
            kept_ids=change.kept,
            removed_ids=change.removed,
            replaced_ids=change.replaced,
            inserted_ids=change.inserted,
            context_before=before,
            context_after=change.after,
        )

    @classmethod
    def unannounced(
        cls, record: e.Record, event: e.UnannouncedReduction, change: Change | None, before: Context
    ) -> Card:
        """The card of a reduction that nobody announced; without `change` nobody knows what left,
        and the contexts before and after are not given."""
        return cls(
            pass_id=f"unannounced-{record.n}",
            policy="unannounced",
            stage=event.kind,
            n=record.n,
            status=CardStatus.UNANNOUNCED,
            reason=event.explanation,
            items_before=event.items_before,
            items_after=event.items_after,
            kept=len(change.kept) if change else 0,
            removed=len(change.removed) if change else 0,
            replaced=len(change.replaced) if change else 0,
            inserted=len(change.inserted) if change else 0,
            kept_ids=change.kept if change else (),
            removed_ids=change.removed if change else (),
            replaced_ids=change.replaced if change else (),
            inserted_ids=change.inserted if change else (),
            before=event.before,
            after=event.after,
            marks=event.signals,
            evidence=event.evidence,
            reason_evidence=event.evidence,
            started_at=record.at,
            ended_at=record.at,
            context_before=before if change else None,
            context_after=change.after if change else None,
        )

    def broken(self, record: e.Record, event: e.HistoryCompacted, fault: str) -> Card:
        """The card of a recorded compaction that does not fit the context at its place."""
        card = self._recorded(record, event)
        return msgspec.structs.replace(card, status=CardStatus.BROKEN, marks=(*card.marks, fault))

    def _recorded(self, record: e.Record, event: e.HistoryCompacted) -> Card:
        return msgspec.structs.replace(
            self,
            n=record.n,
            ordinal=event.ordinal,
            policy=event.policy,
            stage=event.stage,
            moment=event.moment,
            trigger=event.trigger,
            reason=event.reason,
            focus=event.focus or self.focus,
            items_before=event.items_before,
            items_after=event.items_after,
            kept=event.kept,
            removed=event.removed,
            replaced=event.replaced,
            inserted=event.inserted,
            before=event.before,
            after=event.after,
            usage=event.usage,
            summary=event.summary,
            opaque=event.opaque,
            streamed="",
            summariser=event.summariser,
            marks=event.marks,
            evidence=event.evidence,
            reason_evidence=event.reason_evidence,
            phase=event.phase,
            ended_at=record.at,
            window=event.window,
            counts_unknown=event.counts_unknown,
        )
