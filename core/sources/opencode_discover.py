"""The sessions of OpenCode on this machine, newest first.

OpenCode keeps one database for all sessions, opencode.db in the folder `opencode` of the user's
data folder (OPENCODE_DB names another). Older versions kept JSON trees beside it. A session of the
database is written as a path into it: `opencode.db/ses_1`. Subagents' sessions are not listed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

from ..errors import ThresherError
from .found import Finder, FoundSession
from .opencode import DATABASE
from .opencode_files import tree_root, tree_sessions
from .opencode_fold import AGENT, SessionInfo
from .opencode_store import Database, compactions_in, sessions
from .sample import contained

SEARCH_LIMIT: Final = 256 << 20
"""In larger databases compactions are not counted: their number is then unknown."""


def opencode_home() -> Path:
    """Where OpenCode keeps its files."""
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "opencode"


def database_of(home: Path | None = None) -> Path:
    """The database: of this home, or of this user."""
    named = os.environ.get("OPENCODE_DB") if home is None else None
    if named:
        path = Path(named).expanduser()
        return path if path.is_absolute() else opencode_home() / path
    return (home or opencode_home()) / DATABASE


def opencode_files(home: Path | None = None) -> list[Path]:
    """The sessions as paths, newest first; nothing where OpenCode's files cannot be read."""
    database = database_of(home)
    found: list[tuple[SessionInfo, Path]] = []
    if database.is_file():
        try:
            found = [(info, database / info.id) for info in sessions(Database(database))]
        except ThresherError:
            # A database that cannot be read still shows, as itself.
            found = [(SessionInfo(""), database)]
    known = {info.id for info, _ in found}
    root = tree_root(home or opencode_home())
    if root is not None:
        # What was taken over into the database is listed once.
        found += [(info, path) for info, path in tree_sessions(root) if info.id not in known]
    shown = [(info, path) for info, path in found if not info.parent]
    return [path for _, path in sorted(shown, key=lambda pair: (-pair[0].last, pair[0].id))]


def look_at(path: Path) -> FoundSession:
    """What can be said of a session cheaply. Raises FileNotFoundError; all else is a `problem`."""
    file, id = contained(path)
    stat = file.stat()
    found = FoundSession(
        path=path, agent=AGENT, id=id or path.stem, modified=stat.st_mtime, size=stat.st_size
    )
    try:
        if id:
            database = Database(file)
            info = next((each for each in sessions(database) if each.id == id), None)
            few = stat.st_size <= SEARCH_LIMIT
            found = msgspec.structs.replace(
                found, compactions=compactions_in(database, id) if few else None
            )
        elif file.suffix == ".json":
            trees = tree_sessions(file.parents[2])
            info = next((each for each, where in trees if where == file), None)
        else:
            sessions(Database(file))
            info = None
    except ThresherError as error:
        return msgspec.structs.replace(found, problem=error.msg)
    if info is None:
        return msgspec.structs.replace(found, problem="it is not in the database any more")
    return msgspec.structs.replace(
        found,
        modified=info.last or found.modified,
        title=" ".join(info.title.split())[:200],
        cwd=info.directory,
        model=info.model,
        version=info.version,
    )


FINDER: Final = Finder(
    agent=AGENT,
    name="OpenCode",
    words=(AGENT,),
    variable="OPENCODE_DB",
    home=opencode_home,
    files=opencode_files,
    look_at=look_at,
    id_of=lambda path: path.stem,
)
