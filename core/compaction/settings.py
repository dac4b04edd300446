"""What a user can set of the engine, and what it answers to the agent loop."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ..events import Outcome
from ..items import FunctionCallOutput
from ..validate import Dialect
from .policy import Follow, Moment


class Guard(StrEnum):
    """What happens to an edit with a fault."""

    ENFORCE = "enforce"
    """It is refused, with the reason."""
    REPORT = "report"
    """It happens, and its card is marked: for reproducing a system with its faults."""


class EngineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the engine runs any policy. Times are in seconds, shares between 0 and 1."""

    guard: Guard = Guard.ENFORCE
    dialect: Dialect = Dialect.CHAT
    """Whose rules of order an edit must keep."""
    also_at: frozenset[Moment] = frozenset()
    """Moments at which the policy is asked although its system is not: TURN_START, OVERFLOW."""
    max_failures: int = 3
    """Failures in a row after which automatic compaction stops until the breaker is closed."""
    retries: int = 2
    """How often one summariser is tried again after an error that may pass."""
    backoff: float = 1.0
    """The wait before the first retry; it doubles with each."""
    max_backoff: float = 30.0
    summary_timeout: float = 120.0
    """For one attempt."""
    stream_summaries: bool = False
    """Show a summary while it is written. The teaching system asks without streaming."""
    min_progress: float = 0.1
    """A paid compaction that frees less than this share is not repeated in the same turn."""
    threshold_share: float | None = None
    """Compact at this share of the model's window, whatever the policy's own rule says; where the
    window is not known, only that rule counts."""


class Verdict(msgspec.Struct, frozen=True):
    """What came of one offer.

    `outcome` is None when nothing was due; `reason` then holds the rule's own arithmetic. With
    several edits in one pass it is DONE as soon as one was applied. `output` is what enters the
    context in place of the fresh output, or None for no change.
    """

    outcome: Outcome | None = None
    follow: Follow = Follow.GO_ON
    compacted: bool = False
    output: FunctionCallOutput | None = None
    reason: str = ""
