"""Files that a compaction leaves behind: large outputs and transcripts, in the session's folder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Protocol

from ..jsontext import storable

MAX_NAME = 80


class Store(Protocol):
    """Keeps texts for a policy's Persist."""

    def save(self, name: str, text: str) -> str:
        """Keep `text` under a name made of `name`; returns its path. Raises OSError."""
        ...


class FileStore:
    """Writes into one folder, never over an existing file, readable by the user alone (0600)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, name: str, text: str) -> str:
        """Write a new file; a name that is taken gets a number. Raises OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stem, dot, suffix = safe_name(name).rpartition(".")
        if not stem:
            stem, dot, suffix = suffix, "", ""
        for number in range(1, 10_000):
            numbered = stem if number == 1 else f"{stem}-{number}"
            path = self.folder / f"{numbered}{dot}{suffix}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            try:
                handle = os.open(path, flags, 0o600)
            except FileExistsError:
                continue
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(storable(text).encode())
            except OSError:
                # A part of a text must not pass for the whole.
                path.unlink(missing_ok=True)
                raise
            return str(path)
        raise FileExistsError(f"{self.folder} holds too many files named {stem}")


def safe_name(name: str) -> str:
    """`name` as a file name: letters, digits, dot, dash and underscore, no dot at its start."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    return plain[:MAX_NAME].rstrip("-._") or "text"
