"""The sessions of pi on this machine, newest first, without reading them whole.

pi keeps a file for each session in a folder for each project, below `sessions` in its own folder
(PI_CODING_AGENT_DIR, default ~/.pi/agent); PI_CODING_AGENT_SESSION_DIR puts them elsewhere.
Nothing in a file says whether its session is still running.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from .codex_items import dict_of, text_of
from .found import Finder, FoundSession, newest_first
from .glance import glance, told_by
from .lines import Line
from .pi_events import AGENT, TITLE
from .pi_items import items_of

HEAD_LINES: Final = 40
"""Lines read for project, model and title."""

_COMPACTION: Final = re.compile(rb'"type"\s*:\s*"compaction"')


def pi_home() -> Path:
    """Where pi keeps its files: PI_CODING_AGENT_DIR, or .pi/agent in the home directory."""
    named = os.environ.get("PI_CODING_AGENT_DIR")
    return Path(named).expanduser() if named else Path.home() / ".pi" / "agent"


def pi_files(home: Path | None = None) -> list[Path]:
    """The session files, newest first; what cannot be looked at is left out."""
    named = os.environ.get("PI_CODING_AGENT_SESSION_DIR") if home is None else None
    folder = Path(named).expanduser() if named else (home or pi_home()) / "sessions"
    found = (
        Path(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith(".jsonl")
    )
    return newest_first(found)


def look_at(path: Path) -> FoundSession:
    """What can be said of a session cheaply. Raises FileNotFoundError; all else is a `problem`."""
    stat = path.stat()
    found = FoundSession(
        path=path, agent=AGENT, id=id_of(path), modified=stat.st_mtime, size=stat.st_size
    )
    return glance(found, _described, _COMPACTION)


def id_of(path: Path) -> str:
    """The id of a session, which its file's name ends with, after the time."""
    return path.stem.rpartition("_")[2]


def _described(found: FoundSession, lines: Iterator[Line]) -> FoundSession:
    return told_by(found, islice(lines, HEAD_LINES), _with)


def _with(found: FoundSession, line: Line) -> FoundSession:
    value = line.value or {}
    message = dict_of(value.get("message"))
    match value.get("type"):
        case "session" if not found.version:
            return msgspec.structs.replace(
                found,
                id=text_of(value.get("id")) or found.id,
                cwd=text_of(value.get("cwd")),
                version=str(value.get("version") or 1),
            )
        case "model_change":
            return msgspec.structs.replace(found, model=text_of(value.get("modelId")))
        case "message" if message.get("role") == "user" and not found.title:
            said = next(items_of(message), None)
            title = " ".join((said.text if said else "").split())[:TITLE]
            return msgspec.structs.replace(found, title=title)
        case _:
            return found


FINDER: Final = Finder(
    agent=AGENT,
    name="pi",
    words=(AGENT,),
    variable="PI_CODING_AGENT_DIR",
    home=pi_home,
    files=pi_files,
    look_at=look_at,
    id_of=id_of,
)
"""How the sessions of pi are found."""
