"""The beginning of a rollout that goes on from another one (forks and reverted threads, 0.16x).

Such a file holds none of the history before it: its first line names another rollout and how much
of it counts. That is an id, not a path; the file with this id in its name is looked for in the same
Codex home, or beside a file that was taken out of one, and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from .codex_items import dict_of, int_of, text_of
from .lines import Line, read_lines

FOLDERS: Final = ("sessions", "archived_sessions")
"""Where a Codex home keeps its rollouts."""
_ENDINGS: Final = ("", ".gz", ".zst")


class Past(msgspec.Struct, frozen=True):
    """What a rollout goes on from: another one, as far as the line with the ordinal before `end`,
    which is `size` bytes."""

    rollout: str
    end: int
    size: int


def past_of(payload: dict[str, Any]) -> Past | None:
    """What a session_meta says of it; None when the file begins at the beginning."""
    base = dict_of(payload.get("history_base"))
    rollout, end = text_of(base.get("thread_id")), int_of(base.get("end_ordinal_exclusive"))
    if not rollout or end is None or end <= 0:
        return None
    return Past(rollout, end, int_of(base.get("end_byte_offset")) or 0)


def past_file(path: Path, past: Past) -> Path | None:
    """The file that `past` names, for the rollout at `path`; None when it is not there."""
    return next((each for each in _candidates(path, past.rollout) if not _same(each, path)), None)


def past_lines(path: Path, past: Past) -> Iterator[Line]:
    """The lines of that file which count. Errors of the file are ThresherError."""
    for line in read_lines(path):
        ordinal = int_of(line.value.get("ordinal")) if line.value is not None else None
        if (ordinal is not None and ordinal >= past.end) or (
            past.size and line.offset >= past.size
        ):
            return
        yield line


def _candidates(path: Path, rollout: str) -> Iterator[Path]:
    names = {f"{rollout}.jsonl{ending}" for ending in _ENDINGS}
    folders = [path.parent]
    home = next((each.parent for each in path.parents if each.name in FOLDERS), None)
    if home is not None:
        folders += [home / name for name in FOLDERS]
    for number, folder in enumerate(folders):
        for place, inner, files in os.walk(folder):
            if number == 0:
                inner.clear()
            for name in sorted(files):
                if name.startswith("rollout-") and _id_part(name, rollout) in names:
                    yield Path(place, name)


def _id_part(name: str, rollout: str) -> str:
    """The end of the name from the id on, if the id begins there at the beginning of a part."""
    at = name.rfind(rollout)
    return name[at:] if at > 0 and name[at - 1] in "-_" else ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return True
