"""A guard against a model that makes the same call for ever."""

from __future__ import annotations

from ..items import FunctionCall


class RepeatGuard:
    """Counts rounds in a row that consist of exactly the same calls.

    After `warn_at` equal rounds `see` returns a sentence for the model; after `stop_at` the guard
    is exhausted and the turn should end.
    """

    def __init__(self, warn_at: int = 3, stop_at: int = 6) -> None:
        self.warn_at = warn_at
        self.stop_at = stop_at
        self._last: tuple[tuple[str, str], ...] = ()
        self._times = 0

    @property
    def exhausted(self) -> bool:
        """True when the same round came too often."""
        return self._times >= self.stop_at

    def see(self, calls: tuple[FunctionCall, ...]) -> str:
        """Take the calls of a round; a sentence when they repeat too often, else empty."""
        now = tuple((call.name, call.arguments) for call in calls)
        self._times = self._times + 1 if now == self._last else 1
        self._last = now
        if self._times < self.warn_at:
            return ""
        names = ", ".join(call.name for call in calls)
        return (
            f"The same call ({names}) with the same arguments was made "
            f"{self._times} times in a row. "
            "Its result will not change: do something else, or answer with what is known."
        )
