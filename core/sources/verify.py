"""Rebuilt requests beside those that were really sent: which are the same, and what differs.

Pure comparison. The system text is left out on both sides, since most programs do not store it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from ..amounts import count
from .base import RebuiltRequest, WireItem
from .request_log import Logged, without_system

_LEFT_OUT: Final = re.compile(r"<<[^<>\n]{0,200}>>")
"""Where whoever made the log took a part of a text out."""
Plain = Callable[[Iterable[WireItem]], list[WireItem]]
"""Takes out of messages what a session of an agent cannot hold in the same words."""
PLAIN: Final = "equal in everything that sessions of this agent hold"
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})
SHOWN: Final = 60
"""Characters of a difference that are shown on each side."""


class Grade(StrEnum):
    """How well a request was rebuilt, from the best to the worst."""

    EXACT = "exact"
    """Message for message, the same JSON."""
    STRUCTURE = "structure"
    """The same messages of the same kinds in the same order; a text in them differs."""
    DIFFERS = "differs"


class Residue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference: of which message (from 0; -1 for the request as a whole), and what it is.

    Texts are foreign.
    """

    message: int
    what: str
    rebuilt: str = ""
    sent: str = ""


class Compared(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request of the log. `position` is that of the rebuilt one; None when there is none."""

    row: int
    label: str
    grade: Grade
    position: int | None = None
    status: int = 0
    residue: tuple[Residue, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """The comparison as a whole. `unlogged` counts rebuilt requests that the log does not have."""

    grade: Grade
    logged: int
    exact: int
    structure: int
    differs: int
    unlogged: int
    requests: tuple[Compared, ...]


def verify(
    rebuilt: Iterable[RebuiltRequest], sent: Iterable[Logged], plain: Plain | None = None
) -> Verdict:
    """Compare a log with what was rebuilt. `plain` takes out, on both sides, what a session of this
    agent cannot hold; what is equal only then is graded as structure.

    Both are in order, and either may have requests that the other has not. A logged request is
    compared with the equal one behind the last match; else with an equal one anywhere (requests of
    parallel subagents mix, and a refused one is sent again); else with the most similar one of
    those that lie between its neighbours' matches.
    """
    form = plain or list
    mine = [(each, form(without_system(each.input))) for each in rebuilt]
    theirs = [(each, form(without_system(each.sent))) for each in sent]
    anchors = _anchors([items for _, items in mine], [items for _, items in theirs])
    compared: list[Compared] = []
    used: set[int] = set()
    places = _places([items for _, items in mine])
    endless = _places([items if request.missing else [] for request, items in mine])
    endless.pop(_key([]), None)
    taken = set(anchors.values())
    for row, (logged, items) in enumerate(theirs):
        at = anchors.get(row)
        if at is None:
            # Of some the last item is not in the session: they are equal without it.
            equal = places.get(_key(items)) or endless.get(_key(items[:-1]), [])
            at = next((each for each in equal if each not in taken), equal[-1] if equal else None)
            taken |= {at} if at is not None else set()
        if at is None and (tried := _trimmed(mine, items)) is not None:
            at, residue = tried
            used.add(at)
            compared.append(_compared(logged, Grade.DIFFERS, mine[at][0].position, residue))
            continue
        if at is None:
            low = max((anchors[each] + 1 for each in anchors if each < row), default=0)
            high = min((anchors[each] for each in anchors if each > row), default=len(mine))
            free = [each for each in range(low, high) if each not in used]
            alike = {each: _likeness(mine[each][1], items) for each in free}
            at = max(alike, key=lambda each: alike[each], default=None)
            at = at if at is not None and alike[at] >= 0 else None
        if at is None:
            refused = f" (it was answered with HTTP status {logged.status})"
            what = "the session holds no trace of this request"
            why = Residue(-1, what + (refused if logged.status >= 400 else ""))
            compared.append(_compared(logged, Grade.DIFFERS, None, (why,)))
            continue
        used.add(at)
        grade, residue = compare(mine[at][1], items, mine[at][0].missing)
        if grade is Grade.EXACT and without_system(mine[at][0].input) != without_system(
            logged.sent
        ):
            grade, residue = Grade.STRUCTURE, (Residue(-1, PLAIN),)
        compared.append(_compared(logged, grade, mine[at][0].position, residue))
    grades = [each.grade for each in compared]
    counts = {grade: grades.count(grade) for grade in Grade}
    worst = next((grade for grade in reversed(Grade) if counts[grade]), Grade.EXACT)
    return Verdict(
        grade=worst,
        logged=len(compared),
        exact=counts[Grade.EXACT],
        structure=counts[Grade.STRUCTURE],
        differs=counts[Grade.DIFFERS],
        # Of one that is only inferred it is not sure that it was sent at all.
        unlogged=sum(
            at not in used and each.evidence != "inferred" for at, (each, _) in enumerate(mine)
        ),
        requests=tuple(compared),
    )


def _trimmed(
    mine: Sequence[tuple[RebuiltRequest, list[WireItem]]], items: list[WireItem]
) -> tuple[int, tuple[Residue, ...]] | None:
    """A logged request as one of several tries of a rebuilt one: it lacks some of the oldest items,
    and nothing else. The place of the rebuilt request, and what is to be said."""
    for at, (request, whole) in enumerate(mine):
        tail = len(items) - 1 if request.missing else len(items)
        if request.attempts < 2 or not request.left_out or not 0 < tail < len(whole):
            continue
        if items[tail - 1] != whole[-1]:
            continue
        left = iter(whole)
        if all(any(item == each for each in left) for item in items[:tail]):
            gone = len(whole) - tail
            what = (
                f"a trimmed retry, which is not recorded: without the {count(gone, 'oldest item')}"
            )
            return at, (Residue(-1, what),)
    return None


def compare(
    rebuilt: Sequence[WireItem], sent: Sequence[WireItem], missing: str = ""
) -> tuple[Grade, tuple[Residue, ...]]:
    """Two requests, message by message. `missing` is what is known not to be rebuilt."""
    if list(rebuilt) == list(sent):
        return Grade.EXACT, ()
    if missing and (list(rebuilt) == list(sent[: len(rebuilt)]) or _begins(rebuilt, sent)):
        return Grade.STRUCTURE, (Residue(-1, f"equal but for {missing}"),)
    residue: list[Residue] = []
    grade = Grade.STRUCTURE
    if len(rebuilt) != len(sent):
        what = f"{len(rebuilt)} messages were rebuilt, {len(sent)} were sent"
        residue.append(Residue(-1, what))
        grade = Grade.DIFFERS
    for at, (mine, theirs) in enumerate(zip(rebuilt, sent, strict=False)):
        if mine == theirs:
            continue
        if _shape(mine) != _shape(theirs):
            grade = Grade.DIFFERS
            what = f"another kind of message: {_named(mine)} instead of {_named(theirs)}"
            residue.append(Residue(at, what, *_difference(mine, theirs)))
        elif _fits_left_out(mine, theirs):
            residue.append(Residue(at, "equal as far as the log shows it: a part was taken out"))
        else:
            residue.append(Residue(at, _place(mine, theirs), *_difference(mine, theirs)))
    return grade, tuple(residue)


def _begins(rebuilt: Sequence[WireItem], sent: Sequence[WireItem]) -> bool:
    """Only blocks or words at the end of the last message are not rebuilt."""
    if not rebuilt or len(rebuilt) != len(sent) or list(rebuilt[:-1]) != list(sent[:-1]):
        return False
    if rebuilt[-1].get("role") != sent[-1].get("role"):
        return False
    mine, theirs = rebuilt[-1].get("content"), sent[-1].get("content")
    if isinstance(mine, str) and isinstance(theirs, str):
        return bool(mine) and theirs.startswith(mine)
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return False
    return theirs[: len(mine)] == mine


def _compared(
    logged: Logged, grade: Grade, position: int | None, residue: tuple[Residue, ...]
) -> Compared:
    return Compared(
        row=logged.row,
        label=logged.label,
        grade=grade,
        position=position,
        status=logged.status,
        residue=residue,
    )


def _anchors(mine: list[list[WireItem]], theirs: list[list[WireItem]]) -> dict[int, int]:
    """Equal requests in the order of both: the row of each to the place of the rebuilt one."""
    places = _places(mine)
    found: dict[int, int] = {}
    last = -1
    for row, items in enumerate(theirs):
        equal = next((each for each in places.get(_key(items), ()) if each > last), None)
        if equal is not None:
            found[row] = last = equal
    return found


def _places(mine: list[list[WireItem]]) -> dict[bytes, list[int]]:
    """Where each of the rebuilt requests is."""
    places: dict[bytes, list[int]] = {}
    for at, items in enumerate(mine):
        places.setdefault(_key(items), []).append(at)
    return places


def _key(items: list[WireItem]) -> bytes:
    try:
        return msgspec.json.encode(items, order="deterministic")
    except (OverflowError, UnicodeEncodeError):
        return repr(items).encode("utf-8", "backslashreplace")


def _likeness(mine: Sequence[WireItem], theirs: Sequence[WireItem]) -> float:
    same = 0
    for a, b in zip(mine, theirs, strict=False):
        if a != b:
            break
        same += 1
    shapes = sum(_shape(a) == _shape(b) for a, b in zip(mine, theirs, strict=False))
    longest = max(len(mine), len(theirs), 1)
    return (2 * same + shapes) / longest - abs(len(mine) - len(theirs)) / longest


def _shape(item: WireItem) -> tuple[Any, ...]:
    """What kind of message it is, without its texts: one text or several are the same kind."""
    content = item.get("content")
    parts = tuple(
        part.get("type")
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict) and part.get("type") not in _TEXTS
    )
    calls = item.get("tool_calls")
    names = tuple(
        call.get("function", {}).get("name") if isinstance(call, dict) else None
        for call in (calls if isinstance(calls, list) else ())
    )
    return item.get("role"), item.get("type", "message"), parts, names


def _named(item: WireItem) -> str:
    role, kind, parts, names = _shape(item)
    what = role or kind
    told = [str(each) for each in (*parts, *names)]
    return f"{what} ({', '.join(told)})" if told else str(what)


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for each in value.values() for text in _texts(each)]
        case list():
            return [text for each in value for text in _texts(each)]
        case _:
            return [str(value)]


def _fits_left_out(mine: WireItem, theirs: WireItem) -> bool:
    """All texts are equal, where the log's is read as its parts around what was taken out."""
    a, b = _texts(mine), _texts(theirs)
    return len(a) == len(b) and all(
        one == other or _fits(one, other) for one, other in zip(a, b, strict=True)
    )


def _fits(whole: str, cut: str) -> bool:
    pieces = [piece.strip("\n") for piece in _LEFT_OUT.split(cut)]
    if len(pieces) < 2 or not whole.startswith(pieces[0]):
        return False
    at = 0
    for piece in pieces:
        found = whole.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _place(mine: WireItem, theirs: WireItem) -> str:
    keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    return f"{', '.join(keys)} of the {_named(theirs)} message differs"


def _difference(mine: WireItem, theirs: WireItem) -> tuple[str, str]:
    """The texts of both from their first difference on."""
    a, b = "\n".join(_texts(mine)), "\n".join(_texts(theirs))
    at = next(
        (n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other),
        min(len(a), len(b)),
    )
    start = max(0, at - 10)
    return a[start : at + SHOWN], b[start : at + SHOWN]
