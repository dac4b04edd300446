"""The compaction vocabulary. Read this first.

A policy is a pure generator. It is given a `Situation` and yields what it wants: an `Ask` (please
summarise this, please store this text), an `Edit` (this is the new context, and why) or a `Skip`
(I do nothing, and why). It receives an answer to each. It touches no model, disk, clock or screen,
so the same code runs live, in replay, in a what-if comparison and in a test.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import msgspec

from ..context import Context, Segment
from ..items import FunctionCallOutput, Item, Message
from ..models import Budget
from ..tokens import Basis, Tokens, Usage


class Moment(StrEnum):
    """When a policy is asked. At each of these points no call/output pair is torn."""

    TURN_START = "turn_start"
    """Before the user's new message is recorded."""
    BEFORE_REQUEST = "before_request"
    TOOL_OUTPUT = "tool_output"
    """A result has come back and is about to enter; `Situation.fresh_output` holds it."""
    AFTER_ROUND = "after_round"
    """All outputs of a round are committed, and the model will be asked again."""
    TURN_END = "turn_end"
    OVERFLOW = "overflow"
    """The provider refused the request as too long."""
    MANUAL = "manual"
    MODEL_CHANGE = "model_change"

    @property
    def words(self) -> str:
        """How a sentence says it: "the policy is asked after a round"."""
        return _MOMENT_WORDS[self]


_MOMENT_WORDS = {
    Moment.TURN_START: "at the start of a turn",
    Moment.BEFORE_REQUEST: "before a request",
    Moment.TOOL_OUTPUT: "when a tool output comes in",
    Moment.AFTER_ROUND: "after a round",
    Moment.TURN_END: "at the end of a turn",
    Moment.OVERFLOW: "on an overflow",
    Moment.MANUAL: "by hand",
    Moment.MODEL_CHANGE: "when the model changes",
}


class Trigger(StrEnum):
    """Who or what set a compaction off."""

    AUTO = "auto"
    MANUAL = "manual"
    OVERFLOW = "overflow"
    MODEL_CHANGE = "model_change"


class Follow(StrEnum):
    """What the loop does after an edit."""

    GO_ON = "go_on"
    RETRY = "retry"
    """Send the refused request again, from the new context."""
    RUN_AGAIN = "run_again"
    """Ask the model once more although it had finished."""
    WAIT = "wait"
    """Give the floor back to the user."""


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as the model is told of it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class RequestShape(msgspec.Struct, frozen=True):
    """The parts of a request that are not the context, since some policies count them."""

    instructions: str = ""
    tools: tuple[ToolSchema, ...] = ()


class Measure(Protocol):
    """Counts texts and items in tokens, always with the same basis."""

    @property
    def basis(self) -> Basis:
        """How the figures come about."""
        ...

    def text(self, text: str) -> int:
        """Tokens of a text."""
        ...

    def item(self, item: Item) -> int:
        """Tokens of one item as the model sees it."""
        ...

    def context(self, context: Context) -> Tokens:
        """Tokens of all entries: messages only, without instructions and tools."""
        ...


class Account(msgspec.Struct, frozen=True):
    """What the providers reported over the whole session, for systems that reckon with it.

    `turns` and `summaries` are the totals of all answered requests of that purpose, in tokens.
    `overflows` counts how often the context was refused as too long: by a turn's request, or by
    every request of a failed compaction. `refused` says that this was since the last report of
    this window; `first` is the first report of this window.
    """

    turns: int = 0
    summaries: int = 0
    overflows: int = 0
    refused: bool = False
    first: Usage | None = None


class Situation(msgspec.Struct, frozen=True):
    """Everything a policy may look at.

    `usage` is the provider's figure for the last request of the current window, or None: it is
    never one from before the last compaction. `since_usage` estimates the entries added after it.
    `focus` is the user's wish for a manual compaction. At OVERFLOW, `refused_size` and
    `refused_limit` are the tokens the provider counted and those it takes, where it said so.
    `memory` is the policy's own small state, as folded from the journal. `fresh` are the harness's
    own items (environment, instructions) for policies that insert them anew.
    """

    moment: Moment
    trigger: Trigger
    context: Context
    shape: RequestShape
    budget: Budget
    measure: Measure
    usage: Usage | None = None
    since_usage: int = 0
    model: str = ""
    previous_model: str = ""
    turn: int = 0
    round: int = 0
    window: int = 0
    focus: str = ""
    fresh: tuple[Item, ...] = ()
    fresh_output: FunctionCallOutput | None = None
    refused_size: int | None = None
    refused_limit: int | None = None
    memory: Mapping[str, Any] = {}
    account: Account = Account()
    previous_budget: Budget | None = None
    """That of the model before, where the model has just changed."""
    by_share: str = ""
    """Set when the engine's own threshold fired where the rule did not, with its arithmetic: the
    policy then sees what it would see if it were asked by hand."""

    @property
    def told_trigger(self) -> Trigger:
        """The trigger as it goes on record."""
        return Trigger.AUTO if self.by_share else self.trigger

    def told(self, reason: str) -> str:
        """The reason as it goes on record."""
        return f"{self.by_share} {reason}" if self.by_share else reason


class Summarise(msgspec.Struct, frozen=True, kw_only=True):
    """Ask: write a summary. `items` is the conversation of the summary request, ready to send."""

    items: tuple[Item, ...]
    instructions: str = ""
    model: str = ""
    """Empty: the summariser that the engine is set up with."""
    max_output: int | None = None
    source: tuple[Item, ...] = ()
    """The history that is summarised, for a summariser that needs no model."""
    focus: str = ""
    own_retry: bool = False
    """The system itself asks again with less when the request is too long, so an OVERFLOW is
    answered at once, and no other summariser is tried first."""


class Persist(msgspec.Struct, frozen=True):
    """Ask: store a text in the session's own folder, under a name made of `name`."""

    name: str
    text: str


class Reread(msgspec.Struct, frozen=True):
    """Ask: the present contents of files of the workspace, each at most `limit` characters."""

    paths: tuple[str, ...]
    limit: int


class CompactRemotely(msgspec.Struct, frozen=True):
    """Ask: let the provider compact these items into one opaque item. `model` is empty for the
    session's own; `tools` and `instructions` are sent as with any request."""

    items: tuple[Item, ...]
    model: str = ""
    instructions: str = ""
    tools: tuple[ToolSchema, ...] = ()


class Append(msgspec.Struct, frozen=True):
    """Ask: put the harness's own message at the end of the context. Nothing leaves it, so this is
    no compaction; the answer is Applied with the context after."""

    item: Message
    reason: str


Ask: TypeAlias = Summarise | Persist | Reread | CompactRemotely | Append


class FailureKind(StrEnum):
    """Why an ask came to nothing."""

    OVERFLOW = "overflow"
    TIMEOUT = "timeout"
    CUT = "cut"
    EMPTY = "empty"
    TOOL_CALL = "tool_call"
    PROVIDER = "provider"
    STORAGE = "storage"
    UNSUPPORTED = "unsupported"
    REFUSED = "refused"


class Summary(msgspec.Struct, frozen=True):
    """Answer: the summary, who wrote it, and what that cost."""

    text: str
    model: str
    usage: Usage | None = None
    attempts: int = 1
    seconds: float = 0.0
    encrypted: str = ""
    note: str = ""
    """What the reader of its card must know: text that did not fit into the request, say."""


class Stored(msgspec.Struct, frozen=True):
    """Answer: the text is in this file."""

    path: str


class Files(msgspec.Struct, frozen=True):
    """Answer: (path, contents) of the files that could be read."""

    contents: tuple[tuple[str, str], ...]


class Failure(msgspec.Struct, frozen=True):
    """Answer: it could not be done. After an OVERFLOW, `used` and `limit` are the tokens the
    provider counted and those it takes, where it said so."""

    kind: FailureKind
    message: str
    attempts: int = 1
    used: int | None = None
    limit: int | None = None


class Applied(msgspec.Struct, frozen=True):
    """Answer to an edit: it is in the record, and this is the context now."""

    context: Context


class Refused(msgspec.Struct, frozen=True):
    """Answer to an edit: it was not applied, and why; the context is unchanged."""

    reason: str
    context: Context


Answer: TypeAlias = Summary | Stored | Files | Failure | Applied | Refused | None


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the context, as segments over the context before.

    `stage` is the system's own word for it; `reason` says why in words, with the arithmetic.
    `memory` is merged into the policy's state when the edit is applied. `output` replaces the
    fresh output at the TOOL_OUTPUT moment, where `segments` stays empty. `drops_newest_user` says
    that the system itself lets the newest user message go here; without it a guard refuses that.
    `fault` says that this edit is a known fault of the system, and which: a guard objects to it.
    `phase` is the system's own word for the moment.
    """

    stage: str
    reason: str
    segments: tuple[Segment, ...] = ()
    follow: Follow = Follow.GO_ON
    summary: Summary | None = None
    memory: Mapping[str, Any] = {}
    output: FunctionCallOutput | None = None
    drops_newest_user: bool = False
    fault: str = ""
    phase: str = ""


class SkipKind(StrEnum):
    """Why nothing was done: each is another sentence on the screen."""

    NOT_DUE = "not_due"
    """The rule was evaluated and did not fire."""
    NO_OP = "no_op"
    """It fired, and there is nothing to remove."""
    FAILED = "failed"
    """It fired, and an ask failed."""


class Skip(msgspec.Struct, frozen=True):
    """Nothing is done, and why, with the numbers that decided it. `follow` WAIT ends the turn: the
    system gives up here and says so."""

    kind: SkipKind
    reason: str
    stage: str = ""
    failure: Failure | None = None
    follow: Follow = Follow.GO_ON


class Start(msgspec.Struct, frozen=True):
    """The rule fired, and this is its reason: said before the first ask, so that a screen can show
    a compaction while its summary is still being written."""

    stage: str
    reason: str


Step: TypeAlias = Ask | Edit | Skip | Start
Plan: TypeAlias = Generator[Step, Answer, None]


class Mark(msgspec.Struct, frozen=True):
    """A line that a policy wants on the meter: a name ("threshold") and its place in tokens."""

    name: str
    tokens: int
    source: str


class Policy(Protocol):
    """A compaction system: named constants, the moments it is asked at, and its rule."""

    name: ClassVar[str]
    title: ClassVar[str]
    moments: ClassVar[frozenset[Moment]]

    @property
    def params(self) -> msgspec.Struct:
        """The constants in force."""
        ...

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """Where the rule fires, for the meter; empty when that is not a number of tokens."""
        ...

    def plan(self, situation: Situation) -> Plan:
        """Decide. Yields steps, receives answers; returning without an edit means no change."""
        ...


@runtime_checkable
class BringsTools(Protocol):
    """A policy that brings tools for the model, which only the agent itself is offered (no
    subagent). They change nothing by themselves: a call is seen by the policy in the context."""

    tools: ClassVar[tuple[ToolSchema, ...]]

    def serve(self, name: str, situation: Situation) -> str:
        """The output of a call of one of the tools."""
        ...
