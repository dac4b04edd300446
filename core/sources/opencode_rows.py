"""Changes out of what they led to: for databases without events, JSON trees and exports.

What is stored then is the present: messages and parts as they are now. At the first look they are
put into the order in which they must have come to be: an answer begins before its parts and ends
after them, the tail of a compaction is known only after its summary, an output is whole until the
time at which it was pruned. Whatever has changed at a later look is one more change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from .codex_items import dict_of, text_of
from .opencode_changes import (
    BAD,
    MESSAGE,
    MESSAGE_GONE,
    PART,
    PART_GONE,
    ROW,
    Change,
    created,
    id_time,
    stamp,
)


class Rows:
    """The rows as they were at the last look."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Change] = {}
        self._count = 0
        self._told_bad: set[str] = set()

    def news(self, rows: Iterable[Change]) -> Iterator[Change]:
        """The changes that lead to these rows from those of the last call."""
        first = not self._known
        fresh: list[Change] = []
        there: set[tuple[str, str]] = set()
        bad = False
        for row in rows:
            if row.type == BAD:
                bad = True
                if row.fault not in self._told_bad:
                    self._told_bad.add(row.fault)
                    fresh.append(row)
                continue
            key = (row.type, text_of(row.data.get("id")))
            there.add(key)
            known = self._known.get(key)
            if known is None or known.data != row.data:
                self._known[key] = row
                fresh.append(row)
        # What cannot be read at the moment is not gone.
        gone = [] if bad else [key for key in self._known if key not in there]
        ordered = _begun(fresh) if first else [*self._taken_out(gone), *_grouped(fresh)]
        for change in ordered:
            if change.type == ROW:
                yield change
            else:
                yield msgspec.structs.replace(change, n=self._count)
                self._count += 1

    def _taken_out(self, keys: list[tuple[str, str]]) -> Iterator[Change]:
        """The rows that were there at the last look: messages with all of their parts."""
        for key in keys:
            row = self._known.pop(key)
            type, id = key
            owner = text_of(row.data.get("messageID"))
            if type == MESSAGE:
                yield Change(row.n, row.at, MESSAGE_GONE, {"messageID": id})
            elif type == PART and (MESSAGE, owner) not in keys:
                yield Change(row.n, row.at, PART_GONE, {"messageID": owner, "partID": id})


def _grouped(rows: list[Change]) -> list[Change]:
    """Every message with its parts behind it; parts of older messages first."""
    messages = {text_of(row.data.get("id")): row for row in rows if row.type == MESSAGE}
    parts: dict[str, list[Change]] = {}
    ordered: list[Change] = [row for row in rows if row.type not in (MESSAGE, PART)]
    for row in rows:
        if row.type == PART:
            owner = text_of(row.data.get("messageID"))
            if owner in messages:
                parts.setdefault(owner, []).append(row)
            else:
                ordered.append(row)
    for id, message in messages.items():
        ordered += [message, *parts.get(id, ())]
    return ordered


def _begun(rows: list[Change]) -> list[Change]:
    """The order in which a whole session must have come to be."""
    grouped = _grouped(rows)
    tails: dict[str, Change] = {}
    prunes: list[Change] = []
    ordered: list[Change] = []
    ending: Change | None = None
    for row in grouped:
        if row.type == MESSAGE:
            _end(ordered, ending, tails)
            ending = None
            now = created(row.data) / 1000
            due = [each for each in prunes if now and each.at <= now]
            ordered += sorted(due, key=lambda each: each.at)
            prunes = [each for each in prunes if each not in due]
            if row.data.get("role") == "assistant":
                ending = row
                row = msgspec.structs.replace(row, data=_opened(row.data))
        elif row.type == PART:
            row = _timed(row)
            if row.data.get("type") == "compaction" and row.data.get("tail_start_id"):
                tails[text_of(row.data.get("messageID"))] = row
                bare = {k: v for k, v in row.data.items() if k != "tail_start_id"}
                row = msgspec.structs.replace(row, data=bare)
            elif (when := _pruned_at(row.data)) > 0:
                prunes.append(msgspec.structs.replace(row, at=when))
                row = msgspec.structs.replace(row, data=_unpruned(row.data))
        ordered.append(row)
    _end(ordered, ending, tails)
    return [*ordered, *sorted(prunes, key=lambda each: each.at)]


def _end(ordered: list[Change], ending: Change | None, tails: dict[str, Change]) -> None:
    """The end of an answer; behind a summary, the tail that its compaction keeps."""
    if ending is None:
        return
    done = stamp(dict_of(ending.data.get("time")).get("completed"))
    ordered.append(msgspec.structs.replace(ending, at=done or ending.at))
    if ending.data.get("summary") is True:
        tail = tails.pop(text_of(ending.data.get("parentID")), None)
        if tail is not None:
            ordered.append(msgspec.structs.replace(tail, at=done or ending.at))


def _opened(info: dict[str, Any]) -> dict[str, Any]:
    """An answer as it was when it began."""
    later = ("finish", "error", "tokens", "cost")
    opened = {key: value for key, value in info.items() if key not in later}
    opened["time"] = {k: v for k, v in dict_of(info.get("time")).items() if k == "created"}
    return opened


def _timed(row: Change) -> Change:
    state = dict_of(row.data.get("state"))
    times = dict_of(state.get("time")) or dict_of(row.data.get("time"))
    at = stamp(times.get("end")) or stamp(times.get("start"))
    at = at or id_time(text_of(row.data.get("id")), row.at) or row.at
    return msgspec.structs.replace(row, at=at)


def _pruned_at(part: dict[str, Any]) -> float:
    return stamp(dict_of(dict_of(part.get("state")).get("time")).get("compacted"))


def _unpruned(part: dict[str, Any]) -> dict[str, Any]:
    state = dict_of(part.get("state"))
    times = {k: v for k, v in dict_of(state.get("time")).items() if k != "compacted"}
    return {**part, "state": {**state, "time": times}}
