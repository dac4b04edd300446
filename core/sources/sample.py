"""The beginning of a file, as the formats are shown it when one of them has to know it again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from .lines import Line, LineReader

LINES = 20
"""Lines looked at: a file may begin with a broken one."""


class Sample:
    """What a format is recognised by: the path, and of a file its first bytes, unpacked.

    `folder` is true for a folder, which has no bytes.
    """

    def __init__(self, path: Path, head: bytes = b"", *, folder: bool = False) -> None:
        self.path = path
        self.head = head
        self.folder = folder
        self._lines: tuple[Line, ...] | None = None

    @property
    def lines(self) -> tuple[Line, ...]:
        """The first lines, those that could not be read among them."""
        if self._lines is None:
            reader = LineReader()
            found = list(islice(reader.feed(self.head), LINES))
            self._lines = tuple(found or reader.finish())
        return self._lines

    def line_like(self, fits: Callable[[dict[str, Any]], bool]) -> str:
        """The words "line N" for the first line whose object fits; empty when none does."""
        for line in self.lines:
            if line.value is not None and fits(line.value):
                return f"line {line.number + 1}"
        return ""


def contained(path: Path) -> tuple[Path, str]:
    """A path, and the id of the session that is meant in it.

    A file of several sessions is written as a folder of them: `opencode.db/ses_1`. Without such an
    id, or where the path exists as it is, the id is empty.
    """
    if path.name and not path.exists() and path.parent.is_file():
        return path.parent, path.name
    return path, ""
