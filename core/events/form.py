"""The form that all events have in common."""

from __future__ import annotations

import msgspec


class EventForm(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, gc=False
):
    """Base of all events; a subclass gives its tag, the event's name in the journal.

    They cannot form cycles, so the collector need not visit them: on a long session its pauses
    were the longest waits of the screen.
    """
