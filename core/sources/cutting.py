"""Long texts of a large session file, cut to their heads: the rest stays in the file.

A session of a hundred megabytes is mostly tool output that nobody will look at. So a slim reading
keeps of each item a head and a `Body`, which says how much there is and where; and of the wire form
that the reader itself needs later, a `Cut` in the place of each long text. All sizes are characters
unless their name says bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from ..items import (
    Body,
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    OtherItem,
    Part,
    Reasoning,
    TextPart,
)
from .lines import is_packed

SLIM_FROM: Final = 8_000_000
"""Bytes of a file from which on it is read in the slim way."""
HEAD: Final = 200
"""What is kept of a long text."""
SEALED_HEAD: Final = 50
"""What is kept of a sealed text."""
KEEP: Final = 400
"""Texts up to here are kept whole."""
PIECE: Final = 96
"""Characters of each of the three pieces of a long text that are kept as its sample."""


class Cut(str):
    """The head of a text, with what is known of the whole: its characters, its bytes in UTF-8, and
    a check of its content. Two of them are equal when all of this is. `sample` as in `Body`."""

    __slots__ = ("bytes", "chars", "check", "sample")

    bytes: int
    chars: int
    check: int
    sample: str

    def __new__(cls, head: str, chars: int, bytes: int, check: int, sample: str = "") -> Cut:
        made = super().__new__(cls, head)
        made.chars, made.bytes, made.check, made.sample = chars, bytes, check, sample
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cut):
            return False
        same = (self.chars, self.check) == (other.chars, other.check)
        return same and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self.check

    def ends(self, text: str) -> bool:
        """Whether `text` ends with the whole of this."""
        return len(text) >= self.chars and self.check == hash(text[-self.chars :])


class Place(msgspec.Struct, frozen=True, gc=False):
    """A line of the file: its first byte and its size in bytes, its newline included.

    `check` is that of the bytes of the line where it was too long to be read whole, else 0.
    """

    offset: int
    size: int
    check: int = 0


def is_large(path: Path) -> bool:
    """Whether a file is read in the slim way: not when it is packed, since then no line of it can
    be read alone. Errors count as no."""
    try:
        return path.stat().st_size >= SLIM_FROM and not is_packed(path)
    except OSError:
        return False


def cut(text: str, head: int = HEAD, keep: int = KEEP) -> str:
    """The text itself when it is short, else its head; what is cut already may get shorter."""
    if type(text) is Cut:
        if len(text) <= head:
            return text
        return Cut(text[:head], text.chars, text.bytes, text.check, text.sample)
    if len(text) <= keep:
        return text
    return Cut(text[:head], len(text), size_in_bytes(text), hash(text))


def cut_all(value: Any, head: int = HEAD, keep: int = KEEP) -> Any:
    """Decoded JSON with every long text in it cut, in place where it can be."""
    match value:
        case str():
            return cut(value, head, keep)
        case dict():
            for key, each in value.items():
                value[key] = cut_all(each, head, keep)
        case list():
            value[:] = [cut_all(each, head, keep) for each in value]
        case _:
            pass
    return value


def sample_of(text: str) -> str:
    """Pieces of a long text, evenly spread behind its head."""
    if type(text) is Cut:
        return text.sample
    step = len(text) // 4
    second, third = 2 * step, 3 * step
    return text[step : step + PIECE] + text[second : second + PIECE] + text[third : third + PIECE]


def size_in_bytes(text: str) -> int:
    """The length of a text in UTF-8; half of a surrogate pair counts as one byte."""
    if type(text) is Cut:
        return text.bytes
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def length(text: str) -> int:
    """The characters of the whole text."""
    return text.chars if type(text) is Cut else len(text)


def shorten(item: Item, place: Place, part: int = 0) -> Item:
    """The item with the heads of its long texts and a `Body`; itself when nothing in it is long.

    `part` says which item of the line it is.
    """
    match item:
        case FunctionCallOutput(output=text) if len(text) > KEEP or type(text) is Cut:
            body = _body(text, place, part)
            return FunctionCallOutput(
                item.call_id, text[:HEAD], item.name, item.is_error, item.saved, body
            )
        case FunctionCall(arguments=text) if len(text) > KEEP or type(text) is Cut:
            return shorten_call(item, place, part)
        case Reasoning() if len(item.summary) > KEEP or len(item.encrypted) > HEAD:
            body = _body(item.summary, place, part, sealed=item.encrypted)
            return Reasoning(item.summary[:HEAD], item.encrypted[:SEALED_HEAD], body)
        case CompactionSummary() if len(item.content) > KEEP or len(item.encrypted) > HEAD:
            more = len(item.prefix)
            body = _body(item.content, place, part, more=more, sealed=item.encrypted)
            head, sealed = item.content[:HEAD], item.encrypted[:SEALED_HEAD]
            return CompactionSummary(head, item.prefix, sealed, item.role, body)
        case Message(content=str(text)) if len(text) > KEEP or type(text) is Cut:
            body = _body(text, place, part)
            return Message(item.role, text[:HEAD], item.synthetic, item.phase, body)
        case Message(content=tuple(parts)) if any(map(_is_long, parts)):
            body = _body(item.text, place, part, check=hash(tuple(map(_text, parts))))
            heads = tuple(map(_head, parts))
            return Message(item.role, heads, item.synthetic, item.phase, body)
        case OtherItem() if len(item.json) > KEEP:
            body = _body(item.text, place, part, sealed=item.json)
            return OtherItem(item.type, item.json[:HEAD], item.text[:HEAD], body)
        case _:
            return item


def shorten_call(item: FunctionCall, place: Place, part: int = 0) -> FunctionCall:
    """A call with long arguments, shortened."""
    body = _body(item.arguments, place, part, more=len(item.name) + 1)
    return FunctionCall(item.call_id, item.name, item.arguments[:HEAD], item.namespace, body)


def check_of(text: str, sealed: str = "") -> int:
    """The check of what an item says and holds sealed; good in this process only."""
    return hash(text) ^ hash(sealed) if sealed else hash(text)


def is_whole_of(item: Item, short: Item) -> bool:
    """Whether a whole item is the one that `short` was made of."""
    body = short.body
    if body is None:
        return item == short
    again = shorten(item, Place(body.offset, body.size), body.part)
    return again == short


def _body(
    text: str, place: Place, part: int, *, more: int = 0, sealed: str = "", check: int = 0
) -> Body:
    check = place.check or check or check_of(text, sealed)
    sample = sample_of(text) if len(text) > KEEP or type(text) is Cut else ""
    chars, sealed_chars = length(text) + more, length(sealed)
    return Body(place.offset, place.size, part, chars, sealed_chars, check, sample)


def _text(part: Part) -> str:
    match part:
        case TextPart(text=text):
            return text
        case ImagePart(url=text):
            return text
        case OpaquePart(json=text):
            return text


def _is_long(part: Part) -> bool:
    text = _text(part)
    return len(text) > KEEP or type(text) is Cut


def _head(part: Part) -> Part:
    if not _is_long(part):
        return part
    match part:
        case TextPart(text=text):
            return TextPart(text[:HEAD])
        case ImagePart(url=text):
            return ImagePart(text[:SEALED_HEAD], part.detail)
        case OpaquePart(json=text):
            return OpaquePart(part.kind, text[:SEALED_HEAD])
