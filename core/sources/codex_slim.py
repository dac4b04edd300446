"""A large rollout, read in the slim way: what is kept of each item, and how to get at the rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from sys import intern
from typing import Any, Final

from msgspec import UNSET

from ..context import EntryId
from ..items import (
    Body,
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    Role,
)
from .base import WireItem
from .bodies import FileBodies
from .codex_cards import Shortened
from .codex_items import (
    METADATA,
    PAYLOAD_TYPES,
    Stored,
    dict_of,
    item_of,
    split_summary,
    texts_of,
    type_of,
)
from .codex_lines import Call, Output, Said, Thought, decode_known
from .codex_replay import Held
from .cutting import (
    HEAD,
    KEEP,
    SEALED_HEAD,
    Cut,
    Place,
    check_of,
    cut,
    cut_all,
    sample_of,
    shorten,
    shorten_call,
)
from .lines import Line, LineReader
from .longlines import LONG, parse_long

SAID_HEAD: Final = 512
"""Characters kept of what is said in the user's name: Codex's summary prefix must be in it."""
SAID_KEEP: Final = 4096

PREFIX_CHARS: Final = 64
"""A text of fewer characters cannot begin with the prefix, which has some hundred bytes."""

_KINDS: Final = "content_item_kinds"


class Slimmer:
    """Shortens the items of one line after the other."""

    def __init__(self, path: Path) -> None:
        self.bodies = bodies_of(path)
        self._place = Place(0, 0)
        self._metadata: dict[Sequence[str], WireItem] = {}
        """What is kept of the metadata of messages, the same for thousands of them."""

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
        # Two thirds of the items of a session come this way, so nothing is made twice here.
        offset, size = line.offset, line.size
        item: FunctionCallOutput | FunctionCall | Reasoning
        if isinstance(payload, Output):
            text, call_id, name = payload.output, intern(payload.call_id), payload.name or ""
            if len(text) > KEEP:
                body = Body(offset, size, 0, len(text), 0, hash(text), sample_of(text))
                item = FunctionCallOutput(call_id, text[:HEAD], name, False, "", body)
            else:
                item = FunctionCallOutput(call_id, text, name)
            raw = Stored(self._again, line, "function_call_output", payload.id, call_id)
        elif isinstance(payload, Call):
            text, call_id, name = payload.arguments, intern(payload.call_id), intern(payload.name)
            item = FunctionCall(call_id, name, text, payload.namespace or "")
            if len(text) > KEEP:
                item = shorten_call(item, Place(offset, size))
            raw = Stored(self._again, line, "function_call", payload.id, call_id)
        else:
            item, raw = self._thought(payload, line)
        return Held(id, raw, item)

    def said(self, line: Line, payload: Said) -> tuple[WireItem, Item]:
        """The message of a line that was decoded into its own form, in both its forms."""
        role, parts = payload.role, payload.content
        raw: WireItem = {
            "type": "message",
            "id": payload.id,
            "role": role,
            "content": [{"type": each.type, "text": each.text} for each in parts],
        }
        if payload.phase is not UNSET:
            raw["phase"] = payload.phase
        kinds: Sequence[str] = ()
        if payload.metadata is not UNSET:
            kinds = payload.metadata.content_item_kinds or ()
            raw[METADATA] = self._metadata.setdefault(kinds, {_KINDS: [*kinds]} if kinds else {})
        item: Item
        if len(parts) == 1 and _is_plain(role, parts[0].text, kinds):
            by = Role.USER if role == "user" else Role.ASSISTANT
            item = Message(by, parts[0].text, False, payload.phase or "")
        else:
            item = item_of(raw)
        if any(len(each.text) > KEEP for each in parts):
            cut_wire(raw)
            item = shorten(item, Place(line.offset, line.size))
        return raw, item

    def _thought(self, payload: Thought, line: Line) -> tuple[Reasoning, Stored]:
        sealed, text = payload.encrypted_content or "", ""
        if payload.summary or payload.content:
            readable = [each.text for each in (*payload.summary, *(payload.content or ()))]
            text = "\n\n".join(readable)
        raw = Stored(self._again, line, "reasoning", payload.id, None, len(sealed))
        if len(text) <= KEEP and len(sealed) <= HEAD:
            return Reasoning(text, sealed), raw
        check = check_of(text, sealed)
        sample = sample_of(text) if len(text) > KEEP else ""
        body = Body(line.offset, line.size, 0, len(text), len(sealed), check, sample)
        return Reasoning(text[:HEAD], sealed[:SEALED_HEAD], body), raw

    def _again(self, line: Line) -> WireItem | None:
        """The wire form of the item of a line, read from the file and cut."""
        value = self.bodies.value(Body(line.offset, line.size))
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
        number=number,
        offset=offset,
        known=decode_known,
        views=True,
        long=LONG,
        parse_long=parse_long,
    )


def bodies_of(path: Path) -> FileBodies:
    """The whole items of a rollout."""
    return FileBodies(path, _item_at)


def cut_wire(raw: WireItem) -> None:
    """Cut the long texts of a wire item in place, and drop the metadata that nobody reads."""
    if type_of(raw) in PAYLOAD_TYPES:
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


def _is_plain(role: str, text: str, kinds: Sequence[str]) -> bool:
    """Whether a message is certainly what the model, or the user, said: nothing else is to be
    asked (see codex_items.is_summary and is_contextual)."""
    if role == "assistant":
        return True
    plain = role == "user" and len(kinds) == 1 and kinds[0].startswith("user.")
    return plain and (len(text) < PREFIX_CHARS or split_summary(text) is None)


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
