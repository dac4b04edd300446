"""One list of records against another, as an edit of our context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..context import EntryId, Inserted, Kept, Replaced, Segment, runs_of, spell
from .claude_chain import Node


class Edit(NamedTuple):
    """Segments over the context before, and what they do, in entries."""

    segments: tuple[Segment, ...]
    before: int
    after: int
    kept: int
    replaced: int
    inserted: int
    removed: int
    removed_ids: str


def edit(
    before: Sequence[Node],
    after: Sequence[Node],
    line: int,
    *,
    speaker: Node | None = None,
    rewritten: frozenset[EntryId] = frozenset(),
) -> Edit:
    """The edit that makes `after` out of `before`. Records that were not there get ids of `line`.

    The record `speaker` stands for all that left. Items with a `rewritten` id are the new form of
    what has that id; they get new ids as well.
    """
    # Every compaction looks at all that was there: at the ids alone, since nothing else is asked.
    ids = [id for node in before for id in node.ids]
    here = set(before)
    staying = {id for node in after if node in here for id in node.ids}
    gone = [at for at, id in enumerate(ids) if id not in staying]
    removed = spell((ids[a], ids[b]) for a, b in runs_of(gone))
    places = {id: at for at, id in enumerate(ids) if id in staying}
    segments: list[Segment] = []
    run: list[int] = []
    kept = replaced = inserted = 0

    def end_run() -> None:
        segments.extend(Kept(ids[a].bare, ids[b].bare) for a, b in runs_of(run))
        run.clear()

    for node in after:
        old = node.ids if node in here else ()
        new: list[EntryId] = []
        for at, item in enumerate(node.items):
            place = places.get(old[at]) if old else None
            if place is not None and old[at] not in rewritten:
                run.append(place)
                new.append(old[at])
                kept += 1
                continue
            end_run()
            id = EntryId(line, replaced + inserted)
            if place is not None:
                segments.append(Replaced(old[at].bare, item))
                replaced += 1
            else:
                segments.append(Inserted(item, removed if node is speaker and at == 0 else ""))
                inserted += 1
            new.append(id)
        node.ids = tuple(new)
    end_run()
    return Edit(
        segments=tuple(segments),
        before=len(ids),
        after=kept + replaced + inserted,
        kept=kept,
        replaced=replaced,
        inserted=inserted,
        removed=len(gone),
        removed_ids=removed,
    )
