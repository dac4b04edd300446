"""Whole items from a session file of which only the heads are held: read when someone looks.

The file belongs to another program and may have been rewritten since. So what is read is compared
with what had been read; a difference is said, and no other text is ever shown in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..errors import ThresherError
from ..items import Body, Item
from .cutting import is_whole_of
from .lines import parse, unreadable
from .longlines import LONG, checked

_NEWLINE: Final = b"\n"

ItemOf = Callable[[dict[str, Any], int, Item], Item | None]
"""The item of a line: its object, which item of it, and the head that is held."""


class FileBodies:
    """The whole items of one file (see core.bodies). `item_of` knows the format."""

    def __init__(self, path: Path, item_of: ItemOf) -> None:
        self.path = path
        self._item_of = item_of

    def whole(self, item: Item) -> Item:
        """The item with all of its text: itself when it has that already.

        Raises ThresherError when the file cannot be read, or holds something else there now.
        """
        body = item.body
        if body is None:
            return item
        raw = self._line(body)
        value = None if raw is None else parse(raw)[0]
        found = None if value is None else self._item_of(value, body.part, item)
        if raw is None or found is None or not _is_same(raw, found, item, body):
            raise self._changed(body)
        return found

    def value(self, body: Body) -> dict[str, Any] | None:
        """The object of the line of an item, unchecked; None where there is none any more."""
        try:
            raw = self._line(body)
        except ThresherError:
            return None
        return None if raw is None else parse(raw)[0]

    def _line(self, body: Body) -> bytes | None:
        """The bytes of the line without its newline; None when no line lies there."""
        try:
            with self.path.open("rb") as file:
                file.seek(body.offset)
                raw = file.read(body.size)
        except OSError as error:
            raise unreadable(self.path, error) from error
        return raw.removesuffix(_NEWLINE) if len(raw) == body.size else None

    def _changed(self, body: Body) -> ThresherError:
        return ThresherError(
            "The file has changed",
            f"{self.path} no longer holds at byte {body.offset:,} what was read there, so only the "
            "beginning of this text can be shown. Open the file again to see what it holds now.",
        )


def _is_same(raw: bytes, found: Item, held: Item, body: Body) -> bool:
    if body.size >= LONG:
        return checked(raw) == body.check
    return is_whole_of(found, held)
