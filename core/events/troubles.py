"""What went wrong: a request that was too long, the breaker, errors the user should see."""

from __future__ import annotations

from .form import EventForm
from .requests import Purpose


class ContextOverflowed(EventForm, frozen=True, kw_only=True, tag="context_overflowed"):
    """The provider refused a request as too long; figures are those of its error, if any."""

    message: str
    used: int | None = None
    limit: int | None = None
    request: int = 0
    purpose: Purpose = Purpose.TURN


class BreakerOpened(EventForm, frozen=True, kw_only=True, tag="breaker_opened"):
    """Automatic compaction is off after this many failures in a row."""

    failures: int
    reason: str


class BreakerClosed(EventForm, frozen=True, kw_only=True, tag="breaker_closed"):
    """Automatic compaction is on again; `by` is "user" or "success"."""

    by: str


class ErrorRaised(EventForm, frozen=True, kw_only=True, tag="error"):
    """Something went wrong that the user should see. `kind` is one of the gateway's kinds or a
    word of the place it happened in; `line` names a bad line of a file."""

    kind: str
    message: str
    where: str = ""
    line: int | None = None
    offset: int | None = None
