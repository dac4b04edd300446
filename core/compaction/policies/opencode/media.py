"""Pictures and files in a message: their name in words, which is all a summary is told of them."""

from __future__ import annotations

import re

import msgspec

from ....items import ImagePart, Message, OpaquePart, Part, TextPart


def attached(part: ImagePart | OpaquePart) -> str:
    """`[Attached MIME: NAME]`; the name is `file` where there is none."""
    mime, name = _described(part)
    return f"[Attached {mime}: {name or 'file'}]"


def media_type(part: ImagePart | OpaquePart) -> str:
    """The MIME type, or what kind of thing it is."""
    return _described(part)[0]


def file_name(part: ImagePart | OpaquePart) -> str:
    """The name, or an empty text."""
    return _described(part)[1]


def address(part: ImagePart | OpaquePart) -> str:
    """What stands for its contents in a request: the data: or https: address, or the JSON."""
    return part.url if isinstance(part, ImagePart) else part.json


def has_media(message: Message) -> bool:
    """Whether there is anything but text in it."""
    return not isinstance(message.content, str) and any(
        not isinstance(part, TextPart) for part in message.content
    )


def without_media(message: Message) -> Message:
    """The message with every picture and file replaced by its name in words."""
    if isinstance(message.content, str):
        return message
    parts: list[Part] = [
        part if isinstance(part, TextPart) else TextPart(attached(part)) for part in message.content
    ]
    return msgspec.structs.replace(message, content=tuple(parts))


_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]")
_NAME = re.compile(r'"(?:filename|file_name)"\s*:\s*("(?:[^"\\]|\\.)*")')


def _described(part: ImagePart | OpaquePart) -> tuple[str, str]:
    if isinstance(part, ImagePart):
        found = _DATA.match(part.url)
        return (found[1] if found else "image", "")
    found = _DATA.search(part.json)
    named = _NAME.search(part.json)
    try:
        name = msgspec.json.decode(named[1], type=str) if named else ""
    except (msgspec.DecodeError, UnicodeEncodeError):
        name = ""
    return (found[1] if found else part.kind, name)
