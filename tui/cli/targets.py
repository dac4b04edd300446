"""What a user means by FILE: a path, `latest`, `latest:codex`, or the beginning of an id."""

from __future__ import annotations

from pathlib import Path

from thresher.core.errors import ThresherError

from . import known

FILE_HELP = "A session: a file, `latest`, `latest:codex`, or the beginning of a session's id."
LATEST = "latest"


def located(query: str) -> Path:
    """The session file that is meant. Raises ThresherError when there is none, or more than one.

    A path need not exist: whoever reads it says what is wrong with it.
    """
    word, _, agent = query.partition(":")
    if word == LATEST and "/" not in query:
        return known.latest(agent)
    if not query.strip():
        raise ThresherError("No file named", "FILE is empty: name one, or say `latest`.")
    if "\0" in query:
        raise ThresherError("No such file", "FILE holds a NUL character, which no path does.")
    path = Path(query).expanduser()
    try:
        exists = path.exists()
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ThresherError(
            "No such file", f"{query[:80]!r} ... cannot be a path: {why}."
        ) from error
    return path if exists or "/" in query or path.suffix else known.by_id(query)
