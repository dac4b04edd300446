"""The files in which the Microsoft Agent Framework (Python) keeps a session.

Three forms: a session as one JSON object, whose `state` holds the messages under the name of a
history provider, written anew each time; a history of one message a line, appended to; and a plain
JSON array of messages. In the first, messages of a document that is broken off are still read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from .base import WireItem
from .codex_items import dict_of, text_of
from .lines import Line, LineReader, open_bytes, parse, unreadable
from .maf_messages import is_message
from .sample import Sample

_SESSION: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"session"\s*,\s*"session_id"\s*:')
_ARRAY: Final = re.compile(rb'\s*\[\s*\{\s*"type"\s*:\s*"message"\s*,\s*"role"\s*:')
_BOM: Final = b"\xef\xbb\xbf"


class Fault(msgspec.Struct, frozen=True):
    """Something in the file that could not be read, or is not known. `line` counts from 0."""

    text: str
    line: int
    unknown: str = ""
    """The type of an unknown record; empty for what is broken."""
    size: int = 0


class Document(msgspec.Struct, frozen=True):
    """What a file holds: the messages of one conversation, in their stored order."""

    session_id: str = ""
    version: str = ""
    messages: tuple[WireItem, ...] = ()
    provider: str = ""
    """The name under which the messages are kept."""
    others: tuple[str, ...] = ()
    """Other providers with messages, which are not shown."""
    service: bool = False
    """The service keeps the conversation, so what is here may not be what it sends."""
    faults: tuple[Fault, ...] = ()


def recognised(sample: Sample) -> str:
    """How a file is known to be one of these; empty when it is not."""
    head = sample.head.removeprefix(_BOM)
    if _SESSION.match(head):
        return "its beginning"
    if _ARRAY.match(head):
        return "its first message"
    return sample.line_like(_is_line)


def read_document(path: Path) -> Document:
    """The file as it is now. Errors of the file itself are ThresherError."""
    try:
        with open_bytes(path) as file:
            data = file.read()
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error
    return document_of(data)


def document_of(data: bytes) -> Document:
    """The conversation in these bytes; what cannot be read is among the faults."""
    data = data.removeprefix(_BOM)
    if _SESSION.match(data):
        value, fault = parse(data)
        return _session(value, fault) if value is not None else _salvaged(data, fault)
    if _ARRAY.match(data):
        try:
            return _list(msgspec.json.decode(data))
        except (ValueError, RecursionError) as error:
            return _salvaged(data, str(error) or "it is nested too deeply")
    return _history(data)


def _is_line(value: dict[str, Any]) -> bool:
    return value.get("type") == "message" and is_message(value)


def _session(value: dict[str, Any], fault: str) -> Document:
    state = dict_of(value.get("state"))
    held = {
        name: [each for each in kept["messages"] if is_message(each)]
        for name, kept in state.items()
        if isinstance(kept, dict) and isinstance(kept.get("messages"), list)
    }
    named = sorted(held, key=lambda name: -len(held[name]))
    first = named[0] if named else ""
    faults = [Fault(f"the document was mended: {fault}", 0)] if fault else []
    for at, each in enumerate(state[first]["messages"] if first else ()):
        if not is_message(each):
            kind = text_of(dict_of(each).get("type")) or type(each).__name__
            faults.append(Fault(f"value {at + 1} is no message", at, kind[:60]))
    if not named:
        faults.append(Fault("the state of the session holds no messages", 0))
    return Document(
        session_id=text_of(value.get("session_id")),
        version=text_of(value.get("version")),
        messages=tuple(held[first]) if first else (),
        provider=first,
        others=tuple(name for name in named[1:] if held[name]),
        service=bool(value.get("service_session_id")),
        faults=tuple(faults),
    )


def _list(values: list[Any]) -> Document:
    faults = [
        Fault(f"value {at + 1} is no message", at, type(each).__name__)
        for at, each in enumerate(values)
        if not is_message(each)
    ]
    found = tuple(each for each in values if is_message(each))
    return Document(messages=found, faults=tuple(faults))


def _salvaged(data: bytes, why: str) -> Document:
    """The messages up to the place where a document is broken."""
    text = data.decode("utf-8", "replace")
    start = text.find("[", max(0, text.find('"messages"')))
    found = tuple(_objects(text, start + 1)) if start >= 0 else ()
    named = re.search(r'"session_id"\s*:\s*"([^"\\]*)"', text)
    fault = f"the document is broken ({why}): {len(found):,} messages of it could be read"
    return Document(
        session_id=named[1] if named else "",
        messages=tuple(each for each in found if is_message(each)),
        faults=(Fault(fault, 0),),
    )


def _objects(text: str, at: int) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            value, at = decoder.raw_decode(text, at)
            # What was cut out of the middle may hold what no encoder takes.
            yield parse(json.dumps(value).encode())[0]
        except (ValueError, RecursionError):
            return


def _history(data: bytes) -> Document:
    reader = LineReader()
    found: list[WireItem] = []
    faults: list[Fault] = []
    for line in [*reader.feed(data), *reader.finish()]:
        if line.fault:
            faults.append(_bad(line))
        if line.value is None:
            continue
        if is_message(line.value):
            found.append(line.value)
        else:
            kind = text_of(line.value.get("type")) or "(no type)"
            faults.append(Fault("", line.number, kind[:60], line.size))
    return Document(messages=tuple(found), faults=tuple(faults))


def _bad(line: Line) -> Fault:
    fate = "is left out" if line.value is None else "was mended"
    return Fault(f"line {line.number + 1} (byte {line.offset:,}) {fate}: {line.fault}", line.number)
