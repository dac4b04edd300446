"""The gate: the one place where somebody may hold a compaction before it is applied."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from ..context import Change, Context
from ..tokens import Tokens
from .policy import Edit, Moment, Trigger


class Proposal(msgspec.Struct, frozen=True):
    """An edit as it would be applied. `faults` are objections that report mode lets through; the
    ids of new entries in `change` are provisional."""

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


class Apply(msgspec.Struct, frozen=True):
    """Decision: as proposed."""


class Refuse(msgspec.Struct, frozen=True):
    """Decision: not this time, and why."""

    reason: str


class Amend(msgspec.Struct, frozen=True):
    """Decision: another edit in its place; `marks` name on the card what was changed by hand."""

    edit: Edit
    marks: tuple[str, ...] = ()


Decision: TypeAlias = Apply | Refuse | Amend


class Gate(Protocol):
    """May wait as long as it likes: the engine checks afterwards whether the context is still the
    one that was proposed for."""

    async def decide(self, proposal: Proposal) -> Decision:
        """Let it happen, refuse it, or give another edit (checked like the first, once)."""
        ...
