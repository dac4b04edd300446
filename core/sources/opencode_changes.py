"""What OpenCode stored, one change after the other, in one form for all places it is found in.

The event table of its database holds every stored change, in order and without a gap; a stream of
a running server tells the same. Older databases and the JSON trees before them hold only what the
changes led to: from that the changes are put together again, in the order in which they must have
happened (`opencode_rows`). Either way `Change` is what the fold takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .codex_items import dict_of, int_of, text_of

MESSAGE: Final = "message.updated"
PART: Final = "message.part.updated"
DELTA: Final = "message.part.delta"
MESSAGE_GONE: Final = "message.removed"
PART_GONE: Final = "message.part.removed"
SESSION: Final = "session.updated"
ROW: Final = "session_message"
"""A row of the V2 table as it is now, for databases without events."""
BAD: Final = "(unreadable)"

_VERSION: Final = re.compile(r"\.\d+$")
_ID_TIME: Final = re.compile(r"_([0-9a-f]{12})")
_SPAN: Final = 1 << 36
"""Milliseconds after which the time in an id begins anew (two years)."""


class Change(msgspec.Struct, frozen=True):
    """One stored change. `n` is its number in the session, `at` seconds (UTC; 0: not known).

    `data` is OpenCode's own JSON: of a message its info, of a part the part. `fault` says why a
    change could not be read; then the type is BAD and `data` is empty.
    """

    n: int
    at: float
    type: str
    data: dict[str, Any]
    fault: str = ""


def change_of(n: int, type: str, data: Mapping[str, Any], id: str, near: float) -> Change:
    """A change from the form that the event table and the streams have.

    `near` is a time in seconds that is less than a year away: an id holds only a part of its time.
    """
    kind = _VERSION.sub("", type)
    inner = data.get({MESSAGE: "info", PART: "part", SESSION: "info"}.get(kind, ""))
    at = id_time(id, near) or stamp(data.get("timestamp")) or stamp(data.get("time")) or near
    return Change(n, at, kind, inner if isinstance(inner, dict) else dict(data))


def id_time(id: str, near: float) -> float:
    """The time inside an ascending id ("msg_22aa6753f001...") in seconds; 0 when it has none."""
    found = _ID_TIME.search(id)
    if found is None or near <= 0:
        return 0.0
    low = int(found[1], 16) >> 12
    reference = int(near * 1000)
    turns = (reference - low + _SPAN // 2) // _SPAN
    return (low + turns * _SPAN) / 1000


def stamp(value: object) -> float:
    """Milliseconds since the epoch as seconds; 0 for what is no such number."""
    number = int_of(value) if not isinstance(value, float) else int(value)
    return number / 1000 if number and 0 < number < 1 << 50 else 0.0


def created(info: Mapping[str, Any]) -> int:
    """When a message was made, in milliseconds; 0 when that is not stored."""
    return int_of(dict_of(info.get("time")).get("created")) or 0


def streamed(
    value: Mapping[str, Any], n: int, near: float
) -> tuple[Change | None, str, int | None]:
    """A line of one of the three event streams: the change, its session and its own number.

    The forms are `/event` (properties), `/global/event` (payload, doubled as `sync`), and
    `/api/session/ID/event` (durable). What is no change of a session gives None.
    """
    payload = value.get("payload")
    if isinstance(payload, dict):
        event = payload.get("syncEvent")
        if isinstance(event, dict):
            value = event
        elif payload.get("type") == DELTA:
            value = payload
        else:
            # Told a second time as `sync`, with its number.
            return None, "", None
    type, id = text_of(value.get("type")), text_of(value.get("id"))
    durable = dict_of(value.get("durable"))
    data = value.get("data", value.get("properties"))
    if not type or not isinstance(data, dict):
        return None, "", None
    seq = int_of(value.get("seq"))
    seq = int_of(durable.get("seq")) if seq is None else seq
    session = text_of(value.get("aggregateID")) or text_of(durable.get("aggregateID"))
    session = session or text_of(data.get("sessionID"))
    inner = data.get("part", data.get("info"))
    if not session and isinstance(inner, dict):
        session = text_of(inner.get("sessionID"))
    return change_of(n if seq is None else seq, type, data, id, near), session, seq
