"""SessionState: the fold of events that every view reads.

`apply` takes one record after the other and never looks anywhere else, so that a live session, a
replayed file and a rewound position are the same code. What it keeps is frozen and replaced, never
changed in place, which makes `copy` cheap: that is how rewinding keeps checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import IntFlag, StrEnum, auto
from typing import Any

import msgspec

from . import events as e
from .bodies import Bodies, NoBodies, text_of
from .context import Context, Entry, EntryId, SegmentError
from .costs import CostTable, ItemCost, Sums, estimate_item
from .debug.held import Held, HeldEvent, words
from .items import FunctionCall, FunctionCallOutput, Item, Kind, Message, Role
from .models import Budget
from .tokens import Basis, Correction, Scope, Tokens, Usage
from .tool_runs import ToolRuns
from .views import Card, CardStatus, Fate, Point, Row, RowKind, ToolRun, ToolStatus


class Changed(IntFlag):
    """Which parts of the state an event touched."""

    NOTHING = 0
    META = auto()
    STATUS = auto()
    CONTEXT = auto()
    ROWS = auto()
    CARDS = auto()
    METER = auto()
    STREAM = auto()
    APPROVAL = auto()
    PROBLEMS = auto()


class Status(StrEnum):
    """What the session is doing."""

    IDLE = "idle"
    THINKING = "thinking"
    TOOL = "running a tool"
    COMPACTING = "compacting"
    APPROVAL = "waiting for approval"
    STOPPED = "stopped"
    """The debugger holds it."""
    FINISHED = "finished"
    FAILED = "failed"


# Made once: joining flags anew for every record was a third of the time of a long fold.
_ITEM = Changed.CONTEXT | Changed.ROWS | Changed.METER | Changed.STREAM
_ROWS_STATUS = Changed.ROWS | Changed.STATUS
_ROWS_STREAM = _ROWS_STATUS | Changed.STREAM
_OTHER = Changed.ROWS | Changed.STATUS | Changed.PROBLEMS | Changed.METER

_ROW_OF: dict[Kind, RowKind] = {kind: RowKind(kind.value) for kind in Kind if kind is not Kind.CALL}
"""The row of an entry that is no call."""

_SHARED = frozenset({"known", "costs"})
"""Tables that copies share: an id names the same entry at every position, so they only grow."""


def add_usage(total: Usage | None, more: Usage) -> Usage:
    """The sum of usages of several requests; a bucket that one of them did not report stays
    unknown in the sum."""
    if total is None:
        return more

    def both(a: int | None, b: int | None) -> int | None:
        return None if a is None or b is None else a + b

    return Usage(
        input_tokens=total.input_tokens + more.input_tokens,
        output_tokens=total.output_tokens + more.output_tokens,
        cached_tokens=both(total.cached_tokens, more.cached_tokens),
        cache_write_tokens=both(total.cache_write_tokens, more.cache_write_tokens),
        reasoning_tokens=both(total.reasoning_tokens, more.reasoning_tokens),
        total_tokens=total.total + more.total,
    )


class SessionState:
    """Everything a screen or a report needs to know about a session at one position.

    `cost` gives the tokens of one item, and `basis` says how; `recount` exchanges both.
    """

    def __init__(self, cost: ItemCost = estimate_item, basis: Basis = Basis.ESTIMATED) -> None:
        self.costs = CostTable(cost, basis)
        self.session_id = ""
        self.agent = ""
        self.cwd = ""
        self.model = ""
        self.wire = ""
        self.policy = ""
        self.policy_params: dict[str, Any] = {}
        self.title = ""
        self.instructions = ""
        self.version = ""
        self.budget: Budget | None = None
        self.window: int | None = None
        self.started_at = 0.0
        self.last_at = 0.0
        self.position = -1
        self.status = Status.IDLE
        self.turn = 0
        self.rounds = 0
        self.requests = 0
        self.known: dict[EntryId, Entry] = {}
        self.bodies: Bodies = NoBodies()
        """What has the whole of items of which only the heads are held; the fold asks nothing."""
        self.fates: dict[EntryId, Fate] = {}
        self.rows: list[Row] = []
        self.cards: list[Card] = []
        self.points: list[Point] = []
        self.runs = ToolRuns()
        self.usage: Usage | None = None
        self.usage_estimated = False
        self.usage_response = ""
        """The id of the response that `usage` is of, where the source gives ids."""
        self.first_usage: Usage | None = None
        """The first report of this window."""
        self.turns_total = 0
        """Tokens of all answered requests of turns."""
        self.overflows = 0
        self.refused = False
        """The context was refused as too long, by a turn's request or by every request of a failed
        compaction, and nothing was reported since."""
        self.last_growth: list[int] = []
        self.summariser_usage: Usage | None = None
        self.summariser_calls = 0
        self.removed_tokens: dict[tuple[Basis, Scope], int] = {}
        self.compactions = 0
        self.breaker_open = False
        self.failures = 0
        self.failed_stage = ""
        self.overflow: e.ContextOverflowed | None = None
        self.memory: dict[str, Any] = {}
        self.streams: dict[str, str] = {}
        self.approval: e.ApprovalRequested | None = None
        self.problems: list[e.ErrorRaised] = []
        self.unknown: dict[str, int] = {}
        self.finished = False
        self.held = Held()
        self._entries: list[Entry] = []
        self._sums = Sums()
        self._context: Context | None = None
        self._open_passes: dict[str, int] = {}
        self._in_turn = False
        self._before_stop = Status.IDLE
        self.correction = Correction()
        """What the session's own reports say of the estimates for the same requests."""
        self._asked: Tokens | None = None

    # -- reading -------------------------------------------------------------------------------

    @property
    def context(self) -> Context:
        """What the model sees at this position."""
        if self._context is None:
            self._context = Context(self._entries)
        return self._context

    @property
    def basis(self) -> Basis:
        """How the costs of items come about."""
        return self.costs.basis

    @property
    def parts(self) -> dict[Kind, int]:
        """Tokens of the context by kind, by the item cost in force."""
        parts = self._sums.parts(self._entries, self.costs)
        return {kind: self._corrected(tokens) for kind, tokens in parts.items()}

    @property
    def since_usage(self) -> int:
        """Tokens of the entries that came after the last report, by the item cost in force."""
        return self._corrected(self._sums.since(self._entries, self.costs))

    @property
    def tools(self) -> dict[str, ToolRun]:
        """The tool runs by key; a row's `call_id` is such a key."""
        return self.runs.by_key

    @property
    def tool_calls(self) -> int:
        """Calls so far."""
        return self.runs.calls

    @property
    def tool_failures(self) -> int:
        """Calls that failed so far."""
        return self.runs.failures

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """Where the session stops, in their text form."""
        return self.held.breakpoints

    @property
    def pins(self) -> tuple[EntryId, ...]:
        """The entries that survive every compaction."""
        return self.held.pins

    @property
    def stopped(self) -> e.DebuggerStopped | None:
        """Where the session stands still, or None while it does not."""
        return self.held.stopped

    def text(self, item: Item) -> str:
        """The whole text of an item, for people; it may be read from the session's file."""
        return text_of(item, self.bodies)

    def cost(self, id: EntryId) -> int | None:
        """Tokens of an entry that is or was known; None for any other id."""
        entry = self.known.get(id)
        return None if entry is None else self._corrected(self.costs.of(entry))

    def _corrected(self, tokens: int) -> int:
        """An estimate, scaled by what the session's own reports have shown; a count stays."""
        if self.basis is not Basis.ESTIMATED:
            return tokens
        return round(tokens * self.correction.ratio)

    @property
    def messages_tokens(self) -> Tokens:
        """All entries of the context by the item cost in force: messages only."""
        return Tokens(sum(self.parts.values()), self.basis, Scope.MESSAGES)

    @property
    def reported(self) -> Tokens | None:
        """The provider's total for the last request of this window; None after a compaction until
        the next report, since a figure from before the boundary says nothing about now."""
        if self.usage is None:
            return None
        basis = Basis.ESTIMATED if self.usage_estimated else Basis.REPORTED
        return Tokens(self.usage.total, basis, Scope.REQUEST)

    def card_of(self, ordinal: int) -> Card | None:
        """The card of the compaction with this ordinal."""
        return next((card for card in reversed(self.cards) if card.ordinal == ordinal), None)

    def run_of(self, call_id: str) -> ToolRun | None:
        """The latest run of a call id, or None when no call and no start had it."""
        return self.runs.latest(call_id)

    def fate(self, id: EntryId) -> Fate:
        """What became of an entry."""
        return self.fates.get(id, Fate())

    def copy(self) -> SessionState:
        """An independent state at the same position."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list) and name not in _SHARED:
                setattr(twin, name, value.copy())
        twin.runs, twin._sums = self.runs.copy(), self._sums.copy()
        return twin

    def settled(self) -> SessionState:
        """A copy without what ephemeral events left in it: what a replay of the record gives."""
        twin = self.copy()
        twin.streams = {}
        for at, card in enumerate(twin.cards):
            if card.streamed:
                twin.cards[at] = msgspec.structs.replace(card, streamed="")
        twin.runs.settle()
        return twin

    def recount(self, cost: ItemCost, basis: Basis) -> None:
        """Exchange the item cost (a tokenizer has been loaded), here and in every copy."""
        self.costs.exchange(cost, basis)

    # -- folding -------------------------------------------------------------------------------

    def apply(self, record: e.Record) -> Changed:
        """Take one record. Never raises: what does not fit becomes a problem that is shown."""
        if record.n >= 0:
            self.position = record.n
            self.last_at = record.at
        handler = _HANDLERS.get(type(record.event), SessionState._other)
        return handler(self, record, record.event)

    def _row(self, kind: RowKind, record: e.Record, **more: Any) -> None:
        self.rows.append(Row(kind=kind, n=record.n, at=record.at, **more))

    def _problem(self, record: e.Record, message: str) -> Changed:
        problem = e.ErrorRaised(kind="record", message=message, line=record.n)
        self.problems.append(problem)
        self._row(RowKind.ERROR, record, text=message)
        return Changed.ROWS | Changed.PROBLEMS

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
        id = EntryId(record.n, event.part)
        entry = Entry(id, event.item, (id,))
        self.known[id] = entry
        if event.in_context:
            self._entries.append(entry)
            self._context = None
        else:
            self.fates[id] = Fate(outside=True)
        match event.item:
            case FunctionCall():
                if key := self.runs.call(id, event.item):
                    self._row(RowKind.TOOL, record, id=id, call_id=key)
            case FunctionCallOutput(call_id=call_id):
                if not self.runs.output(id, event.item):
                    self._row(RowKind.OUTPUT, record, id=id, call_id=call_id)
            case Message(role=Role.ASSISTANT):
                self._row(RowKind.ASSISTANT, record, id=id)
                self.streams.pop("assistant", None)
            case _:
                self._row(_ROW_OF[entry.kind], record, id=id)
        self.streams.pop("reasoning", None)
        return _ITEM

    def _request(self, record: e.Record, event: e.RequestSent) -> Changed:
        self.requests = max(self.requests + 1, event.request)
        if event.purpose is e.Purpose.TURN:
            self._asked = event.estimate
            self.rounds += 1
            self.status = Status.THINKING
            self._row(RowKind.ROUND, record, number=self.rounds)
        self.streams.pop("assistant", None)
        return _ROWS_STATUS

    def _usage(self, record: e.Record, event: e.UsageReported) -> Changed:
        self.window = event.window or self.window
        if event.purpose is e.Purpose.COMPACTION:
            self.summariser_usage = add_usage(self.summariser_usage, event.usage)
            self.summariser_calls += 1
            return Changed.METER
        if self._is_same_response(event):
            self._take_back_usage()
        elif self.usage is not None and not event.estimated and not self.usage_estimated:
            self.last_growth = [*self.last_growth[-7:], event.usage.total - self.usage.total]
        self.usage, self.usage_estimated = event.usage, event.estimated
        self.usage_response = event.response_id
        self.refused = False
        if not event.estimated:
            self.turns_total += event.usage.total
            self.first_usage = self.first_usage or event.usage
        self._sums.reported(len(self._entries))
        self._learn(event)
        self.overflow = None
        self.points.append(
            Point(n=record.n, round=self.rounds, total=event.usage.total, estimated=event.estimated)
        )
        return Changed.METER

    def _is_same_response(self, event: e.UsageReported) -> bool:
        """Some programs report one response several times: the last report is the true one."""
        same = bool(event.response_id) and event.response_id == self.usage_response
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
        # A figure from before the rollback counts what is no longer there.
        self._forget_usage()
        plural = "" if event.turns == 1 else "s"
        text = f"rollback of {event.turns} turn{plural}: {event.removed} items taken back"
        self._row(RowKind.NOTE, record, text=event.reason or text)
        return Changed.CONTEXT | Changed.ROWS | Changed.METER

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
        self._row(RowKind.COMPACTION, record, card=len(self.cards))
        self.cards.append(Card.unannounced(record, event, change, before))
        return Changed.CARDS | Changed.CONTEXT | Changed.ROWS | Changed.METER

    def _forget_usage(self) -> None:
        """What the provider said last is about another context than this one."""
        self.usage, self.usage_estimated, self.usage_response = None, False, ""
        self.first_usage, self.refused = None, False
        self._sums.reported(len(self._entries))

    def _refuse(self) -> None:
        """The provider does not take the context as it is."""
        self.overflows += 1
        self.refused = True

    def _enter(self, after: Context) -> None:
        """Make this the context, whose entries may be new."""
        for entry in after:
            self.known.setdefault(entry.id, entry)
        self._entries = list(after.entries)
        self._context = after
        self._sums.changed()

    def _after_compaction(self) -> Status:
        return Status.THINKING if self._in_turn else Status.IDLE

    def _fates(
        self, removed: tuple[EntryId, ...], inserted: tuple[EntryId, ...], ordinal: int
    ) -> None:
        speaks: dict[EntryId, EntryId] = {}
        for id in inserted:
            for source in self.known[id].origin:
                speaks.setdefault(source, id)
        for id in removed:
            self.fates[id] = Fate(removed_by=ordinal, summary=speaks.get(id))

    def _other(self, record: e.Record, event: e.Event) -> Changed:
        match event:
            case e.TurnStarted():
                self.turn, self.status, self._in_turn = event.turn, Status.THINKING, True
                self._row(RowKind.TURN, record, number=event.turn)
                return _ROWS_STATUS
            case e.TurnFinished():
                self.status = Status.FAILED if event.outcome == "failed" else Status.IDLE
                self.approval, self._in_turn = None, False
                self.held = self.held.going_on()
                self.streams.clear()
                self._row(RowKind.TURN_END, record, number=event.turn, text=event.outcome)
                return _ROWS_STREAM
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
                self._row(RowKind.NOTE, record, text=f"session closed {event.reason}".strip())
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
