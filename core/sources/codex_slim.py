"""A large rollout, read in the slim way: what is kept of each item, and how to get at the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ..items import CompactionSummary, Item
from .base import WireItem
from .bodies import FileBodies
from .codex_items import METADATA, PAYLOAD_TYPES, dict_of, item_of, texts_of
from .codex_replay import Held
from .cutting import HEAD, KEEP, Cut, Place, cut_all, shorten
from .lines import Line

SAID_HEAD: Final = 512
"""Characters kept of what is said in the user's name: Codex's summary prefix must be in it."""
SAID_KEEP: Final = 4096

_KINDS: Final = "content_item_kinds"


class Slimmer:
    """Shortens the items of one line after the other."""

    def __init__(self, path: Path) -> None:
        self.bodies = bodies_of(path)
        self._place = Place(0, 0)

    def begin(self, line: Line) -> None:
        """The line that the next items are of."""
        self._place = Place(line.offset, line.size, line.check)

    def held(self, held: Held) -> Held:
        """The item of the line with both its forms shortened, the wire form in place."""
        cut_wire(held.raw)
        return Held(held.id, held.raw, shorten(held.item, self._place), held.answer)

    def item(self, item: Item, part: int) -> Item:
        """Our form of one of the items of a compacted line, shortened."""
        return shorten(item, self._place, part)

    def whole(self, held: Held) -> WireItem:
        """The wire form as it was read, from the file if need be; as it is held where the file
        does not have it any more."""
        if not any(type(text) is Cut for text in texts_of(held.raw.get("content"))):
            return held.raw
        body = held.item.body
        if body is None:
            return {**held.raw, "content": [{"type": "input_text", "text": held.item.text}]}
        value = self.bodies.value(body)
        return (None if value is None else _wire(value, body.part)) or held.raw


def bodies_of(path: Path) -> FileBodies:
    """The whole items of a rollout."""
    return FileBodies(path, _item_at)


def cut_wire(raw: WireItem) -> None:
    """Cut the long texts of a wire item in place, and drop the metadata that nobody reads."""
    if raw.get("type") in PAYLOAD_TYPES:
        return
    said = raw.get("role") == "user"
    head, keep = (SAID_HEAD, SAID_KEEP) if said else (HEAD, KEEP)
    for key, value in raw.items():
        if key == METADATA:
            kinds = dict_of(value).get(_KINDS)
            raw[key] = {_KINDS: kinds} if kinds else _NO_METADATA
        else:
            raw[key] = cut_all(value, head, keep)


_NO_METADATA: Final[WireItem] = {}


def _item_at(value: dict[str, Any], part: int, held: Item) -> Item | None:
    wire = _wire(value, part)
    return None if wire is None else item_of(wire, summary=isinstance(held, CompactionSummary))


def _wire(value: dict[str, Any], part: int) -> WireItem | None:
    payload = dict_of(value.get("payload"))
    if value.get("type") != "compacted":
        return payload or None
    listed = payload.get("replacement_history")
    items = [raw for raw in listed if isinstance(raw, dict)] if isinstance(listed, list) else []
    return items[part] if part < len(items) else None
