"""The union of all events, a record of one, and its JSON form."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from .. import jsontext
from . import changes, compaction, debugging, remarks, requests, session, tools, troubles

Event: TypeAlias = (
    session.SessionStarted
    | session.SessionResumed
    | session.SessionFinished
    | session.TurnStarted
    | session.TurnFinished
    | session.ItemAppended
    | session.MessageDelta
    | requests.RequestSent
    | requests.UsageReported
    | tools.ToolStarted
    | tools.ToolOutput
    | tools.ToolFinished
    | compaction.CompactionStarted
    | compaction.CompactionProposed
    | compaction.HistoryCompacted
    | changes.HistoryRolledBack
    | changes.HistoryRestored
    | debugging.BreakpointSet
    | debugging.BreakpointCleared
    | debugging.DebuggerStopped
    | debugging.DebuggerContinued
    | debugging.EntriesPinned
    | debugging.EntriesUnpinned
    | debugging.CompactionDecided
    | compaction.CompactionSkipped
    | compaction.CompactionFailed
    | compaction.SummaryAttemptFailed
    | troubles.BreakerOpened
    | troubles.BreakerClosed
    | troubles.ContextOverflowed
    | changes.UnannouncedReduction
    | changes.ContentReturned
    | session.ModelChanged
    | session.PolicyChanged
    | tools.ApprovalRequested
    | tools.ApprovalAnswered
    | troubles.ErrorRaised
    | remarks.UnknownRecord
    | remarks.Note
)

EPHEMERAL = (session.MessageDelta, tools.ToolOutput)
"""Events that may be coalesced and are not in the journal."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An event in its place: `n` is the journal line (from 0; -1 for ephemeral ones), `at` the
    time in seconds since the epoch (UTC)."""

    n: int
    at: float
    event: Event

    @property
    def ephemeral(self) -> bool:
        """True when this record is not in the journal."""
        return self.n < 0


_DECODER = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """One JSON line, without its newline. Text that UTF-8 cannot hold is written in its storable
    form (`jsontext`), so this is safe for whatever a tool or model says."""
    return jsontext.encode(record)


def decode(line: bytes | str) -> Record:
    """Read one JSON line. Raises msgspec.DecodeError (or its ValidationError) when it is bad."""
    try:
        return _DECODER.decode(line)
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None
    except UnicodeDecodeError as fault:
        # Newer releases of msgspec make it one of their own errors themselves.
        raise msgspec.DecodeError(f"not UTF-8: {fault.reason}") from None


def event_name(event: Event) -> str:
    """The event's name in the journal ("history_compacted")."""
    return str(event.__struct_config__.tag)
