"""The context inspector: the exact list the model sees at a position, and what is odd about it.

Odd is what costs tokens for nothing or misleads: the same text twice, the same file read again and
again, a file that was changed after it was read. All figures are messages only, by the item cost
in force; a share is of their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec

from .. import jsontext
from ..context import Entry, EntryId
from ..items import FunctionCall, FunctionCallOutput, Kind
from ..state import SessionState
from ..tokens import Scope, Tokens
from .naming import item_title, role_of, tool_of
from .touches import Access, Touch, touches

SHORTEST = 80
"""Characters of an output below which being there twice means nothing."""


class Inspected(msgspec.Struct, frozen=True):
    """One entry as the model sees it. `share` and `cumulative` (this entry and all before it) lie
    between 0 and 1; `title` is foreign text."""

    at: int
    id: EntryId
    role: str
    tool: str
    title: str
    tokens: int
    share: float
    cumulative: float
    made_by: int = 0


class Repeat(StrEnum):
    """In what way entries say the same."""

    FILE = "the same file"
    TEXT = "the same text"


class Duplicate(msgspec.Struct, frozen=True):
    """Entries that say the same. `what` is the file or the title of the first, `spare` the tokens
    of all but the newest."""

    kind: Repeat
    what: str
    ids: tuple[EntryId, ...]
    tokens: int
    spare: int


class Stale(msgspec.Struct, frozen=True):
    """What the model read of a file that was changed later: `read` is the output in the context,
    `changed` the call that changed the file, which may have left the context."""

    read: EntryId
    path: str
    changed: EntryId
    by: str
    tokens: int


class Tile(msgspec.Struct, frozen=True):
    """A part of a whole: its share of the part that holds it, and of everything. A tile of a kind
    holds those of its entries, the largest first; the last may stand for several small ones."""

    name: str
    tokens: int
    share: float
    of_all: float
    ids: tuple[EntryId, ...] = ()
    inside: tuple[Tile, ...] = ()


class WireRow(msgspec.Struct, frozen=True):
    """One message as the wire has it: its role or type, its size in bytes, and its JSON."""

    at: int
    role: str
    bytes: int
    json: str


class Inspection:
    """The context of a state, looked at. `rows` are in the order the model sees."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        entries = state.context.entries
        costs = [state.cost(entry.id) or 0 for entry in entries]
        total = sum(costs)
        # The sum of the rows, so that a table adds up where estimates are rounded one by one.
        self.total = Tokens(total, state.basis, Scope.MESSAGES)
        rows: list[Inspected] = []
        upto = 0
        for at, (entry, tokens) in enumerate(zip(entries, costs, strict=True)):
            upto += tokens
            rows.append(
                Inspected(
                    at=at,
                    id=entry.id,
                    role=role_of(entry.item),
                    tool=tool_of(state, entry.item),
                    title=item_title(state, entry.item),
                    tokens=tokens,
                    share=_part(tokens, total),
                    cumulative=_part(upto, total),
                    made_by=entry.made_by,
                )
            )
        self.rows: tuple[Inspected, ...] = tuple(rows)

    def biggest(self, most: int | None = None) -> tuple[Inspected, ...]:
        """The rows by size, the largest first; equal ones in the order of the context."""
        return tuple(sorted(self.rows, key=lambda row: -row.tokens)[:most])

    def tiles(self, most: int = 12) -> tuple[Tile, ...]:
        """The context as nested parts: a tile for each kind, and in it its entries, of which
        `most` stand alone and the others together."""
        total = self.total.value
        found: list[Tile] = []
        biggest = self.biggest()
        for kind in Kind:
            rows = [row for row in biggest if row.role == kind.value]
            if not rows:
                continue
            tokens = sum(row.tokens for row in rows)
            inside = [
                Tile(row.title, row.tokens, _part(row.tokens, tokens), row.share, (row.id,))
                for row in rows[:most]
            ]
            if others := rows[most:]:
                rest = sum(row.tokens for row in others)
                ids = tuple(row.id for row in others)
                name = f"{len(others):,} more"
                inside.append(Tile(name, rest, _part(rest, tokens), _part(rest, total), ids))
            share = _part(tokens, total)
            ids = tuple(row.id for row in rows)
            found.append(Tile(kind.value, tokens, share, share, ids, tuple(inside)))
        return tuple(sorted(found, key=lambda tile: -tile.tokens))

    def duplicates(self) -> tuple[Duplicate, ...]:
        """What is there more than once, the most wasteful first."""
        by_text: dict[tuple[str, int, int], list[Inspected]] = {}
        by_file: dict[str, list[Inspected]] = {}
        reads = self._reads
        for row, entry in zip(self.rows, self.state.context, strict=True):
            item = entry.item
            if isinstance(item, FunctionCallOutput) and len(item.output.strip()) >= SHORTEST:
                # Of a long output only the head may be held; its check tells it from others.
                body = item.body
                key = (item.output, 0, 0) if body is None else (item.output, body.chars, body.check)
                by_text.setdefault(key, []).append(row)
            for touch in reads.get(entry.id, ()):
                if not touch.part:
                    by_file.setdefault(touch.path, []).append(row)
        found = [_duplicate(Repeat.FILE, path, rows) for path, rows in by_file.items()]
        told = {each.ids for each in found if len(each.ids) > 1}
        for rows in by_text.values():
            each = _duplicate(Repeat.TEXT, rows[0].title, rows)
            if each.ids not in told:
                found.append(each)
        several = [each for each in found if len(each.ids) > 1]
        return tuple(sorted(several, key=lambda each: -each.spare))

    def stale(self) -> tuple[Stale, ...]:
        """What was read and changed afterwards, in the order of the context. Only changes that a
        call names are seen (`touches`)."""
        changed: dict[str, tuple[EntryId, str]] = {}
        outputs = _outputs(self._past())
        for entry in self._past():
            if not isinstance(entry.item, FunctionCall) or _failed(outputs.get(entry.item.call_id)):
                continue
            for touch in touches(_call(self.state, entry.item), self.state.cwd):
                if touch.access is Access.WRITE:
                    changed[touch.path] = (entry.id, item_title(self.state, entry.item))
        reads = self._reads
        found: list[Stale] = []
        for row in self.rows:
            for touch in reads.get(row.id, ()):
                last = changed.get(touch.path)
                if last is not None and last[0] > row.id:
                    found.append(Stale(row.id, touch.path, last[0], last[1], row.tokens))
        return tuple(found)

    def _past(self) -> list[Entry]:
        """All entries up to this position, those that left the context too."""
        at = self.state.position
        return [entry for entry in self.state.known.values() if entry.id.line <= at]

    @cached_property
    def _reads(self) -> dict[EntryId, tuple[Touch, ...]]:
        """The files that an output in the context is the reading of."""
        calls: dict[str, tuple[Touch, ...]] = {}
        found: dict[EntryId, tuple[Touch, ...]] = {}
        for entry in self._past():
            match entry.item:
                case FunctionCall(call_id=call_id):
                    known = touches(_call(self.state, entry.item), self.state.cwd)
                    calls[call_id] = tuple(t for t in known if t.access is Access.READ)
                case FunctionCallOutput(call_id=call_id) if calls.get(call_id):
                    # A placeholder in place of the output is no reading any more.
                    if not _failed(entry.item) and not entry.made_by:
                        found[entry.id] = calls[call_id]
                case _:
                    pass
        return found


def inspect(state: SessionState) -> Inspection:
    """Look at the context of a state. Counts what is not counted yet."""
    return Inspection(state)


def wire_rows(messages: Iterable[Mapping[str, Any]]) -> tuple[WireRow, ...]:
    """The request in its wire form, message by message.

    The messages come from `Source.context_raw` for another agent's session, and from
    `sessions.requests.wire_context` for one of ours. The JSON is foreign text.
    """
    rows: list[WireRow] = []
    for at, message in enumerate(messages):
        text = jsontext.encode(message)
        role = str(message.get("role") or message.get("type") or "")
        rows.append(WireRow(at, role, len(text), text.decode()))
    return tuple(rows)


def _call(state: SessionState, call: FunctionCall) -> FunctionCall:
    """The call with all of its arguments."""
    whole = state.whole(call)
    return whole if isinstance(whole, FunctionCall) else call


def _duplicate(kind: Repeat, what: str, rows: Sequence[Inspected]) -> Duplicate:
    tokens = sum(row.tokens for row in rows)
    ids = tuple(dict.fromkeys(row.id for row in rows))
    return Duplicate(kind, what, ids, tokens, tokens - rows[-1].tokens)


def _outputs(entries: Iterable[Entry]) -> dict[str, FunctionCallOutput]:
    return {
        entry.item.call_id: entry.item
        for entry in entries
        if isinstance(entry.item, FunctionCallOutput)
    }


def _failed(output: FunctionCallOutput | None) -> bool:
    return output is not None and output.is_error


def _part(tokens: int, total: int) -> float:
    return tokens / total if total else 0.0
