"""Every event on the bus and in the journal, and their JSON form.

An event says what happened; a `Record` adds when, and as which journal line. The journal of a
session is the list of its records, and every view is a fold of them. Ephemeral events (deltas of
streams) never reach the journal: they have line -1 and may be coalesced; all others never are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from . import jsontext
from .compaction.policy import Moment, Trigger
from .context import Segment
from .items import Item
from .models import Budget
from .tokens import Tokens, Usage


class _Event(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, gc=False
):
    """Common form of all events. They cannot form cycles, so the collector need not visit them: on
    a long session its pauses were the longest waits of the screen."""


class Purpose(StrEnum):
    """What a model request is for."""

    TURN = "turn"
    COMPACTION = "compaction"


class Outcome(StrEnum):
    """How a compaction ended."""

    DONE = "done"
    NO_OP = "no-op"
    GREW = "grew"
    EMPTY = "empty"
    FAILED = "failed"
    ABORTED = "aborted"
    SUPERSEDED = "superseded"


class SessionStarted(_Event, frozen=True, kw_only=True, tag="session_started"):
    """The first line. `agent` is the program ("thresher", "codex"); `policy` may be empty."""

    session_id: str
    agent: str
    cwd: str = ""
    model: str = ""
    wire: str = ""
    policy: str = ""
    policy_params: dict[str, Any] = {}
    budget: Budget | None = None
    version: str = ""
    parent: str = ""
    title: str = ""
    instructions: str = ""
    """The system text of the request, when the wire sends it beside the items."""


class SessionResumed(_Event, frozen=True, kw_only=True, tag="session_resumed"):
    """The session goes on in a new process. `repaired` names calls that got an output."""

    repaired: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SessionFinished(_Event, frozen=True, kw_only=True, tag="session_finished"):
    """The session was closed in order."""

    reason: str = ""


class TurnStarted(_Event, frozen=True, kw_only=True, tag="turn_started"):
    """A user's message begins a turn; turns count from 1."""

    turn: int


class TurnFinished(_Event, frozen=True, kw_only=True, tag="turn_finished"):
    """The turn ended: completed, interrupted, failed or limit."""

    turn: int
    outcome: str
    message: str = ""


class ItemAppended(_Event, frozen=True, kw_only=True, tag="item_appended"):
    """An item entered the context at its end. Its id is (line of the record, `part`).

    `in_context` is false for items that the record keeps but the model never sees.
    """

    item: Item
    part: int = 0
    turn: int = 0
    round: int = 0
    in_context: bool = True
    note: str = ""


class MessageDelta(_Event, frozen=True, kw_only=True, tag="message_delta"):
    """Ephemeral: a piece of text while it streams. `channel`: assistant, reasoning or summary."""

    text: str
    channel: str = "assistant"
    pass_id: str = ""


class RequestSent(_Event, frozen=True, kw_only=True, tag="request_sent"):
    """A request went out. `entries` is the span of ids of the context that was sent, `digests`
    the first 12 hex digits of the SHA-256 of each message on the wire, `digest` of the whole."""

    request: int
    purpose: Purpose = Purpose.TURN
    model: str = ""
    turn: int = 0
    round: int = 0
    entries: str = ""
    digest: str = ""
    digests: tuple[str, ...] = ()
    estimate: Tokens | None = None
    pass_id: str = ""


class UsageReported(_Event, frozen=True, kw_only=True, tag="usage_reported"):
    """The provider's own figures for one request (never cumulative ones).

    `covers` is what the input figure covers; `window` the size of the window the source says.
    `cumulative` carries a running total where the source has one, for show only.
    """

    usage: Usage
    purpose: Purpose = Purpose.TURN
    model: str = ""
    response_id: str = ""
    request: int = 0
    cumulative: Usage | None = None
    window: int | None = None
    estimated: bool = False
    """The program's own estimate, not a provider's report (Codex after a compaction)."""
    note: str = ""


class ToolStarted(_Event, frozen=True, kw_only=True, tag="tool_started"):
    """A tool begins to run."""

    call_id: str
    name: str
    arguments: str = ""


class ToolOutput(_Event, frozen=True, kw_only=True, tag="tool_output"):
    """Ephemeral: a piece of output while the tool runs."""

    call_id: str
    text: str


class ToolFinished(_Event, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool ended; the item with its output follows. `size` is the length of the whole output in
    characters, `saved` the file with the whole text when the item holds only a part of it."""

    call_id: str
    name: str = ""
    ok: bool = True
    exit_code: int | None = None
    seconds: float = 0.0
    size: int = 0
    saved: str = ""


class CompactionStarted(_Event, frozen=True, kw_only=True, tag="compaction_started"):
    """The rule fired; nothing is decided yet. A later event with the same pass id ends it."""

    pass_id: str
    policy: str
    stage: str = ""
    moment: Moment = Moment.AFTER_ROUND
    trigger: Trigger = Trigger.AUTO
    reason: str = ""
    focus: str = ""


class CompactionProposed(_Event, frozen=True, kw_only=True, tag="compaction_proposed"):
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


class HistoryCompacted(_Event, frozen=True, kw_only=True, tag="history_compacted"):
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
    memory: dict[str, Any] = {}
    marks: tuple[str, ...] = ()
    evidence: str = "recorded"
    reason_evidence: str = "recorded"
    phase: str = ""
    seconds: float = 0.0
    counts_unknown: bool = False
    """Nobody says what stayed, left and came: those counts are 0, and mean nothing. A size before
    or after that is 0 is then unknown too."""


class HistoryRolledBack(_Event, frozen=True, kw_only=True, tag="history_rolled_back"):
    """The last `turns` turns of the user were taken back: an edit, but not a compaction.

    `segments` is the edit over the context before. Where the turns taken back hold a compaction,
    that is undone as well, and what it had removed is inserted again under new ids.
    """

    turns: int
    segments: tuple[Segment, ...]
    items_before: int
    items_after: int
    removed: int
    removed_ids: str = ""
    inserted: int = 0
    undone: tuple[int, ...] = ()
    """The ordinals of the compactions that were undone."""
    reason: str = ""
    """Why the context is another one now, where no turn was simply taken back."""


class HistoryRestored(_Event, frozen=True, kw_only=True, tag="history_restored"):
    """Entries that left came back, by the user's wish: an edit, but not a compaction. Nothing
    that was recorded is taken back; this line only gives the new order.

    `undone` is the ordinal of the compaction that was undone, or 0 where only `entries` (a span of
    ids, one by one) were restored. `segments` is the edit over the context before. `memory` is
    what the policy knew before the compaction, or None where that does not change.
    """

    segments: tuple[Segment, ...]
    items_before: int
    items_after: int
    restored: int
    removed: int = 0
    undone: int = 0
    entries: str = ""
    before: Tokens | None = None
    after: Tokens | None = None
    digest: str = ""
    memory: dict[str, Any] | None = None


class BreakpointSet(_Event, frozen=True, kw_only=True, tag="breakpoint_set"):
    """The session stops here from now on; `text` is the breakpoint's own form ("tokens:8000")."""

    text: str


class BreakpointCleared(_Event, frozen=True, kw_only=True, tag="breakpoint_cleared"):
    """The session no longer stops here."""

    text: str


class DebuggerStopped(_Event, frozen=True, kw_only=True, tag="debugger_stopped"):
    """The agent waits for the user. `breakpoint` is the one that was reached, or "step"; `point`
    is where: summary (before it is asked for), edit (before it is applied), round, output,
    overflow or failure. `reason` says it with the figures."""

    breakpoint: str
    point: str
    reason: str
    pass_id: str = ""


class DebuggerContinued(_Event, frozen=True, kw_only=True, tag="debugger_continued"):
    """The agent goes on: apply, skip, step, continue, again (the proposal is made anew), write (a
    summary was given), or interrupted."""

    how: str
    pass_id: str = ""


class EntriesPinned(_Event, frozen=True, kw_only=True, tag="entries_pinned"):
    """These entries (a span of ids) survive every compaction from here on."""

    entries: str
    pass_id: str = ""


class EntriesUnpinned(_Event, frozen=True, kw_only=True, tag="entries_unpinned"):
    """These entries (ids, with commas) may go again."""

    entries: str
    pass_id: str = ""


class Choice(StrEnum):
    """What a user decides about a compaction that is held."""

    APPLY = "apply"
    SKIP = "skip"
    PIN = "pin"
    UNPIN = "unpin"
    DROP = "drop"
    """Entries go with this edit although the policy keeps them."""
    KEEP = "keep"
    """Entries that were to be dropped are not."""
    FOCUS = "focus"
    SUMMARY = "summary"
    """The user's own text, in place of the summary that was there."""
    WRITTEN = "written"
    """The user's own text, in place of asking for a summary."""
    FRESH = "fresh"
    POLICY = "policy"


class CompactionDecided(_Event, frozen=True, kw_only=True, tag="compaction_decided"):
    """The user's word on a compaction that is held: `entries` is a span of ids, `text` the focus,
    the summary or the policy's name. What comes of it is in the edit that follows."""

    pass_id: str
    choice: Choice
    entries: str = ""
    text: str = ""


class CompactionSkipped(_Event, frozen=True, kw_only=True, tag="compaction_skipped"):
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


class CompactionFailed(_Event, frozen=True, kw_only=True, tag="compaction_failed"):
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


class SummaryAttemptFailed(_Event, frozen=True, kw_only=True, tag="summary_attempt_failed"):
    """One summariser of the chain failed; the next one, named, is tried."""

    pass_id: str
    model: str
    kind: str
    message: str
    attempt: int = 1
    next_step: str = ""


class BreakerOpened(_Event, frozen=True, kw_only=True, tag="breaker_opened"):
    """Automatic compaction is off after this many failures in a row."""

    failures: int
    reason: str


class BreakerClosed(_Event, frozen=True, kw_only=True, tag="breaker_closed"):
    """Automatic compaction is on again; `by` is "user" or "success"."""

    by: str


class ContextOverflowed(_Event, frozen=True, kw_only=True, tag="context_overflowed"):
    """The provider refused a request as too long; figures are those of its error, if any."""

    message: str
    used: int | None = None
    limit: int | None = None
    request: int = 0
    purpose: Purpose = Purpose.TURN


class UnannouncedReduction(_Event, frozen=True, kw_only=True, tag="unannounced_reduction"):
    """A foreign client sent less than before and said nothing, or not in so many words.

    `before` and `after` are figures of the same basis and scope. `signals` are the observations
    that it rests on; `evidence` says what they are worth. Where it is known what left, `segments`
    is the edit over the context before; where it is not, the context stays as the record has it.
    """

    before: Tokens
    after: Tokens
    explanation: str
    kind: str = ""
    evidence: str = "unannounced"
    signals: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()
    items_before: int = 0
    items_after: int = 0
    removed: int = 0
    removed_ids: str = ""


class ContentReturned(_Event, frozen=True, kw_only=True, tag="content_returned"):
    """An alarm: what an unannounced reduction had taken out is in the context again."""

    before: Tokens
    after: Tokens
    explanation: str
    evidence: str = "inferred from two signals"


class ModelChanged(_Event, frozen=True, kw_only=True, tag="model_changed"):
    """Another model, window or budget from here on."""

    model: str
    budget: Budget | None = None
    previous: str = ""


class PolicyChanged(_Event, frozen=True, kw_only=True, tag="policy_changed"):
    """Another policy from the next moment on."""

    policy: str
    policy_params: dict[str, Any] = {}


class ApprovalRequested(_Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A tool waits for the user's word; `scope` says in words what a lasting answer reaches."""

    call_id: str
    name: str
    arguments: str = ""
    scope: str = ""


class ApprovalAnswered(_Event, frozen=True, kw_only=True, tag="approval_answered"):
    """The user's word: once, session, never; `by` says who gave it."""

    call_id: str
    name: str
    decision: str
    by: str = "user"


class ErrorRaised(_Event, frozen=True, kw_only=True, tag="error"):
    """Something went wrong that the user should see. `kind` is one of the gateway's kinds or a
    word of the place it happened in; `line` names a bad line of a file."""

    kind: str
    message: str
    where: str = ""
    line: int | None = None
    offset: int | None = None


class UnknownRecord(_Event, frozen=True, kw_only=True, tag="unknown_record"):
    """A record of a foreign file whose type is not known: counted and listed, never dropped."""

    type: str
    line: int
    size: int = 0


class Note(_Event, frozen=True, kw_only=True, tag="note"):
    """Something worth a row in the timeline; `kind` groups such rows."""

    kind: str
    text: str


Event: TypeAlias = (
    SessionStarted
    | SessionResumed
    | SessionFinished
    | TurnStarted
    | TurnFinished
    | ItemAppended
    | MessageDelta
    | RequestSent
    | UsageReported
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | CompactionStarted
    | CompactionProposed
    | HistoryCompacted
    | HistoryRolledBack
    | HistoryRestored
    | BreakpointSet
    | BreakpointCleared
    | DebuggerStopped
    | DebuggerContinued
    | EntriesPinned
    | EntriesUnpinned
    | CompactionDecided
    | CompactionSkipped
    | CompactionFailed
    | SummaryAttemptFailed
    | BreakerOpened
    | BreakerClosed
    | ContextOverflowed
    | UnannouncedReduction
    | ContentReturned
    | ModelChanged
    | PolicyChanged
    | ApprovalRequested
    | ApprovalAnswered
    | ErrorRaised
    | UnknownRecord
    | Note
)

EPHEMERAL = (MessageDelta, ToolOutput)
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


def event_name(event: Event) -> str:
    """The event's name in the journal ("history_compacted")."""
    return str(event.__struct_config__.tag)
