"""The gate: where somebody may hold a compaction, before its summary is asked for and before it is
applied."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from ..context import Change, Context
from ..tokens import Tokens
from ..validate import Dialect
from .policy import CompactRemotely, Edit, Moment, Policy, Situation, Summarise, Trigger


class Proposal(msgspec.Struct, frozen=True):
    """An edit as it would be applied. `faults` are objections that report mode lets through; the
    ids of new entries in `change` are provisional.

    `raw` is the edit as the policy gave it, before the pins were held (`saved` says what they
    held); `pinned_out` says that they leave it nothing to free. `enforced` says that an edit with
    faults is refused. `line` and `ordinal` are those that it would get.
    """

    pass_id: str
    policy: str
    moment: Moment
    trigger: Trigger
    context: Context
    edit: Edit
    change: Change
    before: Tokens
    after: Tokens
    faults: tuple[str, ...] = ()
    raw: Edit | None = None
    saved: str = ""
    pinned_out: str = ""
    situation: Situation | None = None
    dialect: Dialect = Dialect.CHAT
    enforced: bool = True
    line: int = 0
    ordinal: int = 0


class Pending(msgspec.Struct, frozen=True):
    """A summary that is about to be asked for, which costs time and money. `sketch` is the edit
    that would follow, with a placeholder for the text; None where it cannot be foreseen, and
    `unseen` says why."""

    pass_id: str
    policy: str
    stage: str
    reason: str
    situation: Situation
    ask: Summarise | CompactRemotely
    sketch: Proposal | None = None
    unseen: str = ""


class Apply(msgspec.Struct, frozen=True):
    """Decision: as proposed."""


class Refuse(msgspec.Struct, frozen=True):
    """Decision: not this time, and why."""

    reason: str


class Amend(msgspec.Struct, frozen=True):
    """Decision: another edit in its place; `marks` name on the card what was changed by hand."""

    edit: Edit
    marks: tuple[str, ...] = ()


class Write(msgspec.Struct, frozen=True):
    """Decision: this text is the summary, in place of the one that is there or is asked for."""

    text: str


class Again(msgspec.Struct, frozen=True):
    """Decision: make the proposal anew, over the context as it is now; with another policy for
    this pass, or in another situation (a focus)."""

    policy: Policy | None = None
    situation: Situation | None = None


Decision: TypeAlias = Apply | Refuse | Amend | Write | Again
BeforeAsk: TypeAlias = Apply | Refuse | Write | Again
"""What may be decided before a summary is asked for; Apply asks for it."""


class Gate(Protocol):
    """May wait as long as it likes: the engine checks afterwards whether the context is still the
    one that was proposed for."""

    async def decide(self, proposal: Proposal) -> Decision:
        """Let it happen, refuse it, or give another edit (checked like the first, once)."""
        ...


@runtime_checkable
class HoldsAsks(Protocol):
    """A gate that may also hold a pass before a summary is asked for."""

    def holds(self, pass_id: str, policy: str, stage: str) -> bool:
        """Whether it wants to be asked about this one; making a sketch of it costs time."""
        ...

    async def before_ask(self, pending: Pending) -> BeforeAsk:
        """Let the request go out, refuse it, write the summary, or make the proposal anew."""
        ...
