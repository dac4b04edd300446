"""The newest compactions of a large rollout, before all of it has been read.

A compacted line holds the whole history after it. So a reading may begin at one: what it holds is
taken as what was there, and everything behind it is read as always. The compaction after it is then
shown with all that it removed, long before the file has been read from its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from ..events import Note, Record
from .codex_events import Translator
from .codex_items import dict_of, is_real_user
from .codex_slim import Slimmer, slim_reader
from .lines import CHUNK, Line, read_lines

LIMIT: Final = 48_000_000
"""Bytes at the end of the file that are read ahead; with more, reading all of it is as good."""
HEAD_LINES: Final = 12
"""Lines at the start in which the settings of the session are looked for."""

_SIGN: Final = b'"compacted"'
_TASK: Final = b'"task_started"'
_COMPACTED = re.compile(rb'"type"\s*:\s*"compacted"\s*,')
_HEADS: Final = frozenset({"session_meta", "turn_context"})


class _Place(NamedTuple):
    """A compacted line: its number, its first byte, its ordinal, and the turns before it."""

    number: int
    offset: int
    ordinal: int
    turns: int


def newest(path: Path) -> Iterator[Record] | None:
    """The records of the last windows; None where that would not be quicker than all of them.

    Numbers of lines, turns and compactions are those of the whole file; rounds begin anew.
    """
    size = path.stat().st_size
    last_two = _last_two(path)
    if len(last_two) < 2 or size - last_two[0].offset > min(LIMIT, size // 2):
        return None
    return _read(path, last_two[0])


def _read(path: Path, start: _Place) -> Iterator[Record]:
    translator = Translator(Slimmer(path))
    for line in islice(read_lines(path), HEAD_LINES):
        if line.value is not None and line.value.get("type") in _HEADS:
            yield from translator.feed(line)
        elif line.value is not None and is_real_user(payload := dict_of(line.value.get("payload"))):
            translator.entitle(payload)
    reader = slim_reader(start.number, start.offset)
    first = True
    with path.open("rb") as file:
        file.seek(start.offset)
        while data := file.read(CHUNK):
            lines = reader.feed(data)
            if first and (opening := next(lines, None)) is not None:
                first = False
                yield from _opening(translator, opening, start)
            yield from translator.feed_all(lines)
    yield from translator.feed_all(reader.whole())
    yield from translator.flush()


def _opening(translator: Translator, line: Line, start: _Place) -> list[Record]:
    """What the compacted line holds, as what was there from the beginning."""
    translator.begin_at(line, ordinal=start.ordinal, turns=start.turns)
    text = (
        f"the whole file is still being read; until then this begins after compaction "
        f"{start.ordinal}, and rounds are counted from here"
    )
    translator.reading.out.add(line.number, Note(kind="indexing", text=text))
    return translator.reading.out.ready()


def _last_two(path: Path) -> list[_Place]:
    """The last two compacted lines."""
    found: list[_Place] = []
    number = offset = turns = 0
    rest: list[bytes] = []
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            if b"\n" not in data:
                # A long line: joined once, when its end has come.
                rest.append(data)
                continue
            data = b"".join([*rest, data])
            whole = data.rfind(b"\n") + 1
            at = data.find(_SIGN, 0, whole)
            begun = seen = 0
            while at >= 0:
                start = data.rfind(b"\n", 0, at) + 1
                if start >= begun and _COMPACTED.search(data, start, min(at + 16, start + 160)):
                    turns += data.count(_TASK, seen, start)
                    number += data.count(b"\n", seen, start)
                    seen = start
                    ordinal = found[-1].ordinal + 1 if found else 1
                    found = [*found[-1:], _Place(number, offset + start, ordinal, turns)]
                begun = data.find(b"\n", at, whole) + 1
                at = data.find(_SIGN, max(begun, at + 1), whole)
            turns += data.count(_TASK, seen, whole)
            number += data.count(b"\n", seen, whole)
            offset += whole
            rest = [data[whole:]]
    return found
