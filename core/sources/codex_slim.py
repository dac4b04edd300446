"""A large rollout, read in the slim way: what is kept of each item, and how to get at the rest."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from sys import intern
from typing import Any, Final

from ..context import EntryId
from ..items import (
    Body,
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Reasoning,
)
from .base import WireItem
from .bodies import FileBodies
from .codex_cards import Shortened
from .codex_items import METADATA, PAYLOAD_TYPES, Stored, dict_of, item_of, texts_of
from .codex_lines import Call, Output, Thought, decode_known
from .codex_replay import Held
from .cutting import HEAD, KEEP, Cut, Place, cut, cut_all, shorten
from .lines import Line, LineReader
from .longlines import LONG, parse_long

SAID_HEAD: Final = 512
"""Characters kept of what is said in the user's name: Codex's summary prefix must be in it."""
SAID_KEEP: Final = 4096

_KINDS: Final = "content_item_kinds"


class Slimmer:
    """Shortens the items of one line after the other."""

    def __init__(self, path: Path) -> None:
        self.bodies = bodies_of(path)
        self._place = Place(0, 0)

    def twin(self) -> Slimmer:
        """One for another pass over the same file."""
        return Slimmer(self.bodies.path)

    def begin(self, line: Line) -> None:
        """The line that the next items are of."""
        self._place = Place(line.offset, line.size, line.check)

    def held(self, held: Held) -> Held:
        """The item of the line with both its forms shortened, the wire form in place."""
        cut_wire(held.raw)
        return Held(held.id, held.raw, shorten(held.item, self._place), held.answer)

    def known(self, id: EntryId, line: Line, payload: Thought | Call | Output) -> Held:
        """The item of a line that was decoded into its own form."""
        place = Place(line.offset, line.size, line.check)
        raw = Stored(partial(self._again, place))
        item: Item
        raw["id"] = payload.id
        match payload:
            case Output(call_id=call_id, output=text):
                call_id = intern(call_id)
                item = shorten(FunctionCallOutput(call_id, text, payload.name or ""), place)
                raw["type"], raw["call_id"], raw["output"] = (
                    "function_call_output",
                    call_id,
                    cut(text),
                )
                if payload.name:
                    raw["name"] = payload.name
            case Call(call_id=call_id, name=name, arguments=text):
                call_id, name = intern(call_id), intern(name)
                item = shorten(FunctionCall(call_id, name, text, payload.namespace or ""), place)
                raw["type"], raw["call_id"], raw["name"] = "function_call", call_id, name
                raw["arguments"] = cut(text)
                if payload.namespace:
                    raw["namespace"] = payload.namespace
            case Thought():
                readable = [each.text for each in (*payload.summary, *(payload.content or ()))]
                sealed = payload.encrypted_content or ""
                item = shorten(Reasoning("\n\n".join(readable), sealed), place)
                raw["type"], raw["encrypted_content"] = "reasoning", cut(sealed)
        return Held(id, raw, item)

    def _again(self, place: Place) -> WireItem | None:
        value = self.bodies.value(Body(place.offset, place.size))
        wire = None if value is None else _wire(value, 0)
        if wire is not None:
            cut_wire(wire)
        return wire

    def shortened(self, *, recorded: bool) -> Shortened:
        """What shortens the items of a compacted line. Where the line does not hold them, only
        their wire forms are cut, since nothing in the file could give the rest back."""

        def both(item: Item, raw: WireItem, part: int) -> Item:
            cut_wire(raw)
            return shorten(item, self._place, part) if recorded else item

        return both

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


def slim_reader(number: int = 0, offset: int = 0) -> LineReader:
    """Reads the lines of a large rollout, from this one on."""
    return LineReader(
        number=number, offset=offset, known=decode_known, long=LONG, parse_long=parse_long
    )


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
        if type(value) is str:
            if len(value) > keep:
                raw[key] = cut(value, head, keep)
        elif key == METADATA:
            kinds = dict_of(value).get(_KINDS)
            raw[key] = {_KINDS: kinds} if kinds else _NO_METADATA
        elif value:
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
