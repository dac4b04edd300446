"""The breaker: after several failures in a row automatic compaction stops, visibly.

Its state is folded from the record (`failures`, `breaker_open`), so it survives a resume.
"""

from __future__ import annotations

from ..events import BreakerClosed, BreakerOpened
from ..state import SessionState
from .policy import Trigger


class Breaker:
    """Decides from a session's state; `limit` is the number of failures that opens it."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"a breaker opens after at least one failure, not {limit}")
        self.limit = limit

    def blocks(self, state: SessionState, trigger: Trigger) -> str:
        """Why this trigger may not run, or an empty text. By hand is always allowed."""
        if not state.breaker_open or trigger is Trigger.MANUAL:
            return ""
        return (
            "automatic compaction is off after repeated failures; close the breaker, or compact "
            "by hand"
        )

    def next_step(self, failures: int) -> str:
        """What follows after this many failures in a row, in words."""
        if failures >= self.limit:
            return (
                f"{failures} failures in a row: automatic compaction is off until you close the "
                "breaker; compacting by hand still works"
            )
        return f"the history is unchanged; failure {failures} of {self.limit} in a row"

    def opened(self, state: SessionState, reason: str) -> BreakerOpened | None:
        """The event to emit after a failure was recorded, if this was one too many."""
        if state.breaker_open or state.failures < self.limit:
            return None
        return BreakerOpened(failures=state.failures, reason=reason)

    def closed(self, state: SessionState) -> BreakerClosed | None:
        """The event to emit after a compaction was recorded, if it ended the row of failures."""
        if not state.breaker_open or state.failures:
            return None
        return BreakerClosed(by="success")
