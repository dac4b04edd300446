"""What is said of a session before it is opened, and how the sessions of an agent are found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from re import Pattern
from stat import S_ISREG
from typing import IO, Final, NamedTuple

import msgspec

from .lines import CHUNK

_LONGEST: Final = 64
"""More than the longest match that is counted, so that none is lost between two pieces."""


class FoundSession(msgspec.Struct, frozen=True):
    """A session file. `modified` is seconds since the epoch, `size` bytes as stored.

    `compactions` is None when nobody has counted, `running` when nobody can tell; `running_how` is
    the evidence for it, and without `running_sure` that is inferred. `problem` says why there is
    nothing more.
    """

    path: Path
    agent: str
    id: str
    modified: float
    size: int
    title: str = ""
    cwd: str = ""
    model: str = ""
    version: str = ""
    archived: bool = False
    compactions: int | None = None
    problem: str = ""
    running: bool | None = None
    running_how: str = ""
    running_sure: bool = True


class Registered(NamedTuple):
    """A process as an agent's own register has it: `ticks` is when it started, a text that counts
    the system's clock ticks."""

    pid: int
    ticks: str


class Finder(msgspec.Struct, frozen=True):
    """How the sessions of one agent are found.

    `words` are what a user may call it; `variable` is the environment variable that moves `home`,
    where the agent keeps its files. `files` gives the sessions below a home, newest first, without
    opening them; `look_at` says what can be said of one cheaply and raises FileNotFoundError alone.
    `registered` reads the agent's register of its processes, where it keeps one: by session id.
    """

    agent: str
    name: str
    words: tuple[str, ...]
    variable: str
    home: Callable[[], Path]
    files: Callable[[Path | None], list[Path]]
    look_at: Callable[[Path], FoundSession]
    id_of: Callable[[Path], str]
    registered: Callable[[Path | None], Mapping[str, Registered]] | None = None

    def sessions(self, home: Path | None = None) -> Iterator[FoundSession]:
        """Every session, newest first; each is looked at only when it is asked for."""
        for path in self.files(home):
            try:
                yield self.look_at(path)
            except FileNotFoundError:
                continue


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """The paths by the time of their last change; what cannot be looked at, or is no file (but a
    folder, or a pipe that nobody writes to), is left out."""
    dated: list[tuple[float, Path]] = []
    for path in paths:
        try:
            seen = path.stat()
        except OSError:
            continue
        if S_ISREG(seen.st_mode):
            dated.append((seen.st_mtime, path))
    return [path for _, path in sorted(dated, key=lambda pair: (-pair[0], str(pair[1])))]


def count_matches(file: IO[bytes], pattern: Pattern[bytes]) -> int:
    """Matches in a file that is never in memory as a whole. What stands inside a text of a JSON
    line does not match a pattern with quotation marks, since there they are escaped."""
    count = 0
    rest = b""
    while chunk := file.read(CHUNK):
        piece = rest + chunk
        matches = [match.end() for match in pattern.finditer(piece)]
        count += len(matches)
        done = matches[-1] if matches else 0
        rest = piece[max(done, len(piece) - _LONGEST) :]
    return count


def reason_of(error: BaseException) -> str:
    """Why a file could not be read, in the words of the system."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
