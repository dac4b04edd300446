"""The context changed otherwise than by a compaction: taken back, brought back, or less (or more)
than before without a word."""

from __future__ import annotations

from typing import Any

from ..context import Segment
from ..tokens import Tokens
from .form import EventForm


class HistoryRolledBack(EventForm, frozen=True, kw_only=True, tag="history_rolled_back"):
    """The last `turns` turns of the user were taken back: an edit, but not a compaction.

    `segments` is the edit over the context before. Where the turns taken back hold a compaction,
    that is undone as well, and what it had removed is inserted again under new ids.
    """

    turns: int
    segments: tuple[Segment, ...]
    items_before: int
    items_after: int
    removed: int
    removed_ids: str = ""
    inserted: int = 0
    undone: tuple[int, ...] = ()
    """The ordinals of the compactions that were undone."""
    reason: str = ""
    """Why the context is another one now, where no turn was simply taken back."""


class HistoryRestored(EventForm, frozen=True, kw_only=True, tag="history_restored"):
    """Entries that left came back, by the user's wish: an edit, but not a compaction. Nothing
    that was recorded is taken back; this line only gives the new order.

    `undone` is the ordinal of the compaction that was undone, or 0 where only `entries` (a span of
    ids, one by one) were restored. `segments` is the edit over the context before. `memory` is
    what the policy knew before the compaction, or None where that does not change.
    """

    segments: tuple[Segment, ...]
    items_before: int
    items_after: int
    restored: int
    removed: int = 0
    undone: int = 0
    entries: str = ""
    before: Tokens | None = None
    after: Tokens | None = None
    digest: str = ""
    memory: dict[str, Any] | None = None


class UnannouncedReduction(EventForm, frozen=True, kw_only=True, tag="unannounced_reduction"):
    """A foreign client sent less than before and said nothing, or not in so many words.

    `before` and `after` are figures of the same basis and scope. `signals` are the observations
    that it rests on; `evidence` says what they are worth. Where it is known what left, `segments`
    is the edit over the context before; where it is not, the context stays as the record has it.
    """

    before: Tokens
    after: Tokens
    explanation: str
    kind: str = ""
    evidence: str = "unannounced"
    signals: tuple[str, ...] = ()
    segments: tuple[Segment, ...] = ()
    items_before: int = 0
    items_after: int = 0
    removed: int = 0
    removed_ids: str = ""


class ContentReturned(EventForm, frozen=True, kw_only=True, tag="content_returned"):
    """An alarm: what an unannounced reduction had taken out is in the context again."""

    before: Tokens
    after: Tokens
    explanation: str
    evidence: str = "inferred from two signals"
