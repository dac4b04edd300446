"""SessionState: the fold of events that every view reads.

`apply` takes one record after the other and never looks anywhere else, so that a live session, a
replayed file and a rewound position are the same code. What it keeps is frozen and replaced, never
changed in place, which makes `copy` cheap: that is how rewinding keeps checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import Any, Final

import msgspec

from . import events as e
from .context import Entry, EntryId
from .costs import ItemCost, estimate_item
from .fold_context import ContextFold
from .items import FunctionCall, FunctionCallOutput, Kind, Message, Role
from .state_data import Changed, Status, add_usage
from .tokens import Basis
from .views import Card, CardStatus, Fate, Point, Row, RowKind, ToolRun, ToolStatus

# Made once: joining flags anew for every record was a third of the time of a long fold.
_ITEM = Changed.CONTEXT | Changed.ROWS | Changed.METER | Changed.STREAM
_ROWS_STATUS = Changed.ROWS | Changed.STATUS
_ROWS_STREAM = _ROWS_STATUS | Changed.STREAM
_OTHER = Changed.ROWS | Changed.STATUS | Changed.PROBLEMS | Changed.METER

# Looking a member up in its enum takes as long as making one of the rows below.
_TURN: Final = e.Purpose.TURN
_COMPACTION: Final = e.Purpose.COMPACTION
_ASSISTANT: Final = Role.ASSISTANT
_THINKING: Final = Status.THINKING
_TOOL: Final = RowKind.TOOL
_SAID: Final = RowKind.ASSISTANT
_ROUND: Final = RowKind.ROUND
_METER: Final = Changed.METER

_new = tuple.__new__

_ROW_OF: dict[Kind, RowKind] = {kind: RowKind(kind.value) for kind in Kind if kind is not Kind.CALL}
"""The row of an entry that is no call."""


class SessionState(ContextFold):
    """Everything a screen or a report needs to know about a session at one position.

    `StateData` says what it holds; this takes the records.
    """

    def apply(self, record: e.Record) -> Changed:
        """Take one record. Never raises: what does not fit becomes a problem that is shown."""
        if record.n >= 0:
            self.position = record.n
            self.last_at = record.at
        event = record.event
        handler = _HANDLERS.get(type(event)) or SessionState._other
        return handler(self, record, event)

    def apply_all(self, records: Iterator[e.Record], kept: list[e.Record], until: int) -> Changed:
        """Take records, and put those that are not ephemeral into `kept`, until that has `until` of
        them or there are no more. Returns what they touched together."""
        # The same as `apply`, without a call for each. Flags are joined at the end: joining them
        # takes as long as folding a simple record.
        find, other, changed = _HANDLERS.get, SessionState._other, [Changed.NOTHING]
        for record in records:
            event = record.event
            ephemeral = record.n < 0
            if not ephemeral:
                self.position, self.last_at = record.n, record.at
            touched = (find(type(event)) or other)(self, record, event)
            if touched not in changed:
                changed.append(touched)
            if not ephemeral:
                kept.append(record)
                if len(kept) >= until:
                    break
        return reduce(or_, changed)

    def _meta(
        self, record: e.Record, event: e.SessionStarted | e.ModelChanged | e.PolicyChanged
    ) -> Changed:
        match event:
            case e.SessionStarted():
                self.session_id, self.agent, self.cwd = event.session_id, event.agent, event.cwd
                self.model, self.wire, self.policy = event.model, event.wire, event.policy
                self.policy_params, self.budget = event.policy_params, event.budget
                self.title, self.version = event.title, event.version
                self.instructions = event.instructions
                self.system_recorded = event.system_recorded
                self.started_at = record.at
            case e.ModelChanged():
                self.model = event.model
                self.budget = event.budget or self.budget
                self._row(RowKind.NOTE, record, text=f"model is now {event.model}")
            case e.PolicyChanged():
                self.policy, self.policy_params = event.policy, event.policy_params
                self.memory = {}
                self._row(RowKind.NOTE, record, text=f"policy is now {event.policy}")
        return Changed.META | Changed.METER | Changed.ROWS

    def _item(self, record: e.Record, event: e.ItemAppended) -> Changed:
        n, at, item = record.n, record.at, event.item
        # Twice as quick as the id's own call, and there is one for every item.
        id = _new(EntryId, (n, event.part))
        entry = Entry(id, item, (id,))
        self.known[id] = entry
        if event.in_context:
            self._entries.append(entry)
            self._context = None
        else:
            self.fates[id] = Fate(outside=True)
        # No item has a subclass, and matching their classes takes several times as long.
        if type(item) is FunctionCall:
            if key := self.runs.call(id, item):
                self.rows.append(Row(_TOOL, n, at, id, key))
        elif type(item) is FunctionCallOutput:
            if not self.runs.output(id, item):
                self.rows.append(Row(RowKind.OUTPUT, n, at, id, item.call_id))
        elif type(item) is Message and item.role == _ASSISTANT:
            self.rows.append(Row(_SAID, n, at, id))
            self.streams.pop("assistant", None)
        else:
            self.rows.append(Row(_ROW_OF[entry.kind], n, at, id))
        if self.streams:
            self.streams.pop("reasoning", None)
        return _ITEM

    def _request(self, record: e.Record, event: e.RequestSent) -> Changed:
        self.requests = max(self.requests + 1, event.request)
        if event.purpose is _TURN:
            self._asked = event.estimate
            self.rounds += 1
            self.status = _THINKING
            self.rows.append(Row(_ROUND, record.n, record.at, number=self.rounds))
        self.streams.pop("assistant", None)
        return _ROWS_STATUS

    def _usage(self, record: e.Record, event: e.UsageReported) -> Changed:
        self.window = event.window or self.window
        if event.purpose is _COMPACTION:
            self.summariser_usage = add_usage(self.summariser_usage, event.usage)
            self.summariser_calls += 1
            return _METER
        usage, estimated, before = event.usage, event.estimated, self.usage
        total = usage.total
        if self._is_same_response(event):
            self._take_back_usage()
        elif before is not None and not estimated and not self.usage_estimated:
            self.last_growth = [*self.last_growth[-7:], total - before.total]
        self.usage, self.usage_estimated = usage, estimated
        self.usage_response = event.response_id
        self.refused = False
        if not estimated:
            self.turns_total += total
            self.first_usage = self.first_usage or usage
        self._sums.reported(len(self._entries))
        if self._asked is not None:
            self._learn(event)
        self.overflow = None
        self.points.append(Point(record.n, self.rounds, total, estimated))
        return _METER

    def _is_same_response(self, event: e.UsageReported) -> bool:
        """Some programs report one response several times: the last report is the true one."""
        id = event.response_id
        same = id != "" and id == self.usage_response
        return same and not event.estimated and not self.usage_estimated

    def _take_back_usage(self) -> None:
        if self.usage is None:
            return
        self.turns_total -= self.usage.total
        if self.first_usage is self.usage:
            self.first_usage = None
        if self.points and self.points[-1].card < 0:
            self.points.pop()

    def _learn(self, event: e.UsageReported) -> None:
        """Compare a report with the estimate of the same request; counts teach nothing."""
        asked, self._asked = self._asked, None
        if asked is not None and asked.basis is Basis.ESTIMATED and not event.estimated:
            self.correction = self.correction.observe(event.usage.input, asked)

    def _tool(self, record: e.Record, event: e.ToolStarted | e.ToolFinished) -> Changed:
        if isinstance(event, e.ToolStarted):
            key = self.runs.started(event, record.at)
            self.status = Status.TOOL
        else:
            key = self.runs.finished(event)
        if key:
            self._row(RowKind.TOOL, record, call_id=key)
        return _ROWS_STATUS

    def _tool_output(self, record: e.Record, event: e.ToolOutput) -> Changed:
        return Changed.STREAM if self.runs.streamed(event) else Changed.NOTHING

    def _delta(self, record: e.Record, event: e.MessageDelta) -> Changed:
        if event.channel == "summary" and event.pass_id in self._open_passes:
            at = self._open_passes[event.pass_id]
            card = self.cards[at]
            self.cards[at] = msgspec.structs.replace(card, streamed=card.streamed + event.text)
            return Changed.CARDS | Changed.STREAM
        self.streams[event.channel] = self.streams.get(event.channel, "") + event.text
        return Changed.STREAM

    def _turn_started(self, record: e.Record, event: e.TurnStarted) -> Changed:
        self.turn, self.status, self._in_turn = event.turn, _THINKING, True
        self.rows.append(Row(RowKind.TURN, record.n, record.at, number=event.turn))
        return _ROWS_STATUS

    def _turn_finished(self, record: e.Record, event: e.TurnFinished) -> Changed:
        self.status = Status.FAILED if event.outcome == "failed" else Status.IDLE
        self.approval, self._in_turn = None, False
        self.held = self.held.going_on()
        self.streams.clear()
        self._row(RowKind.TURN_END, record, number=event.turn, text=event.outcome)
        return _ROWS_STREAM

    def _other(self, record: e.Record, event: e.Event) -> Changed:
        match event:
            case e.ApprovalRequested():
                self.approval, self.status = event, Status.APPROVAL
                return Changed.APPROVAL | Changed.STATUS
            case e.ApprovalAnswered():
                self.approval, self.status = None, Status.TOOL
                return Changed.APPROVAL | Changed.STATUS
            case e.BreakerOpened():
                self.breaker_open = True
                self._row(RowKind.ERROR, record, text=f"breaker open: {event.reason}")
            case e.BreakerClosed():
                self.breaker_open, self.failures = False, 0
                self._row(RowKind.NOTE, record, text=f"breaker closed by {event.by}")
            case e.ContextOverflowed():
                self.overflow = event
                if event.purpose is e.Purpose.TURN:
                    self._refuse()
                self._row(RowKind.ERROR, record, text=f"context overflow: {event.message}")
            case e.ContentReturned():
                self._row(RowKind.ERROR, record, text=event.explanation)
            case e.ErrorRaised():
                self.problems.append(event)
                self._row(RowKind.ERROR, record, text=event.message)
            case e.UnknownRecord():
                self.unknown[event.type] = self.unknown.get(event.type, 0) + 1
                self._row(RowKind.UNKNOWN, record, text=event.type)
            case e.SessionResumed():
                self.finished, self.status, self._in_turn = False, Status.IDLE, False
                self.approval, self.held = None, self.held.going_on()
                self.streams.clear()
                self._row(RowKind.NOTE, record, text="; ".join(("session resumed", *event.notes)))
            case e.SessionFinished():
                self.finished, self.status, self._in_turn = True, Status.FINISHED, False
                told = ": ".join(filter(None, ("session closed", event.reason)))
                self._row(RowKind.NOTE, record, text=told)
            case e.Note():
                self._row(RowKind.NOTE, record, text=event.text)
            case _:
                self._row(RowKind.NOTE, record, text=e.event_name(event))
        return _OTHER


# One look-up for each record: a chain of cases costs most for the events that come most often.
_HANDLERS: dict[type[e.Event], Callable[[SessionState, e.Record, Any], Changed]] = {
    e.MessageDelta: SessionState._delta,
    e.ToolOutput: SessionState._tool_output,
    e.ItemAppended: SessionState._item,
    e.TurnStarted: SessionState._turn_started,
    e.TurnFinished: SessionState._turn_finished,
    e.UsageReported: SessionState._usage,
    e.RequestSent: SessionState._request,
    e.HistoryRolledBack: SessionState._rolled_back,
    e.HistoryRestored: SessionState._restored,
    e.CompactionDecided: SessionState._decided,
    e.UnannouncedReduction: SessionState._reduced,
    **dict.fromkeys((e.ToolStarted, e.ToolFinished), SessionState._tool),
    **dict.fromkeys(
        (
            e.CompactionStarted,
            e.CompactionProposed,
            e.HistoryCompacted,
            e.CompactionSkipped,
            e.CompactionFailed,
            e.SummaryAttemptFailed,
        ),
        SessionState._compaction,
    ),
    **dict.fromkeys(
        (
            e.BreakpointSet,
            e.BreakpointCleared,
            e.EntriesPinned,
            e.EntriesUnpinned,
            e.DebuggerStopped,
            e.DebuggerContinued,
        ),
        SessionState._hold,
    ),
    **dict.fromkeys((e.SessionStarted, e.ModelChanged, e.PolicyChanged), SessionState._meta),
}
"""What folds each event; `_other` folds the rest."""


__all__ = [
    "Card",
    "CardStatus",
    "Changed",
    "Fate",
    "ItemCost",
    "Point",
    "Row",
    "RowKind",
    "SessionState",
    "Status",
    "ToolRun",
    "ToolStatus",
    "estimate_item",
]
