"""What the user decided about one compaction, in the words of its card."""

from __future__ import annotations

from collections.abc import Iterable

from ..context import EntryId
from ..events import Choice, CompactionDecided
from .held import parsed


def words(decisions: Iterable[CompactionDecided]) -> str:
    """ "pinned 2, summary edited by the user"; empty when the proposal was left as it was."""
    pinned: set[EntryId] = set()
    dropped: set[EntryId] = set()
    focus = policy = summary = ""
    fresh = False
    for decision in decisions:
        ids = parsed(decision.entries)
        match decision.choice:
            case Choice.PIN:
                pinned.update(ids)
            case Choice.UNPIN:
                pinned.difference_update(ids)
            case Choice.DROP:
                dropped.update(ids)
            case Choice.KEEP:
                dropped.difference_update(ids)
            case Choice.FOCUS:
                focus, summary = "focus given" if decision.text else "", ""
            case Choice.POLICY:
                policy, summary = f"policy {decision.text} chosen", ""
            case Choice.FRESH:
                fresh, summary = True, ""
            case Choice.SUMMARY:
                # Who edits a text of their own has still written it.
                summary = summary or "summary edited"
            case Choice.WRITTEN:
                summary = "summary written"
            case Choice.APPLY | Choice.SKIP:
                pass
    parts = (
        policy,
        f"pinned {len(pinned):,}" if pinned else "",
        f"dropped {len(dropped):,}" if dropped else "",
        focus,
        "summary asked for again" if fresh else "",
        summary,
    )
    told = ", ".join(part for part in parts if part)
    return f"{told} by the user" if told else ""
