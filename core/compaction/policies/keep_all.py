"""Keep all: no compaction, until the provider refuses. The other end of the scale.

What happens to an agent without any compaction: every round is sent in full, and the first request
that is too long ends the turn.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ...amounts import count
from ...models import Budget
from ..policy import Mark, Moment, Plan, Situation, Skip, SkipKind


class KeepAllParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There is nothing to set."""


class KeepAll:
    """Never compacts, and says so when it is asked to."""

    name: ClassVar[str] = "keep-all"
    title: ClassVar[str] = "Keep everything"
    moments: ClassVar[frozenset[Moment]] = frozenset({Moment.OVERFLOW, Moment.MANUAL})
    Params: ClassVar[type[msgspec.Struct]] = KeepAllParams

    def __init__(self, params: KeepAllParams | None = None) -> None:
        self.params = params or KeepAllParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """None: there is no number at which anything happens."""
        return ()

    def plan(self, situation: Situation) -> Plan:
        """One sentence."""
        held = count(len(situation.context), "item")
        yield Skip(SkipKind.NO_OP, f"The policy keep-all never removes anything of the {held}.")
