"""The user's decisions in the debugger: breakpoints, stops, pins, and a compaction that is held."""

from __future__ import annotations

from enum import StrEnum

from .form import EventForm


class BreakpointSet(EventForm, frozen=True, kw_only=True, tag="breakpoint_set"):
    """The session stops here from now on; `text` is the breakpoint's own form ("tokens:8000")."""

    text: str


class BreakpointCleared(EventForm, frozen=True, kw_only=True, tag="breakpoint_cleared"):
    """The session no longer stops here."""

    text: str


class DebuggerStopped(EventForm, frozen=True, kw_only=True, tag="debugger_stopped"):
    """The agent waits for the user. `breakpoint` is the one that was reached, or "step"; `point`
    is where: summary (before it is asked for), edit (before it is applied), round, output,
    overflow or failure. `reason` says it with the figures."""

    breakpoint: str
    point: str
    reason: str
    pass_id: str = ""


class DebuggerContinued(EventForm, frozen=True, kw_only=True, tag="debugger_continued"):
    """The agent goes on: apply, skip, step, continue, again (the proposal is made anew), write (a
    summary was given), or interrupted."""

    how: str
    pass_id: str = ""


class EntriesPinned(EventForm, frozen=True, kw_only=True, tag="entries_pinned"):
    """These entries (a span of ids) survive every compaction from here on."""

    entries: str
    pass_id: str = ""


class EntriesUnpinned(EventForm, frozen=True, kw_only=True, tag="entries_unpinned"):
    """These entries (ids, with commas) may go again."""

    entries: str
    pass_id: str = ""


class Choice(StrEnum):
    """What a user decides about a compaction that is held."""

    APPLY = "apply"
    SKIP = "skip"
    PIN = "pin"
    UNPIN = "unpin"
    DROP = "drop"
    """Entries go with this edit although the policy keeps them."""
    KEEP = "keep"
    """Entries that were to be dropped are not."""
    FOCUS = "focus"
    SUMMARY = "summary"
    """The user's own text, in place of the summary that was there."""
    WRITTEN = "written"
    """The user's own text, in place of asking for a summary."""
    FRESH = "fresh"
    POLICY = "policy"


class CompactionDecided(EventForm, frozen=True, kw_only=True, tag="compaction_decided"):
    """The user's word on a compaction that is held: `entries` is a span of ids, `text` the focus,
    the summary or the policy's name. What comes of it is in the edit that follows."""

    pass_id: str
    choice: Choice
    entries: str = ""
    text: str = ""
