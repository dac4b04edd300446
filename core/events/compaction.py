"""One compaction pass, from the rule that fired to what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from ..compaction.policy import Moment, Trigger
from ..context import Segment
from ..tokens import Tokens, Usage
from .form import EventForm


class Outcome(StrEnum):
    """How a compaction ended."""

    DONE = "done"
    NO_OP = "no-op"
    GREW = "grew"
    EMPTY = "empty"
    FAILED = "failed"
    ABORTED = "aborted"
    SUPERSEDED = "superseded"


class CompactionStarted(EventForm, frozen=True, kw_only=True, tag="compaction_started"):
    """The rule fired; nothing is decided yet. A later event with the same pass id ends it."""

    pass_id: str
    policy: str
    stage: str = ""
    moment: Moment = Moment.AFTER_ROUND
    trigger: Trigger = Trigger.AUTO
    reason: str = ""
    focus: str = ""


class CompactionProposed(EventForm, frozen=True, kw_only=True, tag="compaction_proposed"):
    """An edit is ready and will be applied unless a guard or the gate refuses it."""

    pass_id: str
    policy: str
    stage: str
    reason: str
    removed: int = 0
    kept: int = 0
    replaced: int = 0
    inserted: int = 0
    before: Tokens | None = None
    after: Tokens | None = None


class Summariser(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who wrote a summary, and what it cost. `model` may be "offline (extractive)"."""

    model: str
    usage: Usage | None = None
    attempts: int = 1
    seconds: float = 0.0


class HistoryCompacted(EventForm, frozen=True, kw_only=True, tag="history_compacted"):
    """A compaction happened: the one line that replay needs.

    `segments` is the edit over the context before; `removed` the span of ids that left (a text
    form for readers: replay derives it again); counts are entries. Kept + removed + replaced is
    `items_before`; `items_after` may be larger than `items_before`. `before` and `after` carry
    basis and scope; `digest` is that of the context after. `evidence` says how it is known:
    recorded, derived, inferred, unannounced. `marks` are warnings (a fault let through in report
    mode). `phase` is a foreign system's own word for the moment.
    """

    ordinal: int
    pass_id: str
    policy: str
    stage: str
    moment: Moment | None
    trigger: Trigger
    reason: str
    segments: tuple[Segment, ...]
    items_before: int
    items_after: int
    kept: int
    removed: int
    replaced: int
    inserted: int
    removed_ids: str = ""
    before: Tokens | None = None
    after: Tokens | None = None
    usage: Usage | None = None
    summary: str | None = None
    opaque: bool = False
    summariser: Summariser | None = None
    focus: str = ""
    window: int = 0
    digest: str = ""
    memory: dict[str, Any] = msgspec.field(default_factory=dict)
    marks: tuple[str, ...] = ()
    evidence: str = "recorded"
    reason_evidence: str = "recorded"
    phase: str = ""
    seconds: float = 0.0
    counts_unknown: bool = False
    """Nobody says what stayed, left and came: those counts are 0, and mean nothing. A size before
    or after that is 0 is then unknown too."""


class CompactionSkipped(EventForm, frozen=True, kw_only=True, tag="compaction_skipped"):
    """A pass ended without a change and without a fault: no-op, grew or superseded."""

    pass_id: str
    policy: str
    moment: Moment
    trigger: Trigger
    outcome: Outcome
    reason: str
    stage: str = ""
    before: Tokens | None = None
    after: Tokens | None = None


class CompactionFailed(EventForm, frozen=True, kw_only=True, tag="compaction_failed"):
    """A pass ended without a change: empty, failed or aborted. `next_step` is what follows in the
    chain of fallbacks, in words."""

    pass_id: str
    policy: str
    moment: Moment | None
    trigger: Trigger
    outcome: Outcome
    reason: str
    kind: str = ""
    stage: str = ""
    attempts: int = 1
    failures: int = 0
    next_step: str = ""
    evidence: str = "recorded"
    phase: str = ""


class SummaryAttemptFailed(EventForm, frozen=True, kw_only=True, tag="summary_attempt_failed"):
    """One summariser of the chain failed; the next one, named, is tried."""

    pass_id: str
    model: str
    kind: str
    message: str
    attempt: int = 1
    next_step: str = ""
