"""What is only told: a record that nobody knows, a note."""

from __future__ import annotations

from .form import EventForm


class UnknownRecord(EventForm, frozen=True, kw_only=True, tag="unknown_record"):
    """A record of a foreign file whose type is not known: counted and listed, never dropped."""

    type: str
    line: int
    size: int = 0


class Note(EventForm, frozen=True, kw_only=True, tag="note"):
    """Something worth a row in the timeline; `kind` groups such rows."""

    kind: str
    text: str
