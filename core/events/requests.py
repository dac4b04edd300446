"""Model requests: what went out, for what, and what the provider says it took."""

from __future__ import annotations

from enum import StrEnum

from ..tokens import Tokens, Usage
from .form import EventForm


class Purpose(StrEnum):
    """What a model request is for."""

    TURN = "turn"
    COMPACTION = "compaction"
    SUBAGENT = "subagent"
    """A subagent's turn, in a foreign session that holds its records too."""


class RequestSent(EventForm, frozen=True, kw_only=True, tag="request_sent"):
    """A request went out. `entries` is the span of ids of the context that was sent, `digests`
    the first 12 hex digits of the SHA-256 of each message on the wire, `digest` of the whole."""

    request: int
    purpose: Purpose = Purpose.TURN
    model: str = ""
    turn: int = 0
    round: int = 0
    entries: str = ""
    digest: str = ""
    digests: tuple[str, ...] = ()
    estimate: Tokens | None = None
    pass_id: str = ""


class UsageReported(EventForm, frozen=True, kw_only=True, tag="usage_reported"):
    """The provider's own figures for one request (never cumulative ones).

    `covers` is what the input figure covers; `window` the size of the window the source says.
    `cumulative` carries a running total where the source has one, for show only.
    """

    usage: Usage
    purpose: Purpose = Purpose.TURN
    model: str = ""
    response_id: str = ""
    request: int = 0
    cumulative: Usage | None = None
    window: int | None = None
    estimated: bool = False
    """The program's own estimate, not a provider's report (Codex after a compaction)."""
    note: str = ""
