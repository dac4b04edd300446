"""Every event on the bus and in the journal, and their JSON form.

An event says what happened; a `Record` adds when, and as which journal line. The journal of a
session is the list of its records, and every view is a fold of them. Ephemeral events (deltas of
streams) never reach the journal: they have line -1 and may be coalesced; all others never are.

`session`, `requests` and `tools` hold what an agent does, `compaction` and `changes` what becomes
of its context, `debugging` what the user decides, `troubles` and `remarks` the rest; `form` is
their base, `record` their union and its JSON form.
"""

from __future__ import annotations

from .changes import (
    ContentReturned,
    HistoryRestored,
    HistoryRolledBack,
    UnannouncedReduction,
)
from .compaction import (
    CompactionFailed,
    CompactionProposed,
    CompactionSkipped,
    CompactionStarted,
    HistoryCompacted,
    Outcome,
    Summariser,
    SummaryAttemptFailed,
)
from .debugging import (
    BreakpointCleared,
    BreakpointSet,
    Choice,
    CompactionDecided,
    DebuggerContinued,
    DebuggerStopped,
    EntriesPinned,
    EntriesUnpinned,
)
from .record import (
    EPHEMERAL,
    Event,
    Record,
    decode,
    encode,
    event_name,
)
from .remarks import (
    Note,
    UnknownRecord,
)
from .requests import (
    Purpose,
    RequestSent,
    UsageReported,
)
from .session import (
    ItemAppended,
    MessageDelta,
    ModelChanged,
    PolicyChanged,
    SessionFinished,
    SessionResumed,
    SessionStarted,
    TurnFinished,
    TurnStarted,
)
from .tools import (
    ApprovalAnswered,
    ApprovalRequested,
    ToolFinished,
    ToolOutput,
    ToolStarted,
)
from .troubles import (
    BreakerClosed,
    BreakerOpened,
    ContextOverflowed,
    ErrorRaised,
)

__all__ = [
    "EPHEMERAL",
    "ApprovalAnswered",
    "ApprovalRequested",
    "BreakerClosed",
    "BreakerOpened",
    "BreakpointCleared",
    "BreakpointSet",
    "Choice",
    "CompactionDecided",
    "CompactionFailed",
    "CompactionProposed",
    "CompactionSkipped",
    "CompactionStarted",
    "ContentReturned",
    "ContextOverflowed",
    "DebuggerContinued",
    "DebuggerStopped",
    "EntriesPinned",
    "EntriesUnpinned",
    "ErrorRaised",
    "Event",
    "HistoryCompacted",
    "HistoryRestored",
    "HistoryRolledBack",
    "ItemAppended",
    "MessageDelta",
    "ModelChanged",
    "Note",
    "Outcome",
    "PolicyChanged",
    "Purpose",
    "Record",
    "RequestSent",
    "SessionFinished",
    "SessionResumed",
    "SessionStarted",
    "Summariser",
    "SummaryAttemptFailed",
    "ToolFinished",
    "ToolOutput",
    "ToolStarted",
    "TurnFinished",
    "TurnStarted",
    "UnannouncedReduction",
    "UnknownRecord",
    "UsageReported",
    "decode",
    "encode",
    "event_name",
]
