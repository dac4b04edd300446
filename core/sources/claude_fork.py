"""The part of a Claude Code session that is a copy of another one.

A fork (`--fork-session`) begins its file with the records that the new session goes on from, under
their old ids and times. They are older than the first line that the new session wrote of itself,
which is how they are known: nothing else tells them from its own.
"""

from __future__ import annotations


class Copied:
    """Looks for the end of that part, which only stands at the beginning of a file."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._first: int | None = None
        self._last = 0
        self.over = False
        """The session's own part has begun."""

    def began(self, at: float) -> None:
        """A line that the program writes when it is asked something (seconds, UTC)."""
        if self._began is None:
            self._began = at

    def record(self, n: int, at: float) -> str:
        """A record of the conversation. What the copy was, in words, when this is the first behind
        it; else empty."""
        if self.over:
            return ""
        if self._began is None or at >= self._began:
            # One that did not begin with a line of its own is no fork, or tells nothing of it.
            self.over = True
            if self._first is None:
                return ""
            return (
                f"lines {self._first + 1} to {self._last + 1} are a copy of the session that this "
                "one was forked from: what they cost was spent there"
            )
        self._first = n if self._first is None else self._first
        self._last = n
        return ""
