"""The context as it has been told so far, and the edits between two views of a store.

OpenCode stores no context: it makes a view of its store for every request. Here the items of such
views are known by a key, so that what is new, gone or rewritten between two of them is found, and
told as an item or as an edit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from .. import events as e
from ..context import Change, Context, Entry, EntryId, Inserted, Kept, Replaced, Segment
from ..items import Item
from .opencode_v1 import Piece
from .outbox import Outbox


class Held(NamedTuple):
    """An item in the context under its key."""

    id: EntryId
    key: str
    item: Item


class Edit(NamedTuple):
    """A new view as an edit of the one before. `n` is the change that it is told at."""

    n: int
    segments: tuple[Segment, ...]
    change: Change
    before_entries: tuple[Entry, ...]
    removed_ids: str

    @property
    def before(self) -> int:
        """The number of entries before."""
        return len(self.before_entries)

    @property
    def nothing(self) -> bool:
        """Both views are the same."""
        return not (self.change.removed or self.change.replaced or self.change.inserted)

    def told(self, why: str) -> str:
        """A reason with what the edit does."""
        change = self.change
        counts = (
            (len(change.removed), "left"),
            (len(change.replaced), "changed"),
            (len(change.inserted), "came"),
        )
        parts = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        return f"{why} ({parts})" if parts else why

    def taken_back(
        self, *, turns: int = 0, undone: tuple[int, ...] = (), reason: str = ""
    ) -> e.HistoryRolledBack:
        """The edit as an event, where it is no compaction."""
        return e.HistoryRolledBack(
            turns=turns,
            segments=self.segments,
            items_before=self.before,
            items_after=len(self.change.after),
            removed=len(self.change.removed),
            removed_ids=self.removed_ids,
            inserted=len(self.change.inserted),
            undone=undone,
            reason=reason,
        )


class Shown:
    """The entries in their order. Ids are (change, part), and no id is given twice."""

    def __init__(self, out: Outbox) -> None:
        self.held: list[Held] = []
        self._out = out
        self._items: dict[str, Item] = {}
        self._line = -1
        self._part = 0

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def item(self, key: str) -> Item | None:
        """The item under this key."""
        return self._items.get(key)

    def append(self, piece: Piece, *, turn: int, round: int, note: str = "") -> None:
        """An item enters at the end."""
        n = self._out.not_before(piece.n)
        if n != self._line:
            self._line, self._part = n, 0
        event = e.ItemAppended(item=piece.item, part=self._part, turn=turn, round=round, note=note)
        self.held.append(Held(EntryId(n, self._part), piece.key, piece.item))
        self._items[piece.key] = piece.item
        self._part += 1
        self._out.emit(n, event)

    def aside(self, item: Item, n: int, *, turn: int, round: int, note: str = "") -> None:
        """An item is in the record, but the model never sees it."""
        n = self._out.not_before(n)
        if n != self._line:
            self._line, self._part = n, 0
        event = e.ItemAppended(
            item=item, part=self._part, turn=turn, round=round, in_context=False, note=note
        )
        self._part += 1
        self._out.emit(n, event)

    def edit(
        self,
        n: int,
        target: Sequence[Piece],
        ordinal: int,
        speaker: str = "",
        speaks: Mapping[str, Collection[str]] | None = None,
    ) -> Edit:
        """Make `target` the context. The item under the key `speaker` stands for what leaves;
        `speaks` says it of several, each with the keys of what it stands for."""
        n = self._out.not_before(n)
        context = Context(Entry(each.id, each.item, (each.id,)) for each in self.held)
        places = {each.key: at for at, each in enumerate(self.held)}
        wanted = {piece.key for piece in target}
        removed = context.span(each.id for each in self.held if each.key not in wanted)
        stands_for = {speaker: removed} if speaker else {}
        for key, gone in (speaks or {}).items():
            left = (each.id for each in self.held if each.key in gone and each.key not in wanted)
            stands_for[key] = context.span(left)
        segments = list(_segments(context, self.held, places, target, stands_for))
        made = sum(not isinstance(segment, Kept) for segment in segments)
        if made and n == self._line and self._part:
            n += 1
        change = context.apply(segments, n, ordinal)
        if made:
            self._line, self._part = n, made
        self.held = [
            Held(entry.id, piece.key, entry.item)
            for entry, piece in zip(change.after, target, strict=True)
        ]
        self._items = {each.key: each.item for each in self.held}
        return Edit(n, tuple(segments), change, context.entries, removed)


def _segments(
    context: Context,
    held: Sequence[Held],
    places: dict[str, int],
    target: Iterable[Piece],
    stands_for: Mapping[str, str],
) -> Iterable[Segment]:
    run: list[int] = []
    for piece in target:
        at = places.get(piece.key)
        if at is not None and held[at].item == piece.item:
            run.append(at)
            continue
        yield from context.keep(run)
        run = []
        if at is None:
            yield Inserted(piece.item, stands_for.get(piece.key, ""))
        else:
            yield Replaced(held[at].id.bare, piece.item)
    yield from context.keep(run)
