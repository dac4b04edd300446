"""The session and its turns: from its first line to its last, what entered, what was set anew."""

from __future__ import annotations

from typing import Any

import msgspec

from ..items import Item
from ..models import Budget
from .form import EventForm


class SessionStarted(EventForm, frozen=True, kw_only=True, tag="session_started"):
    """The first line. `agent` is the program ("thresher", "codex"); `policy` may be empty."""

    session_id: str
    agent: str
    cwd: str = ""
    model: str = ""
    wire: str = ""
    policy: str = ""
    policy_params: dict[str, Any] = msgspec.field(default_factory=dict)
    budget: Budget | None = None
    version: str = ""
    parent: str = ""
    title: str = ""
    instructions: str = ""
    """The system text of the request, when the wire sends it beside the items."""
    system_recorded: bool = True
    """False where the program's own record leaves the system prompt out: its size is unknown."""


class SessionResumed(EventForm, frozen=True, kw_only=True, tag="session_resumed"):
    """The session goes on in a new process. `repaired` names calls that got an output."""

    repaired: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SessionFinished(EventForm, frozen=True, kw_only=True, tag="session_finished"):
    """The session was closed in order."""

    reason: str = ""


class TurnStarted(EventForm, frozen=True, kw_only=True, tag="turn_started"):
    """A user's message begins a turn; turns count from 1."""

    turn: int


class TurnFinished(EventForm, frozen=True, kw_only=True, tag="turn_finished"):
    """The turn ended: completed, interrupted, failed or limit."""

    turn: int
    outcome: str
    message: str = ""


class ItemAppended(EventForm, frozen=True, kw_only=True, tag="item_appended"):
    """An item entered the context at its end. Its id is (line of the record, `part`).

    `in_context` is false for items that the record keeps but the model never sees.
    """

    item: Item
    part: int = 0
    turn: int = 0
    round: int = 0
    in_context: bool = True
    note: str = ""


class MessageDelta(EventForm, frozen=True, kw_only=True, tag="message_delta"):
    """Ephemeral: a piece of text while it streams. `channel`: assistant, reasoning or summary."""

    text: str
    channel: str = "assistant"
    pass_id: str = ""


class ModelChanged(EventForm, frozen=True, kw_only=True, tag="model_changed"):
    """Another model, window or budget from here on."""

    model: str
    budget: Budget | None = None
    previous: str = ""


class PolicyChanged(EventForm, frozen=True, kw_only=True, tag="policy_changed"):
    """Another policy from the next moment on."""

    policy: str
    policy_params: dict[str, Any] = msgspec.field(default_factory=dict)
