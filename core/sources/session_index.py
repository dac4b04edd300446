"""What was said of session files, kept until a file changes: a list of thousands opens at once.

The index is a file in the user's cache directory, so it may be deleted at any time. An entry holds
as long as size and time of the last change of its file are what they were; for a session inside a
database that is the database with its write-ahead log. Whether a session runs is never kept.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from .. import paths
from ..errors import ThresherError
from .found import Finder, FoundSession
from .sample import contained

FORMAT: Final = 1
"""Counts up whenever what is said of a session changes, so that old entries are not used."""

Stamp = tuple[int, ...]
"""Size and time of the last change, in nanoseconds, of each file that a session lies in."""


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    stamp: Stamp
    found: FoundSession


class _Kept(msgspec.Struct, frozen=True):
    format: int
    entries: dict[str, _Entry]


def index_file() -> Path:
    """Where the index is kept."""
    return paths.cache_dir() / "sessions.msgpack"


class SessionIndex:
    """The index, read when it is made; `save` writes it when something has changed.

    `hits` counts the sessions that did not have to be opened.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or index_file()
        self._entries = _read(self._file)
        self._changed = False
        self.hits = 0

    def sessions(self, finder: Finder, home: Path | None = None) -> Iterator[FoundSession]:
        """Every session of an agent, newest first; one is opened only if it is new or changed."""
        for path in finder.files(home):
            try:
                yield self.look_at(finder, path)
            except FileNotFoundError:
                continue

    def look_at(self, finder: Finder, path: Path) -> FoundSession:
        """What is said of this session. Raises FileNotFoundError where it is gone."""
        name, stamp = f"{finder.agent}:{path}", stamp_of(path)
        known = self._entries.get(name)
        if known is not None and known.stamp == stamp:
            self.hits += 1
            return known.found
        found = finder.look_at(path)
        # A problem may go away without a change of the file, as a missing right does.
        entry = _Entry(stamp, msgspec.structs.replace(found, running=None))
        if not found.problem and _can_be_kept(name, entry):
            self._entries[name] = entry
            self._changed = True
        return found

    def save(self) -> None:
        """Write the index, without the sessions that are gone; a cache that cannot be written is
        no reason to fail."""
        if not self._changed:
            return
        self._entries = {
            name: entry
            for name, entry in self._entries.items()
            if contained(entry.found.path)[0].exists()
        }
        data = msgspec.msgpack.encode(_Kept(FORMAT, self._entries), enc_hook=str)
        with contextlib.suppress(OSError, ThresherError):
            _replace(self._file, data)
            self._changed = False


def stamp_of(path: Path) -> Stamp:
    """The stamp of a session. Raises FileNotFoundError."""
    file, _ = contained(path)
    stat = file.stat()
    stamp: Stamp = (stat.st_size, stat.st_mtime_ns)
    with contextlib.suppress(OSError):
        log = file.with_name(f"{file.name}-wal").stat()
        stamp += (log.st_size, log.st_mtime_ns)
    return stamp


def _can_be_kept(name: str, entry: _Entry) -> bool:
    """Not where a name or a title holds half a character, which no encoding takes."""
    try:
        msgspec.msgpack.encode((name, entry), enc_hook=str)
    except UnicodeEncodeError:
        return False
    return True


def _read(file: Path) -> dict[str, _Entry]:
    """The entries; none where there is no index, a broken one, or one of another version."""
    try:
        kept = msgspec.msgpack.decode(file.read_bytes(), type=_Kept, dec_hook=_path)
    except (OSError, ValueError, msgspec.MsgspecError):
        return {}
    return dict(kept.entries) if kept.format == FORMAT else {}


def _path(type: type, value: object) -> Path:
    if type is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"no {type} in the index of sessions")


def _replace(file: Path, data: bytes) -> None:
    folder = paths.ensure_dir(file.parent)
    handle, name = tempfile.mkstemp(prefix=file.name, dir=folder)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
