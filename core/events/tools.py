"""Tool calls: the user's word on them, their run and its end."""

from __future__ import annotations

from .form import EventForm


class ToolStarted(EventForm, frozen=True, kw_only=True, tag="tool_started"):
    """A tool begins to run."""

    call_id: str
    name: str
    arguments: str = ""


class ToolOutput(EventForm, frozen=True, kw_only=True, tag="tool_output"):
    """Ephemeral: a piece of output while the tool runs."""

    call_id: str
    text: str


class ToolFinished(EventForm, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool ended; the item with its output follows. `size` is the length of the whole output in
    characters, `saved` the file with the whole text when the item holds only a part of it."""

    call_id: str
    name: str = ""
    ok: bool = True
    exit_code: int | None = None
    seconds: float = 0.0
    size: int = 0
    saved: str = ""


class ApprovalRequested(EventForm, frozen=True, kw_only=True, tag="approval_requested"):
    """A tool waits for the user's word; `scope` says in words what a lasting answer reaches."""

    call_id: str
    name: str
    arguments: str = ""
    scope: str = ""


class ApprovalAnswered(EventForm, frozen=True, kw_only=True, tag="approval_answered"):
    """The user's word: once, session, never; `by` says who gave it."""

    call_id: str
    name: str
    decision: str
    by: str = "user"
