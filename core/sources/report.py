"""What a list of records says of its compactions, and of the context at a line, as plain data.

Works over the records of any source and of our own journals; the command line prints it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .. import events as e
from ..compaction.policy import Moment, Trigger
from ..context import Context
from ..state import SessionState
from ..tokens import Tokens


class Counts(msgspec.Struct, frozen=True):
    """Entries of the context. before = kept + removed + replaced; after = kept + replaced +
    inserted. None is unknown."""

    before: int | None
    after: int | None
    kept: int | None
    removed: int | None
    replaced: int | None
    inserted: int | None


class CompactionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction. `line` is the record's line (its #id), `at` the time in seconds (UTC).

    `outcome` is "done", or for one that changed nothing its outcome. Figures that nobody knows are
    null. `summary` is null where there is none or where it is sealed (`opaque`).
    """

    ordinal: int
    line: int
    at: float
    outcome: str
    policy: str
    stage: str
    trigger: Trigger
    moment: Moment | None
    phase: str
    reason: str
    evidence: str
    reason_evidence: str
    tokens_before: Tokens | None = None
    tokens_after: Tokens | None = None
    items: Counts | None = None
    removed_ids: str = ""
    summary: str | None = None
    opaque: bool = False
    summariser: e.Summariser | None = None
    focus: str = ""
    window: int = 0
    attempts: int = 1
    seconds: float = 0.0
    marks: tuple[str, ...] = ()


def compaction_records(
    records: Iterable[e.Record], *, unsuccessful: bool = False
) -> list[CompactionReport]:
    """One report for each compaction that happened, in order.

    `unsuccessful` adds those that failed or did nothing, and reductions that nobody announced,
    with ordinal 0.
    """
    found: list[CompactionReport] = []
    for record in records:
        match record.event:
            case e.HistoryCompacted():
                found.append(_done(record, record.event))
            case e.CompactionFailed() | e.CompactionSkipped() if unsuccessful:
                found.append(_not_done(record, record.event))
            case e.UnannouncedReduction() if unsuccessful:
                found.append(_unannounced(record, record.event))
            case _:
                pass
    return found


def state_at(records: Iterable[e.Record], line: int | None = None) -> SessionState:
    """The state after the records of all lines up to `line`, inclusive (None: after all)."""
    state = SessionState()
    for record in records:
        if line is not None and record.n > line:
            break
        state.apply(record)
    return state


def context_at(records: Iterable[e.Record], line: int | None = None) -> Context:
    """What the model sees after that line, by the fold that the screens use."""
    return state_at(records, line).context


def _done(record: e.Record, event: e.HistoryCompacted) -> CompactionReport:
    return CompactionReport(
        ordinal=event.ordinal,
        line=record.n,
        at=record.at,
        outcome=str(e.Outcome.DONE),
        policy=event.policy,
        stage=event.stage,
        trigger=event.trigger,
        moment=event.moment,
        phase=event.phase,
        reason=event.reason,
        evidence=event.evidence,
        reason_evidence=event.reason_evidence,
        tokens_before=event.before,
        tokens_after=event.after,
        items=_counts(event),
        removed_ids=event.removed_ids,
        summary=event.summary,
        opaque=event.opaque,
        summariser=event.summariser,
        focus=event.focus,
        window=event.window,
        attempts=event.summariser.attempts if event.summariser else 1,
        seconds=event.seconds,
        marks=event.marks,
    )


def _counts(event: e.HistoryCompacted) -> Counts:
    if event.counts_unknown:
        return Counts(event.items_before or None, event.items_after or None, *[None] * 4)
    return Counts(
        before=event.items_before,
        after=event.items_after,
        kept=event.kept,
        removed=event.removed,
        replaced=event.replaced,
        inserted=event.inserted,
    )


def _unannounced(record: e.Record, event: e.UnannouncedReduction) -> CompactionReport:
    counts = Counts(
        before=event.items_before,
        after=event.items_after,
        kept=event.items_after,
        removed=event.removed,
        replaced=0,
        inserted=0,
    )
    return CompactionReport(
        ordinal=0,
        line=record.n,
        at=record.at,
        outcome="unannounced",
        policy="unannounced",
        stage=event.kind,
        trigger=Trigger.AUTO,
        moment=None,
        phase="",
        reason=event.explanation,
        evidence=event.evidence,
        reason_evidence=event.evidence,
        tokens_before=event.before,
        tokens_after=event.after,
        items=counts if event.segments else None,
        removed_ids=event.removed_ids,
        marks=event.signals,
    )


def _not_done(
    record: e.Record, event: e.CompactionFailed | e.CompactionSkipped
) -> CompactionReport:
    report = CompactionReport(
        ordinal=0,
        line=record.n,
        at=record.at,
        outcome=str(event.outcome),
        policy=event.policy,
        stage=event.stage,
        trigger=event.trigger,
        moment=event.moment,
        phase="",
        reason=event.reason,
        evidence="recorded",
        reason_evidence="recorded",
    )
    match event:
        case e.CompactionFailed():
            return msgspec.structs.replace(
                report,
                phase=event.phase,
                evidence=event.evidence,
                reason_evidence=event.evidence,
                attempts=event.attempts,
            )
        case e.CompactionSkipped():
            return msgspec.structs.replace(
                report, tokens_before=event.before, tokens_after=event.after
            )
