"""What the screen remembers from one start to the next: a small JSON file in the state folder.

It holds tastes, nothing that is worth an error: whatever is missing, of the wrong kind or not
readable is as if it had never been chosen, and what cannot be written is forgotten at the end.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec

from thresher.core import paths
from thresher.core.errors import ThresherError

FILE = "screen.json"
LIMIT = 64 * 1024
"""Bytes; a larger file is not ours."""
SPLIT_LEAST, SPLIT_MOST = 25, 75


class Tastes(msgspec.Struct, frozen=True):
    """What was chosen. `split` is the share of the width that the timeline takes beside the detail,
    in per cent; 0 is "not chosen". `toured` says that the tour was shown or skipped."""

    theme: str = ""
    split: int = 0
    toured: bool = False


class Remembered:
    """The tastes, and the file they lie in; without a file they last as long as the program."""

    def __init__(self, path: Path | None = None) -> None:
        self.tastes = Tastes() if path is None else _read(path)
        self._path = path

    @classmethod
    def of_user(cls) -> Remembered:
        """Those of the user's state folder."""
        return cls(paths.state_dir() / FILE)

    def keep(self, **chosen: Any) -> None:
        """Remember these fields of `Tastes`."""
        tastes = msgspec.structs.replace(self.tastes, **chosen)
        if tastes == self.tastes:
            return
        self.tastes = tastes
        if self._path is not None:
            _write(self._path, tastes)


def _read(path: Path) -> Tastes:
    try:
        with path.open("rb") as file:
            found = msgspec.json.decode(file.read(LIMIT + 1))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Tastes()
    if not isinstance(found, dict):
        return Tastes()
    theme, split, toured = (found.get(name) for name in ("theme", "split", "toured"))
    if not isinstance(split, int) or not SPLIT_LEAST <= split <= SPLIT_MOST:
        split = 0
    return Tastes(
        theme=theme if isinstance(theme, str) and len(theme) <= 100 else "",
        split=split,
        toured=toured is True,
    )


def _write(path: Path, tastes: Tastes) -> None:
    # Two programs may write at once: each writes a file of its own and moves it into place.
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        paths.ensure_dir(path.parent)
        beside.write_bytes(msgspec.json.encode(tastes) + b"\n")
        beside.replace(path)
    except (OSError, ThresherError):
        with contextlib.suppress(OSError):
            beside.unlink()
