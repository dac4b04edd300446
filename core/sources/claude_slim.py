"""A large transcript, read in the slim way: what is kept of each item, and how to get at the rest.

Summaries are kept whole, since their cards show them; of all other long texts only the heads are.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from sys import intern
from typing import Any, Final

import msgspec

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
from .bodies import FileBodies
from .claude_items import assistant_items, attachment_items, user_items
from .claude_known import FIELDS
from .claude_lines import Asked, Result, Said, Thought, decode_known, decode_wide
from .codex_items import dict_of, json_of, text_of
from .cutting import HEAD, KEEP, Place, sample_of, shorten
from .lines import CHUNK, Line, LineReader, parse
from .longlines import LONG, checked, parse_long

_CALL: Final = b'"tool_use_id"'
_ASSISTANT: Final = Role.ASSISTANT
"""Looking it up in the enum takes as long as making a message."""


class Slimmer:
    """Shortens the items of one line after the other."""

    def __init__(self, path: Path) -> None:
        self.bodies = FileBodies(path, item_at)
        self._place = Place(0, 0)

    def begin(self, line: Line) -> None:
        """The line that the next items are of."""
        self._place = Place(line.offset, line.size, line.check)

    def short(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """All items of the line, shortened."""
        return tuple(
            item if isinstance(item, CompactionSummary) else shorten(item, self._place, part)
            for part, item in enumerate(items)
        )

    def result(self, line: Line, block: Result) -> FunctionCallOutput:
        """The item of a record that was decoded into its own form."""
        text, call_id, failed = block.content, intern(block.tool_use_id), block.is_error is True
        if len(text) <= KEEP:
            return FunctionCallOutput(call_id, text, is_error=failed)
        body = Body(line.offset, line.size, 0, len(text), 0, hash(text), sample_of(text))
        return FunctionCallOutput(call_id, text[:HEAD], "", failed, "", body)

    def block(self, line: Line, block: Said | Thought | Asked) -> Item:
        """The same for the block of a response."""
        item: Item
        if isinstance(block, Asked):
            arguments = json_of(block.input)
            item = FunctionCall(intern(block.id), intern(block.name), arguments)
            is_long = len(arguments) > KEEP
        elif isinstance(block, Said):
            item, is_long = Message(_ASSISTANT, block.text), len(block.text) > KEEP
        else:
            text = block.thinking
            sealed = "" if text else block.signature
            item = Reasoning(text, sealed)
            is_long = len(text) > KEEP or len(sealed) > HEAD
        return shorten(item, Place(line.offset, line.size)) if is_long else item


def slim_reader(number: int = 0, offset: int = 0) -> LineReader:
    """Reads the lines of a large transcript, from this one on."""
    return LineReader(
        number=number,
        offset=offset,
        known=decode_known,
        wide=decode_wide,
        long=LONG,
        parse_long=parse_result,
    )


def slim_lines(path: Path) -> Iterator[Line]:
    """The lines of a large transcript, from its start. Raises OSError."""
    reader = slim_reader()
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            yield from reader.feed(data)
    yield from reader.whole()


def parse_result(raw: bytes | bytearray) -> tuple[dict[str, Any] | None, str, int]:
    """Like `longlines.parse_long` for what makes nearly all long lines: the results of tools.
    Every other long line is decoded in one piece, since all of its text is wanted."""
    if raw.find(_CALL) >= 0:
        value, fault, check = parse_long(raw)
        if value is not None and _is_result(value):
            return value, fault, check
    return *parse(raw), checked(raw)


def item_at(value: dict[str, Any], part: int, held: Item) -> Item | None:
    """An item of a record, read anew. What the record alone does not tell of it (where the whole
    output is saved, who wrote a text) is that of the item that is held."""
    message = dict_of(value.get("message"))
    content = message.get("content")
    items: tuple[Item, ...]
    match value.get("type"):
        case "user":
            items = user_items(content)
        case "assistant":
            items = assistant_items(content)
        case "attachment":
            items = attachment_items(dict_of(value.get("attachment")), value.get("rendered"))
        case "system":
            items = user_items(text_of(value.get("content")))
        case _:
            items = ()
    if part >= len(items):
        return None
    match items[part], held:
        case FunctionCallOutput() as output, FunctionCallOutput(saved=saved) if saved:
            return msgspec.structs.replace(output, saved=saved)
        case Message() as said, Message(synthetic=synthetic):
            return msgspec.structs.replace(said, synthetic=synthetic)
        case item, _:
            return item


def _is_result(value: dict[str, Any]) -> bool:
    """A record of results whose content is text, with nothing in it that is to be listed."""
    blocks = dict_of(value.get("message")).get("content")
    return (
        value.get("type") == "user"
        and value.keys() <= FIELDS["user"]
        and value.get("isCompactSummary") is not True
        and isinstance(blocks, list)
        and all(map(_is_text_result, blocks))
    )


def _is_text_result(block: object) -> bool:
    fields = dict_of(block)
    return (
        fields.get("type") == "tool_result"
        and bool(text_of(fields.get("tool_use_id")))
        and isinstance(fields.get("content"), str)
    )
