"""Minimum progress: a paid compaction that frees almost nothing is not repeated in its turn.

Without this rule a threshold below the part that no compaction can remove makes a request for a
summary after every single round (OpenHands#8630, gemini-cli#15225, gemini-cli#23907).
"""

from __future__ import annotations

from ..tokens import Tokens, Usage
from .policy import Trigger


class Progress:
    """Judges the paid passes of one turn, each by two pairs of figures: the entries before and
    after it in the engine's measure, and the provider's own figures, namely the total that set it
    off and the input of the first request after it. Little progress by either closes the turn to
    that trigger. By hand is never closed."""

    def __init__(self, minimum: float) -> None:
        self.minimum = minimum
        self._closed: dict[Trigger, str] = {}
        self._awaiting: tuple[Trigger, int, int] | None = None

    def new_turn(self) -> None:
        """Open every trigger again."""
        self._closed.clear()
        self._awaiting = None

    def closed(self, trigger: Trigger) -> str:
        """Why a paid pass may not run again in this turn, or an empty text."""
        return self._closed.get(trigger, "")

    def compacted(
        self, trigger: Trigger, ordinal: int, before: Tokens, after: Tokens, usage: Usage | None
    ) -> None:
        """Take in a paid pass that was applied. `usage` is the report that set it off; None when
        there is none, or when other text enters before the next request."""
        if trigger is Trigger.MANUAL:
            return
        freed = before - after
        if freed < self.minimum * before.value:
            self._close(
                trigger,
                f"compaction {ordinal} freed {freed:,} of {before.value:,} tokens "
                f"({before.basis}, {before.scope})",
            )
        elif usage is not None:
            self._awaiting = (trigger, ordinal, usage.total)

    def reported(self, usage: Usage | None) -> None:
        """Take in the provider's newest figure of the current window."""
        if usage is None or self._awaiting is None:
            return
        (trigger, ordinal, total), self._awaiting = self._awaiting, None
        if total - usage.input_tokens < self.minimum * total:
            self._close(
                trigger,
                f"compaction {ordinal} brought the reported size from {total:,} to "
                f"{usage.input_tokens:,} tokens",
            )

    def spent(self, trigger: Trigger, why: str) -> None:
        """Take in a paid pass that had nothing to show: it grew, or there was nothing to do."""
        if trigger is not Trigger.MANUAL:
            self._close(trigger, why)

    def _close(self, trigger: Trigger, why: str) -> None:
        self._closed[trigger] = (
            f"{why}: less than {self.minimum:.0%} progress, so it is not repeated in this turn"
        )
