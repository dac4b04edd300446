"""The context: the ordered entries that the model sees, and where each of them came from.

A context is changed in two ways only: an entry is appended, or a compaction gives its new order as
a tuple of segments (kept runs, rewritten entries, inserted entries). Both are recorded, so any
context can be folded again from the journal without the policy that made it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from . import jsontext
from .items import Item, Kind, kind_of


class EntryId(NamedTuple):
    """The journal line that made an entry, and its place among those that line made.

    People read (42, 0) as #42 and (42, 1) as #42.1.
    """

    line: int
    part: int = 0

    def __str__(self) -> str:
        return f"#{self.bare}"

    @property
    def bare(self) -> str:
        """The id without its hash sign, as the journal writes it."""
        return f"{self.line}.{self.part}" if self.part else f"{self.line}"

    @classmethod
    def parse(cls, text: str) -> EntryId:
        """Read "42", "#42" or "42.1"; anything else is a ValueError."""
        if text.isdecimal():
            return cls(int(text))
        line, _, part = text.removeprefix("#").partition(".")
        return cls(int(line), int(part) if part else 0)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One item in a context.

    `origin` names the entries it descends from (itself, when it was appended); `made_by` is the
    ordinal of the compaction that wrote it, or 0.
    """

    id: EntryId
    item: Item
    origin: tuple[EntryId, ...] = ()
    made_by: int = 0

    @property
    def kind(self) -> Kind:
        """The meter's part this entry counts towards."""
        return kind_of(self.item)


class Kept(msgspec.Struct, frozen=True, gc=False, tag="kept", tag_field="do"):
    """A run of entries that stay as they are: from `first` to `last` in the order before."""

    first: str
    last: str


class Replaced(msgspec.Struct, frozen=True, gc=False, tag="replaced", tag_field="do"):
    """One entry, rewritten: `old` leaves, `item` stands in its place with a new id."""

    old: str
    item: Item


class Inserted(
    msgspec.Struct, frozen=True, gc=False, tag="inserted", tag_field="do", omit_defaults=True
):
    """A new entry. `stands_for` names the removed entries it speaks for, as a span text."""

    item: Item
    stands_for: str = ""


class Restored(msgspec.Struct, frozen=True, tag="restored", tag_field="do"):
    """An entry that left the context earlier comes back as it was, under the id it always had."""

    id: str


Segment: TypeAlias = Kept | Replaced | Inserted | Restored


class Change(msgspec.Struct, frozen=True):
    """What a set of segments does to a context, entry by entry."""

    after: Context
    kept: tuple[EntryId, ...]
    removed: tuple[EntryId, ...]
    replaced: tuple[tuple[EntryId, EntryId], ...]
    inserted: tuple[EntryId, ...]
    restored: tuple[EntryId, ...] = ()


def runs_of(places: Sequence[int]) -> list[tuple[int, int]]:
    """Positions, in the order given, as the first and the last of each run of consecutive ones."""
    runs: list[tuple[int, int]] = []
    at, last = 0, len(places) - 1
    while at <= last:
        end = at
        while end < last and places[end + 1] == places[end] + 1:
            end += 1
        runs.append((places[at], places[end]))
        at = end + 1
    return runs


def spell(runs: Iterable[tuple[EntryId, EntryId]]) -> str:
    """Write runs of ids as a span text (see `Context.span`)."""
    return ",".join([a.bare if a is b else f"{a.bare}-{b.bare}" for a, b in runs])


class SegmentError(ValueError):
    """Segments that do not fit the context: an unknown id, an entry used twice, or one restored
    that never left."""


class Context:
    """An immutable, ordered list of entries with constant-time look-up by id."""

    __slots__ = ("_place", "entries")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: tuple[Entry, ...] = tuple(entries)
        self._place: dict[tuple[int, int], int] | None = None

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return f"Context({' '.join(str(entry.id) for entry in self.entries)})"

    @property
    def items(self) -> tuple[Item, ...]:
        """The items alone, in order."""
        return tuple(entry.item for entry in self.entries)

    @property
    def ids(self) -> tuple[EntryId, ...]:
        """The ids alone, in order."""
        return tuple(entry.id for entry in self.entries)

    def place(self, id: EntryId) -> int | None:
        """The position of an entry, or None when it is not in this context."""
        return self._places().get(id)

    def _places(self) -> dict[tuple[int, int], int]:
        if self._place is None:
            self._place = {entry.id: at for at, entry in enumerate(self.entries)}
        return self._place

    def get(self, id: EntryId) -> Entry | None:
        """The entry with this id, or None."""
        at = self.place(id)
        return None if at is None else self.entries[at]

    def appended(self, *entries: Entry) -> Context:
        """This context with entries at its end."""
        return Context((*self.entries, *entries))

    def digest(self) -> str:
        """SHA-256 over ids and items in order: equal exactly when two contexts are equal."""
        whole = hashlib.sha256()
        for entry in self.entries:
            whole.update(entry.id.bare.encode())
            whole.update(b"\x00")
            whole.update(jsontext.encode(entry.item, deterministic=True))
            whole.update(b"\x00")
        return whole.hexdigest()

    def span(self, ids: Iterable[EntryId]) -> str:
        """Write a set of this context's ids as runs in its order: "3-17,19,42.1".

        A run a-b means every entry from a to b in this context's order, so the text stays short
        however long the context is.
        """
        here = self._places()
        try:
            places = sorted({here[id] for id in ids})
        except KeyError as unknown:
            raise SegmentError(f"{unknown.args[0]} is not in the context") from None
        entries = self.entries
        return spell((entries[a].id, entries[b].id) for a, b in runs_of(places))

    def unspan(self, text: str) -> tuple[EntryId, ...]:
        """Read a span text back into ids, in the order it names them.

        Raises SegmentError for an id that is not here or a run that is backwards, and ValueError
        for what is no id at all.
        """
        found: list[EntryId] = []
        for run in filter(None, text.split(",")):
            first, _, last = run.partition("-")
            start = self._named(first)
            stop = self._named(last) if last else start
            if stop < start:
                raise SegmentError(f"the run {run} is written backwards")
            found.extend(entry.id for entry in self.entries[start : stop + 1])
        return tuple(found)

    def apply(
        self,
        segments: Sequence[Segment],
        line: int,
        made_by: int,
        known: Mapping[EntryId, Entry] | None = None,
    ) -> Change:
        """The context that segments describe; new entries get the ids (line, 0), (line, 1), ...

        Entries that no segment names are removed. `known` holds the entries that left earlier
        (`SessionState.known`), for segments that restore one. Raises SegmentError when a segment
        names an entry that is not here, or one that was already used.
        """
        after: list[Entry] = []
        kept: list[EntryId] = []
        replaced: list[tuple[EntryId, EntryId]] = []
        inserted: list[EntryId] = []
        restored: list[EntryId] = []
        used: set[int] = set()
        part = 0

        def take(start: int, stop: int) -> Sequence[Entry]:
            span = range(start, stop + 1)
            if stop < start or not used.isdisjoint(span):
                raise SegmentError(f"entries {start} to {stop} are used twice or out of order")
            used.update(span)
            return self.entries[start : stop + 1]

        for segment in segments:
            match segment:
                case Kept():
                    start = self._named(segment.first)
                    single = segment.first == segment.last
                    run = take(start, start if single else self._named(segment.last))
                    after += run
                    kept += [entry.id for entry in run]
                case Replaced():
                    at = self._named(segment.old)
                    (old,) = take(at, at)
                    new = EntryId(line, part)
                    part += 1
                    after.append(Entry(new, segment.item, old.origin or (old.id,), made_by))
                    replaced.append((old.id, new))
                case Inserted():
                    new = EntryId(line, part)
                    part += 1
                    origin = self.unspan(segment.stands_for)
                    after.append(Entry(new, segment.item, origin, made_by))
                    inserted.append(new)
                case Restored():
                    back = EntryId.parse(segment.id)
                    entry = None if known is None else known.get(back)
                    if entry is None or back in restored or self.place(back) is not None:
                        raise SegmentError(f"{back} cannot come back: it is here or never was")
                    after.append(entry)
                    restored.append(back)
        removed = [entry.id for at, entry in enumerate(self.entries) if at not in used]
        return Change(
            after=Context(after),
            kept=tuple(kept),
            removed=tuple(removed),
            replaced=tuple(replaced),
            inserted=tuple(inserted),
            restored=tuple(restored),
        )

    def keep(self, places: Iterable[int]) -> list[Kept]:
        """Kept segments for the entries at these positions, in the order given."""
        entries = self.entries
        return [Kept(entries[a].id.bare, entries[b].id.bare) for a, b in runs_of([*places])]

    def _named(self, text: str) -> int:
        """The place of the entry with this id. Raises SegmentError, or ValueError for no id."""
        # Edits of long sessions name thousands; a plain pair is found like the id that it equals.
        id = (int(text), 0) if text.isdecimal() else EntryId.parse(text)
        at = self._places().get(id)
        if at is None:
            raise SegmentError(f"{EntryId(*id)} is not in the context")
        return at
