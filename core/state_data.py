"""What is known of a session at one position, and how views read it."""

from __future__ import annotations

import copy
from enum import IntFlag, StrEnum, auto
from typing import Any, Self

import msgspec

from . import events as e
from .bodies import Bodies, NoBodies, text_of, whole_of
from .context import Context, Entry, EntryId
from .costs import CostTable, ItemCost, Sums, estimate_item
from .debug.held import Held
from .items import Item, Kind
from .models import Budget
from .tokens import Basis, Correction, Scope, Tokens, Usage
from .tool_runs import ToolRuns
from .views import Card, Fate, Point, Row, RowKind, ToolRun


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


_HERE = Fate()
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


class StateData:
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
        self.system_recorded = True
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
        self.edits = 0
        """How often the context was exchanged for another one: what became of entries may differ
        from then on, where nothing was merely added."""
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

    def whole(self, item: Item) -> Item:
        """The whole of an item, which may be read from the session's file; what is held of it,
        where the rest cannot be had."""
        return whole_of(item, self.bodies)

    def text(self, item: Item) -> str:
        """The whole text of an item, for people; it may be read from the session's file."""
        return text_of(item, self.bodies)

    def cost(self, id: EntryId) -> int | None:
        """Tokens of an entry that is or was known; None for any other id."""
        entry = self.known.get(id)
        return None if entry is None else self._corrected(self.costs.of(entry))

    def bare_cost(self, id: EntryId) -> int | None:
        """Tokens of an entry as a policy counts them: what the session's reports have shown of the
        estimator is left out, so that the figures of a compaction agree with its entries."""
        entry = self.known.get(id)
        return None if entry is None else self.costs.of(entry)

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
        """What became of an entry; of one that came back under another id, what became of that."""
        fate = self.fates.get(id, _HERE)
        while fate.back is not None and (later := self.fates.get(fate.back)) is not None:
            fate = later
        return fate

    @property
    def out_of_touch(self) -> bool:
        """Whether the file that is followed cannot be read just now, or is another one: nothing
        of it has been told since that was."""
        last = self.problems[-1] if self.problems else None
        if last is None or last.kind != "file" or last.where or not self.rows:
            return False
        return self.rows[-1].kind is RowKind.ERROR and self.rows[-1].text == last.message

    def copy(self) -> Self:
        """An independent state at the same position."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list) and name not in _SHARED:
                setattr(twin, name, value.copy())
        twin.runs, twin._sums = self.runs.copy(), self._sums.copy()
        return twin

    def settled(self) -> Self:
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

    # -- what every fold needs ------------------------------------------------------------------

    def _row(self, kind: RowKind, record: e.Record, **more: Any) -> None:
        self.rows.append(Row(kind=kind, n=record.n, at=record.at, **more))

    def _problem(self, record: e.Record, message: str) -> Changed:
        problem = e.ErrorRaised(kind="record", message=message, line=record.n)
        self.problems.append(problem)
        self._row(RowKind.ERROR, record, text=message)
        return Changed.ROWS | Changed.PROBLEMS

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
        self.edits += 1
        self._sums.changed()

    def _after_compaction(self) -> Status:
        return Status.THINKING if self._in_turn else Status.IDLE
