"""The sessions of Codex on this machine, newest first, without reading them whole.

Codex keeps a rollout for each thread under CODEX_HOME (default ~/.codex): running and finished ones
in sessions/YYYY/MM/DD, put-away ones in archived_sessions; cold ones are packed with zstd. The
beginning of a file tells its project, model and first message; the rest is only searched for
compactions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ThresherError
from .codex_items import dict_of, is_real_user, text_of, texts_of
from .codex_reading import AGENT
from .found import Finder, FoundSession, newest_first
from .glance import glance, told_by
from .lines import Line

HEAD_LINES: Final = 60
"""Lines read for project, model and title."""

_NAME: Final = re.compile(
    r"rollout-(?P<time>[0-9T-]{19})-(?P<id>[0-9A-Za-z-]+)(_[0-9A-Za-z-]+)?\.jsonl(\.zst)?$"
)
_COMPACTED: Final = re.compile(rb'"type"\s*:\s*"compacted"')


def codex_home() -> Path:
    """Where Codex keeps its files: CODEX_HOME, or .codex in the home directory."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


def codex_files(home: Path | None = None) -> list[Path]:
    """The rollout files, newest first; what cannot be looked at is left out."""
    home = home or codex_home()
    folders = (home / "sessions", home / "archived_sessions")
    return newest_first(path for folder in folders for path in _rollouts(folder))


def find_codex_sessions(home: Path | None = None) -> Iterator[FoundSession]:
    """Every session, newest first; each is looked at only when it is asked for."""
    for path in codex_files(home):
        try:
            yield look_at(path)
        except FileNotFoundError:
            continue


def latest_codex_session(home: Path | None = None) -> Path:
    """The session that was written to last. None at all is a ThresherError."""
    home = home or codex_home()
    files = codex_files(home)
    if not files:
        raise ThresherError(
            "No sessions",
            f"there is no Codex session under {home}; "
            "set CODEX_HOME if it is elsewhere, or give a file.",
        )
    return files[0]


def look_at(path: Path) -> FoundSession:
    """What can be said of a session cheaply. Raises FileNotFoundError; all else is a `problem`."""
    stat = path.stat()
    found = FoundSession(
        path=path,
        agent=AGENT,
        id=id_of(path),
        modified=stat.st_mtime,
        size=stat.st_size,
        archived="archived_sessions" in path.parts,
    )
    return glance(found, _described, _COMPACTED)


def id_of(path: Path) -> str:
    """The id of a session, from the name of its file."""
    name = _NAME.match(path.name)
    return name["id"] if name else path.stem


def _rollouts(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        here = set(names)
        for name in names:
            # Codex packs a file and removes it; while both are there, the plain one counts.
            again = name.endswith(".zst") and name.removesuffix(".zst") in here
            if _NAME.match(name) and not again:
                yield Path(place, name)


def _described(found: FoundSession, lines: Iterator[Line]) -> FoundSession:
    return told_by(found, islice(lines, HEAD_LINES), _with)


def _with(found: FoundSession, line: Line) -> FoundSession:
    value = line.value or {}
    payload = dict_of(value.get("payload"))
    match value.get("type"):
        case "session_meta" if not found.version:
            return msgspec.structs.replace(
                found,
                id=text_of(payload.get("id")) or found.id,
                cwd=text_of(payload.get("cwd")),
                version=text_of(payload.get("cli_version")) or "?",
            )
        case "turn_context" if not found.model:
            return msgspec.structs.replace(found, model=text_of(payload.get("model")))
        case "response_item" if not found.title and is_real_user(payload):
            title = " ".join("\n".join(texts_of(payload.get("content"))).split())
            return msgspec.structs.replace(found, title=title[:200])
        case _:
            return found


FINDER: Final = Finder(
    agent=AGENT,
    name="Codex",
    words=(AGENT,),
    variable="CODEX_HOME",
    home=codex_home,
    files=codex_files,
    look_at=look_at,
    id_of=id_of,
)
"""How the sessions of Codex are found."""
