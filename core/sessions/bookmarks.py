"""Bookmarks of a session, with a note each, in a file of their own in the state folder.

Never in the journal: that of another program is not ours to write, and in our own a reader's mark
is no event of the session. The file is found again by agent and session id, wherever the session
file is moved to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..errors import ThresherError, storage_error
from ..paths import ensure_dir, state_dir

NOTE_CHARACTERS = 500
"""A longer note is cut."""


class Bookmark(msgspec.Struct, frozen=True):
    """A journal line that somebody wants to come back to. `at` is when it was set (seconds, UTC).
    The note is what the user typed, not clean."""

    line: int
    note: str = ""
    at: float = 0.0


class _Kept(msgspec.Struct, frozen=True):
    """What the file holds; agent and session are there for people who look into it."""

    agent: str
    session: str
    bookmarks: tuple[Bookmark, ...] = ()


class Bookmarks:
    """The bookmarks of one session, by line. Without a `file` they last as long as the process."""

    def __init__(self, file: Path | None = None, agent: str = "", session: str = "") -> None:
        self.file = file
        self.fault = ""
        """Why nothing is kept, in words; empty when all is well."""
        self._agent, self._session = agent, session
        self._marks: dict[int, Bookmark] = {}

    def __iter__(self) -> Iterator[Bookmark]:
        return iter(sorted(self._marks.values(), key=lambda mark: mark.line))

    def __len__(self) -> int:
        return len(self._marks)

    def get(self, line: int) -> Bookmark | None:
        """The bookmark of a line."""
        return self._marks.get(line)

    def set(self, line: int, note: str, at: float) -> None:
        """Set one, or give it another note. What cannot be kept is a ThresherError, and holds for
        as long as the process lives."""
        self._marks[line] = Bookmark(line, note[:NOTE_CHARACTERS], at)
        self._keep()

    def remove(self, line: int) -> None:
        """Take one away; a line without one is no error."""
        if self._marks.pop(line, None) is not None:
            self._keep()

    def _keep(self) -> None:
        if self.file is None:
            return
        ensure_dir(self.file.parent)
        kept = _Kept(self._agent, self._session, tuple(self))
        part = self.file.with_suffix(f".{os.getpid()}.part")
        try:
            # A lone surrogate of a foreign name has no UTF-8; it is replaced, the key is not.
            part.write_bytes(msgspec.json.encode(_encodable(kept)))
            part.replace(self.file)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise storage_error("Bookmark not kept", "write", self.file, error) from error


def bookmarks_of(agent: str, session: str, *, folder: Path | None = None) -> Bookmarks:
    """The bookmarks of a session, those of earlier days among them.

    A session without an id has nowhere to keep them. A file that is not as it was written is a
    ThresherError: it is neither read halfway nor overwritten.
    """
    if not session:
        return Bookmarks()
    name = hashlib.sha256(f"{agent}\0{session}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    file = (folder or state_dir() / "bookmarks") / f"{name}.json"
    found = Bookmarks(file, agent, session)
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
    except FileNotFoundError:
        return found
    except OSError as error:
        raise storage_error("Bookmarks not read", "read", file, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ThresherError(
            "Bookmarks not read",
            f"{file} is not as it was written ({error}): move it away to begin anew.",
        ) from None
    found._marks = {mark.line: mark for mark in kept.bookmarks}
    return found


def _encodable(kept: _Kept) -> _Kept:
    def safe(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    return _Kept(
        safe(kept.agent),
        safe(kept.session),
        tuple(Bookmark(mark.line, safe(mark.note), mark.at) for mark in kept.bookmarks),
    )
